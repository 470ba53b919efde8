//! The calls that a strand keeps and that may run early, and which of them do.
//!
//! It knows neither Python's part nor the promoter. Read next: `early.rs`, `given_early.rs`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::assist::Range;
use crate::future_state::FutureState;

/// Calls that run one after the other, at most.
const RUN_MAX: usize = 512;

/// Futures of calls that a strand has kept and that may run early, the oldest first. Some may be
/// tasks by now, or have ended.
pub(super) struct Row {
    pub(super) calls: VecDeque<Py<FutureState>>,
    /// Futures of those that may not, as they may wait.
    pub(super) others: VecDeque<Py<FutureState>>,
    pub(super) run: Option<Run>,
    /// Whether the next call is listed in any case: it is to run at once.
    pub(super) is_trial: bool,
    /// Calls that others compute, the oldest first.
    pub(super) given: VecDeque<GivenRow>,
    /// Whether others may compute some.
    pub(super) gives: bool,
    /// Time that each of the last ones took here, once that is known.
    pub(super) each: Option<Duration>,
}

/// Calls that run one after the other.
pub(super) struct Run {
    /// The place of the first one in the row.
    pub(super) first: usize,
    /// How many may run.
    pub(super) count: usize,
    /// How many have begun.
    pub(super) begun: usize,
    /// What the first of them have given.
    pub(super) values: Vec<Py<PyAny>>,
    /// Heartbeats before the first one.
    pub(super) beats: u64,
    /// When it began.
    pub(super) began: Instant,
}

/// Calls that others compute.
pub(super) struct GivenRow {
    /// All of them.
    pub(super) range: Range,
    /// The futures whose values have not come.
    pub(super) futures: VecDeque<Py<FutureState>>,
}

impl Default for Row {
    fn default() -> Row {
        Row {
            calls: VecDeque::new(),
            others: VecDeque::new(),
            run: None,
            is_trial: false,
            given: VecDeque::new(),
            gives: true,
            each: None,
        }
    }
}

impl Row {
    /// Chooses the calls of that function that run now, the newest alone or the oldest ones: the
    /// arguments of the first, and the handles of all.
    pub(super) fn choose(
        &mut self,
        function: &Bound<'_, PyAny>,
        is_newest: bool,
        beats: u64,
    ) -> Option<(Py<PyTuple>, Vec<u32>)> {
        let py = function.py();
        let (place, count) = match is_newest {
            true => (self.calls.len().checked_sub(1)?, 1),
            false => (0, RUN_MAX),
        };
        let first = self.calls.get(place)?.bind(py).borrow();
        let call = first.plain()?;
        if !call.function.is(function) {
            return None;
        }
        let same = self.calls.range(place..).take(count).map_while(|one| {
            let one = one.bind(py).borrow();
            let is_same = one.plain()?.function.is(&call.function);
            is_same.then_some(one.handle)
        });
        let handles: Vec<u32> = same.collect();
        let args = call.args.clone_ref(py);
        drop(first);
        self.run = Some(Run {
            first: place,
            count: handles.len(),
            begun: 1,
            values: Vec::new(),
            beats,
            began: Instant::now(),
        });
        Some((args, handles))
    }

    /// Removes what the strand does not keep any more, from both ends: the oldest that it keeps has
    /// the handle `oldest`.
    pub(super) fn trim(&mut self, py: Python<'_>, oldest: u32) -> Vec<Py<FutureState>> {
        let mut stale = Vec::new();
        let is_kept = |future: &Py<FutureState>| {
            let future = future.bind(py).borrow();
            future.handle >= oldest && future.may_be_kept()
        };
        for listed in [&mut self.calls, &mut self.others] {
            while listed.front().is_some_and(|one| !is_kept(one)) {
                stale.extend(listed.pop_front());
            }
            while listed.back().is_some_and(|one| !is_kept(one)) {
                stale.extend(listed.pop_back());
            }
        }
        stale
    }
}
