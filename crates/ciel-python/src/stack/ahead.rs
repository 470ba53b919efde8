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

use super::calls::{Ahead, Calls, Entry, Run, State};
use super::given::Share;
use super::spawning::Spawner;
use super::{Here, Stack, here};
use crate::arguments;
use crate::function::{Function, Known};
use crate::future_state::Owner;
use crate::kept_payload::Payload;
use crate::levels::Child;
use crate::plain::is_small;

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
    let begins = match here(py) {
        Some(stack) if may_begin(ahead, &stack, place)? => {
            let share = Share::of(ahead, &stack);
            if let Some(share) = &share {
                share.look(py)?;
            }
            let is_known = ahead.get().0.borrow(py).is_known();
            !is_known && begin(ahead, &stack, share.as_ref())?
        }
        _ => {
            ahead.get().0.borrow_mut(py).keep_given();
            false
        }
    };
    let ahead = ahead.get().0.borrow(py);
    match begins {
        true => ahead.given(py),
        false => Ok(ahead.end.bind(py).clone()),
    }
}

fn may_begin(ahead: &Bound<'_, Ahead>, stack: &Here<'_>, place: usize) -> PyResult<bool> {
    let py = ahead.py();
    let (ahead, stack) = (ahead.get().0.borrow(py), stack.borrow());
    let may_run = ahead.runs && stack.owns(py, &ahead.owner) && stack.innermost(py).is_some();
    Ok(may_run && stack.may_call_ahead(py, place)?)
}

/// Begins the calls that may run, and gives others away; those are the strand's again if there are
/// no more. False if there are none.
fn begin(
    ahead: &Bound<'_, Ahead>,
    stack: &Here<'_>,
    share: Option<&Share<'_, '_>>,
) -> PyResult<bool> {
    let py = ahead.py();
    if let Some(share) = share {
        share.give(py)?;
    }
    let begins = || ahead.get().0.borrow_mut(py).begin(&stack.borrow(), py);
    Ok(begins() || (ahead.get().0.borrow_mut(py).withdraw() && begins()))
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
    let mut ahead = ahead.get().0.borrow_mut(py);
    let fits = is_small(&value);
    let goes_on = fits && ahead.note_value(value);
    if goes_on {
        return ahead.given(py);
    }
    ahead.fits &= fits;
    ahead.runs &= fits;
    ahead.end_run(py);
    Ok(ahead.end.bind(py).clone())
}

/// The call that runs ahead has raised an exception: it is to run in place, or as a task.
pub(crate) fn end_ahead(ahead: &Bound<'_, Ahead>) {
    let py = ahead.py();
    let mut calls = ahead.get().0.borrow_mut(py);
    calls.runs = false;
    calls.end_run(py);
}

impl Calls {
    /// Spawns a call with those further arguments, or leaves that to Python.
    ///
    /// # Errors
    /// Those of Python.
    pub(super) fn spawn(&mut self, items: Bound<'_, PyTuple>) -> PyResult<()> {
        if !self.keep(&items)? {
            self.items = Some(items.unbind());
        }
        Ok(())
    }

    /// Keeps a plain call, if the innermost strand keeps any; false if its spawn is Python's.
    fn keep(&mut self, items: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let py = items.py();
        let Some(stack) = here(py).filter(|_| self.is_plain) else {
            return Ok(false);
        };
        let args = self.with_before(items)?;
        let mut stack = stack.borrow_mut();
        let is_own = !self.is_free() && stack.owns(py, &self.owner);
        let task = self.task.bind(py).borrow();
        let Some(known) = self.known(&task, py, is_own)? else {
            return Ok(false);
        };
        stack.arguments.clear();
        if !arguments::append(&mut stack.arguments, &args, None) {
            return Ok(false);
        }
        let Some(keeper) = stack.keeper(py, task.suits_root == Some(true)) else {
            return Ok(false);
        };
        let spawner = keeper.next();
        let Some(child) = self.child(&stack, known, &spawner) else {
            return Ok(false);
        };
        let Some(count) = stack.promoter.get().keep_another(spawner.tag, child) else {
            return Ok(false);
        };
        keeper.count();
        stack.note_kept(count);
        self.entries.push_back(Entry {
            handle: spawner.handle,
            action: spawner.action,
            state: State::Kept(args.unbind()),
        });
        if !is_own {
            drop(task);
            self.owner = stack.owner(py);
        }
        Ok(true)
    }

    /// What is known of the function, if nothing has changed since, and the calls that are kept
    /// here are those of the innermost strand, or there are none.
    fn known<'a>(
        &self,
        task: &'a Function,
        py: Python<'_>,
        is_own: bool,
    ) -> PyResult<Option<&'a Known>> {
        let known = task.known.as_ref().filter(|_| is_own || self.is_free());
        Ok(match known {
            Some(known) if known.is_unchanged(py) && known.is_in(self.place.0.bind(py))? => {
                Some(known)
            }
            _ => None,
        })
    }

    /// Whether nothing is kept here.
    fn is_free(&self) -> bool {
        self.entries.is_empty() || matches!(self.owner, Owner::Gone)
    }

    /// The child that a spawn keeps, with the arguments of the stack; `None` if the engine has
    /// given the function no number.
    fn child(&self, stack: &Stack, known: &Known, spawner: &Spawner) -> Option<Child> {
        Some(Child {
            definition: known.id_at(stack.promoter.get().connection())?,
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
    fn begin(&mut self, stack: &Stack, py: Python<'_>) -> bool {
        let is_kept = |entry: &Entry| matches!(entry.state, State::Kept(_));
        let first = self.entries.iter().position(is_kept);
        let (Some(first), Some((_, tag, _, _))) = (first, stack.innermost(py)) else {
            return false;
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
        true
    }

    /// The arguments of the call that runs: the only one, or a tuple of them.
    fn given<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let entry = self.run.as_ref().map(|run| run.first + run.ended);
        match entry.map(|place| &self.entries[place].state) {
            Some(State::Kept(args)) => match args.bind(py) {
                args if args.len() == 1 => args.get_item(0),
                args => Ok(args.clone().into_any()),
            },
            _ => Ok(self.end.bind(py).clone()),
        }
    }

    /// The call that runs has that value. Whether another one is to run.
    fn note_value(&mut self, value: Bound<'_, PyAny>) -> bool {
        let py = value.py();
        let Some(run) = &mut self.run else {
            return false;
        };
        let state = &mut self.entries[run.first + run.ended].state;
        if let State::Kept(args) = std::mem::replace(state, State::Value(value.unbind())) {
            args.drop_ref(py);
        }
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
        let each = run.began.elapsed() / run.ended.max(1) as u32;
        self.runs &= each < self.short;
        self.each = Some(each);
        // Of one that is a task by now the engine has a result, too. It must not hear that nobody
        // asks for it: a replay does, in which no call runs ahead.
        run.promoter.get().end_ahead(run.ended);
        run.promoter.drop_ref(py);
    }
}
