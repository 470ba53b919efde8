//! Between the words of the executor protocol and those of the model.
//!
//! Pure conversions; what a worker may say wrongly comes back as a [`Refused`]. It knows neither
//! sockets nor the graph. Read next: `failing` (failures), `held`
//! (references), `requests` (what a worker says).

use std::sync::Arc;

use bytes::Bytes;
use ciel_model::{ActionKey, Descriptor, Form, Handle, Input, InputMode, Site, limits};
use ciel_protocol::{form, wire};

use super::definitions::Definition;
use crate::executors::Executor;
use crate::executors::request::Request;
use crate::refused::Refused;

/// The form that a worker gives to bytes, perhaps with the type of a JSON value.
pub(super) fn form_of(name: &str, type_hint: &str) -> Form {
    match name {
        "" | form::BYTES => Form::Bytes,
        form::TEXT => Form::Text,
        form::JSON if type_hint.is_empty() => Form::Json,
        form::JSON => Form::TypedJson(type_hint.into()),
        form::SKYWRITING => Form::Skywriting,
        form::PICKLE => Form::Pickle,
        other => Form::Other(other.into()),
    }
}

/// Which action of a strand, or which part of one.
pub(super) fn action_key(action: u64, part: Option<u32>) -> ActionKey {
    ActionKey { action, part }
}

/// A task that a worker spawns.
///
/// # Errors
/// Too many outputs, an input as a stream, arguments that are no JSON for an executor that takes
/// JSON.
pub(super) fn descriptor(
    definition: &Definition,
    asked: &wire::Descriptor,
    recorded: bool,
) -> Result<Arc<Descriptor>, Refused> {
    let executor = &*definition.executor;
    let inputs = inputs(executor, &asked.inputs)?;
    check_outputs(definition.outputs)?;
    let arguments = executor.validate(&asked.payload)?;
    let request = Request {
        payload: executor.payload(&kept(&asked.payload), &arguments),
        code: definition.code.clone(),
        label: label(definition, &arguments),
        inputs,
        outputs: definition.outputs,
        options: definition.options.clone(),
        pure: definition.pure,
        site: Site {
            file: definition.file.clone(),
            line: asked.line,
        },
    };
    Ok(request.descriptor(executor, recorded))
}

/// What the task is given, as its executor takes it.
fn inputs(executor: &dyn Executor, asked: &[wire::Input]) -> Result<Vec<Input>, Refused> {
    let input = |input: &wire::Input| {
        let asked = match input.mode() {
            wire::InputMode::Value => InputMode::Value,
            wire::InputMode::Reference => InputMode::Reference,
            wire::InputMode::Stream => {
                return Err(Refused::new("it spawned a task with a stream as an input")
                    .hint("this version of ciel has no streams: pass a value or a reference"));
            }
        };
        Ok(Input {
            handle: Handle(input.handle),
            mode: executor.input_mode(Some(asked)),
        })
    };
    asked.iter().map(input).collect()
}

fn check_outputs(outputs: u32) -> Result<(), Refused> {
    let most = limits::OUTPUTS_MAX;
    match outputs <= most {
        true => Ok(()),
        false => Err(Refused::new(format!(
            "it spawned a task with {outputs} outputs; the maximum is {most}"
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

fn label(definition: &Definition, arguments: &serde_json::Value) -> Arc<str> {
    let executor = &definition.executor;
    let from_arguments = || executor.label_of(arguments).map(Arc::from);
    let label = definition.label.clone().or_else(from_arguments);
    label.unwrap_or_else(|| executor.name().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects of a form that the engine does not know were refused, so two programs of one
    /// language could not exchange them.
    #[test]
    fn every_form_comes_back_as_it_was_sent() {
        for (name, type_hint) in [
            ("bytes", ""),
            ("text", ""),
            ("json", ""),
            ("json", "int"),
            ("skywriting", ""),
            ("pickle", ""),
            ("java", ""),
        ] {
            let form = form_of(name, type_hint);
            assert_eq!(
                (form.name(), form.type_hint().unwrap_or_default()),
                (name, type_hint)
            );
        }
        assert_eq!(form_of("", ""), Form::Bytes);
    }
}
