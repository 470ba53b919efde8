//! What graph and node ask for, one action each.
//!
//! Read next: `succession`.

use ciel_graph::{self as graph, Assignment};
use ciel_model::{Failure, FailureKind, Handle};
use ciel_node::{self as node, AttemptKey, Slot};

use crate::engine::{Engine, TakenSlot, Telling};
use crate::event::{Begun, Effect, Reply, attempt_of};

impl Engine {
    pub(crate) fn perform(&mut self, telling: &mut Telling<'_>, action: graph::Action) {
        use graph::Action;
        match action {
            Action::Offer {
                task,
                attempt,
                descriptor,
                label,
                replay_us,
            } => self.for_node.push(node::Event::TaskOffered {
                run: AttemptKey { task, attempt },
                label,
                class: descriptor.class.clone(),
                resources: descriptor.options.resources.clone(),
                resumed: replay_us,
            }),
            Action::Relabel {
                task,
                attempt,
                label,
            } => {
                let run = AttemptKey { task, attempt };
                self.for_node
                    .push(node::Event::TaskRelabeled { run, label })
            }
            Action::Withdraw { task, attempt } => {
                let run = AttemptKey { task, attempt };
                telling.effects.push(Effect::DropScript { task });
                self.for_node.push(node::Event::TaskWithdrawn { run })
            }
            Action::Begin(assignment) => self.begin(telling, assignment),
            Action::Continue { answers, ended, .. } => {
                telling.reply = Reply::Continue { answers, ended };
            }
            Action::Notify {
                task,
                attempt,
                handle,
            } => self.notify_watcher(telling, AttemptKey { task, attempt }, handle),
            Action::Suspend { task, attempt } => {
                self.suspend(telling, AttemptKey { task, attempt })
            }
            Action::Stop { task, attempt } => self.stop(telling, AttemptKey { task, attempt }),
            Action::Strand(_) => unreachable!("the coordinator keeps those to itself"),
            Action::Recalled { known, .. } => telling.reply = Reply::Recalled(known),
            Action::DropObject(name) => telling.effects.push(Effect::DropObject(name)),
            Action::AttemptFailed {
                task,
                failure,
                left,
            } => telling.effects.push(Effect::AttemptFailed {
                task,
                failure,
                left,
            }),
            Action::Happened(happening) => {
                let (task, attempt) = (happening.task, happening.attempt);
                let place = self.place_of(AttemptKey { task, attempt });
                telling.effects.push(Effect::Happened { happening, place });
            }
            Action::Ended(summary) => telling.effects.push(Effect::TaskEnded(summary)),
            Action::JobEnded(ending) => {
                self.job_ended = true;
                telling.effects.push(Effect::JobEnded(ending));
            }
        }
    }

    pub(crate) fn perform_on_node(&mut self, telling: &mut Telling<'_>, action: node::Action) {
        use node::Action;
        match action {
            Action::Slot { run, place } => self.place(telling, run, place),
            Action::NextTurn { run } => self.next_turn(telling, run),
            Action::Refuse { run, lacking } => self.refuse(telling, run, &lacking),
            Action::StartWorker { worker, pool } => {
                telling.effects.push(Effect::StartWorker { worker, pool })
            }
            Action::StopWorker { worker } => {
                self.lines.remove(&worker);
                telling.effects.push(Effect::StopWorker { worker });
            }
            Action::DropParked { worker, task } => {
                telling.effects.push(Effect::DropParked { worker, task })
            }
            Action::ContinuationLost { task } => {
                self.tell_graph(telling, graph::Event::ContinuationLost { task })
            }
        }
    }

    /// A task has its place; one that has been given up in the meantime leaves it at once. A
    /// script is placed only when a thread takes it up, so that it knows all that is ready by then.
    fn place(&mut self, telling: &mut Telling<'_>, run: AttemptKey, place: Slot) {
        let AttemptKey { task, attempt } = run;
        if !self.graph().awaits_place(task, attempt) {
            return self.leave_node(run, false);
        }
        if place == Slot::Thread {
            return telling.effects.push(Effect::TurnOffered { run });
        }
        self.slots.insert(run, TakenSlot::new(place));
        self.tell_graph(telling, graph::Event::TaskPlaced { task, attempt });
    }

    pub(crate) fn on_turn_taken(&mut self, telling: &mut Telling<'_>, run: AttemptKey) {
        let AttemptKey { task, attempt } = run;
        if !self.graph().awaits_place(task, attempt) {
            return self.leave_node(run, false);
        }
        self.slots.insert(run, TakenSlot::new(Slot::Thread));
        self.tell_graph(telling, graph::Event::TaskPlaced { task, attempt });
    }

    fn begin(&mut self, telling: &mut Telling<'_>, assignment: Box<Assignment>) {
        let run = attempt_of(&assignment);
        let slot = self.slots.get(&run).expect("a task that begins has a slot");
        match slot.place {
            Slot::Thread => {
                let ahead = Vec::new();
                telling.reply = Reply::Begin(Box::new(Begun { assignment, ahead }));
            }
            Slot::Process => telling.effects.push(Effect::StartProcess(assignment)),
            Slot::Worker(worker) => {
                self.note_begin(telling.now, worker);
                let ahead = Vec::new();
                telling.begun.push((worker, Begun { assignment, ahead }));
            }
        }
    }

    /// Only workers watch.
    fn notify_watcher(&self, telling: &mut Telling<'_>, run: AttemptKey, handle: Handle) {
        if let Some(Slot::Worker(worker)) = self.place_of(run) {
            telling.effects.push(Effect::NotifyWatcher {
                worker,
                run,
                handle,
            });
        }
    }

    pub(crate) fn on_task_preempted(&mut self, run: AttemptKey) {
        if let Some(slot) = self.slots.get_mut(&run) {
            slot.is_preempted = true;
        }
        self.for_node.push(node::Event::TaskPreempted { run });
    }

    /// A script that was stopped while it was preempted has left.
    fn next_turn(&mut self, telling: &mut Telling<'_>, run: AttemptKey) {
        if let Some(slot) = self.slots.get_mut(&run) {
            slot.is_preempted = false;
            telling.effects.push(Effect::NextTurn { run });
        }
    }

    /// The graph is done with an attempt that runs or waits.
    fn stop(&mut self, telling: &mut Telling<'_>, run: AttemptKey) {
        let task = run.task;
        let Some(slot) = self.slots.get_mut(&run) else {
            if telling.suspended == Some(run) {
                telling.reply = Reply::Stopped;
            }
            telling.effects.push(Effect::DropScript { task });
            return self.for_node.push(node::Event::TaskForgotten { task });
        };
        slot.is_stopping = true;
        match slot.place {
            Slot::Thread if slot.is_preempted => {
                telling.effects.push(Effect::DropScript { task });
                self.free_slot(telling, run);
            }
            Slot::Thread => {}
            Slot::Process => telling.effects.push(Effect::StopProcess(run)),
            Slot::Worker(worker) => telling.effects.push(Effect::StopInWorker { worker, run }),
        }
    }

    /// A task that no machine of this size can run.
    fn refuse(&mut self, telling: &mut Telling<'_>, run: AttemptKey, lacking: &str) {
        let AttemptKey { task, attempt } = run;
        let Some(view) = self.graph().view(task) else {
            return;
        };
        let failure = Failure::new(FailureKind::Refused, view.label, lacking)
            .with_hint("request less, or run with more: -j sets the cores, --resource the others");
        let refused = graph::Event::TaskRefused {
            task,
            attempt,
            failure,
        };
        self.tell_graph(telling, refused);
    }
}
