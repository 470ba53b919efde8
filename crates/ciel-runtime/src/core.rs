//! The engine's decisions and all that is kept beside them, under one lock.
//!
//! [`Core::ask`] hands an event to [`ciel_engine::Engine`]. What that wants done is done here if it
//! concerns threads of scripts, and is otherwise sent as an [`Order`] to the thread that does it.
//! Nothing is decided here. Read next: `engine`.

mod followed;
mod people;
mod spawns;
mod stirring;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ciel_coordinator::Coordinator;
use ciel_engine::{Action, Attempt, Caller, Effect, Engine, Event, Reply, SerialUse};
use ciel_graph::{self as graph, Assignment, Counts, Entry, Graph, JobOutcome};
use ciel_model::{Handle, KeyTable, Label, Micros, Name, StrandKey, TaskKey};
use ciel_node::{AttemptKey, Node, WorkerKey};
use ciel_ordered::Sink;
use ciel_skywriting::machine::Machine;
use ciel_store::{ObjectName, RunFolder};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::data_plane::DataPlane;
use crate::executors::{Executor, Launch, Registry};
use crate::gate::{Causes, Gate};
use crate::history::History;
use crate::in_place::InPlace;
use crate::kept::Request;
use crate::kept_queue;
use crate::moments::Moments;
pub(crate) use crate::orders::Order;
use crate::reruns::Reruns;
use crate::script::Script;
use crate::sources::{Source, Sources};
use crate::stopped_commands::StoppedCommands;
use crate::turns::{Pace, ThreadState, Turns};

use self::followed::Followed;
use self::stirring::Stirring;

/// Work that has a thread's place and waits for its thread.
pub(crate) enum Due {
    /// A task to begin or to resume; nothing is promised to it before it has its thread.
    Begin(AttemptKey),
    /// A preempted script to continue with.
    Next(Box<Script>),
}

/// Work for a thread.
pub(crate) enum Turn {
    /// A task to begin, and its executor.
    Begin(Box<Assignment>, Arc<dyn Executor>),
    /// A task that began in the machine of its parent.
    Promoted(Box<Assignment>, Box<Machine>),
    /// A script that waited.
    Resume(Box<Assignment>, Box<Script>),
    /// A preempted script to continue with.
    Next(Box<Script>),
}

/// Changes of strands without any output after which the output thread clears them away.
const SILENT_CHANGES_MAX: u64 = 4096;

/// Facts and answers that a script has met at least when it leaves a checkpoint.
const FACTS_BETWEEN_CHECKPOINTS: usize = 64;

/// What the threads of a run share.
pub(crate) struct Core {
    engine: Engine,
    pub(crate) history: History,
    pub(crate) moments: Moments,
    /// Scripts that wait for references or for another turn.
    pub(crate) scripts: KeyTable<TaskKey, Box<Script>>,
    /// Machines of tasks that ran in those of their parents and have not begun, by their names.
    pub(crate) promoted: FxHashMap<Name, Box<Machine>>,
    /// How many tasks of scripts ran in place.
    pub(crate) in_place: InPlace,
    /// Work that has a thread's place but not yet its thread.
    pub(crate) turns: Turns<Due>,
    pub(crate) ending: Option<JobOutcome>,
    /// All threads are to go home.
    pub(crate) closed: bool,
    /// The output thread has something to do.
    pub(crate) output_ready: bool,
    /// Open outputs of running processes.
    pub(crate) streams: Sources,
    /// Serves them to readers that ask for connections.
    pub(crate) data_plane: DataPlane,
    /// Process ids of running tasks.
    pub(crate) pids: FxHashMap<TaskKey, u32>,
    /// Process ids of workers.
    pub(crate) worker_pids: FxHashMap<WorkerKey, u32>,
    /// Where scripts were when they last had a turn, for `why`.
    pub(crate) script_lines: FxHashMap<TaskKey, String>,
    /// Commands with a time limit that were stopped.
    pub(crate) stopped_commands: StoppedCommands,
    /// Why tasks ran although results were looked up.
    pub(crate) reruns: Reruns,
    /// Microseconds of processor time of ended processes.
    spent_us: u64,
    /// Changes of strands when the output thread was last sent for.
    changes: u64,
    /// Tasks that wait until the serial order has reached them.
    gate: Gate,
    /// Output on disk that has no place in the order.
    pub(crate) unplaced: Vec<ciel_ordered::Extent>,
    /// How many attempts in workers were to be stopped so far.
    stops: Arc<AtomicU64>,
    /// The folder whose bytes on the disk are bounded, if they are.
    bounded: Option<Arc<RunFolder>>,
    effects: Vec<Effect>,
    orders: UnboundedSender<Order>,
    /// To the thread of kept results.
    kept: kept_queue::Sender,
    followed: Followed,
    stirring: Stirring,
}

