//! The tasks and objects of one program, run one turn after the other.

use super::{Outcome, Plan, Promotes};
use bytes::Bytes;
use ciel_skywriting::code::Code;
use ciel_skywriting::diagnostic::Diagnostic;
use ciel_skywriting::host::{
    Answer, Handle, Host, Keeping, NoPackage, References, SpawnRequest, Thrown, Work,
};
use ciel_skywriting::machine::{Machine, Returned, Role, ScriptEnvironment, Step};
use std::collections::VecDeque;
use std::sync::Arc;

type ObjectId = usize;
type TaskId = usize;

#[derive(Debug, Clone)]
pub enum Object {
    Pending,
    Alias(ObjectId),
    Value {
        bytes: Bytes,
        references: Vec<ObjectId>,
    },
    Json {
        bytes: Bytes,
        references: Vec<ObjectId>,
    },
    Bytes(Bytes),
    Large(u64),
    Error(Thrown),
}

enum Event {
    Line(String),
    Child(TaskId),
}

enum Start {
    Call(Vec<u8>),
    Script,
    Running(Box<Machine>),
    Ended,
}

/// What a task can name.
#[derive(Clone, Default)]
struct Table {
    own: Vec<ObjectId>,
    delivered: Vec<ObjectId>,
}

impl Table {
    fn of(own: Vec<ObjectId>) -> Table {
        let delivered = Vec::new();
        Table { own, delivered }
    }

    fn object(&self, handle: Handle) -> ObjectId {
        match handle.0.checked_sub(Handle::DELIVERED_MIN) {
            Some(index) => self.delivered[index as usize],
            None => self.own[handle.0 as usize],
        }
    }

    fn objects(&self, handles: &[Handle]) -> Vec<ObjectId> {
        handles.iter().map(|handle| self.object(*handle)).collect()
    }

    fn deliver(&mut self, objects: &[ObjectId]) -> References {
        let first = Handle(Handle::DELIVERED_MIN + self.delivered.len() as u32);
        self.delivered.extend(objects);
        let count = objects.len() as u32;
        References { first, count }
    }
}

struct Task {
    start: Start,
    table: Table,
    events: Vec<Event>,
    output: ObjectId,
    waits_for: Vec<Handle>,
}

/// Collects the requests of a task during one turn.
struct Turn<'w> {
    objects: &'w mut Vec<Object>,
    table: &'w mut Table,
    events: &'w mut Vec<Event>,
    spawned: Vec<(SpawnRequest, Vec<ObjectId>, ObjectId)>,
    tasks: usize,
    promotes: Promotes,
    chance: &'w mut u64,
    /// Index of the last action of which it knows, and how many.
    last: Option<u64>,
}

/// The next of a row of numbers that look random.
fn next(chance: &mut u64) -> u64 {
    *chance = chance
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *chance >> 33
}

impl Turn<'_> {
    fn comes(&mut self, action: u64) {
        assert!(self.last <= Some(action), "{:?} before {action}", self.last);
        self.last = Some(action);
    }
}

impl Host for Turn<'_> {
    fn keeping(&mut self, _action: u64) -> Keeping {
        let is_kept = match self.promotes {
            Promotes::Always => false,
            Promotes::Never => true,
            Promotes::Seed(_) => !next(self.chance).is_multiple_of(4),
        };
        match is_kept {
            true => Keeping::Kept,
            false => Keeping::Promoted,
        }
    }

    fn construct(
        &mut self,
        action: u64,
        bytes: Vec<u8>,
        references: Vec<Handle>,
    ) -> Result<(), String> {
        self.comes(action);
        let references = self.table.objects(&references);
        self.table.own.push(self.objects.len());
        let bytes = bytes.into();
        self.objects.push(Object::Value { bytes, references });
        Ok(())
    }

    fn spawn(&mut self, request: SpawnRequest) {
        self.comes(request.action);
        let given = self.table.objects(&request.references);
        let first = self.objects.len();
        for _ in 0..request.outputs {
            self.table.own.push(self.objects.len());
            self.objects.push(Object::Pending);
        }
        self.events
            .push(Event::Child(self.tasks + self.spawned.len()));
        self.spawned.push((request, given, first));
    }

    fn print(&mut self, actions: u64, line: &str) {
        self.comes(actions);
        self.events.push(Event::Line(line.to_owned()));
    }

    fn package(&mut self, action: u64, name: &str) -> Result<Handle, NoPackage> {
        self.comes(action);
        if name != "data" {
            return Err(NoPackage::Unknown);
        }
        self.table.own.push(self.objects.len());
        self.objects.push(Object::Bytes("[1, 2, 3]".into()));
        Ok(Handle(self.table.own.len() as u32 - 1))
    }
}

/// All tasks of one program.
pub struct World {
    code: Arc<Code>,
    plan: Plan,
    root: Arc<ScriptEnvironment>,
    child: Arc<ScriptEnvironment>,
    objects: Vec<Object>,
    tasks: Vec<Task>,
    ready: VecDeque<TaskId>,
    waiting: Vec<TaskId>,
    result: Option<(Result<serde_json::Value, Thrown>, Option<Diagnostic>)>,
    spawns: usize,
    chance: u64,
    /// Called with every executor request; gives its outputs.
    executor: fn(&str, &serde_json::Value, u32) -> Vec<Object>,
}

