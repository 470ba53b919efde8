//! The native path of a flat loop: calls that are kept until their values are due, and that run one
//! after the other before that if their functions leave nothing behind.
//!
//! Such a call has no strand: what it does is seen in its result alone, and it may run once more.
//! So what does not go as usual (it raises, or gives what is not plain) is left to a call in place,
//! or a task, of the same arguments. Python calls the function, with what `begin_ahead` and
//! `advance` give it. Read next: `calls.rs`, `sdk/python/ciel/_flat_loop.py`.

use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::calls::{Ahead, Entry, Run, State};
use super::spawning::Spawner;
use super::{Stack, here};
use crate::arguments;
use crate::future_state::Owner;
use crate::kept_payload::Payload;
use crate::levels::Child;
use crate::plain::is_small;

/// Spawns a call with those further arguments, if there are any, and gives the value that is due;
/// or what Python has to do first: see [`super::calls::Turns`].
///
/// # Errors
/// Those of Python.
pub(crate) fn step<'py>(
    ahead: &Bound<'py, Ahead>,
    items: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ahead.py();
    let mut ahead = ahead.borrow_mut();
    if let Some(items) = items
        && !ahead.keep(items)?
    {
        return Ok(ahead.turns.spawn.bind(py).clone());
    }
    if ahead.entries.len() < ahead.window {
        return Ok(ahead.turns.more.bind(py).clone());
    }
    match ahead.take_value() {
        Some(value) => Ok(value.into_bound(py)),
        None => Ok(ahead.turns.due.bind(py).clone()),
    }
}

/// Begins the calls that may run ahead, in the code at that place of Python's stack, which is to
/// call the function: gives the arguments of the first call, see [`Ahead::given`], or what tells
/// that there is none.
///
/// # Errors
/// Those of Python.
pub(crate) fn begin_ahead<'py>(
    ahead: &Bound<'py, Ahead>,
    place: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ahead.py();
    let mut ahead = ahead.borrow_mut();
    let begins = match here(py) {
        Some(stack) => ahead.begin(&stack.borrow(), py, place)?,
        None => false,
    };
    match begins {
        true => ahead.given(py),
        false => Ok(ahead.turns.end.bind(py).clone()),
    }
}

/// The call that runs ahead has returned `value`: gives the arguments of the next one, as
/// `begin_ahead`. None follows what is not plain, nor a heartbeat.
///
/// # Errors
/// Those of Python.
pub(crate) fn advance<'py>(
    ahead: &Bound<'py, Ahead>,
    value: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ahead.py();
    let mut ahead = ahead.borrow_mut();
    let fits = is_small(&value);
    let goes_on = fits && ahead.note_value(value);
    if goes_on {
        return ahead.given(py);
    }
    ahead.fits &= fits;
    ahead.runs &= fits;
    ahead.end_run(py);
    Ok(ahead.turns.end.bind(py).clone())
}

/// The call that runs ahead has raised an exception: it is to run in place, or as a task.
pub(crate) fn end_ahead(ahead: &Bound<'_, Ahead>) {
    let mut own = ahead.borrow_mut();
    own.runs = false;
    own.end_run(ahead.py());
}

impl Ahead {
    /// Keeps a plain call, if the innermost strand keeps any; false if its spawn is Python's.
    fn keep(&mut self, items: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let py = items.py();
        let Some(stack) = here(py).filter(|_| self.is_plain) else {
            return Ok(false);
        };
        let mut stack = stack.borrow_mut();
        let Some(spawner) = self.spawner(&stack, py)? else {
            return Ok(false);
        };
        let args = self.with_before(items)?;
        let Some(child) = self.child(&mut stack, &spawner, &args) else {
            return Ok(false);
        };
        let Some(count) = stack.promoter.get().keep_another(spawner.tag, child) else {
            return Ok(false);
        };
        stack.count(py, count);
        self.entries.push_back(Entry {
            handle: spawner.handle,
            action: spawner.action,
            state: State::Kept(args.unbind()),
        });
        self.owner = spawner.owner;
        Ok(true)
    }

