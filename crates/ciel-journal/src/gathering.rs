//! Where records wait for the next write: a buffer, and what is to happen between its bytes.
//!
//! It does no I/O; its lock is held for the length of one append. Read next: `writing`, which
//! takes what has gathered.

use crate::frame::{PayloadTooLong, Sequence, put_end, put_record, put_sync_mark};
use crate::limits::BUFFER_BYTES_KEPT_MAX;

/// Something to be done once a record is safe.
pub(crate) type Act = Box<dyn FnOnce() + Send>;

/// What has gathered since the last write.
pub(crate) struct Gathering {
    batch: Batch,
    generation: u64,
    /// Bytes of all frames ever appended, with those found at the opening.
    total_bytes: u64,
    has_stopped: bool,
    acts: Vec<(Sequence, Act)>,
    pub(crate) writer: Writer,
    pub(crate) is_snapshot_open: bool,
}

/// What the writer thread is doing, as far as others must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// It will look here by itself.
    Awake,
    /// It must be woken.
    Asleep,
    /// It has ended or is to end.
    Ended,
}

/// Frames to be written, and where among them a new log begins.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) switches: Vec<Switch>,
    /// The last record appended when the batch was taken.
    pub(crate) last: Sequence,
}

/// The beginning of a new log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Switch {
    /// Bytes of the batch that still belong to the log before.
    pub(crate) at: usize,
    pub(crate) generation: u64,
    pub(crate) base: Sequence,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.switches.is_empty()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(BUFFER_BYTES_KEPT_MAX);
        self.switches.clear();
    }
}

impl Gathering {
    pub(crate) fn new(generation: u64, last: Sequence, total_bytes: u64) -> Gathering {
        let batch = Batch {
            last,
            ..Batch::default()
        };
        Gathering {
            batch,
            generation,
            total_bytes,
            has_stopped: false,
            acts: Vec::new(),
            writer: Writer::Awake,
            is_snapshot_open: false,
        }
    }

    /// Appends a record, or only counts it after a stop. Returns whether it was too long.
    #[inline]
    pub(crate) fn append(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> (Sequence, Result<(), PayloadTooLong>) {
        let sequence = self.batch.last.next();
        let start = self.batch.bytes.len();
        let outcome = if self.has_stopped {
            Ok(())
        } else {
            put_record(&mut self.batch.bytes, sequence, encode)
        };
        self.batch.last = sequence;
        self.total_bytes += (self.batch.bytes.len() - start) as u64;
        (sequence, outcome)
    }

    /// Notes that everything up to a record was synced, and of the log of that generation as much.
    pub(crate) fn mark(&mut self, synced: Sequence, generation: u64, synced_bytes: u64) {
        let is_same_log = generation == self.generation;
        let synced_bytes = if is_same_log { synced_bytes } else { 0 };
        if !self.has_stopped {
            put_sync_mark(&mut self.batch.bytes, synced, synced_bytes);
        }
    }

    /// Marks that no record follows.
    pub(crate) fn end(&mut self) {
        if !self.has_stopped {
            put_end(&mut self.batch.bytes, self.batch.last);
        }
    }

    /// Lets all that is appended from now on belong to a new log; gives its generation and the
    /// last record before it.
    pub(crate) fn switch(&mut self) -> (u64, Sequence) {
        self.generation += 1;
        let switch = Switch {
            at: self.batch.bytes.len(),
            generation: self.generation,
            base: self.batch.last,
        };
        if !self.has_stopped {
            self.batch.switches.push(switch);
        }
        (switch.generation, switch.base)
    }

    /// Takes everything and leaves the spare batch to gather in.
    pub(crate) fn take(&mut self, mut spare: Batch) -> Batch {
        spare.clear();
        spare.last = self.batch.last;
        std::mem::replace(&mut self.batch, spare)
    }

    /// From now on records are counted and not kept.
    pub(crate) fn stop(&mut self) {
        self.has_stopped = true;
        self.batch.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    pub(crate) fn last(&self) -> Sequence {
        self.batch.last
    }

    pub(crate) fn put_act(&mut self, until: Sequence, act: Act) {
        self.acts.push((until, act));
    }

    pub(crate) fn has_acts(&self) -> bool {
        !self.acts.is_empty()
    }

    pub(crate) fn has_due_acts(&self, safe: Sequence) -> bool {
        self.acts.iter().any(|(until, _)| *until <= safe)
    }

    /// Takes out what can never be done: after a stop, all that is not due. To be dropped where
    /// no lock is held, because an act may own anything, even the journal.
    #[must_use = "to be dropped without the lock"]
    pub(crate) fn take_hopeless_acts(&mut self, safe: Sequence) -> Vec<(Sequence, Act)> {
        if !self.has_stopped {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.acts);
        let (due, rest) = all.into_iter().partition(|(until, _)| *until <= safe);
        self.acts = due;
        rest
    }

    /// Takes out what may be done now, in the order in which it was put in.
    pub(crate) fn take_due_acts(&mut self, safe: Sequence) -> Vec<Act> {
        let all = std::mem::take(&mut self.acts);
        let (due, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(until, _)| *until <= safe);
        self.acts = rest;
        due.into_iter().map(|(_, act)| act).collect()
    }
}