impl Core {
    pub(crate) fn new(
        state: Coordinator,
        node: Node,
        orders: UnboundedSender<Order>,
        kept: kept_queue::Sender,
    ) -> Core {
        Core {
            changes: state.changes(),
            engine: Engine::new(state, node),
            history: History::default(),
            moments: Moments::default(),
            scripts: KeyTable::default(),
            promoted: FxHashMap::default(),
            in_place: InPlace::default(),
            turns: Turns::new(),
            ending: None,
            closed: false,
            streams: Sources::default(),
            data_plane: DataPlane::default(),
            output_ready: false,
            pids: FxHashMap::default(),
            worker_pids: FxHashMap::default(),
            script_lines: FxHashMap::default(),
            stopped_commands: StoppedCommands::default(),
            spent_us: 0,
            gate: Gate::default(),
            unplaced: Vec::new(),
            stops: Arc::default(),
            bounded: None,
            effects: Vec::new(),
            orders,
            kept,
            reruns: Reruns::default(),
            followed: Followed::default(),
            stirring: Stirring::default(),
        }
    }

    /// From now on tasks are held while more than so many bytes of output wait.
    pub(crate) fn bound_output(&mut self, bound_bytes: u64) {
        self.engine.bound_output(bound_bytes);
    }

    /// From now on a strand pauses while more than so many of its children have not ended.
    pub(crate) fn bound_children(&mut self, children_max: u32) {
        self.engine.bound_children(children_max);
    }

    /// From now on tasks are held while the files in that folder take much of so many bytes.
    pub(crate) fn bound_room(&mut self, budget_bytes: u64, folder: Arc<RunFolder>) {
        self.engine.bound_room(budget_bytes);
        self.bounded = Some(folder);
    }

    /// What the serial program would hold on the disk where it runs a task, if it is at that task.
    pub(crate) fn serial_use(&mut self, task: Name) -> Option<SerialUse> {
        let folder = self.bounded.as_ref()?;
        let is_on_disk = |name: Name| folder.objects().is_on_disk(ObjectName(name.0));
        self.engine.serial_use(task, is_on_disk)
    }

    /// Submits an event without a caller.
    pub(crate) fn tell(&mut self, now: Micros, event: impl Into<Event>) {
        self.ask(now, event, Caller::Nobody);
    }

    /// Submits an event, performs its effects, and returns the reply.
    pub(crate) fn ask(&mut self, now: Micros, event: impl Into<Event>, caller: Caller) -> Reply {
        self.stir();
        let event = event.into();
        let speaker = speaker_of(&event);
        let is_look = matches!(event, Event::FrontierMoved { .. });
        self.follow(&event);
        let mut effects = std::mem::take(&mut self.effects);
        if let Some(folder) = &self.bounded {
            let bytes = folder.disk_bytes() + folder.scratch().unfinished_bytes();
            self.engine.note_present(bytes);
        }
        let reply = self.engine.tell(now, event, caller, &mut effects);
        if let Some(task) = speaker.filter(|_| !matches!(reply, Reply::Continue { .. })) {
            self.pids.remove(&task);
            self.script_lines.remove(&task);
        }
        for effect in effects.drain(..) {
            self.perform(now, effect);
        }
        self.effects = effects;
        if !is_look {
            self.look_for_output();
            self.tell_held_of_rest(now);
        }
        reply
    }

