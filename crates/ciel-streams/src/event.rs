//! The language of the machine: what has happened to a stream, and what follows.
//!
//! Plain values, without decisions. Read next: `stream`, which has them.

use std::fmt;

use ciel_model::{Digest, Mode, ProducerFlags, Wish};

/// A consumer of one stream, as the caller numbers them. A number is used once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConsumerId(pub u64);

impl fmt::Display for ConsumerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "consumer-{}", self.0)
    }
}

/// What has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The producer has opened the output. The first event of a stream.
    Opened {
        /// What it declares.
        flags: ProducerFlags,
    },
    /// The readable prefix of the object has grown, whoever has written it. Without effect while
    /// the bytes are not stored.
    Wrote {
        /// Length of the prefix, in bytes.
        length: u64,
    },
    /// A consumer has come.
    ConsumerAttached {
        /// Its number, as the caller chose it.
        consumer: ConsumerId,
        /// The mode that it wishes for.
        wish: Wish,
        /// The first byte that it wants.
        from: u64,
        /// New bytes after which it is woken, by default
        /// [`GRANULARITY_BYTES`](crate::limits::GRANULARITY_BYTES); zero counts as one. At the end
        /// it is woken in any case.
        granularity_bytes: Option<u64>,
    },
    /// A consumer has ended or does not want more. Without effect if it is not attached: an end and
    /// a leave may cross.
    ConsumerLeft {
        /// Its number, as the caller chose it.
        consumer: ConsumerId,
    },
    /// The producer's attempt has committed: this is the true end of the stream.
    Committed {
        /// Bytes of the whole stream. If it is stored, `Wrote` may still be behind.
        length: u64,
        /// The digest of the whole.
        digest: Digest,
    },
    /// The producer's attempt has failed or is lost, or the bytes of it could not be stored.
    ProducerLost,
    /// No consumer has come within the limit, will come, or the producer would block before.
    /// Without effect unless the producer waits for its consumer.
    LimitPassed,
    /// The store is over its budget.
    BudgetExceeded,
    /// The store is within its budget.
    BudgetFree,
}

/// What follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Let the producer write into the object.
    Store,
    /// Hold the producer's output in its pipe, and report `LimitPassed` after the limit.
    AwaitConsumer {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// Connect the producer's pipe, ring or socket with this consumer.
    Forward {
        /// The one consumer.
        consumer: ConsumerId,
    },
    /// Direct mode is given up: move what comes out of the producer's pipe into the object, and
    /// report `Wrote`.
    FallBack {
        /// What made it necessary.
        reason: FallBackReason,
    },
    /// The one consumer has left: discard what the producer still writes, so that it does not fail.
    Drain,
    /// The consumer is served in this mode, which may differ from its wish.
    Attach {
        /// Its number, as the caller chose it.
        consumer: ConsumerId,
        /// The mode of the service.
        mode: Mode,
    },
    /// The consumer can read these bytes of the object. `from` is the previous `to`.
    Wake {
        /// Its number, as the caller chose it.
        consumer: ConsumerId,
        /// The first new byte.
        from: u64,
        /// The end of the new bytes.
        to: u64,
    },
    /// Hold the producer, or what stores its bytes, until `Resume`.
    Hold,
    /// Let it write again.
    Resume,
    /// The consumer has been shown, or gets through its pipe, all there is: this is a true end.
    End {
        /// Its number, as the caller chose it.
        consumer: ConsumerId,
        /// Bytes of the whole stream.
        length: u64,
        /// The digest of the whole.
        digest: Digest,
    },
    /// The consumer will not see the end of this stream; it must not take what it has for all.
    Abort {
        /// Its number, as the caller chose it.
        consumer: ConsumerId,
        /// What keeps the end from it.
        reason: AbortReason,
    },
}

/// Why a direct stream is stored after all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FallBackReason {
    /// No consumer came within the limit.
    NoConsumer,
    /// The consumer that came needs stored bytes: another mode, or not from the first byte.
    StoredBytesNeeded,
    /// The producer ended before a consumer came.
    ProducerEnded,
}

/// Why a consumer does not see the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AbortReason {
    /// The producer's attempt is lost. Whoever retries it makes a new stream.
    ProducerLost,
    /// Another consumer has, or had, the only copy: the producer must be recomputed.
    NotStored,
    /// The stream is shorter than the first byte that the consumer wants.
    BeyondEnd,
}

/// An event that cannot have happened; the stream is unchanged. It comes from the other side of a
/// process boundary, so it is an error and no bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Something else than `Opened` came first.
    #[error("the output has not been opened")]
    NotOpened,
    /// The output is opened or committed twice.
    #[error("the producer has already done this, or has ended")]
    OutOfTurn,
    /// The readable prefix shrank.
    #[error("the stream has {readable} readable bytes, and can never have {claimed} again")]
    Shrunk {
        /// Bytes that can be read.
        readable: u64,
        /// Bytes that the event has.
        claimed: u64,
    },
    /// More was written than the producer has committed.
    #[error("the stream ends after {length} bytes, but {claimed} are said to be written")]
    BeyondEnd {
        /// Bytes of the whole.
        length: u64,
        /// Bytes that the event has.
        claimed: u64,
    },
    /// The consumer is attached already.
    #[error("{consumer} is already attached")]
    AlreadyAttached {
        /// Its number, as the caller chose it.
        consumer: ConsumerId,
    },
}
