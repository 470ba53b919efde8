//! What a running task asks for: each message is a function.
//!
//! Actions carry their index and the handles that they make; the graph refuses those that the task
//! must not use. A message that is not allowed fails its task. Read next: `turn_end`, for the
//! messages that end a turn.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ciel_engine::{Action, At, Event, Kept, Notice, Reply, Waited};
use ciel_graph::{Until, Wait};
use ciel_model::{
    ActionKey, Descriptor, Failure, FailureKind, Form, Handle, Refused, Resolution, Value,
};
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{self, Answer, Level, Sink, answer};

use crate::files::{Opened, Purpose};
use crate::host::{Failed, Host};
use crate::io::{Effect, Show};
use crate::look::look;
use crate::objects::{action_key, form_of};
use crate::task::WorkerTask;
use crate::turn::{Outcome, Turn, TurnEnd};
use crate::values::{known_handles, value};
use crate::{begun, failures, turn_end};

/// The kind of the observation that is answered when few children of the task are unfinished.
const FEW_CHILDREN: &str = "few_children";

/// Does what a running task asks for.
///
/// # Errors
/// The task's failure; the graph does not know it.
pub(crate) fn perform(turn: &mut Turn<'_>, task: &mut WorkerTask, kind: Kind) -> Failed<Outcome> {
    match kind {
        Kind::Construct(message) => construct(turn, task, message),
        Kind::Spawn(message) => spawn(turn, task, &message),
        Kind::Publish(message) => {
            task.has_observed = true;
            publish(turn, task, message)
        }
        Kind::OpenReference(message) => open_reference(turn, task, &message),
        Kind::OpenOutput(message) => open_output(turn, task, &message),
        Kind::OpenConstruct(message) => {
            let what = (Purpose::Object, Form::Bytes);
            Ok(open(turn, task, message.request, what, message.length))
        }
        Kind::OpenShared(message) if turn.features.shared => Ok(open_shared(turn, task, &message)),
        Kind::OpenShared(message) => {
            let why = "the worker has not named the feature \"shared\"";
            Ok(refused(task, message.request, why))
        }
        Kind::StreamShared(message) => Ok(stream_shared(turn, task, &message)),
        Kind::Commit(message) => commit(turn, task, &message),
        Kind::Write(message) => write(turn, task, &message),
        Kind::Observe(message) if message.kind == FEW_CHILDREN && turn.features.children => {
            await_few_children(turn, task, &message)
        }
        Kind::Observe(message) => {
            task.has_observed = true;
            observe(turn, task, message)
        }
        Kind::Log(message) => Ok(log(turn, task, message)),
        Kind::TailSpawn(message) => turn_end::tail_spawn(turn, task, message),
        Kind::BlockOn(message) => turn_end::block_on(turn, task, message),
        Kind::Error(message) => {
            let sent = message.failure.unwrap_or_default();
            let failure = failures::from_wire(task.label(), task.attempt.received(), sent);
            turn.host.heed(&failure);
            Err(Box::new(failure))
        }
        Kind::Exit(message) => turn_end::exit(turn, task, message),
        Kind::Hello(_)
        | Kind::Pong(_)
        | Kind::Define(_)
        | Kind::GiveBack(_)
        | Kind::EndedInPlace(_)
        | Kind::Caches(_) => {
            unreachable!("these are about the connection")
        }
    }
}

/// The answer to a request.
fn answer(request: u32, result: answer::Result) -> Answer {
    Answer {
        request,
        result: Some(result),
    }
}

fn act(turn: &mut Turn<'_>, task: &mut WorkerTask, action: Action) -> Outcome {
    let event = task.attempt.act(action).event;
    turn.host.tell(vec![event]);
    Outcome::Nothing
}

fn construct(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    message: wire::Construct,
) -> Failed<Outcome> {
    let at = action_key(message.action, message.part);
    task.reach(at.after())?;
    let value = value(turn, task, message.value, task.attempt.repeats(at))?;
    let construct = Action::Construct {
        at: At::Said(at),
        handle: Some(Handle(message.handle)),
        value,
    };
    Ok(act(turn, task, construct))
}

