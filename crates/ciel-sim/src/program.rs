//! Scenarios as values: programs, machines, policies, faults.
//!
//! A program is a list of task definitions; task 0 is the root and a definition spawns only later
//! ones, so every program ends. Inside a task references are numbered: first its inputs, then what
//! each spawn and construct adds, then what each value that it gets brings along. A number beyond
//! the end makes its act do nothing, so a program from which acts are taken is still a program.
//!
//! This module does not know how programs run. Read next: `script` (in the world), `oracle` (by
//! recursion), `notation` (as text).

/// How a definition's tasks are run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A script on a thread of the engine.
    Thread,
    /// A process of its own.
    Process,
    /// A worker of the pool of that letter.
    Pool(char),
}

/// Which inputs a task takes by value: it starts when these are ready or have failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// None of them.
    Nothing,
    /// All of them.
    Everything,
    /// All but the first.
    Rest,
    /// All of them, as streams where they are some.
    Streams,
}

impl Needs {
    /// Whether the input at that index is one of them.
    pub fn includes(self, index: usize) -> bool {
        match self {
            Needs::Nothing => false,
            Needs::Everything | Needs::Streams => true,
            Needs::Rest => index > 0,
        }
    }
}

/// One kind of task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// How it is run.
    pub kind: Kind,
    /// Its strand can be replayed from its start.
    pub replayable: bool,
    /// Its output may go out while it runs.
    pub live: bool,
    /// It runs on demand only.
    pub lazy: bool,
    /// Equal calls share one result.
    pub pure: bool,
    /// Which of its inputs it takes by value.
    pub needs: Needs,
    /// Its first output is a stream, and whether that has a single consumer.
    pub streams: Option<bool>,
    /// Further attempts after a failure of its own.
    pub retries: u32,
    /// Whole cores.
    pub cores: u32,
    /// The locality weight of its first input, in percent.
    pub weight: u32,
    /// Whether it has a timeout; only a task that hangs ever meets it.
    pub timeout: bool,
    /// Number of outputs, at least 1.
    pub outputs: u32,
    /// What it does, in order.
    pub acts: Vec<Act>,
}

impl Default for Definition {
    fn default() -> Definition {
        Definition {
            kind: Kind::Thread,
            replayable: true,
            live: true,
            lazy: false,
            pure: false,
            needs: Needs::Nothing,
            streams: None,
            retries: 0,
            cores: 1,
            weight: 100,
            timeout: false,
            outputs: 1,
            acts: Vec::new(),
        }
    }
}

impl Definition {
    /// Whether its tasks may continue a strand whose output was released: none of them is ever
    /// rolled back.
    pub fn may_follow(&self) -> bool {
        let spawns = self.acts.iter().any(|act| matches!(act, Act::Spawn(..)));
        self.replayable || (self.retries == 0 && !spawns)
    }
}

/// One act of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// Writes to the ordered output.
    Print(String),
    /// Spawns a task of that definition with these references.
    Spawn(usize, Vec<usize>),
    /// Gets a value and adds it to what was seen; a failure is its own.
    Get(usize),
    /// The same, but a failure counts as a value.
    Catch(usize),
    /// Waits for the first of these references, for so many microseconds at most if given, and adds
    /// the resolved ones to the observations. It gets no value.
    First(Vec<usize>, Option<u64>),
    /// Waits for the next of those that the last wait for a first has left, likewise; nothing if it
    /// has left none.
    Rest(Option<u64>),
    /// Watches a reference, and continues.
    Watch(usize),
    /// Can name these references no more, except those that it still takes from a list. An act that
    /// names one of them later leaves it out.
    Release(Vec<usize>),
    /// Cancels these references, and adds those that are cancelled by then to the observations.
    Cancel(Vec<usize>),
    /// Makes an object of what was seen, with these references inside.
    Construct(Vec<usize>),
    /// Gives an output before the end.
    Publish(u32),
    /// Reads the time from the environment and drops it.
    Ask,
    /// Computes for so many microseconds.
    Pause(u64),
    /// Computes for so many microseconds in some attempts, and hardly at all in others.
    Straggle(u64),
    /// Fails in the first so many attempts of this task.
    Flake(u32),
    /// Fails in every attempt, with this code.
    Fail(u32),
    /// Runs for ever.
    Hang,
    /// Ends; each output is what was seen, with these references inside.
    Return(Vec<usize>),
    /// Ends; the first output is whatever that reference becomes.
    Delegate(usize),
    /// Ends; a task of that definition makes the outputs.
    Tail(usize, Vec<usize>),
}

