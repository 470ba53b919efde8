//! `sync`: `{"inputs": […]}`, the list of these references when all of them are ready.

use ciel_graph::{Assignment, Entry, Output};
use ciel_model::Failure;
use serde_json::Value;

use super::coroutine::Host;
use super::first_step::{FirstStep, Stepped};
use super::names::SYNC;
use crate::failures;

pub(super) fn executor() -> FirstStep {
    FirstStep::new(SYNC, sync)
}

fn sync(host: &dyn Host, assignment: &Assignment) -> Result<Stepped, Box<Failure>> {
    let Entry::Start(inputs) = &assignment.entry else {
        unreachable!("a task that ends in its first step has only one turn");
    };
    failures::values_of(assignment, inputs)?;
    let payload = &assignment.descriptor.payload;
    let mut arguments: Value = serde_json::from_slice(payload).unwrap_or(Value::Null);
    let list = match arguments.get_mut("inputs") {
        None | Some(Value::Null) => Value::Array(Vec::new()),
        Some(given) => given.take(),
    };
    let value = host.value(assignment, &list, inputs.len() as u32)?;
    Ok((Output::Value(value), Some(Vec::new())))
}
