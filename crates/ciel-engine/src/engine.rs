//! The door, and the loop that lasts until neither machine has anything to say to the other.
//!
//! All that the graph asks of the node because of one event is collected first; then the node looks
//! for slots once. So a task that ends frees its slot in the same step in which it makes others
//! ready, and those can have it. Read next: `perform`.

use ciel_coordinator::Coordinator;
use ciel_graph::{self as graph, Graph};
use ciel_model::{Label, Micros, StrandKey, TaskKey};
use ciel_node::{self as node, AttemptKey, Node, Slot, WorkerKey};
use rustc_hash::FxHashMap;

use crate::event::{Begun, Caller, Effect, Event, Reply};
use crate::line::Line;

/// An attempt in its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenSlot {
    pub(crate) place: Slot,
    /// The graph has ended it; whoever runs it has not told that it has left.
    pub(crate) is_stopping: bool,
    /// It is a script that waits for another turn, and no thread has it.
    pub(crate) is_preempted: bool,
}

impl TakenSlot {
    pub(crate) fn new(place: Slot) -> TakenSlot {
        TakenSlot {
            place,
            is_stopping: false,
            is_preempted: false,
        }
    }
}

/// All of a run that is decided upon.
#[derive(Debug)]
pub struct Engine {
    pub(crate) state: Coordinator,
    pub(crate) node: Node,
    /// Attempts that have begun and have not left.
    pub(crate) slots: FxHashMap<AttemptKey, TakenSlot>,
    /// Workers that have said hello.
    pub(crate) lines: FxHashMap<WorkerKey, Line>,
    pub(crate) job_ended: bool,
    /// The deadline that was last told.
    deadline: Option<Micros>,
    /// What the node is to hear in the next round.
    pub(crate) for_node: Vec<node::Event>,
    graph_actions: Vec<graph::Action>,
    node_actions: Vec<node::Action>,
}

/// One call of the door.
pub(crate) struct Telling<'a> {
    pub(crate) now: Micros,
    pub(crate) caller: Caller,
    pub(crate) reply: Reply,
    /// The attempt that waits from now on.
    pub(crate) suspended: Option<AttemptKey>,
    /// What has begun in workers, until the node has nothing more to say.
    pub(crate) begun: Vec<(WorkerKey, Begun)>,
    /// Of those, how many have been given what may follow them.
    pub(crate) looked: usize,
    pub(crate) effects: &'a mut Vec<Effect>,
}

impl Telling<'_> {
    /// The attempt that the calling worker has begun by itself.
    pub(crate) fn follower(&self) -> Option<AttemptKey> {
        match self.caller {
            Caller::Worker { follows, .. } => follows,
            Caller::Nobody | Caller::Thread => None,
        }
    }
}

impl Engine {
    /// An engine with that state and a node where nothing runs.
    pub fn new(state: Coordinator, node: Node) -> Engine {
        Engine {
            state,
            node,
            slots: FxHashMap::default(),
            lines: FxHashMap::default(),
            job_ended: false,
            deadline: None,
            for_node: Vec::new(),
            graph_actions: Vec::new(),
            node_actions: Vec::new(),
        }
    }

    /// Takes one event, appends what has to be done about it, and replies to whoever tells it.
    pub fn tell(
        &mut self,
        now: Micros,
        event: impl Into<Event>,
        caller: Caller,
        effects: &mut Vec<Effect>,
    ) -> Reply {
        let mut telling = Telling {
            now,
            caller,
            reply: Reply::Nothing,
            suspended: None,
            begun: Vec::new(),
            looked: 0,
            effects,
        };
        self.on_event(&mut telling, event.into());
        self.settle(&mut telling);
        Self::begin_in_workers(&mut telling);
        self.note_deadline(&mut telling);
        telling.reply
    }

