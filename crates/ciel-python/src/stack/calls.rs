//! The calls of a `map` that are spawned and were not asked for: in the order of their values.
//!
//! A call that is kept here has no future until Python wants one, and no object of its own but its
//! arguments. It does not know how calls are kept, or run. Read next: `ahead.rs`,
//! `sdk/python/ciel/_flat_loop.py`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use super::here;
use crate::assist::Range;
use crate::attached::Attached;
use crate::durations::duration;
use crate::function::Function;
use crate::future_state::{Call, FutureState, Owner, State as Known};
use crate::promoter::Promoter;

/// The calls of one function that one loop has spawned ahead, as an object of Python.
#[pyclass(frozen, module = "ciel._native")]
pub struct Ahead(pub Attached<Calls>);

/// The calls of one function that one loop has spawned ahead.
pub struct Calls {
    /// Its task.
    pub task: Py<Function>,
    /// Arguments before those of each call.
    pub before: Py<PyTuple>,
    /// Where the loop is: a file, and a line in it.
    pub place: (Py<PyString>, u32),
    /// Calls that are spawned before the first value is asked for; 0 once no others follow.
    pub window: usize,
    /// The arguments of a call that Python is to spawn before any other.
    pub items: Option<Py<PyTuple>>,
    /// What was raised in place of the arguments of a further call.
    pub failure: Option<Py<PyAny>>,
    /// Whether calls need nothing but their arguments by place.
    pub is_plain: bool,
    /// The calls, the oldest first.
    pub entries: VecDeque<Entry>,
    /// Whose calls are kept here.
    pub owner: Owner,
    /// Whether calls may run before they are asked for.
    pub runs: bool,
    /// Whether what such calls have given was plain.
    pub fits: bool,
    /// In what time one ends that may run ahead.
    pub short: Duration,
    /// Those that run now.
    pub run: Option<Run>,
    /// Ranges that others compute, the oldest first.
    pub given: VecDeque<GivenCalls>,
    /// Whether others may compute some.
    pub gives: bool,
    /// Time that each of the last ones took here, once that is known.
    pub each: Option<Duration>,
    /// What tells that no call is to run ahead.
    pub end: Py<PyAny>,
}

/// One call.
pub struct Entry {
    /// The handle of its result.
    pub handle: u32,
    /// Index of its spawn.
    pub action: u64,
    /// What is known of it.
    pub state: State,
}

/// What is known of a call.
pub enum State {
    /// Its task may be kept; its arguments.
    Kept(Py<PyTuple>),
    /// As `Kept`, and another worker may compute it.
    Given(Py<PyTuple>),
    /// It has ended, with that value.
    Value(Py<PyAny>),
    /// It is Python's; the future of its result.
    Future(Py<PyAny>),
}

/// Calls that run one after the other.
pub struct Run {
    /// The place of the first one.
    pub first: usize,
    /// How many may run.
    pub count: usize,
    /// How many have ended.
    pub ended: usize,
    /// Heartbeats before the first one.
    pub beats: u64,
    /// When it began.
    pub began: Instant,
    /// Who else may see to them.
    pub promoter: Py<Promoter>,
}

/// Calls that another worker computes.
pub struct GivenCalls {
    /// All of them.
    pub range: Range,
    /// The handle of the first one whose value has not come.
    pub first: u32,
}

#[pymethods]
impl Ahead {
    /// None are spawned. `before` are arguments before those of each call; the loop is at the line
    /// `place[1]` of the file `place[0]`; `window` is how many calls are spawned before the first
    /// value is asked for, `is_plain` whether they need nothing but arguments by place, `short_s`
    /// in how many seconds one ends that may run ahead. `end` tells that none is to run ahead.
    #[new]
    fn new(
        task: Py<Function>,
        before: Py<PyTuple>,
        place: (Py<PyString>, u32),
        window: usize,
        is_plain: bool,
        short_s: f64,
        end: Py<PyAny>,
    ) -> PyResult<Ahead> {
        Ok(Ahead(Attached::new(Calls {
            task,
            before,
            place,
            window,
            is_plain,
            end,
            items: None,
            failure: None,
            entries: VecDeque::new(),
            owner: Owner::Gone,
            runs: false,
            fits: true,
            run: None,
            given: VecDeque::new(),
            gives: true,
            each: None,
            short: duration(short_s)?,
        })))
    }

    /// Calls that are spawned and whose values were not given.
    fn __len__(slf: &Bound<'_, Ahead>) -> usize {
        slf.get().0.borrow(slf.py()).entries.len()
    }

    /// Whether calls may run before they are asked for; never after one has given what is not
    /// plain.
    #[getter]
    fn runs(&self, py: Python<'_>) -> bool {
        self.0.borrow(py).runs
    }

    /// Whether the value that is due is known.
    #[getter]
    fn is_known(&self, py: Python<'_>) -> bool {
        self.0.borrow(py).is_known()
    }

    #[setter]
    fn set_runs(&self, py: Python<'_>, runs: bool) {
        let mut calls = self.0.borrow_mut(py);
        calls.runs = runs && calls.fits;
    }

    /// Whether the value that is due is that of a task.
    #[getter]
    fn waits(slf: &Bound<'_, Ahead>) -> bool {
        waits(slf)
    }

    /// Adds a call that Python has spawned.
    fn add(&self, py: Python<'_>, future: Py<PyAny>) {
        self.0.borrow_mut(py).add(future);
    }

    /// Takes the arguments of a call that Python is to spawn, and to add, before any other.
    fn take_items(&self, py: Python<'_>) -> Option<Py<PyTuple>> {
        self.0.borrow_mut(py).items.take()
    }

