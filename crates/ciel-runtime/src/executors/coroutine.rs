//! Executors whose tasks run on threads of the engine.
//!
//! A coroutine ends in its first step, or is a script, which runs by turns. It does not know
//! threads. Read next: `scripts`, which runs them.

use std::path::{Path, PathBuf};

use ciel_graph::{Assignment, Output};
use ciel_model::{Failure, Handle, Value};

use crate::script::Script;

/// What a task that begins may ask of the engine.
pub(crate) trait Host {
    /// The script of an assignment that has not run before.
    ///
    /// # Errors
    /// It cannot be read, or the call does not fit it.
    fn script(&self, assignment: Box<Assignment>) -> Result<Box<Script>, Box<Failure>>;

    /// A file of the user's as the first output of the task.
    ///
    /// # Errors
    /// It cannot be read or kept.
    fn import(&self, assignment: &Assignment, path: &Path) -> Result<Value<Handle>, Box<Failure>>;

    /// A JSON value as the first output of the task. `{"$ref": i}` in it is input `i` of the task,
    /// of which it may name the first `inputs`.
    ///
    /// # Errors
    /// It cannot be kept.
    fn value(
        &self,
        assignment: &Assignment,
        json: &serde_json::Value,
        inputs: u32,
    ) -> Result<Value<Handle>, Box<Failure>>;
}

/// A task that has begun.
pub(crate) enum Begun {
    /// It has ended, with these outputs, and has read these files; none if that is not all that
    /// determines the outputs.
    Finished(Vec<Output>, Option<Vec<PathBuf>>),
    /// It has failed.
    Failed(Box<Failure>),
    /// It runs until it waits, ends, or has used up its fuel.
    Script(Box<Script>),
}

/// How tasks of one executor begin on a thread of the engine.
pub(crate) trait Coroutine {
    /// Begins a task.
    fn begin(&self, host: &dyn Host, assignment: Box<Assignment>) -> Begun;

    /// Whether a task with that payload may keep its thread for long without using up fuel.
    fn may_block(&self, _payload: &[u8]) -> bool {
        true
    }
}
