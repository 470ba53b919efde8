//! What the engine says, from messages to the tuples that Python takes apart.
//!
//! Each tuple begins with its kind; `sdk/python/ciel/_native.pyi` lists them. It does not know what
//! Python does with them.

use ciel_protocol::WireMessage;
use ciel_protocol::wire::engine_message::Kind;
use ciel_protocol::wire::start::Continuation;
use ciel_protocol::wire::{self, EngineMessage, answer, reference};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::failure;
use crate::said::{CORES, MEMORY};
use crate::tag::Tag;

/// A tuple of any length from anything that Python can have.
macro_rules! tuple {
    ($py:expr, $($item:expr),+ $(,)?) => {{
        use pyo3::IntoPyObjectExt as _;
        pyo3::types::PyTuple::new($py, [$($item.into_bound_py_any($py)?),+])
    }};
}
pub(crate) use tuple;

/// The tuple of a message.
///
/// # Errors
/// RuntimeError if the message is one that an engine never says to such a worker.
pub fn to_python(py: Python<'_>, message: EngineMessage) -> PyResult<Bound<'_, PyTuple>> {
    let name = message.kind_name().unwrap_or_default();
    let EngineMessage { tag, kind } = message;
    let tag = tag.map(|tag| Bound::new(py, Tag::new(tag))).transpose()?;
    let told = |what: &str| PyRuntimeError::new_err(format!("the engine said {name} {what}"));
    let tag = || tag.ok_or_else(|| told("without a tag"));
    match kind {
        Some(Kind::Start(start)) => start_tuple(py, tag()?, &start),
        Some(Kind::Resume(resume)) => {
            let answers = references(py, &resume.answers)?;
            tuple!(py, name, tag()?, answers, resume.timed_out)
        }
        Some(Kind::Answer(answer)) => {
            let result = answer_tuple(py, &answer)?;
            tuple!(py, name, tag()?, answer.request, result)
        }
        Some(Kind::Cancel(cancel)) => tuple!(py, name, tag()?, cancel.grace_ms),
        Some(Kind::Drop(_)) => tuple!(py, name, tag()?),
        Some(Kind::Shutdown(shutdown)) => tuple!(py, name, failures(py, &shutdown)?),
        Some(Kind::Hello(hello)) => tuple!(py, name, hello.build, hello.features),
        Some(Kind::Refusal(refusal)) => tuple!(py, name, refusal.reason, refusal.hint),
        Some(Kind::Ping(_)) | None => Err(told("to who does not hear it")),
    }
}

/// The failures that a shutdown tells of.
fn failures<'py>(py: Python<'py>, shutdown: &wire::Shutdown) -> PyResult<Bound<'py, PyList>> {
    let tuples: Vec<_> = shutdown
        .failures
        .iter()
        .map(|one| failure::to_python(py, one))
        .collect::<PyResult<_>>()?;
    PyList::new(py, tuples)
}

fn start_tuple<'py>(
    py: Python<'py>,
    tag: Bound<'py, Tag>,
    start: &wire::Start,
) -> PyResult<Bound<'py, PyTuple>> {
    let default = wire::Environment::default();
    let environment = start.environment.as_ref().unwrap_or(&default);
    let replay = match &start.continuation {
        Some(Continuation::Replay(recording)) => Some(recording_tuple(py, recording)?),
        Some(Continuation::Saved(_)) => {
            let message = "the engine said start with a saved strand, which no worker has saved";
            return Err(PyRuntimeError::new_err(message));
        }
        None => None,
    };
    tuple!(
        py,
        "start",
        tag,
        PyBytes::new(py, &start.payload),
        references(py, &start.inputs)?,
        start.outputs,
        &start.label,
        start.seed,
        PyBytes::new(py, &start.position),
        environment.cores,
        &environment.scratch,
        &environment.folder,
        replay,
        options_tuple(py, start.options.as_ref())?,
    )
}

fn options_tuple<'py>(
    py: Python<'py>,
    options: Option<&wire::Options>,
) -> PyResult<Bound<'py, PyTuple>> {
    let default = wire::Options::default();
    let options = options.unwrap_or(&default);
    let others = PyDict::new(py);
    for (name, amount) in &options.resources {
        if name != CORES && name != MEMORY {
            others.set_item(name, amount)?;
        }
    }
    tuple!(
        py,
        options.resources.get(CORES),
        options.resources.get(MEMORY),
        (!others.is_empty()).then_some(others),
        options.retries,
        options.timeout_ms,
        options.lazy,
        options.purity,
        options.live,
    )
}

fn recording_tuple<'py>(
    py: Python<'py>,
    recording: &wire::Recording,
) -> PyResult<Bound<'py, PyTuple>> {
    let observations = PyList::empty(py);
    for one in &recording.observations {
        let value = PyBytes::new(py, &one.value);
        observations.append(tuple!(py, &one.kind, value, &one.references)?)?;
    }
    tuple!(py, references(py, &recording.references)?, observations)
}

fn answer_tuple<'py>(py: Python<'py>, answer: &wire::Answer) -> PyResult<Bound<'py, PyTuple>> {
    match &answer.result {
        Some(answer::Result::Reference(one)) => tuple!(py, "reference", reference(py, one)?),
        Some(answer::Result::Opened(opened)) => tuple!(py, "opened", &opened.path),
        Some(answer::Result::Observed(observed)) => {
            tuple!(py, "observed", PyBytes::new(py, &observed.value))
        }
        Some(answer::Result::Refused(one)) => {
            tuple!(py, "refused", failure::to_python(py, one)?)
        }
        None => Err(PyRuntimeError::new_err(
            "the engine said answer without a result",
        )),
    }
}

fn references<'py>(py: Python<'py>, all: &[wire::Reference]) -> PyResult<Bound<'py, PyList>> {
    let tuples: Vec<Bound<'py, PyTuple>> = all
        .iter()
        .map(|one| reference(py, one))
        .collect::<PyResult<_>>()?;
    PyList::new(py, tuples)
}

/// The name of a form; each is one object, however many values have it.
fn form<'py>(py: Python<'py>, name: &str) -> Bound<'py, PyString> {
    PyString::intern(py, name)
}

/// The handles inside a value; mostly there are none, which is one object for all.
fn handles<'py>(py: Python<'py>, inside: &[u32]) -> PyResult<Bound<'py, PyTuple>> {
    match inside {
        [] => Ok(PyTuple::empty(py)),
        inside => PyTuple::new(py, inside),
    }
}

/// The tuple of a reference. What is being written is not there yet, as no stream was asked for.
fn reference<'py>(py: Python<'py>, one: &wire::Reference) -> PyResult<Bound<'py, PyTuple>> {
    match &one.state {
        Some(reference::State::Future(_) | reference::State::Stream(_)) | None => {
            tuple!(py, one.handle, 0)
        }
        Some(reference::State::Value(value)) => {
            let (bytes, form) = (PyBytes::new(py, &value.data), form(py, &value.form));
            tuple!(
                py,
                one.handle,
                1,
                bytes,
                form,
                handles(py, &value.references)?
            )
        }
        Some(reference::State::Concrete(file)) => {
            let (form, references) = (form(py, &file.form), handles(py, &file.references)?);
            tuple!(py, one.handle, 2, &file.path, file.length, form, references)
        }
        Some(reference::State::Error(error)) => {
            tuple!(py, one.handle, 3, failure::to_python(py, error)?)
        }
    }
}
