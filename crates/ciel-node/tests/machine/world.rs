//! A node, and the words in which these tests say what happens to it and what it wants done.

use ciel_model::{
    AttemptNumber, Class, OrderLabel, Pairing, Pool, Resources, SingleReader, TaskKey,
};
use ciel_node::{Action, AttemptKey, Capacity, Event, Kept, Node, Slot, WorkerKey};

/// What the strands of these tests have run before they wait.
pub const RAN_US: u64 = 2_000;

/// The root of a job, which is last in serial order.
pub const ROOT: u64 = 1_000;

pub struct World {
    pub now: u64,
    pub node: Node,
}

impl World {
    pub fn new(cores: u32, serial: bool) -> World {
        let resources = cores_of(cores);
        let node = Node::new(Capacity {
            resources,
            threads: cores,
            serial,
        });
        World { now: 0, node }
    }

    /// What the node wants done, one word each: `3:process`, `3:thread`, `3:worker0`, … .
    pub fn tell(&mut self, event: Event) -> String {
        self.tell_all([event])
    }

    /// The same of several events with one search for places.
    pub fn tell_all<const N: usize>(&mut self, events: [Event; N]) -> String {
        let mut actions = Vec::new();
        self.node.handle(self.now, events, &mut actions);
        let words: Vec<String> = actions.iter().map(word).collect();
        words.join(" ")
    }

    pub fn offer(&mut self, task: u64, class: Class, resources: Resources) -> String {
        let event = self.offered(task, class, resources);
        self.tell(event)
    }

    pub fn offered(&self, task: u64, class: Class, resources: Resources) -> Event {
        Event::TaskOffered {
            attempt: attempt_of(task),
            label: label(task, 0),
            class,
            resources,
            resumed: None,
            is_root: false,
            is_limited: false,
            near: Box::default(),
            pairing: Pairing::default(),
        }
    }

    pub fn resume(&mut self, task: u64, executor: &str) -> String {
        self.resume_after(task, executor, u64::MAX)
    }

    /// A strand of a pure task, which may be replayed although its copy lives.
    pub fn resume_pure(&mut self, task: u64, executor: &str) -> String {
        self.resume_after(task, executor, RAN_US)
    }

    fn resume_after(&mut self, task: u64, executor: &str, replay_us: u64) -> String {
        self.tell(Event::TaskOffered {
            attempt: attempt_of(task),
            label: label(task, 0),
            class: Class::Pooled(Pool::new(executor, 1)),
            resources: cores_of(1),
            resumed: Some(replay_us),
            is_root: false,
            is_limited: false,
            near: Box::default(),
            pairing: Pairing::default(),
        })
    }

    pub fn resume_script(&mut self, task: u64) -> String {
        self.tell(Event::TaskOffered {
            attempt: attempt_of(task),
            label: label(task, 0),
            class: Class::Coordination,
            resources: cores_of(1),
            resumed: Some(u64::MAX),
            is_root: false,
            is_limited: false,
            near: Box::default(),
            pairing: Pairing::default(),
        })
    }

    pub fn root(&mut self, resumed: Option<u64>) -> String {
        self.root_of("py", resumed)
    }

    pub fn root_of(&mut self, executor: &str, resumed: Option<u64>) -> String {
        self.tell(Event::TaskOffered {
            attempt: attempt_of(ROOT),
            label: label(ROOT, 0),
            class: Class::Pooled(Pool::new(executor, 1)),
            resources: cores_of(1),
            resumed,
            is_root: true,
            is_limited: false,
            near: Box::default(),
            pairing: Pairing::default(),
        })
    }

    pub fn process(&mut self, task: u64, cores: u32) -> String {
        self.offer(task, Class::Process, cores_of(cores))
    }

    pub fn pooled(&mut self, task: u64, executor: &str) -> String {
        self.offer(task, Class::Pooled(Pool::new(executor, 1)), cores_of(1))
    }

    /// A task with a limit, for which its worker may be killed.
    pub fn limited(&mut self, task: u64, executor: &str) -> String {
        let pool = Class::Pooled(Pool::new(executor, 1));
        let mut event = self.offered(task, pool, cores_of(1));
        if let Event::TaskOffered { is_limited, .. } = &mut event {
            *is_limited = true;
        }
        self.tell(event)
    }

    /// A task that is to write a stream for one reader, of which that is known.
    pub fn producer(&mut self, task: u64, reader: SingleReader) -> String {
        let reads = None;
        self.stream_end(task, Pairing { reads, reader })
    }

    /// The reader of what a running task writes for it alone.
    pub fn reader(&mut self, task: u64, producer: u64) -> String {
        let reads = Some(TaskKey(producer));
        let reader = SingleReader::None;
        self.stream_end(task, Pairing { reads, reader })
    }

    /// A task in a process that has these streams.
    pub fn stream_end(&mut self, task: u64, streams: Pairing) -> String {
        let mut event = self.offered(task, Class::Process, cores_of(1));
        if let Event::TaskOffered { pairing, .. } = &mut event {
            *pairing = streams;
        }
        self.tell(event)
    }

    pub fn reader_waits(&mut self, producer: u64) -> String {
        let producer = attempt_of(producer);
        self.tell(Event::ReaderWaits { producer })
    }

    /// The same when so much time has passed.
    pub fn after(&mut self, passed_us: u64) -> String {
        self.now += passed_us;
        self.tell(Event::Ticked)
    }

