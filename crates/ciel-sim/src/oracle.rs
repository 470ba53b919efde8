//! The serial program: what `--serial` does, by plain recursion.
//!
//! Every spawn runs its child there and then, a lazy child when it is demanded. It shares nothing
//! with the machines but the meaning of acts. It does not know time, attempts that fail only
//! sometimes, or where things run. Read next: `judge`, which compares.

use std::cmp::Ordering;

use ciel_model::Name;

use crate::locals::Locals;
use crate::program::{Act, CAUGHT, Scenario, saw, saw_places, start_of};
use crate::taken::Taken;
use crate::told::{CUT_BEGINS, CUT_ENDS, Told};

/// What the serial program shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The root's first output, or the job's failure.
    pub result: Result<u64, Failing>,
    /// The ordered output. What a cancelled strand wrote, with all that it spawned, is between
    /// [`CUT_BEGINS`] and [`CUT_ENDS`]: of that any prefix may be seen.
    pub output: String,
    /// Every task that failed, demanded or not.
    pub failures: Vec<Failing>,
    /// A task came to a race without a recorded answer.
    pub unanswered: bool,
}

/// A failed task, or the failure it passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The code of its kind.
    pub kind: &'static str,
    /// What it says.
    pub message: String,
    /// Where it began: the path of spawn counters from the root.
    pub origin: Vec<u64>,
    /// Bytes of output that come before the task in which it began, and that no later loss of a
    /// held ancestor may take back.
    pub output_before: usize,
}

#[derive(Clone, Debug)]
enum State {
    Ready(u64, Vec<usize>),
    Failed { failing: Failing, source: usize },
    Dormant(usize),
    Alias(usize),
}

#[derive(Clone, Debug)]
struct Object {
    state: State,
    asked: bool,
}

/// A task that is still to run, because it is lazy.
#[derive(Clone, Debug)]
struct Dormant {
    definition: usize,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    position: Vec<u64>,
    before: usize,
    safe: usize,
}

struct Noted {
    end: Vec<u64>,
    outputs: Vec<usize>,
    failing: Failing,
}

/// One task being run.
struct Frame {
    definition: usize,
    name: Vec<u64>,
    locals: Locals,
    outputs: Vec<usize>,
    /// Those that this task has published; what its strand gave before stays as it is.
    published: Vec<bool>,
    seen: u64,
    /// Races it has been in.
    races: usize,
    /// The last list of which it waited for the first.
    taken: Taken,
    before: usize,
    /// First byte of the outermost strand around it whose output can still be withdrawn.
    safe: usize,
}

/// A strand being run: its position and counters continue through tail-spawns.
struct Strand {
    position: Vec<u64>,
    actions: u64,
    tails: u64,
    visible: bool,
    published: Vec<bool>,
}

enum End {
    Done,
    Failed(Failing),
    Tail(usize, Vec<usize>),
}

struct Machine<'a> {
    scenario: &'a Scenario,
    objects: Vec<Object>,
    dormant: Vec<Option<Dormant>>,
    noted: Vec<Noted>,
    output: String,
    told: &'a Told,
    unanswered: bool,
    /// Cancelled tasks around what runs now.
    cuts: usize,
}

/// Marks a step of a path as a tail: those are counted apart from spawns.
const TAIL: u64 = 1 << 63;

/// The name of a task: the path of counters from the root to it.
pub fn name_of(path: &[u64]) -> Name {
    let root = Name::of_root(b"sim");
    path.iter()
        .fold(root, |name, index| match index & TAIL == 0 {
            true => name.spawn(*index),
            false => name.tail(index & !TAIL),
        })
}

/// Runs the program of `scenario` serially, with these inputs from the environment.
pub fn interpret(scenario: &Scenario, told: &Told) -> Outcome {
    let mut machine = Machine {
        scenario,
        objects: Vec::new(),
        dormant: Vec::new(),
        noted: Vec::new(),
        output: String::new(),
        told,
        unanswered: false,
        cuts: 0,
    };
    let outputs = machine.new_outputs(0);
    machine
        .objects
        .iter_mut()
        .for_each(|object| object.asked = true);
    let visible = Place {
        visible: true,
        safe: usize::MAX,
        before: 0,
    };
    machine.run_strand(0, Vec::new(), outputs.clone(), Vec::new(), visible);
    machine.outcome(outputs[0])
}

