//! What native code has to look at before a child begins or ends in place: state of the process
//! that tasks may change, and output of commands.
//!
//! It only looks; what follows is Python's. Read next: `stack.rs`,
//! `sdk/python/ciel/_process_state.py`, `sdk/python/ciel/_streams.py`.

use std::ptr::null_mut;

use pyo3::exceptions::PyTypeError;
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
    threads: Threads,
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
            threads: Threads::new(py)?,
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
        self.tail.get().has_grown(py)
    }

    /// Whether the strand that runs has changed the state of the process, or has threads.
    pub fn is_touched(&self, py: Python<'_>) -> bool {
        let mut streams = self.streams.iter();
        !streams.all(|(name, own)| is_at(&self.system, name, own, py))
            || !self.changes.bind(py).is_empty()
            || self.threads.are_any(py)
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

/// The threads that Python code has started.
struct Threads {
    /// Counts them.
    function: Py<PyAny>,
    /// What it does, called without the ways of a call: three looks of each child cost as much as
    /// a twentieth of it.
    count: ffi::PyCFunction,
    /// The count without any, of which an interpreter has one object.
    none: Py<PyAny>,
}

impl Threads {
    fn new(py: Python<'_>) -> PyResult<Threads> {
        let function = py.import("_thread")?.getattr("_count")?;
        // SAFETY: this thread is attached; both answer for any object, with an error if it is no
        // function of C.
        let (flags, count) = unsafe {
            let function = function.as_ptr();
            (
                ffi::PyCFunction_GetFlags(function),
                ffi::PyCFunction_GetFunction(function),
            )
        };
        let count = count.ok_or_else(|| PyErr::fetch(py))?;
        if flags != ffi::METH_NOARGS {
            return Err(PyTypeError::new_err("_thread._count takes arguments"));
        }
        let none = 0u8.into_pyobject(py)?.into_any().unbind();
        Ok(Threads {
            function: function.unbind(),
            count,
            none,
        })
    }

    fn are_any(&self, py: Python<'_>) -> bool {
        // SAFETY: this thread is attached. The function takes no arguments, so it is called with
        // its module, which it keeps, and nothing; it gives a new reference, or raises.
        let counted = unsafe {
            let module = ffi::PyCFunction_GetSelf(self.function.as_ptr());
            Bound::from_owned_ptr_or_err(py, (self.count)(module, null_mut()))
        };
        counted.map_or(true, |counted| !counted.is(&self.none))
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
