//! A simulated executor: it runs the acts of one task and says what it does next.
//!
//! Like any executor it knows its references by handle only, keeps its own count of the handle
//! table, and sees values as bytes. It does not know the graph, time or other tasks; what it keeps
//! while it waits is the whole value [`Script`], so a copy of it is a saved continuation. Read
//! next: `world`, which performs the moves.

mod waits;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use ciel_graph::{Carriage, Output, Step, Until, Wait};
use ciel_model::{
    ActionKey, Class, CodeIdentity, Content, Descriptor, Fact, FactAct, Failure, FailureKind, Form,
    Handle, Input, Keeping, Label, Name, Options, Payload, Pool, Purity, Reached, Resolution,
    Resources, Site, Streams, TaskKind, Value, WaitEnd, Weights,
};

use crate::in_place::{self, Calls, Known, Local};
use crate::memory::declared;
use crate::program::{Act, CAUGHT, Definition, Kind, Needs, Scenario, saw, start_of};
use crate::taken::Taken;

/// Microseconds that tasks with a timeout may run: far more than any but a hanging one does.
pub const TIMEOUT_US: u64 = 1_000_000;

/// What a script does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    /// It computes.
    Wait(u64),
    /// It computes for so long, or hardly at all.
    Straggle(u64),
    /// It writes, when it has done so many actions.
    Write(String, u64),
    /// A step that the graph sees.
    Step(Step),
    /// It goes no further without these.
    Block(Vec<Handle>, Wait),
    /// It watches this, and continues.
    Watch(Handle),
    /// It ends.
    Finish(Vec<Output>),
    /// It hands over, when it has done so many actions.
    Tail(Arc<Descriptor>, u64),
    /// It fails.
    Fail(Failure),
    /// It computes for ever.
    Hang,
}

/// A task in the middle of its acts.
#[derive(Clone, Debug)]
pub struct Script {
    /// Which definition it runs.
    pub definition: usize,
    /// Whether it wrote anything.
    pub printed: bool,
    /// It waits for nothing but room.
    pub(crate) asks_for_room: bool,
    /// Children that it ran in place.
    pub called: u64,
    label: Label,
    at: usize,
    seen: u64,
    locals: Vec<Local>,
    next_handle: u32,
    next_action: u64,
    /// Parts of the next action so far.
    parts: u32,
    /// The acts before it continues.
    queue: VecDeque<Move>,
    known: BTreeMap<usize, Known>,
    /// The resolutions received at the start of a replay.
    recalled: BTreeMap<Handle, Known>,
    published: Vec<bool>,
    pending: Option<(usize, bool)>,
    /// It waits for these until that, so long at most.
    race: Option<(Vec<usize>, Until, Option<u64>)>,
    /// The last list of which it waited for the first.
    taken: Taken,
    /// The graph keeps that list.
    follows: bool,
    /// How the race ended, if it received that.
    told: Option<WaitEnd>,
    /// The answers of an earlier run, to be repeated.
    recorded: VecDeque<WaitEnd>,
    /// Spawns that it repeats.
    spawned: BTreeSet<u64>,
    calls: Calls,
    /// The answers of all its races, with their actions.
    pub races: Vec<(u64, WaitEnd)>,
}

impl Script {
    /// A task of `definition` at its start, with the state of its inputs; its first action has that
    /// index.
    pub fn start(
        definition: usize,
        label: Label,
        next_action: u64,
        inputs: u32,
        outputs: u32,
        told: Vec<(Handle, Resolution)>,
    ) -> Script {
        let mut script = Script {
            definition,
            printed: false,
            asks_for_room: false,
            called: 0,
            label,
            at: 0,
            seen: start_of(definition),
            locals: (0..inputs).map(Handle).map(Local::Told).collect(),
            next_handle: inputs,
            next_action,
            parts: 0,
            queue: VecDeque::new(),
            known: BTreeMap::new(),
            recalled: BTreeMap::new(),
            published: vec![false; outputs as usize],
            pending: None,
            race: None,
            taken: Taken::default(),
            follows: false,
            told: None,
            recorded: VecDeque::new(),
            spawned: BTreeSet::new(),
            calls: Calls::default(),
            races: Vec::new(),
        };
        for (handle, resolution) in told {
            let known = script.read(resolution);
            script.known.insert(handle.0 as usize, known);
        }
        script
    }

