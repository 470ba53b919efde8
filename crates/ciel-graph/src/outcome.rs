//! How a job ended: its result or its failure, and the failures that no task handled.

use std::sync::Arc;

use ciel_model::{Failure, Name, ObjectKey, Value};

/// How the job ended.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutcome {
    /// The root's first output as (name, object), or the job's failure.
    pub result: Result<(Name, Value<ObjectKey>), Arc<Failure>>,
    /// The failures of tasks that no other task handled, in serial order.
    pub failures: Vec<Arc<Failure>>,
}
