//! Objects on their way between the graph and the store.
//!
//! Small ones stay in memory, larger ones go to the [`ciel_store::ObjectStore`] of the run. It does
//! not know why a task needs them, nor where the store keeps them.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use bytes::Bytes;
use ciel_kept::KeptResults;
use ciel_model::{Content, Digest, Failure, FailureKind, Form, Handle, Label, Name, Value, limits};
use ciel_store::{Location, Object, ObjectName, StoreError};

use crate::engine::Engine;
use crate::error::hint_of_limit;
use crate::largest::Maker;
use crate::lost::Since;
use crate::room::{self, NoRoom};

/// The store could not do what was asked.
#[derive(Debug)]
pub(crate) enum ObjectError {
    Store(StoreError),
    /// The run's budget does not suffice.
    NoRoom(NoRoom),
}

impl std::fmt::Display for ObjectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ObjectError::Store(error) => error.fmt(f),
            ObjectError::NoRoom(error) => error.fmt(f),
        }
    }
}

impl From<StoreError> for ObjectError {
    fn from(error: StoreError) -> Self {
        ObjectError::Store(error)
    }
}

impl From<NoRoom> for ObjectError {
    fn from(error: NoRoom) -> Self {
        ObjectError::NoRoom(error)
    }
}

impl ObjectError {
    /// Has the engine heed it: it may hinder a run that is recorded, so the machines must be free.
    pub(crate) fn heed(&self, engine: &Engine) {
        if let ObjectError::Store(error) = self {
            engine.heed(error);
        }
    }

    /// Whether somebody has written to the file of an object, or has removed it. One that was found
    /// with other bytes is not known any more.
    pub(crate) fn is_of_lost_file(&self) -> bool {
        use StoreError::{ChangedObject, DamagedObject, UnknownObject};
        matches!(
            self,
            ObjectError::Store(DamagedObject { .. } | ChangedObject { .. } | UnknownObject { .. })
        )
    }

