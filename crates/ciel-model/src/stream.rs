//! The modes of a stream, what both ends say of it, and how one is chosen from that.
//!
//! Table 2 of ciel-programming-models §6.1. It does not know the state of any stream: whether a
//! mode can be had is known to those who serve it. Read next: `ciel-streams`, its machine.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::rare::Usual;

/// The way that the bytes take from a producer to a consumer.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub enum Mode {
    /// The object is written whole, transferred whole, then read.
    NoStream,
    /// The object is written whole; it is read while it is transferred.
    Overlap,
    /// The growing object is transferred in pieces; the consumer reads its growing copy.
    IndirectFile,
    /// As [`Mode::IndirectFile`], but the copy is pushed into a pipe, in which a consumer blocks.
    IndirectPipe,
    /// The growing object is pushed from the producer's store into the consumer's socket; the
    /// consumer's store has no copy.
    IndirectTcp,
    /// The producer writes into the consumer's pipe, ring or socket; nothing is stored.
    Direct,
}

/// What a producer declares of an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProducerFlags {
    /// The output may be read before it is complete.
    pub may_stream: bool,
    /// There is one consumer, and the producer may be held by it.
    pub single_consumer: bool,
}

/// What a consumer declares of an input.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize,
)]
pub struct ConsumerFlags {
    /// The input may be read before it is complete.
    pub may_stream: bool,
    /// A read must block until there are bytes, as in a pipe.
    pub must_block: bool,
    /// The consumer's store need not keep a copy.
    pub no_store: bool,
}

/// What a consumer wishes: the mode that follows from the flags of both ends, or one by name; and
/// how much is to be new when it is woken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum Wish {
    /// The mode that [`Mode::choose`] gives.
    Flags(ConsumerFlags),
    /// This mode, whatever the flags are.
    Named(Mode),
    /// So many new bytes at least while there will be more, at most
    /// [`STREAM_GRANULARITY_BYTES_MAX`](crate::limits::STREAM_GRANULARITY_BYTES_MAX); it may stand
    /// beside a wish for the mode (ciel-programming-models §6.1).
    Granularity(u64),
}

/// What a task says of the streams that it writes and reads.
#[derive(Clone, PartialEq, Eq, Debug, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct Streams {
    /// The outputs that others may read while it writes them, by index, in order.
    pub outputs: Vec<u32>,
    /// Each has one reader, so its bytes need not be stored.
    pub single_consumer: bool,
    /// The mode for readers that wish for none.
    pub mode: Option<Mode>,
    /// What it wishes for as a reader, by the index of its input: a mode, a granularity, or both.
    /// The mode of inputs that have none here is what their producers say.
    pub wishes: Vec<(u32, Wish)>,
}

/// Most tasks have no streams.
impl Usual for Streams {
    fn usual() -> &'static Streams {
        static NONE: LazyLock<Streams> = LazyLock::new(Streams::default);
        &NONE
    }
}

impl Streams {
    /// What this task declares of one of its outputs.
    pub fn flags_of(&self, output: u32) -> ProducerFlags {
        ProducerFlags {
            may_stream: self.outputs.contains(&output),
            single_consumer: self.single_consumer,
        }
    }

    /// The mode in which this task reads that input, which is that output of a task with
    /// `producer`.
    pub fn mode_from(&self, input: u32, (producer, output): (&Streams, u32)) -> Mode {
        let mut wishes = self.wishes_of(input);
        let wish = wishes.find(|wish| !matches!(wish, Wish::Granularity(_)));
        let wish = wish.or(producer.mode.map(Wish::Named));
        let flags = producer.flags_of(output);
        match wish {
            Some(wish) => wish.mode(flags),
            None => as_given(flags),
        }
    }

