//! Plain calls that run before anybody asks for them, since their strand keeps as many children as
//! it may, or is a root that has sent many calls of their function.
//!
//! As those that run ahead (`ahead.rs`) they have no strands: their functions leave nothing behind,
//! so one may run twice. What does not go as usual is left to a call in place, or a task. The value
//! of one that is no task by then is that of a child that has ended in place, for which nobody has
//! waited. Python chooses, and calls the function. Read next: `sdk/python/ciel/_early.py`.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{FREEZING, Running, Stack, here};
use crate::function::Function;
use crate::future_state::{Call, Early, FutureState};
use crate::plain::is_small;

/// Children that a strand keeps before further ones are listed: most strands have few, and ask for
/// them at once.
const UNLISTED_MAX: usize = 256;

/// Calls that run one after the other, at most.
const RUN_MAX: usize = 512;

/// Calls of a function that a root sends one after the other before it tries one.
const UNTRIED_MAX: usize = 256;

/// Calls that a strand has kept and that may run early, the oldest first. Some may be tasks by now,
/// or have ended.
#[derive(Default)]
pub(super) struct Row {
    calls: VecDeque<Listed>,
    run: Option<Run>,
    /// Whether the next call is listed in any case: it is to run at once.
    is_trial: bool,
}

/// One call.
struct Listed {
    handle: u32,
    function: Py<Function>,
    args: Py<PyTuple>,
    /// For its value; gone with its future.
    value: Weak<Early>,
}

/// Calls that run one after the other.
struct Run {
    /// The place of the first one in the row.
    first: usize,
    /// How many may run.
    count: usize,
    /// How many have begun.
    begun: usize,
    /// What the first of them have given.
    values: Vec<Py<PyAny>>,
    /// Heartbeats before the first one.
    beats: u64,
}

/// Has Python run the oldest children of the innermost strand, if it keeps as many as it may.
///
/// # Errors
/// Those of Python: the strand was cancelled.
pub(super) fn make_room(stack: &Bound<'_, Stack>) -> PyResult<()> {
    let is_full = stack.borrow_mut().wants_room();
    if is_full {
        let made = python(stack).call_method0("make_room").map(drop);
        unless_deep(stack.py(), made)?;
        stack.borrow_mut().recount();
    }
    Ok(())
}

/// Near the recursion limit there is no room for Python's part: then nothing runs early.
fn unless_deep<T: Default>(py: Python<'_>, found: PyResult<T>) -> PyResult<T> {
    match found {
        Err(error) if error.is_instance_of::<PyRecursionError>(py) => Ok(T::default()),
        found => found,
    }
}

/// Whether the next call of that task is kept, and runs as soon as it is: it is one of many that a
/// root sends, and nobody knows yet whether they are short.
///
/// # Errors
/// Those of Python.
pub(super) fn begins_trial(stack: &Bound<'_, Stack>, task: &Bound<'_, Function>) -> PyResult<bool> {
    let py = task.py();
    if task.borrow().suits_root.is_some() {
        return Ok(false);
    }
    stack.borrow().count_again(py);
    let begins = python(stack).call_method1("begin_trial", (task,));
    let begins = unless_deep(py, begins.and_then(|begins| begins.extract()))?;
    stack.borrow_mut().note_trial(begins);
    Ok(begins)
}

/// The call is spawned.
///
/// # Errors
/// As of `make_room`.
pub(super) fn end_trial(stack: &Bound<'_, Stack>, task: &Bound<'_, Function>) -> PyResult<()> {
    stack.borrow_mut().note_trial(false);
    let ended = python(stack).call_method1("end_trial", (task,)).map(drop);
    unless_deep(stack.py(), ended)
}

fn python<'py>(stack: &Bound<'py, Stack>) -> Bound<'py, PyAny> {
    stack.borrow().early.bind(stack.py()).clone()
}

/// The task of the oldest child of the innermost strand that may run early, if there is one.
pub(crate) fn early_task(py: Python<'_>) -> Option<Py<Function>> {
    let stack = here(py)?;
    let mut stack = stack.borrow_mut();
    let Stack {
        levels, promoter, ..
    } = &mut *stack;
    let row = levels.last_mut()?.row.as_mut()?;
    while let Some(oldest) = row.calls.front() {
        let is_able = oldest.function.bind(py).borrow().runs_early != Some(false);
        if is_able && promoter.get().keeps(oldest.handle) {
            return Some(oldest.function.clone_ref(py));
        }
        row.calls.pop_front();
    }
    None
}