/// Spawns tasks up to the first that is refused.
fn spawn(turn: &mut Turn<'_>, task: &mut WorkerTask, message: &wire::Spawn) -> Failed<Outcome> {
    if message.begun {
        begun::check_spawn(turn, task, message)?;
    }
    let mut events = Vec::with_capacity(message.tasks.len() + 1);
    events.extend(task.attempt.release(begun::released(&message.released)));
    let mut outcome = Ok(Outcome::Nothing);
    let (mut action, mut first) = (message.action, message.handle);
    for asked in &message.tasks {
        let asked = match spawned(turn, task, asked, action) {
            Ok(child) if message.begun => begun::check_child(turn, task, &child).map(|()| child),
            asked => asked,
        };
        match asked {
            Ok(mut descriptor) => {
                if message.begun {
                    begun::take_nothing(&mut descriptor);
                }
                let outputs = descriptor.outputs;
                let spawn = Action::Spawn {
                    at: At::Said(ActionKey::action(action)),
                    first: Some(Handle(first)),
                    descriptor,
                };
                let event = task.attempt.act(spawn).event;
                events.push(match message.begun {
                    true => begun::marked(event),
                    false => event,
                });
                action = action.saturating_add(1);
                first = first.saturating_add(outputs);
            }
            Err(failure) => {
                outcome = Err(failure);
                break;
            }
        }
    }
    turn.host.tell(events);
    outcome
}

fn spawned(
    turn: &Turn<'_>,
    task: &mut WorkerTask,
    asked: &wire::Descriptor,
    action: u64,
) -> Failed<Arc<Descriptor>> {
    task.reach(ActionKey::action(action).after())?;
    turn.descriptor(asked)
        .map_err(|refused| task.refuse(refused))
}

/// Notes that an output is given now; each is given once.
fn give(task: &mut WorkerTask, output: u32) -> Failed<()> {
    let given = task.attempt.give(output);
    given.map_err(|error| task.refuse(Refused::new(error.to_string())))
}

fn publish(turn: &mut Turn<'_>, task: &mut WorkerTask, message: wire::Publish) -> Failed<Outcome> {
    give(task, message.output)?;
    let at = ActionKey::action(message.action);
    task.reach(message.action)?;
    let value = value(turn, task, message.value, task.attempt.repeats(at))?;
    if task.reads_streams() {
        task.files.held.push((message.output, value));
        return Ok(Outcome::Nothing);
    }
    let publish = Action::Publish {
        at: At::Said(at),
        handle: Some(Handle(message.handle)),
        index: message.output,
        value,
    };
    Ok(act(turn, task, publish))
}

/// The number of a request, which no open one has.
fn request(task: &WorkerTask, request: u32) -> Failed<()> {
    task.check_request(request).map_err(|why| {
        let message = format!("its request {request} cannot be answered: {why}");
        task.refuse(Refused::new(message))
    })
}

fn open_reference(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    message: &wire::OpenReference,
) -> Failed<Outcome> {
    request(task, message.request)?;
    let handle = known_handles(turn.host, task, &[message.handle])?[0];
    if message.as_stream && turn.features.streams {
        return open_as_stream(turn, task, message.request, handle);
    }
    if message.must_block && turn.features.watching {
        task.watch(handle, message.request);
        let watched = task.attempt.watch(handle);
        turn.host.tell(vec![watched.into()]);
        return Ok(Outcome::Nothing);
    }
    let known = look(turn.host, task, handle);
    let answer = reference_answer(turn.host, task, message.request, handle, known)?;
    Ok(Outcome::Answer(Box::new(answer)))
}