    /// New bytes after which this task is woken as the reader of that input, while there will be
    /// more: one unless it wishes for another number.
    pub fn granularity_of(&self, input: u32) -> u64 {
        let mut wishes = self.wishes_of(input);
        let wished = wishes.find_map(|wish| match wish {
            Wish::Granularity(bytes) => Some(bytes),
            Wish::Flags(_) | Wish::Named(_) => None,
        });
        wished.unwrap_or(1)
    }

    fn wishes_of(&self, input: u32) -> impl Iterator<Item = Wish> {
        let wishes = self.wishes.iter();
        wishes.filter_map(move |(index, wish)| (*index == input).then_some(*wish))
    }
}

impl Wish {
    /// The mode that is wished for of an output that was declared with `producer`.
    pub fn mode(self, producer: ProducerFlags) -> Mode {
        match self {
            Wish::Flags(consumer) => Mode::choose(producer, consumer),
            Wish::Named(mode) => mode,
            Wish::Granularity(_) => as_given(producer),
        }
    }
}

/// The mode of a consumer that takes what is given.
fn as_given(producer: ProducerFlags) -> Mode {
    let consumer = ConsumerFlags {
        may_stream: true,
        must_block: true,
        no_store: producer.single_consumer,
    };
    Mode::choose(producer, consumer)
}

/// A name that no mode has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no mode of streams is named {name:?}; the modes are {modes}", modes = known())]
pub struct UnknownMode {
    /// The name.
    pub name: String,
}

fn known() -> String {
    Mode::ALL.map(Mode::name).join(", ")
}

impl Mode {
    /// All modes, from the most careful one to the quickest.
    pub const ALL: [Mode; 6] = [
        Mode::NoStream,
        Mode::Overlap,
        Mode::IndirectFile,
        Mode::IndirectPipe,
        Mode::IndirectTcp,
        Mode::Direct,
    ];

    /// The mode for these two ends: the quickest that both allow. A flag without the one that it
    /// builds on has no effect: without `may_stream` of the consumer nothing streams.
    pub fn choose(producer: ProducerFlags, consumer: ConsumerFlags) -> Mode {
        if !consumer.may_stream {
            return Mode::NoStream;
        }
        if !producer.may_stream {
            return Mode::Overlap;
        }
        match (
            consumer.no_store,
            producer.single_consumer,
            consumer.must_block,
        ) {
            (true, true, _) => Mode::Direct,
            (true, false, _) => Mode::IndirectTcp,
            (false, _, true) => Mode::IndirectPipe,
            (false, _, false) => Mode::IndirectFile,
        }
    }

    /// The name, as in the papers.
    pub fn name(self) -> &'static str {
        match self {
            Mode::NoStream => "no_stream",
            Mode::Overlap => "overlap",
            Mode::IndirectFile => "indirect_file",
            Mode::IndirectPipe => "indirect_pipe",
            Mode::IndirectTcp => "indirect_tcp",
            Mode::Direct => "direct",
        }
    }

    /// Whether the consumer may read before the producer has ended.
    pub fn follows_production(self) -> bool {
        !matches!(self, Mode::NoStream | Mode::Overlap)
    }

    /// Whether the consumer may read a copy before all of it has arrived.
    pub fn follows_transfer(self) -> bool {
        self != Mode::NoStream
    }

    /// Whether the producer's store has the object afterwards.
    pub fn stores_at_producer(self) -> bool {
        self != Mode::Direct
    }

    /// Whether the store of a consumer on another machine has a copy afterwards.
    pub fn stores_at_consumer(self) -> bool {
        !matches!(self, Mode::IndirectTcp | Mode::Direct)
    }

    /// The mode that serves the same consumer when the bytes are stored after all.
    pub fn stored(self) -> Mode {
        match self {
            Mode::Direct => Mode::IndirectTcp,
            other => other,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Mode, UnknownMode> {
        let known = Mode::ALL.into_iter().find(|mode| mode.name() == name);
        known.ok_or_else(|| UnknownMode {
            name: name.to_owned(),
        })
    }
}
