//! Threads that run scripts and other coroutines.
//!
//! A thread takes a turn, runs the script until it ends, waits or has used up its fuel, and tells
//! the graph everything it did in program order. It does not know processes. Read next:
//! `turns` (which thread goes on), `translate` (the words of the language and those of the graph).

use std::path::Path;

use ciel_engine::{Answers, Caller, Reply};
use ciel_graph::{Assignment, Continuation, Entry, Event, Output, Step as GraphStep};
use ciel_model::{Failure, Handle, ReceivedFailures, Resolution, Value, limits};
use ciel_node::AttemptKey;
use ciel_skywriting::host::{Handle as ScriptHandle, Host, SpawnRequest};
use ciel_skywriting::machine::{Machine, Step};
use rustc_hash::FxHashMap;

use crate::checkpoints::{self, Restored};
use crate::core::{Core, Due, Turn};
use crate::engine::Engine;
use crate::executors::coroutine::{self, Begun};
use crate::executors::{Executor, Launch};
use crate::failures;
use crate::script::Script;
use crate::script_numbers::ScriptNumbers;
use crate::translate;
use crate::turns::ThreadState;
use crate::user_files;

/// What a script did since its last report, in program order.
enum Act {
    Step(GraphStep),
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
    numbers: &'a mut ScriptNumbers,
    packages: &'a mut FxHashMap<String, ScriptHandle>,
}