    /// An attempt does something; gives the first handle that it thereby makes.
    pub(crate) fn act(
        &mut self,
        now: Micros,
        attempt: &mut Attempt,
        action: Action,
    ) -> Option<Handle> {
        let act = attempt.act(action);
        self.tell(now, act.event);
        act.first
    }

    fn perform(&mut self, now: Micros, effect: Effect) {
        let order = match effect {
            Effect::TurnOffered { attempt } => {
                return self.turns.push(now, Pace::Fresh, Due::Begin(attempt));
            }
            Effect::NextTurn { attempt } => return self.next_turn(now, attempt),
            Effect::DropScript { task } => return drop(self.scripts.remove(&task)),
            Effect::TaskEnded(summary) => return self.on_task_ended(summary),
            Effect::Happened { happening, slot } => return self.note(happening, slot),
            Effect::JobEnded(ending) => {
                self.ending = Some(*ending);
                Order::JobEnded
            }
            Effect::FindResult(query) => return self.kept.send(Request::Find(query)),
            Effect::StartProcess(assignment) => Order::StartProcess(assignment),
            Effect::SendProcess(assignment) => Order::SendProcess(assignment),
            Effect::WithdrawProcess(attempt) => Order::WithdrawProcess(attempt),
            Effect::ProcessFollowed(assignment) => Order::ProcessFollowed(assignment),
            Effect::StopProcess(attempt) => Order::StopProcess(attempt),
            Effect::ReadOn(attempt) => Order::ReadOn(attempt),
            Effect::StartWorker { worker, pool } => Order::StartWorker { worker, pool },
            Effect::StopWorker { worker } => Order::StopWorker(worker),
            Effect::StartInWorker { worker, begun } => Order::StartInWorker { worker, begun },
            Effect::StopInWorker { worker, attempt } => {
                self.stops.fetch_add(1, Ordering::Release);
                Order::StopInWorker { worker, attempt }
            }
            Effect::NotifyWatcher {
                worker,
                attempt,
                notice,
            } => Order::NotifyWatcher {
                worker,
                attempt,
                notice,
            },
            Effect::DropParked {
                worker,
                task,
                moves,
            } => Order::DropParked {
                worker,
                task,
                moves,
            },
            Effect::Compare(comparison) => Order::Compare(comparison),
            Effect::DropObject(name) => Order::DropObject(name),
            Effect::ShrinkStore { bytes } => Order::ShrinkStore(bytes),
            Effect::GrowStore { bytes } => Order::GrowStore(bytes),
            Effect::ReplyLate { .. } | Effect::SendStarts { .. } => {
                unreachable!("the home is in this process, so it replies at once")
            }
            Effect::DeadlineMoved | Effect::Quiet => Order::Rearm,
            Effect::AttemptFailed {
                task,
                failure,
                left,
                to: _,
            } => Order::AttemptFailed {
                task,
                failure,
                left,
            },
        };
        self.order(order);
    }

    fn on_task_ended(&mut self, summary: Box<graph::TaskSummary>) {
        self.promoted.remove(&summary.label.name);
        self.leave(&summary);
        self.summarise(summary)
    }

    pub(crate) fn order(&self, order: Order) {
        // The receiver is dropped only when the run is over; then the order is not needed.
        let _ = self.orders.send(order);
    }

    fn next_turn(&mut self, now: Micros, attempt: AttemptKey) {
        let script = self.scripts.remove(&attempt.task);
        let script = script.expect("a preempted script is kept until its next turn or its end");
        self.turns.push(now, Pace::Long, Due::Next(script));
    }

    /// The next turn for a thread of scripts. A task is begun only here, so that it knows all that
    /// is ready by then.
    pub(crate) fn take_turn(
        &mut self,
        now: Micros,
        hand: &mut ThreadState,
        registry: &Registry,
    ) -> Option<Turn> {
        loop {
            let attempt = match self.turns.take(now, hand)? {
                Due::Next(script) => return Some(Turn::Next(script)),
                Due::Begin(attempt) => attempt,
            };
            if let Reply::Begin(begun) = self.ask(now, Event::TurnTaken { attempt }, Caller::Thread)
            {
                return Some(self.turn_of(hand, registry, begun.assignment));
            }
            self.turns.put_down(now, hand);
        }
    }

