//! Between the words of the executor protocol and those of the model.
//!
//! Pure conversions; what a worker may say wrongly comes back as a [`Refused`]. It knows neither
//! sockets nor the graph. Read next: `held` (references), `verbs` (what a worker says).

use std::collections::BTreeMap;
use std::sync::Arc;

use ciel_model::{
    Descriptor, Failure, FailureKind, Form, Frame, Handle, Label, Needs, Options, Resources, Site,
    limits,
};
use ciel_protocol::{form, wire};

use super::handles::Handles;
use crate::core::Core;
use crate::executors::{Kind, Refused, Registry};
use crate::settings::Settings;

/// Characters of a label that people are shown.
const LABEL_CHARACTERS_MAX: usize = 64;

/// Between outermost and innermost call, frames that are kept.
const FRAMES_MAX: usize = limits::FAILURE_FRAMES_MAX;

/// The form of that name.
pub(super) fn form_of(name: &str) -> Result<Form, Refused> {
    match name {
        "" | form::BYTES => Ok(Form::Bytes),
        form::JSON => Ok(Form::Json),
        form::SKYWRITING => Ok(Form::Skywriting),
        form::PICKLE => Ok(Form::Pickle),
        other => Err(
            Refused::new(format!("it made an object of the unknown form {other:?}"))
                .hint("forms are bytes, json, skywriting and pickle"),
        ),
    }
}

/// The name of a form.
pub(super) fn form_name(form: Form) -> &'static str {
    match form {
        Form::Bytes => form::BYTES,
        Form::Json => form::JSON,
        Form::Skywriting => form::SKYWRITING,
        Form::Pickle => form::PICKLE,
    }
}

/// The graph's handles for numbers that the worker used.
pub(super) fn handles(known: &Handles, numbers: &[u32]) -> Result<Vec<Handle>, Refused> {
    let find = |number: &u32| {
        known
            .find(*number)
            .ok_or_else(|| Refused::new(format!("it used handle {number}, which it does not have")))
    };
    numbers.iter().map(find).collect()
}

/// A task that a worker wants to have run.
///
/// # Errors
/// Handles that the task does not have, too many outputs, arguments that are no JSON for an
/// executor that takes JSON.
pub(super) fn descriptor(
    registry: &Registry,
    settings: &Settings,
    known: &Handles,
    asked: &wire::Descriptor,
) -> Result<Descriptor, Refused> {
    let kind = registry.kind_of(&asked.executor);
    let numbers: Vec<u32> = asked.inputs.iter().map(|input| input.handle).collect();
    let inputs = handles(known, &numbers)?;
    check_outputs(asked.outputs, known.room())?;
    let arguments = arguments(&kind, &asked.payload)?;
    let (options, pure) = options(asked.options.as_ref(), settings);
    let class = kind.class(&options.resources);
    Ok(Descriptor {
        executor: kind.name().into(),
        what: what(&kind, &asked.label, &arguments).into(),
        payload: asked.payload.to_vec().into(),
        inputs,
        needs: needs(&kind, &asked.inputs),
        outputs: asked.outputs,
        options: Arc::new(options),
        site: asked.site.as_ref().map_or_else(Site::default, site),
        pure: pure.unwrap_or_else(|| kind.is_pure()),
        replayable: Core::is_pooled(&class),
        class,
    })
}

fn check_outputs(outputs: u32, room: u32) -> Result<(), Refused> {
    let most = limits::OUTPUTS_MAX.min(room);
    match outputs <= most {
        true => Ok(()),
        false => Err(Refused::new(format!(
            "it spawned a task with {outputs} outputs; {most} is the most"
        ))),
    }
}

/// The arguments of executors that come with the engine; these must be JSON.
fn arguments(kind: &Kind, payload: &[u8]) -> Result<serde_json::Value, Refused> {
    match kind {
        Kind::Plugin(_) | Kind::Python | Kind::Unknown(_) => Ok(serde_json::Value::Null),
        Kind::Process(_) | Kind::Internal(_) => serde_json::from_slice(payload).map_err(|error| {
            let name = kind.name();
            Refused::new(format!(
                "the arguments it gave to {name} are not JSON: {error}"
            ))
        }),
    }
}

fn what(kind: &Kind, label: &str, arguments: &serde_json::Value) -> String {
    let plain: String = label
        .chars()
        .filter(|c| !c.is_control())
        .take(LABEL_CHARACTERS_MAX)
        .collect();
    if !plain.is_empty() {
        return plain;
    }
    let told = kind.what(arguments);
    told.unwrap_or_else(|| kind.name().to_string())
}