impl Host for ScriptHost<'_> {
    fn spawn(&mut self, request: SpawnRequest) {
        let first = self.numbers.make(request.outputs);
        self.spawned = true;
        let descriptor = translate::descriptor(
            self.engine,
            self.executor,
            self.numbers,
            self.origin,
            request,
        );
        let action = self.numbers.act();
        self.acts.push(Act::Step(GraphStep::Spawn {
            action,
            first,
            descriptor,
        }));
    }

    fn print(&mut self, line: &str) {
        if let Some(Act::Print(_, bytes)) = self.acts.last_mut() {
            bytes.extend_from_slice(line.as_bytes());
            return bytes.push(b'\n');
        }
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.acts.push(Act::Print(self.numbers.actions(), bytes));
    }

    fn package(&mut self, name: &str) -> Option<ScriptHandle> {
        if let Some(handle) = self.packages.get(name) {
            return Some(*handle);
        }
        let path = self.engine.settings.packages.get(name)?;
        let value = user_files::bring_in(self.engine, path).ok()?;
        let (at, handle) = self.numbers.make_part();
        let package = self.numbers.of_graph(handle);
        self.packages.insert(name.to_string(), package);
        self.acts
            .push(Act::Step(GraphStep::Construct { at, handle, value }));
        Some(package)
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
        Turn::Begin(assignment) => begin(engine, hand, assignment),
        Turn::Resume(assignment, script) => resume(engine, hand, assignment, script),
        Turn::Next(run, script) => run_script(engine, hand, run, script),
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

fn begin(engine: &Engine, hand: &mut ThreadState, assignment: Box<Assignment>) -> Option<Turn> {
    let run = AttemptKey {
        task: assignment.task,
        attempt: assignment.attempt,
    };
    let found = engine.registry.find(&assignment.descriptor.executor);
    let begun = match found.launch() {
        Launch::Coroutine(coroutine) => coroutine.begin(engine, assignment),
        Launch::Command(_) | Launch::Worker(_) => {
            // The executor did not exist when a run began that is resumed here.
            let refused = engine.registry.unknown(found.name());
            Err(Box::new(refused.failure(&assignment.label)))
        }
    };
    match begun {
        Ok(Begun::Script(script)) => return go_on(engine, hand, run, script),
        Ok(Begun::Ended(outputs)) => finish(engine, run, outputs),
        Err(failure) => engine.fail(run, *failure),
    }
    None
}

/// A task has ended in its first step.
fn finish(engine: &Engine, run: AttemptKey, outputs: Vec<Output>) {
    let AttemptKey { task, attempt } = run;
    let finished = Event::TaskFinished {
        task,
        attempt,
        outputs,
        printed: false,
    };
    engine.with(|core, now| {
        core.end(now, run, finished);
    });
}

impl coroutine::Host for Engine {
    fn script(&self, assignment: Box<Assignment>) -> Result<Box<Script>, Box<Failure>> {
        enter(self, assignment)
    }

    fn import(&self, assignment: &Assignment, path: &Path) -> Result<Value<Handle>, Box<Failure>> {
        user_files::import(self, assignment, path)
    }
}

fn resume(
    engine: &Engine,
    hand: &mut ThreadState,
    assignment: Box<Assignment>,
    mut script: Box<Script>,
) -> Option<Turn> {
    let run = AttemptKey {
        task: assignment.task,
        attempt: assignment.attempt,
    };
    script.assignment = assignment;
    go_on(engine, hand, run, script)
}

/// Tells the script what its assignment brings, and runs it.
fn go_on(
    engine: &Engine,
    hand: &mut ThreadState,
    run: AttemptKey,
    mut script: Box<Script>,
) -> Option<Turn> {
    let answers = match std::mem::replace(&mut script.assignment.entry, Entry::Start(Vec::new())) {
        Entry::Start(answers) | Entry::Resume(answers) => answers,
        Entry::Replay { inputs, .. } => inputs,
        Entry::Restore { answers, .. } => answers,
    };
    answer(engine, &mut script, answers);
    run_script(engine, hand, run, script)
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
    let entered = match &assignment.entry {
        Entry::Restore { bytes, .. } => checkpoints::load(bytes, code, entry.surroundings),
        _ if call.is_empty() => Ok(Restored::fresh(Machine::for_script(
            code,
            entry.surroundings,
        ))),
        _ => Machine::for_call(code, call, references, entry.surroundings).map(Restored::fresh),
    };
    let entered =
        entered.map_err(|error| Box::new(translate::load_failure(&assignment, &error)))?;
    let next_action = assignment.next_action;
    Ok(Box::new(Script {
        machine: entered.machine,
        assignment,
        program: entry.program,
        origin: entry.origin,
        packages: FxHashMap::default(),
        numbers: ScriptNumbers::starting(entered.handles.unwrap_or(references), next_action),
        printed: entered.printed,
        received: ReceivedFailures::default(),
    }))
}

fn answer(engine: &Engine, script: &mut Script, answers: Answers) {
    for (handle, resolution) in answers {
        if let Resolution::Failed(failure) = &resolution {
            script.received.add(failure.clone());
        }
        let (answer, inner) = translate::answer(engine, resolution);
        let handle = script.numbers.of_graph(handle);
        script.numbers.deliver(inner);
        script.machine.answer(handle, answer);
    }
}

fn run_script(
    engine: &Engine,
    hand: &mut ThreadState,
    run: AttemptKey,
    mut script: Box<Script>,
) -> Option<Turn> {
    loop {
        match run_stretch(engine, hand, run, script) {
            Next::Again(same) => script = same,
            Next::Answered(same, answers) => {
                script = same;
                answer(engine, &mut script, answers);
            }
            Next::Over(turn) => return turn,
        }
    }
}

enum Next {
    /// Go on at once.
    Again(Box<Script>),
    /// Go on at once with what it asked for.
    Answered(Box<Script>, Answers),
    /// It ended, waits, or gave its place to others; here is the next turn, if there is one.
    Over(Option<Turn>),
}

/// Runs until something has to be told, and tells it.
fn run_stretch(
    engine: &Engine,
    hand: &mut ThreadState,
    run: AttemptKey,
    mut script: Box<Script>,
) -> Next {
    let script_mut = &mut *script;
    let executor = &script_mut.assignment.descriptor.executor;
    let executor = engine.registry.find(executor);
    let mut host = ScriptHost {
        engine,
        executor: &*executor,
        origin: &script_mut.origin,
        acts: Vec::new(),
        spawned: false,
        numbers: &mut script_mut.numbers,
        packages: &mut script_mut.packages,
    };
    let step = if engine.settings.serial {
        run_until_spawn(&mut script_mut.machine, &mut host)
    } else {
        script_mut.machine.run(&mut host, limits::SCRIPT_FUEL)
    };
    let acts = std::mem::take(&mut host.acts);
    let step = match step {
        Step::Finished(ended) => StretchEnd::Finished(translate::outputs(engine, &script, ended)),
        Step::Failed { thrown, place } => {
            StretchEnd::Failed(Box::new(translate::failure(&script, *thrown, &place)))
        }
        Step::Blocked { on } => StretchEnd::Stays(blocked(&mut script, &on)),
        Step::Preempted => StretchEnd::Stays(Stay::Preempted),
    };
    tell(engine, hand, run, script, acts, step)
}

/// What a script waits for, and what it still uses. A renumbering concerns what it knows by handle,
/// too.
fn blocked(script: &mut Script, on: &[ScriptHandle]) -> Stay {
    let numbers = &mut script.numbers;
    let of_script = |numbers: &ScriptNumbers, handles: &[ScriptHandle]| -> Vec<Handle> {
        let handles = handles.iter();
        handles.map(|handle| numbers.of_script(*handle)).collect()
    };
    let on = of_script(numbers, on);
    let Some(kept) = script.machine.compact() else {
        return Stay::Blocked { on, kept: None };
    };
    let kept = of_script(numbers, &kept);
    numbers.renumber(kept.len() as u32);
    script.packages.clear();
    Stay::Blocked {
        on: translate::renumbered(&on, &kept),
        kept: Some(kept),
    }
}

/// In the serial program a script stops at each spawn until all that it spawned is done.
fn run_until_spawn(machine: &mut Machine, host: &mut ScriptHost<'_>) -> Step {
    for _ in 0..limits::SCRIPT_FUEL {
        match machine.run(host, 1) {
            Step::Preempted if !host.spawned => {}
            step => return step,
        }
    }
    Step::Preempted
}

/// The outcome of a stretch in the graph's words.
enum StretchEnd {
    Finished(Result<Vec<Output>, Box<Failure>>),
    Failed(Box<Failure>),
    Stays(Stay),
}

/// Why a script that has not ended stops.
enum Stay {
    Blocked {
        /// In the new numbering, if it keeps only some.
        on: Vec<Handle>,
        kept: Option<Vec<Handle>>,
    },
    Preempted,
}

fn tell(
    engine: &Engine,
    hand: &mut ThreadState,
    run: AttemptKey,
    mut script: Box<Script>,
    acts: Vec<Act>,
    told: StretchEnd,
) -> Next {
    let over = engine.now();
    let mut core = engine.lock();
    let now = engine.now();
    let on = tell_core(&mut core, now, run, &mut script, acts, told).and_then(|told| match told {
        Stay::Blocked { on, kept } => wait(&mut core, now, run, script, on, kept),
        Stay::Preempted => step_aside(&mut core, now, hand, run, script),
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

/// Tells what the script did and how its stretch ended, unless it only waits or was preempted.
fn tell_core(
    core: &mut Core,
    now: u64,
    run: AttemptKey,
    script: &mut Script,
    acts: Vec<Act>,
    told: StretchEnd,
) -> Option<Stay> {
    let AttemptKey { task, attempt } = run;
    if core.is_stopping(run) {
        core.leave(now, run);
        return None;
    }
    let ended = match (tell_acts(core, now, run, script, acts), told) {
        // One of its acts was refused, so the graph has given up the attempt.
        (Ok(()), _) if core.is_stopping(run) => {
            core.leave(now, run);
            return None;
        }
        (Ok(()), StretchEnd::Stays(stay)) => return Some(stay),
        (Ok(()), StretchEnd::Finished(Ok(outputs))) => Event::TaskFinished {
            task,
            attempt,
            outputs,
            printed: script.printed,
        },
        (Err(failure), _)
        | (Ok(()), StretchEnd::Failed(failure) | StretchEnd::Finished(Err(failure))) => {
            Event::TaskFailed {
                task,
                attempt,
                failure: *failure,
            }
        }
    };
    core.end(now, run, ended);
    None
}

/// Suspends the script; if all it wants is there, it goes on with that.
fn wait(
    core: &mut Core,
    now: u64,
    run: AttemptKey,
    mut script: Box<Script>,
    on: Vec<Handle>,
    kept: Option<Vec<Handle>>,
) -> Option<Next> {
    let AttemptKey { task, attempt } = run;
    let checkpoint = core
        .wants_checkpoint(&script.assignment)
        .then(|| checkpoints::take(&mut script));
    let continuation = Continuation::Live;
    let blocked = Event::TaskBlocked {
        task,
        attempt,
        kept,
        on,
        wait: ciel_graph::Wait::ALL,
        continuation,
        checkpoint,
    };
    match core.ask(now, blocked, Caller::Thread) {
        Reply::Continue { answers, .. } => Some(Next::Answered(script, answers)),
        Reply::Suspended => {
            core.scripts.insert(task, script);
            None
        }
        _ => None,
    }
}

/// A script whose turn is over goes on at once if nobody else wants the place.
fn step_aside(
    core: &mut Core,
    now: u64,
    hand: &mut ThreadState,
    run: AttemptKey,
    script: Box<Script>,
) -> Option<Next> {
    core.script_lines
        .insert(run.task, script.machine.location().to_string());
    core.scripts.insert(run.task, script);
    core.tell(now, ciel_engine::Event::TaskPreempted { run });
    let mine = |due: &Due| matches!(due, Due::Next(next, _) if *next == run);
    match core.turns.retake(now, hand, mine)? {
        Due::Next(_, script) => Some(Next::Again(script)),
        Due::Begin(_) => unreachable!("it is the script's own turn"),
    }
}

/// Tells the graph and the output what the script did, in program order.
fn tell_acts(
    core: &mut Core,
    now: u64,
    run: AttemptKey,
    script: &mut Script,
    acts: Vec<Act>,
) -> Result<(), Box<Failure>> {
    let AttemptKey { task, attempt } = run;
    for act in acts {
        let step = match act {
            Act::Print(after, bytes) => {
                script.printed = true;
                let (strand, label) = (script.assignment.strand, &script.assignment.label);
                let written = core.write(strand, label, after, bytes);
                written.map_err(|told| Box::new(failures::differs(&script.assignment, told)))?;
                continue;
            }
            Act::Step(step) => step,
        };
        core.tell(
            now,
            Event::TaskStepped {
                task,
                attempt,
                step,
            },
        );
    }
    Ok(())
}
