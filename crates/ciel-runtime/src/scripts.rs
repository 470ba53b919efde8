//! Threads that run scripts and small internal work.
//!
//! A thread takes a turn, runs the script until it ends, waits or has used up its fuel, and tells
//! the graph everything it did in program order. It does not know processes. Read next:
//! `translate`, between the words of the language and those of the graph.

use std::collections::VecDeque;
use std::sync::Arc;

use ciel_graph::{Assignment, Continuation, Entry, Event, Output, Step as GraphStep};
use ciel_model::{Failure, Form, Handle, Name, Resolution, Value, limits};
use ciel_node::{self as node, Run};
use ciel_skywriting::host::{Answer, Handle as ScriptHandle, Host, SpawnRequest};
use ciel_skywriting::machine::{Machine, Step};
use rustc_hash::FxHashMap;

use crate::core::{Core, Script, Turn, Waiting, is_resumption};
use crate::engine::Engine;
use crate::internal;
use crate::translate;

/// The executor of scripts.
pub(crate) const SKYWRITING: &str = "skywriting";

/// Failures of other tasks that a script remembers, to tell whose failure leaves it.
const HEARD_MAX: usize = 16;

/// What a script did since its last report, in program order.
enum Act {
    Spawn(Box<SpawnRequest>),
    Print(Vec<u8>),
    Package(Value<Handle>),
}

/// The surroundings of one script for one stretch of running.
struct Surroundings<'a> {
    engine: &'a Engine,
    acts: Vec<Act>,
    spawned: bool,
    /// Next free handle.
    handles: &'a mut u32,
    packages: &'a mut FxHashMap<String, ScriptHandle>,
}

impl Host for Surroundings<'_> {
    fn spawn(&mut self, request: SpawnRequest) {
        *self.handles += request.outputs;
        self.spawned = true;
        self.acts.push(Act::Spawn(Box::new(request)));
    }

    fn print(&mut self, line: &str) {
        if let Some(Act::Print(bytes)) = self.acts.last_mut() {
            bytes.extend_from_slice(line.as_bytes());
            return bytes.push(b'\n');
        }
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.acts.push(Act::Print(bytes));
    }

    fn package(&mut self, name: &str) -> Option<ScriptHandle> {
        if let Some(handle) = self.packages.get(name) {
            return Some(*handle);
        }
        let path = self.engine.settings.packages.get(name)?;
        let value = internal::bring_in(self.engine, path).ok()?;
        let handle = ScriptHandle(*self.handles);
        *self.handles += 1;
        self.packages.insert(name.to_string(), handle);
        self.acts.push(Act::Package(value));
        Some(handle)
    }
}

/// The life of a script thread.
pub(crate) fn run_thread(engine: &Engine) {
    while let Some(turn) = next_turn(engine) {
        match turn {
            Turn::Begin(assignment) if &*assignment.descriptor.executor != SKYWRITING => {
                // It may take long, so nobody waits for this thread.
                engine.wake(&engine.lock());
                internal::run(engine, &assignment)
            }
            Turn::Begin(assignment) => begin(engine, assignment),
            Turn::Next(run, script) => run_script(engine, run, script),
        }
    }
}

fn next_turn(engine: &Engine) -> Option<Turn> {
    let mut core = engine.lock();
    loop {
        if let Some(waiting) = core.turns.pop_front() {
            return Some(waiting.turn);
        }
        if core.closed {
            return None;
        }
        core = engine
            .work
            .wait(core)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
    }
}

fn begin(engine: &Engine, assignment: Box<Assignment>) {
    let run = Run {
        task: assignment.task,
        attempt: assignment.attempt,
    };
    let mut script = match enter(engine, assignment) {
        Ok(script) => script,
        Err(failure) => return engine.fail(run, *failure),
    };
    let answers = match std::mem::replace(&mut script.assignment.entry, Entry::Start(Vec::new())) {
        Entry::Start(answers) | Entry::Resume(answers) => answers,
        Entry::Replay { inputs, .. } => inputs,
        Entry::Restore { answers, .. } => answers,
    };
    answer(engine, &mut script, answers);
    run_script(engine, run, script);
}

