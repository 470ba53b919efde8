//! Whether anybody else has a file open, or mapped.
//!
//! The system gives a lease for writing only to the one who has the file open alone; a mapping
//! counts as an open file. It does not know what the answer is for. Read next: `spares`,
//! `memory_folder`.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// `F_SETSIG` of Linux, which `libc` does not name.
const SET_SIGNAL: libc::c_int = 10;

/// Whether no other descriptor of that file is open, and no mapping; false where nobody can tell.
pub(crate) fn is_alone(file: impl AsFd) -> bool {
    lease(file.as_fd()).is_ok()
}

/// Whether another descriptor of that file is open, or a mapping; false where nobody can tell.
pub(crate) fn is_used(file: impl AsFd) -> bool {
    lease(file.as_fd()).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Takes a lease, which goes with the descriptor.
fn lease(file: BorrowedFd<'_>) -> std::io::Result<()> {
    // Whoever opens the file meanwhile waits until the lease is gone, which the signal tells: one
    // that does nothing, instead of one that ends the process.
    control(file, SET_SIGNAL, libc::SIGURG)?;
    control(file, libc::F_SETLEASE, libc::F_WRLCK)
}

fn control(
    file: BorrowedFd<'_>,
    command: libc::c_int,
    argument: libc::c_int,
) -> std::io::Result<()> {
    // SAFETY: these commands take a number, and change nothing but the open file.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
