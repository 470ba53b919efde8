//! How events travel between graph, node and ordered stream: the rules that the runtime follows.
//!
//! Events and actions go through one queue, first in, first out: no machine is entered while
//! another one works, and all actions of one event are performed before anything that follows from
//! them. Both are needed: an action may take back what an earlier one of the same event began. It
//! does not know what scripts do. Read next: `world`.

use ciel_graph::{Action, Assignment, Continuation, Entry, Event};
use ciel_model::{Failure, FailureKind, StrandKey};
use ciel_node::{Place, Run};
use ciel_ordered::Piece;

use crate::crash::take_out;
use crate::kept::{Note, Snapshot};
use crate::script::Script;
use crate::world::{CHECKPOINT, Happening, Mood, Process, World};

/// Something on its way from one machine to another.
#[derive(Debug)]
pub(crate) enum Pending {
    ToGraph(Event),
    ToNode(ciel_node::Event),
    FromGraph(Action),
    FromNode(ciel_node::Action),
}

impl World<'_> {
    /// Gives an event to the graph and does all that follows from it.
    pub(crate) fn submit(&mut self, event: Event) {
        self.queue.push_back(Pending::ToGraph(event));
        self.settle();
    }

    /// Gives an event to the node and does all that follows from it.
    pub(crate) fn tell_node(&mut self, event: ciel_node::Event) {
        self.queue.push_back(Pending::ToNode(event));
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(pending) = self.queue.pop_front() {
            match pending {
                Pending::ToGraph(event) => self.on_graph_event(event),
                Pending::ToNode(event) => self.on_node_event(event),
                Pending::FromGraph(action) => self.perform(action),
                Pending::FromNode(action) => self.perform_of_node(action),
            }
        }
        self.release();
    }

    fn on_graph_event(&mut self, event: Event) {
        self.trace.add(self.now, "graph <-", &event);
        let mut actions = Vec::new();
        self.coordinator.tell(self.now, event, &mut actions);
        self.check_accepted();
        self.queue
            .extend(actions.into_iter().map(Pending::FromGraph));
    }

    pub(crate) fn on_node_event(&mut self, event: ciel_node::Event) {
        self.trace.add(self.now, "node <-", &event);
        let mut actions = Vec::new();
        self.node.handle(
            self.now,
            event,
            self.coordinator.graph().order(),
            &mut actions,
        );
        self.queue
            .extend(actions.into_iter().map(Pending::FromNode));
    }

    fn perform(&mut self, action: Action) {
        self.trace.add(self.now, "graph ->", &action);
        self.attempts.see(&action);
        self.summaries.see(&action);
        match action {
            Action::Offer {
                task,
                attempt,
                descriptor,
                mark,
                resumed,
            } => {
                let run = Run { task, attempt };
                if self.is_begun(run) {
                    return;
                }
                self.on_node_event(ciel_node::Event::TaskOffered {
                    run,
                    mark,
                    class: descriptor.class.clone(),
                    resources: descriptor.options.resources.clone(),
                    resumed: resumed.then(|| self.coordinator.graph().replay_us(task)),
                });
            }
            Action::Withdraw { task, attempt } => {
                let run = Run { task, attempt };
                self.on_node_event(ciel_node::Event::TaskWithdrawn { run });
            }
            Action::Begin(assignment) => self.begin(*assignment),
            Action::Continue {
                task,
                attempt,
                answers,
                ended,
            } => {
                let run = Run { task, attempt };
                let process = self.processes.get_mut(&run).expect("it asked");
                process.script.answer(answers, ended);
                process.mood = Mood::Acting;
                self.schedule_soon(Happening::Act(run));
            }
            Action::Told {
                task,
                attempt,
                handle,
            } => {
                let there = self.coordinator.graph().is_settled(task, attempt, handle);
                assert_ne!(there, Some(false), "{task:?} was told of what is not there");
            }
            Action::Suspend { task, attempt } => self.suspend(Run { task, attempt }),
            Action::Stop { task, attempt } => self.stop(Run { task, attempt }),
            Action::Strand(_) => unreachable!("the coordinator applies these"),
            Action::JobEnded(ending) => {
                assert!(self.ending.is_none(), "the job ended twice");
                self.ending = Some(*ending);
            }
            Action::AttemptFailed { .. }
            | Action::DropObject(_)
            | Action::Happened(_)
            | Action::Ended(_) => {}
            Action::Recalled { .. } => unreachable!("scripts know their handles and do not ask"),
        }
    }

    fn begin(&mut self, assignment: Assignment) {
        let run = Run {
            task: assignment.task,
            attempt: assignment.attempt,
        };
        if self.refused.contains(&run) {
            return;
        }
        let place = *self.places.get(&run).expect("what begins was placed");
        let strand = assignment.strand;
        let script = self.enter(assignment);
        let process = Process {
            script,
            strand,
            place,
            mood: Mood::Acting,
            continuation: Continuation::Live,
            stopped: false,
        };
        let before = self.processes.insert(run, process);
        assert!(before.is_none(), "{run:?} began twice");
        self.schedule_soon(Happening::Act(run));
    }

    fn enter(&mut self, assignment: Assignment) -> Script {
        let Assignment {
            task,
            label,
            descriptor,
            entry,
            ended,
            ..
        } = assignment;
        let payload = descriptor.payload[..].try_into().expect("an index");
        let definition = u32::from_be_bytes(payload) as usize;
        let inputs = descriptor.inputs.len() as u32;
        match entry {
            Entry::Start(told) => {
                self.parked.remove(&task);
                self.kept.note_done(Note::Began(label.name));
                Script::start(definition, label, inputs, descriptor.outputs, told)
            }
            Entry::Replay {
                inputs: told,
                facts,
            } => {
                self.parked.remove(&task);
                let outputs = descriptor.outputs;
                let mut script = Script::start(definition, label, inputs, outputs, told);
                script.recall(&facts, ended);
                script
            }
            Entry::Restore {
                bytes,
                answers,
                facts,
            } => {
                self.parked.remove(&task);
                let index = u64::from_be_bytes(bytes[..].try_into().expect("an index"));
                let mut script = self.saved[(index & !CHECKPOINT) as usize].clone();
                // At a checkpoint it did not race: how a race ended is of a later one.
                let (now, later) = match index & CHECKPOINT {
                    0 => (ended, None),
                    _ => (None, ended),
                };
                script.answer(answers, now);
                script.recall(&facts, later);
                self.restored += u64::from(index & CHECKPOINT != 0);
                script
            }
            Entry::Resume(answers) => {
                let mut script = self.parked.remove(&task).expect("a live copy is parked");
                script.answer(answers, ended);
                script
            }
        }
    }

    fn suspend(&mut self, run: Run) {
        let process = self.processes.remove(&run).expect("it asked");
        if let Some(returned) = self.forget_ahead(run) {
            self.on_node_event(returned);
        }
        let parked = process.continuation == Continuation::Live;
        if parked {
            self.parked.insert(run.task, process.script);
        }
        let parked = parked && matches!(process.place, Place::Worker(_));
        self.on_node_event(ciel_node::Event::TaskLeft { run, parked });
    }

    fn stop(&mut self, run: Run) {
        match self.processes.get_mut(&run) {
            Some(process) => {
                process.stopped = true;
                if self.random.one_in(2) {
                    process.mood = Mood::Asking;
                }
                self.schedule_soon(Happening::Dead(run));
            }
            None => {
                self.parked.remove(&run.task);
                self.on_node_event(ciel_node::Event::TaskForgotten { task: run.task });
            }
        }
    }

    fn perform_of_node(&mut self, action: ciel_node::Action) {
        self.trace.add(self.now, "node ->", &action);
        match action {
            ciel_node::Action::Place { run, place } => {
                self.places.insert(run, place);
                let Run { task, attempt } = run;
                self.on_graph_event(Event::TaskPlaced { task, attempt });
            }
            ciel_node::Action::NextTurn { run } => {
                if let Some(process) = self.processes.get_mut(&run) {
                    process.mood = Mood::Acting;
                    self.schedule_soon(Happening::Act(run));
                }
            }
            ciel_node::Action::Refuse { run, lacking } => self.refuse(run, lacking),
            ciel_node::Action::StartWorker { worker, .. } => {
                self.workers.insert(worker, Vec::new());
                self.schedule_soon(Happening::Hello(worker));
            }
            ciel_node::Action::StopWorker { worker } => {
                self.workers.remove(&worker);
            }
            ciel_node::Action::DropParked { task, .. } => {
                self.parked.remove(&task);
            }
            ciel_node::Action::ContinuationLost { task } => {
                self.parked.remove(&task);
                self.on_graph_event(Event::ContinuationLost { task });
            }
        }
    }

    fn refuse(&mut self, run: Run, lacking: String) {
        let Run { task, attempt } = run;
        let failure = Failure::new(FailureKind::Refused, self.label(task), lacking);
        self.refused.insert(run);
        let placed = Event::TaskPlaced { task, attempt };
        let failed = Event::TaskFailed {
            task,
            attempt,
            failure,
        };
        self.queue.extend([placed, failed].map(Pending::ToGraph));
    }

    pub(crate) fn write(&mut self, strand: StrandKey, text: String) {
        let piece = Piece::Bytes(text.into_bytes());
        let written = self.coordinator.write(strand, piece);
        assert_eq!(written, Ok(()), "{strand:?}");
        self.check_accepted();
    }

    /// Every script does the same when it is run again, so nothing it writes can be refused.
    fn check_accepted(&self) {
        let refusal = self.coordinator.refusal();
        assert_eq!(refusal, None, "the ordered output refused something");
    }

    /// Output goes out now and then, and a snapshot is taken now and then.
    fn release(&mut self) {
        let kept = &mut self.kept;
        if kept.records_all && kept.chance.one_in(3) {
            return;
        }
        if kept.records_all && kept.chance.one_in(20) {
            kept.snapshots.push(Snapshot {
                bytes: self.coordinator.snapshot().expect("nothing is spilled"),
                covers: kept.records.all().len(),
                released: self.output.len(),
            });
        }
        self.let_out();
    }

    /// Lets all output out that is final; all that is recorded by now must survive from now on.
    pub(crate) fn let_out(&mut self) {
        let before = self.output.len();
        take_out(self.coordinator.output_mut(), &mut self.output);
        if self.output.len() > before {
            self.kept.gated = self.kept.records.all().len();
        }
    }
}
