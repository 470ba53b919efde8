//! What a running task says, and what becomes of it: each word is a function.
//!
//! Handles are looked up before the core is told, and made when it has performed the word, so both
//! sides count alike. A word that is not allowed is the task's failure and nobody else's. It does
//! not know the socket. Read next: `ending`, for the words that end a task's turn.

use std::sync::Arc;

use ciel_engine::{Caller, Reply};
use ciel_graph::{Continuation, Event, Step, Wait};
use ciel_model::{Failure, FailureKind, Handle, Resolution, Value};
use ciel_node::AttemptKey;
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{self as words, Answer, Data, Level, Resume, Sink, answer};

use super::ending::{self, Over, Seat};
use super::held::{Failed, Held, Purpose};
use super::start::{observe_input, record_end};
use super::{attempt_of, failing, wire};
use crate::core::Core;
use crate::engine::Engine;
use crate::refused::Refused;
use crate::{failures, objects, output};

/// What comes of one word.
pub(super) enum Said {
    Nothing,
    /// To be told at once.
    Answer(Box<Answer>),
    /// The block is over before it began.
    Resumed(Resume),
    /// The turn is over, and this is what the engine replied.
    Over(Over, Reply),
}

/// Does what a running task says.
///
/// # Errors
/// The task's failure; it has not been told to the graph.
pub(super) fn hear(seat: &Seat<'_>, held: &mut Held, kind: Kind) -> Failed<Said> {
    match kind {
        Kind::Construct(word) => construct(seat, held, word),
        Kind::Spawn(word) => spawn(seat, held, &word),
        Kind::Publish(word) => publish(seat, held, word),
        Kind::OpenReference(word) => open_reference(seat, held, &word),
        Kind::OpenOutput(word) => open_output(seat, held, &word),
        Kind::OpenConstruct(word) => Ok(open(seat, held, word.request, Purpose::Object)),
        Kind::Commit(word) => commit(seat, held, &word),
        Kind::Write(word) => write(seat, held, &word),
        Kind::Observe(word) => observe(seat, held, word),
        Kind::Log(word) => Ok(log(seat, held, &word)),
        Kind::TailSpawn(word) => ending::tail_spawn(seat, held, word),
        Kind::BlockOn(word) => ending::block_on(seat, held, word),
        Kind::Error(word) => {
            let said = word.failure.unwrap_or_default();
            let failure = failing::failure(held.label(), &held.received, said);
            seat.workers.engine.heed_surroundings(&failure);
            Err(Box::new(failure))
        }
        Kind::Exit(word) => ending::exit(seat, held, word),
        Kind::Hello(_) | Kind::Pong(_) | Kind::GiveBack(_) => {
            unreachable!("these are about the connection")
        }
    }
}

/// Tells the graph a step of the task.
pub(super) fn step(core: &mut Core, now: u64, held: &Held, step: Step) {
    let run = attempt_of(&held.assignment);
    core.tell(
        now,
        Event::TaskStepped {
            task: run.task,
            attempt: run.attempt,
            step,
        },
    );
}

/// An object that a task gives by value.
pub(super) fn value(
    seat: &Seat<'_>,
    held: &mut Held,
    given: Option<Data>,
) -> Failed<Value<Handle>> {
    let given = given.unwrap_or_default();
    let form = wire::form_of(&given.form).map_err(|refused| held.refuse(refused))?;
    let references = wire::handles(&held.handles, &given.references);
    let references = references.map_err(|refused| held.refuse(refused))?;
    let is_replaying = held.cursor.is_replaying();
    let name = || held.files.fresh_name();
    // What is said again is there already, and only compared.
    let kept = match is_replaying {
        true => Ok(objects::as_if_kept(name, given.data)),
        false => objects::keep(&seat.workers.engine, name, given.data),
    };
    Ok(Value {
        form,
        content: kept.map_err(|trouble| held.trouble(&seat.workers.engine, trouble))?,
        references,
    })
}

