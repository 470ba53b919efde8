//! Threads that run scripts and other coroutines.
//!
//! A thread takes a turn, runs the script until it ends, waits or has used up its fuel, and submits
//! all of its actions to the graph in program order. It does not know processes. Read next: `turns`
//! (which thread continues), `translate` (requests of the language as events of the graph).

use std::collections::VecDeque;
use std::path::Path;

use ciel_engine::{
    Action, Answers, At, Attempt, Blocked, Caller, Event, Kept, Waited, saved_state,
};
use ciel_graph::{Assignment, Entry, Until, Wait};
use ciel_model::{ActionKey, Failure, Form, Handle, Value, WaitEnd, limits};
use ciel_skywriting::host::{Handle as ScriptHandle, Host, NoPackage, SpawnRequest};
use ciel_skywriting::machine::{Machine, Step};
use rustc_hash::FxHashMap;

use crate::core::{Core, Due, Turn};
use crate::engine::Engine;
use crate::executors::coroutine::{self, Begun};
use crate::executors::{Executor, Launch};
use crate::failures;
use crate::objects;
use crate::script::{self, Script};
use crate::settings::Package;
use crate::translate;
use crate::turns::ThreadState;
use crate::user_files;

/// What a script did since its last report, in program order.
enum Act {
    Step(Event),
    /// After so many actions.
    Print(u64, Vec<u8>),
}

/// The surroundings of one script for one stretch of running.
struct ScriptHost<'a> {
    engine: &'a Engine,
    executor: &'a dyn Executor,
    origin: &'a [u8],
    acts: Vec<Act>,
    spawned: bool,
    attempt: &'a mut Attempt,
    packages: &'a mut FxHashMap<String, ScriptHandle>,
}

impl Host for ScriptHost<'_> {
    fn spawn(&mut self, request: SpawnRequest) {
        self.spawned = true;
        let descriptor = translate::descriptor(self.engine, self.executor, self.origin, request);
        let act = self.attempt.act(Action::Spawn {
            at: At::Action,
            first: None,
            descriptor,
        });
        self.acts.push(Act::Step(act.event));
    }

    fn print(&mut self, line: &str) {
        if let Some(Act::Print(_, bytes)) = self.acts.last_mut() {
            bytes.extend_from_slice(line.as_bytes());
            return bytes.push(b'\n');
        }
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.acts.push(Act::Print(self.attempt.write(), bytes));
    }

    fn package(&mut self, name: &str) -> Result<ScriptHandle, NoPackage> {
        if let Some(handle) = self.packages.get(name) {
            return Ok(*handle);
        }
        let given = self.engine.settings.packages.get(name);
        let given = given.ok_or(NoPackage::Unknown)?;
        // Nothing is constructed unless all can be read: the script counts its handles.
        let values = given.files().iter().map(|path| {
            user_files::bring_in(self.engine, path)
                .map_err(|error| NoPackage::Unusable(format!("{path:?}: {error}")))
        });
        let values: Vec<Value<Handle>> = values.collect::<Result<_, _>>()?;
        let index = match given {
            Package::File(_) => None,
            Package::Index(paths) => Some(user_files::index_of(self.engine, paths)),
        };
        let unusable = |error: std::io::Error| NoPackage::Unusable(error.to_string());
        let index = index.transpose().map_err(unusable)?;
        let files: Vec<Handle> = values
            .into_iter()
            .map(|value| self.construct(value))
            .collect();
        let package = match index {
            None => files[0],
            Some(index) => self.construct(Value {
                references: files,
                ..index
            }),
        };
        let package = ScriptHandle(package.0);
        self.packages.insert(name.to_string(), package);
        Ok(package)
    }
}

impl ScriptHost<'_> {
    /// Makes an object of the script's. Gives its handle.
    fn construct(&mut self, value: Value<Handle>) -> Handle {
        let act = self.attempt.act(Action::Construct {
            at: At::Part,
            handle: None,
            value,
        });
        self.acts.push(Act::Step(act.event));
        act.first.expect("a construction has a handle")
    }
}

/// The life of a script thread.
pub(crate) fn run_thread(engine: &Engine) {
    let mut hand = ThreadState::default();
    while let Some(turn) = next_turn(engine, &mut hand) {
        let mut next = Some(turn);
        while let Some(turn) = next {
            next = run_turn(engine, &mut hand, turn);
        }
    }
}

