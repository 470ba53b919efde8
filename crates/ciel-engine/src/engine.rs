//! A home and one site in one process, behind one door.
//!
//! Their messages are delivered within the same call, so the reply is ready at once. All messages
//! of the home because of one event reach the site first; then the node looks for slots once. So a
//! task that ends frees its slot in the same step in which it makes others ready, and those can
//! have it. Read next: `home`, `site`.

use ciel_coordinator::Coordinator;
use ciel_graph::{self as graph, Graph};
use ciel_model::{Label, Micros, Name, SegmentedQueue, StrandKey, TaskKey};
use ciel_node::{AttemptKey, Node, Slot};

use crate::event::{Caller, Effect, Event, Reply, ResultQuery};
use crate::home::{FromHome, Home, Pausing, Pressure, SerialUse, effect_of};
use crate::message::{SiteKey, ToHome};
use crate::site::{Call, Site};

const HERE: SiteKey = SiteKey(0);

/// All of a run that is decided upon.
#[derive(Debug)]
pub struct Engine {
    home: Home,
    site: Site,
    /// The last reported deadline.
    deadline: Option<Micros>,
    to_home: Vec<ToHome>,
    from_home: SegmentedQueue<FromHome>,
}

impl Engine {
    /// An engine with that state and a node where nothing runs.
    pub fn new(state: Coordinator, node: Node) -> Engine {
        let site = Site::new(node);
        let home = Home::with_site(state, HERE, site.capacity().clone());
        Engine {
            home,
            site,
            deadline: None,
            to_home: Vec::new(),
            from_home: SegmentedQueue::default(),
        }
    }

    /// Takes one event, appends its effects, and returns the reply to the caller.
    pub fn tell(
        &mut self,
        now: Micros,
        event: impl Into<Event>,
        caller: Caller,
        effects: &mut Vec<Effect>,
    ) -> Reply {
        let mut to_home = std::mem::take(&mut self.to_home);
        let mut call = Call::new(now, caller, effects, &mut to_home);
        match event.into() {
            Event::Graph(event) if is_for_home(&event) => {
                self.home.tell(now, event, &mut self.from_home)
            }
            Event::Graph(event) => {
                if self.site.passes_on(&mut call, &event) {
                    self.home.on_acted(now, HERE, event, &mut self.from_home);
                }
            }
            Event::SpawnedBegun(event) => {
                self.home
                    .on_spawned_begun(now, HERE, event, &mut self.from_home);
            }
            Event::TurnEnded { attempt, end } => {
                if let Some(event) = end.filter(|_| !self.site.is_stopping(attempt)) {
                    self.home.on_acted(now, HERE, event, &mut self.from_home);
                }
                self.site.on_turn_ended(&mut call, attempt);
            }
            Event::Ticked => {
                let event = graph::Event::Ticked;
                self.home.tell(now, event, &mut self.from_home);
                self.site.on_event(&mut call, Event::Ticked);
            }
            Event::FrontierMoved { rests } => {
                self.home.on_frontier_moved(now, rests, &mut self.from_home)
            }
            Event::ProcessWrote { attempt, bytes } => self.home.on_process_wrote(attempt, bytes),
            Event::ProcessPaused { attempt } => self.home.on_process_paused(attempt),
            Event::ChildrenAwaited { attempt } => {
                self.home.on_children_awaited(attempt, &mut self.from_home);
            }
            event => self.site.on_event(&mut call, event),
        }
        self.deliver(&mut call);
        while self.site.advance(&mut call) || self.home.let_go(now, &mut self.from_home) {
            self.deliver(&mut call);
        }
        let reply = call.end();
        self.to_home = to_home;
        self.note_deadline(effects);
        reply
    }

    /// Delivers what home and site have to say to each other, each in order, until both are silent.
    fn deliver(&mut self, call: &mut Call<'_>) {
        let now = call.now;
        while !(call.to_home.is_empty() && self.from_home.is_empty()) {
            for message in call.to_home.drain(..) {
                self.home.receive(now, HERE, message, &mut self.from_home);
            }
            while let Some(from_home) = self.from_home.pop_front() {
                match from_home {
                    FromHome::Send(_, message) => self.site.on_message(call, message),
                    FromHome::Do(effect) => call.effects.push(effect),
                }
            }
        }
    }

    fn note_deadline(&mut self, effects: &mut Vec<Effect>) {
        let deadline = self.next_deadline();
        if deadline != self.deadline {
            self.deadline = deadline;
            effects.push(Effect::DeadlineMoved);
        }
    }
}

/// Whether an event is about the run, and not submitted by a task in it.
fn is_for_home(event: &graph::Event) -> bool {
    use graph::Event;
    matches!(
        event,
        Event::RootSubmitted { .. }
            | Event::EngineLost { .. }
            | Event::FilesLost { .. }
            | Event::CancelRequested { .. }
            | Event::JobCancelled { .. }
            | Event::TaskRolledBack { .. }
            | Event::ResultFound { .. }
            | Event::ResultKnown { .. }
            | Event::ResultMissing { .. }
    )
}

/// What may be asked.
impl Engine {
    /// What survives this process: graph and ordered output.
    pub fn state(&self) -> &Coordinator {
        self.home.state()
    }

