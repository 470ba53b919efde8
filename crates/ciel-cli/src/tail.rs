//! `ciel tail`: an ordered file from its beginning, and what a run appends until it has ended.
//!
//! The file is an ordinary one, a prefix of the final bytes at every moment. The kernel says when
//! it has been written, when its writer has ended, and when nobody reads what is printed. It knows
//! neither runs nor state folders: any file can be followed.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;

use ciel_writer::Writer;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::inotify;

use crate::cli_error::CliError;
use crate::options::TailOptions;

/// Bytes that are passed on at once.
const PART_BYTES_MAX: usize = 64 << 10;

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

struct Followed {
    file: File,
    changes: OwnedFd,
    /// Counts the writers that have ended.
    ends: Arc<OwnedFd>,
}

impl Followed {
    fn open(path: &Path) -> io::Result<Followed> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let changes = inotify::init(inotify::CreateFlags::CLOEXEC)?;
        inotify::add_watch(&changes, path, inotify::WatchFlags::MODIFY)?;
        let ends = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        Ok(Followed {
            file,
            changes,
            ends,
        })
    }

    /// What a writer wrote before a look that does not find it is read after the look.
    fn pass_all_on(mut self) -> io::Result<()> {
        while let Some(writer) = Writer::of(&self.file)? {
            let end = self.announce_end_of(writer)?;
            while self.pass_on().and_then(|()| self.wait())? == Woken::Written {}
            end.join().expect("the wait does not panic")?;
        }
        self.pass_on()
    }

    /// A thread waits for the end of the writer; it ends with the process at the latest.
    fn announce_end_of(&self, writer: Writer) -> io::Result<JoinHandle<io::Result<()>>> {
        let (file, ends) = (self.file.try_clone()?, Arc::clone(&self.ends));
        std::thread::Builder::new().spawn(move || {
            let waited = writer.wait_until_gone(&file);
            rustix::io::write(&ends, &1_u64.to_ne_bytes())?;
            waited
        })
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

    /// Waits until the file was written or its writer has ended.
    fn wait(&self) -> io::Result<Woken> {
        let out = io::stdout();
        let mut awaited = [
            PollFd::new(&self.changes, PollFlags::IN),
            PollFd::new(&self.ends, PollFlags::IN),
            PollFd::from_borrowed_fd(out.as_fd(), PollFlags::empty()),
        ];
        while let Err(error) = poll(&mut awaited, None) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        let [changed, ended, unread] = awaited.map(|awaited| awaited.revents());
        if unread.contains(PollFlags::ERR) {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if changed.contains(PollFlags::IN) {
            self.take_changes()?;
        }
        if ended.contains(PollFlags::IN) {
            rustix::io::read(&self.ends, &mut [0; 8])?;
            return Ok(Woken::Ended);
        }
        Ok(Woken::Written)
    }

    fn take_changes(&self) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.changes, &mut buffer);
        loop {
            reader.next()?;
            if reader.is_buffer_empty() {
                return Ok(());
            }
        }
    }
}

/// Why a wait has ended.
#[derive(PartialEq)]
enum Woken {
    Written,
    Ended,
}
