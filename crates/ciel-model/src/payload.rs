//! Payloads: what a task is to do, as its executor understands it.
//!
//! Read next: `call`, which compares them by their digests, and `members`.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::Digest;
use crate::members::{Members, name_at};

/// What a task is to do, as its executor understands it, with a digest that is made when it is
/// received, so that comparing it does not read all of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    bytes: Bytes,
    digest: Digest,
}

impl Payload {
    /// Takes the bytes without a copy, and reads them once.
    pub fn new(bytes: impl Into<Bytes>) -> Payload {
        let bytes = bytes.into();
        let digest = Digest::of(&bytes);
        Payload { bytes, digest }
    }

    /// Of the bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its arguments, as far as they can be compared one by one; reads all of it.
    pub fn members(&self) -> Members {
        Members::of(&self.bytes)
    }

    /// The name of the argument at a place, if the payload has named arguments.
    pub fn name_of(&self, place: u32) -> Option<Arc<str>> {
        name_at(&self.bytes, place)
    }

    /// The bytes, shared.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl std::ops::Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt(f)
    }
}

/// Only the bytes are written.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.bytes.serialize(serializer)
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
}