    /// The same, for the threads that write output, release it, or keep the records.
    pub fn state_mut(&mut self) -> &mut Coordinator {
        self.home.state_mut()
    }

    /// From now on tasks wait while more than so many bytes of output wait behind the frontier.
    /// While [`has_held`](Self::has_held), the caller looks for output after each event, and
    /// submits [`Event::FrontierMoved`] when it has done so.
    pub fn bound_output(&mut self, bound_bytes: u64) {
        self.home.bound_output(bound_bytes);
    }

    /// From now on tasks wait while the files of the run take much of so many bytes of the disk, as
    /// [`note_present`](Self::note_present) says. The caller does the same as for
    /// [`bound_output`](Self::bound_output).
    pub fn bound_room(&mut self, budget_bytes: u64) {
        self.home.bound_room(budget_bytes);
    }

    /// So many bytes of the run's files are on the disk now. What becomes of it does so in the next
    /// event.
    pub fn note_present(&mut self, bytes: u64) {
        self.home.note_present(bytes, &mut self.from_home);
    }

    /// From now on a strand of which more than so many children have not ended pauses where it
    /// waits for nothing, until half as many are left.
    pub fn bound_children(&mut self, children_max: u32) {
        self.home.bound_children(children_max);
    }

    /// How it stands with the bound of children, if there is one.
    pub fn pausing(&self) -> Option<Pausing> {
        self.home.pausing()
    }

    /// Whether so many children of a strand have not ended that it is to wait for nothing.
    pub fn has_many_children(&self, strand: StrandKey) -> bool {
        self.home.has_many_children(strand)
    }

    /// How many children of an attempt that is paused have not ended; none if it is not paused.
    pub fn paused_for(&self, attempt: AttemptKey) -> Option<u32> {
        self.home.paused_for(attempt)
    }

    /// What the serial program would hold on the disk where it runs a task; none if the task is
    /// not the first of those that have not ended, or if the room is not bounded. Only the caller
    /// knows which objects are `on_disk`.
    pub fn serial_use(&mut self, task: Name, on_disk: impl Fn(Name) -> bool) -> Option<SerialUse> {
        self.home.serial_use(task, on_disk)
    }

    /// How it stands with output that waits, if that is bounded.
    pub fn pressure(&self) -> Option<Pressure> {
        self.home.pressure()
    }

    /// Whether tasks wait until the frontier has moved.
    pub fn has_held(&self) -> bool {
        self.home.has_held()
    }

    /// Whether the attempt waits until the frontier has moved.
    pub fn is_held(&self, attempt: AttemptKey) -> bool {
        self.home.is_held(attempt)
    }

    /// Whether a strand that has written or spawned is to wait for nothing before it does so again.
    pub fn should_ask(&self, strand: StrandKey) -> bool {
        self.home.should_ask(strand)
    }

    /// Whether what a process writes is not to be read for now. Who does not read it submits
    /// [`Event::ProcessPaused`], and reads on because of [`Effect::ReadOn`].
    pub fn must_pause(&self, attempt: AttemptKey) -> bool {
        self.home.must_pause(attempt)
    }

    /// The task graph.
    pub fn graph(&self) -> &Graph {
        self.home.graph()
    }

    /// Slots, queues and workers of this machine.
    pub fn node(&self) -> &Node {
        self.site.node()
    }

    /// When [`Event::Ticked`] is wanted at the latest.
    pub fn next_deadline(&self) -> Option<Micros> {
        let deadlines = [self.home.next_deadline(), self.site.next_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// The query for the result of a task, if all that it is given is known by its content.
    pub fn query_for(&self, task: TaskKey) -> Option<Box<ResultQuery>> {
        match effect_of(self.graph().query_for(task)?) {
            Effect::FindResult(query) => Some(query),
            other => unreachable!("{other:?} is no query"),
        }
    }

    /// Whether the graph has ended an attempt that has not left its slot.
    pub fn is_stopping(&self, attempt: AttemptKey) -> bool {
        self.site.is_stopping(attempt)
    }

    /// Where an attempt runs.
    pub fn slot_of(&self, attempt: AttemptKey) -> Option<Slot> {
        self.site.slot_of(attempt)
    }

    /// The slots in which something runs, each as often as it is taken.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.site.slots()
    }

    /// Of the tasks in their slots, the one that was spawned first.
    pub fn oldest_running(&self) -> Option<Label> {
        let oldest = self.site.oldest_running()?;
        self.graph().view(oldest.task).map(|view| view.label)
    }

    /// Whether no task is in its slot.
    pub fn is_quiet(&self) -> bool {
        self.site.is_quiet()
    }

    /// Whether the state of a strand that waits is to be kept now: it would otherwise have to
    /// replay more than `facts` facts and answers, and retain all that it has met.
    pub fn wants_checkpoint(&self, task: TaskKey, strand: StrandKey, facts: usize) -> bool {
        self.graph().outgrows_checkpoint(task, facts)
            && self.state().is_recording()
            && !self.state().is_behind(strand)
    }

    /// Whether processes were sent that have not begun and are not returned.
    pub(crate) fn awaits_processes(&self) -> bool {
        self.site.awaits_processes()
    }

    /// Asserts all invariants of both halves; linear in what they hold.
    pub fn check_all(&self) {
        self.home.check_all();
        self.site.check_all();
    }
}
