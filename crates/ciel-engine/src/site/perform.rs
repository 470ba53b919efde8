//! What home and node want of a site, one message or action each.
//!
//! Read next: `succession`.

use ciel_graph::{self as graph, Assignment, Entry};
use ciel_model::{Failure, FailureKind, Name};
use ciel_node::{self as node, AttemptKey, Slot, WorkerKey};

use super::{Call, Site, TakenSlot};
use crate::event::{Begun, Effect, Reply, attempt_of};
use crate::message::{Notice, Offer, ToHome, ToSite};

impl Site {
    pub(crate) fn on_message(&mut self, call: &mut Call<'_>, message: ToSite) {
        match message {
            ToSite::Offer(offer) => {
                // A worker has begun it by itself: the home decides whether it stays there.
                if !self.followers.contains_key(&offer.attempt) {
                    let (attempt, begun_in) = (offer.attempt, offer.begun_in);
                    self.for_node.push_back(offered(*offer));
                    if let Some(parent) = begun_in {
                        self.reserve_in(parent, attempt);
                    }
                }
            }
            ToSite::Relabel { attempt, label } => {
                self.for_node
                    .push_back(node::Event::TaskRelabeled { attempt, label });
            }
            ToSite::ReaderWaits { attempt: producer } => {
                self.for_node
                    .push_back(node::Event::ReaderWaits { producer });
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
                    self.return_begun(attempt);
                }
            }
            ToSite::Recalled { attempt, known } => {
                if self.slots.contains_key(&attempt) {
                    call.answer(attempt, Reply::Recalled(known));
                }
            }
            ToSite::ReadOn { attempt } => {
                if self.slot_of(attempt) == Some(Slot::Process) {
                    call.effects.push(Effect::ReadOn(attempt));
                }
            }
            ToSite::Notify { attempt, notice } => self.notify_watcher(call, attempt, notice),
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
            Action::Place { attempt, slot } => self.place(call, attempt, slot),
            Action::NextTurn { attempt } => self.next_turn(call, attempt),
            Action::Refuse { attempt, lacking } => {
                call.to_home.push(ToHome::TooSmall { attempt, lacking })
            }
            Action::StartWorker { worker, pool } => {
                call.effects.push(Effect::StartWorker { worker, pool })
            }
            Action::StopWorker { worker } => {
                self.lines.remove(&worker);
                call.effects.push(Effect::StopWorker { worker });
            }
            Action::DropParked {
                worker,
                task,
                moves,
            } => call.effects.push(Effect::DropParked {
                worker,
                task,
                moves,
            }),
            Action::ContinuationLost { task } => {
                call.to_home.push(ToHome::ContinuationLost { task })
            }
            Action::ShrinkStore { bytes } => call.effects.push(Effect::ShrinkStore { bytes }),
            Action::GrowStore { bytes } => call.effects.push(Effect::GrowStore { bytes }),
        }
    }

    /// A task has its slot, and begins if the home agrees. A script has one only when a thread
    /// takes it up, so that it knows all that is ready by then; one that follows another task in
    /// its worker has begun already.
    fn place(&mut self, call: &mut Call<'_>, attempt: AttemptKey, slot: Slot) {
        if self.slots.contains_key(&attempt) {
            return;
        }
        match slot {
            Slot::Thread => call.effects.push(Effect::TurnOffered { attempt }),
            Slot::Process | Slot::Worker(_) => self.take_slot(call, attempt, slot),
        }
    }

    fn take_slot(&mut self, call: &mut Call<'_>, attempt: AttemptKey, slot: Slot) {
        self.slots.insert(attempt, TakenSlot::new(slot));
        call.to_home.push(ToHome::Placed { attempt, slot });
    }

    /// One that was withdrawn meanwhile has left its slot.
    pub(super) fn on_turn_taken(&mut self, call: &mut Call<'_>, attempt: AttemptKey) {
        if self.node.is_placed(attempt) {
            call.asks = Some(attempt);
            self.take_slot(call, attempt, Slot::Thread);
        }
    }

    fn on_withdrawn(&mut self, call: &mut Call<'_>, attempt: AttemptKey) {
        let task = attempt.task;
        call.effects.push(Effect::DropScript { task });
        self.withdraw_process(call, attempt);
        self.return_begun(attempt);
        self.begun.retain(|_, child| *child != attempt);
        self.slots.remove(&attempt);
        self.for_node
            .push_back(node::Event::TaskWithdrawn { attempt });
    }

    /// An attempt that has a slot does not begin in it. If it has begun, the home has agreed to
    /// another slot of the same site.
    fn on_refused(&mut self, call: &mut Call<'_>, attempt: AttemptKey) {
        if let Some(before) = self.followers.remove(&attempt) {
            return self.refuse_follower(call, before);
        }
        let slot = self.slots.get(&attempt);
        if slot.is_none_or(|slot| !slot.has_begun) {
            self.free_slot(call, attempt);
        }
    }

    /// An attempt of which nothing is in a slot any more has lost its worker meanwhile.
    fn begin(&mut self, call: &mut Call<'_>, assignment: Box<Assignment>) {
        let attempt = attempt_of(&assignment);
        self.settle_follower(call, &assignment);
        let Some(slot) = self.slots.get_mut(&attempt) else {
            return call.to_home.push(lost(&assignment));
        };
        slot.has_begun = true;
        let ahead = Vec::new();
        match slot.slot {
            Slot::Thread => {
                let begun = Box::new(Begun { assignment, ahead });
                call.answer(attempt, Reply::Begin(begun));
            }
            Slot::Process if slot.is_follower => {
                self.note_process(call, &assignment);
                call.effects.push(Effect::ProcessFollowed(assignment));
            }
            Slot::Process => {
                self.note_process(call, &assignment);
                call.effects.push(Effect::StartProcess(assignment));
            }
            Slot::Worker(worker) => {
                self.note_begin(call.now, worker);
                call.begun.push((worker, Begun { assignment, ahead }));
            }
        }
    }

    /// What a worker has begun by itself began from its start: if the attempt has run elsewhere
    /// meanwhile, and has waited there, it does not continue so.
    fn settle_follower(&mut self, call: &mut Call<'_>, assignment: &Assignment) {
        let attempt = attempt_of(assignment);
        if matches!(assignment.entry, Entry::Start(_)) {
            self.pass_slot_on(attempt);
        } else if let Some(before) = self.followers.remove(&attempt) {
            self.refuse_follower(call, before);
        }
    }

    /// Only workers watch.
    fn notify_watcher(&self, call: &mut Call<'_>, attempt: AttemptKey, notice: Notice) {
        if let Some(Slot::Worker(worker)) = self.slot_of(attempt) {
            call.effects.push(Effect::NotifyWatcher {
                worker,
                attempt,
                notice,
            });
        }
    }

    pub(super) fn on_task_preempted(&mut self, attempt: AttemptKey) {
        if let Some(slot) = self.slots.get_mut(&attempt) {
            slot.is_preempted = true;
        }
        self.for_node
            .push_back(node::Event::TaskPreempted { attempt });
    }

    /// A script that was stopped while it was preempted has left.
    fn next_turn(&mut self, call: &mut Call<'_>, attempt: AttemptKey) {
        if let Some(slot) = self.slots.get_mut(&attempt) {
            slot.is_preempted = false;
            call.effects.push(Effect::NextTurn { attempt });
        }
    }

    /// What ran in the worker is ended apart, but for what has not begun in it.
    pub(super) fn on_worker_gone(&mut self, call: &mut Call<'_>, worker: WorkerKey) {
        if self.node.keeps_caches(worker) {
            call.to_home.push(ToHome::CachesLost { worker });
        }
        self.lines.remove(&worker);
        self.return_begun_in(worker);
        self.for_node.push_back(node::Event::WorkerGone { worker });
        let waits = |(attempt, slot): (&AttemptKey, &TakenSlot)| {
            let waits = slot.slot == Slot::Worker(worker) && !slot.has_begun;
            waits.then_some(*attempt)
        };
        let mut waiting: Vec<AttemptKey> = self.slots.iter().filter_map(waits).collect();
        waiting.sort_unstable();
        for attempt in waiting {
            self.free_slot(call, attempt);
        }
    }

    /// A worker keeps something of some files, and nothing of others any more.
    pub(super) fn on_caches(
        &mut self,
        call: &mut Call<'_>,
        worker: WorkerKey,
        held: Vec<(Name, u64)>,
        dropped: Vec<Name>,
    ) {
        if self.lines.contains_key(&worker) {
            call.to_home.push(ToHome::WorkerCaches {
                worker,
                held: held.iter().map(|(file, _)| *file).collect(),
                dropped: dropped.clone(),
            });
        }
        self.for_node.push_back(node::Event::WorkerCaches {
            worker,
            held,
            dropped,
        });
    }

    /// The graph is done with an attempt that runs or waits.
    fn stop(&mut self, call: &mut Call<'_>, attempt: AttemptKey) {
        let task = attempt.task;
        self.return_begun(attempt);
        let Some(slot) = self.slots.get_mut(&attempt) else {
            if call.suspended == Some(attempt) {
                call.answer(attempt, Reply::Stopped);
            }
            call.effects.push(Effect::DropScript { task });
            return self.for_node.push_back(node::Event::TaskForgotten { task });
        };
        let is_unknown = !slot.has_begun || (!slot.is_follower && call.forget_begun(attempt));
        if is_unknown {
            // No executor has heard of it.
            return self.free_slot(call, attempt);
        }
        if self.followers.values().any(|before| *before == attempt) {
            // Its turn is over; its slot passes on, or is free when its follower has stopped.
            return;
        }
        if slot.is_asking {
            // Its executor waits for the reply, and learns it from that.
            call.answer(attempt, Reply::Stopped);
            return self.free_slot(call, attempt);
        }
        slot.is_stopping = true;
        match slot.slot {
            Slot::Thread if slot.is_preempted => {
                call.effects.push(Effect::DropScript { task });
                self.free_slot(call, attempt);
            }
            Slot::Thread => {}
            Slot::Process => call.effects.push(Effect::StopProcess(attempt)),
            Slot::Worker(worker) => {
                self.for_node
                    .push_back(node::Event::TaskStopping { attempt });
                call.stop_in_worker(worker, attempt);
            }
        }
    }
}

fn offered(offer: Offer) -> node::Event {
    node::Event::TaskOffered {
        attempt: offer.attempt,
        label: offer.label,
        class: offer.class,
        resources: offer.resources,
        resumed: offer.replay_us,
        is_root: offer.is_root,
        is_limited: offer.is_limited,
        near: offer.near,
        pairing: offer.pairing,
    }
}

fn lost(assignment: &Assignment) -> ToHome {
    let label = assignment.label.clone();
    let words = "its worker ended before the task began";
    ToHome::Acted(graph::Event::TaskLost {
        task: assignment.task,
        attempt: assignment.attempt,
        failure: Box::new(Failure::new(FailureKind::WorkerLost, label, words)),
    })
}
