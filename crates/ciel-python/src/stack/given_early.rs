//! Calls of a list that idle workers compute, while their strand runs or spawns others.
//!
//! The oldest calls that may run early are given away. It does not know who computes. Read next:
//! `early.rs`, `given.rs`, `assist.rs`.

use std::collections::VecDeque;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::given::header_of;
use super::row::{GivenRow, Row};
use super::{Here, Stack};
use crate::assist::{Given, Range, values_of, written};
use crate::function::Function;
use crate::future_state::FutureState;

/// Calls that are given away at once, at most.
const SHARE_MAX: usize = 1024;

/// Tries to write fewer calls, if they are too long.
const TRIES: usize = 4;

/// Takes the values that have come for calls of the innermost strand. What others compute no more
/// is the strand's again; if it has nothing else to run, so are those that nobody has begun.
///
/// # Errors
/// Those of Python, which has no memory.
pub(super) fn look(stack: &Here<'_>) -> PyResult<()> {
    let py = stack.py();
    let given = match stack.borrow_mut().row() {
        Some(row) if !row.given.is_empty() => std::mem::take(&mut row.given),
        _ => return Ok(()),
    };
    // Nothing is borrowed while values are read.
    let mut left = VecDeque::with_capacity(given.len());
    for mut one in given {
        let found = one.range.look();
        for part in &found.parts {
            let values = values_of(py, part)?;
            receive(stack, &mut one, &values);
        }
        match found.is_over {
            true => keep_again(stack, one, found.has_failed),
            false => left.push_back(one),
        }
    }
    if stack
        .borrow_mut()
        .row()
        .is_some_and(|row| row.calls.is_empty())
    {
        withdraw(stack, &mut left);
    }
    if let Some(row) = stack.borrow_mut().row() {
        row.given.append(&mut left);
    }
    Ok(())
}

/// The next calls of a range have those values.
fn receive(stack: &Here<'_>, one: &mut GivenRow, values: &Bound<'_, PyList>) {
    let py = stack.py();
    let count = values.len().min(one.futures.len());
    let futures: Vec<_> = one.futures.drain(..count).collect();
    let handles = futures.iter().map(|one| one.bind(py).borrow().handle);
    let tasks = {
        let stack = stack.borrow();
        let Some((_, tag, _, _)) = stack.innermost(py) else {
            return;
        };
        stack.note_assisted(tag, handles.collect())
    };
    let Some(tasks) = tasks else {
        return;
    };
    for (future, value) in futures.iter().zip(values) {
        // Of one that is a task by now the engine has a result, which a replay knows.
        let future = future.bind(py);
        if !tasks.contains(&future.borrow().handle) && future.borrow().plain().is_some() {
            FutureState::end(future, &value, false);
        }
    }
}

/// The calls of a range whose values have not come are the strand's again.
fn keep_again(stack: &Here<'_>, one: GivenRow, has_failed: bool) {
    let GivenRow { range, futures } = one;
    drop(range);
    if let Some(row) = stack.borrow_mut().row() {
        row.gives &= !has_failed;
        for future in futures.into_iter().rev() {
            row.calls.push_front(future);
        }
    }
}

fn withdraw(stack: &Here<'_>, given: &mut VecDeque<GivenRow>) {
    let Some(mut one) = given.pop_front() else {
        return;
    };
    let count = one.range.withdraw().min(one.futures.len());
    if count == 0 {
        return keep_again(stack, one, false);
    }
    let last = one.futures.split_off(one.futures.len() - count);
    given.push_front(one);
    if let Some(row) = stack.borrow_mut().row() {
        row.calls = last;
    }
}

/// Gives calls of the innermost strand away, while cores are idle and that is worth it: of the
/// function of the oldest one, which Python has looked at, and which it is to call for the next
/// ones, if these are of that function. That one; `None` if there is no call.
///
/// # Errors
/// As `look`.
pub(super) fn give(stack: &Here<'_>) -> PyResult<Option<Py<Function>>> {
    let py = stack.py();
    let Some(function) = stack.borrow_mut().first_function(py) else {
        return Ok(None);
    };
    loop {
        let count = stack.borrow_mut().share(py);
        if count == 0 || !give_range(stack, &function, count)? {
            return Ok(Some(function));
        }
    }
}

/// Gives the oldest calls away, at most so many; false if they are not of the function, or are too
/// long.
fn give_range(stack: &Here<'_>, function: &Py<Function>, mut count: usize) -> PyResult<bool> {
    let py = stack.py();
    let Some(header) = header_of(&function.bind(py).borrow()) else {
        return Ok(false);
    };
    for _ in 0..TRIES {
        let arguments = stack.borrow_mut().arguments_of(function, py, count);
        if arguments.is_empty() {
            break;
        }
        count = arguments.len();
        let bytes = written(&PyList::new(py, arguments)?)?;
        let given = Given {
            header: &header,
            arguments: bytes.as_bytes(),
            count,
        };
        let mut stack = stack.borrow_mut();
        let board = stack.promoter.get().assists.board().cloned();
        if let Some(range) = board.and_then(|board| Range::give(&board, &given))
            && let Some(row) = stack.row()
        {
            let futures = row.calls.drain(..count.min(row.calls.len())).collect();
            row.given.push_back(GivenRow { range, futures });
            return Ok(true);
        }
        count /= 2;
    }
    Ok(false)
}

impl Stack {
    /// The calls of the innermost strand that may run early.
    fn row(&mut self) -> Option<&mut Row> {
        let row = self.levels.last_mut()?.row.as_mut()?;
        row.run.is_none().then_some(row)
    }

    /// How many of its oldest calls are to be given away.
    fn share(&mut self, py: Python<'_>) -> usize {
        let cores = self.idle_cores(py);
        let Some(row) = self.row() else {
            return 0;
        };
        let (Some(each), true) = (row.each, row.gives) else {
            return 0;
        };
        let (count, ranges) = (row.calls.len(), row.given.len());
        let assists = &self.promoter.get().assists;
        assists.share_of(count, each, cores, ranges).min(SHARE_MAX)
    }

    /// The function of its oldest call.
    fn first_function(&mut self, py: Python<'_>) -> Option<Py<Function>> {
        let first = self.row()?.calls.front()?.bind(py).borrow();
        Some(first.plain()?.function.clone_ref(py))
    }

    /// The arguments of as many of its oldest calls as are of the function, at most `count`.
    fn arguments_of(
        &mut self,
        function: &Py<Function>,
        py: Python<'_>,
        count: usize,
    ) -> Vec<Py<PyTuple>> {
        let Some(row) = self.row() else {
            return Vec::new();
        };
        let same = row.calls.iter().take(count).map_while(|one| {
            let one = one.bind(py).borrow();
            let call = one.plain()?;
            call.function.is(function).then(|| call.args.clone_ref(py))
        });
        same.collect()
    }
}
