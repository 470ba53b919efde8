//! Whom a message is about, as Python holds it.
//!
//! Python repeats tags and tells them apart; it never looks inside.

use ciel_protocol::wire;
use pyo3::prelude::*;

/// The task that a message is about: opaque, hashable, equal if all parts are.
#[pyclass(frozen, eq, hash, module = "ciel._native")]
#[derive(PartialEq, Eq, Hash)]
pub struct Tag(wire::Tag);

impl Tag {
    /// The tag as it came.
    pub fn new(tag: wire::Tag) -> Tag {
        Tag(tag)
    }

    /// The tag to put on a message; costs no copy of its bytes.
    pub fn wire(&self) -> wire::Tag {
        self.0.clone()
    }
}

#[pymethods]
impl Tag {
    fn __repr__(&self) -> String {
        let task: String = self
            .0
            .task
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!(
            "<Tag of {task}, epoch {}, attempt {}>",
            self.0.epoch, self.0.attempt
        )
    }
}