/// Begins calls of the innermost strand, in the code at that place of Python's stack, which is to
/// call their function: the newest alone if that is of the task `newest`; for `None`, the oldest
/// ones. Gives the arguments of the first; `None` if there is none, or it must not run here.
///
/// # Errors
/// Those of Python.
pub(crate) fn begin_early<'py>(
    newest: &Bound<'py, PyAny>,
    place: usize,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = newest.py();
    let Some(stack) = here(py) else {
        return Ok(None);
    };
    let mut stack = stack.borrow_mut();
    let innermost = stack.innermost(py);
    let (Some((_, tag, _, _)), true) = (innermost, stack.may_call_ahead(py, place)?) else {
        return Ok(None);
    };
    let Stack {
        levels, promoter, ..
    } = &mut *stack;
    let promoter = promoter.get();
    let Some(row) = levels.last_mut().and_then(|level| level.row.as_mut()) else {
        return Ok(None);
    };
    let Some(first) = row.choose(newest, promoter.beats()) else {
        return Ok(None);
    };
    promoter.begin_ahead(tag, row.chosen());
    Ok(Some(first.into_bound(py)))
}

/// The call that runs early has returned `value`: gives the arguments of the next one. `None`
/// follows what is not plain, the last one, and a heartbeat.
pub(crate) fn advance_early<'py>(value: Bound<'py, PyAny>) -> Option<Bound<'py, PyTuple>> {
    let py = value.py();
    let stack = here(py).filter(|_| is_small(&value))?;
    let mut stack = stack.borrow_mut();
    let Stack {
        levels, promoter, ..
    } = &mut *stack;
    let row = levels.last_mut()?.row.as_mut()?;
    let run = row.run.as_mut()?;
    let promoter = promoter.get();
    run.values.push(value.unbind());
    promoter.note_called(run.values.len());
    if run.begun == run.count || promoter.beats() != run.beats {
        return None;
    }
    run.begun += 1;
    let next = &row.calls[run.first + run.begun - 1];
    Some(next.args.bind(py).clone())
}

/// No further call runs early now. How many have ended; none if the last one has raised an
/// exception, or has given what is not plain: it stays a child that has not begun.
pub(crate) fn end_early(py: Python<'_>) -> usize {
    let Some(stack) = here(py) else {
        return 0;
    };
    let (called, run, calls) = {
        let mut stack = stack.borrow_mut();
        let Some(row) = stack.levels.last_mut().and_then(|level| level.row.as_mut()) else {
            return 0;
        };
        let Some(run) = row.run.take() else {
            return 0;
        };
        let range = run.first..run.first + run.begun;
        let calls: Vec<Listed> = row.calls.drain(range).collect();
        (stack.promoter.get().end_ahead(run.values.len()), run, calls)
    };
    let count = run.values.len();
    let Some(called) = called else {
        return 0;
    };
    // Of one that is a task by now the engine has a result, which a replay knows.
    let ended = calls.into_iter().zip(run.values);
    for (call, value) in ended.filter(|(call, _)| !called.tasks.contains(&call.handle)) {
        if let Some(early) = call.value.upgrade() {
            early.set(value).ok();
        }
    }
    stack.borrow_mut().spare_all(called.payloads);
    if run.begun > count { 0 } else { count }
}

impl Row {
    /// Chooses the calls that run now; the arguments of the first.
    fn choose(&mut self, newest: &Bound<'_, PyAny>, beats: u64) -> Option<Py<PyTuple>> {
        let (first, count) = match newest.is_none() {
            false => {
                self.calls.back().filter(|one| one.function.is(newest))?;
                (self.calls.len() - 1, 1)
            }
            true => {
                let function = &self.calls.front()?.function;
                let same = self.calls.iter().take(RUN_MAX);
                (0, same.take_while(|one| one.function.is(function)).count())
            }
        };
        self.run = Some(Run {
            first,
            count,
            begun: 1,
            values: Vec::new(),
            beats,
        });
        Some(self.calls[first].args.clone_ref(newest.py()))
    }