/// Does a turn. Gives the next one, if it was taken on the way.
fn run_turn(engine: &Engine, hand: &mut ThreadState, turn: Turn) -> Option<Turn> {
    match turn {
        Turn::Begin(assignment, executor) => begin(engine, hand, assignment, &*executor),
        Turn::Resume(assignment, script) => resume(engine, hand, assignment, script),
        Turn::Next(script) => run_script(engine, hand, script),
    }
}

/// Waits for a turn; none when all is over.
fn next_turn(engine: &Engine, hand: &mut ThreadState) -> Option<Turn> {
    let mut core = engine.lock();
    core.turns.put_down(engine.now(), hand);
    loop {
        if let Some(turn) = core.take_turn(engine.now(), hand, &engine.registry) {
            engine.release(core, engine.now());
            return Some(turn);
        }
        if core.closed {
            return None;
        }
        core = engine.rest(core, hand);
    }
}

fn begin(
    engine: &Engine,
    hand: &mut ThreadState,
    assignment: Box<Assignment>,
    executor: &dyn Executor,
) -> Option<Turn> {
    let mut attempt = Attempt::new(&assignment);
    let begun = match executor.launch() {
        Launch::Coroutine(coroutine) => coroutine.begin(engine, assignment),
        Launch::Command(_) | Launch::Worker(_) | Launch::Release(_) => {
            // The executor did not exist when a run began that is resumed here.
            let refused = engine.registry.unknown(executor.name());
            Begun::Failed(Box::new(refused.failure(&assignment.label)))
        }
    };
    let end = match begun {
        Begun::Script(script) => return go_on(engine, hand, script),
        Begun::Finished(outputs) => Action::Finish(outputs),
        Begun::Failed(failure) => Action::Fail(*failure),
    };
    engine.act(&mut attempt, end);
    None
}

impl coroutine::Host for Engine {
    fn script(&self, assignment: Box<Assignment>) -> Result<Box<Script>, Box<Failure>> {
        enter(self, assignment)
    }

    fn import(&self, assignment: &Assignment, path: &Path) -> Result<Value<Handle>, Box<Failure>> {
        user_files::import(self, assignment, path)
    }

    fn value(
        &self,
        assignment: &Assignment,
        json: &serde_json::Value,
        inputs: u32,
    ) -> Result<Value<Handle>, Box<Failure>> {
        let label = &assignment.label;
        let bytes = json.to_string().into();
        let content = objects::keep(self, || label.name.output(0), bytes)
            .map_err(|error| Box::new(error.failure(self, label)))?;
        Ok(Value {
            form: Form::Json,
            content,
            references: (0..inputs).map(Handle).collect(),
        })
    }
}

fn resume(
    engine: &Engine,
    hand: &mut ThreadState,
    assignment: Box<Assignment>,
    mut script: Box<Script>,
) -> Option<Turn> {
    script.assignment = assignment;
    go_on(engine, hand, script)
}

/// Passes the assignment to the script, and runs it.
fn go_on(engine: &Engine, hand: &mut ThreadState, mut script: Box<Script>) -> Option<Turn> {
    let nothing = Entry::Start(Vec::new());
    let entry = std::mem::replace(&mut script.assignment.entry, nothing);
    script.rewind(&entry);
    let answers = script.attempt.enter(entry);
    answer(engine, &mut script, answers);
    run_script(engine, hand, script)
}

/// The machine of an assignment that has not run before. A called file is read on the way.
fn enter(engine: &Engine, assignment: Box<Assignment>) -> Result<Box<Script>, Box<Failure>> {
    let descriptor = assignment.descriptor.clone();
    let entry = engine
        .programs
        .enter(&engine.settings, &descriptor.payload, descriptor.outputs)
        .map_err(|trouble| Box::new(translate::entry_failure(&assignment.label, trouble)))?;
    let references = descriptor.inputs.len() as u32;
    let (code, call) = (entry.program.code.clone(), entry.call);
    let surroundings = entry.surroundings;
    let machine = match saved_state(&assignment.entry) {
        Some(state) => Machine::load(code, &state, surroundings),
        None if call.is_empty() => Ok(Machine::for_script(code, surroundings)),
        None => Machine::for_call(code, call, references, surroundings),
    };
    let machine =
        machine.map_err(|error| Box::new(translate::load_failure(&assignment, &error)))?;
    Ok(Box::new(Script {
        machine,
        attempt: Attempt::new(&assignment),
        assignment,
        program: entry.program,
        origin: entry.origin,
        recorded: VecDeque::new(),
        packages: FxHashMap::default(),
    }))
}

