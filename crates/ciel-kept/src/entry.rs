//! Entries: what a task gave, and what its key is made of.
//!
//! Names of runs, tasks and positions are no part of a key, so equal work in another place of the
//! program finds the same entry. It does not know how entries are stored. Read next: `store`.

use std::sync::Arc;

use bytes::Bytes;
use ciel_model::{Digest, FileRead, Form, FunctionCode, Hasher, RerunReason, Site};
use serde::{Deserialize, Serialize};

/// All that determines a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Who runs the task.
    pub executor: Arc<str>,
    /// What counts beside the call: settings of the run that change what it does.
    pub surroundings: Digest,
    /// Of all code that the task may reach, if it reaches any.
    pub code: Option<Digest>,
    /// That code piece by piece, to name the one that differs; may be empty.
    pub pieces: Arc<[FunctionCode]>,
    /// Of the whole payload.
    pub payload: Digest,
    /// Arguments in the payload by name, to name the one that differs; may be empty.
    pub arguments: Vec<(Arc<str>, Digest)>,
    /// What the task is given, in order, by content.
    pub inputs: Vec<Input>,
    /// Number of outputs.
    pub outputs: u32,
}

/// The content of an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// As messages name it; it does not count.
    pub name: Arc<str>,
    /// Of its bytes.
    pub digest: Digest,
    /// How its bytes are to be read.
    pub form: Form,
}

impl Input {
    /// A program that a task runs, by its name in messages.
    pub fn tool(name: Arc<str>, digest: Digest) -> Input {
        Input {
            name,
            digest,
            form: Form::Other(TOOL.into()),
        }
    }

    /// Whether it is a program that the task runs.
    pub fn is_tool(&self) -> bool {
        matches!(&self.form, Form::Other(form) if **form == *TOOL)
    }
}

/// The form of a program: names of forms in programs have no blanks.
const TOOL: &str = "tool of a task";

/// One output of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptOutput {
    /// How its bytes are to be read.
    pub form: Form,
    /// Its bytes.
    pub content: KeptContent,
}

/// Where the bytes of an output are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum KeptContent {
    /// In the entry.
    Inline(Bytes),
    /// In an object of the folder.
    Object {
        /// Of the bytes.
        digest: Digest,
        /// Number of bytes.
        length: u64,
    },
}

/// All that a task and those beneath it write to one place, in the order of the serial elision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Printed {
    /// The path of an ordered file; none for standard output.
    pub file: Option<Arc<str>>,
    /// What they write there.
    pub bytes: Bytes,
}

/// A kept result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What its key is made of.
    pub parts: Parts,
    /// The position of its task in the run that kept it, without the code.
    pub place: Digest,
    /// The name of its task that messages show: the function or command.
    pub task: Arc<str>,
    /// Its outputs, in order.
    pub outputs: Vec<KeptOutput>,
    /// What it prints, once for each place.
    pub printed: Vec<Printed>,
    /// Source files with code that ran beneath the task although its own code does not name it, as
    /// that of a function that it was given: the result is of no use if one has changed.
    pub beneath: Vec<FileRead>,
    /// Files that it, or a task beneath it, has read beside its inputs; likewise.
    pub read: Vec<FileRead>,
    /// Microseconds that it took; 0 if that is not known.
    pub took_us: u64,
    /// The id of the run that kept it.
    pub run: Arc<str>,
    /// It was marked to be kept.
    pub is_marked: bool,
}

impl Entry {
    /// The objects that it needs with their lengths, in the order of its outputs.
    pub fn objects(&self) -> impl Iterator<Item = (Digest, u64)> {
        let outputs = self.outputs.iter();
        outputs.filter_map(|output| match output.content {
            KeptContent::Object { digest, length } => Some((digest, length)),
            KeptContent::Inline(_) => None,
        })
    }

    /// Whether nothing in it can run code where it is read.
    pub fn is_harmless(&self) -> bool {
        let mut forms = self.outputs.iter().map(|output| &output.form);
        forms.all(|form| match form {
            Form::Bytes | Form::Text | Form::Json => true,
            // Who reads these makes values of types that the form names.
            Form::Skywriting | Form::Pickle | Form::TypedJson(_) | Form::Other(_) => false,
        })
    }
}

