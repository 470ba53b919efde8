//! `skywriting`: whole scripts and their functions, run by threads of the engine.
//!
//! It does not know how a script runs. Read next: `programs`, `scripts`.

use std::path::Path;

use ciel_model::{Class, Descriptor};
use serde_json::Value;

use super::SKYWRITING;

/// What people would call such a task: its file without folder and suffix.
pub(super) fn what(arguments: &Value) -> Option<String> {
    let file = Path::new(arguments.get("file")?.as_str()?);
    Some(file.file_stem()?.to_string_lossy().into_owned())
}

/// The task that a script begins with.
pub(crate) fn root_descriptor(what: &str) -> Descriptor {
    Descriptor::plain(SKYWRITING, Class::Coordination, what, Vec::new())
}
