//! `sync`: `{"inputs": […]}`, a reference to the first input that is ready when all of them are.

use ciel_graph::{Assignment, Entry, Output};
use ciel_model::{Failure, Form, Handle, Value};

use super::coroutine::Host;
use super::first_step::FirstStep;
use super::names::SYNC;
use crate::failures;

pub(super) fn executor() -> FirstStep {
    FirstStep::new(SYNC, sync)
}

fn sync(_host: &dyn Host, assignment: &Assignment) -> Result<Output, Box<Failure>> {
    let Entry::Start(inputs) = &assignment.entry else {
        unreachable!("a task that ends in its first step has only one turn");
    };
    failures::values_of(assignment, inputs)?;
    Ok(match inputs.is_empty() {
        false => Output::Delegate(Handle(0)),
        true => Output::Value(Value::inline(Form::Json, "null")),
    })
}
