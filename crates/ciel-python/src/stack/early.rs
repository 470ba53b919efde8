//! Plain calls that run before anybody asks for them, since their strand keeps as many children as
//! it may, or is a root that has sent many calls of their function.
//!
//! As those that run ahead (`ahead.rs`) they have no strands: their functions leave nothing behind,
//! so one may run twice. What does not go as usual is left to a call in place, or a task. The value
//! of one that is no task by then is that of a child that has ended in place, for which nobody has
//! waited. Python chooses, and calls the function. Read next: `sdk/python/ciel/_early.py`.

use std::sync::atomic::Ordering;

use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::given_early;
use super::{FREEZING, Here, Running, Stack, here};
use crate::function::Function;
use crate::future_state::{FutureState, State};
use crate::plain::is_small;
use crate::promoter::Promoter;
use crate::unpacked::plain_value;

/// Children that a strand keeps before further ones are listed: most strands have few, and ask for
/// them at once.
const UNLISTED_MAX: usize = 8;

/// Calls of a function that a root sends one after the other before it tries one.
const UNTRIED_MAX: usize = 256;

/// Has Python run the oldest children of the innermost strand, if it keeps as many as it may.
///
/// # Errors
/// Those of Python: the strand was cancelled.
pub(super) fn make_room(stack: &Here<'_>) -> PyResult<()> {
    let mut is_full = stack.borrow_mut().wants_room();
    if is_full {
        given_early::look(stack)?;
        is_full = stack.borrow_mut().wants_room();
    }
    if is_full {
        let made = python(stack).call_method0("make_room").map(drop);
        unless_deep(stack.py(), made)?;
        stack.borrow_mut().recount();
    } else {
        let stale = stack.borrow_mut().forget_ended(stack.py());
        drop(stale);
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
pub(super) fn begins_trial(stack: &Here<'_>, task: &Bound<'_, Function>) -> PyResult<bool> {
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
pub(super) fn end_trial(stack: &Here<'_>, task: &Bound<'_, Function>) -> PyResult<()> {
    stack.borrow_mut().note_trial(false);
    let ended = python(stack).call_method1("end_trial", (task,)).map(drop);
    unless_deep(stack.py(), ended)
}

fn python<'py>(stack: &Here<'py>) -> Bound<'py, PyAny> {
    stack.borrow().early.bind(stack.py()).clone()
}

/// The task of the oldest child of the innermost strand that may run early, if there is one.
///
/// # Errors
/// Those of Python, which has no memory.
pub(crate) fn early_task(py: Python<'_>) -> PyResult<Option<Py<Function>>> {
    let Some(stack) = here(py) else {
        return Ok(None);
    };
    given_early::look(&stack)?;
    Ok(oldest_able(&stack))
}

fn oldest_able(stack: &Here<'_>) -> Option<Py<Function>> {
    let py = stack.py();
    // Dropped when the stack is not borrowed.
    let mut stale = Vec::new();
    let mut stack = stack.borrow_mut();
    let Stack {
        levels, promoter, ..
    } = &mut *stack;
    let row = levels.last_mut()?.row.as_mut()?;
    while let Some(oldest) = row.calls.front() {
        if let Some(function) = able(oldest.bind(py), promoter.get()) {
            return Some(function);
        }
        match row.calls.pop_front() {
            Some(other) if is_kept(other.bind(py), promoter.get()) => row.others.push_back(other),
            other => stale.extend(other),
        }
    }
    None
}

/// Whether a future is that of a call that is kept.
fn is_kept(future: &Bound<'_, FutureState>, promoter: &Promoter) -> bool {
    let future = future.borrow();
    future.may_be_kept() && promoter.keeps(future.handle)
}

/// The task and the future of the oldest child of the innermost strand that may wait, as far as
/// such are listed.
pub(crate) fn oldest_aside(py: Python<'_>) -> Option<Bound<'_, PyTuple>> {
    let stack = here(py)?;
    // Dropped when the stack is not borrowed.
    let mut stale = Vec::new();
    let mut stack = stack.borrow_mut();
    let Stack {
        levels, promoter, ..
    } = &mut *stack;
    let row = levels.last_mut()?.row.as_mut()?;
    while let Some(oldest) = row.others.front() {
        let oldest = oldest.bind(py);
        if is_kept(oldest, promoter.get()) {
            let task = oldest.borrow().task(py)?;
            return (task, oldest).into_pyobject(py).ok();
        }
        stale.extend(row.others.pop_front());
    }
    None
}

/// The task of a call that may run early, if it is kept.
fn able(future: &Bound<'_, FutureState>, promoter: &Promoter) -> Option<Py<Function>> {
    let future = future.borrow();
    let function = &future.plain()?.function;
    let is_able = function.bind(future.py()).borrow().runs_early != Some(false);
    (is_able && promoter.keeps(future.handle)).then(|| function.clone_ref(future.py()))
}

/// The innermost strand sends what it keeps: nothing of that is listed, so that its futures are
/// gone when the program has none.
#[pyfunction]
pub fn unlist(py: Python<'_>) {
    let Some(stack) = here(py) else {
        return;
    };
    let row = match stack.borrow_mut().levels.last_mut() {
        Some(level) if level.row.as_ref().is_some_and(|row| row.run.is_none()) => level.row.take(),
        _ => None,
    };
    drop(row);
}

/// The innermost strand keeps the call of a future whose spawn was Python's: it is counted, and may
/// run before anybody asks for it, in a strand of its own.
#[pyfunction]
pub fn list_kept(future: &Bound<'_, FutureState>) {
    let Some(stack) = here(future.py()) else {
        return;
    };
    let stale = stack.borrow_mut().list_aside(future);
    drop(stale);
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
    let innermost = stack.borrow().innermost(py);
    let may_call = stack.borrow().may_call_ahead(py, place)?;
    let (Some((_, tag, _, _)), true) = (innermost, may_call) else {
        return Ok(None);
    };
    let function = match newest.is_none() {
        true => given_early::give(&stack)?.map(|oldest| oldest.into_bound(py).into_any()),
        false => Some(newest.clone()),
    };
    let mut stack = stack.borrow_mut();
    let Stack {
        levels, promoter, ..
    } = &mut *stack;
    let promoter = promoter.get();
    let Some(row) = levels.last_mut().and_then(|level| level.row.as_mut()) else {
        return Ok(None);
    };
    let is_newest = !newest.is_none();
    let chosen = function.and_then(|of| row.choose(&of, is_newest, promoter.beats()));
    let Some((first, chosen)) = chosen else {
        return Ok(None);
    };
    promoter.begin_ahead(tag, chosen);
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
    let next = row.calls[run.first + run.begun].bind(py).borrow();
    let args = next.plain()?.args.bind(py).clone();
    run.begun += 1;
    Some(args)
}

/// No further call runs early now. How many have ended; none if the last one has raised an
/// exception, or has given what is not plain: it stays a child that has not begun.
pub(crate) fn end_early(py: Python<'_>) -> usize {
    let Some(stack) = here(py) else {
        return 0;
    };
    let (tasks, run, futures) = {
        let mut stack = stack.borrow_mut();
        let Some(row) = stack.levels.last_mut().and_then(|level| level.row.as_mut()) else {
            return 0;
        };
        let Some(run) = row.run.take() else {
            return 0;
        };
        let range = run.first..run.first + run.begun;
        let futures: Vec<_> = row.calls.drain(range).collect();
        let tasks = stack.promoter.get().end_ahead(run.values.len());
        (tasks, run, futures)
    };
    let count = run.values.len();
    if count > 0
        && let Some(row) = stack
            .borrow_mut()
            .levels
            .last_mut()
            .and_then(|it| it.row.as_mut())
    {
        row.each = Some(run.began.elapsed() / count as u32);
    }
    let Some(tasks) = tasks else {
        return 0;
    };
    for (future, value) in futures.iter().zip(run.values) {
        // Of one that is a task by now the engine has a result, which a replay knows.
        let future = future.bind(py);
        if !tasks.contains(&future.borrow().handle) && future.borrow().plain().is_some() {
            FutureState::end(future, value.bind(py), false);
        }
    }
    if run.begun > count { 0 } else { count }
}

/// The value of a future, for `begin`: of a child that has ended in place, or a small plain one
/// that the engine has told. `None` if it is not one of the innermost strand, which has waited for
/// it then, or Python is to read it.
///
/// # Errors
/// Those of Python, which has no memory.
pub(super) fn known_value<'py>(
    stack: &Here<'py>,
    future: &Bound<'py, FutureState>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = future.py();
    let (known, has_ended) = {
        let (stack, future) = (stack.borrow(), future.borrow());
        let (known, has_ended) = match &future.state {
            State::Ended(value) => (value, true),
            State::Known(Some(known)) if stack.is_here => (known, false),
            State::Known(_) | State::Plain(_) | State::Kept(_) => return Ok(None),
        };
        if !stack.owns(py, &future.owner) {
            return Ok(None);
        }
        (known.clone_ref(py).into_bound(py), has_ended)
    };
    // Nothing is borrowed: what is read may run code. What cannot be read fails in Python.
    let value = match has_ended {
        true => Some(known),
        false => plain_value(&known).ok().flatten(),
    };
    let Some(value) = value else {
        return Ok(None);
    };
    future.borrow_mut().waited = true;
    ((value,), py.None()).into_pyobject(py).map(Some)
}

impl Stack {
    /// Whether the innermost strand keeps as many children as it may, and some may run early.
    fn wants_room(&mut self) -> bool {
        if !self.is_here || !self.is_full() {
            return false;
        }
        self.recount();
        let row = self.levels.last().and_then(|level| level.row.as_ref());
        let may_run = row.is_some_and(|row| {
            let is_empty = row.calls.is_empty() && row.others.is_empty();
            row.run.is_none() && !(is_empty && row.given.is_empty())
        });
        may_run && self.is_full()
    }

    /// Nothing is listed any more that the innermost strand does not keep; as `list`.
    fn forget_ended(&mut self, py: Python<'_>) -> Vec<Py<FutureState>> {
        let promoter = self.promoter.get();
        let row = self.levels.last_mut().and_then(|level| level.row.as_mut());
        let Some(row) = row.filter(|row| row.run.is_none()) else {
            return Vec::new();
        };
        let mut all_stale = Vec::new();
        for listed in [&mut row.calls, &mut row.others] {
            let each = std::mem::take(listed).into_iter();
            let (kept, stale): (Vec<_>, Vec<_>) =
                each.partition(|one| promoter.keeps(one.bind(py).borrow().handle));
            *listed = kept.into();
            all_stale.extend(stale);
        }
        all_stale
    }

    /// Counts the children that the innermost strand keeps; gives the handle of the oldest.
    fn recount(&mut self) -> u32 {
        let (count, oldest) = self.promoter.get().count();
        if let Some(level) = self.levels.last_mut() {
            level.kept = count;
        }
        oldest
    }

    fn list_aside(&mut self, future: &Bound<'_, FutureState>) -> Vec<Py<FutureState>> {
        let oldest = self.recount();
        self.list(future, oldest)
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

    /// Lists the call of a future that the innermost strand has kept, if it may run early; the
    /// oldest child that is kept has the handle `oldest`. Futures that are listed no more, which
    /// are to be dropped when nothing is borrowed.
    #[must_use]
    pub(super) fn list(
        &mut self,
        future: &Bound<'_, FutureState>,
        oldest: u32,
    ) -> Vec<Py<FutureState>> {
        let py = future.py();
        let unlisted_max = UNLISTED_MAX.min(self.kept_max / 2);
        let Some(level) = self.levels.last_mut() else {
            return Vec::new();
        };
        let is_trial = level.row.as_ref().is_some_and(|row| row.is_trial);
        if !is_trial && level.kept <= unlisted_max {
            return Vec::new();
        }
        let is_able = future.borrow().plain().is_some_and(|call| {
            let runs_early = call.function.bind(py).borrow().runs_early;
            runs_early != Some(false) && call.named.is_none()
        });
        let row = level.row.get_or_insert_default();
        let stale = row.trim(py, oldest);
        let listed = if is_able {
            &mut row.calls
        } else {
            &mut row.others
        };
        listed.push_back(future.clone().unbind());
        stale
    }

    /// Whether code at that place of Python's stack may call children ahead of those who ask.
    pub(super) fn may_call_ahead(&self, py: Python<'_>, place: usize) -> PyResult<bool> {
        let is_free = FREEZING.load(Ordering::Relaxed) == 0;
        let may_wait = is_free && !self.outside.has_event_loop(py);
        Ok(may_wait && self.is_quiet(py) && self.may_call(py, place)?)
    }
}