    /// Takes the exception that was raised in place of the arguments of a further call.
    fn take_failure(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.0.borrow_mut(py).failure.take()
    }

    /// Takes the future of the value that is due.
    ///
    /// Raises RuntimeError if there is none, or no strand runs in this thread.
    fn take(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut calls = self.0.borrow_mut(py);
        let entry = calls.entries.pop_front();
        let entry = entry.ok_or_else(|| PyRuntimeError::new_err("no call is spawned"))?;
        calls.future_of(py, entry)
    }

    /// The future of the newest call, if that is one that was kept here. It stays in its place.
    ///
    /// Raises RuntimeError if no strand runs in this thread.
    fn newest(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let is_kept = |entry: &mut Entry| matches!(entry.state, State::Kept(_));
        let mut calls = self.0.borrow_mut(py);
        let Some(entry) = calls.entries.pop_back_if(is_kept) else {
            return Ok(None);
        };
        let future = calls.future_of(py, entry)?;
        calls.add(future.clone_ref(py));
        Ok(Some(future))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // SAFETY: the garbage collector runs in a thread that is attached.
        let py = unsafe { Python::assume_attached() };
        match self.0.try_borrow(py) {
            Some(calls) => calls.visit(&visit),
            None => Ok(()),
        }
    }

    fn __clear__(&self) {
        // SAFETY: as above.
        let py = unsafe { Python::assume_attached() };
        let held = {
            let mut calls = self.0.borrow_mut(py);
            let owner = std::mem::replace(&mut calls.owner, Owner::Gone);
            let entries = std::mem::take(&mut calls.entries);
            let given = std::mem::take(&mut calls.given);
            (
                entries,
                owner,
                given,
                calls.items.take(),
                calls.failure.take(),
            )
        };
        drop(held);
    }
}

impl Calls {
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.task)?;
        visit.call(&self.before)?;
        visit.call(&self.items)?;
        visit.call(&self.failure)?;
        match &self.owner {
            Owner::Strand(strand) => visit.call(strand)?,
            Owner::Inside(inside) => visit.call(inside)?,
            Owner::Gone => {}
        }
        for entry in &self.entries {
            match &entry.state {
                State::Kept(args) | State::Given(args) => visit.call(args)?,
                State::Value(value) | State::Future(value) => visit.call(value)?,
            }
        }
        Ok(())
    }

    fn add(&mut self, future: Py<PyAny>) {
        self.entries.push_back(Entry {
            handle: 0,
            action: 0,
            state: State::Future(future),
        });
    }

    /// Whether the arguments of a further call are to be asked for.
    pub fn has_room(&self) -> bool {
        self.entries.len() < self.window && self.items.is_none()
    }

    /// Whether the value that is due is known.
    pub fn is_known(&self) -> bool {
        let due = self.entries.front().map(|entry| &entry.state);
        matches!(due, Some(State::Value(_)))
    }

    /// No further calls are spawned: all values are due.
    pub fn close(&mut self) {
        self.window = 0;
    }

    /// Takes the value that is due, if it is known and Python has nothing to spawn before.
    pub fn take_value(&mut self) -> Option<Py<PyAny>> {
        if self.items.is_some() {
            return None;
        }
        let is_value = |entry: &mut Entry| matches!(entry.state, State::Value(_));
        match self.entries.pop_front_if(is_value)?.state {
            State::Value(value) => Some(value),
            State::Kept(_) | State::Given(_) | State::Future(_) => None,
        }
    }

    /// The future of a call.
    ///
    /// # Errors
    /// Those of Python.
    fn future_of(&self, py: Python<'_>, entry: Entry) -> PyResult<Py<PyAny>> {
        let state = match entry.state {
            State::Future(future) => return Ok(future),
            State::Value(value) => Known::Ended(value),
            State::Kept(args) | State::Given(args) => Known::Plain(Call {
                function: self.task.clone_ref(py),
                args,
                named: None,
                action: entry.action,
            }),
        };
        let owner = self.owner.clone_ref(py);
        match here(py) {
            Some(stack) => {
                let future = stack.borrow().future_of(py, (owner, entry.handle), state)?;
                Ok(future.into_any().unbind())
            }
            None => Err(PyRuntimeError::new_err("no strand runs in this thread")),
        }
    }
}

/// Whether the value that is due is that of a task.
fn waits(ahead: &Bound<'_, Ahead>) -> bool {
    let py = ahead.py();
    let ahead = ahead.get().0.borrow(py);
    let Some(stack) = here(py).filter(|stack| stack.borrow().owns(py, &ahead.owner)) else {
        return false;
    };
    let handle = match ahead.entries.front() {
        Some(entry) => entry.kept_handle(py),
        None => return false,
    };
    handle.is_some_and(|handle| !stack.borrow().promoter.get().keeps(handle))
}

impl Entry {
    /// The handle of a call whose task may be kept, or is one.
    fn kept_handle(&self, py: Python<'_>) -> Option<u32> {
        match &self.state {
            State::Kept(_) | State::Given(_) => Some(self.handle),
            State::Value(_) => None,
            State::Future(future) => {
                let future = future.bind(py).cast::<FutureState>().ok()?.borrow();
                let is_known = matches!(future.state, Known::Known(Some(_)) | Known::Ended(_));
                (!is_known).then_some(future.handle)
            }
        }
    }
}

impl Drop for Calls {
    /// Tells the strand of the calls that nobody asks for any more, as their futures would.
    fn drop(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        let owner = std::mem::replace(&mut self.owner, Owner::Gone);
        Python::try_attach(|py| {
            for entry in entries {
                if matches!(entry.state, State::Kept(_) | State::Given(_)) {
                    owner.let_go(py, entry.handle);
                }
            }
        });
    }
}
