//! Objects and references: what tasks pass to each other.
//!
//! An object is immutable bytes with a name decided beforehand; a task sees it only through a
//! [`Handle`] into its own table (a capability, like a file descriptor). How bytes are kept is not
//! known here: a [`Content::File`] is found by its name in the store.

use std::sync::Arc;

use bytes::Bytes;

use crate::digest::Digest;
use crate::failure::Failure;
use crate::name::Name;

/// The engine's key of an object; never reused within a run.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct ObjectKey(pub u64);

/// An object as one task names it.
///
/// The inputs are `0..n`. The task chooses and sends the numbers of what it creates; delivered
/// references, i.e. those inside a value, get the numbers from [`Handle::DELIVERED_MIN`] on, in
/// order of delivery. So neither side has to know how many the other has assigned.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct Handle(pub u32);

impl Handle {
    /// The first number of what is delivered.
    pub const DELIVERED_MIN: u32 = 1 << 31;
}

/// How the bytes of an object are to be read.
#[derive(Clone, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum Form {
    /// Plain bytes, as a shell command writes them.
    Bytes,
    /// UTF-8 text: a string in every language.
    Text,
    /// JSON text in which `{"$ref": i}` is the i-th embedded reference.
    Json,
    /// A Skywriting value in its wire form.
    Skywriting,
    /// A Python pickle.
    Pickle,
    /// JSON as above, with the type of the value in the language of its producer.
    TypedJson(Arc<str>),
    /// A form of an executor's own, which is passed on.
    Other(Arc<str>),
}

impl Form {
    /// Its name in the executor protocol and in messages.
    pub fn name(&self) -> &str {
        match self {
            Form::Bytes => "bytes",
            Form::Text => "text",
            Form::Json | Form::TypedJson(_) => "json",
            Form::Skywriting => "skywriting",
            Form::Pickle => "pickle",
            Form::Other(name) => name,
        }
    }

    /// The type of a JSON value in the language of its producer, if that is known.
    pub fn type_hint(&self) -> Option<&str> {
        match self {
            Form::TypedJson(hint) => Some(hint),
            Form::Bytes
            | Form::Text
            | Form::Json
            | Form::Skywriting
            | Form::Pickle
            | Form::Other(_) => None,
        }
    }
}

/// Where the bytes are.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Content {
    /// Here; below [`crate::limits::INLINE_BYTES_MAX`] unless a store is absent.
    Inline(Bytes),
    /// In the store.
    File {
        /// Under this name.
        name: Name,
        /// Number of bytes.
        length: u64,
        /// The digest of the bytes, if it was made when they were written.
        digest: Option<Digest>,
    },
}

/// What the file of an object holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileContent {
    /// Number of bytes.
    pub length: u64,
    /// Their digest, if it was made.
    pub digest: Option<Digest>,
}

impl Content {
    /// Number of bytes.
    pub fn length(&self) -> u64 {
        match self {
            Content::Inline(bytes) => bytes.len() as u64,
            Content::File { length, .. } => *length,
        }
    }

    /// The name of the file and what it holds, if the bytes are in one.
    pub fn file(&self) -> Option<(Name, FileContent)> {
        match *self {
            Content::Inline(_) => None,
            Content::File {
                name,
                length,
                digest,
            } => Some((name, FileContent { length, digest })),
        }
    }
}

/// A finished object. `R` is how embedded references are named: [`Handle`] by the task that made
/// it, [`ObjectKey`] inside the engine.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Value<R> {
    /// How to read the bytes.
    pub form: Form,
    /// The bytes.
    pub content: Content,
    /// The references inside, in the order in which the bytes number them.
    pub references: Vec<R>,
}

impl<R> Value<R> {
    /// A small value without references.
    pub fn inline(form: Form, bytes: impl Into<Bytes>) -> Self {
        Value {
            form,
            content: Content::Inline(bytes.into()),
            references: Vec::new(),
        }
    }
}

/// The resolution of a reference, as a task receives it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Resolution {
    /// Not resolved yet.
    Future,
    /// There. References inside have been added to the asking task's table, so they are handles.
    Ready {
        /// The object's name, as messages show it.
        name: Name,
        /// The object.
        value: Value<Handle>,
    },
    /// The task that should have made it failed.
    Failed(Arc<Failure>),
}
