//! The kernel's side of a filter: installing it, and answering the calls that it stops.
//!
//! The unsafe rest that has no safe binding. It does not know what the calls mean. Read next:
//! `filter` for which calls stop, `traps` for what is done then.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_ulong, sock_filter, sock_fprog};

/// A call that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// Names the call in answers.
    pub(crate) id: u64,
    /// The thread that waits.
    pub(crate) thread: u32,
    /// The number of the call.
    pub(crate) number: i64,
    /// Its arguments.
    pub(crate) arguments: [u64; 6],
}

/// Where the stopped calls of all processes of a command arrive.
#[derive(Debug)]
pub(crate) struct Listener(OwnedFd);

/// Installs the filter in this process and its future children. Privileges that children could
/// gain by programs are given up only where the system demands it.
pub(crate) fn install(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let listening = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let calm = listening | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let mut result = set_filter(program, calm);
    if is_denied(&result) {
        rustix::thread::set_no_new_privs(true)?;
        result = set_filter(program, calm);
    }
    if matches!(&result, Err(error) if error.raw_os_error() == Some(libc::EINVAL)) {
        result = set_filter(program, listening);
    }
    result
}

fn is_denied(result: &io::Result<OwnedFd>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::PermissionDenied)
}

fn set_filter(program: &[sock_filter], flags: c_ulong) -> io::Result<OwnedFd> {
    let program = sock_fprog {
        len: u16::try_from(program.len()).expect("the filter is short"),
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the program outlives the call, which copies it; the returned descriptor has no other
    // owner.
    unsafe {
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        let fd = check(libc::syscall(libc::SYS_seccomp, mode, flags, &program) as i32)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

impl Listener {
    /// Answers what arrives at this descriptor.
    pub(crate) fn new(fd: OwnedFd) -> Listener {
        // The processor of the caller is the best place to answer it. Older kernels do not know
        // the request, and answer all the same.
        // SAFETY: the request takes its flags by value.
        let _ = unsafe { libc::ioctl(fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, 1u64) };
        Listener(fd)
    }

    /// The next stopped call; none if it was given up in the meantime.
    pub(crate) fn receive(&self) -> io::Result<Option<Call>> {
        // SAFETY: all bits zero are a valid notification, and the kernel demands them; it fills in
        // no more than the structure.
        let (result, call) = unsafe {
            let mut call: libc::seccomp_notif = zeroed();
            let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
            (libc::ioctl(self.0.as_raw_fd(), request, &mut call), call)
        };
        match check(result) {
            Ok(_) => Ok(Some(Call {
                id: call.id,
                thread: call.pid,
                number: i64::from(call.data.nr),
                arguments: call.data.args,
            })),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets the call happen. One that was given up in the meantime needs no answer.
    pub(crate) fn proceed(&self, call: Call) -> io::Result<()> {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        self.answer(libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: 0,
            flags,
        })
    }

    /// Whether the call still waits; if so, what was read of its process was the caller's.
    pub(crate) fn is_waiting(&self, call: Call) -> bool {
        let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
        // SAFETY: the kernel reads the id.
        unsafe { libc::ioctl(self.0.as_raw_fd(), request, &call.id) == 0 }
    }

    /// Puts a copy of `given` in the place of the descriptor `place` of the stopped process.
    pub(crate) fn replace(&self, call: Call, given: &Given<'_>, place: RawFd) -> io::Result<()> {
        let flags = libc::SECCOMP_ADDFD_FLAG_SETFD as u32;
        self.give(call, given, flags, place as u32)
    }

    /// Answers the call with a copy of `given` under a number that the kernel chooses.
    pub(crate) fn answer_with(&self, call: Call, given: &Given<'_>) -> io::Result<()> {
        self.give(call, given, libc::SECCOMP_ADDFD_FLAG_SEND as u32, 0)
    }

    fn give(&self, call: Call, given: &Given<'_>, flags: u32, place: u32) -> io::Result<()> {
        let closes = if given.closes_on_exec {
            libc::O_CLOEXEC
        } else {
            0
        };
        let request = libc::seccomp_notif_addfd {
            id: call.id,
            flags,
            srcfd: given.fd.as_raw_fd() as u32,
            newfd: place,
            newfd_flags: closes as u32,
        };
        // SAFETY: the kernel reads the structure.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ADDFD,
                &request,
            )
        };
        forgive_gone(check(result))
    }

    fn answer(&self, answer: libc::seccomp_notif_resp) -> io::Result<()> {
        // SAFETY: the kernel reads the structure.
        let result =
            unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &answer) };
        forgive_gone(check(result))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A descriptor for a supervised process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    /// What is copied.
    pub(crate) fd: BorrowedFd<'a>,
    /// Whether programs that the process starts do not have it.
    pub(crate) closes_on_exec: bool,
}

/// The caller was killed, or gave the call up because of a signal.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR))
}

fn forgive_gone(result: io::Result<i32>) -> io::Result<()> {
    match result {
        Err(error) if is_gone(&error) => Ok(()),
        result => result.map(|_| ()),
    }
}

fn check(result: i32) -> io::Result<i32> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
