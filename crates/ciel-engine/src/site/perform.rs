//! What home and node want of a site, one message or action each.
//!
//! Read next: `succession`.

use ciel_graph::{self as graph, Assignment};
use ciel_model::{Failure, FailureKind, Handle};
use ciel_node::{self as node, AttemptKey, Slot, WorkerKey};

use super::{Call, Site, TakenSlot};
use crate::event::{Begun, Effect, Reply, attempt_of};
use crate::message::{Offer, ToHome, ToSite};

impl Site {
    pub(crate) fn on_message(&mut self, call: &mut Call<'_>, message: ToSite) {
        match message {
            ToSite::Offer(offer) => {
                // A worker has begun it by itself: the home says whether it stays there.
                if !self.followers.contains_key(&offer.attempt) {
                    self.for_node.push(offered(offer));
                }
            }
            ToSite::Relabel { attempt, label } => {
                let run = attempt;
                self.for_node
                    .push(node::Event::TaskRelabeled { run, label });
            }
            ToSite::Withdraw { attempt } => self.on_withdrawn(call, attempt),
            ToSite::Begin(assignment) => self.begin(call, assignment),
            ToSite::Refuse { attempt } => self.on_refused(call, attempt),
            ToSite::Prefetch { behind, starts } => self.on_prefetch(call, behind, starts),
            ToSite::Continue {
                attempt,
                answers,
                ended,
            } => {
                if let Some(slot) = self.slots.get_mut(&attempt) {
                    slot.is_asking = false;
                    call.answer(attempt, Reply::Continue { answers, ended });
                }
            }
            ToSite::Recalled { attempt, known } => {
                if self.slots.contains_key(&attempt) {
                    call.answer(attempt, Reply::Recalled(known));
                }
            }
            ToSite::Notify { attempt, handle } => self.notify_watcher(call, attempt, handle),
            ToSite::Suspend { attempt, parked } => self.suspend(call, attempt, parked),
            ToSite::Stop { attempt } => self.stop(call, attempt),
            ToSite::JobEnded => {
                self.job_ended = true;
                self.note_quiet(call);
            }
        }
    }

    pub(super) fn perform_on_node(&mut self, call: &mut Call<'_>, action: node::Action) {
        use node::Action;
        match action {
            Action::Place { run, place } => self.place(call, run, place),
            Action::NextTurn { run } => self.next_turn(call, run),
            Action::Refuse { run, lacking } => call.to_home.push(ToHome::TooSmall {
                attempt: run,
                lacking,
            }),
            Action::StartWorker { worker, pool } => {
                call.effects.push(Effect::StartWorker { worker, pool })
            }
            Action::StopWorker { worker } => {
                self.lines.remove(&worker);
                call.effects.push(Effect::StopWorker { worker });
            }
            Action::DropParked { worker, task } => {
                call.effects.push(Effect::DropParked { worker, task })
            }
            Action::ContinuationLost { task } => {
                call.to_home.push(ToHome::ContinuationLost { task })
            }
        }
    }

    /// A task has its slot, and begins if the home agrees. A script has one only when a thread
    /// takes it up, so that it knows all that is ready by then; one that follows another task in
    /// its worker has begun already.
    fn place(&mut self, call: &mut Call<'_>, run: AttemptKey, slot: Slot) {
        if self.slots.contains_key(&run) {
            return;
        }
        match slot {
            Slot::Thread => call.effects.push(Effect::TurnOffered { run }),
            Slot::Process | Slot::Worker(_) => self.take_slot(call, run, slot),
        }
    }

    fn take_slot(&mut self, call: &mut Call<'_>, run: AttemptKey, slot: Slot) {
        self.slots.insert(run, TakenSlot::new(slot));
        let attempt = run;
        call.to_home.push(ToHome::Placed { attempt, slot });
    }

    /// One that was withdrawn meanwhile has left its slot.
    pub(super) fn on_turn_taken(&mut self, call: &mut Call<'_>, run: AttemptKey) {
        if self.node.is_placed(run) {
            call.asks = Some(run);
            self.take_slot(call, run, Slot::Thread);
        }
    }

    fn on_withdrawn(&mut self, call: &mut Call<'_>, run: AttemptKey) {
        let task = run.task;
        call.effects.push(Effect::DropScript { task });
        self.slots.remove(&run);
        self.for_node.push(node::Event::TaskWithdrawn { run });
    }