/// The machine of an assignment: the one that waited, or a new one.
fn enter(engine: &Engine, assignment: Box<Assignment>) -> Result<Box<Script>, Box<Failure>> {
    if is_resumption(&assignment) {
        let kept = engine.lock().suspended.remove(&assignment.task);
        let mut script = kept.expect("a suspended script is kept until it is resumed or stopped");
        script.assignment = assignment;
        return Ok(script);
    }
    let payload = &assignment.descriptor.payload;
    let references = assignment.descriptor.inputs.len() as u32;
    let (code, program) = (engine.program().code.clone(), engine.program());
    let machine = if payload.is_empty() {
        Machine::for_script(code, program.root.clone())
    } else {
        Machine::for_call(code, payload, references, program.inner.clone())
            .map_err(|error| Box::new(translate::load_failure(&assignment, &error)))?
    };
    Ok(Box::new(Script {
        machine,
        assignment,
        packages: FxHashMap::default(),
        handles: references,
        printed: false,
        heard: VecDeque::new(),
    }))
}

fn answer(engine: &Engine, script: &mut Script, answers: crate::core::Answers) {
    for (handle, resolution) in answers {
        if let Resolution::Failed(failure) = &resolution {
            script.heard.truncate(HEARD_MAX - 1);
            script.heard.push_front(failure.clone());
        }
        let (answer, inner) = translate::answer(engine, resolution);
        script.handles += inner;
        script.machine.answer(ScriptHandle(handle.0), answer);
    }
}

fn run_script(engine: &Engine, run: Run, mut script: Box<Script>) {
    loop {
        match run_stretch(engine, run, script) {
            Next::Again(same) => script = same,
            Next::Answered(same, answers) => {
                script = same;
                answer(engine, &mut script, answers);
            }
            Next::Over => return,
        }
    }
}

enum Next {
    /// Go on at once.
    Again(Box<Script>),
    /// Go on at once with what it asked for.
    Answered(Box<Script>, crate::core::Answers),
    /// It ended, waits, or gave its place to others.
    Over,
}

/// Runs until something has to be told, and tells it.
fn run_stretch(engine: &Engine, run: Run, mut script: Box<Script>) -> Next {
    let script_mut = &mut *script;
    let mut host = Surroundings {
        engine,
        acts: Vec::new(),
        spawned: false,
        handles: &mut script_mut.handles,
        packages: &mut script_mut.packages,
    };
    let step = if engine.settings.serial {
        run_until_spawn(&mut script_mut.machine, &mut host)
    } else {
        script_mut.machine.run(&mut host, limits::SCRIPT_FUEL)
    };
    let acts = std::mem::take(&mut host.acts);
    let step = match step {
        Step::Finished(ended) => {
            Told::Finished(translate::outputs(engine, &script.assignment, ended))
        }
        Step::Failed { thrown, place } => Told::Failed(Box::new(translate::failure(
            &engine.program().sources,
            &script,
            *thrown,
            &place,
        ))),
        Step::Blocked { on } => {
            let kept = script
                .machine
                .compact()
                .map(|kept| kept.into_iter().map(translate::handle));
            Told::Blocked {
                on,
                kept: kept.map(Iterator::collect),
            }
        }
        Step::Preempted => Told::Preempted,
    };
    tell(engine, run, script, acts, step)
}

/// In the serial program a script stops at each spawn until all that it spawned is done.
fn run_until_spawn(machine: &mut Machine, host: &mut Surroundings<'_>) -> Step {
    for _ in 0..limits::SCRIPT_FUEL {
        match machine.run(host, 1) {
            Step::Preempted if !host.spawned => {}
            step => return step,
        }
    }
    Step::Preempted
}

/// The outcome of a stretch in the graph's words.
enum Told {
    Finished(Result<Vec<Output>, Box<Failure>>),
    Failed(Box<Failure>),
    Blocked {
        on: Vec<ScriptHandle>,
        kept: Option<Vec<Handle>>,
    },
    Preempted,
}

