//! What native code has to look at before a child begins or ends in place: state of the process
//! that tasks may change, and output of commands.
//!
//! It only looks; what follows is Python's. Read next: `stack.rs`,
//! `sdk/python/ciel/_process_state.py`, `sdk/python/ciel/_streams.py`.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use pyo3::{ffi, intern};
use rustix::fs::SeekFrom;

/// What belongs to the process, and not to a strand.
pub struct Outside {
    /// The `Captured` of the process, which reads what is written to descriptor 1.
    captured: Py<PyAny>,
    /// Its file, and the length that was seen to have been read.
    file: RawFd,
    read: AtomicU64,
    /// The `ProcessState`, its list of changes, and the streams that strands begin with.
    state: Py<PyAny>,
    changes: Py<PyList>,
    streams: [(Py<PyString>, Py<PyAny>); 2],
    /// The names of the module `sys`, and its modules.
    system: Py<PyDict>,
    modules: Py<PyDict>,
    loops: Py<PyString>,
    /// Counts threads; and the count without any, of which an interpreter has one object.
    threads: Py<PyAny>,
    none: Py<PyAny>,
}

impl Outside {
    /// `captured` has the attributes `_file` and `_read`, `state` `stdout`, `stderr` and `changes`.
    ///
    /// # Errors
    /// Those of Python, if one of them is missing.
    pub fn new(captured: Bound<'_, PyAny>, state: Bound<'_, PyAny>) -> PyResult<Outside> {
        let py = captured.py();
        let mut outside = Outside {
            file: -1,
            read: AtomicU64::new(0),
            captured: captured.unbind(),
            changes: state.getattr("changes")?.extract()?,
            streams: ["stdout", "stderr"]
                .map(|name| (PyString::intern(py, name).unbind(), py.None())),
            state: state.unbind(),
            system: py.import("sys")?.dict().unbind(),
            modules: py.import("sys")?.getattr("modules")?.extract()?,
            loops: PyString::intern(py, "asyncio.events").unbind(),
            threads: py.import("_thread")?.getattr("_count")?.unbind(),
            none: 0u8.into_pyobject(py)?.into_any().unbind(),
        };
        outside.renew(py)?;
        Ok(outside)
    }

    /// Looks again at what may have changed between two turns.
    ///
    /// # Errors
    /// Those of Python.
    pub fn renew(&mut self, py: Python<'_>) -> PyResult<()> {
        let captured = self.captured.bind(py);
        self.file = captured.getattr(intern!(py, "_file"))?.extract()?;
        let read: u64 = captured.getattr(intern!(py, "_read"))?.extract()?;
        self.read.store(read, Ordering::Relaxed);
        let state = self.state.bind(py);
        for (name, stream) in &mut self.streams {
            *stream = state.getattr(&*name)?.unbind();
        }
        Ok(())
    }

    /// Whether commands have written what was not read yet.
    pub fn has_output(&self, py: Python<'_>) -> bool {
        // SAFETY: the file is open between two calls of `renew`, which every turn begins with.
        let file = unsafe { BorrowedFd::borrow_raw(self.file) };
        let Ok(end) = rustix::fs::seek(file, SeekFrom::End(0)) else {
            return true;
        };
        if end == self.read.load(Ordering::Relaxed) {
            return false;
        }
        let read = self.captured.bind(py).getattr(intern!(py, "_read"));
        let read: u64 = read.and_then(|read| read.extract()).unwrap_or_default();
        self.read.store(read, Ordering::Relaxed);
        read != end
    }

    /// Whether the strand that runs has changed the state of the process, or has threads.
    pub fn is_touched(&self, py: Python<'_>) -> bool {
        let mut streams = self.streams.iter();
        !streams.all(|(name, own)| is_at(&self.system, name, own, py))
            || !self.changes.bind(py).is_empty()
            || self.has_threads(py)
    }

    fn has_threads(&self, py: Python<'_>) -> bool {
        let count = self.threads.call0(py);
        count.map_or(true, |count| !count.is(&self.none))
    }

    /// Whether an event loop runs in this thread.
    pub fn has_event_loop(&self, py: Python<'_>) -> bool {
        let Some(events) = found_at(&self.modules, &self.loops, py) else {
            return false;
        };
        let events = events.to_owned();
        let running = events.call_method0(intern!(py, "_get_running_loop"));
        running.map_or(true, |running| !running.is_none())
    }
}

/// Whether a dictionary has that very value at a name; an error is none.
pub fn is_at(names: &Py<PyDict>, name: &Py<PyString>, value: &Py<PyAny>, py: Python<'_>) -> bool {
    found_at(names, name, py).is_some_and(|found| found.is(value))
}

/// What a dictionary has at a name: `get_item` makes a reference of its own for each look.
fn found_at<'a, 'py>(
    names: &'a Py<PyDict>,
    name: &Py<PyString>,
    py: Python<'py>,
) -> Option<Borrowed<'a, 'py, PyAny>> {
    // SAFETY: this thread is attached to the interpreter, and the objects are of these types. What
    // is found is borrowed from the dictionary; callers use it before other code runs.
    unsafe {
        let found = ffi::PyDict_GetItemWithError(names.as_ptr(), name.as_ptr());
        if found.is_null() {
            ffi::PyErr_Clear();
        }
        Borrowed::from_ptr_or_opt(py, found)
    }
}
