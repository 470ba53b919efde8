//! An open file of crate `ciel-files`, as `sdk/python/ciel/_ordered_files.py` wraps it.
//!
//! The interpreter is released while a call may wait for the system; bytes that fit the buffer of
//! a strand are copied at once, so that short writes do not hand the interpreter to other threads.
//! It knows neither text nor tasks. Read next: `ordered_strand.rs`.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ciel_files::{File, FileError, Mode, Options};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::io::Errno;

/// What a program can do where a file is used by a thread that runs no strand.
const HINT_OF_THREADS: &str =
    "start the thread by ciel.ordered.Thread, or submit the call to ciel.ordered.executor(pool)";

/// What a program can do where a file is closed too early.
const HINT_OF_CLOSE: &str = "join the threads, or leave the pool's `with` block, before the file's";

/// One handle of an open file.
#[pyclass(frozen, module = "ciel._native")]
pub struct OrderedFile {
    path: PathBuf,
    handle: Mutex<Option<Handle>>,
}

/// The file is ended by the last of its handles.
struct Handle {
    file: File,
    handles: Arc<()>,
}

#[pymethods]
impl OrderedFile {
    /// Opens the file at `path` in the mode "global", "local" or "serial-append". It is made if
    /// `create` says so, and emptied if `truncate` does; serial append writes it as a `.cio` file
    /// if it is `structured`.
    ///
    /// Raises ValueError for another mode, OSError if the system refuses or the file is open for
    /// serial append already.
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        mode: &str,
        create: bool,
        truncate: bool,
        structured: bool,
    ) -> PyResult<OrderedFile> {
        let mode = match mode {
            "global" => Mode::Global,
            "local" => Mode::Local,
            "serial-append" => Mode::SerialAppend,
            other => return Err(PyValueError::new_err(format!("there is no mode {other:?}"))),
        };
        let options = Options::new().create(create).truncate(truncate);
        let options = match structured {
            true => options.structured(true),
            false => options,
        };
        let opened = py.detach(|| options.open(&path, mode));
        let file = opened.map_err(|error| raised(py, &path, &error))?;
        let handle = Mutex::new(Some(Handle {
            file,
            handles: Arc::new(()),
        }));
        Ok(OrderedFile { path, handle })
    }

    /// Writes all of `data`.
    ///
    /// Raises OSError if the system refuses, RuntimeError in a thread that runs no strand of the
    /// one that opened the file, ValueError if it is closed.
    fn write(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        let file = self.file()?;
        if file.gather(data) {
            return Ok(());
        }
        let written = py.detach(|| (&file).write_all(data));
        written.map_err(|error| raised(py, &self.path, &error))
    }

    /// Reads at most `count` bytes; none at the end. Raises as `write`, and
    /// io.UnsupportedOperation in serial append.
    fn read<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.file()?;
        let mut bytes = vec![0; count];
        let read = py.detach(|| (&file).read(&mut bytes));
        let read = read.map_err(|error| raised(py, &self.path, &error))?;
        Ok(PyBytes::new(py, &bytes[..read]))
    }

    /// Moves the pointer; returns where it is, in bytes. `whence` is 0 for the beginning, 1 for
    /// the pointer, 2 for the end. Raises as `read`.
    fn seek(&self, py: Python<'_>, offset: i64, whence: u8) -> PyResult<u64> {
        let file = self.file()?;
        let negative = || PyValueError::new_err(format!("a place of {offset} bytes is negative"));
        let place = match whence {
            0 => SeekFrom::Start(u64::try_from(offset).map_err(|_| negative())?),
            1 => SeekFrom::Current(offset),
            2 => SeekFrom::End(offset),
            other => {
                let message = format!("whence is {other}, not 0, 1 or 2");
                return Err(PyValueError::new_err(message));
            }
        };
        let moved = py.detach(|| (&file).seek(place));
        moved.map_err(|error| raised(py, &self.path, &error))
    }

    /// Puts what this strand has written into the file, if its turn has come. Raises as `write`.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.file()?;
        let flushed = py.detach(|| (&file).flush());
        flushed.map_err(|error| raised(py, &self.path, &error))
    }

    /// Another handle of the same open file. Raises ValueError if this one is closed.
    fn dup(&self) -> PyResult<OrderedFile> {
        let own = self.lock();
        let handle = own.as_ref().ok_or_else(|| self.closed())?;
        let other = Handle {
            file: handle.file.dup(),
            handles: handle.handles.clone(),
        };
        Ok(OrderedFile {
            path: self.path.clone(),
            handle: Mutex::new(Some(other)),
        })
    }

    /// Closes this handle; with the last one the file is whole. Again it does nothing.
    ///
    /// Raises RuntimeError, and leaves it open, while strands run that come before; OSError if the
    /// file was changed from outside or a write has failed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(handle) = self.lock().take() else {
            return Ok(());
        };
        if Arc::strong_count(&handle.handles) > 1 {
            return Ok(());
        }
        let file = handle.file.dup();
        let Err(error) = py.detach(|| file.close()) else {
            return Ok(());
        };
        if matches!(
            cause(&error),
            Some(FileError::StrandsRun { .. } | FileError::NotAStrand { .. })
        ) {
            *self.lock() = Some(handle);
        }
        Err(raised(py, &self.path, &error))
    }
}

