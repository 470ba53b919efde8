//! What a template of workers needs of the system: requests with descriptors, a mark in its own
//! environment, an end with the spawner. It forks nothing and knows no workers. Read next:
//! `sdk/python/ciel/_template.py`, its only user; `Start::template` of `ciel-spawner`.

use std::ffi::{CStr, c_char};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::ptr;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal,
};

/// Most bytes of a mark.
const MARK_BYTES_MAX: usize = 64 << 10;

/// Most descriptors of a request.
const DESCRIPTORS_MAX: usize = 16;

const CONTROL_BYTES: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX));

unsafe extern "C" {
    static environ: *const *mut c_char;
}

fn raised(errno: Errno) -> PyErr {
    PyOSError::new_err((errno.raw_os_error(), errno.to_string()))
}

/// A request: its bytes and its descriptors, which a program that is run does not inherit.
type Request<'py> = (Bound<'py, PyBytes>, Vec<RawFd>);

/// The next datagram on a socket; None at the end.
///
/// Raises OSError for what the system refuses.
#[pyfunction]
pub fn receive_request(py: Python<'_>, socket: RawFd) -> PyResult<Option<Request<'_>>> {
    // SAFETY: the caller keeps the descriptor open during the call.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let mut bytes = vec![0; MARK_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = py.detach(|| {
        retry_on_intr(|| {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)
        })
    });
    let length = received.map_err(raised)?.bytes;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights.map(IntoRawFd::into_raw_fd));
        }
    }
    let request = || (PyBytes::new(py, &bytes[..length]), descriptors);
    Ok((length > 0).then(request))
}

/// Waits for the end of a process, of which `handle` is a handle. Children of its have another
/// parent then.
///
/// Raises OSError for what the system refuses.
#[pyfunction]
pub fn await_end(handle: RawFd) -> PyResult<()> {
    // SAFETY: the caller keeps the descriptor open during the call.
    let handle = unsafe { BorrowedFd::borrow_raw(handle) };
    let mut ready = [PollFd::new(&handle, PollFlags::IN)];
    retry_on_intr(|| poll(&mut ready, None))
        .map(drop)
        .map_err(raised)
}

/// This process is killed when its parent ends, at once if it is not that process any more.
///
/// Raises OSError for what the system refuses.
#[pyfunction]
pub fn end_with(parent: i32) -> PyResult<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(raised)?;
    if getppid().map(Pid::as_raw_nonzero).map(Into::into) != Some(parent) {
        kill_process(getpid(), Signal::KILL).map_err(raised)?;
    }
    Ok(())
}

/// Writes an entry `NAME=value` of the environment over the one of that name, in the place where
/// other processes look for it.
///
/// Raises ValueError if there is none of the same length.
#[pyfunction]
pub fn overwrite_entry(entry: &[u8]) -> PyResult<()> {
    let name = entry.split_inclusive(|&byte| byte == b'=').next();
    let name = name.unwrap_or_default();
    // SAFETY: the interpreter's lock is held, and no other thread of a template changes the
    // environment, which is a list of strings that ends with null. A string of the same length is
    // written over one that the system has laid out in memory of this process.
    let is_written = unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() && !CStr::from_ptr(*at).to_bytes().starts_with(name)
        {
            at = at.add(1);
        }
        let fits = !at.is_null()
            && !(*at).is_null()
            && !entry.contains(&0)
            && CStr::from_ptr(*at).to_bytes().len() == entry.len();
        if fits {
            ptr::copy_nonoverlapping(entry.as_ptr().cast(), *at, entry.len());
        }
        fits
    };
    match is_written {
        true => Ok(()),
        false => Err(PyValueError::new_err("no entry of that name and length")),
    }
}
