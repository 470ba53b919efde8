//! What the engine says: one class for each message.
//!
//! It does not know what Python does with them. Read `reference.rs` for what they carry.

use ciel_protocol::WireMessage;
use ciel_protocol::wire::engine_message::Kind;
use ciel_protocol::wire::start::Continuation;
use ciel_protocol::wire::{self, EngineMessage, answer};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyList, PyString, PyTuple};

use crate::failure;
use crate::options::TaskOptions;
use crate::record::record;
use crate::reference::{self, handles, number};
use crate::tag::Tag;

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
        /// The attempt.
        tag: PyAny,
        /// What the spawn gave.
        payload: PyBytes,
        /// References, whose handles are their places.
        inputs: PyList,
        /// Number of outputs.
        outputs: PyInt,
        /// The task's name for people.
        label: PyString,
        /// Fixes random numbers.
        seed: PyInt,
        /// The task's name: 16 bytes, or none.
        position: PyBytes,
        /// Cores that it may keep busy.
        cores: PyInt,
        /// A folder of its own, or an empty text.
        scratch: PyString,
        /// The job's working folder.
        folder: PyString,
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
    }
}

record! {
    /// An input that a strand took from its environment, or an answer about timing.
    Observation {
        /// What was asked.
        kind: PyString,
        /// The answer.
        value: PyBytes,
        /// Handles that the answer is about.
        handles: PyTuple,
    }
}

record! {
    /// A strand that has blocked continues.
    Resume {
        /// The attempt.
        tag: PyAny,
        /// References that it waited for.
        references: PyList,
        /// Whether the time was up first.
        timed_out: PyBool,
    }
}

record! {
    /// The answer to a request.
    Answer {
        /// The attempt.
        tag: PyAny,
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
        /// The attempt.
        tag: PyAny,
        /// Time to clean up, in milliseconds.
        grace_ms: PyInt,
    }
}

record! {
    /// A parked strand is not resumed any more.
    Drop {
        /// The attempt.
        tag: PyAny,
    }
}

record! {
    /// The connection ends.
    Shutdown {
        /// `Failure`s that nobody has asked for.
        failures: PyList,
    }
}

/// The object for a message.
///
/// # Errors
/// RuntimeError if the message is one that an engine never says to such a worker.
pub fn to_python(py: Python<'_>, message: EngineMessage) -> PyResult<Bound<'_, PyAny>> {
    let name = message.kind_name().unwrap_or_default();
    let EngineMessage { tag, kind } = message;
    let tag = tag.map(|tag| Py::new(py, Tag::new(tag))).transpose()?;
    let refused = |what: &str| PyRuntimeError::new_err(format!("the engine said {name} {what}"));
    let tag = || Ok::<_, PyErr>(tag.ok_or_else(|| refused("without a tag"))?.into_any());
    match kind {
        Some(Kind::Start(start)) => object(py, start_of(py, tag()?, start)?),
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

fn start_of(py: Python<'_>, tag: Py<PyAny>, start: wire::Start) -> PyResult<Start> {
    let environment = start.environment.unwrap_or_default();
    let replay = match &start.continuation {
        Some(Continuation::Replay(recording)) => object(py, recording_of(py, recording)?)?.unbind(),
        Some(Continuation::Saved(_)) => {
            let message = "the engine said start with a saved strand, which no worker has saved";
            return Err(PyRuntimeError::new_err(message));
        }
        None => py.None(),
    };
    Ok(Start {
        tag,
        payload: PyBytes::new(py, &start.payload).unbind(),
        inputs: reference::list(py, &start.inputs)?,
        outputs: number(py, start.outputs),
        label: PyString::new(py, &start.label).unbind(),
        seed: number(py, start.seed),
        position: PyBytes::new(py, &start.position).unbind(),
        cores: number(py, environment.cores),
        scratch: PyString::new(py, &environment.scratch).unbind(),
        folder: PyString::new(py, &environment.folder).unbind(),
        replay,
        options: Py::new(py, TaskOptions::of_wire(start.options.unwrap_or_default()))?,
    })
}

fn recording_of(py: Python<'_>, recording: &wire::Recording) -> PyResult<Recording> {
    let observation = |one: &wire::Observation| {
        let observation = Observation {
            kind: PyString::new(py, &one.kind).unbind(),
            value: PyBytes::new(py, &one.value).unbind(),
            handles: handles(py, &one.references)?,
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
            "the engine said answer without a result",
        )),
    }
}
