//! Threads that run scripts and other coroutines.
//!
//! A thread takes a turn, runs the script until it ends, waits or has used up its fuel, and submits
//! all of its actions to the graph in program order. It does not know processes. Read next: `turns`
//! (which thread continues), `translate` (requests of the language as events of the graph).

use std::path::Path;

use bytes::Bytes;
use ciel_engine::{Action, Answers, Attempt, Blocked, Caller, Event, Kept, Waited, saved_state};
use ciel_graph::{Assignment, Until, Wait};
use ciel_model::{ActionKey, Failure, Form, Handle, RecentKinds, Value, WaitEnd, limits};
use ciel_skywriting::host::Handle as ScriptHandle;
use ciel_skywriting::machine::{Compacted, Machine, Promoted, Step};

use crate::core::{Core, Due, Turn};
use crate::engine::Engine;
use crate::executors::coroutine::{self, Begun};
use crate::executors::{Executor, Launch};
use crate::failures;
use crate::keeper::{self, EndedScript, Stepped};
use crate::kept::Segment;
use crate::largest::Maker;
use crate::objects;
use crate::promotion::{not_promoted, promote, run_for_others};
use crate::script::{self, Past, Script, ScriptWritten};
use crate::script_host::{Act, ScriptHost, host_of};
use crate::translate;
use crate::turns::ThreadState;
use crate::user_files;

/// What a script thread has of its own.
#[derive(Default)]
struct Thread {
    hand: ThreadState,
    /// The kinds of the latest calls without options.
    latest: RecentKinds,
}

/// The life of a script thread.
pub(crate) fn run_thread(engine: &Engine) {
    let mut thread = Thread::default();
    while let Some(turn) = next_turn(engine, &mut thread.hand) {
        let mut next = Some(turn);
        while let Some(turn) = next {
            next = run_turn(engine, &mut thread, turn);
        }
    }
}