    fn turn_of(
        &mut self,
        hand: &mut ThreadState,
        registry: &Registry,
        assignment: Box<Assignment>,
    ) -> Turn {
        if is_resumption(&assignment) {
            let kept = self.scripts.remove(&assignment.task);
            let script = kept.expect("a suspended script is kept until it is resumed or stopped");
            return Turn::Resume(assignment, script);
        }
        if let Some(machine) = self.promoted.remove(&assignment.label.name)
            && matches!(assignment.entry, Entry::Start(_))
        {
            return Turn::Promoted(assignment, machine);
        }
        let descriptor = &assignment.descriptor;
        let executor = registry.find(&descriptor.executor);
        let may_block = match executor.launch() {
            Launch::Coroutine(coroutine) => coroutine.may_block(&descriptor.payload),
            Launch::Command(_) | Launch::Worker(_) | Launch::Release(_) => true,
        };
        if may_block {
            self.turns.may_take_long(hand);
        }
        Turn::Begin(assignment, executor)
    }

    /// Sends for the output thread if strands have changed so that it has something to do. Strands
    /// without output leave the streams when the frontier passes them, in bulk.
    fn look_for_output(&mut self) {
        let state = self.state();
        let changes = state.changes() - self.changes;
        let is_silent = state.output().waiting_bytes() == 0 && state.errors().waiting_bytes() == 0;
        if changes >= SILENT_CHANGES_MAX {
            self.changes += changes;
            self.output_ready = true;
        } else if changes > 0 && !(is_silent && self.gate.is_empty()) {
            self.send_for_output_if_ready();
        }
    }

    /// Moves the frontier as far as it can go, and sends for the output thread if there are bytes
    /// or a task has its turn. Whoever changed a strand looks here, under the lock that it has, so
    /// that the thread is never woken for nothing.
    pub(crate) fn send_for_output_if_ready(&mut self) {
        let state = self.engine.state_mut();
        let has_output = state.output_mut().advance();
        let has_errors = state.errors_mut().advance();
        let stopping = |attempt| self.engine.is_stopping(attempt);
        let has_turn = self.gate.is_due(self.engine.state().output(), stopping);
        self.output_ready |= has_output || has_errors || has_turn;
    }

    /// Says that the frontier rests if tasks are held until it moves.
    fn tell_held_of_rest(&mut self, now: Micros) {
        if self.engine.has_held() {
            self.send_for_output_if_ready();
            if !self.output_ready {
                self.tell(now, Event::FrontierMoved { rests: true });
            }
        }
    }

    /// Bytes of a task's ordered output, or where they lie. Output that has no place in the order
    /// (of lazy tasks and what they spawn) is kept for `ciel logs`.
    ///
    /// Returns the failure of a replayed strand whose output differs from the recorded one.
    pub(crate) fn write(
        &mut self,
        strand: StrandKey,
        task: &Label,
        after: u64,
        piece: impl Into<ciel_ordered::Piece>,
    ) -> Result<(), String> {
        let piece = piece.into();
        let key = ciel_ordered::StrandKey(strand.0);
        if !self.state().output().has_place(key) {
            match piece {
                ciel_ordered::Piece::Bytes(bytes) => self.log(task, "stdout", &bytes),
                ciel_ordered::Piece::Extent(extent) => {
                    self.unplaced.push(extent);
                    self.output_ready = true;
                }
            }
            return Ok(());
        }
        let written = self.state_mut().write(strand, after, piece);
        self.send_for_output_if_ready();
        written
    }

    /// The same for an ordered file.
    pub(crate) fn write_file(
        &mut self,
        strand: StrandKey,
        task: &Label,
        after: u64,
        (sink, piece): (Sink, ciel_ordered::Piece),
    ) -> Result<(), String> {
        let key = ciel_ordered::StrandKey(strand.0);
        if sink == Sink::OUTPUT || !self.state().output().has_place(key) {
            return self.write(strand, task, after, piece);
        }
        let written = self.state_mut().write_file(strand, after, sink, piece);
        self.send_for_output_if_ready();
        written
    }