    fn read(&mut self, resolution: Resolution) -> Known {
        match resolution {
            Resolution::Ready { value, .. } => {
                let number = number_in(&value.content);
                let inside = value.references.into_iter().map(Local::Told).collect();
                Known::Ready(number, inside)
            }
            Resolution::Failed(failure) => Known::Failed(failure),
            Resolution::Future => unreachable!("an answer is never a future"),
        }
    }

    /// It opens its first output before it does anything else.
    pub(crate) fn open_output(&mut self) {
        let carriage = Carriage::Stored;
        let step = Step::OpenOutput { index: 0, carriage };
        self.queue.push_back(Move::Step(step));
    }

    /// It is replayed: the answers of its races are repeated.
    pub fn replay(&mut self, facts: &[Fact]) {
        for fact in facts {
            match &fact.act {
                FactAct::Waited(ended) => self.recorded.push_back(ended.clone()),
                FactAct::Spawned { .. } => drop(self.spawned.insert(fact.at.action)),
                FactAct::Constructed { .. } | FactAct::Input { .. } => {}
            }
        }
    }

    /// What it did in place before that action it does in place again, and no more.
    pub(crate) fn repeat_calls(&mut self, until: u64) {
        self.calls.repeat(until);
    }

    /// Whether it repeats the spawn of that action.
    pub(crate) fn has_spawned(&self, action: u64) -> bool {
        self.spawned.contains(&action)
    }

    /// It is replayed from its start, and has from the start the resolutions of what it had
    /// requested.
    pub fn recall(&mut self, known: Vec<(Handle, Resolution)>) {
        for (handle, resolution) in known {
            let known = self.read(resolution);
            self.recalled.insert(handle, known);
        }
    }

    /// What is known of one of its references.
    fn known(&self, local: usize) -> Option<Known> {
        let recalled = || match &self.locals[local] {
            Local::Told(handle) => self.recalled.get(handle),
            Local::Here(..) | Local::Gone => None,
        };
        self.known.get(&local).or_else(recalled).cloned()
    }

    /// What it is called by.
    pub fn name(&self) -> Name {
        self.label.name
    }

    /// Drops unused handles and renumbers the others, from 0 or, if it is `saved`, as delivered
    /// ones; returns those it keeps, and what it waits for in the new numbers.
    pub fn compact(&mut self, saved: bool) -> (Vec<Handle>, Vec<Handle>) {
        let first = if saved { Handle::DELIVERED_MIN } else { 0 };
        let mut kept = Vec::new();
        self.known.retain(|_, known| Known::is_from_here(known));
        let known = self.known.values_mut().flat_map(Known::inside_mut);
        for local in self.locals.iter_mut().chain(known) {
            local.each_handle(&mut |handle| {
                kept.push(*handle);
                *handle = Handle(first + kept.len() as u32 - 1);
            });
        }
        if !saved {
            self.next_handle = kept.len() as u32;
        }
        self.recalled.clear();
        self.follows = false;
        let waits = match (&self.race, self.pending) {
            (Some((among, ..)), _) => among.clone(),
            (None, pending) => vec![pending.expect("only a waiting script is made smaller").0],
        };
        let waits = waits.into_iter().map(|local| self.handle(local));
        (kept, waits.collect())
    }

    /// Drops the answers to be repeated in later races: a replay from here receives them with the
    /// facts.
    pub fn forget_told(&mut self) {
        self.recorded.clear();
    }

