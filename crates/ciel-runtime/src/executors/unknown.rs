//! In place of an executor that does not exist: its tasks fail, and say so.

use std::sync::Arc;

use ciel_graph::Assignment;
use ciel_model::{InputMode, Refused};
use serde_json::Value;

use super::coroutine::{Begun, Coroutine, Host};
use super::{Executor, Launch};

pub(super) struct Unknown {
    name: Arc<str>,
    refused: Refused,
}

impl Unknown {
    pub(super) fn new(name: &str, refused: Refused) -> Unknown {
        let name = name.into();
        Unknown { name, refused }
    }
}

impl Executor for Unknown {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn input_mode(&self, _asked: Option<InputMode>) -> InputMode {
        InputMode::Reference
    }

    fn validate(&self, _written: &[u8]) -> Result<Value, Refused> {
        Ok(Value::Null)
    }

    fn launch(&self) -> Launch<'_> {
        Launch::Coroutine(self)
    }
}

impl Coroutine for Unknown {
    fn begin(&self, _host: &dyn Host, assignment: Box<Assignment>) -> Begun {
        let failure = self.refused.clone().failure(&assignment.label);
        Begun::Failed(Box::new(failure))
    }
}
