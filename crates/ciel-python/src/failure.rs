//! Failures, between the classes of Python and the messages of the protocol.
//!
//! It does not know which exception stands for which failure; `ciel._errors` does.

use bytes::Bytes;
use ciel_protocol::wire::{self, Data, FailureKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyString};

use crate::record::record;
use crate::reference::number;

/// What every kind is called in the schema, before its own name.
const PREFIX: &str = "FAILURE_KIND_";

record! {
    /// One call of a traceback.
    Frame {
        /// The source file.
        file: PyString,
        /// The line, from 1.
        line: PyInt,
        /// The function.
        function: PyString,
        /// The text of the line.
        source: PyString,
    }
}

record! {
    /// Why a task failed.
    Failure {
        /// Its kind, such as `TASK_ERROR`.
        kind: PyString,
        /// The language that failed.
        language: PyString,
        /// The exception's type in that language.
        type_name: PyString,
        /// What happened.
        message: PyString,
        /// The traceback, outermost call first: a list of `Frame`.
        frames: PyList,
        /// What may help.
        hint: PyString,
        /// Whether another attempt may succeed; `None` if the kind decides.
        retryable: PyAny,
        /// The exception itself as form and bytes, or `None`.
        exception: PyAny,
        /// The task that failed first.
        task: PyString,
        /// The lines that the message is about.
        excerpt: PyString,
    }
}

impl Failure {
    /// The failure as the protocol has it.
    ///
    /// # Errors
    /// ValueError if there is no such kind, TypeError if a frame is none.
    pub fn to_wire(&self, py: Python<'_>) -> PyResult<wire::Failure> {
        let kind = text(py, &self.kind)?;
        let kind = FailureKind::from_str_name(&format!("{PREFIX}{kind}"))
            .ok_or_else(|| PyValueError::new_err(format!("`{kind}` is no kind of failure")))?;
        let exception: Option<(String, Bound<'_, PyBytes>)> = self.exception.extract(py)?;
        let data = |(form, bytes): (String, Bound<'_, PyBytes>)| Data {
            data: Bytes::copy_from_slice(bytes.as_bytes()),
            form,
            references: Vec::new(),
            r#type: String::new(),
        };
        Ok(wire::Failure {
            kind: kind.into(),
            language: text(py, &self.language)?,
            type_name: text(py, &self.type_name)?,
            message: text(py, &self.message)?,
            traceback: self.frames_to_wire(py)?,
            hint: text(py, &self.hint)?,
            retryable: self.retryable.extract(py)?,
            exception: exception.map(data),
            task: text(py, &self.task)?,
            excerpt: text(py, &self.excerpt)?,
        })
    }

    fn frames_to_wire(&self, py: Python<'_>) -> PyResult<Vec<wire::Frame>> {
        let frame = |one: Bound<'_, PyAny>| {
            let one = one.cast_into::<Frame>()?;
            let Frame {
                file,
                line,
                function,
                source,
            } = one.get();
            Ok(wire::Frame {
                file: text(py, file)?,
                line: line.extract(py)?,
                function: text(py, function)?,
                source: text(py, source)?,
                ..wire::Frame::default()
            })
        };
        self.frames.bind(py).iter().map(frame).collect()
    }
}

fn text(py: Python<'_>, text: &Py<PyString>) -> PyResult<String> {
    Ok(text.bind(py).to_str()?.to_owned())
}

/// The object for a failure that the engine reports; a kind that this build does not know is read
/// as the failure of the task itself.
pub fn to_python<'py>(py: Python<'py>, failure: &wire::Failure) -> PyResult<Bound<'py, Failure>> {
    let kind = match FailureKind::try_from(failure.kind) {
        Ok(FailureKind::Unspecified) | Err(_) => FailureKind::TaskError,
        Ok(kind) => kind,
    };
    let text = |text: &str| PyString::new(py, text).unbind();
    let frame = |one: &wire::Frame| Frame {
        file: text(&one.file),
        line: number(py, one.line),
        function: text(&one.function),
        source: text(&one.source),
    };
    let exception = failure
        .exception
        .as_ref()
        .map(|data| (data.form.as_str(), PyBytes::new(py, &data.data)));
    let failure = Failure {
        kind: text(kind.as_str_name().trim_start_matches(PREFIX)),
        language: text(&failure.language),
        type_name: text(&failure.type_name),
        message: text(&failure.message),
        frames: PyList::new(py, failure.traceback.iter().map(frame))?.unbind(),
        hint: text(&failure.hint),
        retryable: object(py, failure.retryable)?,
        exception: object(py, exception)?,
        task: text(&failure.task),
        excerpt: text(&failure.excerpt),
    };
    Bound::new(py, failure)
}

/// Any value, or `None`.
fn object<'py, V: IntoPyObject<'py>>(py: Python<'py>, value: Option<V>) -> PyResult<Py<PyAny>> {
    use pyo3::IntoPyObjectExt as _;
    Ok(value.into_bound_py_any(py)?.unbind())
}