    /// The next move; `failures` is how many attempts of this task have failed.
    pub fn advance(&mut self, scenario: &Scenario, failures: u32) -> Move {
        loop {
            if let Some(next) = self.queue.pop_front() {
                return next;
            }
            if let Some(next) = self.go_on_racing() {
                return next;
            }
            if let Some((local, catches)) = self.pending {
                match self.known(local) {
                    None => return Move::Block(vec![self.handle(local)], self.plain_wait()),
                    Some(known) => {
                        self.pending = None;
                        if let Some(failed) = self.absorb(known, catches) {
                            return failed;
                        }
                    }
                }
            }
            let act = scenario.tasks[self.definition].acts.get(self.at).cloned();
            self.at += 1;
            let act = act.unwrap_or(Act::Return(Vec::new()));
            if let Some(next) = self.perform(scenario, act, failures) {
                return next;
            }
        }
    }

    fn absorb(&mut self, known: Known, catches: bool) -> Option<Move> {
        match known {
            Known::Ready(number, inside) => {
                self.seen = saw(self.seen, number);
                self.locals.extend(inside);
                None
            }
            Known::Failed(_) if catches => {
                self.seen = saw(self.seen, CAUGHT);
                None
            }
            Known::Failed(failure) => Some(Move::Fail((*failure).clone())),
        }
    }

    fn perform(&mut self, scenario: &Scenario, act: Act, failures: u32) -> Option<Move> {
        match act {
            Act::Print(text) => {
                self.printed |= !text.is_empty();
                Some(Move::Write(text, self.next_action))
            }
            Act::Spawn(definition, given) => self.spawn(scenario, definition, &given),
            Act::Get(local) => self.want(local, false),
            Act::Catch(local) => self.want(local, true),
            Act::First(among, limit) => self.race(among, Until::First, limit),
            Act::Rest(limit) => self.race(self.taken.left(), Until::Rest, limit),
            Act::Cancel(among) => self.race(among, Until::Cancelled, None),
            Act::Watch(local) => match self.locals.get(local)? {
                Local::Told(handle) => Some(Move::Watch(*handle)),
                Local::Here(..) | Local::Gone => None,
            },
            Act::Release(which) => self.release(&which),
            Act::Construct(inside) => {
                let value = self.value(&inside);
                let handle = self.take_handles(1);
                self.locals.push(Local::Told(handle));
                let at = ActionKey::action(self.take_action());
                self.then(Move::Step(Step::Construct { at, handle, value }))
            }
            Act::Publish(index) => self.publish(index),
            Act::Ask => Some(Move::Step(Step::Input {
                at: ActionKey::action(self.take_action()),
                kind: "clock".into(),
                value: vec![0; 8].into(),
            })),
            Act::Pause(time) => Some(Move::Wait(time)),
            Act::Straggle(time) => Some(Move::Straggle(time)),
            Act::Flake(count) if failures < count => Some(self.fail("flaked".to_string())),
            Act::Flake(_) => None,
            Act::Fail(number) => Some(self.fail(format!("failed {number}"))),
            Act::Hang => Some(Move::Hang),
            Act::Return(inside) => {
                let outputs = self.outputs(&inside);
                self.then(Move::Finish(outputs))
            }
            Act::Delegate(local) => self.delegate(local),
            Act::Tail(definition, given) => {
                let inputs = self.tell(&given);
                let outputs = self.published.len() as u32;
                let descriptor = descriptor(scenario, definition, inputs, outputs);
                self.then(Move::Tail(descriptor, self.next_action))
            }
        }
    }

    fn spawn(&mut self, scenario: &Scenario, definition: usize, given: &[usize]) -> Option<Move> {
        let outputs = scenario.tasks[definition].outputs.max(1);
        let known = in_place::pick(&self.locals, given);
        let action = self.next_action;
        let has_spawned = self.has_spawned(action);
        if (self.calls).is_next(scenario, self.label.name, action, has_spawned)
            && let Some(given) = self.calls.call(scenario, definition, known)
        {
            self.take_action();
            self.take_handles(outputs);
            self.locals.extend(given.outputs);
            self.printed |= !given.text.is_empty();
            self.called += 1;
            return Some(Move::Write(given.text, self.next_action));
        }
        let inputs = self.tell(given);
        let first = self.take_handles(outputs);
        let handles = (first.0..first.0 + outputs).map(Handle);
        self.locals.extend(handles.map(Local::Told));
        let descriptor = descriptor(scenario, definition, inputs, outputs);
        let action = self.take_action();
        self.then(Move::Step(Step::Spawn {
            action,
            first,
            descriptor,
        }))
    }

