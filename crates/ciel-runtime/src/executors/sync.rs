//! `sync`: `{"inputs": […]}`, a reference to the first input that is ready when all of them are.

use std::sync::Arc;

use ciel_graph::{Assignment, Entry, Output};
use ciel_model::{Class, Failure, Form, Handle, InputMode, Options, Value};

use super::coroutine::{Begun, Coroutine, Host};
use super::names::SYNC;
use super::{Executor, Launch};
use crate::failures;

pub(super) struct Sync {
    name: Arc<str>,
}

impl Sync {
    pub(super) fn new() -> Sync {
        Sync { name: SYNC.into() }
    }
}

impl Executor for Sync {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn class(&self, _options: &Options) -> Class {
        Class::Coordination
    }

    fn input_mode(&self, _asked: Option<InputMode>) -> InputMode {
        InputMode::Value
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn launch(&self) -> Launch<'_> {
        Launch::Coroutine(self)
    }
}

impl Coroutine for Sync {
    fn begin(&self, _host: &dyn Host, assignment: Box<Assignment>) -> Result<Begun, Box<Failure>> {
        let Entry::Start(inputs) = &assignment.entry else {
            unreachable!("a task that ends in its first step has only one turn");
        };
        failures::values_of(&assignment, inputs)?;
        let output = match inputs.is_empty() {
            false => Output::Delegate(Handle(0)),
            true => Output::Value(Value::inline(Form::Json, "null")),
        };
        Ok(Begun::Ended(vec![output]))
    }
}
