//! What the two top-level messages have in common.
//!
//! It does not know what a kind means. Read [`crate::wire`] for the kinds themselves.

use std::fmt::Debug;

use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::{self, EngineMessage, WorkerMessage, engine_message, worker_message};

/// A message that can stand alone on a connection.
pub trait WireMessage:
    Message + Debug + Default + Clone + PartialEq + Serialize + DeserializeOwned
{
    /// The kinds in the order of the schema, by their names in JSON.
    const KINDS: &'static [&'static str];

    /// The name of the message's kind in JSON; none if it has no kind.
    fn kind_name(&self) -> Option<&'static str>;
}

impl wire::Reference {
    /// Bytes that it adds to a message in Protocol Buffers, but for its own length.
    pub fn bytes(&self) -> usize {
        self.encoded_len()
    }
}

impl wire::Start {
    /// Bytes of its message in Protocol Buffers, but for the tag.
    pub fn bytes(&self) -> usize {
        self.encoded_len()
    }
}

impl wire::Observation {
    /// As of a [reference](wire::Reference::bytes).
    pub fn bytes(&self) -> usize {
        self.encoded_len()
    }
}

macro_rules! wire_message {
    ($message:ident, $module:ident, { $($kind:ident $name:literal),* $(,)? }) => {
        impl WireMessage for $message {
            const KINDS: &'static [&'static str] = &[$($name),*];

            fn kind_name(&self) -> Option<&'static str> {
                Some(match self.kind.as_ref()? {
                    $($module::Kind::$kind(_) => $name,)*
                })
            }
        }

        impl $message {
            /// A message about the task with that tag.
            pub fn about(tag: u32, kind: impl Into<$module::Kind>) -> Self {
                Self { tag, kind: Some(kind.into()) }
            }

            /// A message about the connection.
            pub fn connection(kind: impl Into<$module::Kind>) -> Self {
                Self { tag: 0, kind: Some(kind.into()) }
            }
        }

        $(impl From<wire::$kind> for $module::Kind {
            fn from(kind: wire::$kind) -> Self {
                Self::$kind(kind)
            }
        })*
    };
}

wire_message!(WorkerMessage, worker_message, {
    Hello "hello",
    Pong "pong",
    Construct "construct",
    Spawn "spawn",
    Publish "publish",
    TailSpawn "tailSpawn",
    OpenReference "openReference",
    OpenOutput "openOutput",
    OpenConstruct "openConstruct",
    Commit "commit",
    BlockOn "blockOn",
    Write "write",
    Observe "observe",
    Log "log",
    Error "error",
    Exit "exit",
    GiveBack "giveBack",
    Define "define",
    EndedInPlace "endedInPlace",
    Caches "caches",
    OpenShared "openShared",
    StreamShared "streamShared",
});

wire_message!(EngineMessage, engine_message, {
    Hello "hello",
    Refusal "refusal",
    Start "start",
    Resume "resume",
    Answer "answer",
    Cancel "cancel",
    Drop "drop",
    Shutdown "shutdown",
    Ping "ping",
    Define "define",
});
