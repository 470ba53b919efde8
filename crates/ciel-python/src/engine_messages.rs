//! The messages of the engine: one class for each.
//!
//! It does not know what Python does with them. Read `reference.rs` for what they carry.

use std::sync::{Mutex, PoisonError};

use ciel_model::Name;
use ciel_protocol::WireMessage;
use ciel_protocol::limits::PROTOCOL;
use ciel_protocol::wire::engine_message::Kind;
use ciel_protocol::wire::start::Continuation;
use ciel_protocol::wire::{self, EngineMessage, answer};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyList, PyString};

use crate::definitions::Received;
use crate::failure;
use crate::names::seed_of_name as seed_of;
use crate::options::TaskOptions;
use crate::record::record;
use crate::reference::{self, number};

record! {
    /// The engine's greeting.
    Hello {
        /// Name and version.
        build: PyString,
        /// Names of what it can do beyond the protocol's core.
        features: PyList,
    }
}

record! {
    /// The engine refuses the connection.
    Refusal {
        /// Why the engine refuses.
        reason: PyString,
        /// What may help.
        hint: PyString,
    }
}

record! {
    /// A task begins.
    Start {
        /// The start that it is about.
        tag: PyInt,
        /// What the spawn gave.
        payload: PyBytes,
        /// References, whose handles are their places.
        inputs: PyList,
        /// Number of outputs.
        outputs: PyInt,
        /// The task's name for messages.
        label: PyString,
        /// Fixes random numbers.
        seed: PyInt,
        /// The name of its strand: 16 bytes.
        position: PyBytes,
        /// The index of its first action.
        action: PyInt,
        /// The first handle that it may choose.
        handle: PyInt,
        /// Cores that it may keep busy.
        cores: PyInt,
        /// A `Recording` if the task runs again, else `None`.
        replay: PyAny,
        /// `TaskOptions`.
        options: TaskOptions,
    }
}

record! {
    /// What a strand did before: its replay gets the same answers.
    Recording {
        /// References that it holds and that are resolved.
        references: PyList,
        /// `Observation`s, in order.
        observations: PyList,
        /// Indices of its spawns, in order.
        spawned: PyList,
        /// The index behind its last action.
        until: PyInt,
    }
}

record! {
    /// An input that a strand took from its environment, or an answer about timing.
    Observation {
        /// What was asked.
        kind: PyString,
        /// The answer.
        value: PyBytes,
    }
}

record! {
    /// A strand that has blocked continues.
    Resume {
        /// The start that it is about.
        tag: PyInt,
        /// References that it waited for.
        references: PyList,
        /// Whether the time was up first.
        timed_out: PyBool,
    }
}

record! {
    /// The answer to a request.
    Answer {
        /// The start that it is about.
        tag: PyInt,
        /// The request's number.
        request: PyInt,
        /// A reference, `Opened`, `Observed`, or the `Failure` of a refusal.
        result: PyAny,
    }
}

record! {
    /// A file was opened for writing.
    Opened {
        /// Where it is.
        path: PyString,
    }
}

record! {
    /// A question was answered.
    Observed {
        /// The answer as JSON.
        value: PyBytes,
    }
}

record! {
    /// A task is to end.
    Cancel {
        /// The start that it is about.
        tag: PyInt,
        /// Time to clean up, in milliseconds.
        grace_ms: PyInt,
    }
}

record! {
    /// A parked strand is not resumed any more.
    Drop {
        /// The start that it is about.
        tag: PyInt,
    }
}

record! {
    /// The connection ends.
    Shutdown {
        /// `Failure`s of results that were never read.
        failures: PyList,
    }
}

/// The message of a start.
pub fn started(tag: u32, start: wire::Start) -> EngineMessage {
    let kind = Some(Kind::Start(start));
    EngineMessage { tag, kind }
}

/// The name of the strand of a start, and that of its task.
///
/// # Errors
/// RuntimeError if one of them has not 16 bytes.
pub fn names_of(start: &wire::Start) -> PyResult<(Name, Name)> {
    let position = name_of(&start.position)?;
    let name = match start.name.is_empty() {
        true => position,
        false => name_of(&start.name)?,
    };
    Ok((position, name))
}

/// The object for a message.
///
/// # Errors
/// RuntimeError if the message is one that an engine never sends to such a worker.
pub fn to_python<'py>(
    py: Python<'py>,
    message: EngineMessage,
    definitions: &Mutex<Received>,
) -> PyResult<Bound<'py, PyAny>> {
    let name = message.kind_name().unwrap_or_default();
    let EngineMessage { tag, kind } = message;
    let refused = |what: &str| PyRuntimeError::new_err(format!("the engine sent {name} {what}"));
    let tag = || match tag {
        0 => Err(refused("without a tag")),
        tag => Ok(number(py, tag)),
    };
    match kind {
        Some(Kind::Start(start)) => object(py, start_of(py, tag()?, start, definitions)?),
        Some(Kind::Resume(resume)) => object(
            py,
            Resume {
                tag: tag()?,
                references: reference::list(py, &resume.answers)?,
                timed_out: PyBool::new(py, resume.timed_out).to_owned().unbind(),
            },
        ),
        Some(Kind::Answer(answer)) => object(
            py,
            Answer {
                tag: tag()?,
                request: number(py, answer.request),
                result: result(py, &answer)?.unbind(),
            },
        ),
        Some(Kind::Cancel(cancel)) => {
            let grace_ms = number(py, cancel.grace_ms);
            object(
                py,
                Cancel {
                    tag: tag()?,
                    grace_ms,
                },
            )
        }
        Some(Kind::Drop(_)) => object(py, Drop { tag: tag()? }),
        Some(other) => {
            about_connection(py, other)?.ok_or_else(|| refused("to who does not hear it"))
        }
        None => Err(refused("to who does not hear it")),
    }
}