    /// Does that when it has received all that it needs.
    fn then(&mut self, last: Move) -> Option<Move> {
        self.queue.push_back(last);
        self.queue.pop_front()
    }

    fn take_handles(&mut self, count: u32) -> Handle {
        let first = self.next_handle;
        self.next_handle += count;
        Handle(first)
    }

    fn take_action(&mut self) -> u64 {
        self.parts = 0;
        self.next_action += 1;
        self.next_action - 1
    }

    /// The handle of a reference of which the graph knows.
    fn handle(&self, local: usize) -> Handle {
        match &self.locals[local] {
            Local::Told(handle) => *handle,
            Local::Here(..) | Local::Gone => unreachable!("it is told before it is used"),
        }
    }

    /// Handles of references, as far as they exist. What ran in place is made an object first, as a
    /// part of the next action.
    fn tell(&mut self, which: &[usize]) -> Vec<Handle> {
        let found = which.iter().filter(|local| self.has(**local));
        let found: Vec<usize> = found.copied().collect();
        let mut handles = Vec::with_capacity(found.len());
        for local in found {
            let reference = self.locals[local].clone();
            if let Local::Here(number, inside) = &reference {
                let known = Known::Ready(*number, inside.clone());
                self.known.insert(local, known);
            }
            let handle = self.tell_one(reference);
            self.locals[local] = Local::Told(handle);
            handles.push(handle);
        }
        handles
    }

    fn tell_one(&mut self, reference: Local) -> Handle {
        let (number, inside) = match reference {
            Local::Told(handle) => return handle,
            Local::Here(number, inside) => (number, inside),
            Local::Gone => unreachable!("nothing is made of what it has released"),
        };
        let inside = inside.into_iter().map(|local| self.tell_one(local));
        let mut value = Value::inline(Form::Bytes, number.to_be_bytes().to_vec());
        value.references = inside.collect();
        let handle = self.take_handles(1);
        let at = ActionKey::part(self.next_action, self.parts);
        self.parts += 1;
        self.queue
            .push_back(Move::Step(Step::Construct { at, handle, value }));
        handle
    }

    fn has(&self, local: usize) -> bool {
        self.locals
            .get(local)
            .is_some_and(|one| *one != Local::Gone)
    }

    /// Releases the handles by which nothing else calls its object.
    fn release(&mut self, which: &[usize]) -> Option<Move> {
        let left = self.taken.left();
        let mut handles = Vec::new();
        for local in which.iter().filter(|local| !left.contains(local)) {
            if let Some(released) = self.locals.get_mut(*local) {
                let mut gone = std::mem::replace(released, Local::Gone);
                gone.each_handle(&mut |handle| handles.push(*handle));
                self.known.remove(local);
            }
        }
        let known = self.known.values_mut().chain(self.recalled.values_mut());
        let inside = known.flat_map(Known::inside_mut);
        for named in self.locals.iter_mut().chain(inside) {
            named.each_handle(&mut |handle| handles.retain(|gone| gone != handle));
        }
        handles.retain(|handle| !self.calls.has(*handle));
        (!handles.is_empty()).then_some(Move::Step(Step::Release { handles }))
    }

    fn want(&mut self, local: usize, catches: bool) -> Option<Move> {
        if let Some(Local::Here(number, inside)) = self.locals.get(local).cloned() {
            return self.absorb(Known::Ready(number, inside), catches);
        }
        if self.has(local) {
            self.pending = Some((local, catches));
            if let Some(known) = self.known(local) {
                self.pending = None;
                return self.absorb(known, catches);
            }
            return Some(Move::Block(vec![self.handle(local)], Wait::ALL));
        }
        None
    }