fn answer(engine: &Engine, script: &mut Script, answers: Answers) {
    for (handle, resolution) in answers {
        let answer = translate::answer(engine, resolution);
        script.machine.answer(ScriptHandle(handle.0), answer);
    }
}

fn run_script(engine: &Engine, hand: &mut ThreadState, mut script: Box<Script>) -> Option<Turn> {
    loop {
        match run_stretch(engine, hand, script) {
            Next::Again(same) => script = same,
            Next::Answered(same, answers, ended) => {
                script = same;
                answer(engine, &mut script, answers);
                if let Some(ended) = ended {
                    script.cancelled(&ended);
                }
            }
            Next::Over(turn) => return turn,
        }
    }
}

enum Next {
    /// Continue at once.
    Again(Box<Script>),
    /// Continue at once with the requested values, and how the wait ended if that is recorded.
    Answered(Box<Script>, Answers, Option<WaitEnd>),
    /// It ended, waits, or gave its place to others; here is the next turn, if there is one.
    Over(Option<Turn>),
}

/// Runs until there is an event for the engine, and submits it.
fn run_stretch(engine: &Engine, hand: &mut ThreadState, mut script: Box<Script>) -> Next {
    let script_mut = &mut *script;
    let executor = &script_mut.assignment.descriptor.executor;
    let executor = engine.registry.find(executor);
    let mut host = ScriptHost {
        engine,
        executor: &*executor,
        origin: &script_mut.origin,
        acts: Vec::new(),
        spawned: false,
        attempt: &mut script_mut.attempt,
        packages: &mut script_mut.packages,
    };
    let step = if engine.settings.serial {
        run_until_spawn(&mut script_mut.machine, &mut host)
    } else {
        script_mut.machine.run(&mut host, limits::SCRIPT_FUEL)
    };
    let acts = std::mem::take(&mut host.acts);
    let told = match step {
        Step::Finished(ended) => {
            StretchEnd::Ends(match translate::outputs(engine, &script, ended) {
                Ok(outputs) => Action::Finish(outputs),
                Err(failure) => Action::Fail(*failure),
            })
        }
        Step::Failed { thrown, place } => {
            StretchEnd::Ends(Action::Fail(translate::failure(&script, *thrown, &place)))
        }
        Step::Blocked { on } => StretchEnd::Stays(Stay::Blocked(block(&mut script, &on))),
        Step::Cancels { on } => StretchEnd::Stays(cancel(&mut script, on)),
        Step::Preempted => StretchEnd::Stays(preempted(&script)),
    };
    tell(engine, hand, script, acts, told)
}

/// A script is about to wait. What it knows by handle is renumbered with it.
fn block(script: &mut Script, on: &[ScriptHandle]) -> Blocked {
    let on = script::handles(on);
    let keep = match script.machine.compact() {
        None => Kept::All,
        Some(kept) => {
            script.packages.clear();
            Kept::Only(script::handles(&kept))
        }
    };
    script.attempt.block(on, Wait::ALL, keep)
}

/// A script has used up its fuel.
fn preempted(script: &Script) -> Stay {
    Stay::Preempted(script.machine.location().to_string())
}

/// A script cancels a reference, unless it did so in a run that it repeats.
fn cancel(script: &mut Script, on: ScriptHandle) -> Stay {
    if let Some(ended) = script.recorded.pop_front() {
        script.cancelled(&ended);
        return preempted(script);
    }
    let wait = Wait {
        until: Until::Cancelled,
        limit_us: None,
        at: ActionKey::action(script.attempt.actions()),
    };
    let on = vec![script::handle(on)];
    Stay::Blocked(script.attempt.block(on, wait, Kept::All))
}

/// In the serial program a script stops at each spawn until all that it spawned is done. One that
/// only returns what it spawned ends first: a loop of such tasks never has more than one.
fn run_until_spawn(machine: &mut Machine, host: &mut ScriptHost<'_>) -> Step {
    for _ in 0..limits::SCRIPT_FUEL {
        match machine.run(host, 1) {
            Step::Preempted if !host.spawned || machine.is_leaving() => {}
            step => return step,
        }
    }
    Step::Preempted
}

/// The outcome of a stretch.
enum StretchEnd {
    Ends(Action),
    Stays(Stay),
}

/// Why a script that has not ended stops.
enum Stay {
    Blocked(Blocked),
    /// At that line.
    Preempted(String),
}