/// The test executors: `echo` gives its arguments, `raw` its text, `fail` fails.
fn standard_executor(name: &str, arguments: &serde_json::Value, outputs: u32) -> Vec<Object> {
    let object = match name {
        "echo" => Object::Bytes(arguments.to_string().into()),
        "raw" => Object::Bytes(arguments["text"].as_str().unwrap_or("").to_string().into()),
        "binary" => Object::Bytes(vec![255, 0, 254].into()),
        "large" => Object::Large(20_000_000),
        "environ" => Object::Json {
            bytes: "\"environ\"".into(),
            references: vec![],
        },
        _ => Object::Error(Thrown {
            kind: "TaskError".into(),
            message: format!("the executor {name} failed"),
            task: "fail@1".into(),
            trace: vec!["line of the executor".into()],
            hint: None,
            value: None,
        }),
    };
    vec![object; outputs as usize]
}

impl World {
    pub fn new(code: Arc<Code>, plan: Plan) -> World {
        let chance = match plan.promotes {
            Promotes::Seed(seed) => seed,
            Promotes::Always | Promotes::Never => 0,
        };
        let root = Arc::new(plan.surroundings.clone());
        let child = Arc::new(ScriptEnvironment {
            role: Role::Function,
            ..plan.surroundings.clone()
        });
        let task = Task {
            start: Start::Script,
            table: Table::default(),
            events: vec![],
            output: 0,
            waits_for: vec![],
        };
        World {
            code,
            plan,
            root,
            child,
            objects: vec![Object::Pending],
            tasks: vec![task],
            ready: VecDeque::from([0]),
            waiting: vec![],
            result: None,
            spawns: 0,
            chance,
            executor: standard_executor,
        }
    }

    /// Runs until nothing is left to run.
    pub fn run(&mut self) -> Outcome {
        let mut turns = 0;
        while let Some(task) = self.next_ready() {
            self.turn(task);
            turns += 1;
            assert!(turns < self.plan.turns_max, "the program does not end");
        }
        assert!(
            self.waiting.is_empty() || self.result.is_some(),
            "deadlock: {:?}",
            self.waiting
        );
        let (result, place) = self.result.clone().expect("the root has ended");
        let mut output = Vec::new();
        self.lines(0, &mut output);
        Outcome {
            result,
            place,
            output,
            spawns: self.spawns,
        }
    }

    fn next_ready(&mut self) -> Option<TaskId> {
        match self.plan.newest_first {
            true => self.ready.pop_back(),
            false => self.ready.pop_front(),
        }
    }

    fn lines(&self, task: TaskId, output: &mut Vec<String>) {
        for event in &self.tasks[task].events {
            match event {
                Event::Line(line) => output.push(line.clone()),
                Event::Child(child) => self.lines(*child, output),
            }
        }
    }

    fn machine(&mut self, task: TaskId) -> Box<Machine> {
        let references = self.tasks[task].table.own.len() as u32;
        match std::mem::replace(&mut self.tasks[task].start, Start::Ended) {
            Start::Running(machine) => machine,
            Start::Script => Box::new(Machine::for_script(
                Arc::clone(&self.code),
                Arc::clone(&self.root),
            )),
            Start::Call(bytes) => {
                let (code, child) = (Arc::clone(&self.code), Arc::clone(&self.child));
                Box::new(Machine::for_call(code, &bytes, references, child).expect("valid bytes"))
            }
            Start::Ended => unreachable!("an ended task is not ready"),
        }
    }

    fn turn(&mut self, id: TaskId) {
        let mut machine = self.machine(id);
        self.answer(id, &mut machine);
        let mut task = std::mem::replace(
            &mut self.tasks[id],
            Task {
                start: Start::Ended,
                table: Table::default(),
                events: vec![],
                output: 0,
                waits_for: vec![],
            },
        );
        let mut turn = Turn {
            objects: &mut self.objects,
            table: &mut task.table,
            events: &mut task.events,
            spawned: vec![],
            tasks: self.tasks.len(),
            promotes: self.plan.promotes,
            chance: &mut self.chance,
            last: None,
        };
        let step = machine.run(&mut turn, self.plan.fuel);
        let is_asked = match (&step, self.plan.promotes) {
            (Step::NeedsHost, _) => true,
            (Step::Preempted, Promotes::Seed(_)) => next(turn.chance).is_multiple_of(2),
            _ => false,
        };
        let promoted = match is_asked {
            true => machine.promote_running(&mut turn),
            false => Ok(None),
        };
        let promoted = promoted.expect("a child that runs in place can be promoted");
        assert!(promoted.is_some() || step != Step::NeedsHost);
        let spawned = turn.spawned;
        let known = task.table.own.len() + task.table.delivered.len();
        assert_eq!(machine.references(), known);
        let output = task.output;
        let table = task.table.clone();
        self.tasks[id] = task;
        for (request, given, first) in spawned {
            self.start(request, given, first);
        }
        if let Some(promoted) = promoted {
            let last = self.tasks.last_mut().expect("it was spawned");
            last.start = Start::Running(promoted.machine);
        }
        match step {
            Step::Preempted | Step::NeedsHost => {
                self.tasks[id].start = Start::Running(machine);
                self.ready.push_back(id);
            }
            Step::Blocked { on } => self.block(id, machine, on),
            // As in the serial program, every task has ended before anybody can cancel it.
            Step::Cancels { .. } => {
                machine.cancelled(false);
                self.tasks[id].start = Start::Running(machine);
                self.ready.push_back(id);
            }
            Step::Finished(ended) => self.end(id, output, &table, ended.value),
            Step::Failed { thrown, place } => {
                if id == 0 {
                    self.result = Some((Err(*thrown.clone()), Some(*place)));
                }
                self.objects[output] = Object::Error(*thrown);
                self.wake();
            }
        }
    }

