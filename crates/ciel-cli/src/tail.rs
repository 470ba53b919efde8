//! `ciel tail`: an ordered file from its beginning, and what a run appends until it has ended.
//!
//! The file is an ordinary one, a prefix of the final bytes at every moment. The run that writes it
//! holds its lock, and the kernel says when it has been written or closed. It knows neither runs
//! nor state folders: any file can be followed.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rustix::fs::inotify;

use crate::cli_error::CliError;
use crate::options::TailOptions;

/// Bytes that are passed on at once.
const PART_BYTES_MAX: usize = 64 << 10;

/// A file is closed a moment before its lock is released: the lock is looked at up to this
/// many times, a millisecond apart, before another run is taken to have it.
const LOOKS_AFTER_CLOSE: u32 = 50;

/// Prints the file; returns when nobody writes it any more.
pub fn follow(options: &TailOptions) -> Result<ExitCode, CliError> {
    match Followed::open(&options.file).and_then(Followed::pass_all_on) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(CliError::Unread),
        Err(error) => {
            let message = format!("cannot follow {}: {error}", options.file.display());
            let complaint = CliError::usage("tail.file", message);
            Err(match error.kind() {
                ErrorKind::NotFound => {
                    complaint.with_hint("it exists as soon as a task of the job has opened it")
                }
                _ => complaint,
            })
        }
    }
}

/// What a look at the file's lock says.
#[derive(PartialEq)]
enum Writer {
    Present,
    Gone,
}

struct Followed {
    file: File,
    changes: OwnedFd,
}

impl Followed {
    fn open(path: &Path) -> io::Result<Followed> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let changes = inotify::init(inotify::CreateFlags::CLOEXEC)?;
        let watched = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CLOSE_WRITE;
        inotify::add_watch(&changes, path, watched)?;
        Ok(Followed { file, changes })
    }

    fn pass_all_on(mut self) -> io::Result<()> {
        let mut writer = self.writer()?;
        loop {
            self.pass_on()?;
            if writer == Writer::Gone {
                return Ok(());
            }
            let was_closed = self.wait()?;
            for _ in 0..LOOKS_AFTER_CLOSE {
                writer = self.writer()?;
                if writer == Writer::Gone || !was_closed {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Whether a run holds the file. What it wrote before this look is read after it.
    fn writer(&self) -> io::Result<Writer> {
        match self.file.try_lock_shared() {
            Ok(()) => self.file.unlock().map(|()| Writer::Gone),
            Err(std::fs::TryLockError::WouldBlock) => Ok(Writer::Present),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        let mut part = vec![0; PART_BYTES_MAX];
        let mut out = io::stdout().lock();
        loop {
            let length = self.file.read(&mut part)?;
            if length == 0 {
                return out.flush();
            }
            out.write_all(&part[..length])?;
        }
    }

    /// Waits until the file was written or closed; whether it was closed.
    fn wait(&self) -> io::Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.changes, &mut buffer);
        let mut was_closed = false;
        loop {
            let event = reader.next()?;
            was_closed |= event.events().contains(inotify::ReadFlags::CLOSE_WRITE);
            if reader.is_buffer_empty() {
                return Ok(was_closed);
            }
        }
    }
}
