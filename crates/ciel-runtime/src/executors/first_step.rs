//! Executors whose tasks end in their first step, on a thread of the engine.
//!
//! Such a task takes its inputs by value, and gives one output that depends on them alone. This
//! module does not know which there are. Read next: `grab`, `sync`.

use std::path::PathBuf;
use std::sync::Arc;

use ciel_graph::{Assignment, Output};
use ciel_model::{Failure, InputMode};

use super::coroutine::{Begun, Coroutine, Host};
use super::{Executor, Launch};

/// What a task gave, and the files that it has read; none if that is not all that determines what
/// it gave.
pub(super) type Stepped = (Output, Option<Vec<PathBuf>>);

/// What a task does: from its assignment to its output, or its failure.
type Step = fn(&dyn Host, &Assignment) -> Result<Stepped, Box<Failure>>;

/// An executor of such tasks.
pub(super) struct FirstStep {
    name: Arc<str>,
    step: Step,
}

impl FirstStep {
    pub(super) fn new(name: &str, step: Step) -> FirstStep {
        let name = name.into();
        FirstStep { name, step }
    }
}

impl Executor for FirstStep {
    fn name(&self) -> &Arc<str> {
        &self.name
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

impl Coroutine for FirstStep {
    fn begin(&self, host: &dyn Host, assignment: Box<Assignment>) -> Begun {
        match (self.step)(host, &assignment) {
            Ok((output, read)) => Begun::Finished(vec![output], read),
            Err(failure) => Begun::Failed(failure),
        }
    }
}
