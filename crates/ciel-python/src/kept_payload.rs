//! The payload of a call that is kept: what the calls of its function have in common is shared, and
//! arguments that are short need no memory of their own.
//!
//! Handles of futures among the arguments, which few calls have, are beside it. It knows no calls.
//! Read next: `levels.rs`; `arguments.rs` writes arguments.

use std::sync::Arc;

use bytes::Bytes;

/// Bytes of arguments that need no memory of their own, at most.
const SHORT_BYTES_MAX: usize = 38;

/// Where the header of the function is in a head: see `unpacked.rs`.
const HEADER_AT: usize = 15;

/// What precedes the arguments in the payloads of one function.
pub struct Head(Box<[u8]>);

impl Head {
    /// These bytes.
    pub fn new(bytes: &[u8]) -> Arc<Head> {
        Arc::new(Head(bytes.into()))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The header of the function in it.
    pub fn header(&self) -> &[u8] {
        self.0.get(HEADER_AT..).unwrap_or_default()
    }
}

/// A payload.
pub struct Payload {
    head: Option<Arc<Head>>,
    rest: Rest,
}

/// What follows the head.
enum Rest {
    Short {
        count: u8,
        bytes: [u8; SHORT_BYTES_MAX],
    },
    Long(Box<[u8]>),
    /// With handles of inputs.
    Given(Box<(Box<[u8]>, Vec<u32>)>),
}

impl Payload {
    /// The head, if there is one, and what follows it.
    pub fn new(head: Option<Arc<Head>>, rest: &[u8]) -> Payload {
        let rest = match u8::try_from(rest.len()) {
            Ok(count) if rest.len() <= SHORT_BYTES_MAX => {
                let mut bytes = [0; SHORT_BYTES_MAX];
                bytes[..rest.len()].copy_from_slice(rest);
                Rest::Short { count, bytes }
            }
            _ => Rest::Long(rest.into()),
        };
        Payload { head, rest }
    }

    /// All of these bytes, and the handles of inputs.
    pub fn with_inputs(bytes: &[u8], inputs: Vec<u32>) -> Payload {
        if inputs.is_empty() {
            return Payload::new(None, bytes);
        }
        Payload {
            head: None,
            rest: Rest::Given(Box::new((bytes.into(), inputs))),
        }
    }

    /// Handles of inputs.
    pub fn inputs(&self) -> &[u32] {
        match &self.rest {
            Rest::Given(given) => &given.1,
            Rest::Short { .. } | Rest::Long(_) => &[],
        }
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.head().len() + self.rest().len()
    }

    /// All of its bytes.
    pub fn to_bytes(&self) -> Bytes {
        Bytes::from([self.head(), self.rest()].concat())
    }

    fn head(&self) -> &[u8] {
        self.head.as_deref().map_or(&[], Head::as_bytes)
    }

    fn rest(&self) -> &[u8] {
        match &self.rest {
            Rest::Short { count, bytes } => &bytes[..usize::from(*count)],
            Rest::Long(bytes) => bytes,
            Rest::Given(given) => &given.0,
        }
    }
}