impl OrderedFile {
    fn lock(&self) -> MutexGuard<'_, Option<Handle>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self) -> PyResult<File> {
        let own = self.lock();
        let handle = own.as_ref().ok_or_else(|| self.closed())?;
        Ok(handle.file.dup())
    }

    fn closed(&self) -> PyErr {
        PyValueError::new_err(format!("{:?} is closed", self.path))
    }
}

fn cause(error: &io::Error) -> Option<&FileError> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// The exception for an error of a file.
fn raised(py: Python<'_>, path: &Path, error: &io::Error) -> PyErr {
    let message = error.to_string();
    let Some(cause) = cause(error) else {
        let number = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
        let words = message.split(" (os error").next().unwrap_or(&message);
        return system_error(number, words, path);
    };
    match cause {
        FileError::AppendOnly { .. } | FileError::ReadOnly { .. } => unsupported(py, message),
        FileError::NotAStrand { .. } => {
            PyRuntimeError::new_err(format!("{message}; {HINT_OF_THREADS}"))
        }
        FileError::StrandsRun { .. } => {
            PyRuntimeError::new_err(format!("{message}; {HINT_OF_CLOSE}"))
        }
        FileError::Closed { .. } => PyValueError::new_err(message),
        FileError::Busy { .. } => system_error(Errno::BUSY.raw_os_error(), &message, path),
        FileError::NotContinued { .. } | FileError::NotEmpty { .. } => {
            system_error(Errno::EXIST.raw_os_error(), &message, path)
        }
        FileError::Changed { .. } => system_error(Errno::STALE.raw_os_error(), &message, path),
        FileError::Structured { .. } => system_error(Errno::IO.raw_os_error(), &message, path),
        FileError::Write { kind, .. } => system_error(number_of(*kind), &message, path),
    }
}

fn system_error(number: i32, message: &str, path: &Path) -> PyErr {
    PyOSError::new_err((number, message.to_string(), path.as_os_str().to_owned()))
}

/// The system's number for the kind of a failed write, whose own number is not kept.
fn number_of(kind: io::ErrorKind) -> i32 {
    let errno = match kind {
        io::ErrorKind::StorageFull => Errno::NOSPC,
        io::ErrorKind::QuotaExceeded => Errno::DQUOT,
        io::ErrorKind::FileTooLarge => Errno::FBIG,
        io::ErrorKind::BrokenPipe => Errno::PIPE,
        _ => Errno::IO,
    };
    errno.raw_os_error()
}

fn unsupported(py: Python<'_>, message: String) -> PyErr {
    let found = py
        .import("io")
        .and_then(|io| io.getattr("UnsupportedOperation"))
        .and_then(|kind| kind.call1((message,)));
    found.map_or_else(|error| error, PyErr::from_value)
}
