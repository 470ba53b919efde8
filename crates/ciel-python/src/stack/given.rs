//! Calls of a `map` that idle workers compute, while the loop runs others itself.
//!
//! The last half of the calls that are kept is given away; the loop continues with the first ones,
//! and with those that are spawned later. When it has no others it withdraws what nobody has begun.
//! It does not know who computes. Read next: `ahead.rs`, `assist.rs`.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::calls::{Ahead, Calls, Entry, GivenCalls, State};
use super::{Here, Running, Stack};
use crate::assist::{Given, Range, values_of, written};
use crate::function::Function;

/// Tries to write fewer calls, if they are too long.
const TRIES: usize = 4;

/// The calls of a loop, and the strand whose they are.
pub(super) struct Share<'a, 'py> {
    ahead: &'a Bound<'py, Ahead>,
    stack: &'a Here<'py>,
    tag: u32,
}

impl<'a, 'py> Share<'a, 'py> {
    /// Those; `None` if the strand has output that is not sent.
    pub(super) fn of(ahead: &'a Bound<'py, Ahead>, stack: &'a Here<'py>) -> Option<Share<'a, 'py>> {
        let (_, tag, _, _) = stack.borrow().innermost(ahead.py())?;
        Some(Share { ahead, stack, tag })
    }

    /// Takes the values that have come. What others compute no more is the loop's again.
    ///
    /// # Errors
    /// Those of Python, which has no memory.
    pub(super) fn look(&self, py: Python<'py>) -> PyResult<()> {
        let calls = &self.ahead.get().0;
        if calls.borrow(py).given.is_empty() {
            return Ok(());
        }
        // Nothing is borrowed while values are read.
        let given = std::mem::take(&mut calls.borrow_mut(py).given);
        for mut one in given {
            let found = one.range.look();
            for part in &found.parts {
                let values = values_of(py, part)?;
                self.receive(py, &mut one, &values);
            }
            let mut calls = calls.borrow_mut(py);
            calls.gives &= !found.has_failed;
            match found.is_over {
                true => calls.keep_again(&one),
                false => calls.given.push_back(one),
            }
        }
        Ok(())
    }

    fn receive(&self, py: Python<'py>, one: &mut GivenCalls, values: &Bound<'py, PyList>) {
        let mut calls = self.ahead.get().0.borrow_mut(py);
        let handles = calls.receive(one, values);
        let stack = self.stack.borrow();
        stack.note_assisted(self.tag, handles);
    }

    /// Gives calls away, if cores are idle and that is worth it.
    ///
    /// # Errors
    /// As `look`.
    pub(super) fn give(&self, py: Python<'py>) -> PyResult<()> {
        let calls = &self.ahead.get().0;
        let mut share = calls.borrow(py).share(&self.stack.borrow(), py);
        for _ in 0..TRIES {
            if share.1 == 0 {
                return Ok(());
            }
            let Some((header, arguments)) = calls.borrow(py).arguments(py, share) else {
                return Ok(());
            };
            let bytes = written(&PyList::new(py, arguments)?)?;
            let given = Given {
                header: &header,
                arguments: bytes.as_bytes(),
                count: share.1,
            };
            let stack = self.stack.borrow();
            let board = stack.promoter.get().assists.board();
            if let Some(range) = board.and_then(|board| Range::give(board, &given)) {
                calls.borrow_mut(py).note_given(range, share);
                return Ok(());
            }
            share = (share.0 + share.1.div_ceil(2), share.1 / 2);
        }
        Ok(())
    }
}

impl Calls {
    /// The place of the first call that is to be given away, and how many follow it.
    fn share(&self, stack: &Stack, py: Python<'_>) -> (usize, usize) {
        let is_kept = |state: &State| matches!(state, State::Kept(_));
        let first = self.entries.iter().position(|one| is_kept(&one.state));
        let (Some(first), Some(each), true) = (first, self.each, self.gives) else {
            return (0, 0);
        };
        let kept = self.entries.range(first..);
        let count = kept.take_while(|one| is_kept(&one.state)).count();
        let cores = stack.idle_cores(py);
        let assists = &stack.promoter.get().assists;
        let share = assists.share_of(count, each, cores, self.given.len());
        (first + count - share, share)
    }