/// Does a turn. Gives the next one, if it was taken on the way.
fn run_turn(engine: &Engine, thread: &mut Thread, turn: Turn) -> Option<Turn> {
    match turn {
        Turn::Begin(assignment, executor) => begin(engine, thread, assignment, &*executor),
        Turn::Promoted(assignment, machine) => promoted(engine, thread, assignment, *machine),
        Turn::Resume(assignment, script) => resume(engine, thread, assignment, script),
        Turn::Next(script) => run_script(engine, thread, script),
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
    thread: &mut Thread,
    assignment: Box<Assignment>,
    executor: &dyn Executor,
) -> Option<Turn> {
    let mut attempt = Attempt::new(&assignment);
    let stepped = Stepped::of(&assignment);
    let begun = match executor.launch() {
        Launch::Coroutine(coroutine) => coroutine.begin(engine, assignment),
        Launch::Command(_) | Launch::Worker(_) | Launch::Release(_) => {
            // The executor did not exist when a run began that is resumed here.
            let refused = engine.registry.unknown(executor.name());
            Begun::Failed(Box::new(refused.failure(&assignment.label)))
        }
    };
    let end = match begun {
        Begun::Script(script) => return go_on(engine, thread, script),
        Begun::Finished(outputs, read) => {
            if let Some(read) = read {
                engine.with(|core, _| stepped.tell(core, &outputs, &read));
            }
            Action::Finish(outputs)
        }
        Begun::Failed(failure) => Action::Fail(*failure),
    };
    engine.act(&mut attempt, end);
    None
}

/// A function that ran in the machine of the strand that spawned it continues as a task.
fn promoted(
    engine: &Engine,
    thread: &mut Thread,
    assignment: Box<Assignment>,
    machine: Machine,
) -> Option<Turn> {
    let mut attempt = Attempt::new(&assignment);
    match enter(engine, assignment, Some(machine)) {
        Ok(script) => return go_on(engine, thread, script),
        Err(failure) => engine.act(&mut attempt, Action::Fail(*failure)),
    }
    None
}

impl coroutine::Host for Engine {
    fn script(&self, assignment: Box<Assignment>) -> Result<Box<Script>, Box<Failure>> {
        enter(self, assignment, None)
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
        let content = objects::keep(self, &Maker::Task(label), || label.name.output(0), bytes)
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
    thread: &mut Thread,
    assignment: Box<Assignment>,
    mut script: Box<Script>,
) -> Option<Turn> {
    script.assignment = Some(assignment);
    go_on(engine, thread, script)
}

/// Passes the assignment to the script, and runs it.
fn go_on(engine: &Engine, thread: &mut Thread, mut script: Box<Script>) -> Option<Turn> {
    let entry = script.take_entry();
    script.rewind(&entry);
    let answers = script.attempt.enter(entry);
    match answer(engine, &mut script, answers) {
        Ok(()) => run_script(engine, thread, script),
        Err(failure) => miss(engine, script, *failure),
    }
}

/// A script does not get what it was to read.
fn miss(engine: &Engine, mut script: Box<Script>, failure: Failure) -> Option<Turn> {
    engine.act(&mut script.attempt, Action::Fail(failure));
    None
}

/// The script of an assignment that has not run before, with its machine if it has one already. A
/// called file is read on the way.
fn enter(
    engine: &Engine,
    assignment: Box<Assignment>,
    machine: Option<Machine>,
) -> Result<Box<Script>, Box<Failure>> {
    let descriptor = assignment.descriptor.clone();
    let entry = engine
        .programs
        .enter(&engine.settings, &descriptor.payload, descriptor.outputs)
        .map_err(|trouble| Box::new(translate::entry_failure(&assignment.label, trouble)))?;
    let references = descriptor.inputs.len() as u32;
    let (code, call) = (entry.program.code.clone(), entry.call);
    let surroundings = entry.surroundings;
    let machine = match (machine, saved_state(&assignment.entry)) {
        (Some(machine), _) => Ok(machine),
        (None, Some(state)) => Machine::load(code, &state, surroundings),
        (None, None) if call.is_empty() => Ok(Machine::for_script(code, surroundings)),
        (None, None) => Machine::for_call(code, call, references, surroundings),
    };
    let machine =
        machine.map_err(|error| Box::new(translate::load_failure(&assignment, &error)))?;
    let past = ScriptWritten::of(&assignment).map(|written| Box::new(Past::Written(written)));
    Ok(Box::new(Script {
        machine,
        attempt: Attempt::new(&assignment),
        assignment: Some(assignment),
        program: entry.program,
        origin: entry.origin,
        past,
        constructed: (0, 0),
        kept_for: 0,
        made_mib: (engine.folder.budget().counts().made() >> 20) as u32,
        packages: None,
    }))
}

fn answer(engine: &Engine, script: &mut Script, answers: Answers) -> Result<(), Box<Failure>> {
    for (handle, resolution) in answers {
        let answer = translate::answer(engine, &script.assignment().label, resolution)?;
        script.machine.answer(ScriptHandle(handle.0), answer);
    }
    Ok(())
}

fn run_script(engine: &Engine, thread: &mut Thread, script: Box<Script>) -> Option<Turn> {
    let mut next = Next::Again(script);
    loop {
        match next {
            Next::Again(same) => next = run_stretch(engine, thread, same),
            Next::Crowded(same) => next = pause(engine, thread, same),
            Next::Answered(mut same, answers, ended) => {
                if let Err(failure) = answer(engine, &mut same, answers) {
                    return miss(engine, same, *failure);
                }
                if let Some(ended) = ended {
                    same.cancelled(&ended);
                }
                next = run_stretch(engine, thread, same);
            }
            Next::Over(turn) => return turn,
        }
    }
}

enum Next {
    /// Continue at once.
    Again(Box<Script>),
    /// Too many of its children have not ended: let it wait until half of them have.
    Crowded(Box<Script>),
    /// Continue at once with the requested values, and how the wait ended if that is recorded.
    Answered(Box<Script>, Answers, Option<WaitEnd>),
    /// It ended, waits, or gave its place to others; here is the next turn, if there is one.
    Over(Option<Turn>),
}

/// Runs until there is an event for the engine, and submits it.
fn run_stretch(engine: &Engine, thread: &mut Thread, mut script: Box<Script>) -> Next {
    let (machine, kept_for, mut host) = host_of(engine, &mut thread.latest, &mut script);
    let step = match engine.settings.serial {
        true => run_until_spawn(machine, &mut host),
        false => run_for_others(engine, machine, kept_for, &mut host),
    };
    let promoted = promote(engine, machine, kept_for, &mut host, &step);
    let mut acts = std::mem::take(&mut host.acts);
    let (step, promoted) = match promoted {
        Ok(promoted) => (Ok(step), promoted),
        Err(why) => (Err(why), None),
    };
    let told = match step {
        Err(why) => StretchEnd::Ends(Action::Fail(not_promoted(&script, why))),
        Ok(step) => stretch_end(engine, &mut script, step, &mut acts),
    };
    if let Some(Past::Written(_)) = script.past.as_deref() {
        acts.iter()
            .for_each(|act| note_act(engine, &mut script, act));
    }
    tell(engine, thread, script, (acts, promoted), told)
}

/// What ends the stretch.
fn stretch_end(
    engine: &Engine,
    script: &mut Script,
    step: Step,
    acts: &mut Vec<Act>,
) -> StretchEnd {
    match step {
        Step::Finished(ended) => {
            StretchEnd::Ends(match translate::outputs(engine, script, ended) {
                Ok(outputs) => Action::Finish(outputs),
                Err(failure) => Action::Fail(*failure),
            })
        }
        Step::Failed { thrown, place } => {
            StretchEnd::Ends(Action::Fail(translate::failure(script, *thrown, &place)))
        }
        Step::Blocked { on } => StretchEnd::Stays(block(engine, script, &on, acts)),
        Step::Cancels { on } => StretchEnd::Stays(cancel(script, on)),
        Step::Preempted => StretchEnd::Stays(preempted(script)),
        Step::NeedsHost => StretchEnd::Stays(Stay::Running),
    }
}

/// A script is about to wait. What it knows by handle is renumbered with it, and what it names no
/// more is released, unless a retry may go back to where it was named.
fn block(engine: &Engine, script: &mut Script, on: &[ScriptHandle], acts: &mut Vec<Act>) -> Stay {
    let on = script::handles(on);
    if script.machine.has_kept() {
        return Stay::Blocked(script.attempt.block(on, Wait::ALL, Kept::All), false);
    }
    let may_go_back = script.assignment().descriptor.options.retries > 0;
    let made = engine.folder.budget().counts().made();
    let is_bounded = engine.settings.store_bytes.is_some();
    let is_pressed = (is_bounded || script.is_pressed(made)) && !may_go_back;
    let keep = match script.machine.compact(is_pressed) {
        None => Kept::All,
        Some(Compacted { kept, dropped }) => {
            if engine.is_recorded() && !may_go_back {
                let release = script.attempt.release(script::handles(&dropped));
                acts.extend(release.map(Act::Step));
            }
            script.packages = None;
            Kept::Only(script::handles(&kept))
        }
    };
    Stay::Blocked(script.attempt.block(on, Wait::ALL, keep), is_pressed)
}

/// A script that has spawned more than may be unfinished waits for nothing: it resumes when there
/// are few. What it names no more is released meanwhile, and its facts become a checkpoint.
fn pause(engine: &Engine, thread: &mut Thread, mut script: Box<Script>) -> Next {
    let mut acts = Vec::new();
    let stay = block(engine, &mut script, &[], &mut acts);
    tell(
        engine,
        thread,
        script,
        (acts, None),
        StretchEnd::Stays(stay),
    )
}

/// A script has used up its fuel.
fn preempted(script: &Script) -> Stay {
    Stay::Preempted(script.machine.location().to_string())
}

/// A script cancels a reference, unless it did so in a run that it repeats.
fn cancel(script: &mut Script, on: ScriptHandle) -> Stay {
    if let Some(ended) = script.recorded_end() {
        script.cancelled(&ended);
        return preempted(script);
    }
    let reached = script.attempt.reach(script.machine.actions());
    reached.expect("a machine counts its actions upwards, and bounds them");
    let wait = Wait {
        until: Until::Cancelled,
        limit_us: None,
        at: ActionKey::action(script.attempt.actions()),
    };
    let on = vec![script::handle(on)];
    Stay::Blocked(script.attempt.block(on, wait, Kept::All), false)
}

/// In the serial program a script stops at each spawn until all that it spawned is done. One that
/// only returns what it spawned ends first: a loop of such tasks never has more than one.
fn run_until_spawn(machine: &mut Machine, host: &mut ScriptHost<'_>) -> Step {
    for _ in 0..limits::SCRIPT_FUEL {
        match machine.run(host, 1) {
            Step::Preempted if host.spawned == 0 || machine.is_leaving() => {}
            step => return step,
        }
    }
    Step::Preempted
}

/// A script that has written more than may wait continues when there is room.
fn asking(script: &mut Script, stay: Stay) -> Stay {
    match stay {
        Stay::Blocked(..) => stay,
        Stay::Preempted(_) | Stay::Running => {
            let blocked = script.attempt.block(Vec::new(), Wait::ALL, Kept::All);
            Stay::Blocked(blocked, false)
        }
    }
}

/// The outcome of a stretch.
enum StretchEnd {
    Ends(Action),
    Stays(Stay),
}

/// Why a script that has not ended stops.
enum Stay {
    /// And whether objects take so much room that a replay is not to need old ones.
    Blocked(Blocked, bool),
    /// At that line.
    Preempted(String),
    /// A child of its own was promoted on the way.
    Running,
}

fn tell(
    engine: &Engine,
    thread: &mut Thread,
    mut script: Box<Script>,
    (acts, promoted): (Vec<Act>, Option<Promoted>),
    told: StretchEnd,
) -> Next {
    let over = engine.now();
    let kept = ended_script(engine, &mut script, &told);
    let mut core = engine.lock();
    let mut now = engine.now();
    for (what, count) in script.machine.take_ended() {
        core.in_place.add(what, count);
    }
    if let Some(Promoted { action, machine }) = promoted {
        let name = script.assignment().position.spawn(action);
        core.promoted.insert(name, machine);
    }
    let stay = tell_core(engine, &mut core, now, &mut script, acts, (told, kept));
    if is_crowded(&core, &script, &stay) {
        engine.release(core, now);
        return Next::Crowded(script);
    }
    let mut checkpoint = None;
    if wants_checkpoint(&core, &script, &stay) {
        // What that takes grows with the state of the script.
        engine.release(core, now);
        checkpoint = Some(script.checkpoint());
        core = engine.lock();
        now = engine.now();
    }
    let asks = stay.is_some() && core.engine().should_ask(script.assignment().strand);
    let stay = stay.map(|stay| match asks {
        true => asking(&mut script, stay),
        false => stay,
    });
    let on = stay.and_then(|stay| match stay {
        Stay::Blocked(blocked, _) => wait(&mut core, now, script, blocked.event(checkpoint)),
        Stay::Preempted(line) => step_aside(&mut core, now, &mut thread.hand, script, line),
        Stay::Running => Some(Next::Again(script)),
    });
    let next = on.unwrap_or_else(|| {
        core.turns.put_down(over, &mut thread.hand);
        Next::Over(core.take_turn(now, &mut thread.hand, &engine.registry))
    });
    let excess = core.state().output().excess_bytes() > 0;
    engine.release(core, now);
    if excess {
        crate::output::spill_excess(engine);
    }
    next
}

/// A script whose result may be kept has done that.
fn note_act(engine: &Engine, script: &mut Script, act: &Act) {
    let (after, file, bytes) = match act {
        Act::Step(_) => return,
        Act::Print(after, bytes) => (*after, None, bytes),
        Act::Append(after, sink, bytes) => match engine.files.path_of(*sink) {
            Some(path) => (*after, Some(path.into()), bytes),
            None => return script.note_written(None),
        },
    };
    script.note_written(Some(Segment {
        after,
        file,
        bytes: Bytes::copy_from_slice(bytes),
    }));
}

/// What is kept of a script whose stretch ends it well.
fn ended_script(engine: &Engine, script: &mut Script, told: &StretchEnd) -> Option<EndedScript> {
    let StretchEnd::Ends(Action::Finish(outputs)) = told else {
        return None;
    };
    let Past::Written(written) = *script.past.take()? else {
        return None;
    };
    let (assignment, written) = (script.assignment(), written.segments);
    Some(EndedScript::of(engine, assignment, written, outputs))
}

/// Submits the actions of the script and how its stretch ended, unless it only waits or was
/// preempted.
fn tell_core(
    engine: &Engine,
    core: &mut Core,
    now: u64,
    script: &mut Script,
    acts: Vec<Act>,
    (told, kept): (StretchEnd, Option<EndedScript>),
) -> Option<Stay> {
    let end = match (tell_acts(core, now, script, acts), told) {
        (Err(failure), _) => Action::Fail(*failure),
        (Ok(()), StretchEnd::Ends(end)) => {
            if let (Action::Finish(outputs), Some(kept)) = (&end, kept) {
                keeper::keep_script(engine, core, script.assignment(), kept, outputs);
            }
            end
        }
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

/// Whether a script that would continue is to wait, since too many of its children have not ended.
/// One that keeps children in its machine cannot be saved; see [`asking`].
fn is_crowded(core: &Core, script: &Script, stay: &Option<Stay>) -> bool {
    let continues = matches!(stay, Some(Stay::Preempted(_) | Stay::Running));
    let strand = script.assignment().strand;
    continues && !script.machine.has_kept() && core.engine().has_many_children(strand)
}

/// Whether the state of a script that is about to wait is to be kept.
fn wants_checkpoint(core: &Core, script: &Script, stay: &Option<Stay>) -> bool {
    match stay {
        Some(Stay::Blocked(blocked, is_pressed)) => {
            let is_whole = !blocked.is_timely() && !script.machine.has_kept();
            is_whole && core.wants_checkpoint(script.assignment(), *is_pressed)
        }
        Some(Stay::Preempted(_) | Stay::Running) | None => false,
    }
}

/// Suspends the script; if everything it waits for is resolved, it continues.
fn wait(core: &mut Core, now: u64, mut script: Box<Script>, blocked: Event) -> Option<Next> {
    let reply = core.ask(now, blocked, Caller::Thread);
    match script.attempt.waited(reply) {
        Waited::Over { answers, ended } => Some(Next::Answered(script, answers, ended)),
        Waited::Suspended => {
            let task = script.attempt.key().task;
            script.suspend();
            core.scripts.insert(task, script);
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
                let (strand, label) = (script.assignment().strand, &script.assignment().label);
                let written = core.write(strand, label, after, bytes);
                written.map_err(|told| Box::new(failures::differs(script.assignment(), told)))?;
            }
            Act::Append(after, sink, bytes) => {
                let (strand, label) = (script.assignment().strand, &script.assignment().label);
                let written = core.write_file(strand, label, after, (sink, bytes.into()));
                written.map_err(|told| Box::new(failures::differs(script.assignment(), told)))?;
            }
        }
    }
    Ok(())
}
