//! `grab`: `{"path": …}`, a file of the user's as an object.

use std::path::Path;

use ciel_graph::{Assignment, Output};
use ciel_model::Failure;
use serde_json::Value;

use super::coroutine::Host;
use super::first_step::FirstStep;
use super::names::GRAB;
use crate::refused::Refused;

pub(super) fn executor() -> FirstStep {
    FirstStep::new(GRAB, grab)
}

fn grab(host: &dyn Host, assignment: &Assignment) -> Result<Output, Box<Failure>> {
    let payload = &assignment.descriptor.payload;
    let arguments: Value = serde_json::from_slice(payload).unwrap_or(Value::Null);
    let Some(path) = arguments.get("path").and_then(Value::as_str) else {
        let refused = Refused::new("grab needs {\"path\": \"FILE\"}");
        return Err(Box::new(refused.failure(&assignment.label)));
    };
    host.import(assignment, Path::new(path)).map(Output::Value)
}
