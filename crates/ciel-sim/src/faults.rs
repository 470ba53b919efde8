//! Faults: processes and workers that die, jobs that are cancelled.
//!
//! Nothing is lost that would change what the serial program gives. It does not know how the engine
//! itself is lost. Read next: `crash`.

use ciel_engine::Event;
use ciel_graph as graph;
use ciel_model::{Failure, FailureKind, Label, Name, TaskKey};
use ciel_node::{AttemptKey, Slot, WorkerKey};

use crate::kept::Note;
use crate::program::{Act, Fault, Kind};
use crate::script::Script;
use crate::world::{Process, World};

impl World<'_> {
    pub(crate) fn strike(&mut self, fault: Fault) {
        if self.ending.is_some() && fault != Fault::KillEngine {
            return;
        }
        match fault {
            Fault::KillProcess => {
                let victims: Vec<AttemptKey> = self.in_processes();
                if !victims.is_empty() {
                    let victim = victims[self.random.below(victims.len())];
                    self.kill_process(victim);
                }
            }
            Fault::KillWorker => {
                let victims: Vec<WorkerKey> = self.workers.keys().copied().collect();
                if !victims.is_empty() {
                    let victim = victims[self.random.below(victims.len())];
                    self.lose_worker(victim);
                }
            }
            Fault::KillNode => {
                self.lose_line();
                let workers: Vec<WorkerKey> = self.workers.keys().copied().collect();
                workers
                    .into_iter()
                    .for_each(|worker| self.lose_worker(worker));
                self.in_processes()
                    .into_iter()
                    .for_each(|attempt| self.kill_process(attempt));
            }
            Fault::KillEngine => self.kill_engine(),
            Fault::RollBack(index) => self.roll_back(index),
            Fault::CancelJob => self.cancel_job(),
        }
    }

    fn in_processes(&self) -> Vec<AttemptKey> {
        let living = self
            .processes
            .iter()
            .filter(|(_, process)| process.slot == Slot::Process && !process.stopped);
        living.map(|(attempt, _)| *attempt).collect()
    }

    /// Whether the oracle can still say what the job does when this task loses its process.
    fn may_lose(&self, task: TaskKey, script: &Script) -> bool {
        let noted = self.kept.noted.losses.get(&task).copied().unwrap_or(0);
        let losses = noted.max(self.engine.graph().losses_of(task));
        let definition = &self.scenario.tasks[script.definition];
        let process = definition.kind == Kind::Process;
        // Children of an attempt whose output was released cannot be rolled back.
        let spawns = definition
            .acts
            .iter()
            .any(|act| matches!(act, Act::Spawn(..)));
        let held = !definition.live || definition.retries > 0;
        match definition.replayable || (process && (held || !spawns)) {
            true => losses < ciel_model::limits::LOSSES_MAX,
            false if process => false,
            false => losses < self.scenario.spare_attempts(script.definition),
        }
    }

    fn kill_process(&mut self, attempt: AttemptKey) {
        if self.may_lose(attempt.task, &self.processes[&attempt].script) {
            self.processes.remove(&attempt);
            self.lose(attempt);
        }
    }

    fn lose_worker(&mut self, worker: WorkerKey) {
        if self.may_kill(worker) && self.workers.contains_key(&worker) {
            self.kill_worker(worker);
        }
    }

    /// Whether the oracle can still say what the job does when this worker dies.
    pub(crate) fn may_kill(&self, worker: WorkerKey) -> bool {
        let busy = |process: &Process| process.slot == Slot::Worker(worker);
        self.processes.iter().all(|(attempt, process)| {
            !busy(process) || process.stopped || self.may_lose(attempt.task, &process.script)
        })
    }

    /// The worker is gone; so is what ran in it, and the node reports what was parked there.
    pub(crate) fn kill_worker(&mut self, worker: WorkerKey) {
        self.workers.remove(&worker);
        self.copies.on_worker_died(worker);
        let victims: Vec<AttemptKey> = self
            .processes
            .iter()
            .filter(|(_, process)| process.slot == Slot::Worker(worker))
            .map(|(attempt, _)| *attempt)
            .collect();
        self.submit(Event::WorkerGone { worker });
        for attempt in victims {
            let process = self.processes.remove(&attempt);
            match process.is_some_and(|process| !process.stopped) {
                true => self.lose(attempt),
                false => self.submit(Event::TurnEnded { attempt, end: None }),
            }
        }
    }

    fn lose(&mut self, attempt: AttemptKey) {
        self.kept.note(Note::Lost(attempt.task));
        let failure = Failure::new(FailureKind::WorkerLost, self.label(attempt.task), "it died");
        let AttemptKey { task, number } = attempt;
        let end = Some(graph::Event::TaskLost {
            task,
            attempt: number,
            failure: Box::new(failure),
        });
        self.submit(Event::TurnEnded { attempt, end });
    }

    pub(crate) fn label(&self, task: TaskKey) -> Label {
        let view = self.engine.graph().view(task);
        view.map_or(
            Label {
                what: "gone".into(),
                name: Name(0),
            },
            |view| view.label,
        )
    }

    /// Undoes what a strand did from some action on: of all that can be undone, the one of that
    /// number.
    fn roll_back(&mut self, index: usize) {
        self.release_output();
        let graph = self.engine.graph();
        let mut allowed = Vec::new();
        for task in graph.all() {
            let next = graph.next_action(task).unwrap_or(0);
            let least = self.engine.state().rollback_min(task).unwrap_or(u64::MAX);
            allowed.extend((least..=next).map(|to| (task, to)));
        }
        if allowed.is_empty() {
            return;
        }
        let (task, to) = allowed[index % allowed.len()];
        self.rolled_back += u64::from(Some(to) != graph.next_action(task));
        self.kept.note(Note::RolledBack(self.label(task).name, to));
        self.copies.undo(task);
        self.submit(graph::Event::TaskRolledBack { task, to });
    }

    fn cancel_job(&mut self) {
        let origin = Label {
            what: "user".into(),
            name: Name(0),
        };
        let failure = Failure::new(FailureKind::Cancelled, origin, "interrupted");
        self.submit(graph::Event::JobCancelled {
            failure: Box::new(failure),
        });
    }
}
