//! Signals as events: blocked, and read from a descriptor.
//!
//! A signal that somebody sent to this process is meant for the command and is passed on. One that
//! came from the terminal has reached the command already, which is in the same process group. It
//! does not know who waits. Read next: `guard`, `supervisor`.

use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

/// Signals that are passed on. Those that stop and continue act on each process by themselves.
const PASSED: [i32; 8] = [
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGWINCH,
];

/// What has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A child has ended.
    Child,
    /// Somebody has sent this signal to this process.
    Sent(i32),
    /// The terminal has sent it to the whole process group.
    FromTerminal,
}

/// The descriptor, and which signals were blocked before.
pub(crate) struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

impl Signals {
    /// Blocks the signals in this thread and reads them from now on.
    pub(crate) fn block() -> io::Result<Signals> {
        // SAFETY: the set is filled before use; the new descriptor has no other owner.
        unsafe {
            let mut set: libc::sigset_t = zeroed();
            libc::sigemptyset(&mut set);
            for signal in PASSED.iter().chain(&[libc::SIGCHLD]) {
                libc::sigaddset(&mut set, *signal);
            }
            let mut before: libc::sigset_t = zeroed();
            check(libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before))?;
            // An ignored signal of a child would let it vanish without a status.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            let fd = check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC))?;
            Ok(Signals {
                fd: OwnedFd::from_raw_fd(fd),
                before,
            })
        }
    }

    /// Blocks what was blocked before, in a process that becomes the command.
    pub(crate) fn restore(&self) {
        // SAFETY: the set was filled by the kernel.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }

    /// Waits for the next one.
    pub(crate) fn next(&self) -> io::Result<Notice> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        loop {
            // SAFETY: the kernel writes one whole structure or nothing; all bits zero are valid.
            let (count, info) = unsafe {
                let count = libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size);
                (count, info.assume_init())
            };
            if count == size as isize {
                return Ok(notice(info.ssi_signo as i32, info.ssi_code));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

impl std::fmt::Debug for Signals {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Signals").field(&self.fd).finish()
    }
}

impl std::os::fd::AsFd for Signals {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn notice(signal: i32, code: i32) -> Notice {
    match (signal, code) {
        (libc::SIGCHLD, _) => Notice::Child,
        // Codes up to 0 are those of senders; positive ones are the kernel's own.
        (signal, ..=0) => Notice::Sent(signal),
        _ => Notice::FromTerminal,
    }
}

/// Sends a signal to a process; one that has gone receives nothing.
pub(crate) fn send(pid: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Collects a child that has ended, if there is one.
pub(crate) fn reap() -> Option<(u32, WaitStatus)> {
    let (pid, status) = rustix::process::wait(WaitOptions::NOHANG).ok()??;
    Some((pid.as_raw_nonzero().get() as u32, status))
}

/// The exit status that shells give to a process that ended so.
pub(crate) fn exit_code(status: WaitStatus) -> u8 {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128 + signal as u8,
        (None, None) => u8::MAX,
    }
}

fn check(result: i32) -> io::Result<i32> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