    /// An attempt that has a slot does not begin in it. If it has begun, the home has agreed to
    /// another slot of the same site.
    fn on_refused(&mut self, call: &mut Call<'_>, run: AttemptKey) {
        if let Some(before) = self.followers.remove(&run) {
            return self.refuse_follower(call, before);
        }
        let slot = self.slots.get(&run);
        if slot.is_none_or(|slot| !slot.has_begun) {
            self.free_slot(call, run);
        }
    }

    /// An attempt of which nothing is in a slot any more has lost its worker meanwhile.
    fn begin(&mut self, call: &mut Call<'_>, assignment: Box<Assignment>) {
        let run = attempt_of(&assignment);
        self.pass_slot_on(run);
        let Some(slot) = self.slots.get_mut(&run) else {
            return call.to_home.push(lost(&assignment));
        };
        slot.has_begun = true;
        let ahead = Vec::new();
        match slot.slot {
            Slot::Thread => {
                let begun = Box::new(Begun { assignment, ahead });
                call.answer(run, Reply::Begin(begun));
            }
            Slot::Process => call.effects.push(Effect::StartProcess(assignment)),
            Slot::Worker(worker) => {
                self.note_begin(call.now, worker);
                call.begun.push((worker, Begun { assignment, ahead }));
            }
        }
    }

    /// Only workers watch.
    fn notify_watcher(&self, call: &mut Call<'_>, run: AttemptKey, handle: Handle) {
        if let Some(Slot::Worker(worker)) = self.place_of(run) {
            call.effects.push(Effect::NotifyWatcher {
                worker,
                run,
                handle,
            });
        }
    }

    pub(super) fn on_task_preempted(&mut self, run: AttemptKey) {
        if let Some(slot) = self.slots.get_mut(&run) {
            slot.is_preempted = true;
        }
        self.for_node.push(node::Event::TaskPreempted { run });
    }

    /// A script that was stopped while it was preempted has left.
    fn next_turn(&mut self, call: &mut Call<'_>, run: AttemptKey) {
        if let Some(slot) = self.slots.get_mut(&run) {
            slot.is_preempted = false;
            call.effects.push(Effect::NextTurn { run });
        }
    }

    /// What ran in the worker is ended apart, but for what has not begun in it.
    pub(super) fn on_worker_gone(&mut self, call: &mut Call<'_>, worker: WorkerKey) {
        self.lines.remove(&worker);
        self.for_node.push(node::Event::WorkerGone { worker });
        let waits = |(run, slot): (&AttemptKey, &TakenSlot)| {
            let waits = slot.slot == Slot::Worker(worker) && !slot.has_begun;
            waits.then_some(*run)
        };
        let mut waiting: Vec<AttemptKey> = self.slots.iter().filter_map(waits).collect();
        waiting.sort_unstable();
        for run in waiting {
            self.free_slot(call, run);
        }
    }

    /// The graph is done with an attempt that runs or waits.
    fn stop(&mut self, call: &mut Call<'_>, run: AttemptKey) {
        let task = run.task;
        let Some(slot) = self.slots.get_mut(&run) else {
            if call.suspended == Some(run) {
                call.answer(run, Reply::Stopped);
            }
            call.effects.push(Effect::DropScript { task });
            return self.for_node.push(node::Event::TaskForgotten { task });
        };
        if call.forget_begun(run) {
            return self.free_slot(call, run);
        }
        slot.is_stopping = true;
        let is_asking = slot.is_asking;
        match slot.slot {
            Slot::Thread if slot.is_preempted => {
                call.effects.push(Effect::DropScript { task });
                return self.free_slot(call, run);
            }
            Slot::Thread => {}
            Slot::Process => call.effects.push(Effect::StopProcess(run)),
            Slot::Worker(worker) => call.effects.push(Effect::StopInWorker { worker, run }),
        }
        if is_asking {
            call.answer(run, Reply::Stopped);
            self.free_slot(call, run);
        }
    }
}

fn offered(offer: Offer) -> node::Event {
    node::Event::TaskOffered {
        run: offer.attempt,
        label: offer.label,
        class: offer.class,
        resources: offer.resources,
        resumed: offer.replay_us,
    }
}

fn lost(assignment: &Assignment) -> ToHome {
    let label = assignment.label.clone();
    let words = "its worker ended before the task began";
    ToHome::Acted(graph::Event::TaskLost {
        task: assignment.task,
        attempt: assignment.attempt,
        failure: Failure::new(FailureKind::WorkerLost, label, words),
    })
}