impl Parts {
    /// The key: equal for equal work.
    pub fn key(&self) -> Digest {
        let mut hasher = Hasher::default();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        add(self.executor.as_bytes());
        add(&self.surroundings.0.to_le_bytes());
        add(&self.code.map_or([0; 16], |code| code.0.to_le_bytes()));
        add(&self.payload.0.to_le_bytes());
        add(&self.outputs.to_le_bytes());
        for input in &self.inputs {
            add(input.form.name().as_bytes());
            if let Form::TypedJson(of) = &input.form {
                add(of.as_bytes());
            }
            add(&input.digest.0.to_le_bytes());
        }
        hasher.finish()
    }

    /// Whether these may be of the function that `now` is of: where tasks were spawned before it
    /// that were not before, another function has its place. Commands have no names here.
    pub(crate) fn is_of_function(&self, now: &Parts) -> bool {
        let name = |parts: &Parts| parts.pieces.first().map(|piece| piece.name.clone());
        let names = name(self).zip(name(now));
        self.executor == now.executor && names.is_none_or(|(before, now)| before == now)
    }

    /// The first part in which `now` differs from these; none if keys are equal.
    pub fn diff(&self, now: &Parts) -> Option<RerunReason> {
        if self.key() == now.key() {
            return None;
        }
        if self.executor != now.executor || self.surroundings != now.surroundings {
            return Some(RerunReason::ArgumentChanged(None));
        }
        if self.code != now.code {
            return Some(RerunReason::CodeChanged(self.changed_code(now)));
        }
        if self.payload != now.payload || self.outputs != now.outputs {
            let known = |one: &&(Arc<str>, Digest)| !self.arguments.contains(one);
            let other = now.arguments.iter().find(known);
            return Some(RerunReason::ArgumentChanged(
                other.map(|(name, _)| name.clone()),
            ));
        }
        Some(match self.changed_input(now) {
            Some(input) if input.is_tool() => RerunReason::ToolChanged(input.name.clone()),
            Some(input) => RerunReason::InputChanged(input.name.clone()),
            None => RerunReason::ArgumentChanged(None),
        })
    }

    /// The piece of code that is another in `now`. Where the pieces of one of both are not known,
    /// it is the function that the task runs, and no place, since the change may be anywhere.
    fn changed_code(&self, now: &Parts) -> FunctionCode {
        match (self.pieces.first(), now.pieces.first()) {
            (Some(own), None) | (None, Some(own)) => FunctionCode {
                place: Site::default(),
                ..own.clone()
            },
            _ => changed(&self.pieces, &now.pieces).unwrap_or_else(unknown),
        }
    }

    /// The first input of `now` whose content is not that of the same input of these, or the first
    /// of these that `now` lacks.
    pub fn changed_input<'a>(&'a self, now: &'a Parts) -> Option<&'a Input> {
        let is_same =
            |before: &Input, now: &Input| (before.digest, &before.form) == (now.digest, &now.form);
        if self.inputs.len() == now.inputs.len() {
            let mut pairs = self.inputs.iter().zip(&now.inputs);
            let other = pairs.find(|(before, now)| !is_same(before, now));
            return other.map(|(_, now)| now);
        }
        // Files that a command names come and go, so that numbers tell nothing.
        let is_in = |all: &[Input], one: &Input| {
            all.iter()
                .any(|other| other.name == one.name && is_same(other, one))
        };
        let new = now.inputs.iter().find(|one| !is_in(&self.inputs, one));
        new.or_else(|| self.inputs.iter().find(|one| !is_in(&now.inputs, one)))
    }
}

/// The first function whose code is another, as it is now if it exists.
fn changed(before: &[FunctionCode], now: &[FunctionCode]) -> Option<FunctionCode> {
    let same = |a: &FunctionCode, b: &FunctionCode| (&a.name, a.digest) == (&b.name, b.digest);
    let is_in = |all: &[FunctionCode], one: &FunctionCode| all.iter().any(|it| same(it, one));
    let new = now.iter().find(|one| !is_in(before, one));
    let gone = before.iter().find(|one| !is_in(now, one));
    let first = now
        .iter()
        .zip(before)
        .find(|(now, before)| !same(now, before));
    new.or(gone).or(first.map(|(now, _)| now)).cloned()
}

/// A piece of code of which nothing is known.
fn unknown() -> FunctionCode {
    FunctionCode {
        name: "unknown".into(),
        place: Site::default(),
        digest: Digest(0),
    }
}