    /// The header of the function, and the arguments of so many calls from that place on.
    fn arguments(
        &self,
        py: Python<'_>,
        (first, count): (usize, usize),
    ) -> Option<(Vec<u8>, Vec<Py<PyTuple>>)> {
        let header = header_of(&self.task.bind(py).borrow())?;
        let arguments = self.entries.range(first..first + count);
        let arguments = arguments.map(|entry| match &entry.state {
            State::Kept(args) => Some(args.clone_ref(py)),
            State::Given(_) | State::Value(_) | State::Future(_) => None,
        });
        Some((header, arguments.collect::<Option<_>>()?))
    }

    fn note_given(&mut self, range: Range, (first, count): (usize, usize)) {
        for entry in self.entries.range_mut(first..first + count) {
            entry.state.turn(true);
        }
        let first = self.entries[first].handle;
        self.given.push_back(GivenCalls { range, first });
    }

    /// The next calls of a range have those values; their handles.
    fn receive(&mut self, one: &mut GivenCalls, values: &Bound<'_, PyList>) -> Vec<u32> {
        let Some(place) = self.place_of(one) else {
            return Vec::new();
        };
        let mut handles = Vec::with_capacity(values.len());
        for (entry, value) in self.entries.range_mut(place..).zip(values) {
            entry.state = State::Value(value.unbind());
            handles.push(entry.handle);
        }
        if let Some(next) = self.entries.get(place + handles.len()) {
            one.first = next.handle;
        }
        handles
    }

    /// The place of the first call of a range whose value has not come.
    fn place_of(&self, one: &GivenCalls) -> Option<usize> {
        let is_it =
            |entry: &Entry| entry.handle == one.first && matches!(entry.state, State::Given(_));
        self.entries.iter().position(is_it)
    }

    /// The calls of a range whose values have not come are the loop's again.
    fn keep_again(&mut self, one: &GivenCalls) {
        let count = one.range.left();
        if let Some(place) = self.place_of(one) {
            for entry in self.entries.range_mut(place..).take(count) {
                entry.state.turn(false);
            }
        }
    }

    /// As `keep_again`, of all ranges.
    pub(super) fn keep_given(&mut self) {
        for one in std::mem::take(&mut self.given) {
            self.keep_again(&one);
        }
    }

    /// Withdraws calls of the oldest range, half of those that nobody has begun, or all; whether
    /// there is one.
    pub(super) fn withdraw(&mut self) -> bool {
        let Some(mut one) = self.given.pop_front() else {
            return false;
        };
        let place = self.place_of(&one);
        let count = one.range.withdraw();
        match place {
            Some(place) if count > 0 => {
                let from = place + one.range.left();
                for entry in self.entries.range_mut(from..).take(count) {
                    entry.state.turn(false);
                }
                self.given.push_front(one);
            }
            _ => self.keep_again(&one),
        }
        true
    }
}

impl State {
    /// The call is given away, or is kept again.
    fn turn(&mut self, is_given: bool) {
        *self = match std::mem::replace(self, State::Value(none())) {
            State::Kept(args) | State::Given(args) if is_given => State::Given(args),
            State::Kept(args) | State::Given(args) => State::Kept(args),
            other => other,
        };
    }
}

fn none() -> Py<PyAny> {
    // SAFETY: calls are borrowed by attached threads only.
    unsafe { Python::assume_attached() }.None()
}

/// The header of a function, by which workers know it.
pub(super) fn header_of(task: &Function) -> Option<Vec<u8>> {
    let known = task.known.as_ref()?;
    Some(known.head.header().to_vec())
}

impl Stack {
    /// Idle cores that can compute calls of the innermost strand. A root, and what runs in place of
    /// it, has no core, but keeps one busy.
    pub(super) fn idle_cores(&self, py: Python<'_>) -> usize {
        let is_root = match self.levels.first().map(|level| &level.strand) {
            Some(Running::Strand(strand)) => strand.bind(py).borrow().is_root,
            _ => false,
        };
        let idle = self.promoter.get().idle_count();
        idle.saturating_sub(usize::from(is_root))
    }

    /// Others have computed the calls of the innermost strand with those handles: for the engine
    /// they have run in place. The handles of those that are tasks, or have ended; `None` if the
    /// strand was cancelled.
    pub(super) fn note_assisted(&self, tag: u32, handles: Vec<u32>) -> Option<Vec<u32>> {
        let (promoter, count) = (self.promoter.get(), handles.len());
        promoter.assists.count(count);
        promoter.begin_ahead(tag, handles);
        promoter.end_ahead(count)
    }
}
