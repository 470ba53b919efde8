//! Workers that begin prefetched starts by themselves.
//!
//! Random choices decide whether a worker returns starts and whether it begins the next one. What
//! it received is compared with what the task is when it begins. It does not know which starts are
//! prefetched: the engine decides. Read next: `driver`.

use ciel_engine::{Begun, Caller, Event, Reply};
use ciel_graph::{self as graph, Ahead, Assignment, Entry, Output};
use ciel_node::{AttemptKey, Slot, WorkerKey};

use crate::line::exits_well;
use crate::world::World;

impl World<'_> {
    /// At random times a worker returns starts that a long task would keep waiting.
    pub(crate) fn give_back_starts(&mut self, worker: WorkerKey) {
        let starts = self.workers.entry(worker).or_default();
        if starts.is_empty() || !self.random.one_in(8) {
            return;
        }
        let first = self.random.below(starts.len());
        let gone: Vec<AttemptKey> = starts
            .drain(first..)
            .map(|ahead| attempt_of(&ahead.assignment))
            .collect();
        self.return_starts(worker, gone);
    }

    /// A task that waited, be it for no time, is followed by nothing that was sent before.
    pub(crate) fn give_all_back(&mut self, worker: WorkerKey) {
        let starts = self.workers.entry(worker).or_default();
        if !starts.is_empty() {
            let gone = starts
                .drain(..)
                .map(|ahead| attempt_of(&ahead.assignment))
                .collect();
            self.return_starts(worker, gone);
        }
    }

    /// Of starts that do not begin the engine receives the first: it covers those behind it.
    fn return_starts(&mut self, worker: WorkerKey, attempts: Vec<AttemptKey>) {
        self.submit(Event::PrefetchReturned { worker, attempts });
    }

    /// What a worker received to follow a task does not begin.
    pub(crate) fn forget_starts(&mut self, slot: Slot) {
        if let Slot::Worker(worker) = slot
            && let Some(starts) = self.workers.get_mut(&worker)
        {
            starts.clear();
        }
    }

    /// A task in a worker ends; perhaps the worker has begun the next one.
    pub(crate) fn end_in_worker(
        &mut self,
        worker: WorkerKey,
        attempt: AttemptKey,
        end: graph::Event,
    ) {
        let goes_on = gives_plain_values(&end) && !self.random.one_in(4);
        let starts = self.workers.get_mut(&worker).expect("it runs a task");
        let follower = match goes_on {
            true => starts.pop_front(),
            false => None,
        };
        if follower.is_none() {
            starts.clear();
        }
        let caller = Caller::Worker {
            worker,
            follows: follower.as_ref().map(|ahead| attempt_of(&ahead.assignment)),
            // Now and then more of it has come.
            is_last: starts.len() % 4 != 1,
        };
        let end = Some(end);
        let (reply, effects) = self.ask(Event::TurnEnded { attempt, end }, caller);
        let is_refused = reply == Reply::FollowerStopped;
        match reply {
            // It begins before the effects are performed: one of them may stop it.
            Reply::Begin(begun) => self.continue_in(worker, follower.as_ref(), *begun),
            Reply::FollowerStopped => {}
            reply => assert_eq!(reply, Reply::Nothing, "{attempt:?}"),
        }
        self.perform_all(effects);
        if is_refused {
            self.leave(attempt, Slot::Worker(worker));
        }
    }

    /// A worker runs the next task, which it may have begun by itself.
    fn continue_in(&mut self, worker: WorkerKey, follower: Option<&Ahead>, begun: Begun) {
        if let Some(ahead) = follower {
            self.followed += 1;
            assert_sent(ahead, &begun.assignment);
        }
        self.begin_in_worker(worker, begun);
    }
}

impl World<'_> {
    /// What was withdrawn is returned, if it has not begun.
    pub(crate) fn give_back_process(&mut self, attempt: AttemptKey) {
        if self.line.take(attempt) {
            self.submit(Event::ProcessReturned { attempt });
        }
    }

    /// Whoever starts processes is gone.
    pub(crate) fn lose_line(&mut self) {
        for attempt in self.line.lose() {
            self.submit(Event::ProcessReturned { attempt });
        }
    }

    /// A process ends that passes its slot on; false if nothing has begun there.
    pub(crate) fn end_as_process(&mut self, attempt: AttemptKey, end: &graph::Event) -> bool {
        if !exits_well(end) || self.random.one_in(8) {
            return false;
        }
        let Some(follows) = self.line.follow(attempt) else {
            return false;
        };
        let end = Some(end.clone());
        let caller = Caller::Process { follows };
        let (reply, effects) = self.ask(Event::TurnEnded { attempt, end }, caller);
        self.perform_all(effects);
        if reply == Reply::FollowerStopped {
            assert!(self.line.stop(attempt), "{follows:?} runs on");
            self.leave(attempt, Slot::Process);
        } else {
            assert_eq!(reply, Reply::Nothing, "{attempt:?}");
        }
        true
    }

    /// A process that has begun where another one has ended runs on.
    pub(crate) fn run_on(&mut self, assignment: Box<Assignment>) {
        let sent = self.line.confirm(&assignment);
        assert_sent(&sent, &assignment);
        self.passed_on += 1;
        self.begin(assignment, Slot::Process);
    }
}

/// A task is what was sent ahead: the same but for what was awaited, which is ready now.
pub(crate) fn assert_sent(ahead: &Ahead, now: &Assignment) {
    let sent = &ahead.assignment;
    let (Entry::Start(before), Entry::Start(known)) = (&sent.entry, &now.entry) else {
        panic!("only what has not run yet is prefetched");
    };
    assert_eq!(
        (&sent.label, sent.position, &sent.descriptor, sent.strand),
        (&now.label, now.position, &now.descriptor, now.strand)
    );
    let awaited = |handle| ahead.awaited.iter().any(|awaited| awaited.input == handle);
    let rest = known.iter().filter(|(handle, _)| !awaited(*handle));
    assert!(rest.eq(before), "{known:?} instead of {before:?}");
    assert_eq!(known.len(), before.len() + ahead.awaited.len());
}

pub(crate) fn attempt_of(assignment: &Assignment) -> AttemptKey {
    AttemptKey {
        task: assignment.task,
        number: assignment.attempt,
    }
}

/// Whether a task ends with values that its worker can hand on.
pub(crate) fn gives_plain_values(event: &graph::Event) -> bool {
    let graph::Event::TaskFinished { outputs, .. } = event else {
        return false;
    };
    let is_plain = |output: &Output| match output {
        Output::Value(value) => value.references.is_empty(),
        Output::Published | Output::Delegate(_) | Output::Passed => false,
    };
    outputs.iter().all(is_plain)
}