/// A new object joins the graph and the task's table.
fn add(core: &mut Core, now: u64, held: &mut Held, value: Value<Handle>) -> Handle {
    let (at, handle) = (held.cursor.part(), held.handles.make(1));
    step(core, now, held, Step::Construct { at, handle, value });
    record_end(core, now, held);
    handle
}

fn room(held: &Held, wanted: u32) -> Failed<()> {
    match held.handles.room() >= wanted {
        true => Ok(()),
        false => Err(held.refuse(Refused::new("it has no handles left for what it makes"))),
    }
}

fn construct(seat: &Seat<'_>, held: &mut Held, word: words::Construct) -> Failed<Said> {
    room(held, 1)?;
    let value = value(seat, held, word.value)?;
    let engine = &seat.workers.engine;
    engine.with(|core, now| add(core, now, held, value));
    Ok(Said::Nothing)
}

fn spawn(seat: &Seat<'_>, held: &mut Held, word: &words::Spawn) -> Failed<Said> {
    let engine = &seat.workers.engine;
    let mut read = Vec::with_capacity(word.tasks.len());
    let mut refused = Ok(Said::Nothing);
    for asked in &word.tasks {
        match wire::descriptor(engine, &held.handles, asked) {
            Ok(descriptor) => read.push((held.handles.make(asked.outputs), descriptor)),
            Err(why) => {
                refused = Err(held.refuse(why));
                break;
            }
        }
    }
    engine.with(|core, now| {
        for (first, descriptor) in read {
            let action = held.cursor.spawn();
            let spawn = Step::Spawn {
                action,
                first,
                descriptor,
            };
            step(core, now, held, spawn);
            record_end(core, now, held);
        }
    });
    refused
}

/// Notes that an output is given now; each is given once.
fn give(held: &mut Held, output: u32) -> Failed<()> {
    let count = held.assignment.descriptor.outputs;
    let refused = if output >= count {
        Refused::new(format!("it published output {output}, but has {count}"))
    } else if !held.given.insert(output) {
        Refused::new(format!("it published output {output} twice"))
    } else {
        return Ok(());
    };
    Err(held.refuse(refused))
}

fn publish(seat: &Seat<'_>, held: &mut Held, word: words::Publish) -> Failed<Said> {
    room(held, 1)?;
    give(held, word.output)?;
    let value = value(seat, held, word.value)?;
    publish_value(seat, held, word.output, value);
    Ok(Said::Nothing)
}

fn publish_value(seat: &Seat<'_>, held: &mut Held, index: u32, value: Value<Handle>) {
    seat.workers.engine.with(|core, now| {
        let to = add(core, now, held, value);
        step(core, now, held, Step::Delegate { index, to });
    });
}

/// Notes the number of a request; each is used once.
fn request(held: &mut Held, request: u32) -> Failed<()> {
    match held.requests.insert(request) {
        true => Ok(()),
        false => {
            let message = format!("it used the number {request} for two requests");
            Err(held.refuse(Refused::new(message)))
        }
    }
}

fn open_reference(seat: &Seat<'_>, held: &mut Held, word: &words::OpenReference) -> Failed<Said> {
    request(held, word.request)?;
    let found = wire::handles(&held.handles, &[word.handle]);
    let handle = found.map_err(|refused| held.refuse(refused))?[0];
    let engine = &seat.workers.engine;
    let blocks = word.hints.as_ref().is_some_and(|hints| hints.must_block);
    if blocks && seat.features.watching {
        let AttemptKey { task, attempt } = attempt_of(&held.assignment);
        let requests = held.watches.entry(handle).or_default();
        requests.push((word.request, word.handle));
        engine.with(|core, now| {
            core.tell(
                now,
                Event::TaskWatched {
                    task,
                    attempt,
                    handle,
                },
            );
        });
        return Ok(Said::Nothing);
    }
    let known = engine.with(|core, now| look(core, now, held, handle));
    let answer = known_answer(engine, held, word.request, word.handle, known)?;
    Ok(Said::Answer(Box::new(answer)))
}