/// The object for a message without a tag; none if Python never receives such a one.
fn about_connection(py: Python<'_>, kind: Kind) -> PyResult<Option<Bound<'_, PyAny>>> {
    let text = |text: &str| PyString::new(py, text).unbind();
    match kind {
        Kind::Hello(hello) if hello.protocol != PROTOCOL => {
            let theirs = hello.protocol;
            let message = format!("the engine speaks protocol {theirs}, this module {PROTOCOL}");
            Err(PyRuntimeError::new_err(message))
        }
        Kind::Hello(hello) => {
            let (build, features) = (
                text(&hello.build),
                PyList::new(py, hello.features)?.unbind(),
            );
            object(py, Hello { build, features }).map(Some)
        }
        Kind::Refusal(refusal) => {
            let (reason, hint) = (text(&refusal.reason), text(&refusal.hint));
            object(py, Refusal { reason, hint }).map(Some)
        }
        Kind::Shutdown(shutdown) => {
            let failures: Vec<_> = shutdown
                .failures
                .iter()
                .map(|one| failure::to_python(py, one))
                .collect::<PyResult<_>>()?;
            let failures = PyList::new(py, failures)?.unbind();
            object(py, Shutdown { failures }).map(Some)
        }
        _ => Ok(None),
    }
}

fn object<'py, R>(py: Python<'py>, record: R) -> PyResult<Bound<'py, PyAny>>
where
    R: Into<pyo3::PyClassInitializer<R>> + pyo3::PyClass,
{
    Ok(Bound::new(py, record)?.into_any())
}

fn start_of(
    py: Python<'_>,
    tag: Py<PyInt>,
    start: wire::Start,
    definitions: &Mutex<Received>,
) -> PyResult<Start> {
    let replay = match &start.continuation {
        Some(Continuation::Replay(recording)) => object(py, recording_of(py, recording)?)?.unbind(),
        Some(Continuation::Saved(_)) => {
            let message = "the engine sent start with a saved strand, which no worker has saved";
            return Err(PyRuntimeError::new_err(message));
        }
        None => py.None(),
    };
    let (_, name) = names_of(&start)?;
    let mut definitions = definitions.lock().unwrap_or_else(PoisonError::into_inner);
    let definition = definitions.find(py, start.definition)?.ok_or_else(|| {
        let message = "the engine sent start with a definition that it did not send";
        PyRuntimeError::new_err(message)
    })?;
    Ok(Start {
        tag,
        payload: PyBytes::new(py, &start.payload).unbind(),
        inputs: reference::list(py, &start.inputs)?,
        outputs: definition.outputs.clone_ref(py),
        label: PyString::new(py, &format!("{}@{}", definition.label, name.short())).unbind(),
        seed: number(py, seed_of(name)),
        position: PyBytes::new(py, &start.position).unbind(),
        action: number(py, start.action),
        handle: number(py, start.handle),
        cores: definition.cores.clone_ref(py),
        replay,
        options: definition.options.clone_ref(py),
    })
}

fn name_of(bytes: &[u8]) -> PyResult<Name> {
    let found = <[u8; 16]>::try_from(bytes).map_err(|_| {
        let message = "the engine sent start with a name that has not 16 bytes";
        PyRuntimeError::new_err(message)
    })?;
    Ok(Name(u128::from_be_bytes(found)))
}

fn recording_of(py: Python<'_>, recording: &wire::Recording) -> PyResult<Recording> {
    let observation = |one: &wire::Observation| {
        let observation = Observation {
            kind: PyString::new(py, &one.kind).unbind(),
            value: PyBytes::new(py, &one.value).unbind(),
        };
        Bound::new(py, observation)
    };
    let observations: Vec<_> = recording
        .observations
        .iter()
        .map(observation)
        .collect::<PyResult<_>>()?;
    Ok(Recording {
        references: reference::list(py, &recording.references)?,
        observations: PyList::new(py, observations)?.unbind(),
        spawned: PyList::new(py, &recording.spawned)?.unbind(),
        until: number(py, recording.until),
    })
}

fn result<'py>(py: Python<'py>, answer: &wire::Answer) -> PyResult<Bound<'py, PyAny>> {
    match &answer.result {
        Some(answer::Result::Reference(one)) => reference::to_python(py, one),
        Some(answer::Result::Opened(opened)) => {
            let path = PyString::new(py, &opened.path).unbind();
            object(py, Opened { path })
        }
        Some(answer::Result::Observed(observed)) => {
            let value = PyBytes::new(py, &observed.value).unbind();
            object(py, Observed { value })
        }
        Some(answer::Result::Refused(one)) => Ok(failure::to_python(py, one)?.into_any()),
        None => Err(PyRuntimeError::new_err(
            "the engine sent answer without a result",
        )),
    }
}
