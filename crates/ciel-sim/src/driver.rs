//! How events travel between graph, node and ordered stream: the rules that the runtime follows.
//!
//! Events and actions go through one queue, first in, first out: no machine is entered while
//! another one works, and all actions of one event are performed before anything that follows from
//! them. Both are needed: an action may take back what an earlier one of the same event began. It
//! does not know what scripts do. Read next: `world`.

use ciel_graph::{Action, Assignment, Continuation, Entry, Event, StrandChange};
use ciel_model::{Failure, FailureKind, StrandKey};
use ciel_node::{Place, Run};
use ciel_ordered::{After, OrderedError, Piece};

use crate::script::Script;
use crate::world::{Happening, Mood, Process, World};

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
        self.graph.handle(self.now, event, &mut actions);
        self.queue
            .extend(actions.into_iter().map(Pending::FromGraph));
    }

    fn on_node_event(&mut self, event: ciel_node::Event) {
        self.trace.add(self.now, "node <-", &event);
        let mut actions = Vec::new();
        self.node
            .handle(self.now, event, self.graph.order(), &mut actions);
        self.queue
            .extend(actions.into_iter().map(Pending::FromNode));
    }

    fn perform(&mut self, action: Action) {
        self.trace.add(self.now, "graph ->", &action);
        match action {
            Action::Offer {
                task,
                attempt,
                descriptor,
                mark,
                resumed,
            } => {
                self.on_node_event(ciel_node::Event::TaskOffered {
                    run: Run { task, attempt },
                    mark,
                    class: descriptor.class.clone(),
                    resources: descriptor.options.resources.clone(),
                    resumed: resumed.then(|| self.graph.replay_us(task)),
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
                let there = self.graph.is_settled(task, attempt, handle);
                assert_ne!(there, Some(false), "{task:?} was told of what is not there");
            }
            Action::Suspend { task, attempt } => self.suspend(Run { task, attempt }),
            Action::Stop { task, attempt } => self.stop(Run { task, attempt }),
            Action::Strand(change) => self.change_strand(change),
            Action::AttemptFailed { task, .. } => {
                if let Some(task) = self.names.get(&task.name) {
                    *self.failures.entry(*task).or_default() += 1;
                }
            }
            Action::JobEnded(ending) => {
                assert!(self.ending.is_none(), "the job ended twice");
                self.ending = Some(*ending);
            }
            Action::DropObject(_) | Action::Ended(_) => {}
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
        self.names.insert(assignment.label.name, run.task);
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
                self.races.remove(&label.name);
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
            Entry::Restore { bytes, answers, .. } => {
                let index = u64::from_be_bytes(bytes[..].try_into().expect("an index"));
                let mut script = self.saved[index as usize].clone();
                script.answer(answers, ended);
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

    fn change_strand(&mut self, change: StrandChange) {
        let stream = &mut self.stream;
        let done = match change {
            StrandChange::Root(strand) => stream.open_root(key(strand)),
            StrandChange::Spawned {
                parent,
                child,
                live,
            } => {
                let spawned = stream.spawn(key(parent), key(child));
                match live {
                    true => spawned,
                    false => spawned.and_then(|()| stream.hold(key(child))),
                }
            }
            StrandChange::Committed(strand) => stream.commit(key(strand)),
            // A replay that failed before it came as far as before ends short; what it had
            // written stays, and the second call closes it as it is.
            StrandChange::Closed(strand) => match stream.close(key(strand)) {
                Err(OrderedError::Mismatch { .. }) => stream.close(key(strand)),
                closed => closed,
            },
            StrandChange::Discarded(strand) => stream.discard(key(strand), After::Stop),
            StrandChange::Skipped(strand) => stream.discard(key(strand), After::Skip),
            StrandChange::Marked(strand) => stream.mark(key(strand)),
            StrandChange::Rewound(strand) => stream.rewind(key(strand)),
            StrandChange::RolledBack(strand) => stream.rollback(key(strand)),
        };
        accept(done, &change);
    }

    pub(crate) fn write(&mut self, strand: StrandKey, text: String) {
        let written = self.stream.write(key(strand), text.into_bytes());
        accept(written, &strand);
    }

    fn release(&mut self) {
        while let Some(chunk) = self.stream.take_ready(u64::MAX) {
            let Piece::Bytes(bytes) = chunk.piece else {
                unreachable!("nothing is spilled here");
            };
            self.output
                .push_str(std::str::from_utf8(&bytes).expect("scripts write text"));
        }
    }
}

fn key(strand: StrandKey) -> ciel_ordered::StrandKey {
    ciel_ordered::StrandKey(strand.0)
}

/// Late acts of a strand that was given up find no place; anything else is a bug.
fn accept(done: Result<(), OrderedError>, what: &dyn std::fmt::Debug) {
    match done {
        Ok(()) | Err(OrderedError::Unknown { .. } | OrderedError::Closed { .. }) => {}
        Err(error) => panic!("{what:?}: {error}"),
    }
}
