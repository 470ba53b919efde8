//! From values of Python to the parts of messages.
//!
//! It checks shapes, not meaning: whether a handle exists is the engine's to say. Read
//! `connection.rs` for the requests, `engine_messages.rs` for the other direction.

use bytes::Bytes;
use ciel_protocol::wire::{
    Audit, Data, Descriptor, FileRead, Input, InputMode, OpenOutput, OpenReference, Output, Spawn,
    StreamMode, StreamWish,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// One output given by value: its number, bytes, form, references.
pub type OutputFields<'py> = (u32, Bound<'py, PyBytes>, String, Vec<u32>);

/// The task of a spawn.
///
/// # Errors
/// ValueError if `modes` or `weights` is not as long as `handles`, or has a number that is no mode.
pub fn descriptor(
    definition: u32,
    payload: &[u8],
    (handles, modes, weights): (&[u32], Option<&[u64]>, Option<&[u32]>),
    line: u32,
) -> PyResult<Descriptor> {
    Ok(Descriptor {
        definition,
        payload: Bytes::copy_from_slice(payload),
        inputs: inputs(handles, modes, weights)?,
        line,
    })
}

/// The spawn of one task, which has not begun.
pub fn spawn(task: Descriptor, action: u64, handle: u32, released: Vec<u32>) -> Spawn {
    Spawn {
        tasks: vec![task],
        action,
        handle,
        released,
        begun: false,
    }
}

/// The request for a file for an output.
pub fn open_output(request: u32, output: u32, form: String, length: u64) -> OpenOutput {
    OpenOutput {
        request,
        output,
        form,
        length,
    }
}

/// The request for what is behind a handle.
pub fn open_reference(
    request: u32,
    handle: u32,
    must_block: bool,
    as_stream: bool,
) -> OpenReference {
    OpenReference {
        request,
        handle,
        must_block,
        as_stream,
    }
}

fn inputs(handles: &[u32], modes: Option<&[u64]>, weights: Option<&[u32]>) -> PyResult<Vec<Input>> {
    check_count(handles, "modes", modes)?;
    check_count(handles, "weights", weights)?;
    let input = |(place, handle): (usize, &u32)| {
        let mode = modes.map_or(0, |modes| modes[place]);
        Ok(Input {
            handle: *handle,
            mode: known::<InputMode>((mode & 3) as i32, "mode of an input")?,
            wish: wish(mode >> 2)?,
            locality_percent: weights.map(|weights| weights[place]),
        })
    };
    handles.iter().enumerate().map(input).collect()
}

fn check_count<T>(handles: &[u32], what: &str, given: Option<&[T]>) -> PyResult<()> {
    match given.map_or(handles.len(), <[T]>::len) {
        count if count == handles.len() => Ok(()),
        count => {
            let message = format!("{} inputs, but `{what}` has {count}", handles.len());
            Err(PyValueError::new_err(message))
        }
    }
}

/// From 8 on the lowest bits are the flags; less is a mode, and 0 is no wish for a mode.
const FLAGS_FROM: u64 = 8;

/// The bits of that; those above are the granularity in bytes.
const WAY_BITS: u32 = 4;

fn wish(number: u64) -> PyResult<Option<StreamWish>> {
    let way = number & ((1 << WAY_BITS) - 1);
    let granularity_bytes = number >> WAY_BITS;
    Ok(match way {
        0 if granularity_bytes == 0 => None,
        0..FLAGS_FROM => Some(StreamWish {
            mode: known::<StreamMode>(way as i32, "mode of a stream")?,
            granularity_bytes,
            ..StreamWish::default()
        }),
        flags => Some(StreamWish {
            mode: match granularity_bytes > 0 && flags & 1 == 0 {
                // Without a flag the granularity would stand alone.
                true => StreamMode::NoStream.into(),
                false => StreamMode::Unspecified.into(),
            },
            may_stream: flags & 1 != 0,
            must_block: flags & 2 != 0,
            no_store: flags & 4 != 0,
            granularity_bytes,
        }),
    })
}

/// Bytes with what is needed to read them.
pub fn data(bytes: &[u8], form: String, references: Vec<u32>) -> Data {
    Data {
        data: Bytes::copy_from_slice(bytes),
        form,
        references,
        r#type: String::new(),
    }
}

/// A file that a task has read: its path, length and BLAKE3 hash.
pub type FileFields<'py> = (String, u64, Bound<'py, PyBytes>);

/// What a task was seen to do: effects in words, and files that it has read.
pub type AuditFields<'py> = (Vec<String>, Vec<FileFields<'py>>);

/// The report of what a task was seen to do.
pub fn audit((effects, read): AuditFields<'_>) -> Audit {
    let file = |(path, length, digest): FileFields<'_>| FileRead {
        path,
        length,
        digest: Bytes::copy_from_slice(digest.as_bytes()),
    };
    Audit {
        effects,
        read: read.into_iter().map(file).collect(),
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
