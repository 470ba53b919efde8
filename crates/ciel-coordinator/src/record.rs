//! Records: the inputs of a coordinator, as bytes.
//!
//! The spelling is postcard's: numbers as variable-length integers, enumerations by the number of
//! their variant. There are no names of fields, so a field more makes all older records unreadable;
//! [`RECORD_FORMAT`] numbers such encodings. Read next: `coordinator`, which folds records.

use ciel_graph::{Event, Policy};
use ciel_model::{Micros, StrandKey};
use ciel_ordered::{Piece, Sink};
use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

/// The version of the format of records and snapshots. It increases when an existing record would
/// be read or folded differently; runs of another version are not resumed. A variant at the end of
/// its enumeration changes nothing for older records.
pub const RECORD_FORMAT: u32 = 18;

/// One thing that happened. The first record of a run is `Began`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub enum Record {
    /// A run begins.
    Began {
        /// What a failure does.
        policy: Policy,
        /// Standard error is ordered like standard output.
        ordered_errors: bool,
    },
    /// An event for the graph.
    Event {
        /// Time at which the event was handled.
        now: Micros,
        /// The event itself, before the graph changed anything.
        event: Event,
    },
    /// A strand wrote to its ordered output.
    Wrote {
        /// Which strand.
        strand: StrandKey,
        /// Actions of the strand before this.
        after: u64,
        /// The bytes written, or their extent on disk.
        piece: Piece,
    },
    /// A strand wrote to its ordered standard error.
    WroteError {
        /// Which strand.
        strand: StrandKey,
        /// Actions of the strand before this.
        after: u64,
        /// The bytes written, or their extent on disk.
        piece: Piece,
    },
    /// A task has named an ordered file for the first time. Its sink has the next number, the first
    /// of which is 1.
    Opened {
        /// The file's canonical path.
        path: String,
    },
    /// A strand wrote to an ordered file.
    WroteFile {
        /// Which strand.
        strand: StrandKey,
        /// Actions of the strand before this.
        after: u64,
        /// Which file.
        sink: Sink,
        /// The bytes written, or their extent on disk.
        piece: Piece,
    },
}

/// The same by reference, so that nothing is copied only to be written down.
#[derive(Serialize)]
pub(crate) enum Spelled<'a> {
    Began {
        policy: Policy,
        ordered_errors: bool,
    },
    Event {
        now: Micros,
        event: &'a Event,
    },
    Wrote {
        strand: StrandKey,
        after: u64,
        piece: &'a Piece,
    },
    WroteError {
        strand: StrandKey,
        after: u64,
        piece: &'a Piece,
    },
    Opened {
        path: &'a str,
    },
    WroteFile {
        strand: StrandKey,
        after: u64,
        sink: Sink,
        piece: &'a Piece,
    },
}

impl Spelled<'_> {
    /// Appends the record's bytes.
    pub(crate) fn append_to(&self, bytes: &mut Vec<u8>) {
        postcard::serialize_with_flavor(self, Appended(bytes))
            .expect("a record in memory can be encoded");
    }
}

/// Bytes at the end of others, a run of them at a time.
struct Appended<'a>(&'a mut Vec<u8>);

impl Flavor for Appended<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

impl Record {
    /// Appends the record's bytes.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        let spelled = match *self {
            Record::Began {
                policy,
                ordered_errors,
            } => Spelled::Began {
                policy,
                ordered_errors,
            },
            Record::Event { now, ref event } => Spelled::Event { now, event },
            Record::Wrote {
                strand,
                after,
                ref piece,
            } => Spelled::Wrote {
                strand,
                after,
                piece,
            },
            Record::WroteError {
                strand,
                after,
                ref piece,
            } => Spelled::WroteError {
                strand,
                after,
                piece,
            },
            Record::Opened { ref path } => Spelled::Opened { path },
            Record::WroteFile {
                strand,
                after,
                sink,
                ref piece,
            } => Spelled::WroteFile {
                strand,
                after,
                sink,
                piece,
            },
        };
        spelled.append_to(bytes);
    }

    /// A record from its bytes; `None` if they are none.
    pub fn read(bytes: &[u8]) -> Option<Record> {
        match postcard::take_from_bytes(bytes) {
            Ok((record, [])) => Some(record),
            Ok(_) | Err(_) => None,
        }
    }
}