impl Act {
    /// Whether what it sees depends on time.
    pub fn is_race(&self) -> bool {
        matches!(self, Act::First(..) | Act::Rest(_) | Act::Cancel(_))
    }
}

/// Something that happens from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A process of one task dies.
    KillProcess,
    /// A pooled worker dies, idle or not.
    KillWorker,
    /// All processes and workers die at once.
    KillNode,
    /// The engine is lost with everything it runs; another one continues with the records.
    KillEngine,
    /// What a strand did is undone from some action on: the n-th of all that can be undone.
    RollBack(usize),
    /// The user cancels the job.
    CancelJob,
}

/// What is expected of a named scenario beside agreement with the oracle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expectation {
    /// The job's result.
    Result(u64),
    /// The job's failure, as `Kind message`.
    Failure(String),
    /// The whole ordered output.
    Output(String),
    /// A counter of the graph at the end, by its name.
    Count(String, u64),
}

/// A program with the world it runs in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// Decides every delay and choice of the world.
    pub seed: u64,
    /// Cores, and threads for scripts.
    pub slots: u32,
    /// One thing at a time.
    pub serial: bool,
    /// All spawned work finishes, whatever fails.
    pub keep_going: bool,
    /// The first failed task in time ends the job.
    pub fail_fast: bool,
    /// Waiting strands are saved at random times, to be replayed from there.
    pub checkpoints: bool,
    /// Workers prefetch.
    pub ahead: bool,
    /// Some children run in place, if they can.
    pub in_place: bool,
    /// Pure tasks run twice, and their results are compared.
    pub check: bool,
    /// Pure tasks that run for long get a second run.
    pub stragglers: bool,
    /// Bytes of output that may wait behind the frontier.
    pub held_bytes: Option<u64>,
    /// Unfinished children from which on a strand pauses.
    pub children_max: Option<u32>,
    /// Room on the disk is scarce in turns of so many events, and always for 0.
    pub scarce: Option<u64>,
    /// The machine has 100 bytes of memory, of which the store may have so many, and most tasks
    /// declare some.
    pub memory: Option<u64>,
    /// The program.
    pub tasks: Vec<Definition>,
    /// Faults, by time in microseconds.
    pub faults: Vec<(u64, Fault)>,
    /// For named scenarios.
    pub expectations: Vec<Expectation>,
}

impl Scenario {
    /// How many retries a task of `definition` surely leaves over, so that as many attempts can be
    /// lost without a change to the job; 0 for one that may fail for good by itself.
    pub fn spare_attempts(&self, definition: usize) -> u32 {
        let definition = &self.tasks[definition];
        let mut flakes = 0;
        for act in &definition.acts {
            match act {
                Act::Flake(count) => flakes = flakes.max(*count),
                Act::Fail(_) | Act::Hang | Act::Get(_) => return 0,
                _ => {}
            }
        }
        definition.retries.saturating_sub(flakes)
    }

    /// Whether every tail-spawn hands over to a task that may follow, what hangs is ended, and what
    /// depends on time is not shared.
    pub fn is_sound(&self) -> bool {
        let ends = |task: &Definition| task.timeout || !task.acts.contains(&Act::Hang);
        let acts = self.tasks.iter().flat_map(|task| &task.acts);
        let mut tails = acts.filter_map(|act| match act {
            Act::Tail(next, _) => Some(*next),
            _ => None,
        });
        let races = |task: &Definition| task.acts.iter().any(Act::is_race);
        let shared = |task: &Definition| task.pure && races(task);
        let follow = tails.all(|next| self.tasks[next].may_follow());
        self.tasks.iter().all(ends)
            && !self.tasks.iter().any(shared)
            && self.tasks[0].may_follow()
            && follow
    }
}

/// What a task has seen after `value`, having seen `seen` before; order matters.
pub fn saw(seen: u64, value: u64) -> u64 {
    seen.wrapping_mul(31).wrapping_add(value).wrapping_add(1) % 1_000_003
}

/// The observations of a task after it received which indices of a race were resolved.
pub fn saw_places(seen: u64, places: &[u32]) -> u64 {
    let count = saw(seen, places.len() as u64);
    places
        .iter()
        .fold(count, |seen, place| saw(seen, u64::from(*place)))
}

/// What a caught failure counts as.
pub const CAUGHT: u64 = 77;

/// What a task of a definition has seen when it starts.
pub fn start_of(definition: usize) -> u64 {
    definition as u64 + 1
}