fn known_answer(
    engine: &Engine,
    held: &mut Held,
    request: u32,
    number: u32,
    known: Resolution,
) -> Failed<Answer> {
    let reference = held.reference(engine, number, known)?;
    Ok(Held::answer(request, answer::Result::Reference(reference)))
}

/// Something that the task watches is there: the answers to all requests about it.
///
/// # Errors
/// The store's, as the task's failure.
pub(super) fn watched(engine: &Engine, held: &mut Held, handle: Handle) -> Failed<Vec<Answer>> {
    let requests = held.watches.remove(&handle).unwrap_or_default();
    let mut answers = Vec::with_capacity(requests.len());
    for (request, number) in requests {
        let known = engine.with(|core, now| look(core, now, held, handle));
        answers.push(known_answer(engine, held, request, number, known)?);
    }
    Ok(answers)
}

/// What is known of a handle now: to ask for what is there is to block for no time.
fn look(core: &mut Core, now: u64, held: &Held, handle: Handle) -> Resolution {
    let run = attempt_of(&held.assignment);
    let (task, attempt) = (run.task, run.attempt);
    if core.graph().is_settled(task, attempt, handle) != Some(true) {
        return Resolution::Future;
    }
    let blocked = Event::TaskBlocked {
        task,
        attempt,
        kept: None,
        on: vec![handle],
        wait: Wait::ALL,
        continuation: Continuation::Live,
        checkpoint: None,
    };
    let Reply::Continue { mut answers, .. } = core.ask(now, blocked, Caller::Nobody) else {
        return Resolution::Future;
    };
    let answer = answers.pop();
    answer.map_or(Resolution::Future, |(_, known)| known)
}

fn open_output(seat: &Seat<'_>, held: &mut Held, word: &words::OpenOutput) -> Failed<Said> {
    let (output, count) = (word.output, held.assignment.descriptor.outputs);
    let opened =
        (held.files.opened.values()).any(|(purpose, _)| *purpose == Purpose::Output(output));
    let why = if output >= count {
        format!("there is no output {output}: the task has {count}")
    } else if opened || held.given.contains(&output) {
        format!("output {output} is open or published already")
    } else {
        return Ok(open(seat, held, word.request, Purpose::Output(output)));
    };
    Ok(refused(held, word.request, &why))
}

/// A request that cannot be granted; the task goes on.
fn refused(held: &Held, request: u32, why: &str) -> Said {
    let failure = Failure::new(FailureKind::Refused, held.label().clone(), why);
    let result = answer::Result::Refused(failing::failure_told(&failure));
    Said::Answer(Box::new(Held::answer(request, result)))
}

fn open(seat: &Seat<'_>, held: &mut Held, request: u32, purpose: Purpose) -> Said {
    if !held.requests.insert(request) {
        return refused(held, request, "the number of this request was used before");
    }
    let result = match held.files.open(&seat.workers.engine, request, purpose) {
        Ok(path) => answer::Result::Opened(words::Opened {
            path: path.to_string_lossy().into_owned(),
        }),
        Err(trouble) => answer::Result::Refused(failing::failure_told(
            &held.trouble(&seat.workers.engine, trouble),
        )),
    };
    Said::Answer(Box::new(Held::answer(request, result)))
}

fn commit(seat: &Seat<'_>, held: &mut Held, word: &words::Commit) -> Failed<Said> {
    room(held, 1)?;
    let Some((purpose, path)) = held.files.opened.remove(&word.request) else {
        let message = format!(
            "it committed request {}, which opened no file",
            word.request
        );
        return Err(held.refuse(Refused::new(message)));
    };
    if let Purpose::Output(output) = purpose {
        give(held, output)?;
    }
    let form = wire::form_of(&word.form).map_err(|refused| held.refuse(refused))?;
    let references = wire::handles(&held.handles, &word.references);
    let references = references.map_err(|refused| held.refuse(refused))?;
    let name = held.files.fresh_name();
    let kept = match held.cursor.is_replaying() {
        true => Ok(objects::as_if_adopted(&seat.workers.engine, name, &path)),
        false => objects::adopt(&seat.workers.engine, name, &path),
    };
    let value = Value {
        form,
        content: kept.map_err(|trouble| held.trouble(&seat.workers.engine, trouble))?,
        references,
    };
    match purpose {
        Purpose::Output(output) => publish_value(seat, held, output, value),
        Purpose::Object => drop(
            seat.workers
                .engine
                .with(|core, now| add(core, now, held, value)),
        ),
    }
    Ok(Said::Nothing)
}

