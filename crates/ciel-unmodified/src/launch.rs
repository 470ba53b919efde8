//! Starting the command: its descriptors, the filter, and what came of it.
//!
//! The new process installs the filter itself and passes the listener back before it becomes the
//! command. It does not know what is done with the calls. Read next: `supervisor`.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::Pid;

use crate::error::{Naming, UnmodifiedError};
use crate::filter;
use crate::guard::fork;
use crate::listener::{self, Listener};
use crate::signals::Signals;

/// What the new process says first: it has a filter, or why not.
const FILTERED: [u8; 4] = [0; 4];

/// What to start, and how.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    /// Program and arguments.
    pub(crate) command: &'a [OsString],
    /// What standard output becomes.
    pub(crate) stdout: BorrowedFd<'a>,
    /// What standard error becomes.
    pub(crate) stderr: BorrowedFd<'a>,
    /// What it does with signals.
    pub(crate) signals: &'a Signals,
    /// Whether calls are to be stopped, and those on files among them.
    pub(crate) filter: Option<WithFiles>,
    /// Whether to start without a filter where that is refused.
    pub(crate) may_do_without: bool,
}

/// Whether calls on files are stopped, too.
pub(crate) type WithFiles = bool;

/// A command that has been started.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) pid: Pid,
    /// Where its calls arrive; or why they do not.
    pub(crate) listener: Result<Listener, io::Error>,
    talk: UnixStream,
}

impl Start<'_> {
    /// Starts the command in a child of this process, which has one thread.
    pub(crate) fn launch(&self) -> Result<Launched, UnmodifiedError> {
        let (talk, child_talk) = UnixStream::pair().naming("talk with the command")?;
        let Some(pid) = fork().naming("start a process")? else {
            drop(talk);
            self.become_command(child_talk);
        };
        drop(child_talk);
        let listener = match self.filter {
            Some(_) => receive_listener(&talk).map(Listener::new),
            None => Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Launched {
            pid,
            listener,
            talk,
        })
    }

    /// The child's part. It ends here only if there is no command.
    fn become_command(&self, mut talk: UnixStream) -> ! {
        let error = self.prepare(&talk).err().unwrap_or_else(|| {
            let (program, arguments) = self.command.split_first().expect("a command has a program");
            Command::new(program).args(arguments).exec()
        });
        let code = error.raw_os_error().unwrap_or(libc::EINVAL);
        let _ = talk.write_all(&code.to_ne_bytes());
        // SAFETY: ends this process without the cleaning up that belongs to its parent.
        unsafe { libc::_exit(i32::from(code_of_failure(code))) }
    }

    fn prepare(&self, talk: &UnixStream) -> io::Result<()> {
        self.signals.restore();
        for (given, place) in [(self.stdout, 1), (self.stderr, 2)] {
            // SAFETY: both numbers are standard descriptors, which stay open for ever.
            if unsafe { libc::dup2(given.as_raw_fd(), place) } == -1 {
                return Err(io::Error::last_os_error());
            }
        }
        let Some(with_files) = self.filter else {
            return Ok(());
        };
        match listener::install(&filter::program(with_files)) {
            Ok(listener) => send_listener(talk, listener),
            Err(error) => {
                let code = error.raw_os_error().unwrap_or(libc::EINVAL);
                (&*talk).write_all(&code.to_ne_bytes())?;
                match self.may_do_without {
                    true => Ok(()),
                    false => Err(error),
                }
            }
        }
    }
}

impl Launched {
    /// Why the command did not start, once its process has ended.
    pub(crate) fn failure(&mut self) -> Option<io::Error> {
        let mut code = [0; 4];
        self.talk.read_exact(&mut code).ok()?;
        Some(io::Error::from_raw_os_error(i32::from_ne_bytes(code)))
    }
}

/// The exit status of a command that could not be started, as shells have it.
pub(crate) fn code_of_failure(error: i32) -> u8 {
    match error {
        libc::ENOENT => 127,
        _ => 126,
    }
}

fn send_listener(talk: &UnixStream, listener: OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    let given = [listener.as_fd()];
    message.push(SendAncillaryMessage::ScmRights(&given));
    let bytes = [IoSlice::new(&FILTERED)];
    rustix::net::sendmsg(talk, &bytes, &mut message, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive_listener(talk: &UnixStream) -> io::Result<OwnedFd> {
    let mut code = FILTERED;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    rustix::net::recvmsg(talk, &mut [IoSliceMut::new(&mut code)], &mut message, flags)?;
    let rights = message.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    });
    let errno = i32::from_ne_bytes(code);
    rights.ok_or_else(|| io::Error::from_raw_os_error(errno))
}

/// Whether two descriptors are the same open terminal, pipe or file.
pub(crate) fn are_same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one_stat), Ok(other_stat)) => {
            (one_stat.st_dev, one_stat.st_ino) == (other_stat.st_dev, other_stat.st_ino)
        }
        _ => one.as_raw_fd() == other.as_raw_fd(),
    }
}
