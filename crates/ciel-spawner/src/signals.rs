//! The process's own signals, session and children: the small unsafe rest that has no safe
//! binding. It does not know tasks. Next: `server`, its only user.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::fs::{Mode, OFlags};

use crate::{Exit, Status};

/// What the engine, its language or this process ignores for itself, and `SIGCHLD`, without which
/// no child could be collected. Children have the default, whoever started the engine.
const OWN_IGNORED: [libc::c_int; 3] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD];

/// What a look for ended children found.
pub(crate) enum Reaped {
    /// This child has ended and was collected.
    One(u32, Exit),
    /// There are children, and none has ended.
    NoneNow,
    /// There are no children.
    NoChildren,
}

/// Takes the socket out of standard input and leaves nothing in its place.
pub(crate) fn take_standard_input() -> io::Result<OwnedFd> {
    let socket = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
    let null = rustix::fs::open(
        c"/dev/null",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    // SAFETY: standard input is open and has no reader; its number now means the null device.
    check(unsafe { libc::dup2(null.as_raw_fd(), 0) })?;
    Ok(socket)
}

/// Makes this process a spawner: adopts orphans below it, leaves the terminal, passes none of
/// its descriptors on, blocks all signals and ignores none but those that the engine was started
/// with, so that children start as those of the serial program would. Returns a descriptor that is
/// readable when a child has ended.
pub(crate) fn take_over() -> io::Result<OwnedFd> {
    keep_inherited_descriptors()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::thread::set_name(c"ciel-spawner")?;
    // A leader of a process group cannot have a session of its own, and need not.
    let _ = rustix::process::setsid();
    // SAFETY: the sets are filled before use; no handler is installed, so nothing can be
    // interrupted; the new descriptor has no other owner.
    unsafe {
        let mut every: libc::sigset_t = zeroed();
        libc::sigfillset(&mut every);
        check(libc::sigprocmask(
            libc::SIG_SETMASK,
            &every,
            ptr::null_mut(),
        ))?;
        for signal in 1..=libc::SIGRTMAX() {
            // Some may not be set; those are at their default for ever.
            let before = libc::signal(signal, libc::SIG_DFL);
            if before == libc::SIG_IGN && !OWN_IGNORED.contains(&signal) {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
        let mut child: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut child);
        libc::sigaddset(&mut child, libc::SIGCHLD);
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        Ok(OwnedFd::from_raw_fd(check(libc::signalfd(
            -1, &child, flags,
        ))?))
    }
}

/// The engine's parents may have left descriptors open for their children: not for our tasks.
fn keep_inherited_descriptors() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|&number| number > 2) {
            // SAFETY: marks a descriptor; it stays open for its owner.
            check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
        }
    }
    Ok(())
}

/// Forgets the ends of children announced so far; call it before collecting them.
pub(crate) fn clear(signals: &OwnedFd) -> io::Result<()> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
    let length = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the kernel writes at most the given length. One read takes the one pending signal.
    let read = unsafe { libc::read(signals.as_raw_fd(), info.as_mut_ptr().cast(), length) };
    match io::Error::last_os_error() {
        error if read < 0 && error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}

/// Microseconds of processor time that this process has used; 0 if the system does not say.
pub fn own_processor_us() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole rusage, which the kernel fills in or leaves zero; all bit
    // patterns are valid.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    microseconds(usage.ru_utime) + microseconds(usage.ru_stime)
}

/// Collects one ended child.
pub(crate) fn reap() -> Reaped {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both results are written by the kernel or stay zero, which is valid for them.
    let (pid, usage) = unsafe {
        let pid = libc::wait4(-1, &mut status, libc::WNOHANG, usage.as_mut_ptr());
        (pid, usage.assume_init())
    };
    match pid {
        1.. => Reaped::One(pid.unsigned_abs(), exit(status, &usage)),
        0 => Reaped::NoneNow,
        _ => Reaped::NoChildren,
    }
}

fn microseconds(time: libc::timeval) -> u64 {
    time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_usec.unsigned_abs()
}

fn exit(status: i32, usage: &libc::rusage) -> Exit {
    let status = if libc::WIFEXITED(status) {
        Status::Code(libc::WEXITSTATUS(status))
    } else {
        Status::Signal(libc::WTERMSIG(status), libc::WCOREDUMP(status))
    };
    Exit {
        status,
        user_us: microseconds(usage.ru_utime),
        system_us: microseconds(usage.ru_stime),
        resident_bytes_max: usage.ru_maxrss.unsigned_abs() * 1024,
    }
}

/// Sends a signal to a child that was not collected.
pub(crate) fn send(pid: u32, signal: i32) -> io::Result<()> {
    // SAFETY: sends a signal to a number; it is never 0 or -1, which would mean many.
    check(unsafe { libc::kill(number(pid), signal) }).map(drop)
}

/// Sends a signal to the process group of a child that was not collected.
pub(crate) fn send_group(pid: u32, signal: i32) -> io::Result<()> {
    // SAFETY: as above.
    check(unsafe { libc::killpg(number(pid), signal) }).map(drop)
}

fn number(pid: u32) -> libc::pid_t {
    let number = libc::pid_t::try_from(pid).ok().filter(|&number| number > 1);
    number.expect("a child's number is greater than 1")
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