fn write(seat: &Seat<'_>, held: &mut Held, word: &words::Write) -> Failed<Said> {
    match word.sink() {
        Sink::Stderr => write_error(seat, held, &word.data),
        Sink::Stdout if word.data.is_empty() => {}
        Sink::Stdout => {
            held.printed = true;
            let bytes = word.data.to_vec();
            let (strand, label) = (held.assignment.strand, held.label());
            let engine = &seat.workers.engine;
            let after = held.cursor.actions();
            let written = engine.with(|core, _| core.write(strand, label, after, bytes));
            written.map_err(|told| Box::new(failures::differs(&held.assignment, told)))?;
            output::spill_excess(engine);
        }
    }
    Ok(Said::Nothing)
}

/// Standard error is shown live, once; or in its order.
fn write_error(seat: &Seat<'_>, held: &mut Held, bytes: &[u8]) {
    let engine = &seat.workers.engine;
    if engine.settings.ordered_errors {
        let (strand, after) = (held.assignment.strand, held.cursor.actions());
        return engine.with(|core, _| core.write_error(strand, after, bytes.to_vec()));
    }
    let task = held.assignment.task;
    let fresh = seat.workers.unshown(task, held.errors_bytes, bytes);
    held.errors_bytes += bytes.len() as u64;
    if fresh.is_empty() {
        return;
    }
    engine.lock().history.log(held.label(), "stderr", fresh);
    let lines = held.errors.push(fresh);
    if !lines.is_empty() {
        engine.observer.error_output(Some(held.label()), &lines);
    }
}

fn observe(seat: &Seat<'_>, held: &mut Held, word: words::Observe) -> Failed<Said> {
    let kind: Arc<str> = word.kind.as_str().into();
    let engine = &seat.workers.engine;
    if let Some(value) = word.value {
        let value = value.to_vec().into();
        engine.with(|core, now| observe_input(core, now, held, (kind, value)));
        return Ok(Said::Nothing);
    }
    request(held, word.request)?;
    if &*kind != "done" {
        let why = format!("unknown observation {kind:?}; the engine answers only \"done\"");
        return Ok(refused(held, word.request, &why));
    }
    let found = wire::handles(&held.handles, &word.references);
    let handles = found.map_err(|refused| held.refuse(refused))?;
    let value = engine.with(|core, now| {
        let run = attempt_of(&held.assignment);
        let there =
            |handle: &Handle| core.graph().is_settled(run.task, run.attempt, *handle) == Some(true);
        let done: Vec<bool> = handles.iter().map(there).collect();
        let value = serde_json::to_vec(&done).expect("truth values are JSON");
        let recorded = value.clone().into();
        observe_input(core, now, held, (kind, recorded));
        value
    });
    let result = answer::Result::Observed(words::Observed {
        value: value.into(),
    });
    Ok(Said::Answer(Box::new(Held::answer(word.request, result))))
}

/// People are told once; what is for the search of faults is kept for `ciel logs`.
fn log(seat: &Seat<'_>, held: &Held, word: &words::Log) -> Said {
    let engine = &seat.workers.engine;
    if !held.cursor.is_replaying() {
        let label = held.label();
        match word.level() {
            Level::Warning => engine.warn(Some(label), &word.message),
            Level::Info => {
                let line = format!("{}\n", word.message);
                engine.observer.error_output(Some(label), line.as_bytes());
            }
            Level::Debug => {
                let mut core = engine.lock();
                core.history.log(label, "log", word.message.as_bytes());
            }
        }
    }
    Said::Nothing
}
