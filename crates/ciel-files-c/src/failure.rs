//! From errors to `errno` and a message.
//!
//! It does not know which calls fail. Read next: `calls`.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ciel_files::FileError;

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    errno: c_int,
    message: String,
}

impl Failure {
    pub(crate) fn new(errno: c_int, message: impl Display) -> Failure {
        let message = message.to_string();
        Failure { errno, message }
    }

    /// The same with other words.
    pub(crate) fn with_message(self, message: String) -> Failure {
        Failure { message, ..self }
    }

    /// Whether the same call may succeed later, or on another thread.
    pub(crate) fn is_too_early(&self) -> bool {
        [libc::EBUSY, libc::EPERM].contains(&self.errno)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        let known = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<FileError>());
        let errno = match known {
            Some(known) => errno_of(known),
            None => error
                .raw_os_error()
                .unwrap_or_else(|| errno_of_kind(error.kind())),
        };
        Failure::new(errno, error)
    }
}

fn errno_of(error: &FileError) -> c_int {
    match error {
        FileError::AppendOnly { .. } | FileError::Closed { .. } => libc::EBADF,
        FileError::NotAStrand { .. } => libc::EPERM,
        FileError::StrandsRun { .. } | FileError::Busy { .. } => libc::EBUSY,
        FileError::NotContinued { .. } | FileError::NotEmpty { .. } => libc::EEXIST,
        FileError::ReadOnly { .. } => libc::EBADF,
        FileError::Changed { .. } => libc::ESTALE,
        FileError::Structured { .. } => libc::EINVAL,
        FileError::Write { kind, .. } => errno_of_kind(*kind),
    }
}

fn errno_of_kind(kind: io::ErrorKind) -> c_int {
    match kind {
        io::ErrorKind::StorageFull => libc::ENOSPC,
        io::ErrorKind::QuotaExceeded => libc::EDQUOT,
        io::ErrorKind::FileTooLarge => libc::EFBIG,
        io::ErrorKind::BrokenPipe => libc::EPIPE,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        _ => libc::EIO,
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// The message of the last call on this thread that failed, or an empty one.
#[unsafe(no_mangle)]
pub extern "C" fn ciel_ordered_error() -> *const c_char {
    let message = MESSAGE.try_with(|message| message.borrow().as_ptr());
    message.unwrap_or(c"".as_ptr())
}

fn report(failure: Failure) {
    let text = failure.message.replace('\0', " ");
    // A thread that is ending has no messages any more; it still gets `errno`.
    let _ = MESSAGE.try_with(|message| {
        message.replace(CString::new(text).unwrap_or_default());
    });
    // SAFETY: the address of this thread's errno is valid while the thread runs.
    unsafe { *libc::__errno_location() = failure.errno };
}

/// Runs the body of a call. It returns `failed` after an error or a panic, and reports why.
pub(crate) fn call<T>(failed: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        let message = "the library has a bug: it panicked, and says where on standard error";
        Err(Failure::new(libc::ENOTRECOVERABLE, message))
    });
    result.unwrap_or_else(|failure| {
        report(failure);
        failed
    })
}
