//! Payloads: what a task is to do, as its executor understands it.
//!
//! Read next: `call`, which compares them by their digests, and `members`.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::Digest;
use crate::members::{Members, name_at};

/// What a task is to do, as its executor understands it, with a digest that is made once it is
/// asked for, so that later comparisons do not read all of it.
#[derive(Clone)]
pub struct Payload {
    held: Held,
    /// Boxed: a task of a run that is not recorded needs none.
    digest: OnceLock<Box<Digest>>,
}

/// Bytes from which on a payload is shared by its clones.
const SHARED_BYTES_MIN: usize = 4 << 10;

/// The bytes, in two words: there may be as many pending tasks as memory has room for, and most of
/// their payloads are short and have one owner.
#[derive(Clone, PartialEq, Eq)]
enum Held {
    Own(Box<[u8]>),
    Shared(Box<Bytes>),
}

impl Payload {
    /// Takes the bytes, without a copy if they have no other owner or are long.
    pub fn new(bytes: impl Into<Bytes>) -> Payload {
        let bytes = bytes.into();
        let held = match bytes.len() < SHARED_BYTES_MIN {
            true => Held::Own(Vec::from(bytes).into()),
            false => Held::Shared(Box::new(bytes)),
        };
        let digest = OnceLock::new();
        Payload { held, digest }
    }

    /// Of the bytes, which are read the first time.
    pub fn digest(&self) -> Digest {
        **self.digest.get_or_init(|| Box::new(Digest::of(self)))
    }

    /// Its arguments, as far as they can be compared one by one; reads all of it.
    pub fn members(&self) -> Members {
        Members::of(self)
    }

    /// The name of the argument at a place, if the payload has named arguments.
    pub fn name_of(&self, place: u32) -> Option<Arc<str>> {
        name_at(self, place)
    }

    /// The bytes; long ones are shared, short ones copied.
    pub fn bytes(&self) -> Bytes {
        match &self.held {
            Held::Own(bytes) => Bytes::copy_from_slice(bytes),
            Held::Shared(bytes) => (**bytes).clone(),
        }
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        self.held == other.held
    }
}

impl Eq for Payload {}

impl std::ops::Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.held {
            Held::Own(bytes) => bytes,
            Held::Shared(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

/// Only the bytes are written.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Payload, D::Error> {
        Bytes::deserialize(deserializer).map(Payload::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_that_is_read_back_is_equal() {
        let payload = Payload::new(b"words".to_vec());
        let bytes = postcard::to_stdvec(&payload).expect("bytes can be encoded");
        assert_eq!(bytes, b"\x05words");
        assert_eq!(postcard::from_bytes(&bytes), Ok(payload));
    }

    #[test]
    fn long_payload_is_shared_by_its_clones_and_short_one_has_no_room_for_more() {
        let long = Payload::new(vec![b'x'; SHARED_BYTES_MIN]);
        assert_eq!(long.clone().as_ptr(), long.as_ptr());
        assert_eq!(long.bytes().as_ptr(), long.as_ptr());
        let mut words = Vec::with_capacity(100);
        words.extend_from_slice(b"words");
        let short = Payload::new(words);
        assert_eq!((&*short, &*short.bytes()), (&b"words"[..], &b"words"[..]));
        assert_eq!(size_of::<Payload>(), size_of::<[usize; 4]>());
    }
}