/// What is resolved is given; of anything else, what is written of it, and of what has failed, what
/// was written before that. A task that takes a core is to wait: who writes may need
/// it.
fn open_as_stream(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    request: u32,
    handle: Handle,
) -> Failed<Outcome> {
    let known = look(turn.host, task, handle);
    if matches!(known, Resolution::Failed(_))
        && let Some(reference) = task.show_failed_stream(turn.host, handle)?
    {
        let result = answer::Result::Reference(reference);
        return Ok(Outcome::Answer(Box::new(answer(request, result))));
    }
    if takes_core(turn, task) || !matches!(known, Resolution::Future) {
        let answer = reference_answer(turn.host, task, request, handle, known)?;
        return Ok(Outcome::Answer(Box::new(answer)));
    }
    let reference = task.show_stream(turn.host, handle)?;
    turn.host.tell(vec![task.attempt.watch(handle).into()]);
    let result = answer::Result::Reference(reference);
    Ok(Outcome::Answer(Box::new(answer(request, result))))
}

/// Whether others wait for the core on which a task runs.
fn takes_core(turn: &mut Turn<'_>, task: &WorkerTask) -> bool {
    let cores = task.assignment.descriptor.options.resources.millicores;
    cores > 0 && !turn.host.has_root_apart(turn.worker)
}

/// The task wants to know when few of its children are unfinished. It is answered at once if others
/// wait for what it does meanwhile: for its core, or for it to read what they write.
fn await_few_children(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    message: &wire::Observe,
) -> Failed<Outcome> {
    request(task, message.request)?;
    if takes_core(turn, task) || task.reads_shown() {
        return Ok(Outcome::Answer(Box::new(few_children(message.request))));
    }
    task.await_few_children(message.request);
    let attempt = task.attempt.key();
    turn.host.tell(vec![Event::ChildrenAwaited { attempt }]);
    Ok(Outcome::Nothing)
}

fn few_children(request: u32) -> Answer {
    let value = Bytes::new();
    answer(request, answer::Result::Observed(wire::Observed { value }))
}

fn reference_answer(
    host: &mut dyn Host,
    task: &mut WorkerTask,
    request: u32,
    handle: Handle,
    known: Resolution,
) -> Failed<Answer> {
    let reference = task.reference(host, handle, known)?;
    Ok(answer(request, answer::Result::Reference(reference)))
}

/// The task is told what it has asked for: the answers to all requests about that.
///
/// # Errors
/// The store's, as the task's failure.
pub(crate) fn noticed(
    host: &mut dyn Host,
    task: &mut WorkerTask,
    notice: Notice,
) -> Failed<Vec<Answer>> {
    match notice {
        Notice::Settled(handle) => watched(host, task, handle),
        Notice::FewChildren => {
            let requests = task.take_few_children().into_iter();
            Ok(requests.map(few_children).collect())
        }
    }
}

fn watched(host: &mut dyn Host, task: &mut WorkerTask, handle: Handle) -> Failed<Vec<Answer>> {
    task.settle_stream(host, handle);
    let requests = task.take_watches(handle);
    let mut answers = Vec::with_capacity(requests.len());
    for request in requests {
        let known = look(host, task, handle);
        answers.push(reference_answer(host, task, request, handle, known)?);
    }
    Ok(answers)
}

fn open_output(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    message: &wire::OpenOutput,
) -> Failed<Outcome> {
    let (output, count) = (message.output, task.assignment.descriptor.outputs);
    let purpose = match task.assignment.descriptor.streams.outputs.contains(&output) {
        true => Purpose::Stream(output),
        false => Purpose::Output(output),
    };
    let mut opened = task.files.opened.values();
    let is_open = opened.any(|opened| opened.purpose == purpose);
    let why = if output >= count {
        format!("there is no output {output}: the task has {count}")
    } else if is_open || task.attempt.may_give(output).is_err() {
        format!("output {output} is open or published already")
    } else {
        let form = form_of(&message.form, "");
        let what = (purpose, form);
        return Ok(open(turn, task, message.request, what, message.length));
    };
    Ok(refused(task, message.request, &why))
}