    pub fn relabeled(&mut self, task: u64, position: u64, epoch: u64) -> String {
        let (attempt, label) = (attempt_of(task), label(position, epoch));
        self.tell(Event::TaskRelabeled { attempt, label })
    }

    pub fn script(&mut self, task: u64) -> String {
        self.offer(task, Class::Coordination, cores_of(1))
    }

    pub fn stopping(&mut self, task: u64) -> String {
        let attempt = attempt_of(task);
        self.tell(Event::TaskStopping { attempt })
    }

    pub fn left(&mut self, task: u64) -> String {
        self.tell(Event::TaskLeft {
            attempt: attempt_of(task),
            kept: Kept::Nothing,
        })
    }

    pub fn parked(&mut self, task: u64) -> String {
        self.tell(Event::TaskLeft {
            attempt: attempt_of(task),
            kept: Kept::Copy,
        })
    }

    pub fn parked_timely(&mut self, task: u64) -> String {
        self.tell(Event::TaskLeft {
            attempt: attempt_of(task),
            kept: Kept::TimelyCopy,
        })
    }

    pub fn ready(&mut self, worker: u64) -> String {
        self.ready_with_slots(worker, 1)
    }

    pub fn ready_with_slots(&mut self, worker: u64, slots: u32) -> String {
        let worker = WorkerKey(worker);
        self.tell(Event::WorkerReady { worker, slots })
    }

    pub fn lend(&mut self, running: u64) -> Option<u64> {
        let lent = self.node.lend(attempt_of(running));
        lent.map(|attempt| attempt.task.0)
    }

    pub fn returned(&mut self, task: u64) -> String {
        self.tell(Event::TaskReturned {
            attempt: attempt_of(task),
        })
    }

    pub fn followed(&mut self, task: u64, next: u64) -> String {
        let (attempt, next) = (attempt_of(task), attempt_of(next));
        let kept = Kept::Nothing;
        self.tell(Event::TaskFollowed {
            attempt,
            next,
            kept,
        })
    }

    /// A task that has begun inside another one is offered.
    pub fn begun(&mut self, task: u64, inside: u64) -> String {
        let class = Class::Pooled(Pool::new("p", 1));
        let offered = self.offered(task, class, cores_of(1));
        let (attempt, inside) = (attempt_of(task), attempt_of(inside));
        self.tell_all([offered, Event::TaskReserved { attempt, inside }])
    }

    /// A task that has begun inside another one does not take over its slot.
    pub fn unreserved(&mut self, task: u64, inside: u64) -> String {
        let (attempt, inside) = (attempt_of(task), attempt_of(inside));
        self.tell(Event::TaskUnreserved { attempt, inside })
    }

    /// A task waits with a live copy, and the one that has begun inside it takes over its slot.
    pub fn taken_over(&mut self, task: u64, next: u64) -> String {
        let (attempt, next) = (attempt_of(task), attempt_of(next));
        let kept = Kept::Copy;
        self.tell(Event::TaskFollowed {
            attempt,
            next,
            kept,
        })
    }

    /// Two cores with two workers, 0 and 1, which run tasks 1 and 2.
    pub fn pair() -> World {
        let mut world = World::new(2, false);
        world.pooled(1, "py");
        world.pooled(2, "py");
        assert_eq!(world.ready(0), "1:worker0");
        assert_eq!(world.ready(1), "2:worker1");
        world
    }

    /// A worker that runs task 1 while others of its pool wait.
    pub fn busy(waiting: &[u64]) -> World {
        let mut world = World::new(1, false);
        world.pooled(1, "p");
        assert_eq!(world.ready(0), "1:worker0");
        for task in waiting {
            assert_eq!(world.pooled(*task, "p"), "");
        }
        world
    }
}

pub fn attempt_of(task: u64) -> AttemptKey {
    AttemptKey {
        task: TaskKey(task),
        number: AttemptNumber(0),
    }
}

pub fn cores_of(cores: u32) -> Resources {
    Resources {
        millicores: cores * 1000,
        ..Resources::default()
    }
}

pub fn word(action: &Action) -> String {
    match action {
        Action::Place { attempt, slot } => {
            let slot = match slot {
                Slot::Thread => "thread".to_string(),
                Slot::Process => "process".to_string(),
                Slot::Worker(worker) => format!("worker{}", worker.0),
            };
            format!("{}:{slot}", attempt.task.0)
        }
        Action::NextTurn { attempt } => format!("{}:turn", attempt.task.0),
        Action::Refuse { attempt, .. } => format!("{}:refused", attempt.task.0),
        Action::StartWorker { worker, pool } => format!("start{}({pool})", worker.0),
        Action::StopWorker { worker } => format!("stop{}", worker.0),
        Action::DropParked {
            worker,
            task,
            moves: true,
        } => format!("drop{}({})", worker.0, task.0),
        Action::DropParked {
            worker,
            task,
            moves: false,
        } => format!("cancel{}({})", worker.0, task.0),
        Action::ContinuationLost { task } => format!("lost{}", task.0),
        Action::ShrinkStore { bytes } => format!("shrink({bytes})"),
        Action::GrowStore { bytes } => format!("grow({bytes})"),
    }
}

/// That of a task whose number is its position in the serial order.
pub fn label(position: u64, epoch: u64) -> OrderLabel {
    OrderLabel { position, epoch }
}