    fn publish(&mut self, index: u32) -> Option<Move> {
        let published = self.published.get_mut(index as usize)?;
        if std::mem::replace(published, true) {
            return None;
        }
        let value = self.value(&[]);
        let handle = self.take_handles(1);
        Some(Move::Step(Step::Publish {
            at: ActionKey::action(self.take_action()),
            handle,
            index,
            value,
        }))
    }

    fn outputs(&mut self, inside: &[usize]) -> Vec<Output> {
        let value = self.value(inside);
        let output = |published: &bool| match published {
            true => Output::Published,
            false => Output::Value(value.clone()),
        };
        self.published.iter().map(output).collect()
    }

    fn delegate(&mut self, local: usize) -> Option<Move> {
        let handle = *self.tell(&[local]).first()?;
        let mut outputs = self.outputs(&[]);
        if !self.published[0] {
            outputs[0] = Output::Delegate(handle);
        }
        self.then(Move::Finish(outputs))
    }

    fn fail(&self, message: String) -> Move {
        let kind = FailureKind::TaskError;
        Move::Fail(Failure::new(kind, self.label.clone(), message))
    }

    fn value(&mut self, inside: &[usize]) -> Value<Handle> {
        let mut value = Value::inline(Form::Bytes, self.seen.to_be_bytes().to_vec());
        value.references = self.tell(inside);
        value
    }
}

/// The number in a value: its bytes, or the digest of its file.
pub(crate) fn number_in(content: &Content) -> u64 {
    match content {
        Content::Inline(bytes) => {
            u64::from_be_bytes(bytes[..].try_into().expect("values are eight bytes"))
        }
        Content::File { digest, .. } => digest.expect("a file has its digest").0 as u64,
    }
}

/// The descriptor of a task of `definition`.
pub fn descriptor(
    scenario: &Scenario,
    definition: usize,
    inputs: Vec<Handle>,
    outputs: u32,
) -> Arc<Descriptor> {
    let task = &scenario.tasks[definition];
    let input = |(index, handle)| match task.needs.includes(index) {
        true if task.needs == Needs::Streams => Input::stream(handle),
        true => Input::value(handle),
        false => Input::reference(handle),
    };
    let kind = TaskKind {
        executor: "sim".into(),
        class: class(task),
        what: format!("t{definition}").into(),
        code: CodeIdentity::default(),
        reached: Reached::default(),
        outputs,
        streams: Streams {
            outputs: task.streams.map(|_| 0).into_iter().collect(),
            single_consumer: task.streams == Some(true),
            ..Streams::default()
        }
        .into(),
        options: Arc::new(options(task, declared(scenario, definition))),
        site: Site::default(),
        purity: purity(task),
        replayable: task.replayable,
        keeping: match task.kind {
            Kind::Process if task.streams == Some(true) => Keeping::Never,
            Kind::Process => Keeping::Takes,
            Kind::Thread | Kind::Pool(_) => Keeping::Never,
        },
    };
    Arc::new(Descriptor {
        payload: Payload::new((definition as u32).to_be_bytes().to_vec()),
        inputs: inputs.into_iter().enumerate().map(input).collect(),
        kind: Arc::new(kind),
    })
}

fn class(task: &Definition) -> Class {
    match task.kind {
        Kind::Thread => Class::Coordination,
        Kind::Process => Class::Process,
        Kind::Pool(letter) => Class::Pooled(Pool::new(letter.to_string(), 1)),
    }
}

/// What its program says about a task; of commands that is nothing, as it mostly is.
fn purity(task: &Definition) -> Purity {
    match task.kind {
        _ if !task.pure => Purity::Unsaid,
        Kind::Process => Purity::Assumed,
        Kind::Thread | Kind::Pool(_) => Purity::Declared,
    }
}

fn options(task: &Definition, memory_bytes: Option<u64>) -> Options {
    Options {
        resources: Resources {
            millicores: task.cores * 1000,
            memory_bytes,
            ..Resources::default()
        },
        retries: task.retries,
        timeout_us: task.timeout.then_some(TIMEOUT_US),
        lazy: task.lazy,
        live: task.live,
        keep: None,
        weights: Weights::new([Some(task.weight)]).into(),
    }
}
