//! An executor, as far as a conversation knows it: it makes tasks of calls.
//!
//! It does not know how tasks run. Read next: `descriptor`.

use std::sync::Arc;

use bytes::Bytes;
use ciel_model::{
    CodeIdentity, Descriptor, Handle, InputMode, Options, Reached, Refused, Site, Streams,
};

/// What makes the tasks of one executor.
pub trait Callee {
    /// The task of a call.
    ///
    /// # Errors
    /// The executor does not take such a call.
    fn task(&self, call: SpawnCall) -> Result<Arc<Descriptor>, Refused>;
}

/// A call, as its program makes it.
#[derive(Clone, Debug)]
pub struct SpawnCall {
    /// Name for people, if the program gives one.
    pub label: Option<Arc<str>>,
    /// The arguments; they name inputs by index.
    pub payload: Bytes,
    /// The code that it runs.
    pub code: CodeIdentity,
    /// All code that it may reach.
    pub reached: Reached,
    /// The inputs, and how the caller wants each taken.
    pub inputs: Vec<(Handle, InputMode)>,
    /// Number of outputs.
    pub outputs: u32,
    /// Those that the caller declares as streams.
    pub streams: Streams,
    /// What it asks for.
    pub options: Arc<Options>,
    /// Whether equal calls share one result, if the program declares it.
    pub pure: Option<bool>,
    /// Where in the program.
    pub site: Site,
}
