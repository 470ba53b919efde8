//! Which tasks take part in results that are kept across runs.
//!
//! It does not know how a result is looked up. Read next: `kept`.

use ciel_model::Keeping;
use ciel_store::{RunEntry, RunState};
use ciel_view::{RunDescription, RunEndRecord};

/// Which tasks of a run take part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeepRule {
    /// Results are kept at all.
    pub(crate) keeps: bool,
    /// Tasks that do not say it themselves take what is kept.
    pub(crate) takes: bool,
}

impl KeepRule {
    /// For a task of an executor whose results may be kept or not; `keep` and `pure` are what its
    /// program says about it.
    pub(crate) fn of_task(
        self,
        is_keepable: bool,
        outputs: u32,
        (keep, pure): (Option<bool>, Option<bool>),
    ) -> Keeping {
        let is_refused = keep == Some(false) || pure == Some(false);
        if !self.keeps || !is_keepable || outputs == 0 || is_refused {
            return Keeping::Never;
        }
        match self.takes || keep == Some(true) || pure == Some(true) {
            true => Keeping::Takes,
            false => Keeping::Keeps,
        }
    }
}

/// Whether the latest run of a job that has left a trace did not end well; `job` knows no code.
pub(crate) fn has_ended_badly(runs: &[RunEntry], job: &str) -> bool {
    let of_job = |run: &&RunEntry| {
        let description = RunDescription::read(run);
        description.is_some_and(|description| description.job == job)
    };
    let dead = runs.iter().rev().filter(|run| is_dead(run));
    dead.take(RUNS_LOOKED_AT).find(of_job).is_some_and(|run| {
        let ending = run.ending().ok().flatten();
        let ending = ending.and_then(|bytes| serde_json::from_slice::<RunEndRecord>(&bytes).ok());
        ending.is_none_or(|ending| ending.failure.is_some())
    })
}

/// Latest runs of a folder among which one of the job is looked for.
const RUNS_LOOKED_AT: usize = 100;

fn is_dead(run: &RunEntry) -> bool {
    match run.state {
        RunState::Alive { .. } => false,
        RunState::Unended | RunState::Ended => true,
    }
}
