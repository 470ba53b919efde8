//! What native code has to look at before a child begins or ends in place: state of the process
//! that tasks may change, and output of commands.
//!
//! It only looks; what follows is Python's. Read next: `stack.rs`,
//! `sdk/python/ciel/_process_state.py`, `sdk/python/ciel/_streams.py`.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use ciel_model::Name;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use rustix::fs::SeekFrom;

use crate::environment::tell_digits;
use crate::names::seed_of_name;

/// The variable of the environment with the seed of a task.
const SEED: &[u8] = b"CIEL_TASK_SEED";

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
    streams: [Py<PyAny>; 2],
    /// The names of the module `sys`, and its modules.
    system: Py<PyDict>,
    modules: Py<PyDict>,
    loops: Py<PyString>,
    /// Counts threads.
    threads: Py<PyAny>,
    /// The mapping behind `os.environ`, and the name of the seed in it.
    texts: Py<PyDict>,
    seed: Py<PyBytes>,
}

impl Outside {
    /// `captured` has the attributes `_file` and `_read`, `state` `stdout`, `stderr` and `changes`.
    ///
    /// # Errors
    /// Those of Python, if one of them is missing.
    pub fn new(captured: Bound<'_, PyAny>, state: Bound<'_, PyAny>) -> PyResult<Outside> {
        let py = captured.py();
        let texts = py.import("os")?.getattr("environ")?.getattr("_data")?;
        let mut outside = Outside {
            file: -1,
            read: AtomicU64::new(0),
            captured: captured.unbind(),
            changes: state.getattr("changes")?.extract()?,
            streams: [py.None(), py.None()],
            state: state.unbind(),
            system: py.import("sys")?.dict().unbind(),
            modules: py.import("sys")?.getattr("modules")?.extract()?,
            loops: PyString::intern(py, "asyncio.events").unbind(),
            threads: py.import("_thread")?.getattr("_count")?.unbind(),
            texts: texts.extract()?,
            seed: PyBytes::new(py, SEED).unbind(),
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
        self.streams = [
            state.getattr(intern!(py, "stdout"))?.unbind(),
            state.getattr(intern!(py, "stderr"))?.unbind(),
        ];
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
        let names = [intern!(py, "stdout"), intern!(py, "stderr")];
        let is_same = |(name, own): (&Bound<'_, PyString>, &Py<PyAny>)| {
            let found = self.system.bind(py).get_item(name);
            found.is_ok_and(|found| found.is_some_and(|found| found.is(own)))
        };
        !names.into_iter().zip(&self.streams).all(is_same)
            || !self.changes.bind(py).is_empty()
            || self.has_threads(py)
    }

    fn has_threads(&self, py: Python<'_>) -> bool {
        let count = self.threads.call0(py);
        count
            .and_then(|count| count.extract::<u64>(py))
            .map_or(true, |count| count != 0)
    }

    /// Whether an event loop runs in this thread.
    pub fn has_event_loop(&self, py: Python<'_>) -> bool {
        let found = self.modules.bind(py).get_item(self.loops.bind(py));
        let Ok(Some(events)) = found else {
            return false;
        };
        let running = events.call_method0(intern!(py, "_get_running_loop"));
        running.map_or(true, |running| !running.is_none())
    }

    /// Tells the seed of a task, as `_random.tell_seed` does; the text of the one before.
    ///
    /// # Errors
    /// Those of Python, which has no memory.
    pub fn tell_seed(&self, py: Python<'_>, name: Name) -> PyResult<Py<PyAny>> {
        let texts = self.texts.bind(py);
        let before = texts.get_item(self.seed.bind(py))?;
        let digits = seed_of_name(name).to_string();
        tell_digits(digits.as_bytes());
        texts.set_item(self.seed.bind(py), PyBytes::new(py, digits.as_bytes()))?;
        Ok(before.map_or_else(|| py.None(), Bound::unbind))
    }

    /// Tells a seed again whose text `tell_seed` has given.
    ///
    /// # Errors
    /// Those of Python, which has no memory.
    pub fn restore_seed(&self, py: Python<'_>, text: Py<PyAny>) -> PyResult<()> {
        if let Ok(digits) = text.bind(py).cast::<PyBytes>() {
            tell_digits(digits.as_bytes());
        }
        self.texts.bind(py).set_item(self.seed.bind(py), text)
    }
}
