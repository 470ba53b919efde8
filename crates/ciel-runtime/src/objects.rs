//! Objects on their way between the graph and the store.
//!
//! Small ones stay in memory, larger ones are files of the run folder. It does not know why
//! anybody wants them.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use ciel_model::{Content, Failure, FailureKind, Form, Handle, Label, Name, Value, limits};
use ciel_store::{Object, ObjectName, StoreError};
use ciel_view::Durable;

use crate::engine::Engine;

/// The store could not do what was asked.
#[derive(Debug)]
pub(crate) struct ObjectError(pub(crate) StoreError);

impl std::fmt::Display for ObjectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl From<StoreError> for ObjectError {
    fn from(error: StoreError) -> Self {
        ObjectError(error)
    }
}

impl ObjectError {
    /// The failure of the task that wanted it. It hinders a run that is recorded, so the machines
    /// must be free.
    pub(crate) fn failure(&self, engine: &Engine, task: &Label) -> Failure {
        engine.heed(&self.0);
        let kind = match self.0 {
            StoreError::Full { .. } | StoreError::DiskFull { .. } => FailureKind::DiskFull,
            StoreError::UnknownObject { .. }
            | StoreError::DamagedObject { .. }
            | StoreError::ChangedObject { .. } => FailureKind::ObjectLost,
            _ => FailureKind::TaskError,
        };
        let failure = Failure::new(kind, task.clone(), self.0.to_string());
        match self.0.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// Keeps bytes: in memory if they are few, else as a file under the name that `name` tells.
pub(crate) fn keep(
    engine: &Engine,
    name: impl FnOnce() -> Name,
    bytes: Bytes,
) -> Result<Content, ObjectError> {
    if bytes.len() < limits::INLINE_BYTES_MAX {
        return Ok(Content::Inline(own(bytes)));
    }
    let name = name();
    let object = engine
        .folder
        .objects()
        .commit_bytes(ObjectName(name.0), &bytes)?;
    settle(engine, name)?;
    Ok(as_content(object))
}

fn as_content(object: Object) -> Content {
    Content::File {
        name: Name(object.name.0),
        length: object.length,
        digest: object.digest,
    }
}

/// Few bytes in a buffer of their own, rather than in that of all that was received with them.
fn own(bytes: Bytes) -> Bytes {
    match bytes.is_unique() {
        true => bytes,
        false => Bytes::copy_from_slice(&bytes),
    }
}

/// What is recorded of a run that survives a power failure must be on the disk by then.
fn settle(engine: &Engine, name: Name) -> Result<(), ObjectError> {
    match engine.settings.durable {
        Durable::Power => Ok(engine.folder.objects().sync(ObjectName(name.0))?),
        Durable::Process | Durable::Never => Ok(()),
    }
}

/// What [`keep`] would give, of bytes that are kept already.
pub(crate) fn as_if_kept(name: impl FnOnce() -> Name, bytes: Bytes) -> Content {
    match bytes.len() < limits::INLINE_BYTES_MAX {
        true => Content::Inline(own(bytes)),
        false => Content::File {
            name: name(),
            length: bytes.len() as u64,
            digest: None,
        },
    }
}

/// What [`adopt`] would give, of a file that was adopted already.
pub(crate) fn as_if_adopted(name: Name, path: &Path) -> Content {
    let length = std::fs::metadata(path).map_or(0, |found| found.len());
    match length < limits::INLINE_BYTES_MAX as u64 {
        // One that cannot be read differs from what it was.
        true => Content::Inline(std::fs::read(path).unwrap_or_default().into()),
        false => Content::File {
            name,
            length,
            digest: None,
        },
    }
}

/// Takes over a scratch file under `name`, or its bytes if they are few.
pub(crate) fn adopt(engine: &Engine, name: Name, path: &Path) -> Result<Content, ObjectError> {
    let small = limits::INLINE_BYTES_MAX as u64;
    if let Ok(found) = std::fs::symlink_metadata(path)
        && found.is_file()
        && found.len() < small
        && let Ok(bytes) = std::fs::read(path)
        && bytes.len() as u64 == found.len()
    {
        return Ok(Content::Inline(bytes.into()));
    }
    let object = engine
        .folder
        .objects()
        .commit_file(ObjectName(name.0), path)?;
    settle(engine, name)?;
    Ok(as_content(object))
}

/// The bytes of an object.
pub(crate) fn load(engine: &Engine, content: &Content) -> Result<Bytes, ObjectError> {
    match content {
        Content::Inline(bytes) => Ok(bytes.clone()),
        Content::File { name, .. } => {
            let mapped = engine.folder.objects().map(ObjectName(name.0))?;
            Ok(Bytes::from_owner(mapped))
        }
    }
}

/// Where an object's file is, which is there and as long as it was; an object in memory has none,
/// and an empty path.
pub(crate) fn whole_path(engine: &Engine, content: &Content) -> Result<PathBuf, ObjectError> {
    match content {
        Content::Inline(_) => Ok(PathBuf::new()),
        Content::File { name, .. } => {
            let (objects, name) = (engine.folder.objects(), ObjectName(name.0));
            objects.open(name)?;
            Ok(objects.path(name))
        }
    }
}

/// A value of a script as JSON, which every language reads.
pub(crate) enum Json {
    /// Short text.
    Text(String),
    /// A file, which stays as long as the object.
    File {
        path: PathBuf,
        /// Number of bytes in the file.
        length: u64,
    },
}

/// A value of a script as JSON; none if it holds functions. Text that is a file is made by the
/// first who asks for that of an object in the store, and shared by all later ones.
pub(crate) fn json(engine: &Engine, content: &Content) -> Result<Option<Json>, ObjectError> {
    let objects = engine.folder.objects();
    let shared = match content {
        Content::File { name, .. } => Some(ObjectName(name.json().0)),
        Content::Inline(_) => None,
    };
    if let Some(name) = shared
        && let Ok(length) = objects.length(name)
    {
        let path = objects.path(name);
        return Ok(Some(Json::File { path, length }));
    }
    let Ok(json) = ciel_skywriting::wire::to_json(&load(engine, content)?) else {
        return Ok(None);
    };
    let text = json.to_string();
    let Some(name) = shared.filter(|_| text.len() >= limits::INLINE_BYTES_MAX) else {
        return Ok(Some(Json::Text(text)));
    };
    let length = objects.commit_bytes(name, text.as_bytes())?.length;
    let path = objects.path(name);
    Ok(Some(Json::File { path, length }))
}

/// Removes the file of an object, and what was made of it here.
pub(crate) fn remove(engine: &Engine, name: Name) {
    for name in [name, name.json()] {
        // A file that cannot be removed now goes with the run's folder.
        let _ = engine.folder.objects().remove(ObjectName(name.0));
    }
}

/// The bytes that a program in another language reads for an object: scripts' values as JSON.
pub(crate) fn plain_bytes(engine: &Engine, value: &Value<Handle>) -> Result<Bytes, PlainError> {
    let bytes = load(engine, &value.content).map_err(PlainError::Store)?;
    if !value.references.is_empty() {
        return Err(PlainError::NotPlain("it contains references".to_string()));
    }
    match value.form {
        Form::Bytes | Form::Text | Form::Json | Form::Pickle => Ok(bytes),
        Form::Skywriting => match ciel_skywriting::wire::to_json(&bytes) {
            Ok(json) => Ok(json.to_string().into_bytes().into()),
            Err(error) => Err(PlainError::NotPlain(error.to_string())),
        },
    }
}

/// Why an object cannot be given to a program in another language.
#[derive(Debug)]
pub(crate) enum PlainError {
    Store(ObjectError),
    NotPlain(String),
}

impl PlainError {
    pub(crate) fn failure(&self, engine: &Engine, task: &Label) -> Failure {
        match self {
            PlainError::Store(trouble) => trouble.failure(engine, task),
            PlainError::NotPlain(why) => Failure::new(
                FailureKind::NotSerializable,
                task.clone(),
                format!("one of its inputs cannot be written as bytes: {why}"),
            )
            .with_hint("dereference what is inside before passing it on"),
        }
    }
}