    /// The innermost strand, if a plain spawn of it needs nothing but to be kept here.
    fn spawner(&self, stack: &Stack, py: Python<'_>) -> PyResult<Option<Spawner>> {
        let task = self.task.bind(py).borrow();
        let suits_root = task.suits_root == Some(true);
        let is_own = self.is_free() || stack.owns(py, &self.owner);
        let is_known = match &task.known {
            Some(known) if is_own => {
                known.is_unchanged(py) && known.is_in(self.place.0.bind(py))?
            }
            _ => false,
        };
        Ok(match is_known {
            true => stack.keeper(py, suits_root),
            false => None,
        })
    }

    /// Whether nothing is kept here.
    fn is_free(&self) -> bool {
        self.entries.is_empty() || matches!(self.owner, Owner::Gone)
    }

    /// The child that a spawn keeps; `None` if the engine has given the function no number, or the
    /// arguments are not plain.
    fn child(
        &self,
        stack: &mut Stack,
        spawner: &Spawner,
        args: &Bound<'_, PyTuple>,
    ) -> Option<Child> {
        let py = args.py();
        let task = self.task.bind(py).borrow();
        let known = task.known.as_ref()?;
        let definition = known.id_at(stack.promoter.get().connection())?;
        stack.arguments.clear();
        if !arguments::append(&mut stack.arguments, args, None) {
            return None;
        }
        Some(Child {
            definition,
            payload: Payload::new(Some(known.head.clone()), &stack.arguments),
            action: spawner.action,
            handle: spawner.handle,
            line: self.place.1,
            beats: 0,
        })
    }

    fn with_before<'py>(&self, items: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
        let before = self.before.bind(items.py());
        match before.is_empty() {
            true => Ok(items.clone()),
            false => before.as_sequence().concat(items.as_sequence())?.to_tuple(),
        }
    }

    /// Begins the calls that may run ahead; false if there are none.
    fn begin(&mut self, stack: &Stack, py: Python<'_>, place: usize) -> PyResult<bool> {
        let may_run = self.runs && stack.owns(py, &self.owner);
        if !may_run || !stack.may_call_ahead(py, place)? {
            return Ok(false);
        }
        let is_kept = |entry: &Entry| matches!(entry.state, State::Kept(_));
        let first = self.entries.iter().position(is_kept);
        let (Some(first), Some((_, tag, _, _))) = (first, stack.innermost(py)) else {
            return Ok(false);
        };
        let kept = self.entries.range(first..).take_while(|one| is_kept(one));
        let handles: Vec<u32> = kept.map(|entry| entry.handle).collect();
        let promoter = stack.promoter.get();
        self.run = Some(Run {
            first,
            count: handles.len(),
            ended: 0,
            beats: promoter.beats(),
            began: Instant::now(),
            promoter: stack.promoter.clone_ref(py),
        });
        promoter.begin_ahead(tag, handles);
        Ok(true)
    }

    /// The arguments of the call that runs: the only one, or a tuple of them.
    fn given<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let entry = self.run.as_ref().map(|run| run.first + run.ended);
        match entry.map(|place| &self.entries[place].state) {
            Some(State::Kept(args)) => match args.bind(py) {
                args if args.len() == 1 => args.get_item(0),
                args => Ok(args.clone().into_any()),
            },
            _ => Ok(self.turns.end.bind(py).clone()),
        }
    }

    /// The call that runs has that value. Whether another one is to run.
    fn note_value(&mut self, value: Bound<'_, PyAny>) -> bool {
        let Some(run) = &mut self.run else {
            return false;
        };
        self.entries[run.first + run.ended].state = State::Value(value.unbind());
        run.ended += 1;
        let promoter = run.promoter.get();
        promoter.note_called(run.ended);
        run.ended < run.count && promoter.beats() == run.beats
    }

    /// No further call runs ahead now.
    fn end_run(&mut self, py: Python<'_>) {
        let Some(run) = self.run.take() else {
            return;
        };
        self.runs &= run.began.elapsed() < self.short * run.ended.max(1) as u32;
        // Of one that is a task by now the engine has a result, too. It must not hear that nobody
        // asks for it: a replay does, in which no call runs ahead.
        run.promoter.get().end_ahead(run.ended);
        run.promoter.drop_ref(py);
    }
}