    /// The same for standard error, if that is ordered.
    pub(crate) fn write_error(&mut self, strand: StrandKey, after: u64, bytes: Vec<u8>) {
        self.state_mut().write_error(strand, after, bytes.into());
        self.send_for_output_if_ready();
    }

    /// A task waits from now on until the serial order has reached it.
    pub(crate) fn wait_for_turn(
        &mut self,
        strand: StrandKey,
        attempt: AttemptKey,
    ) -> oneshot::Receiver<Causes> {
        let turn = self.gate.wait(strand, attempt);
        self.send_for_output_if_ready();
        turn
    }

    /// A task that waits for its turn does so no longer.
    pub(crate) fn stop_waiting(&mut self, attempt: AttemptKey) {
        self.gate.stop(attempt);
    }

    /// Lets tasks go that the serial order has reached; `causes` is the last record.
    pub(crate) fn open_gate(&mut self, causes: Causes) {
        let engine = &self.engine;
        let stopping = |attempt| engine.is_stopping(attempt);
        self.gate.open(engine.state().output(), causes, stopping);
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
}

/// What may be asked.
impl Core {
    /// What decides.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What survives this process: graph and ordered output.
    pub(crate) fn state(&self) -> &Coordinator {
        self.engine.state()
    }

    /// The same, for the threads that write output, release it, or keep the records.
    pub(crate) fn state_mut(&mut self) -> &mut Coordinator {
        self.engine.state_mut()
    }

    /// How many tasks there were, those that ran in place among them.
    pub(crate) fn counts(&self) -> Counts {
        self.in_place.with(self.graph().counts())
    }

    /// The task graph.
    pub(crate) fn graph(&self) -> &Graph {
        self.engine.graph()
    }

    /// Whether the one reader of an open output has its slot, or has to wait for its worker only.
    pub(crate) fn reader_begins(&self, source: &Source) -> bool {
        let (task, index) = (source.producer.task, source.index);
        let reader = self.graph().direct_reader(task, index);
        let Some((reader, number)) = reader else {
            return false;
        };
        let node = self.engine.node();
        let attempt = AttemptKey {
            task: reader,
            number,
        };
        let options = self.graph().view(reader).map(|view| view.options);
        let has_room = options.is_some_and(|it| node.free().awaited(&it.resources).is_none());
        node.is_placed(attempt) || node.awaits_worker() && has_room
    }

    /// Whether that attempt is to end.
    pub(crate) fn is_stopping(&self, attempt: AttemptKey) -> bool {
        self.engine.is_stopping(attempt)
    }

    /// Raised whenever an attempt in a worker is to be stopped: who has seen no change need not
    /// ask whether his is.
    pub(crate) fn stops(&self) -> Arc<AtomicU64> {
        self.stops.clone()
    }

    /// Cores that tasks may use.
    pub(crate) fn cores(&self) -> usize {
        self.engine.node().capacity().resources.millicores as usize / 1000
    }

    /// Cores that are idle while no task waits for one.
    pub(crate) fn idle_cores(&self) -> usize {
        self.engine.node().idle_cores()
    }

    /// Whether the state of a script that waits is to be kept now; soon if objects take much room
    /// that its replay would need.
    pub(crate) fn wants_checkpoint(&self, assignment: &Assignment, is_pressed: bool) -> bool {
        let (task, strand) = (assignment.task, assignment.strand);
        let facts = match is_pressed {
            true => 1,
            false => FACTS_BETWEEN_CHECKPOINTS,
        };
        self.engine.wants_checkpoint(task, strand, facts)
    }
}

/// The task whose turn may be over with that event.
fn speaker_of(event: &Event) -> Option<TaskKey> {
    match event {
        Event::TurnEnded { attempt, .. } => Some(attempt.task),
        Event::Graph(graph::Event::TaskBlocked { task, .. }) => Some(*task),
        _ => None,
    }
}

/// Whether the entry of an assignment resumes a live copy.
pub(crate) fn is_resumption(assignment: &Assignment) -> bool {
    matches!(assignment.entry, Entry::Resume(_))
}