fn tell(
    engine: &Engine,
    hand: &mut ThreadState,
    mut script: Box<Script>,
    acts: Vec<Act>,
    told: StretchEnd,
) -> Next {
    let over = engine.now();
    let mut core = engine.lock();
    let mut now = engine.now();
    let stay = tell_core(&mut core, now, &mut script, acts, told);
    let mut checkpoint = None;
    if wants_checkpoint(&core, &script, &stay) {
        // What that takes grows with the state of the script.
        engine.release(core, now);
        checkpoint = Some(script.checkpoint());
        core = engine.lock();
        now = engine.now();
    }
    let on = stay.and_then(|stay| match stay {
        Stay::Blocked(blocked) => wait(&mut core, now, script, blocked.event(checkpoint)),
        Stay::Preempted(line) => step_aside(&mut core, now, hand, script, line),
    });
    let next = on.unwrap_or_else(|| {
        core.turns.put_down(over, hand);
        Next::Over(core.take_turn(now, hand, &engine.registry))
    });
    let excess = core.state().output().excess_bytes() > 0;
    engine.release(core, now);
    if excess {
        crate::output::spill_excess(engine);
    }
    next
}

/// Submits the actions of the script and how its stretch ended, unless it only waits or was
/// preempted.
fn tell_core(
    core: &mut Core,
    now: u64,
    script: &mut Script,
    acts: Vec<Act>,
    told: StretchEnd,
) -> Option<Stay> {
    let end = match (tell_acts(core, now, script, acts), told) {
        (Err(failure), _) => Action::Fail(*failure),
        (Ok(()), StretchEnd::Ends(end)) => end,
        // If one of its acts was refused, the graph has ended the attempt.
        (Ok(()), StretchEnd::Stays(_)) if core.is_stopping(script.attempt.key()) => {
            core.tell(now, script.attempt.left());
            return None;
        }
        (Ok(()), StretchEnd::Stays(stay)) => return Some(stay),
    };
    core.act(now, &mut script.attempt, end);
    None
}

/// Whether the state of a script that is about to wait is to be kept.
fn wants_checkpoint(core: &Core, script: &Script, stay: &Option<Stay>) -> bool {
    match stay {
        Some(Stay::Blocked(blocked)) => {
            !blocked.is_timely() && core.wants_checkpoint(&script.assignment)
        }
        Some(Stay::Preempted(_)) | None => false,
    }
}

/// Suspends the script; if everything it waits for is resolved, it continues.
fn wait(core: &mut Core, now: u64, mut script: Box<Script>, blocked: Event) -> Option<Next> {
    let reply = core.ask(now, blocked, Caller::Thread);
    match script.attempt.waited(reply) {
        Waited::Over { answers, ended } => Some(Next::Answered(script, answers, ended)),
        Waited::Suspended => {
            core.scripts.insert(script.assignment.task, script);
            None
        }
        Waited::Stopped => None,
    }
}

/// A script whose turn is over continues at once if no other waits for the thread.
fn step_aside(
    core: &mut Core,
    now: u64,
    hand: &mut ThreadState,
    script: Box<Script>,
    line: String,
) -> Option<Next> {
    let attempt = script.attempt.key();
    core.script_lines.insert(attempt.task, line);
    core.scripts.insert(attempt.task, script);
    core.tell(now, Event::TaskPreempted { attempt });
    let mine = |due: &Due| matches!(due, Due::Next(script) if script.attempt.key() == attempt);
    match core.turns.retake(now, hand, mine)? {
        Due::Next(script) => Some(Next::Again(script)),
        Due::Begin(_) => unreachable!("it is the script's own turn"),
    }
}

/// Submits the actions of the script to the graph and the output, in program order; nothing if the
/// graph has ended the attempt.
fn tell_acts(
    core: &mut Core,
    now: u64,
    script: &mut Script,
    acts: Vec<Act>,
) -> Result<(), Box<Failure>> {
    if core.is_stopping(script.attempt.key()) {
        return Ok(());
    }
    for act in acts {
        match act {
            Act::Step(event) => core.tell(now, event),
            Act::Print(after, bytes) => {
                let (strand, label) = (script.assignment.strand, &script.assignment.label);
                let written = core.write(strand, label, after, bytes);
                written.map_err(|told| Box::new(failures::differs(&script.assignment, told)))?;
            }
        }
    }
    Ok(())
}
