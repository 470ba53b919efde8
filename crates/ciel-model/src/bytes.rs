//! Shared bytes as serde fields: written and read in one piece instead of byte by byte.
//!
//! For `#[serde(with = "crate::bytes")]`. It does not know what the bytes are.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::ser::Serializer;

/// Bytes are reserved for a sequence of unknown truth up to this many.
const RESERVED_BYTES_MAX: usize = 4096;

/// Writes the bytes.
pub fn serialize<S: Serializer>(bytes: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

/// Reads bytes, however the format spells them.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
    deserializer.deserialize_bytes(SharedBytes)
}

struct SharedBytes;

impl<'de> Visitor<'de> for SharedBytes {
    type Value = Arc<[u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Arc<[u8]>, E> {
        Ok(bytes.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Arc<[u8]>, A::Error> {
        let reserved = elements.size_hint().unwrap_or(0).min(RESERVED_BYTES_MAX);
        let mut bytes = Vec::with_capacity(reserved);
        while let Some(byte) = elements.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes.into())
    }
}