fn needs(kind: &Kind, inputs: &[wire::Input]) -> Needs {
    match kind {
        Kind::Plugin(_) | Kind::Python if inputs.iter().all(|input| !input.as_reference) => {
            Needs::Everything
        }
        _ => kind.needs(),
    }
}

fn site(site: &wire::Site) -> Site {
    Site {
        file: site.file.as_str().into(),
        line: site.line,
    }
}

/// What a spawn asks for, and whether equal calls share a result, if it says.
fn options(asked: Option<&wire::Options>, settings: &Settings) -> (Options, Option<bool>) {
    let mut options = Options {
        retries: settings.retries,
        timeout_us: settings.timeout_us,
        ..Options::default()
    };
    let Some(asked) = asked else {
        return (options, None);
    };
    options.lazy = asked.lazy;
    options.live = asked.live;
    if let Some(retries) = asked.retries {
        options.retries = retries.min(limits::RETRIES_MAX);
    }
    if let Some(timeout_ms) = asked.timeout_ms {
        options.timeout_us = Some(timeout_ms.saturating_mul(1000));
    }
    resources(&asked.resources, &mut options.resources);
    let pure = match asked.purity() {
        wire::Purity::Unspecified => None,
        wire::Purity::Pure => Some(true),
        wire::Purity::Impure => Some(false),
    };
    (options, pure)
}

fn resources(asked: &BTreeMap<String, u64>, resources: &mut Resources) {
    for (name, amount) in asked {
        let small = u32::try_from(*amount).unwrap_or(u32::MAX);
        match name.as_str() {
            "cores" => resources.millicores = small,
            "memory" => resources.memory_bytes = Some(*amount),
            other => drop(resources.others.insert(other.into(), small)),
        }
    }
}

/// The options of a task, as its worker is told them.
pub(super) fn options_told(options: &Options, pure: bool) -> wire::Options {
    let Resources {
        millicores,
        memory_bytes,
        others,
    } = &options.resources;
    let mut resources = BTreeMap::from([("cores".to_string(), u64::from(*millicores))]);
    resources.extend(memory_bytes.map(|bytes| ("memory".to_string(), bytes)));
    let named = |(name, amount): (&Arc<str>, &u32)| (name.to_string(), u64::from(*amount));
    resources.extend(others.iter().map(named));
    wire::Options {
        resources,
        retries: Some(options.retries),
        timeout_ms: options.timeout_us.map(|limit| limit.div_ceil(1000)),
        lazy: options.lazy,
        purity: match pure {
            true => wire::Purity::Pure.into(),
            false => wire::Purity::Impure.into(),
        },
        cache_keys: Vec::new(),
        live: options.live,
    }
}

const KINDS: [(wire::FailureKind, FailureKind); 10] = [
    (wire::FailureKind::TaskError, FailureKind::TaskError),
    (wire::FailureKind::WorkerLost, FailureKind::WorkerLost),
    (wire::FailureKind::Cancelled, FailureKind::Cancelled),
    (wire::FailureKind::Timeout, FailureKind::Timeout),
    (wire::FailureKind::OutOfMemory, FailureKind::OutOfMemory),
    (
        wire::FailureKind::NotSerializable,
        FailureKind::NotSerializable,
    ),
    (
        wire::FailureKind::NonDeterministic,
        FailureKind::NonDeterministic,
    ),
    (wire::FailureKind::ObjectLost, FailureKind::ObjectLost),
    (wire::FailureKind::DiskFull, FailureKind::DiskFull),
    (wire::FailureKind::Refused, FailureKind::Refused),
];

/// Why a task says that it failed: the original one if it is one of those that it has `heard` of.
pub(super) fn failure(label: &Label, heard: &[Arc<Failure>], told: wire::Failure) -> Failure {
    let same = |failure: &&Arc<Failure>| {
        failure.origin.to_string() == told.task && failure.message == told.message
    };
    match heard.iter().find(same) {
        Some(original) => through_calls((**original).clone(), label, &told.traceback),
        None => own_failure(label, told),
    }
}

/// A failure that begins here. A task that nobody cancelled cannot be cancelled: that is an error
/// of its own.
fn own_failure(label: &Label, told: wire::Failure) -> Failure {
    let kind = KINDS
        .iter()
        .find(|(wire, _)| *wire == told.kind())
        .map_or(FailureKind::TaskError, |(_, kind)| *kind);
    let own = match kind {
        FailureKind::Cancelled => FailureKind::TaskError,
        kind => kind,
    };
    let mut failure = Failure::new(own, label.clone(), told.message);
    failure.type_name = match told.type_name.is_empty() {
        true => kind.code().to_string(),
        false => told.type_name,
    };
    failure.hint = (!told.hint.is_empty()).then_some(told.hint);
    failure.excerpt = match told.traceback.last() {
        Some(last) if told.excerpt.is_empty() => last.source.clone(),
        _ => told.excerpt,
    };
    failure.value = told
        .exception
        .filter(|data| data.form == form::JSON)
        .and_then(|data| String::from_utf8(data.data.to_vec()).ok());
    through_calls(failure, label, &told.traceback)
}