/// A request that cannot be granted; the task continues.
fn refused(task: &WorkerTask, request: u32, why: &str) -> Outcome {
    let failure = Failure::new(FailureKind::Refused, task.label().clone(), why);
    let result = answer::Result::Refused(failures::to_wire(&failure));
    Outcome::Answer(Box::new(answer(request, result)))
}

fn open(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    request: u32,
    what: (Purpose, Form),
    length: u64,
) -> Outcome {
    if let Err(why) = task.check_request(request) {
        return refused(task, request, why);
    }
    let length = (length, turn.features.overwrites);
    let result = match task.open_file(turn.host, request, what, length) {
        Ok(path) => answer::Result::Opened(wire::Opened {
            path: path.to_string_lossy().into_owned(),
        }),
        Err(failure) => answer::Result::Refused(failures::to_wire(&failure)),
    };
    Outcome::Answer(Box::new(answer(request, result)))
}

fn open_shared(turn: &mut Turn<'_>, task: &mut WorkerTask, message: &wire::OpenShared) -> Outcome {
    let request = message.request;
    if let Err(why) = task.check_request(request) {
        return refused(task, request, why);
    }
    let path = task.share_memory(turn.host, message.length);
    let path = path.unwrap_or_default().to_string_lossy().into_owned();
    let result = answer::Result::Opened(wire::Opened { path });
    Outcome::Answer(Box::new(answer(request, result)))
}

/// What is said of something that is no stream of the task is for nobody.
fn stream_shared(turn: &mut Turn<'_>, task: &WorkerTask, message: &wire::StreamShared) -> Outcome {
    let is_stream = |opened: &Opened| opened.purpose == Purpose::Stream(message.output);
    if turn.features.shared && task.files.opened.values().any(is_stream) {
        turn.host
            .note_shared(&task.assignment, message.output, message.bytes);
    }
    Outcome::Nothing
}

fn commit(turn: &mut Turn<'_>, task: &mut WorkerTask, message: &wire::Commit) -> Failed<Outcome> {
    let Some(Opened { purpose, path, .. }) = task.take_file(message.request) else {
        let request = message.request;
        let message = format!("it committed request {request}, which opened no file");
        return Err(task.refuse(Refused::new(message)));
    };
    if let Purpose::Output(output) = purpose {
        give(task, output)?;
    }
    let at = action_key(message.action, message.part);
    task.reach(at.after())?;
    let value = committed(turn, task, message, &path, task.attempt.repeats(at))?;
    let (at, handle) = (At::Said(at), Some(Handle(message.handle)));
    let action = match purpose {
        Purpose::Stream(output) => {
            let message = format!("it committed output {output}, which is a stream");
            let refused = Refused::new(message);
            return Err(task.refuse(refused.hint("a stream is whole when its task has ended")));
        }
        // What it has read may be another thing when it runs again.
        Purpose::Output(index) if task.reads_streams() => {
            task.files.held.push((index, value));
            return Ok(Outcome::Nothing);
        }
        Purpose::Output(index) => Action::Publish {
            at,
            handle,
            index,
            value,
        },
        Purpose::Object => Action::Construct { at, handle, value },
    };
    Ok(act(turn, task, action))
}

