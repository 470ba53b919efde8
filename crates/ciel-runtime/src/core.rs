//! The machines and what goes between them, under one lock.
//!
//! [`Core::tell`] is the only way in: it hands an event to the graph and passes actions on, from
//! machine to machine, until all is settled. What has to be done outside is sent as an
//! [`Order`] to the thread that does it, in the order decided here. It does not know files,
//! sockets or processes. Read next: `engine`.

mod people;
mod succession;

use std::collections::VecDeque;
use std::sync::Arc;

use ciel_coordinator::Coordinator;
use ciel_graph::{self as graph, Assignment, Ending, Entry, Graph, Recalled, WaitEnd};
use ciel_model::{
    Attempt, Class, Descriptor, Failure, FailureKind, Handle, Label, Micros, Options, Resolution,
    StrandKey, TaskKey,
};
use ciel_node::{self as node, Node, Place, Run, WorkerKey};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc::UnboundedSender;

use crate::executors::{Launch, Registry};
use crate::history::History;
use crate::moments::Moments;
pub(crate) use crate::orders::Order;
use crate::script::Script;
use crate::turns::{Hand, Pace, Turns};

pub(crate) type Answers = Vec<(Handle, Resolution)>;
pub(crate) type Known = Vec<(Recalled, Resolution)>;

/// Work that has a thread's place and waits for its thread.
pub(crate) enum Due {
    /// A task to begin or to resume; nothing is promised to it before it has its thread.
    Begin(Run),
    /// A preempted script to go on with.
    Next(Run, Box<Script>),
}

/// Work for a thread.
pub(crate) enum Turn {
    /// A task to begin.
    Begin(Box<Assignment>),
    /// A script that waited.
    Resume(Box<Assignment>, Box<Script>),
    /// A preempted script to go on with.
    Next(Run, Box<Script>),
}

/// Changes of strands without any output after which the output thread clears them away.
const SILENT_CHANGES_MAX: u64 = 4096;

/// Facts and answers that a script has met at least when it leaves a checkpoint.
const FACTS_BETWEEN_CHECKPOINTS: usize = 64;

enum Todo {
    Graph(graph::Action),
    Node(node::Action),
}

/// All state of a run that is decided upon.
pub(crate) struct Core {
    /// What survives this process: graph and ordered output.
    pub(crate) state: Coordinator,
    pub(crate) node: Node,
    pub(crate) history: History,
    pub(crate) moments: Moments,
    /// Scripts that wait for references.
    pub(crate) suspended: FxHashMap<TaskKey, Box<Script>>,
    /// Scripts that wait for another turn.
    pub(crate) preempted: FxHashMap<Run, Box<Script>>,
    /// Work that has a thread's place but not yet its thread.
    pub(crate) turns: Turns<Due>,
    /// What is known of what a task had asked for that was begun again just now.
    recalled: Known,
    /// What a thread is about to begin.
    begun: Option<Box<Assignment>>,
    /// Where each task is that has begun in its place.
    places: FxHashMap<Run, Place>,
    /// Placed tasks whose end is wanted.
    pub(crate) stopping: FxHashMap<Run, ()>,
    /// What the caller's task asked for, if it is there already.
    pub(crate) continued: Option<(Run, Answers)>,
    /// How that wait ended, if that depends on time.
    pub(crate) ended: Option<WaitEnd>,
    pub(crate) ending: Option<Ending>,
    /// All threads are to go home.
    pub(crate) closed: bool,
    /// The output thread has something to do.
    pub(crate) output_ready: bool,
    /// Process ids of running tasks.
    pub(crate) pids: FxHashMap<TaskKey, u32>,
    /// Where scripts were when they last had a turn, for `why`.
    pub(crate) script_lines: FxHashMap<TaskKey, String>,
    /// Microseconds of processor time of ended processes.
    spent_us: u64,
    /// Changes of strands when the output thread was last sent for.
    changes: u64,
    /// Output on disk that has no place in the order.
    pub(crate) unplaced: Vec<ciel_ordered::Extent>,
    todo: VecDeque<Todo>,
    graph_actions: Vec<graph::Action>,
    node_actions: Vec<node::Action>,
    orders: UnboundedSender<Order>,
    rearmed: Option<Micros>,
    /// The worker whose conversation is speaking right now.
    speaking: Option<WorkerKey>,
    /// What that worker is to run next: begun without the way through the orders.
    next: Option<Box<Assignment>>,
    /// What that worker goes on with by itself, and whether it was offered just now.
    follower: Option<(Run, bool)>,
}

