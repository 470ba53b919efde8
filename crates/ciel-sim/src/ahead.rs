//! Workers that go on by themselves: what they are told ahead, and what becomes of it.
//!
//! The runtime's rules with one start for each worker instead of a line of them: chance says
//! whether something is told, given back, or followed. What was told is compared with what the task
//! is when it begins. It does not know what a worker runs. Read next: `driver`.

use std::collections::BTreeMap;

use ciel_graph::{Ahead, Assignment, Entry, Event, Output};
use ciel_node::{Place, Run};

use crate::world::World;

/// Starts that were told ahead and have not begun.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// By the task that they may follow.
    told: BTreeMap<Run, Ahead>,
    /// What a worker goes on with right now, and whether it was offered.
    follower: Option<(Run, bool)>,
    /// How often a worker went on by itself.
    pub(crate) followed: u64,
}

impl World<'_> {
    /// A task runs in a worker; perhaps that is told what may follow it, or gives that back.
    pub(crate) fn tell_ahead(&mut self, run: Run) {
        if self.scenario.serial || !self.scenario.ahead {
            return;
        }
        if self.line.told.contains_key(&run) {
            if self.random.one_in(8)
                && let Some(returned) = self.forget_ahead(run)
            {
                self.tell_node(returned);
            }
            return;
        }
        let graph = self.coordinator.graph();
        let mut ahead = match self.node.queued() {
            0 => graph.ahead(&[run.task]),
            _ => None,
        };
        if ahead.is_none()
            && let Some(lent) = self.node.lend(graph.order(), run)
        {
            ahead = graph.preview(lent.task, lent.attempt);
            if ahead.is_none() {
                self.tell_node(ciel_node::Event::TaskReturned { run: lent });
            }
        }
        if let Some(ahead) = ahead {
            self.trace.add(self.now, "told ahead", &ahead);
            self.line.told.insert(run, ahead);
        }
    }

    /// What was told to follow `run` does not begin there: the node is to hear that it is back.
    pub(crate) fn forget_ahead(&mut self, run: Run) -> Option<ciel_node::Event> {
        let ahead = self.line.told.remove(&run)?;
        let run = run_of(&ahead.assignment);
        Some(ciel_node::Event::TaskReturned { run })
    }

    /// Whether that offer is of what a worker has begun already.
    pub(crate) fn is_begun(&mut self, run: Run) -> bool {
        match &mut self.line.follower {
            Some((next, is_offered)) if *next == run => {
                *is_offered = true;
                true
            }
            _ => false,
        }
    }

    /// A task ends with `event`, and perhaps its worker goes on by itself; false if it does not.
    pub(crate) fn end_followed(&mut self, run: Run, event: &Event) -> bool {
        let Some(ahead) = self.line.told.remove(&run) else {
            return false;
        };
        let goes_on = gives_plain_values(event) && !self.random.one_in(4);
        let next = run_of(&ahead.assignment);
        if !goes_on {
            self.tell_node(ciel_node::Event::TaskReturned { run: next });
            return false;
        }
        self.node.hold(true);
        self.line.follower = Some((next, false));
        self.submit(event.clone());
        self.node.hold(false);
        let is_offered = self.line.follower.take() == Some((next, true));
        let is_ready = self
            .coordinator
            .graph()
            .awaits_place(next.task, next.attempt);
        if !(is_ready && (is_offered || self.node.is_lent(next))) {
            // Its worker is told to stop it at once, and leaves the place.
            self.tell_node(ciel_node::Event::TaskLeft { run, parked: false });
            return true;
        }
        self.line.followed += 1;
        let now = self.coordinator.graph().preview(next.task, next.attempt);
        if let Some(now) = now {
            assert_like(&ahead, &now.assignment);
        }
        self.tell_node(ciel_node::Event::TaskFollowed { run, next });
        true
    }

    /// A worker is gone, with all that it was told.
    pub(crate) fn forget_line_of(&mut self, place: Place) {
        let processes = &self.processes;
        self.line.told.retain(|run, _| {
            processes
                .get(run)
                .is_some_and(|process| process.place != place)
        });
    }

    /// Nobody remembers what was told.
    pub(crate) fn forget_all_lines(&mut self) {
        self.line.told.clear();
        self.line.follower = None;
    }
}

fn run_of(assignment: &Assignment) -> Run {
    Run {
        task: assignment.task,
        attempt: assignment.attempt,
    }
}

/// Whether a task ends with values that its worker can hand on.
fn gives_plain_values(event: &Event) -> bool {
    let Event::TaskFinished { outputs, .. } = event else {
        return false;
    };
    let is_plain = |output: &Output| match output {
        Output::Value(value) => value.references.is_empty(),
        Output::Published | Output::Delegate(_) => false,
    };
    outputs.iter().all(is_plain)
}

/// A task is what was told of it ahead: the same but for what was awaited, which is there now.
fn assert_like(ahead: &Ahead, now: &Assignment) {
    let told = &ahead.assignment;
    let (Entry::Start(before), Entry::Start(known)) = (&told.entry, &now.entry) else {
        panic!("only what has not run yet is told ahead");
    };
    assert_eq!(
        (&told.label, told.position, &told.descriptor, told.strand),
        (&now.label, now.position, &now.descriptor, now.strand)
    );
    let awaited = |handle| ahead.awaited.iter().any(|awaited| awaited.input == handle);
    let rest = known.iter().filter(|(handle, _)| !awaited(*handle));
    assert!(rest.eq(before), "{known:?} instead of {before:?}");
    assert_eq!(known.len(), before.len() + ahead.awaited.len());
}
