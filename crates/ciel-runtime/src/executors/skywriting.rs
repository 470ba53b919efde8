//! `skywriting`: whole scripts and their functions, run by threads of the engine.
//!
//! It does not know how a script runs. Read next: `programs`, `scripts`.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ciel_graph::Assignment;
use ciel_model::{Class, Descriptor, Digest, FunctionCode, InputMode, Keeping, Reached, Site};
use ciel_skywriting::code::{Code, CodeHash};
use ciel_skywriting::hir;
use ciel_skywriting::identity::{self, CallIdentity, Piece};
use serde_json::Value;

use super::call::Call;
use super::coroutine::{Begun, Coroutine, Host};
use super::names::SKYWRITING;
use super::{Executor, Launch, Replay};
use crate::programs::{self, Programs};
use crate::settings::Settings;

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

    fn is_keepable(&self, _code: &Reached, _arguments: &Value) -> bool {
        true
    }

    fn call(
        &self,
        programs: &Programs,
        settings: &Settings,
        descriptor: &Descriptor,
    ) -> Option<Call> {
        let entry = programs.enter(settings, &descriptor.payload, descriptor.outputs);
        let entry = entry.ok()?;
        let (code, surroundings) = (&entry.program.code, &entry.surroundings);
        let version = descriptor.reached.digest();
        let version = version.map(|version| CodeHash(version.0.to_be_bytes()));
        let found = match entry.call {
            [] => identity::of_script(code, surroundings),
            call => identity::of_call(code, surroundings, call, version).ok()?,
        };
        let is_known = !found.is_open || descriptor.options.keep == Some(true);
        is_known.then(|| call_of(found))
    }

    /// The file of a script without folder and suffix.
    fn label_of(&self, arguments: &Value) -> Option<String> {
        let file = Path::new(arguments.get("file")?.as_str()?);
        Some(file.file_stem()?.to_string_lossy().into_owned())
    }

    /// Reencoded: its first character distinguishes it from the calls that the engine writes.
    fn payload(&self, _written: Bytes, arguments: &Value) -> Bytes {
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

/// What a call of a function depends on, as the engine calls it.
fn call_of(found: CallIdentity) -> Call {
    let pieces = |pieces: Vec<Piece>| pieces.into_iter().map(piece).collect();
    let arguments = found.arguments.into_iter();
    let references = found.references.into_iter();
    Call {
        functions: Reached::of(pieces(found.functions)),
        variables: pieces(found.variables),
        payload: digest(found.whole),
        arguments: arguments.map(|(name, hash)| (name, digest(hash))).collect(),
        inputs: references
            .map(|(number, name)| (number as usize, name))
            .collect(),
    }
}

/// The functions of a script.
pub(crate) fn functions(script: &hir::Program) -> Vec<FunctionCode> {
    let functions = identity::functions(&Code::compile(script));
    functions.into_iter().map(piece).collect()
}

/// A piece of a program, as the engine calls it.
fn piece(piece: Piece) -> FunctionCode {
    FunctionCode {
        name: piece.name,
        place: Site {
            file: piece.location.file,
            line: piece.location.line,
        },
        digest: digest(piece.digest),
    }
}

fn digest(hash: CodeHash) -> Digest {
    Digest(u128::from_be_bytes(hash.0))
}

/// The task that a script begins with; it records facts if the run is recorded.
pub(crate) fn root_descriptor(what: &str, recorded: bool) -> Descriptor {
    Descriptor::plain(SKYWRITING, Class::Coordination, what, Vec::new()).with(|it| {
        it.replayable = recorded;
        it.keeping = Keeping::Never;
    })
}
