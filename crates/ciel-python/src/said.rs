//! What Python says, from its values to the parts of messages.
//!
//! It checks shapes, not meaning: whether a handle exists is the engine's to say. Read
//! `connection.rs` for the verbs, `heard.rs` for the other direction.

use bytes::Bytes;
use ciel_protocol::wire::{Data, Descriptor, Input, Output, Site};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::options::TaskOptions;

/// One output given by value: its number, bytes, form, references.
pub type OutputFields<'py> = (u32, Bound<'py, PyBytes>, String, Vec<u32>);

/// A task to be spawned, as Python says it.
pub struct Spawned<'a> {
    pub executor: String,
    pub payload: &'a [u8],
    pub inputs: Vec<u32>,
    pub kept: Option<Vec<bool>>,
    pub outputs: u32,
    pub options: Option<Bound<'a, TaskOptions>>,
    pub label: String,
    pub code: &'a [u8],
    pub file: String,
    pub line: u32,
}

impl Spawned<'_> {
    /// The task as the protocol has it.
    ///
    /// # Errors
    /// ValueError if `kept` is not as long as `inputs`.
    pub fn into_wire(self) -> PyResult<Descriptor> {
        let is_placed = !self.file.is_empty() || self.line > 0;
        Ok(Descriptor {
            inputs: inputs(&self.inputs, self.kept.as_deref())?,
            executor: self.executor,
            payload: Bytes::copy_from_slice(self.payload),
            outputs: self.outputs,
            options: self.options.map(|options| options.get().to_wire()),
            label: self.label,
            code: Bytes::copy_from_slice(self.code),
            site: is_placed.then_some(Site {
                file: self.file,
                line: self.line,
            }),
        })
    }
}

fn inputs(handles: &[u32], kept: Option<&[bool]>) -> PyResult<Vec<Input>> {
    let count = kept.map_or(handles.len(), <[bool]>::len);
    if count != handles.len() {
        let message = format!("{} inputs, but `kept` has {count}", handles.len());
        return Err(PyValueError::new_err(message));
    }
    let input = |(place, handle): (usize, &u32)| Input {
        handle: *handle,
        as_reference: kept.is_some_and(|kept| kept[place]),
        locality_percent: 0,
    };
    Ok(handles.iter().enumerate().map(input).collect())
}

/// Bytes with what is needed to read them.
pub fn data(bytes: &[u8], form: String, references: Vec<u32>) -> Data {
    Data {
        data: Bytes::copy_from_slice(bytes),
        form,
        references,
    }
}

/// The outputs of an exit.
pub fn outputs(fields: Vec<OutputFields<'_>>) -> Vec<Output> {
    let output = |(output, bytes, form, references): OutputFields<'_>| Output {
        output,
        value: Some(data(bytes.as_bytes(), form, references)),
    };
    fields.into_iter().map(output).collect()
}

/// A number of an enumeration of the protocol.
///
/// # Errors
/// ValueError if `number` has no name there.
pub fn known<E: TryFrom<i32>>(number: i32, what: &str) -> PyResult<i32> {
    match E::try_from(number) {
        Ok(_) => Ok(number),
        Err(_) => Err(PyValueError::new_err(format!("{number} is no {what}"))),
    }
}
