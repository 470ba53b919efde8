//! Failures, between the tuples of Python and the messages of the protocol.
//!
//! It does not know which exception stands for which failure; `ciel._errors` does.

use bytes::Bytes;
use ciel_protocol::wire::{Data, Failure, FailureKind, Frame};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::heard::tuple;

/// What every kind is called in the schema, before its own name.
const PREFIX: &str = "FAILURE_KIND_";

/// A call of a traceback: file, line, function, source.
type FrameFields = (String, u32, String, String);

/// A failure as Python says it: kind, language, type_name, message, frames, hint, retryable,
/// exception as form and bytes, task, excerpt.
#[derive(FromPyObject)]
pub struct Said<'py>(
    String,
    String,
    String,
    String,
    Vec<FrameFields>,
    String,
    Option<bool>,
    Option<(String, Bound<'py, PyBytes>)>,
    String,
    String,
);

impl Said<'_> {
    /// The failure as the protocol has it.
    ///
    /// # Errors
    /// ValueError if there is no such kind.
    pub fn into_wire(self) -> PyResult<Failure> {
        let Said(
            kind,
            language,
            type_name,
            message,
            frames,
            hint,
            retryable,
            exception,
            task,
            text,
        ) = self;
        let kind = FailureKind::from_str_name(&format!("{PREFIX}{kind}"))
            .ok_or_else(|| PyValueError::new_err(format!("`{kind}` is no kind of failure")))?;
        let frame = |(file, line, function, source)| Frame {
            file,
            line,
            function,
            source,
            ..Frame::default()
        };
        let data = |(form, bytes): (String, Bound<'_, PyBytes>)| Data {
            data: Bytes::copy_from_slice(bytes.as_bytes()),
            form,
            references: Vec::new(),
        };
        Ok(Failure {
            kind: kind.into(),
            language,
            type_name,
            message,
            traceback: frames.into_iter().map(frame).collect(),
            hint,
            retryable,
            exception: exception.map(data),
            task,
            excerpt: text,
        })
    }
}

/// The tuple of a failure that the engine tells of; a kind that this build does not know is read as
/// the failure of the task itself.
pub fn to_python<'py>(py: Python<'py>, failure: &Failure) -> PyResult<Bound<'py, PyTuple>> {
    let kind = match FailureKind::try_from(failure.kind) {
        Ok(FailureKind::Unspecified) | Err(_) => FailureKind::TaskError,
        Ok(kind) => kind,
    };
    let frame = |one: &Frame| (&one.file, one.line, &one.function, &one.source).into_pyobject(py);
    let frames: Vec<Bound<'py, PyTuple>> = failure
        .traceback
        .iter()
        .map(frame)
        .collect::<PyResult<_>>()?;
    let exception = failure
        .exception
        .as_ref()
        .map(|data| (data.form.as_str(), PyBytes::new(py, &data.data)));
    tuple!(
        py,
        kind.as_str_name().trim_start_matches(PREFIX),
        &failure.language,
        &failure.type_name,
        &failure.message,
        PyList::new(py, frames)?,
        &failure.hint,
        failure.retryable,
        exception,
        &failure.task,
        &failure.excerpt
    )
}
