//! What a running task says, and what becomes of it: each word is a function.
//!
//! Actions carry their index and the handles that they make; the graph refuses those that the task
//! must not use. A word that is not allowed is the task's failure and nobody else's. It does
//! not know the socket. Read next: `ending`, for the words that end a task's turn.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ciel_engine::{Action, At, Reply};
use ciel_model::{ActionKey, Descriptor, Failure, FailureKind, Handle, Resolution, Value};
use ciel_node::AttemptKey;
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{self as words, Answer, Data, Level, Resume, Sink, answer};

use super::ending::{self, Over, Seat};
use super::held::{Failed, Held, Purpose};
use super::look::look;
use super::{failing, wire};
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
            let failure = failing::failure(held.label(), held.attempt.received(), said);
            seat.workers.engine.heed_surroundings(&failure);
            Err(Box::new(failure))
        }
        Kind::Exit(word) => ending::exit(seat, held, word),
        Kind::Hello(_) | Kind::Pong(_) | Kind::Define(_) | Kind::GiveBack(_) => {
            unreachable!("these are about the connection")
        }
    }
}

/// An object that a task gives by value; `repeated` if an earlier run gave it, too.
pub(super) fn value(
    seat: &Seat<'_>,
    held: &mut Held,
    given: Option<Data>,
    repeated: bool,
) -> Failed<Value<Handle>> {
    let given = given.unwrap_or_default();
    let form = wire::form_of(&given.form, &given.r#type);
    let references = known_handles(&seat.workers.engine, held, &given.references)?;
    let name = || held.files.fresh_name();
    // What is repeated is stored already, and only compared.
    let kept = match repeated {
        true => Ok(objects::as_if_kept(name, given.data)),
        false => objects::keep(&seat.workers.engine, name, given.data),
    };
    Ok(Value {
        form,
        content: kept.map_err(|trouble| held.trouble(&seat.workers.engine, trouble))?,
        references,
    })
}

/// Handles of the task; what is stored with them is stored only if the task has all of them.
fn known_handles(engine: &Engine, held: &Held, numbers: &[u32]) -> Failed<Vec<Handle>> {
    let AttemptKey {
        task,
        number: attempt,
    } = held.attempt.key();
    let handles: Vec<Handle> = numbers.iter().copied().map(Handle).collect();
    if handles.is_empty() {
        return Ok(handles);
    }
    let core = engine.lock();
    let is_unknown = |handle: &&Handle| core.graph().is_settled(task, attempt, **handle).is_none();
    let unknown = handles.iter().find(is_unknown);
    match unknown {
        None => Ok(handles),
        Some(handle) => {
            let message = format!("it used handle {}, which it does not have", handle.0);
            Err(held.refuse(Refused::new(message)))
        }
    }
}

fn construct(seat: &Seat<'_>, held: &mut Held, word: words::Construct) -> Failed<Said> {
    let at = wire::action_key(word.action, word.part);
    held.reach(at.after())?;
    let value = value(seat, held, word.value, held.attempt.repeats(at))?;
    let engine = &seat.workers.engine;
    let construct = Action::Construct {
        at: At::Said(at),
        handle: Some(Handle(word.handle)),
        value,
    };
    engine.act(&mut held.attempt, construct);
    Ok(Said::Nothing)
}

fn spawn(seat: &Seat<'_>, held: &mut Held, word: &words::Spawn) -> Failed<Said> {
    let engine = &seat.workers.engine;
    let mut spawns = Vec::with_capacity(word.tasks.len());
    let mut refused = Ok(Said::Nothing);
    let (mut action, mut first) = (word.action, word.handle);
    for asked in &word.tasks {
        match read_spawn(seat, held, asked, action) {
            Ok(descriptor) => {
                let outputs = descriptor.outputs;
                spawns.push(Action::Spawn {
                    at: At::Said(ActionKey::action(action)),
                    first: Some(Handle(first)),
                    descriptor,
                });
                action = action.saturating_add(1);
                first = first.saturating_add(outputs);
            }
            Err(why) => {
                refused = Err(why);
                break;
            }
        }
    }
    engine.with(|core, now| {
        for spawn in spawns {
            core.act(now, &mut held.attempt, spawn);
        }
    });
    refused
}

fn read_spawn(
    seat: &Seat<'_>,
    held: &mut Held,
    asked: &words::Descriptor,
    action: u64,
) -> Failed<Arc<Descriptor>> {
    held.reach(ActionKey::action(action).after())?;
    task(seat, asked).map_err(|refused| held.refuse(refused))
}

/// A task that the worker spawns or hands its outputs to.
pub(super) fn task(seat: &Seat<'_>, asked: &words::Descriptor) -> Result<Arc<Descriptor>, Refused> {
    let definition = seat.definitions.find(asked.definition)?;
    wire::descriptor(definition, asked, seat.workers.engine.is_recorded())
}

/// Notes that an output is given now; each is given once.
fn give(held: &mut Held, output: u32) -> Failed<()> {
    let given = held.attempt.give(output);
    given.map_err(|error| held.refuse(Refused::new(error.to_string())))
}

fn publish(seat: &Seat<'_>, held: &mut Held, word: words::Publish) -> Failed<Said> {
    give(held, word.output)?;
    let at = ActionKey::action(word.action);
    held.reach(word.action)?;
    let value = value(seat, held, word.value, held.attempt.repeats(at))?;
    let engine = &seat.workers.engine;
    let publish = Action::Publish {
        at: At::Said(at),
        handle: Some(Handle(word.handle)),
        index: word.output,
        value,
    };
    engine.act(&mut held.attempt, publish);
    Ok(Said::Nothing)
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
    let engine = &seat.workers.engine;
    let handle = known_handles(engine, held, &[word.handle])?[0];
    if word.must_block && seat.features.watching {
        held.watches.entry(handle).or_default().push(word.request);
        engine.with(|core, now| core.tell(now, held.attempt.watch(handle)));
        return Ok(Said::Nothing);
    }
    let known = engine.with(|core, now| look(core, now, held, handle));
    let answer = known_answer(engine, held, word.request, handle, known)?;
    Ok(Said::Answer(Box::new(answer)))
}

fn known_answer(
    engine: &Engine,
    held: &mut Held,
    request: u32,
    handle: Handle,
    known: Resolution,
) -> Failed<Answer> {
    let reference = held.reference(engine, handle, known)?;
    Ok(Held::answer(request, answer::Result::Reference(reference)))
}

/// Something that the task watches is there: the answers to all requests about it.
///
/// # Errors
/// The store's, as the task's failure.
pub(super) fn watched(engine: &Engine, held: &mut Held, handle: Handle) -> Failed<Vec<Answer>> {
    let requests = held.watches.remove(&handle).unwrap_or_default();
    let mut answers = Vec::with_capacity(requests.len());
    for request in requests {
        let known = engine.with(|core, now| look(core, now, held, handle));
        answers.push(known_answer(engine, held, request, handle, known)?);
    }
    Ok(answers)
}

fn open_output(seat: &Seat<'_>, held: &mut Held, word: &words::OpenOutput) -> Failed<Said> {
    let (output, count) = (word.output, held.assignment.descriptor.outputs);
    let opened =
        (held.files.opened.values()).any(|(purpose, _)| *purpose == Purpose::Output(output));
    let why = if output >= count {
        format!("there is no output {output}: the task has {count}")
    } else if opened || held.attempt.may_give(output).is_err() {
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
    let (at, handle) = (
        wire::action_key(word.action, word.part),
        Handle(word.handle),
    );
    held.reach(at.after())?;
    let value = committed(seat, held, word, &path, held.attempt.repeats(at))?;
    let (at, handle) = (At::Said(at), Some(handle));
    let action = match purpose {
        Purpose::Output(index) => Action::Publish {
            at,
            handle,
            index,
            value,
        },
        Purpose::Object => Action::Construct { at, handle, value },
    };
    seat.workers.engine.act(&mut held.attempt, action);
    Ok(Said::Nothing)
}

/// The object in a file that is complete.
fn committed(
    seat: &Seat<'_>,
    held: &mut Held,
    word: &words::Commit,
    path: &Path,
    repeated: bool,
) -> Failed<Value<Handle>> {
    let engine = &seat.workers.engine;
    let references = known_handles(engine, held, &word.references)?;
    let name = held.files.fresh_name();
    let content = match repeated {
        true => Ok(objects::as_if_adopted(engine, name, path)),
        false => objects::adopt(engine, name, path),
    };
    Ok(Value {
        form: wire::form_of(&word.form, &word.r#type),
        content: content.map_err(|trouble| held.trouble(engine, trouble))?,
        references,
    })
}

fn write(seat: &Seat<'_>, held: &mut Held, word: &words::Write) -> Failed<Said> {
    held.reach(word.after)?;
    match word.sink() {
        Sink::Stderr => write_error(seat, held, &word.data),
        Sink::Stdout if word.data.is_empty() => {}
        Sink::Stdout => {
            let bytes = word.data.to_vec();
            let after = held.attempt.write();
            let (strand, label) = (held.assignment.strand, held.label());
            let engine = &seat.workers.engine;
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
        let (strand, after) = (held.assignment.strand, held.attempt.actions());
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
    let at = wire::action_key(word.action, word.part);
    held.reach(word.action)?;
    let engine = &seat.workers.engine;
    if let Some(value) = word.value {
        let value = Bytes::copy_from_slice(&value);
        let at = At::Said(at);
        engine.act(&mut held.attempt, Action::Observe { at, kind, value });
        return Ok(Said::Nothing);
    }
    request(held, word.request)?;
    if &*kind != "done" {
        let why = format!("unknown observation {kind:?}; the engine answers only \"done\"");
        return Ok(refused(held, word.request, &why));
    }
    let handles = known_handles(engine, held, &word.references)?;
    let value = engine.with(|core, now| {
        let attempt = held.attempt.key();
        let there = |handle: &Handle| {
            core.graph()
                .is_settled(attempt.task, attempt.number, *handle)
                == Some(true)
        };
        let done: Vec<bool> = handles.iter().map(there).collect();
        let value = serde_json::to_vec(&done).expect("truth values are JSON");
        let recorded = value.clone().into();
        let observe = Action::Observe {
            at: At::Said(at),
            kind,
            value: recorded,
        };
        core.act(now, &mut held.attempt, observe);
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
    if !held.attempt.is_replaying() {
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
