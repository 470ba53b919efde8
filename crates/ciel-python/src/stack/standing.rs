//! The strands in Python of what has begun natively: they are made when somebody asks for them.
//!
//! It does not know the callers. Read next: `stack.rs`, `inside.rs`.

use pyo3::prelude::*;

use super::{Here, Level, Running, here, tasks};
use crate::inside::Inside;

/// Makes the strands of all that runs in this thread, if nobody has asked for them.
///
/// # Errors
/// Those of Python.
pub(crate) fn stand_all(py: Python<'_>) -> PyResult<()> {
    match here(py) {
        Some(stack) => top(&stack).map(drop),
        None => Ok(()),
    }
}

/// The innermost strand, made now if nobody has asked for it; `None` if none has its turn.
///
/// # Errors
/// Those of Python.
pub(super) fn top(stack: &Here<'_>) -> PyResult<Option<Py<PyAny>>> {
    // Nothing is borrowed meanwhile: a strand may be made.
    let count = stack.borrow().levels.len();
    match count {
        0 => Ok(None),
        count => strand_at(stack, count - 1).map(Some),
    }
}

/// The strand at that level, from 0; made now, with those below it, if nobody has asked for it.
pub(super) fn strand_at(stack: &Here<'_>, place: usize) -> PyResult<Py<PyAny>> {
    let py = stack.py();
    let known = |place: &usize| stack.borrow().levels[*place].strand.known(py);
    let first = (0..=place).rev().find(|place| known(place).is_some());
    let mut below = first.and_then(|place| known(&place));
    for place in first.map_or(0, |first| first + 1)..=place {
        let inside = match &stack.borrow().levels[place].strand {
            Running::Inside(inside) => Some(inside.clone_ref(py)),
            Running::Task(_) => None,
            Running::Strand(_) => unreachable!("such a strand is known"),
        };
        let Some(inside) = inside else {
            below = Some(tasks::stand(stack)?);
            continue;
        };
        let (stand, switch, is_called, elapsed_s) = {
            let stack = stack.borrow();
            let promoter = stack.promoter.get();
            let beats = promoter.beats() - inside.bind(py).borrow().begun_beats;
            let switch = stack.levels[place - 1].switch.clone_ref(py);
            let elapsed_s = promoter.period().as_secs_f64() * beats as f64;
            let is_called = stack.levels[place].is_called;
            (stack.stand.clone_ref(py), switch, is_called, elapsed_s)
        };
        below = Some(Inside::stand(
            inside.bind(py),
            &stand,
            (below, switch, is_called),
            elapsed_s,
        )?);
    }
    Ok(below.expect("there is a strand at that level"))
}

impl Level {
    /// Its strand may have further turns, in the same greenlet.
    pub(super) fn leave_room(&mut self, py: Python<'_>) {
        let strand = match &self.strand {
            Running::Strand(strand) => Some(strand.clone_ref(py)),
            Running::Inside(inside) => {
                let inside = inside.bind(py).borrow();
                inside.counted.as_ref().map(|strand| strand.clone_ref(py))
            }
            Running::Task(_) => None,
        };
        if let Some(strand) = strand {
            strand.bind(py).borrow_mut().room = self.room.take();
        }
    }
}
