//! A script between its turns: the machine, and what the engine knows of it.
//!
//! Plain state. Read next: `scripts`, which runs it.

use std::sync::Arc;

use bytes::Bytes;
use ciel_graph::Assignment;
use ciel_model::ReceivedFailures;
use ciel_skywriting::host::Handle as ScriptHandle;
use ciel_skywriting::machine::Machine;
use rustc_hash::FxHashMap;

use crate::programs::Program;
use crate::script_numbers::ScriptNumbers;

/// A script between its turns.
pub(crate) struct Script {
    pub(crate) machine: Machine,
    pub(crate) assignment: Box<Assignment>,
    pub(crate) program: Arc<Program>,
    /// What the payloads of functions that it spawns begin with.
    pub(crate) origin: Bytes,
    /// Handles of packages asked for so far.
    pub(crate) packages: FxHashMap<String, ScriptHandle>,
    /// How it numbers handles and actions.
    pub(crate) numbers: ScriptNumbers,
    /// Whether it has printed.
    pub(crate) printed: bool,
    /// Failures of other tasks that it has received.
    pub(crate) received: ReceivedFailures,
}