impl Core {
    pub(crate) fn new(state: Coordinator, node: Node, orders: UnboundedSender<Order>) -> Core {
        Core {
            changes: state.changes(),
            state,
            node,
            history: History::default(),
            moments: Moments::default(),
            suspended: FxHashMap::default(),
            preempted: FxHashMap::default(),
            turns: Turns::new(),
            recalled: Vec::new(),
            begun: None,
            places: FxHashMap::default(),
            stopping: FxHashMap::default(),
            continued: None,
            ended: None,
            ending: None,
            closed: false,
            output_ready: false,
            pids: FxHashMap::default(),
            script_lines: FxHashMap::default(),
            spent_us: 0,
            unplaced: Vec::new(),
            todo: VecDeque::new(),
            graph_actions: Vec::new(),
            node_actions: Vec::new(),
            orders,
            rearmed: None,
            speaking: None,
            next: None,
            follower: None,
        }
    }

    /// Tells the graph what happened and does all that follows.
    pub(crate) fn tell(&mut self, now: Micros, mut event: graph::Event) {
        if let graph::Event::TaskStepped {
            step: graph::Step::Spawn(descriptor),
            ..
        }
        | graph::Event::TaskTailSpawned { descriptor, .. }
        | graph::Event::RootSubmitted { descriptor, .. } = &mut event
        {
            let_out_early(descriptor);
        }
        self.feed_graph(now, event);
        self.settle(now);
    }

    /// The task graph.
    pub(crate) fn graph(&self) -> &Graph {
        self.state.graph()
    }

    /// What is known of all that a task had asked for that was begun again and has done nothing.
    pub(crate) fn recall(&mut self, now: Micros, run: Run) -> Known {
        let Run { task, attempt } = run;
        self.tell(now, graph::Event::TaskRecalled { task, attempt });
        std::mem::take(&mut self.recalled)
    }

    /// Tells the node what happened and does all that follows.
    pub(crate) fn tell_node(&mut self, now: Micros, event: node::Event) {
        self.feed_node(now, event);
        self.settle(now);
    }

    /// Whether the state of a script that waits is to be kept now: it would otherwise have to do
    /// much again, and hold on to everything that it has met.
    pub(crate) fn wants_checkpoint(&self, assignment: &Assignment) -> bool {
        let strand = ciel_ordered::StrandKey(assignment.strand.0);
        self.graph()
            .outgrows_checkpoint(assignment.task, FACTS_BETWEEN_CHECKPOINTS)
            && self.state.is_recording()
            && !self.state.output().is_behind(strand)
    }

    /// A placed task is over; its place is free.
    pub(crate) fn leave(&mut self, now: Micros, run: Run) {
        self.forget_place(run);
        if self.ending.is_some() {
            // The shell waits for the last place to be free.
            self.order(Order::Rearm);
        }
        self.tell_node(now, node::Event::TaskLeft { run, parked: false });
    }

    /// Whether that attempt is to end.
    pub(crate) fn is_stopping(&self, run: Run) -> bool {
        self.stopping.contains_key(&run)
    }

    pub(crate) fn order(&self, order: Order) {
        // The receiver goes only when the run is over; then nobody needs the order.
        let _ = self.orders.send(order);
    }

    fn feed_graph(&mut self, now: Micros, event: graph::Event) {
        let mut actions = std::mem::take(&mut self.graph_actions);
        self.state.tell(now, event, &mut actions);
        self.look_for_output();
        self.todo.extend(actions.drain(..).map(Todo::Graph));
        self.graph_actions = actions;
    }