    fn on_event(&mut self, telling: &mut Telling<'_>, event: Event) {
        match event {
            Event::Graph(event @ graph::Event::TaskBlocked { task, attempt, .. }) => {
                self.on_task_blocked(telling, AttemptKey { task, attempt }, event)
            }
            Event::Graph(event) => self.tell_graph(telling, event),
            Event::TurnEnded { run, end } => self.on_turn_ended(telling, run, end),
            Event::TurnTaken { run } => self.on_turn_taken(telling, run),
            Event::TaskPreempted { run } => self.on_task_preempted(run),
            Event::WorkerReady { worker, prefetches } => {
                self.lines.insert(worker, Line::new(prefetches));
                self.for_node.push(node::Event::WorkerReady { worker });
            }
            Event::WorkerRetired { worker } => {
                self.on_retired(worker);
                self.for_node.push(node::Event::WorkerRetired { worker });
            }
            Event::WorkerGone { worker } => {
                self.lines.remove(&worker);
                self.for_node.push(node::Event::WorkerGone { worker });
            }
            Event::PrefetchReturned { worker, runs } => self.on_prefetch_returned(worker, &runs),
            Event::Ticked => {
                self.tell_graph(telling, graph::Event::Ticked);
                self.for_node.push(node::Event::Ticked);
            }
        }
    }

    /// Tells the graph an event and does what it asks for; what is for the node is collected.
    pub(crate) fn tell_graph(&mut self, telling: &mut Telling<'_>, event: graph::Event) {
        let mut actions = std::mem::take(&mut self.graph_actions);
        self.state.tell(telling.now, event, &mut actions);
        for action in actions.drain(..) {
            self.perform(telling, action);
        }
        self.graph_actions = actions;
    }

    /// Rounds of the node until nothing follows from them.
    fn settle(&mut self, telling: &mut Telling<'_>) {
        loop {
            self.round(telling);
            self.prefetch(telling);
            if self.for_node.is_empty() {
                return;
            }
        }
    }

    fn round(&mut self, telling: &mut Telling<'_>) {
        while !self.for_node.is_empty() {
            let mut events = std::mem::take(&mut self.for_node);
            let mut actions = std::mem::take(&mut self.node_actions);
            self.node
                .handle(telling.now, events.drain(..), &mut actions);
            self.for_node = events;
            for action in actions.drain(..) {
                self.perform_on_node(telling, action);
            }
            self.node_actions = actions;
        }
    }

    /// What has begun in the caller's worker is the reply; the rest are effects.
    fn begin_in_workers(telling: &mut Telling<'_>) {
        for (worker, begun) in telling.begun.drain(..) {
            let begun = Box::new(begun);
            let is_callers =
                matches!(telling.caller, Caller::Worker { worker: own, .. } if own == worker);
            match (is_callers, &telling.reply) {
                (true, Reply::Nothing | Reply::Suspended) => telling.reply = Reply::Begin(begun),
                _ => telling
                    .effects
                    .push(Effect::StartInWorker { worker, begun }),
            }
        }
    }

    fn note_deadline(&mut self, telling: &mut Telling<'_>) {
        let deadline = self.next_deadline();
        if deadline != self.deadline {
            self.deadline = deadline;
            telling.effects.push(Effect::DeadlineMoved);
        }
    }
}

/// What may be asked.
impl Engine {
    /// What survives this process: graph and ordered output.
    pub fn state(&self) -> &Coordinator {
        &self.state
    }

    /// The same, for whoever writes output, takes it out, or keeps the records.
    pub fn state_mut(&mut self) -> &mut Coordinator {
        &mut self.state
    }

    /// The task graph.
    pub fn graph(&self) -> &Graph {
        self.state.graph()
    }

    /// Slots, queues and workers of this machine.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// When [`Event::Ticked`] is wanted at the latest.
    pub fn next_deadline(&self) -> Option<Micros> {
        let deadlines = [self.graph().next_deadline(), self.node.next_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Whether the graph has ended an attempt that has not left its slot.
    pub fn is_stopping(&self, run: AttemptKey) -> bool {
        self.slots.get(&run).is_some_and(|slot| slot.is_stopping)
    }

    /// Where an attempt runs.
    pub fn place_of(&self, run: AttemptKey) -> Option<Slot> {
        self.slots.get(&run).map(|slot| slot.place)
    }

    /// Of the tasks in their slots, the one that was spawned first.
    pub fn oldest_running(&self) -> Option<Label> {
        let oldest = self.slots.keys().min()?;
        self.graph().view(oldest.task).map(|view| view.label)
    }

    /// Whether no task is in its slot.
    pub fn is_quiet(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether the state of a strand that waits is to be kept now: it would otherwise have to
    /// replay more than `facts` facts and answers, and retain all that it has met.
    pub fn wants_checkpoint(&self, task: TaskKey, strand: StrandKey, facts: usize) -> bool {
        self.graph().outgrows_checkpoint(task, facts)
            && self.state.is_recording()
            && !self.state.is_behind(strand)
    }
}