fn tell(engine: &Engine, run: Run, mut script: Box<Script>, acts: Vec<Act>, told: Told) -> Next {
    let Run { task, attempt } = run;
    let mut core = engine.lock();
    let now = engine.now();
    let next = if core.is_stopping(run) {
        core.leave(now, run);
        Next::Over
    } else if let Err(failure) = tell_acts(engine, &mut core, run, &mut script, acts) {
        core.tell(
            now,
            Event::TaskFailed {
                task,
                attempt,
                failure: *failure,
            },
        );
        core.leave(now, run);
        Next::Over
    } else {
        match told {
            Told::Finished(Ok(outputs)) => {
                let printed = script.printed;
                core.tell(
                    now,
                    Event::TaskFinished {
                        task,
                        attempt,
                        outputs,
                        printed,
                    },
                );
                core.leave(now, run);
                Next::Over
            }
            Told::Finished(Err(failure)) | Told::Failed(failure) => {
                core.tell(
                    now,
                    Event::TaskFailed {
                        task,
                        attempt,
                        failure: *failure,
                    },
                );
                core.leave(now, run);
                Next::Over
            }
            Told::Blocked { on, kept } => wait(&mut core, now, run, script, on, kept),
            Told::Preempted => step_aside(&mut core, now, run, script),
        }
    };
    let own = usize::from(matches!(next, Next::Over));
    engine.wake_others(&core, own, now);
    let excess = core.output.excess_bytes() > 0;
    drop(core);
    if excess {
        crate::output::spill_excess(engine);
    }
    next
}

/// Suspends the script unless all it wants is there.
fn wait(
    core: &mut Core,
    now: u64,
    run: Run,
    mut script: Box<Script>,
    on: Vec<ScriptHandle>,
    kept: Option<Vec<Handle>>,
) -> Next {
    let Run { task, attempt } = run;
    // A renumbering concerns what the script knows by handle, too.
    if let Some(kept) = &kept {
        script.handles = kept.len() as u32;
        script.packages.clear();
    }
    let on = translate::renumbered(&on, kept.as_deref());
    core.suspended.insert(task, script);
    let continuation = Continuation::Live;
    core.tell(
        now,
        Event::TaskBlocked {
            task,
            attempt,
            kept,
            on,
            wait: ciel_graph::Wait::ALL,
            continuation,
        },
    );
    match core.continued.take() {
        Some((_, answers)) => {
            let script = core
                .suspended
                .remove(&task)
                .expect("it was put there just now");
            Next::Answered(script, answers)
        }
        None => Next::Over,
    }
}

/// A script whose turn is over goes on at once if nobody else wants the place.
fn step_aside(core: &mut Core, now: u64, run: Run, script: Box<Script>) -> Next {
    core.script_lines
        .insert(run.task, script.machine.location().to_string());
    core.preempted.insert(run, script);
    core.tell_node(now, node::Event::TaskPreempted { run });
    let mine = |waiting: &Waiting| matches!(&waiting.turn, Turn::Next(next, _) if *next == run);
    if !core.turns.back().is_some_and(mine) {
        return Next::Over;
    }
    match core.turns.pop_back() {
        Some(Waiting {
            turn: Turn::Next(_, script),
            ..
        }) => Next::Again(script),
        _ => unreachable!("it was just looked at"),
    }
}

/// Tells the graph and the output what the script did, in program order.
fn tell_acts(
    engine: &Engine,
    core: &mut Core,
    run: Run,
    script: &mut Script,
    acts: Vec<Act>,
) -> Result<(), Box<Failure>> {
    let Run { task, attempt } = run;
    let now = engine.now();
    for act in acts {
        let step = match act {
            Act::Print(bytes) => {
                script.printed = true;
                let written = core.write(script.assignment.strand, &script.assignment.label, bytes);
                written.map_err(|told| Box::new(translate::differs(&script.assignment, told)))?;
                continue;
            }
            Act::Spawn(request) => GraphStep::Spawn(translate::descriptor(engine, *request)),
            Act::Package(value) => GraphStep::Construct(value),
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

/// The root task of a script.
pub(crate) fn root_descriptor(what: &str) -> ciel_model::Descriptor {
    let class = ciel_model::Class::Coordination;
    ciel_model::Descriptor::plain(SKYWRITING, class, what, Vec::new())
}

/// What a plain answer of bytes is to a script.
pub(crate) fn bytes_answer(name: Name, form: Form, bytes: Arc<[u8]>, references: u32) -> Answer {
    match form {
        Form::Skywriting => Answer::Value { bytes, references },
        Form::Json => Answer::Json { bytes, references },
        Form::Text => Answer::Json {
            bytes: quoted(&bytes),
            references,
        },
        Form::Bytes | Form::Pickle => Answer::Bytes {
            name: name.to_string(),
            bytes,
        },
    }
}

/// Text as a JSON string.
fn quoted(text: &[u8]) -> Arc<[u8]> {
    let text = String::from_utf8_lossy(text);
    let quoted = serde_json::to_vec(&*text).expect("a string is JSON");
    quoted.into()
}