/// The failure as it came through the calls of a task; they are told outermost first.
fn through_calls(failure: Failure, label: &Label, calls: &[wire::Frame]) -> Failure {
    let calls = calls.iter().rev().take(FRAMES_MAX);
    calls.fold(failure, |failure, call| failure.through(frame(label, call)))
}

fn frame(label: &Label, call: &wire::Frame) -> Frame {
    let place = match (call.line, call.column) {
        (0, _) => call.file.clone(),
        (line, 0) => format!("{}:{line}", call.file),
        (line, column) => format!("{}:{line}:{column}", call.file),
    };
    Frame {
        task: label.clone(),
        place,
        note: match call.function.is_empty() {
            true => String::new(),
            false => format!("in {}", call.function),
        },
    }
}

/// A failure, as a worker that asks is told it.
pub(super) fn failure_told(failure: &Failure) -> wire::Failure {
    let kind = KINDS
        .iter()
        .find(|(_, kind)| *kind == failure.kind)
        .map_or(wire::FailureKind::Unspecified, |(wire, _)| *wire);
    let value = failure.value.as_ref().map(|text| wire::Data {
        data: text.clone().into_bytes().into(),
        form: form::JSON.to_string(),
        references: Vec::new(),
    });
    wire::Failure {
        kind: kind.into(),
        language: String::new(),
        type_name: failure.type_name.clone(),
        message: failure.message.clone(),
        traceback: failure.frames.iter().rev().map(frame_told).collect(),
        hint: failure.hint.clone().unwrap_or_default(),
        retryable: Some(failure.kind.is_retryable()),
        exception: value,
        task: failure.origin.to_string(),
        excerpt: failure.excerpt.clone(),
    }
}

fn frame_told(frame: &Frame) -> wire::Frame {
    let (file, line) = match frame.place.rsplit_once(':') {
        Some((file, line)) => match line.parse() {
            Ok(line) => (file, line),
            Err(_) => (frame.place.as_str(), 0),
        },
        None => (frame.place.as_str(), 0),
    };
    wire::Frame {
        file: file.to_string(),
        line,
        column: 0,
        function: frame.task.to_string(),
        source: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciel_model::Name;

    fn label() -> Label {
        Label {
            what: "f".into(),
            name: Name(5 << 96),
        }
    }

    #[test]
    fn every_kind_of_failure_comes_back_as_it_was() {
        for kind in FailureKind::ALL {
            let there = failure_told(&Failure::new(kind, label(), "no"));
            let back = failure(&label(), &[], there);
            let own = kind != FailureKind::Cancelled;
            assert_eq!(back.kind == kind, own, "{kind}");
            assert_eq!((&*back.type_name, &*back.message), (kind.code(), "no"));
        }
    }

    #[test]
    fn failure_that_was_heard_of_is_passed_on_as_it_was() {
        let origin = Label {
            what: "child".into(),
            name: Name(6 << 96),
        };
        let original = Failure::new(FailureKind::OutOfMemory, origin.clone(), "too much");
        let told = failure_told(&original);
        let passed = failure(&label(), &[Arc::new(original)], told);
        assert_eq!(passed.kind, FailureKind::OutOfMemory);
        assert_eq!(passed.origin, origin);
    }

    #[test]
    fn innermost_call_comes_first_in_a_failure() {
        let call = |line, function: &str| wire::Frame {
            file: "job.py".to_string(),
            line,
            function: function.to_string(),
            ..wire::Frame::default()
        };
        let told = wire::Failure {
            traceback: vec![call(1, "main"), call(7, "price")],
            ..wire::Failure::default()
        };
        let failure = failure(&label(), &[], told);
        assert_eq!(failure.kind, FailureKind::TaskError);
        assert_eq!(failure.frames[0].place, "job.py:7");
        assert_eq!(failure.frames[0].note, "in price");
    }

    #[test]
    fn form_that_nobody_knows_is_refused() {
        let refused = form_of("parquet").expect_err("unknown");
        assert!(refused.message.contains("parquet"));
        for form in [Form::Bytes, Form::Json, Form::Skywriting, Form::Pickle] {
            assert_eq!(form_of(form_name(form)), Ok(form));
        }
    }
}
