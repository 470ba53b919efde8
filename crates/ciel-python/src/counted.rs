//! What native code keeps of a strand: its counters, and whether it may keep children.
//!
//! The strands of Python inherit from it, so that a spawn reads and counts without their
//! dictionaries. It does not know what a strand does. Read next: `stack.rs`,
//! `sdk/python/ciel/_keeping_strand.py`.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use ciel_model::{Handle, Name};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

/// Tasks that a strand spawns before it asks for the first time whether it may go on.
static UNASKED_MAX: AtomicU32 = AtomicU32::new(u32::MAX);

/// From now on strands begin to ask whether they may go on after so many spawns; until then they
/// never do.
#[pyfunction]
pub fn ask_after_spawns(count: u32) {
    UNASKED_MAX.store(count, Ordering::Relaxed);
}

/// The native half of a strand that has a connection.
#[pyclass(subclass, module = "ciel._native")]
pub struct Counted {
    /// Index of its next action.
    #[pyo3(get, set)]
    pub next_action: u64,
    /// The next handle that it chooses.
    #[pyo3(get, set)]
    pub next_handle: u32,
    /// Parts of the next action that are observations, so far.
    #[pyo3(get, set, name = "_observed")]
    pub observed: u32,
    /// Parts of the next action that are its arguments, so far.
    #[pyo3(get, set, name = "_arguments")]
    pub arguments: u32,
    /// Tag of its task; 0 while it runs in place of another strand.
    #[pyo3(get, set)]
    pub tag: u32,
    /// Strands in place below it.
    #[pyo3(get, set)]
    pub depth: u32,
    /// Whether new children are kept.
    #[pyo3(get, set)]
    pub may_keep: bool,
    /// Whether it repeats an earlier run, so that Python has to look at each spawn.
    #[pyo3(get, set)]
    pub repeats: bool,
    /// Whether it may keep children that are no tasks yet.
    #[pyo3(get, set)]
    pub keeps: bool,
    /// Whether the engine hears what it spawns; it does not of one that was cancelled.
    #[pyo3(get, set)]
    pub sends: bool,
    /// Tasks that it may spawn before it asks whether it may go on.
    #[pyo3(get, set)]
    pub spawns_left: u32,
    /// Its name.
    pub name: Name,
    /// The first handle of what it makes itself.
    #[pyo3(get, set, name = "_made_from")]
    pub made_from: u32,
    /// Handles of futures that are gone, of which the engine has not heard.
    released: Vec<u32>,
    scopes: Option<Py<PyAny>>,
    /// Whether it is the strand of a root: then it keeps calls of functions only that suit it.
    #[pyo3(get, set)]
    pub is_root: bool,
    /// What a root has sent last: the handle of its result, its task, and when.
    sent: Option<(u32, Py<PyAny>, Instant)>,
    /// Whether that has futures among its arguments.
    #[pyo3(get)]
    sent_with_futures: bool,
    /// Calls of that task that it has sent one after the other.
    pub in_a_row: u32,
    /// Where on Python's stack its code may call children, if that is known: see `stack.rs`.
    pub room: Option<Range<usize>>,
    /// Its output, and its other output, that is not sent yet.
    unsent: [Option<Py<PyList>>; 2],
}

#[pymethods]
impl Counted {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Counted {
        Counted {
            next_action: 0,
            next_handle: 0,
            observed: 0,
            arguments: 0,
            tag: 0,
            depth: 0,
            may_keep: false,
            repeats: false,
            keeps: false,
            sends: false,
            spawns_left: UNASKED_MAX.load(Ordering::Relaxed),
            name: Name(0),
            made_from: 0,
            released: Vec::new(),
            scopes: None,
            is_root: false,
            sent: None,
            sent_with_futures: false,
            in_a_row: 0,
            room: None,
            unsent: [None, None],
        }
    }

