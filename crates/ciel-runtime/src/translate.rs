//! Between the words of the Skywriting machine and those of the graph.

use std::sync::Arc;

use bytes::Bytes;
use ciel_graph::{Assignment, Output};
use ciel_model::{
    CodeIdentity, Content, Descriptor, Failure, FailureKind, Form, Frame, Handle, Input, Label,
    Name, Payload, Reached, RecentKinds, Resolution, Site, Streams, TaskKind, Value, limits,
};
use ciel_skywriting::diagnostic::{Diagnostic, line_column, render};
use ciel_skywriting::hir::Source;
use ciel_skywriting::host::{
    Answer, Handle as ScriptHandle, References, SpawnRequest, Thrown, Work,
};
use ciel_skywriting::machine::{Ended, Returned};
use ciel_skywriting::wire::LoadError;

use crate::engine::Engine;
use crate::executors::Executor;
use crate::executors::request::Request;
use crate::largest::Maker;
use crate::objects;
use crate::script::{Script, handle, handles};
use crate::{options, programs};

/// The state of a reference, for the script of that task.
///
/// # Errors
/// The bytes cannot be read, which is the failure of the task and nothing that it could catch.
pub(crate) fn answer(
    engine: &Engine,
    task: &Label,
    resolution: Resolution,
) -> Result<Answer, Box<Failure>> {
    let (name, value) = match resolution {
        Resolution::Ready { name, value } => (name, value),
        Resolution::Failed(failure) => return Ok(Answer::Error(thrown(&failure))),
        Resolution::Future => unreachable!("a script is answered when things are there"),
    };
    let length = value.content.length();
    if value.form == Form::Bytes && length > limits::SCRIPT_LOAD_BYTES_MAX {
        return Ok(Answer::Large {
            name: name.to_string(),
            bytes: length,
        });
    }
    let bytes = objects::load(engine, &value.content)
        .map_err(|trouble| Box::new(trouble.failure(engine, task)))?;
    Ok(bytes_answer(name, value.form, bytes, &value.references))
}

/// A failure as scripts catch it.
pub(crate) fn thrown(failure: &Failure) -> Thrown {
    let line = |frame: &Frame| match frame.place.is_empty() {
        true => frame.task.to_string(),
        false => format!("{} ({})", frame.task, frame.place),
    };
    Thrown {
        kind: failure.type_name.clone(),
        message: failure.message.clone(),
        task: failure.origin.to_string(),
        trace: failure.frames.iter().map(line).collect(),
        hint: failure.hint.clone(),
        value: failure
            .value
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok()),
    }
}

/// What a script's end gives for its output.
pub(crate) fn outputs(
    engine: &Engine,
    script: &Script,
    ended: Ended,
) -> Result<Vec<Output>, Box<Failure>> {
    let assignment = script.assignment();
    let output = match ended.value {
        Returned::Delegated(to) => Output::Delegate(handle(to)),
        Returned::Value { bytes, references } => {
            let name = || assignment.label.name.output(0);
            let content =
                objects::keep(engine, &Maker::Task(&assignment.label), name, bytes.into())
                    .map_err(|trouble| Box::new(trouble.failure(engine, &assignment.label)))?;
            let references = handles(&references);
            Output::Value(Value {
                form: Form::Skywriting,
                content,
                references,
            })
        }
        Returned::Json(value) => {
            let text = value.to_string().into_bytes();
            let content = Content::Inline(text.into());
            Output::Value(Value {
                form: Form::Json,
                content,
                references: Vec::new(),
            })
        }
    };
    Ok(vec![output])
}

/// What left a script as the graph's failure: the original one if it came from another task.
pub(crate) fn failure(script: &Script, thrown: Thrown, place: &Diagnostic) -> Failure {
    let sources = &script.program.sources;
    let label = script.assignment().label.clone();
    let here = |note: String| Frame {
        task: label.clone(),
        place: spot(sources, place),
        note,
    };
    if let Some(original) = script
        .attempt
        .received()
        .find(&thrown.task, &thrown.message)
    {
        return (**original).clone().through(here(String::new()));
    }
    let here = here(innermost(&thrown));
    let kind = FailureKind::from_code(&thrown.kind).unwrap_or(FailureKind::TaskError);
    let mut failure = Failure::new(kind, label.clone(), thrown.message);
    failure.type_name = thrown.kind;
    failure.hint = thrown.hint;
    failure.value = thrown.value.map(|value| value.to_string());
    failure.excerpt = excerpt(sources, place);
    failure = failure.through(here);
    for line in thrown.trace.iter().skip(1) {
        let frame = Frame {
            task: label.clone(),
            place: String::new(),
            note: line.clone(),
        };
        failure = failure.through(frame);
    }
    failure
}

/// The function in which it happened, if that is not the task's own.
fn innermost(thrown: &Thrown) -> String {
    match thrown.trace.as_slice() {
        [first, _, ..] => {
            let name = first
                .split_once(" at ")
                .map_or(first.as_str(), |(name, _)| name);
            format!("in {name}")
        }
        _ => String::new(),
    }
}

/// `file:line:column`.
fn spot(sources: &[Source], place: &Diagnostic) -> String {
    let source = sources.get(place.span.source as usize);
    source.map_or(String::new(), |source| {
        let (line, column) = line_column(source, place.span.start);
        format!("{}:{line}:{column}", source.name)
    })
}