    fn feed_node(&mut self, now: Micros, event: node::Event) {
        let mut actions = std::mem::take(&mut self.node_actions);
        self.node
            .handle(now, event, self.state.graph().order(), &mut actions);
        self.todo.extend(actions.drain(..).map(Todo::Node));
        self.node_actions = actions;
    }

    /// When [`Core::tick`] is wanted at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Micros> {
        let deadlines = [
            self.state.graph().next_deadline(),
            self.node.next_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Time passed.
    pub(crate) fn tick(&mut self, now: Micros) {
        self.tell(now, graph::Event::Ticked);
        self.tell_node(now, node::Event::Ticked);
    }

    fn settle(&mut self, now: Micros) {
        while let Some(todo) = self.todo.pop_front() {
            match todo {
                Todo::Graph(action) => self.perform(now, action),
                Todo::Node(action) => self.perform_on_node(now, action),
            }
        }
        let deadline = self.next_deadline();
        if deadline != self.rearmed {
            self.rearmed = deadline;
            self.order(Order::Rearm);
        }
    }

    fn perform(&mut self, now: Micros, action: graph::Action) {
        use graph::Action;
        match action {
            Action::Offer {
                task,
                attempt,
                descriptor,
                mark,
                resumed,
            } => {
                let event = node::Event::TaskOffered {
                    run: Run { task, attempt },
                    mark,
                    class: descriptor.class.clone(),
                    resources: descriptor.options.resources.clone(),
                    resumed: resumed.then(|| self.state.graph().replay_us(task)),
                };
                self.offer(now, event)
            }
            Action::Withdraw { task, attempt } => {
                let run = Run { task, attempt };
                self.feed_node(now, node::Event::TaskWithdrawn { run })
            }
            Action::Begin(assignment) => self.begin(assignment),
            Action::Continue {
                task,
                attempt,
                answers,
                ended,
            } => {
                self.continued = Some((Run { task, attempt }, answers));
                self.ended = ended;
            }
            Action::Told {
                task,
                attempt,
                handle,
            } => self.tell_watcher(Run { task, attempt }, handle),
            Action::Suspend { task, attempt } => self.suspend(now, Run { task, attempt }),
            Action::Stop { task, attempt } => self.stop(now, Run { task, attempt }),
            Action::Strand(_) => unreachable!("the coordinator keeps those to itself"),
            Action::Recalled { known, .. } => self.recalled = known,
            Action::DropObject(name) => self.order(Order::DropObject(name)),
            Action::AttemptFailed {
                task,
                failure,
                left,
            } => self.order(Order::AttemptFailed {
                task,
                failure,
                left,
            }),
            Action::Happened(happening) => self.note(happening),
            Action::Ended(summary) => self.summarise(summary),
            Action::JobEnded(ending) => {
                self.ending = Some(*ending);
                self.order(Order::JobEnded);
            }
        }
    }

    fn perform_on_node(&mut self, now: Micros, action: node::Action) {
        use node::Action;
        match action {
            Action::Place { run, place } => self.place(now, run, place),
            Action::NextTurn { run } => {
                // One that was stopped in the meantime is not kept any more.
                if let Some(script) = self.preempted.remove(&run) {
                    self.turns.push(now, Pace::Long, Due::Next(run, script));
                }
            }
            Action::Refuse { run, lacking } => self.refuse(now, run, &lacking),
            Action::StartWorker { worker, pool } => self.order(Order::StartWorker { worker, pool }),
            Action::StopWorker { worker } => self.order(Order::StopWorker(worker)),
            Action::DropParked { worker, task } => self.order(Order::DropParked { worker, task }),
            Action::ContinuationLost { task } => {
                self.feed_graph(now, graph::Event::ContinuationLost { task })
            }
        }
    }

    /// A task has its place; one that has been given up in the meantime leaves it at once.
    fn place(&mut self, now: Micros, run: Run, place: Place) {
        let Run { task, attempt } = run;
        if !self.state.graph().awaits_place(task, attempt) {
            return self.feed_node(now, node::Event::TaskLeft { run, parked: false });
        }
        if place == Place::Thread {
            return self.turns.push(now, Pace::Fresh, Due::Begin(run));
        }
        self.places.insert(run, place);
        self.feed_graph(now, graph::Event::TaskPlaced { task, attempt })
    }

    fn begin(&mut self, assignment: Box<Assignment>) {
        let run = Run {
            task: assignment.task,
            attempt: assignment.attempt,
        };
        let place = self
            .places
            .get(&run)
            .copied()
            .expect("a task that begins has its place");
        match place {
            Place::Thread => self.begun = Some(assignment),
            Place::Process => self.order(Order::StartProcess(assignment)),
            Place::Worker(worker) if self.goes_on(worker) => self.next = Some(assignment),
            Place::Worker(worker) => self.order(Order::StartInWorker { worker, assignment }),
        }
    }

    /// The next turn for a thread of scripts. A task is begun only here, so that it is told all
    /// that is there by then.
    pub(crate) fn take_turn(
        &mut self,
        now: Micros,
        hand: &mut Hand,
        registry: &Registry,
    ) -> Option<Turn> {
        loop {
            let run = match self.turns.take(now, hand)? {
                Due::Next(run, script) => return Some(Turn::Next(run, script)),
                Due::Begin(run) => run,
            };
            if let Some(assignment) = self.begin_on_thread(now, run) {
                return Some(self.turn_of(hand, registry, assignment));
            }
            self.turns.put_down(now, hand);
        }
    }

    /// None if the task was given up while it waited for its thread.
    fn begin_on_thread(&mut self, now: Micros, run: Run) -> Option<Box<Assignment>> {
        let Run { task, attempt } = run;
        if !self.state.graph().awaits_place(task, attempt) {
            self.tell_node(now, node::Event::TaskLeft { run, parked: false });
            return None;
        }
        self.places.insert(run, Place::Thread);
        self.tell(now, graph::Event::TaskPlaced { task, attempt });
        let begun = self.begun.take();
        Some(begun.expect("a task that awaits its place begins when it is placed"))
    }

    fn turn_of(
        &mut self,
        hand: &mut Hand,
        registry: &Registry,
        assignment: Box<Assignment>,
    ) -> Turn {
        if is_resumption(&assignment) {
            let kept = self.suspended.remove(&assignment.task);
            let script = kept.expect("a suspended script is kept until it is resumed or stopped");
            return Turn::Resume(assignment, script);
        }
        let descriptor = &assignment.descriptor;
        let may_block = match registry.find(&descriptor.executor).launch() {
            Launch::Coroutine(coroutine) => coroutine.may_block(&descriptor.payload),
            Launch::Command(_) | Launch::Worker(_) => true,
        };
        if may_block {
            self.turns.may_take_long(hand);
        }
        Turn::Begin(assignment)
    }

    fn suspend(&mut self, now: Micros, run: Run) {
        self.places.remove(&run);
        self.pids.remove(&run.task);
        let parked = self.state.graph().keeps_live_copy(run.task);
        self.feed_node(now, node::Event::TaskLeft { run, parked })
    }

    /// Only workers watch.
    fn tell_watcher(&self, run: Run, handle: Handle) {
        if let Some(Place::Worker(worker)) = self.places.get(&run).copied() {
            self.order(Order::TellWatcher {
                worker,
                run,
                handle,
            });
        }
    }

    /// The graph is done with an attempt that runs or waits.
    fn stop(&mut self, now: Micros, run: Run) {
        match self.places.get(&run) {
            Some(Place::Thread) => {
                self.stopping.insert(run, ());
                if self.preempted.remove(&run).is_some() {
                    self.places.remove(&run);
                    self.stopping.remove(&run);
                    self.feed_node(now, node::Event::TaskLeft { run, parked: false })
                }
            }
            Some(Place::Process) => {
                self.stopping.insert(run, ());
                self.order(Order::StopProcess(run))
            }
            Some(Place::Worker(worker)) => {
                self.stopping.insert(run, ());
                self.order(Order::StopInWorker {
                    worker: *worker,
                    run,
                })
            }
            None => {
                self.suspended.remove(&run.task);
                self.feed_node(now, node::Event::TaskForgotten { task: run.task })
            }
        }
    }

    /// A task that no machine of this size can run.
    fn refuse(&mut self, now: Micros, run: Run, lacking: &str) {
        let Run { task, attempt } = run;
        self.feed_graph(now, graph::Event::TaskPlaced { task, attempt });
        // The assignment that follows is not for running: the task fails at once.
        self.todo.retain(|todo| match todo {
            Todo::Graph(graph::Action::Begin(begun)) => begun.task != task,
            _ => true,
        });
        let Some(view) = self.state.graph().view(task) else {
            return;
        };
        let failure = Failure::new(FailureKind::Refused, view.label, lacking)
            .with_hint("request less, or run with more: -j sets the cores, --resource the others");
        self.feed_graph(
            now,
            graph::Event::TaskFailed {
                task,
                attempt,
                failure,
            },
        )
    }

    /// Sends for the output thread if strands have changed so that it may have something to do.
    fn look_for_output(&mut self) {
        let (output, errors) = (self.state.output(), self.state.errors());
        let silent = output.held_bytes() == 0 && errors.held_bytes() == 0;
        let changes = self.state.changes() - self.changes;
        // Strands without output leave the streams when the frontier passes them, in bulk.
        if changes > 0 && !silent || changes >= SILENT_CHANGES_MAX {
            self.changes = self.state.changes();
            self.output_ready = true;
        }
    }

    /// Bytes of a task's ordered output, or where they lie. Output that has no place in the order
    /// (of lazy tasks and what they spawn) is kept for `ciel logs`.
    ///
    /// Returns what to tell when a strand that is run again writes something else than before.
    pub(crate) fn write(
        &mut self,
        strand: StrandKey,
        task: &Label,
        piece: impl Into<ciel_ordered::Piece>,
    ) -> Result<(), String> {
        self.output_ready = true;
        let piece = piece.into();
        let key = ciel_ordered::StrandKey(strand.0);
        if !self.state.output().has_place(key) {
            match piece {
                ciel_ordered::Piece::Bytes(bytes) => self.history.log(task, "stdout", &bytes),
                ciel_ordered::Piece::Extent(extent) => self.unplaced.push(extent),
            }
            return Ok(());
        }
        self.state.write(strand, piece)
    }

    /// The same for standard error, if that is ordered.
    pub(crate) fn write_error(&mut self, strand: StrandKey, bytes: Vec<u8>) {
        self.output_ready = true;
        self.state.write_error(strand, bytes.into());
    }

    /// What a task that runs is doing: its place, for `why`.
    pub(crate) fn place_of(&self, task: TaskKey, attempt: Attempt) -> Option<Place> {
        self.places.get(&Run { task, attempt }).copied()
    }

    /// A process has ended and used that much processor time.
    pub(crate) fn spent(&mut self, task: TaskKey, us: u64) {
        self.pids.remove(&task);
        self.spent_us += us;
    }

    /// A worker has ended and used that much processor time.
    pub(crate) fn spent_by_worker(&mut self, us: u64) {
        self.spent_us += us;
    }

    /// Microseconds of processor time of ended processes.
    pub(crate) fn processor_us(&self) -> u64 {
        self.spent_us
    }

    /// Of the tasks in their places, the one that was placed first.
    pub(crate) fn oldest_running(&self) -> Option<Label> {
        let oldest = self.places.keys().min()?;
        self.state.graph().view(oldest.task).map(|view| view.label)
    }

    /// Whether anything is still in its place.
    pub(crate) fn is_quiet(&self) -> bool {
        self.places.is_empty()
    }
}

/// What scripts and workers write goes out as soon as its turn has come: they are run again from
/// facts, so they write the same again. A process commits its output whole unless it is declared
/// live.
fn let_out_early(descriptor: &mut Descriptor) {
    if descriptor.class == Class::Process || descriptor.options.live {
        return;
    }
    descriptor.options = match *descriptor.options == *Options::shared_default() {
        true => Options::shared_live(),
        false => Arc::new(Options {
            live: true,
            ..(*descriptor.options).clone()
        }),
    };
}

/// Whether the entry of an assignment goes on with a live copy.
pub(crate) fn is_resumption(assignment: &Assignment) -> bool {
    matches!(assignment.entry, Entry::Resume(_))
}
