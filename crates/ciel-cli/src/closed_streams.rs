//! Standard input and output that were closed when this process began.
//!
//! The standard library opens `/dev/null` in the place of closed ones before `main`, so output
//! would be lost without an error. The look comes earlier: the loader asks for it. This module does
//! not know who reads or writes the streams. Read next: `ordered`, which passes them on, and
//! `observer`.

use std::ffi::c_int;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};

/// Standard input and standard output.
const STREAMS: [c_int; 2] = [0, 1];

static WERE_CLOSED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

// SAFETY: the section holds functions that the loader calls once, before any thread or `main`; this
// one needs nothing that the standard library sets up.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for (stream, was_closed) in STREAMS.into_iter().zip(&WERE_CLOSED) {
        // SAFETY: asks for a flag of a descriptor, and changes nothing.
        let flags = unsafe { libc::fcntl(stream, libc::F_GETFD) };
        was_closed.store(flags < 0, Ordering::Relaxed);
    }
}

/// An error (`EBADF`) if standard output was closed: what is written to it now would be lost.
///
/// # Errors
/// It was.
pub fn check_output() -> io::Result<()> {
    match WERE_CLOSED[1].load(Ordering::Relaxed) {
        true => Err(io::Error::from_raw_os_error(libc::EBADF)),
        false => Ok(()),
    }
}

/// Has reading and writing what was closed fail as if it still were (`EBADF`), here and in
/// processes that inherit it. The numbers stay taken, so that no other file gets them.
///
/// # Errors
/// The system gives no descriptor.
pub fn keep_closed() -> io::Result<()> {
    for (stream, was_closed) in STREAMS.into_iter().zip(&WERE_CLOSED) {
        if !was_closed.load(Ordering::Relaxed) {
            continue;
        }
        // Such a descriptor can be neither read nor written.
        let path = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        // SAFETY: what is replaced is the standard library's `/dev/null`, which nobody else owns.
        if unsafe { libc::dup2(path.as_raw_fd(), stream) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
