//! What native code has to look at before a child begins or ends in place: state of the process
//! that tasks may change, and output of commands.
//!
//! It only looks; what follows is Python's. Read next: `stack.rs`,
//! `sdk/python/ciel/_process_state.py`, `sdk/python/ciel/_streams.py`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use pyo3::{ffi, intern};

use crate::tail::Tail;

/// What belongs to the process, and not to a strand.
pub struct Outside {
    /// The end of the file to which descriptor 1 leads.
    tail: Py<Tail>,
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
    /// `captured` has the attribute `tail`, `state` `stdout`, `stderr` and `changes`.
    ///
    /// # Errors
    /// Those of Python, if one of them is missing.
    pub fn new(captured: Bound<'_, PyAny>, state: Bound<'_, PyAny>) -> PyResult<Outside> {
        let py = captured.py();
        let mut outside = Outside {
            tail: captured.getattr(intern!(py, "tail"))?.extract()?,
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
        let state = self.state.bind(py);
        for (name, stream) in &mut self.streams {
            *stream = state.getattr(&*name)?.unbind();
        }
        Ok(())
    }

    /// Whether commands have written what was not read yet.
    pub fn has_output(&self, py: Python<'_>) -> bool {
        self.tail.bind(py).borrow().has_grown()
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
