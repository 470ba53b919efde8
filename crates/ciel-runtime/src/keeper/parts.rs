//! What the key of a task is made of.
//!
//! What a call depends on is said by its executor. Read next: `ciel_kept::Parts`.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ciel_engine::ResultQuery;
use ciel_kept::{Input, KeptResults, Parts};
use ciel_model::{Class, Content, Descriptor, Digest, FileRead, Form, Hasher};
use ciel_store::ObjectName;
use serde_json::Value;

use super::digests::FileDigests;
use crate::engine::Engine;
use crate::executors::call::Call;
use crate::settings::Settings;

/// What counts beside a call: settings that change what a command does, the interpreter of Python
/// tasks, and the current folder.
pub(super) fn surroundings(settings: &Settings) -> Digest {
    let mut hasher = Hasher::default();
    hasher.update(&[u8::from(settings.strict_shell)]);
    if let Some(python) = &settings.python {
        hasher.update(python.interpreter.as_os_str().as_bytes());
    }
    let folder = std::env::current_dir().unwrap_or_default();
    hasher.update(folder.as_os_str().as_bytes());
    hasher.finish()
}

/// The same for results that are shared between folders and machines: neither the current folder
/// nor the place of the interpreter counts, whose version is part of the code.
pub(super) fn surroundings_anywhere(settings: &Settings) -> Digest {
    anywhere(settings.strict_shell)
}

/// The surroundings of results that are shared, for either shell.
pub(crate) fn anywhere(strict_shell: bool) -> Digest {
    Digest::of(&[u8::from(strict_shell)])
}

/// The same work in other surroundings.
pub(crate) fn in_surroundings(parts: &Parts, surroundings: Digest) -> Parts {
    Parts {
        surroundings,
        ..parts.clone()
    }
}

/// What the result of a task depends on that is this call; none if an input cannot be read any
/// more.
pub(super) fn parts_of(
    engine: &Engine,
    surroundings: Digest,
    digests: &mut FileDigests,
    (query, call): (&ResultQuery, &Call),
) -> Option<Parts> {
    let descriptor = &query.descriptor;
    let code = call.code();
    let inputs = query.inputs.iter().enumerate();
    let inputs: Option<Vec<Input>> = inputs
        .map(|(index, (form, content))| {
            let name = call.inputs.get(&index).cloned();
            Some(Input {
                name: name.unwrap_or_else(|| (index + 1).to_string().into()),
                digest: digest_of(engine, digests, content)?,
                form: form.clone(),
            })
        })
        .collect();
    Some(Parts {
        executor: descriptor.executor.clone(),
        surroundings,
        code: code.digest(),
        pieces: code.shared_pieces(),
        payload: call.payload,
        arguments: call.arguments.clone(),
        inputs: inputs?,
        outputs: descriptor.outputs,
    })
}

fn digest_of(engine: &Engine, digests: &mut FileDigests, content: &Content) -> Option<Digest> {
    match content {
        Content::Inline(bytes) => Some(Digest::of(bytes)),
        Content::File {
            digest: Some(digest),
            ..
        } => Some(*digest),
        Content::File { name, .. } => digests.of(*name, || {
            let path = engine.objects.share(ObjectName(name.0)).ok()?;
            KeptResults::digest_of(&path).ok()
        }),
    }
}

/// Words in the arguments of a command that are looked at.
const WORDS_MAX: usize = 256;

/// The files that the arguments of a command name, in its text or as values, by their content: it
/// probably reads them, but for those that it appends to.
pub(super) fn files_named(
    descriptor: &Descriptor,
    digest_of: impl Fn(&Path) -> Option<Digest>,
) -> Vec<(Input, FileRead)> {
    if descriptor.class != Class::Process {
        return Vec::new();
    }
    let arguments: Value = serde_json::from_slice(&descriptor.payload).unwrap_or_default();
    let folder = arguments.get("folder").and_then(Value::as_str);
    let current = std::env::current_dir().unwrap_or_default();
    let folder = folder.map_or(current.clone(), |folder| current.join(folder));
    let appended = appended_paths(&arguments, &current);
    let mut words = BTreeSet::new();
    add_words(&arguments, &mut words);
    let file = |word: &&str| {
        let path = folder.join(word);
        let is_read = path.is_file() && !appended.contains(&path);
        is_read.then(|| (word.to_string(), path))
    };
    let files = words.iter().take(WORDS_MAX).filter_map(file);
    let input = |(name, path): (String, PathBuf)| {
        let digest = digest_of(&path)?;
        let input = Input {
            digest,
            name: name.into(),
            form: Form::Bytes,
        };
        let read = FileRead {
            path: path.to_str()?.into(),
            length: std::fs::metadata(&path).ok()?.len(),
            digest,
        };
        Some((input, read))
    };
    files.filter_map(input).collect()
}

/// The ordered files that a command appends to; their paths start at the folder of the run.
fn appended_paths(arguments: &Value, current: &Path) -> BTreeSet<PathBuf> {
    let appended = arguments.get("appends").and_then(Value::as_object);
    let paths = appended.into_iter().flat_map(|appended| appended.values());
    let paths = paths.filter_map(Value::as_str);
    paths.map(|path| current.join(path)).collect()
}

/// Stands for the content of a file whose times are trusted: its length and its last change.
pub(super) fn stamp_of(path: &Path) -> Option<Digest> {
    let found = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
    let mut hasher = Hasher::default();
    for part in [found.len(), found.mtime() as u64, found.mtime_nsec() as u64] {
        hasher.update(&part.to_be_bytes());
    }
    Some(hasher.finish())
}

/// The words of all texts in a value.
fn add_words<'a>(value: &'a Value, words: &mut BTreeSet<&'a str>) {
    match value {
        Value::String(text) => {
            words.insert(text);
            let is_between = |c: char| c.is_whitespace() || "\"'`;|&<>()=${}".contains(c);
            words.extend(text.split(is_between).filter(|word| !word.is_empty()));
        }
        Value::Array(values) => values.iter().for_each(|value| add_words(value, words)),
        Value::Object(values) => values.values().for_each(|value| add_words(value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
