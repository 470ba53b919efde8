//! What Python says, from its values to the parts of messages.
//!
//! It checks shapes, not meaning: whether a handle exists is the engine's to say. Read
//! `connection.rs` for the verbs, `heard.rs` for the other direction.

use std::collections::BTreeMap;

use bytes::Bytes;
use ciel_protocol::wire::{Data, Descriptor, Input, Options, Output, Purity, Site};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The resource counted in thousandths of a core.
pub const CORES: &str = "cores";
/// The resource counted in bytes.
pub const MEMORY: &str = "memory";

/// Options of a spawn: cores_milli, memory, others, retries, timeout_ms, lazy, purity, live.
#[derive(FromPyObject)]
pub struct OptionFields(
    Option<u64>,
    Option<u64>,
    Option<BTreeMap<String, u64>>,
    Option<u32>,
    Option<u64>,
    bool,
    i32,
    bool,
);

/// One output given by value: its number, bytes, form, references.
pub type OutputFields<'py> = (u32, Bound<'py, PyBytes>, String, Vec<u32>);

/// A task to be spawned, as Python says it.
pub struct Spawned<'a> {
    pub executor: String,
    pub payload: &'a [u8],
    pub inputs: Vec<u32>,
    pub kept: Option<Vec<bool>>,
    pub outputs: u32,
    pub options: Option<OptionFields>,
    pub label: String,
    pub code: &'a [u8],
    pub file: String,
    pub line: u32,
}

impl Spawned<'_> {
    /// The task as the protocol has it.
    ///
    /// # Errors
    /// ValueError if `kept` is not as long as `inputs`, or if there is no such purity.
    pub fn into_wire(self) -> PyResult<Descriptor> {
        let is_placed = !self.file.is_empty() || self.line > 0;
        Ok(Descriptor {
            inputs: inputs(&self.inputs, self.kept.as_deref())?,
            executor: self.executor,
            payload: Bytes::copy_from_slice(self.payload),
            outputs: self.outputs,
            options: self.options.map(OptionFields::into_wire).transpose()?,
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

impl OptionFields {
    fn into_wire(self) -> PyResult<Options> {
        let OptionFields(cores, memory, others, retries, timeout_ms, lazy, purity, live) = self;
        let mut resources = others.unwrap_or_default();
        resources.extend(cores.map(|amount| (CORES.to_owned(), amount)));
        resources.extend(memory.map(|amount| (MEMORY.to_owned(), amount)));
        let no_purity = |_| PyValueError::new_err(format!("{purity} is no purity"));
        Ok(Options {
            resources,
            retries,
            timeout_ms,
            lazy,
            purity: Purity::try_from(purity).map_err(no_purity)?.into(),
            live,
            ..Options::default()
        })
    }
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