    /// The handles of those that run now.
    fn chosen(&self) -> Vec<u32> {
        let run = self.run.iter();
        let places = run.flat_map(|run| run.first..run.first + run.count);
        places.map(|place| self.calls[place].handle).collect()
    }
}

impl Stack {
    /// Whether the innermost strand keeps as many children as it may, and some may run early.
    fn wants_room(&mut self) -> bool {
        if !self.is_here || !self.is_full() {
            return false;
        }
        self.recount();
        let row = self.levels.last().and_then(|level| level.row.as_ref());
        let may_run = row.is_some_and(|row| row.run.is_none() && !row.calls.is_empty());
        if may_run && self.is_full() {
            return true;
        }
        self.forget_ended();
        false
    }

    /// Counts the children that the innermost strand keeps.
    fn recount(&mut self) {
        let count = self.promoter.get().count();
        if let Some(level) = self.levels.last_mut() {
            level.kept = count;
        }
    }

    /// Of what the innermost strand does not keep any more nothing is listed.
    fn forget_ended(&mut self) {
        let promoter = self.promoter.get();
        if let Some(row) = self.levels.last_mut().and_then(|level| level.row.as_mut()) {
            row.calls.retain(|call| promoter.keeps(call.handle));
        }
    }

    fn note_trial(&mut self, begins: bool) {
        if let Some(level) = self.levels.last_mut() {
            level.row.get_or_insert_default().is_trial = begins;
        }
    }

    /// Whether the innermost strand may keep as many children as it may, and whether it is a root
    /// that has sent many calls of one function, one after the other.
    pub(super) fn signs(&self, py: Python<'_>) -> (bool, bool) {
        let Some(level) = self.levels.last() else {
            return (false, false);
        };
        let has_sent_many = match &level.strand {
            Running::Strand(strand) => {
                let strand = strand.bind(py).borrow();
                let is_many = strand.in_a_row as usize >= UNTRIED_MAX.min(self.kept_max);
                is_many && self.is_here && strand.keeps_plainly(py)
            }
            Running::Inside(_) | Running::Task(_) => false,
        };
        (level.kept >= self.kept_max, has_sent_many)
    }

    /// What the innermost strand has sent is counted again.
    fn count_again(&self, py: Python<'_>) {
        if let Some(Running::Strand(strand)) = self.levels.last().map(|level| &level.strand) {
            strand.bind(py).borrow_mut().in_a_row = 0;
        }
    }

    /// Lists a call that the innermost strand has kept, if it may run early: where its value is put
    /// then.
    pub(super) fn list(&mut self, py: Python<'_>, call: &Call, handle: u32) -> Option<Arc<Early>> {
        let unlisted_max = UNLISTED_MAX.min(self.kept_max / 2);
        let level = self.levels.last_mut()?;
        let is_trial = level.row.as_ref().is_some_and(|row| row.is_trial);
        if !is_trial && level.kept <= unlisted_max {
            return None;
        }
        let runs_early = call.function.bind(py).borrow().runs_early;
        if runs_early == Some(false) || call.named.is_some() {
            return None;
        }
        let early = Arc::new(Early::new());
        let row = level.row.get_or_insert_default();
        row.calls.push_back(Listed {
            handle,
            function: call.function.clone_ref(py),
            args: call.args.clone_ref(py),
            value: Arc::downgrade(&early),
        });
        Some(early)
    }

    /// The value of a future whose task has ended in place, for `begin`; `None` if it is not one of
    /// the innermost strand, which has waited for it then.
    pub(super) fn known_value<'py>(
        &self,
        future: &Bound<'py, FutureState>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let py = future.py();
        let mut future = future.borrow_mut();
        let value = match future.value(py) {
            Some(value) if self.owns(py, &future.owner) => value,
            _ => return Ok(None),
        };
        future.waited = true;
        ((value,), py.None()).into_pyobject(py).map(Some)
    }

    /// Whether code at that place of Python's stack may call children ahead of those who ask.
    pub(super) fn may_call_ahead(&self, py: Python<'_>, place: usize) -> PyResult<bool> {
        let is_free = FREEZING.load(Ordering::Relaxed) == 0;
        let may_wait = is_free && !self.outside.has_event_loop(py);
        Ok(may_wait && self.is_quiet(py) && self.may_call(py, place)?)
    }
}
