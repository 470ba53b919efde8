//! Values that every part of Ciel shares: positions, names, references, task descriptors,
//! failures, limits.
//!
//! Nothing here decides anything, and nothing here knows a socket, a file or a clock. Start with
//! [`descriptor::Descriptor`] and [`reference::Value`]; [`order::SerialOrder`] is what makes
//! "earlier in the serial program" a comparison of two numbers.

pub mod assist;
pub mod audit;
pub mod call;
mod call_options;
pub mod code;
pub mod descriptor;
pub mod digest;
pub mod fact;
pub mod failure;
pub mod hash_trie;
pub mod idle;
pub mod key_map;
pub mod key_table;
pub mod limits;
mod members;
pub mod name;
pub mod order;
pub mod pairing;
pub mod payload;
pub mod rare;
mod recorded_call;
pub mod reference;
mod refused;
mod rerun;
pub mod resources;
pub mod segmented;
pub mod segmented_queue;
pub mod stream;
pub mod task;
pub mod weights;
pub mod words;

pub use audit::{Audit, FileRead};
pub use call::{CallKey, Invocation, Reason};
pub use call_options::CallOptions;
pub use code::{CodeIdentity, FunctionCode, Reached, Site};
pub use descriptor::{Descriptor, RecentKinds, TaskKind};
pub use digest::{Digest, Hasher};
pub use fact::{ActionKey, Fact, FactAct, WaitEnd};
pub use failure::{Call, Exception, Failure, FailureDetails, FailureKind, Frame};
pub use hash_trie::HashTrie;
pub use idle::{Claim, IdleCores, Pace};
pub use key_map::KeyMap;
pub use key_table::{CountedKey, KeyTable};
pub use members::Members;
pub use name::{Label, Name};
pub use order::{Mark, OrderLabel, SerialOrder};
pub use pairing::{Pairing, SingleReader};
pub use payload::Payload;
pub use rare::{Rare, Usual};
pub use recorded_call::RecordedCall;
pub use reference::{Content, FileContent, Form, Handle, ObjectKey, Resolution, Value};
pub use refused::Refused;
pub use rerun::RerunReason;
pub use resources::Resources;
pub use segmented::Segmented;
pub use segmented_queue::SegmentedQueue;
pub use stream::{ConsumerFlags, Mode, ProducerFlags, Streams, UnknownMode, Wish};
pub use task::{
    AttemptNumber, Class, Input, InputMode, Keeping, Options, Pool, Purity, StrandKey, TaskKey,
};
pub use weights::{Near, Weights, weigh};

/// Microseconds since the run began, on the shell's clock.
pub type Micros = u64;
