//! `grab`: `{"path": …}`, a file of the user's as an object.

use std::path::Path;
use std::sync::Arc;

use ciel_graph::{Assignment, Output};
use ciel_model::{Class, Failure, InputMode, Options};
use serde_json::Value;

use super::coroutine::{Begun, Coroutine, Host};
use super::names::GRAB;
use super::{Executor, Launch};
use crate::refused::Refused;

pub(super) struct Grab {
    name: Arc<str>,
}

impl Grab {
    pub(super) fn new() -> Grab {
        Grab { name: GRAB.into() }
    }
}

impl Executor for Grab {
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

impl Coroutine for Grab {
    fn begin(&self, host: &dyn Host, assignment: Box<Assignment>) -> Result<Begun, Box<Failure>> {
        let payload = &assignment.descriptor.payload;
        let arguments: Value = serde_json::from_slice(payload).unwrap_or(Value::Null);
        let Some(path) = arguments.get("path").and_then(Value::as_str) else {
            let refused = Refused::new("grab needs {\"path\": \"FILE\"}");
            return Err(Box::new(refused.failure(&assignment.label)));
        };
        let value = host.import(&assignment, Path::new(path))?;
        Ok(Begun::Ended(vec![Output::Value(value)]))
    }
}
