//! The bytes of values: arguments of spawned calls, results, and saved machines.
//!
//! A version byte, a byte that marks whether functions are inside, the roots, and then one node per
//! object in the order in which the roots reach them, breadth first; with functions, the hash of
//! their code is the last 16 bytes. Values with the same structure, order and sharing give the same
//! bytes. Reading is bounded by the input and never trusts it. It does not know machines. Read
//! next: `machine::graph`, which walks the heap.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::builtins::Builtin;
use crate::code::{Code, CodeHash};
use crate::host::References;
use crate::machine::graph::{self, Form};
use crate::machine::heap::Heap;
use crate::machine::json;

/// First byte of every encoded value.
pub(crate) const VERSION: u8 = 1;
/// Second byte when there are functions inside.
pub(crate) const WITH_FUNCTIONS: u8 = 1;
/// Shorter strings are inline, longer ones are nodes.
pub(crate) const SHORT_TEXT_BYTES_MAX: usize = 64;
/// What a conversion to or from JSON may take.
const CONVERSION_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Why bytes were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Written by another version of this crate.
    #[error("the bytes have version {found}, this program reads version {VERSION}")]
    OtherVersion {
        /// The version they have.
        found: u8,
    },
    /// They belong to another program.
    #[error("the bytes belong to the program {found}, not to {expected}")]
    OtherProgram {
        /// The program at hand.
        expected: CodeHash,
        /// The program they name.
        found: CodeHash,
    },
    /// They are not what this crate writes.
    #[error("the bytes are damaged: {what}")]
    Damaged {
        /// The first thing that was wrong.
        what: &'static str,
    },
    /// They need more than the memory limit.
    #[error("the value needs more than {bytes_max} bytes of memory")]
    TooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// The value has no JSON form: it holds a function, or is nested too deep.
    #[error("the value has no JSON form: {why}")]
    NotJson {
        /// The reason.
        why: String,
    },
}

pub(crate) fn damaged(what: &'static str) -> LoadError {
    LoadError::Damaged { what }
}

/// A value where it is used. Numbers of objects count the nodes from 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Item<'a> {
    Unset,
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
    LongText { object: u32, bytes: u32 },
    Integer(u32),
    List(u32),
    Dictionary(u32),
    Closure(u32),
    Cell(u32),
    Thunk(u32),
    Builtin(Builtin),
    Reference(u32),
}

/// The head of an object; items follow as the counts say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Node<'a> {
    List(u32),
    /// Keys and items in turn.
    Dictionary(u32),
    Closure {
        function: u32,
        captures: u32,
    },
    Cell,
    /// A thunk of that reference.
    Thunk(u32),
    Text(&'a str),
    /// Two's complement, least byte first.
    Integer(&'a [u8]),
}

/// A key of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum KeyItem<'a> {
    Text(&'a str),
    Int(i64),
}

/// Appends one item, node, key or other plain thing.
pub(crate) fn put<T: Serialize>(out: &mut Vec<u8>, thing: &T) {
    let bytes = std::mem::take(out);
    *out = postcard::to_extend(thing, bytes).expect("plain data always encodes");
}

/// Takes one thing from the front.
pub(crate) fn take<'a, T: Deserialize<'a>>(bytes: &mut &'a [u8]) -> Result<T, LoadError> {
    let (thing, rest) =
        postcard::take_from_bytes(bytes).map_err(|_| damaged("a part cannot be read"))?;
    *bytes = rest;
    Ok(thing)
}

/// Checks version and code; gives what is between.
pub(crate) fn open(bytes: &[u8], expected: CodeHash) -> Result<&[u8], LoadError> {
    let [version, flags, body @ ..] = bytes else {
        return Err(damaged("they are too short"));
    };
    if *version != VERSION {
        return Err(LoadError::OtherVersion { found: *version });
    }
    match *flags {
        0 => Ok(body),
        WITH_FUNCTIONS => {
            let (body, hash) = body
                .split_last_chunk::<16>()
                .ok_or(damaged("they are too short"))?;
            let found = CodeHash(*hash);
            match expected == found {
                true => Ok(body),
                false => Err(LoadError::OtherProgram { expected, found }),
            }
        }
        _ => Err(damaged("unknown flags")),
    }
}

/// Whether an encoded value has functions in it, so that only the program that made it can read it.
pub fn has_functions(bytes: &[u8]) -> bool {
    bytes.get(1) == Some(&WITH_FUNCTIONS)
}

/// The JSON form of an encoded value, for tasks in other languages: reference number `i` becomes
/// `{"$ref": i}`, and a user's key that begins with `$` gets one more.
pub fn to_json(bytes: &[u8]) -> Result<serde_json::Value, LoadError> {
    let mut heap = bare_heap();
    let mut roots = Vec::new();
    let any = References::given(u32::MAX);
    graph::decode(&mut heap, bytes, any, &mut roots).map_err(|refusal| {
        match refusal.into_load_error(CONVERSION_BYTES_MAX) {
            LoadError::OtherProgram { .. } => LoadError::NotJson {
                why: "it holds a function".to_owned(),
            },
            other => other,
        }
    })?;
    let [root] = roots[..] else {
        return Err(damaged("not exactly one value"));
    };
    json::spelled(&heap, root).map_err(|why| LoadError::NotJson { why })
}

/// Encodes a JSON value; `{"$ref": i}` in it becomes reference number `i`. Gives the bytes and, by
/// their new numbers in the bytes, the old ones.
pub fn from_json(text: &[u8]) -> Result<(Vec<u8>, Vec<u32>), LoadError> {
    let mut heap = bare_heap();
    let any = References::given(u32::MAX);
    let value = json::read(&mut heap, text, Some(any))
        .map_err(|refusal| refusal.into_load_error(CONVERSION_BYTES_MAX))?;
    let encoded = graph::encode(&heap, &[value], Form::Value).map_err(|_| LoadError::TooLarge {
        bytes_max: CONVERSION_BYTES_MAX,
    })?;
    Ok((
        encoded.bytes,
        encoded.references.iter().map(|handle| handle.0).collect(),
    ))
}

/// A heap without a program, where all the room there is may be used at once.
fn bare_heap() -> Heap {
    let code = Arc::new(Code::new(Vec::new(), Vec::new(), &[]));
    let mut heap = Heap::new(code, CONVERSION_BYTES_MAX);
    heap.collect(&mut [], (&mut [], &mut []), 0, CONVERSION_BYTES_MAX)
        .expect("an empty heap has all its room");
    heap
}
