//! `skywriting`: whole scripts and their functions, run by threads of the engine.
//!
//! It does not know how a script runs. Read next: `programs`, `scripts`.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ciel_graph::Assignment;
use ciel_model::{Class, Descriptor, InputMode, Keeping};
use serde_json::Value;

use super::coroutine::{Begun, Coroutine, Host};
use super::names::SKYWRITING;
use super::{Executor, Launch, Replay};
use crate::programs;

pub(super) struct Skywriting {
    name: Arc<str>,
}

impl Skywriting {
    pub(super) fn new() -> Skywriting {
        Skywriting {
            name: SKYWRITING.into(),
        }
    }
}

impl Executor for Skywriting {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn input_mode(&self, _asked: Option<InputMode>) -> InputMode {
        InputMode::Reference
    }

    fn replay(&self) -> Replay {
        Replay::IfUseful
    }

    /// The file of a script without folder and suffix.
    fn label_of(&self, arguments: &Value) -> Option<String> {
        let file = Path::new(arguments.get("file")?.as_str()?);
        Some(file.file_stem()?.to_string_lossy().into_owned())
    }

    /// Reencoded: its first character distinguishes it from the calls that the engine writes.
    fn payload(&self, _written: &Bytes, arguments: &Value) -> Bytes {
        arguments.to_string().into()
    }

    fn launch(&self) -> Launch<'_> {
        Launch::Coroutine(self)
    }
}

impl Coroutine for Skywriting {
    fn begin(&self, host: &dyn Host, assignment: Box<Assignment>) -> Begun {
        match host.script(assignment) {
            Ok(script) => Begun::Script(script),
            Err(failure) => Begun::Failed(failure),
        }
    }

    fn may_block(&self, payload: &[u8]) -> bool {
        programs::may_read(payload)
    }
}

/// The task that a script begins with; it records facts if the run is recorded.
pub(crate) fn root_descriptor(what: &str, recorded: bool) -> Descriptor {
    Descriptor {
        replayable: recorded,
        keeping: Keeping::Never,
        ..Descriptor::plain(SKYWRITING, Class::Coordination, what, Vec::new())
    }
}