    /// The failure of the task that wanted it. It hinders a run that is recorded, so the machines
    /// must be free.
    pub(crate) fn failure(&self, engine: &Engine, task: &Label) -> Failure {
        let error = match self {
            ObjectError::Store(error) => error,
            ObjectError::NoRoom(error) => return error.failure(task),
        };
        self.heed(engine);
        let kind = match error {
            StoreError::Full { .. } | StoreError::DiskFull { .. } => FailureKind::DiskFull,
            StoreError::UnknownObject { .. }
            | StoreError::DamagedObject { .. }
            | StoreError::ChangedObject { .. } => FailureKind::ObjectLost,
            _ => FailureKind::TaskError,
        };
        let failure = Failure::new(kind, task.clone(), error.to_string());
        let limit = match error {
            StoreError::System { source, .. } => hint_of_limit(source),
            _ => None,
        };
        match limit.or_else(|| error.hint().map(str::to_string)) {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// Keeps bytes that `maker` made: in memory if they are few, else as a file under the name that
/// `name` returns.
pub(crate) fn keep(
    engine: &Engine,
    maker: &Maker<'_>,
    name: impl FnOnce() -> Name,
    bytes: Bytes,
) -> Result<Content, ObjectError> {
    if bytes.len() < limits::INLINE_BYTES_MAX {
        return Ok(Content::Inline(own(bytes)));
    }
    let object = engine.objects.put(ObjectName(name().0), &bytes)?;
    made(engine, maker, object)
}

/// An object that `maker` made; an error, and gone, if it does not fit.
pub(crate) fn made(
    engine: &Engine,
    maker: &Maker<'_>,
    object: Object,
) -> Result<Content, ObjectError> {
    room::check(engine, maker, &object)?;
    engine.largest.note(maker, &object);
    let compares = || engine.compares.load(Ordering::Relaxed);
    let digest = object
        .digest
        .or_else(|| compares().then(|| digest_of(engine, object.name))?);
    Ok(Content::File {
        name: Name(object.name.0),
        length: object.length,
        digest,
    })
}

/// Of a file; none if it cannot be read.
fn digest_of(engine: &Engine, name: ObjectName) -> Option<Digest> {
    let path = engine.objects.share(name).ok()?;
    KeptResults::digest_of(&path).ok()
}

/// Few bytes in a buffer of their own, rather than in that of all that was received with them.
fn own(bytes: Bytes) -> Bytes {
    match bytes.is_unique() {
        true => bytes,
        false => Bytes::copy_from_slice(&bytes),
    }
}

/// What [`adopt`] would give, of a file that was adopted already.
pub(crate) fn as_if_adopted(engine: &Engine, name: Name, path: &Path) -> Content {
    let scratch = engine.folder.scratch();
    let file = |length| Content::File {
        name,
        length,
        digest: None,
    };
    let short = scratch.short(path, limits::INLINE_BYTES_MAX as u64);
    // A file that cannot be read differs from what it was.
    short.map_or_else(
        || {
            scratch
                .length(path)
                .map_or(Content::Inline(Bytes::new()), file)
        },
        Content::Inline,
    )
}

/// Takes over a scratch file that `maker` wrote under `name`, or its bytes if they are few.
pub(crate) fn adopt(
    engine: &Engine,
    maker: &Maker<'_>,
    name: Name,
    path: &Path,
) -> Result<Content, ObjectError> {
    let short = engine
        .folder
        .scratch()
        .short(path, limits::INLINE_BYTES_MAX as u64);
    if let Some(bytes) = short {
        return Ok(Content::Inline(bytes));
    }
    let object = engine.objects.adopt(ObjectName(name.0), path)?;
    made(engine, maker, object)
}

/// The bytes of an object.
pub(crate) fn load(engine: &Engine, content: &Content) -> Result<Bytes, ObjectError> {
    match content {
        Content::Inline(bytes) => Ok(bytes.clone()),
        Content::File { name, .. } => Ok(engine.objects.map(ObjectName(name.0))?),
    }
}

/// The path at which other processes read an object, which exists with its recorded length; an
/// object in memory has an empty path.
pub(crate) fn whole_path(engine: &Engine, content: &Content) -> Result<PathBuf, ObjectError> {
    match content {
        Content::Inline(_) => Ok(PathBuf::new()),
        Content::File { name, .. } => Ok(engine.objects.share(ObjectName(name.0))?),
    }
}

/// Whether the file of an object is another one than at that moment, or has other bytes. If it is
/// lost, that is heeded, so the machines must be free.
pub(crate) fn has_changed_since(engine: &Engine, content: &Content, since: Since) -> bool {
    let Some((name, _)) = content.file() else {
        return false;
    };
    match whole_path(engine, content) {
        Err(trouble) if trouble.is_of_lost_file() => {
            trouble.heed(engine);
            true
        }
        Err(_) => false,
        Ok(_) => engine.lost.has_lost(name, since),
    }
}

/// Whether the file of an object has other bytes than it had, rather than none. That is heeded, so
/// the machines must be free.
pub(crate) fn is_overwritten(engine: &Engine, content: &Content) -> bool {
    use StoreError::{ChangedObject, DamagedObject};
    match whole_path(engine, content) {
        Err(
            trouble @ ObjectError::Store(
                ChangedObject { .. } | DamagedObject { found: Some(_), .. },
            ),
        ) => {
            trouble.heed(engine);
            true
        }
        _ => false,
    }
}

/// A value of a script as JSON, which every language reads.
pub(crate) enum Json {
    /// Short text.
    Text(String),
    /// An object, which stays as long as the one of the script.
    Object {
        name: ObjectName,
        /// Number of its bytes.
        length: u64,
    },
}

/// A value of a script as JSON. The first request for the text of an object in the store creates it
/// as an object, which all later requests share.
pub(crate) fn json(engine: &Engine, content: &Content) -> Result<Json, PlainError> {
    let shared = content.file().map(|(name, _)| ObjectName(name.json().0));
    if let Some(name) = shared
        && let Some(Location { length, .. }) = engine.objects.location(name)
    {
        return Ok(Json::Object { name, length });
    }
    let json = ciel_skywriting::wire::to_json(&load(engine, content)?);
    let json = json.map_err(|error| PlainError::NotPlain(error.to_string()))?;
    let text = json.to_string();
    let Some(name) = shared.filter(|_| text.len() >= limits::INLINE_BYTES_MAX) else {
        return Ok(Json::Text(text));
    };
    let put = engine.objects.put(name, text.as_bytes());
    let length = put.map_err(ObjectError::Store)?.length;
    Ok(Json::Object { name, length })
}

/// Releases an object, and what was made of it here.
pub(crate) fn release(engine: &Engine, name: Name) {
    for name in [name, name.json()] {
        // A file that cannot be removed now goes with the run's folder.
        let _ = engine.objects.release(ObjectName(name.0));
    }
}

/// The bytes that a program in another language reads for an object: scripts' values as JSON.
pub(crate) fn plain_bytes(engine: &Engine, value: &Value<Handle>) -> Result<Bytes, PlainError> {
    check_plain(value)?;
    match value.form {
        Form::Bytes
        | Form::Text
        | Form::Json
        | Form::TypedJson(_)
        | Form::Pickle
        | Form::Other(_) => Ok(load(engine, &value.content)?),
        Form::Skywriting => match json(engine, &value.content)? {
            Json::Text(text) => Ok(text.into()),
            Json::Object { name, .. } => {
                Ok(engine.objects.map(name).map_err(ObjectError::Store)?)
            }
        },
    }
}

/// The path at which a program in another language reads an object; none if its bytes are not in
/// the store.
pub(crate) fn plain_path(
    engine: &Engine,
    value: &Value<Handle>,
) -> Result<Option<PathBuf>, PlainError> {
    check_plain(value)?;
    let Some((name, _)) = value.content.file() else {
        return Ok(None);
    };
    let name = match value.form {
        Form::Bytes
        | Form::Text
        | Form::Json
        | Form::TypedJson(_)
        | Form::Pickle
        | Form::Other(_) => ObjectName(name.0),
        Form::Skywriting => match json(engine, &value.content)? {
            Json::Text(_) => return Ok(None),
            Json::Object { name, .. } => name,
        },
    };
    Ok(Some(
        engine.objects.share(name).map_err(ObjectError::Store)?,
    ))
}

fn check_plain(value: &Value<Handle>) -> Result<(), PlainError> {
    match value.references.is_empty() {
        true => Ok(()),
        false => Err(PlainError::NotPlain("it contains references".to_string())),
    }
}

/// Why an object cannot be given to a program in another language.
#[derive(Debug)]
pub(crate) enum PlainError {
    Store(ObjectError),
    NotPlain(String),
}

impl From<ObjectError> for PlainError {
    fn from(trouble: ObjectError) -> PlainError {
        PlainError::Store(trouble)
    }
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
            .with_hint(
                "dereference what is in it before passing it: in Skywriting \
                 from_json(to_json(value)) has values in the place of all references",
            ),
        }
    }
}
