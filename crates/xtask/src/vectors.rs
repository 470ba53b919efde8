//! Completes golden vectors: bytes beside meaning.
//!
//! A developer writes a new file of `protocol/vectors` with the sender, a note and the message;
//! this tool adds the bytes. It never changes a file that has them and deletes none, so what was
//! once agreed stays agreed. Read `protocol/vectors/README.md` next.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use ciel_protocol::wire::{EngineMessage, WorkerMessage};
use ciel_protocol::{Framing, WireMessage, encode};
use serde_json::Value;

use crate::source_root;

/// Adds the bytes to each file that has none, and gives the names of those files.
///
/// # Errors
/// If a file cannot be read or written, or its message is not one of the schema.
pub fn complete() -> Result<Vec<String>> {
    let mut completed = Vec::new();
    for entry in fs::read_dir(source_root().join("protocol/vectors"))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .expect("a folder's entry has a name")
            .to_string_lossy();
        if name.ends_with(".json") && complete_file(&path).with_context(|| name.to_string())? {
            completed.push(name.into_owned());
        }
    }
    completed.sort();
    Ok(completed)
}

fn complete_file(path: &Path) -> Result<bool> {
    let mut vector: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
    if vector.get("bytes").is_some() {
        return Ok(false);
    }
    let message = vector["message"].to_string();
    let bytes = match vector["sender"].as_str() {
        Some("worker") => bytes_of::<WorkerMessage>(&message)?,
        Some("engine") => bytes_of::<EngineMessage>(&message)?,
        other => bail!("sender is {other:?}, not worker or engine"),
    };
    vector["bytes"] = Value::String(bytes);
    fs::write(path, serde_json::to_string_pretty(&vector)? + "\n")?;
    Ok(true)
}

fn bytes_of<M: WireMessage>(message: &str) -> Result<String> {
    let message: M = serde_json::from_str(message)?;
    let bytes = encode(&message, Framing::LengthPrefixed)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