/// The source lines with their caret; the message stands elsewhere.
fn excerpt(sources: &[Source], place: &Diagnostic) -> String {
    let mut bare = place.clone();
    bare.hint = None;
    let rendered = render(std::slice::from_ref(&bare), sources, false);
    rendered
        .split_once('\n')
        .map_or(String::new(), |(_, rest)| rest.trim_end().to_string())
}

/// A script that cannot begin.
pub(crate) fn entry_failure(label: &Label, trouble: programs::ProgramError) -> Failure {
    let trouble = match trouble {
        programs::ProgramError::Refused(refused) => return refused.failure(label),
        programs::ProgramError::Script(trouble) => trouble,
    };
    let mut failure = Failure::new(FailureKind::Refused, label.clone(), trouble.message);
    failure.hint = trouble.hint;
    failure.excerpt = trouble.excerpt;
    match trouble.place.is_empty() {
        true => failure,
        false => failure.through(Frame {
            task: label.clone(),
            place: trouble.place,
            note: String::new(),
        }),
    }
}

/// A call that cannot be accepted.
pub(crate) fn load_failure(assignment: &Assignment, error: &LoadError) -> Failure {
    let kind = match error {
        LoadError::TooLarge { .. } => FailureKind::OutOfMemory,
        _ => FailureKind::TaskError,
    };
    Failure::new(kind, assignment.label.clone(), error.to_string())
}

/// What a script wants to have run, as the graph takes it.
///
/// The payloads of the script's functions begin with `origin`.
pub(crate) fn descriptor(engine: &Engine, origin: &[u8], asked: SpawnRequest) -> Arc<Descriptor> {
    let is_function = matches!(asked.work, Work::Call(_));
    let options = options::parse(&asked.options, &engine.settings, is_function);
    let rule = engine.keep_rule;
    let request =
        |executor: &dyn Executor, label: Option<String>, (payload, arguments), pure| Request {
            label: label.map_or(asked.label, Arc::from),
            payload,
            code: CodeIdentity::default(),
            // Of a function only the version: the rest is in the payload.
            reached: options
                .version
                .map_or_else(Reached::default, Reached::of_digest),
            inputs: inputs(executor, &asked.references),
            outputs: asked.outputs,
            streams: Streams::default(),
            arguments,
            options: options.shared,
            pure,
            site: Site {
                file: asked.file,
                line: asked.line,
            },
        };
    let recorded = engine.is_recorded();
    match asked.work {
        Work::Call(bytes) => {
            let own = engine.registry.scripts();
            let payload = call_payload(origin, bytes);
            // Equal calls of functions do not share a result.
            let pure = options.pure.filter(|pure| !pure);
            let call = (payload, serde_json::Value::Null);
            request(own, options.name, call, pure).descriptor(own, recorded, rule)
        }
        Work::Executor {
            executor,
            arguments,
        } => {
            let found = engine.registry.find(&executor);
            let executor = &*found;
            let label = options.name.or_else(|| executor.label_of(&arguments));
            let payload = Bytes::from(arguments.to_string().into_bytes().into_boxed_slice());
            let call = (payload, arguments);
            request(executor, label, call, options.pure).descriptor(executor, recorded, rule)
        }
    }
}

/// A call without options. The latest such calls are `latest`, with which it shares what is the
/// same for all calls of that function by that line.
pub(crate) fn plain_call(
    engine: &Engine,
    origin: &[u8],
    latest: &mut RecentKinds,
    asked: SpawnRequest,
) -> Arc<Descriptor> {
    let is_such = |kind: &TaskKind| {
        let site = &kind.site;
        site.line == asked.line && site.file == asked.file && kind.what == asked.label
    };
    let Some(kind) = latest.find(is_such).cloned() else {
        let descriptor = descriptor(engine, origin, asked);
        latest.add(descriptor.kind.clone());
        return descriptor;
    };
    let Work::Call(bytes) = asked.work else {
        unreachable!("a call of a function");
    };
    Arc::new(Descriptor {
        payload: Payload::new(call_payload(origin, bytes)),
        inputs: inputs(engine.registry.scripts(), &asked.references),
        kind,
    })
}

fn call_payload(origin: &[u8], call: Vec<u8>) -> Bytes {
    match origin {
        [] => Bytes::from(call),
        origin => [origin, &call].concat().into(),
    }
}

/// What a script gives to a task, as its executor takes what a script gives.
fn inputs(executor: &dyn Executor, references: &[ScriptHandle]) -> Vec<Input> {
    let mode = executor.input_mode(None);
    let given = references.iter().map(|given| handle(*given));
    given.map(|handle| Input { handle, mode }).collect()
}

/// What a plain answer of bytes is to a script. References are delivered with it side by side; in
/// plain bytes and pickles a script cannot name them.
fn bytes_answer(name: Name, form: Form, bytes: Bytes, delivered: &[Handle]) -> Answer {
    let references = References {
        first: ScriptHandle(delivered.first().map_or(0, |first| first.0)),
        count: delivered.len() as u32,
    };
    match form {
        Form::Skywriting => Answer::Value { bytes, references },
        Form::Json | Form::TypedJson(_) => Answer::Json { bytes, references },
        Form::Text => Answer::Json {
            bytes: quoted(&bytes),
            references,
        },
        Form::Bytes | Form::Pickle | Form::Other(_) => Answer::Bytes {
            name: name.to_string(),
            bytes,
        },
    }
}

/// Text as a JSON string.
fn quoted(text: &[u8]) -> Bytes {
    let text = String::from_utf8_lossy(text);
    let quoted = serde_json::to_vec(&*text).expect("a string is JSON");
    quoted.into()
}