/// The object in a file that is complete.
fn committed(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    message: &wire::Commit,
    path: &Path,
    repeated: bool,
) -> Failed<Value<Handle>> {
    let references = known_handles(turn.host, task, &message.references)?;
    let name = task.files.fresh_name();
    let content = turn.host.adopt(task.label(), name, path, repeated)?;
    Ok(Value {
        form: form_of(&message.form, &message.r#type),
        content,
        references,
    })
}

fn write(turn: &mut Turn<'_>, task: &mut WorkerTask, message: &wire::Write) -> Failed<Outcome> {
    task.reach(message.after)?;
    let bytes = &message.data;
    if !message.file.is_empty() {
        let after = task.attempt.write();
        let (assignment, file) = (&task.assignment, &message.file);
        turn.host
            .write_file(assignment, file, after, bytes.to_vec())?;
        return Ok(Outcome::Nothing);
    }
    match message.sink() {
        Sink::Stderr if turn.rules.ordered_errors => {
            let after = task.attempt.actions();
            turn.host
                .write_error(&task.assignment, after, bytes.to_vec());
        }
        Sink::Stderr => task.write_error(turn.host, bytes, turn.effects),
        Sink::Stdout if bytes.is_empty() => {}
        Sink::Stdout => {
            let after = task.attempt.write();
            turn.host.write(&task.assignment, after, bytes.to_vec())?;
        }
    }
    Ok(Outcome::Nothing)
}

fn observe(turn: &mut Turn<'_>, task: &mut WorkerTask, message: wire::Observe) -> Failed<Outcome> {
    let kind: Arc<str> = message.kind.as_str().into();
    let at = action_key(message.action, message.part);
    task.reach(message.action)?;
    if let Some(value) = message.value {
        let value = Bytes::copy_from_slice(&value);
        let at = At::Said(at);
        return Ok(act(turn, task, Action::Observe { at, kind, value }));
    }
    request(task, message.request)?;
    match &*kind {
        "done" => done(turn, task, kind, at, &message),
        "cancel" => cancel(turn, task, at, &message),
        _ => {
            let known = "the engine answers \"done\" and \"cancel\"";
            let why = format!("unknown observation {kind:?}; {known}");
            Ok(refused(task, message.request, &why))
        }
    }
}

/// Which references are resolved now.
fn done(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    kind: Arc<str>,
    at: ActionKey,
    message: &wire::Observe,
) -> Failed<Outcome> {
    let handles = known_handles(turn.host, task, &message.references)?;
    let settled = turn.host.settled(task.attempt.key(), &handles);
    let done: Vec<bool> = settled.iter().map(|known| *known == Some(true)).collect();
    let value: Bytes = serde_json::to_vec(&done)
        .expect("truth values are JSON")
        .into();
    let observe = Action::Observe {
        at: At::Said(at),
        kind,
        value: value.clone(),
    };
    act(turn, task, observe);
    let result = answer::Result::Observed(wire::Observed { value });
    Ok(Outcome::Answer(Box::new(answer(message.request, result))))
}

/// Cancels references, and answers with the places of those that are cancelled by then. The task
/// keeps its slot.
fn cancel(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    at: ActionKey,
    message: &wire::Observe,
) -> Failed<Outcome> {
    begun::check_end(task)?;
    let handles = known_handles(turn.host, task, &message.references)?;
    let wait = Wait {
        until: Until::Cancelled,
        limit_us: None,
        at,
    };
    let blocked = task.attempt.block(handles, wait, Kept::All);
    let reply = turn.ask(blocked.event(None));
    match task.attempt.waited(reply) {
        Waited::Over {
            ended: Some(ended), ..
        } => {
            let places = serde_json::to_vec(&ended.places).expect("numbers are JSON");
            let value = places.into();
            let result = answer::Result::Observed(wire::Observed { value });
            Ok(Outcome::Answer(Box::new(answer(message.request, result))))
        }
        _ => Ok(Outcome::Over(TurnEnd::Unwanted, Reply::Stopped)),
    }
}

/// People see it once; what is for the search of faults is kept for `ciel logs`.
fn log(turn: &mut Turn<'_>, task: &WorkerTask, message: wire::Log) -> Outcome {
    if !task.attempt.is_replaying() {
        let show = match message.level() {
            Level::Warning => Show::Warning(message.message),
            Level::Info => Show::Info(message.message),
            Level::Debug => Show::Log("log", message.message.into_bytes()),
        };
        turn.effects.push(Effect::Show(task.label().clone(), show));
    }
    Outcome::Nothing
}

/// Tells the engine about one attempt that ends here without a message of its worker.
pub(crate) fn end(host: &mut dyn Host, task: &mut WorkerTask, end: Action) {
    let event: Event = task.attempt.act(end).event;
    host.tell(vec![event]);
}