    /// The 16 bytes of its name.
    #[getter]
    fn position<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.name.0.to_be_bytes())
    }

    #[setter]
    fn set_position(&mut self, position: [u8; 16]) {
        self.name = Name(u128::from_be_bytes(position));
    }

    /// The open scopes, the innermost last.
    #[getter]
    fn scopes<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match &self.scopes {
            Some(scopes) => scopes.bind(py).clone(),
            None => PyTuple::empty(py).into_any(),
        }
    }

    #[setter]
    fn set_scopes(slf: &Bound<'_, Counted>, scopes: Bound<'_, PyAny>) -> PyResult<()> {
        let scopes = (!scopes.is_empty()?).then(|| scopes.unbind());
        // The last reference to a scope drops its futures, which then call `let_go`.
        let before = std::mem::replace(&mut slf.borrow_mut().scopes, scopes);
        drop(before);
        Ok(())
    }

    /// A future with that handle is gone. Called at any moment and in any thread, also while the
    /// garbage collector clears the strand: it must not touch the dictionary of the strand.
    ///
    /// Of what the strand has made itself no two futures have the same handle; other handles are
    /// not counted.
    pub fn let_go(&mut self, handle: u32) {
        if (self.made_from..Handle::DELIVERED_MIN).contains(&handle) {
            self.released.push(handle);
        }
    }

    /// The handles of futures that are gone, for the message that is sent now.
    fn take_released<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.released.drain(..))
    }

    /// The task of the call that was sent last, if the result of that has this handle.
    fn last_sent(&self, py: Python<'_>, handle: u32) -> Option<Py<PyAny>> {
        let (sent, task, _) = self.sent.as_ref()?;
        (*sent == handle).then(|| task.clone_ref(py))
    }

    /// Seconds since that call was sent.
    fn since_sent(&self) -> f64 {
        let sent = self.sent.as_ref();
        sent.map_or(0.0, |(_, _, at)| at.elapsed().as_secs_f64())
    }

    /// A root sends a call of that task, whose result has that handle and whose inputs are known.
    fn note_sent_ready(&mut self, handle: u32, task: Py<PyAny>) {
        self.note_sent(handle, task, false);
    }

    /// Output that is not sent yet.
    #[getter]
    fn pieces(&self, py: Python<'_>) -> Option<Py<PyList>> {
        self.unsent[0].as_ref().map(|list| list.clone_ref(py))
    }

    #[setter]
    fn set_pieces(&mut self, pieces: Py<PyList>) {
        self.unsent[0] = Some(pieces);
    }

    /// Text for standard error that is not sent yet.
    #[getter]
    fn errors(&self, py: Python<'_>) -> Option<Py<PyList>> {
        self.unsent[1].as_ref().map(|list| list.clone_ref(py))
    }

    #[setter]
    fn set_errors(&mut self, errors: Py<PyList>) {
        self.unsent[1] = Some(errors);
    }
}

impl Counted {
    /// It has spawned one task.
    pub fn count_spawn(&mut self) {
        self.count_sent();
        self.keeps = true;
    }

    /// It has spawned a task that was sent.
    pub fn count_sent(&mut self) {
        self.next_action += 1;
        self.next_handle += 1;
        self.observed = 0;
        self.arguments = 0;
    }

    /// It has sent a call of that task, whose result gets that handle; with futures, or without.
    pub fn note_sent(&mut self, handle: u32, task: Py<PyAny>, with_futures: bool) {
        if self.is_root {
            let is_same = self
                .sent
                .as_ref()
                .is_some_and(|(_, last, _)| last.is(&task));
            self.in_a_row = if is_same { self.in_a_row + 1 } else { 1 };
            self.sent = Some((handle, task, Instant::now()));
            self.sent_with_futures = with_futures;
        }
    }

    /// As `take_released`.
    pub fn released(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.released)
    }

    /// Whether a spawn that is not kept needs nothing but to be sent.
    pub fn sends_plainly(&self, py: Python<'_>) -> bool {
        let is_task = self.tag != 0;
        let is_plain = self.sends && is_task && !self.repeats && self.spawns_left > 0;
        is_plain && self.scopes.is_none() && !self.has_unsent(py)
    }

    /// Whether a spawn of a plain call needs nothing but to be kept.
    pub fn keeps_plainly(&self, py: Python<'_>) -> bool {
        self.may_keep && !self.repeats && self.scopes.is_none() && !self.has_unsent(py)
    }

    /// Whether output is not sent yet.
    pub fn has_unsent(&self, py: Python<'_>) -> bool {
        let lists = self.unsent.iter().flatten();
        lists.into_iter().any(|list| !list.bind(py).is_empty())
    }
}
