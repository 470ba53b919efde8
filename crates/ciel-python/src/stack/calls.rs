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
use crate::durations::duration;
use crate::function::Function;
use crate::future_state::{Call, FutureState, Owner, State as Known};
use crate::promoter::Promoter;

/// The calls of one function that one loop has spawned ahead.
#[pyclass(module = "ciel._native")]
pub struct Ahead {
    /// Its task.
    pub task: Py<Function>,
    /// Arguments before those of each call.
    pub before: Py<PyTuple>,
    /// Where the loop is: a file, and a line in it.
    pub place: (Py<PyString>, u32),
    /// Calls that are spawned before the first value is asked for.
    pub window: usize,
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
    /// What tells what Python has to do.
    pub turns: Turns,
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

/// What Python has given to tell what a step gives in place of a value.
pub struct Turns {
    /// Fewer calls are spawned than may be: another one is to follow.
    pub more: Py<PyAny>,
    /// The call is to be spawned by Python, and to be added.
    pub spawn: Py<PyAny>,
    /// The value that is due is not known.
    pub due: Py<PyAny>,
    /// No call is to run ahead.
    pub end: Py<PyAny>,
}

#[pymethods]
impl Ahead {
    /// None are spawned. `before` are arguments before those of each call; the loop is at the line
    /// `place[1]` of the file `place[0]`; `window` is how many calls are spawned before the first
    /// value is asked for, `is_plain` whether they need nothing but arguments by place, `short_s`
    /// in how many seconds one ends that may run ahead. `turns` tell what is given in place of a
    /// value, see [`Turns`].
    #[new]
    fn new(
        task: Py<Function>,
        before: Py<PyTuple>,
        place: (Py<PyString>, u32),
        window: usize,
        is_plain: bool,
        short_s: f64,
        turns: [Py<PyAny>; 4],
    ) -> PyResult<Ahead> {
        let [more, spawn, due, end] = turns;
        Ok(Ahead {
            task,
            before,
            place,
            window,
            is_plain,
            turns: Turns {
                more,
                spawn,
                due,
                end,
            },
            entries: VecDeque::new(),
            owner: Owner::Gone,
            runs: false,
            fits: true,
            run: None,
            short: duration(short_s)?,
        })
    }

    /// Calls that are spawned and whose values were not given.
    fn __len__(&self) -> usize {
        self.entries.len()
    }

    /// Whether calls may run before they are asked for; never after one has given what is not
    /// plain.
    #[getter]
    fn runs(&self) -> bool {
        self.runs
    }

    #[setter]
    fn set_runs(&mut self, runs: bool) {
        self.runs = runs && self.fits;
    }

    /// Whether the value that is due is that of a task.
    #[getter]
    fn waits(slf: &Bound<'_, Ahead>) -> bool {
        waits(slf)
    }

    /// Adds a call that Python has spawned.
    fn add(&mut self, future: Py<PyAny>) {
        self.entries.push_back(Entry {
            handle: 0,
            action: 0,
            state: State::Future(future),
        });
    }

    /// No further calls are spawned: all values are due.
    fn close(&mut self) {
        self.window = 1;
    }

    /// Takes the future of the value that is due.
    ///
    /// Raises RuntimeError if there is none, or no strand runs in this thread.
    fn take(slf: &Bound<'_, Ahead>) -> PyResult<Py<PyAny>> {
        let entry = slf.borrow_mut().entries.pop_front();
        let entry = entry.ok_or_else(|| PyRuntimeError::new_err("no call is spawned"))?;
        future_of(slf, entry)
    }

    /// The future of the newest call, if that is one that was kept here. It stays in its place.
    ///
    /// Raises RuntimeError if no strand runs in this thread.
    fn newest(slf: &Bound<'_, Ahead>) -> PyResult<Option<Py<PyAny>>> {
        let is_kept = |entry: &mut Entry| matches!(entry.state, State::Kept(_));
        let Some(entry) = slf.borrow_mut().entries.pop_back_if(is_kept) else {
            return Ok(None);
        };
        let future = future_of(slf, entry)?;
        slf.borrow_mut().add(future.clone_ref(slf.py()));
        Ok(Some(future))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.task)?;
        visit.call(&self.before)?;
        match &self.owner {
            Owner::Strand(strand) => visit.call(strand)?,
            Owner::Inside(inside) => visit.call(inside)?,
            Owner::Gone => {}
        }
        for entry in &self.entries {
            match &entry.state {
                State::Kept(args) => visit.call(args)?,
                State::Value(value) | State::Future(value) => visit.call(value)?,
            }
        }
        Ok(())
    }

    fn __clear__(&mut self) {
        self.entries.clear();
        self.owner = Owner::Gone;
    }
}

impl Ahead {
    /// Takes the value that is due, if it is known.
    pub fn take_value(&mut self) -> Option<Py<PyAny>> {
        let is_value = |entry: &mut Entry| matches!(entry.state, State::Value(_));
        match self.entries.pop_front_if(is_value)?.state {
            State::Value(value) => Some(value),
            State::Kept(_) | State::Future(_) => None,
        }
    }
}

/// The future of a call.
///
/// # Errors
/// Those of Python.
fn future_of(ahead: &Bound<'_, Ahead>, entry: Entry) -> PyResult<Py<PyAny>> {
    let py = ahead.py();
    let ahead = ahead.borrow();
    let state = match entry.state {
        State::Future(future) => return Ok(future),
        State::Value(value) => Known::Ended(value),
        State::Kept(args) => Known::Plain(Call {
            function: ahead.task.clone_ref(py),
            args,
            named: None,
            action: entry.action,
        }),
    };
    let owner = ahead.owner.clone_ref(py);
    match here(py) {
        Some(stack) => {
            let future = stack.borrow().future_of(py, (owner, entry.handle), state)?;
            Ok(future.into_any().unbind())
        }
        None => Err(PyRuntimeError::new_err("no strand runs in this thread")),
    }
}

/// Whether the value that is due is that of a task.
fn waits(ahead: &Bound<'_, Ahead>) -> bool {
    let py = ahead.py();
    let ahead = ahead.borrow();
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
            State::Kept(_) => Some(self.handle),
            State::Value(_) => None,
            State::Future(future) => {
                let future = future.bind(py).cast::<FutureState>().ok()?.borrow();
                let is_known = matches!(future.state, Known::Known(Some(_)) | Known::Ended(_));
                (!is_known).then_some(future.handle)
            }
        }
    }
}

impl Drop for Ahead {
    /// Tells the strand of the calls that nobody asks for any more, as their futures would.
    fn drop(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        let owner = std::mem::replace(&mut self.owner, Owner::Gone);
        Python::try_attach(|py| {
            for entry in entries {
                if matches!(entry.state, State::Kept(_)) {
                    owner.let_go(py, entry.handle);
                }
            }
        });
    }
}
