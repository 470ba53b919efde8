//! Between the words of the executor protocol and those of the model.
//!
//! Pure conversions; what a worker may say wrongly comes back as a [`Refused`]. It knows neither
//! sockets nor the graph. Read next: `failing` (failures), `held`
//! (references), `verbs` (what a worker says).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ciel_model::{
    CodeIdentity, Descriptor, Digest, Form, FunctionCode, Handle, Input, InputMode, Options,
    Resources, Site, limits,
};
use ciel_protocol::{form, wire};
use rustc_hash::{FxHashMap, FxHashSet};

use super::handles::Handles;
use crate::engine::Engine;
use crate::executors::Executor;
use crate::executors::request::Request;
use crate::refused::Refused;
use crate::settings::Settings;

/// Characters of a label that people are shown.
const LABEL_CHARACTERS_MAX: usize = 64;

/// The form of that name.
pub(super) fn form_of(name: &str) -> Result<Form, Refused> {
    match name {
        "" | form::BYTES => Ok(Form::Bytes),
        form::TEXT => Ok(Form::Text),
        form::JSON => Ok(Form::Json),
        form::SKYWRITING => Ok(Form::Skywriting),
        form::PICKLE => Ok(Form::Pickle),
        other => Err(
            Refused::new(format!("it made an object of the unknown form {other:?}"))
                .hint("forms are bytes, text, json, skywriting and pickle"),
        ),
    }
}

/// The name of a form.
pub(super) fn form_name(form: Form) -> &'static str {
    match form {
        Form::Bytes => form::BYTES,
        Form::Text => form::TEXT,
        Form::Json => form::JSON,
        Form::Skywriting => form::SKYWRITING,
        Form::Pickle => form::PICKLE,
    }
}

/// The graph's handles for numbers that the worker used.
pub(super) fn handles(known: &Handles, numbers: &[u32]) -> Result<Vec<Handle>, Refused> {
    let find = |number: &u32| known_handle(known, *number);
    numbers.iter().map(find).collect()
}

fn known_handle(known: &Handles, number: u32) -> Result<Handle, Refused> {
    known
        .find(number)
        .ok_or_else(|| Refused::new(format!("it used handle {number}, which it does not have")))
}

/// A task that a worker wants to have run.
///
/// # Errors
/// Handles that the task does not have, too many outputs, arguments that are no JSON for an
/// executor that takes JSON.
pub(super) fn descriptor(
    engine: &Engine,
    known: &Handles,
    asked: &wire::Descriptor,
) -> Result<Descriptor, Refused> {
    let executor = engine.registry.find(&asked.executor);
    let executor = &*executor;
    let inputs = inputs(executor, known, &asked.inputs)?;
    check_outputs(asked.outputs, known.room())?;
    let arguments = executor.validate(&asked.payload)?;
    let (options, pure) = options(asked.options.as_ref(), &engine.settings);
    let label = shared(&label(executor, &asked.label, &arguments));
    let request = Request {
        payload: executor.payload(&kept(&asked.payload), &arguments),
        code: code(&label, &asked.code),
        label,
        inputs,
        outputs: asked.outputs,
        options: Arc::new(options),
        pure,
        site: asked.site.as_ref().map_or_else(Site::default, site),
    };
    Ok(request.descriptor(executor, engine.is_recorded()))
}

/// What the task is given, as its executor takes it.
fn inputs(
    executor: &dyn Executor,
    known: &Handles,
    asked: &[wire::Input],
) -> Result<Vec<Input>, Refused> {
    let input = |input: &wire::Input| {
        let asked = match input.as_reference {
            true => InputMode::Reference,
            false => InputMode::Value,
        };
        let handle = known_handle(known, input.handle)?;
        let mode = executor.input_mode(Some(asked));
        Ok(Input { handle, mode })
    };
    asked.iter().map(input).collect()
}

/// Different texts of tasks that are kept, so that equal ones are kept once.
const TEXTS_MAX: usize = 4096;

/// One copy of a text that stands in many tasks: a name, a file.
fn shared(text: &str) -> Arc<str> {
    thread_local! {
        static TEXTS: RefCell<FxHashSet<Arc<str>>> = RefCell::default();
    }
    TEXTS.with_borrow_mut(|texts| {
        if let Some(known) = texts.get(text) {
            return known.clone();
        }
        if texts.len() >= TEXTS_MAX {
            texts.clear();
        }
        let made: Arc<str> = text.into();
        texts.insert(made.clone());
        made
    })
}

/// The code of a task's function, of which a worker says no more than its digest.
fn code(name: &Arc<str>, digest: &Bytes) -> CodeIdentity {
    thread_local! {
        static CODES: RefCell<FxHashMap<Bytes, CodeIdentity>> = RefCell::default();
    }
    if digest.is_empty() {
        return CodeIdentity::default();
    }
    CODES.with_borrow_mut(|codes| {
        let same = |known: &&CodeIdentity| known.functions().iter().all(|it| it.name == *name);
        if let Some(known) = codes.get(digest).filter(same) {
            return known.clone();
        }
        if codes.len() >= TEXTS_MAX {
            codes.clear();
        }
        let made = CodeIdentity::of(vec![FunctionCode {
            name: name.clone(),
            place: Site::default(),
            digest: Digest::of(digest),
        }]);
        codes.insert(Bytes::copy_from_slice(digest), made.clone());
        made
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

/// Bytes: a payload from this size on stays in the buffer in which it was received; a smaller one
/// would keep more memory than it is worth.
const SHARED_BYTES_MIN: usize = 16 << 10;

fn kept(payload: &Bytes) -> Bytes {
    match payload.len() < SHARED_BYTES_MIN {
        true => Bytes::copy_from_slice(payload),
        false => payload.clone(),
    }
}

fn label(executor: &dyn Executor, given: &str, arguments: &serde_json::Value) -> String {
    let plain: String = given
        .chars()
        .filter(|c| !c.is_control())
        .take(LABEL_CHARACTERS_MAX)
        .collect();
    if !plain.is_empty() {
        return plain;
    }
    let label = executor.label_of(arguments);
    label.unwrap_or_else(|| executor.name().to_string())
}

fn site(site: &wire::Site) -> Site {
    Site {
        file: shared(&site.file),
        line: site.line,
    }
}

/// What a spawn asks for, and whether equal calls share a result, if it says.
fn options(asked: Option<&wire::Options>, settings: &Settings) -> (Options, Option<bool>) {
    let mut options = settings.task_options();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_that_nobody_knows_is_refused() {
        let refused = form_of("parquet").expect_err("unknown");
        assert!(refused.message.contains("parquet"));
        for form in [
            Form::Bytes,
            Form::Text,
            Form::Json,
            Form::Skywriting,
            Form::Pickle,
        ] {
            assert_eq!(form_of(form_name(form)), Ok(form));
        }
    }
}