    fn start(&mut self, request: SpawnRequest, given: Vec<ObjectId>, first: ObjectId) {
        self.spawns += 1;
        let id = self.tasks.len();
        let start = match request.work {
            Work::Call(bytes) => Start::Call(bytes),
            Work::Executor {
                executor,
                arguments,
            } => {
                let made = (self.executor)(&executor, &arguments, request.outputs);
                for (at, object) in made.into_iter().enumerate() {
                    self.objects[first + at] = object;
                }
                Start::Ended
            }
        };
        let is_call = matches!(start, Start::Call(_));
        let task = Task {
            start,
            table: Table::of(given),
            events: vec![],
            output: first,
            waits_for: vec![],
        };
        self.tasks.push(task);
        match is_call {
            true => self.ready.push_back(id),
            false => self.wake(),
        }
    }

    fn block(&mut self, id: TaskId, mut machine: Box<Machine>, on: Vec<Handle>) {
        assert!(!on.is_empty(), "a task waits for nothing");
        self.tasks[id].waits_for = on;
        if self.plan.reload && !machine.has_kept() {
            let saved = machine.save();
            let kept = self.tasks[id].table.objects(&saved.references);
            let surroundings = if id == 0 { &self.root } else { &self.child };
            machine = Box::new(
                Machine::load(
                    Arc::clone(&self.code),
                    &saved.bytes,
                    Arc::clone(surroundings),
                )
                .expect("saved bytes load"),
            );
            let task = &mut self.tasks[id];
            for handle in &mut task.waits_for {
                let at = saved.references.iter().position(|known| known == handle);
                *handle = Handle(at.expect("what it waits for is live") as u32);
            }
            task.table = Table::of(kept);
        }
        self.tasks[id].start = Start::Running(machine);
        self.waiting.push(id);
        self.wake();
    }

    fn end(&mut self, id: TaskId, output: ObjectId, table: &Table, value: Returned) {
        self.objects[output] = match value {
            Returned::Json(value) => {
                assert_eq!(id, 0);
                self.result = Some((Ok(value), None));
                Object::Pending
            }
            Returned::Delegated(handle) => Object::Alias(table.object(handle)),
            Returned::Value { bytes, references } => Object::Value {
                bytes: bytes.into(),
                references: table.objects(&references),
            },
        };
        self.wake();
    }

    fn final_object(&self, mut object: ObjectId) -> Option<&Object> {
        loop {
            match &self.objects[object] {
                Object::Pending => return None,
                Object::Alias(other) => object = *other,
                other => return Some(other),
            }
        }
    }

    fn wake(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for id in waiting {
            let task = &self.tasks[id];
            let is_ready = task
                .waits_for
                .iter()
                .all(|handle| self.final_object(task.table.object(*handle)).is_some());
            match is_ready {
                true => self.ready.push_back(id),
                false => self.waiting.push(id),
            }
        }
    }

    /// Hands over what the task waited for, and renumbers.
    fn answer(&mut self, id: TaskId, machine: &mut Machine) {
        for handle in std::mem::take(&mut self.tasks[id].waits_for) {
            let object = self.tasks[id].table.object(handle);
            let object = self.final_object(object).expect("it is there").clone();
            let name = "object".to_owned();
            let table = &mut self.tasks[id].table;
            let answer = match object {
                Object::Value { bytes, references } => Answer::Value {
                    bytes,
                    references: table.deliver(&references),
                },
                Object::Json { bytes, references } => Answer::Json {
                    bytes,
                    references: table.deliver(&references),
                },
                Object::Bytes(bytes) => Answer::Bytes { name, bytes },
                Object::Large(bytes) => Answer::Large { name, bytes },
                Object::Error(thrown) => Answer::Error(thrown),
                Object::Pending | Object::Alias(_) => unreachable!("it is final"),
            };
            machine.answer(handle, answer);
        }
        if self.plan.compact
            && let Some(compacted) = machine.compact(false)
        {
            let table = &mut self.tasks[id].table;
            *table = Table::of(table.objects(&compacted.kept));
        }
    }
}