/// Where a strand's output goes.
#[derive(Clone, Copy)]
struct Place {
    visible: bool,
    safe: usize,
    before: usize,
}

impl Machine<'_> {
    fn outcome(mut self, root: usize) -> Outcome {
        self.ask(root);
        let unhandled = self
            .noted
            .iter()
            .filter(|noted| {
                !noted
                    .outputs
                    .iter()
                    .any(|output| self.objects[*output].asked)
            })
            .min_by(|a, b| ends_before(&a.end, &b.end))
            .map(|noted| noted.failing.clone());
        let result = match (&self.objects[self.target(root)].state, unhandled) {
            (State::Failed { failing, .. }, _) => Err(failing.clone()),
            (_, Some(failing)) => Err(failing),
            (State::Ready(number, _), None) => Ok(*number),
            (State::Dormant(_) | State::Alias(_), None) => unreachable!("the root was asked for"),
        };
        let failures = self.noted.into_iter().map(|noted| noted.failing).collect();
        Outcome {
            result,
            output: self.output,
            failures,
            unanswered: self.unanswered,
        }
    }

    fn new_outputs(&mut self, definition: usize) -> Vec<usize> {
        (0..self.scenario.tasks[definition].outputs.max(1))
            .map(|_| self.new_object(State::Ready(0, Vec::new())))
            .collect()
    }

    fn new_object(&mut self, state: State) -> usize {
        self.objects.push(Object {
            state,
            asked: false,
        });
        self.objects.len() - 1
    }

    fn target(&self, object: usize) -> usize {
        match self.objects[object].state {
            State::Alias(target) => self.target(target),
            _ => object,
        }
    }

    /// A task demands it: a lazy task runs, a failure is handled.
    fn ask(&mut self, object: usize) {
        let target = self.target(object);
        self.objects[object].asked = true;
        self.objects[target].asked = true;
        if let State::Dormant(index) = self.objects[target].state {
            let task = self.dormant[index]
                .take()
                .expect("a dormant task runs once");
            let place = Place {
                visible: false,
                safe: task.safe,
                before: task.before,
            };
            self.run_strand(
                task.definition,
                task.inputs,
                task.outputs,
                task.position,
                place,
            );
            return self.ask(object);
        }
        if let State::Failed { source, .. } = self.objects[target].state {
            self.objects[source].asked = true;
        }
    }

    fn run_strand(
        &mut self,
        mut definition: usize,
        mut inputs: Vec<usize>,
        outputs: Vec<usize>,
        position: Vec<u64>,
        place: Place,
    ) {
        let published = vec![false; outputs.len()];
        let mut strand = Strand {
            position,
            actions: 0,
            tails: 0,
            visible: place.visible,
            published,
        };
        let task = &self.scenario.tasks[definition];
        let held =
            !strand.position.is_empty() && (!task.live || task.retries > 0 && !task.replayable);
        let mut committed = self.output.len();
        let mut name = strand.position.clone();
        let (mut before, end) = (place.before, strand.position.clone());
        let begin = self.output.len();
        loop {
            let safe = if held {
                place.safe.min(committed)
            } else {
                place.safe
            };
            let seen = start_of(definition);
            let outputs = outputs.clone();
            let locals = Locals::of(&inputs);
            let frame = Frame {
                definition,
                name,
                locals,
                published: vec![false; outputs.len()],
                outputs,
                seen,
                races: 0,
                taken: Taken::default(),
                before,
                safe,
            };
            let outputs = frame.outputs.clone();
            if self.told.cut.contains(&name_of(&frame.name)) {
                return self.run_cancelled(frame, &mut strand, begin);
            }
            match self.run_task(frame, &mut strand) {
                End::Done => return,
                End::Failed(failing) => {
                    if held {
                        self.take_back(committed);
                    }
                    return self.note(end, &outputs, failing);
                }
                End::Tail(next, given) => {
                    name = strand.position.clone();
                    name.push(TAIL | strand.tails);
                    strand.tails += 1;
                    committed = self.output.len();
                    before = if strand.visible { committed } else { before };
                    (definition, inputs) = (next, given);
                }
            }
        }
    }

    /// A cancelled task runs, but none of its results count, and of its output only a part.
    fn run_cancelled(&mut self, frame: Frame, strand: &mut Strand, begin: usize) {
        let failing = Failing {
            kind: "Cancelled",
            message: String::new(),
            origin: frame.name.clone(),
            output_before: 0,
        };
        let outputs = frame.outputs.clone();
        self.cuts += 1;
        self.run_task(frame, strand);
        self.cuts -= 1;
        for (index, source) in outputs.into_iter().enumerate() {
            if !strand.published[index] {
                let failing = failing.clone();
                self.objects[source].state = State::Failed { failing, source };
            }
        }
        if strand.visible {
            self.output.insert(begin, CUT_BEGINS);
            self.output.push(CUT_ENDS);
        }
    }

    fn take_back(&mut self, length: usize) {
        self.output.truncate(length);
        for noted in &mut self.noted {
            noted.failing.output_before = noted.failing.output_before.min(length);
        }
        for task in self.dormant.iter_mut().flatten() {
            task.before = task.before.min(length);
            task.safe = task.safe.min(length);
        }
    }

    fn note(&mut self, end: Vec<u64>, outputs: &[usize], failing: Failing) {
        if failing.kind == "Cancelled" {
            return;
        }
        let outputs: Vec<usize> = outputs
            .iter()
            .copied()
            .filter(|output| matches!(self.objects[*output].state, State::Failed { .. }))
            .collect();
        self.noted.push(Noted {
            end,
            outputs,
            failing,
        });
    }

    /// Runs the acts of one task; what it leaves open becomes its value or its failure.
    fn run_task(&mut self, mut frame: Frame, strand: &mut Strand) -> End {
        let scenario = self.scenario;
        let task = &scenario.tasks[frame.definition];
        for (index, input) in frame.locals.all().enumerate() {
            if task.needs.includes(index) {
                self.ask(input);
            }
        }
        if task.cores > scenario.slots && task.kind != crate::program::Kind::Thread {
            return self.fail(&frame, strand, "Refused", "too large".to_string());
        }
        for act in &task.acts {
            if let Some(end) = self.act(&mut frame, strand, act) {
                return end;
            }
        }
        self.finish(&frame, strand, &[])
    }

    fn act(&mut self, frame: &mut Frame, strand: &mut Strand, act: &Act) -> Option<End> {
        let retries = self.scenario.tasks[frame.definition].retries;
        match act {
            Act::Print(text) => {
                if strand.visible {
                    self.output.push_str(text);
                }
            }
            Act::Spawn(definition, given) => self.spawn(frame, strand, *definition, given),
            Act::Get(local) => return self.get(frame, strand, *local, false),
            Act::Catch(local) => return self.get(frame, strand, *local, true),
            Act::First(among, _) => {
                for object in frame.locals.pick(among) {
                    self.ask(object);
                }
                self.race(frame, strand, among);
            }
            Act::Rest(_) => self.race(frame, strand, &frame.taken.left()),
            Act::Cancel(among) => self.race(frame, strand, among),
            Act::Watch(local) => {
                if let Some(object) = frame.locals.get(*local) {
                    self.ask(object);
                }
            }
            Act::Release(which) => frame.locals.release(which, &frame.taken.left()),
            Act::Construct(inside) => {
                let state = State::Ready(frame.seen, frame.locals.pick(inside));
                let object = self.new_object(state);
                frame.locals.extend([object]);
                strand.actions += 1;
            }
            Act::Publish(index) => self.publish(frame, strand, *index as usize),
            Act::Ask => strand.actions += 1,
            Act::Pause(_) | Act::Straggle(_) => {}
            Act::Flake(count) if *count > retries => {
                return Some(self.fail(frame, strand, "TaskError", "flaked".to_string()));
            }
            Act::Flake(_) => {}
            Act::Fail(number) => {
                return Some(self.fail(frame, strand, "TaskError", format!("failed {number}")));
            }
            Act::Hang => return Some(self.fail(frame, strand, "Timeout", String::new())),
            Act::Return(inside) => return Some(self.finish(frame, strand, inside)),
            Act::Delegate(local) => return self.delegate(frame, strand, *local),
            Act::Tail(definition, given) => {
                let given = frame.locals.pick(given);
                return Some(End::Tail(*definition, given));
            }
        }
        None
    }

    fn spawn(
        &mut self,
        frame: &mut Frame,
        strand: &mut Strand,
        definition: usize,
        given: &[usize],
    ) {
        let inputs = frame.locals.pick(given);
        let outputs = self.new_outputs(definition);
        let mut position = strand.position.clone();
        position.push(strand.actions);
        strand.actions += 1;
        frame.locals.extend(outputs.iter().copied());
        let before = match strand.visible {
            true => self.output.len(),
            false => frame.before,
        };
        if !self.scenario.tasks[definition].lazy {
            let place = Place {
                visible: strand.visible,
                safe: frame.safe,
                before,
            };
            return self.run_strand(definition, inputs, outputs, position, place);
        }
        let index = self.dormant.len();
        for output in &outputs {
            self.objects[*output].state = State::Dormant(index);
        }
        let safe = frame.safe;
        let task = Dormant {
            definition,
            inputs,
            outputs,
            position,
            before,
            safe,
        };
        self.dormant.push(Some(task));
    }

    fn get(
        &mut self,
        frame: &mut Frame,
        strand: &Strand,
        local: usize,
        catches: bool,
    ) -> Option<End> {
        let object = frame.locals.get(local)?;
        self.ask(object);
        match self.objects[self.target(object)].state.clone() {
            State::Ready(number, inside) => {
                frame.seen = saw(frame.seen, number);
                frame.locals.extend(inside);
                None
            }
            State::Failed { .. } if catches => {
                frame.seen = saw(frame.seen, CAUGHT);
                None
            }
            State::Failed { failing, .. } => Some(self.fail_with(frame, strand, failing)),
            State::Dormant(_) | State::Alias(_) => unreachable!("it was asked for"),
        }
    }

    /// A wait whose end depends on time, or a cancellation: it receives what the run recorded.
    fn race(&mut self, frame: &mut Frame, strand: &mut Strand, among: &[usize]) {
        let known = |local: &usize| frame.locals.get(*local).is_some();
        let listed: Vec<usize> = among.iter().copied().filter(known).collect();
        if listed.is_empty() {
            return;
        }
        let told = self.told.races.get(&name_of(&frame.name));
        let Some(ended) = told.and_then(|races| races.get(frame.races)) else {
            self.unanswered |= self.cuts == 0;
            return;
        };
        frame.races += 1;
        strand.actions += 1;
        frame.seen = saw_places(frame.seen, &ended.places);
        frame.taken.end(ended, listed);
    }

    fn publish(&mut self, frame: &mut Frame, strand: &mut Strand, index: usize) {
        if index >= frame.outputs.len() || frame.published[index] {
            return;
        }
        frame.published[index] = true;
        strand.actions += 1;
        if !strand.published[index] {
            strand.published[index] = true;
            self.objects[frame.outputs[index]].state = State::Ready(frame.seen, Vec::new());
        }
    }

    fn finish(&mut self, frame: &Frame, strand: &Strand, inside: &[usize]) -> End {
        for (index, output) in frame.outputs.iter().enumerate() {
            if !strand.published[index] {
                let inside = frame.locals.pick(inside);
                self.objects[*output].state = State::Ready(frame.seen, inside);
            }
        }
        End::Done
    }

    fn delegate(&mut self, frame: &Frame, strand: &Strand, local: usize) -> Option<End> {
        let to = self.target(frame.locals.get(local)?);
        self.finish(frame, strand, &[]);
        if !strand.published[0] {
            let asked = self.objects[frame.outputs[0]].asked;
            self.objects[frame.outputs[0]].state = State::Alias(to);
            if asked {
                self.ask(frame.outputs[0]);
            }
        }
        Some(End::Done)
    }

    fn fail(&mut self, frame: &Frame, strand: &Strand, kind: &'static str, message: String) -> End {
        let output_before = frame.before.min(frame.safe);
        let origin = frame.name.clone();
        self.fail_with(
            frame,
            strand,
            Failing {
                kind,
                message,
                origin,
                output_before,
            },
        )
    }

    fn fail_with(&mut self, frame: &Frame, strand: &Strand, failing: Failing) -> End {
        for (index, output) in frame.outputs.iter().enumerate() {
            if !strand.published[index] {
                let failing = failing.clone();
                self.objects[*output].state = State::Failed {
                    failing,
                    source: *output,
                };
            }
        }
        End::Failed(failing)
    }
}

/// Whether the strand at `a` ends before the one at `b`: a descendant ends before its ancestor.
fn ends_before(a: &[u64], b: &[u64]) -> Ordering {
    let common = a.iter().zip(b).position(|(a, b)| a != b);
    match common {
        Some(index) => a[index].cmp(&b[index]),
        None => b.len().cmp(&a.len()),
    }
}
