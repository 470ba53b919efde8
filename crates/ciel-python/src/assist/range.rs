//! A range of calls, as the strand has it that has given it away.
//!
//! It takes values in their order, and withdraws calls from the end. A forked child has no part in
//! it. It knows no calls. Read next: `worker.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ciel_model::assist::{
    ARGUMENTS_AT, HEADER_AT, PART_HEAD_BYTES, Phase, SLOT_BYTES, Split, VALUES_AT,
};

use super::board::{ARGUMENTS_BYTES_AT, Board, HEADER_BYTES_AT, VALUES_BYTES_AT};

/// Between two times that a worker is woken for a range that none has begun.
const RING_PERIOD: Duration = Duration::from_millis(1);

/// A range that was given away.
pub struct Range {
    board: Arc<Board>,
    slot: usize,
    /// The process that has given it away.
    process: u32,
    /// Calls that the strand has not withdrawn.
    count: usize,
    /// How many of their values it has.
    received: usize,
    /// Bytes of values that were read.
    read: usize,
    /// When a worker was woken for it.
    rung: Instant,
}

/// What is found in a range at one look.
pub struct Found {
    /// Values that have come, as lists in bytes.
    pub parts: Vec<Vec<u8>>,
    /// How many values these are.
    pub count: usize,
    /// Whether no others come.
    pub is_over: bool,
    /// Whether that is since a call did not end as usual.
    pub has_failed: bool,
}

/// What a strand gives away.
pub struct Given<'a> {
    /// The header of the function.
    pub header: &'a [u8],
    /// The arguments of the calls, as a list of tuples in bytes.
    pub arguments: &'a [u8],
    /// How many calls these are.
    pub count: usize,
}

impl Range {
    /// Gives calls away; `None` if there is no room for them.
    pub fn give(board: &Arc<Board>, given: &Given<'_>) -> Option<Range> {
        let fits = HEADER_AT + given.header.len() <= ARGUMENTS_AT
            && ARGUMENTS_AT + given.arguments.len() <= VALUES_AT;
        if !fits {
            return None;
        }
        let slot = board.free_slot()?;
        let length = |at, bytes: &[u8]| {
            let length = bytes.len() as u32;
            board.number(slot, at).store(length, Ordering::Relaxed);
        };
        board.write(slot, HEADER_AT, given.header, ARGUMENTS_AT);
        board.write(slot, ARGUMENTS_AT, given.arguments, VALUES_AT);
        length(HEADER_BYTES_AT, given.header);
        length(ARGUMENTS_BYTES_AT, given.arguments);
        length(VALUES_BYTES_AT, &[]);
        board.begin_split(slot, given.count as u32);
        board.moves(slot, Phase::Filling, Phase::Ready);
        board.ring();
        Some(Range {
            board: Arc::clone(board),
            slot,
            process: std::process::id(),
            count: given.count,
            received: 0,
            read: 0,
            rung: Instant::now(),
        })
    }

    /// Calls whose values have not come.
    pub fn left(&self) -> usize {
        self.count - self.received
    }

    /// Takes what has come. If no worker has begun, now and then wakes one more.
    pub fn look(&mut self) -> Found {
        // The phase first: values may come before it changes, but not after.
        let phase = self.board.phase(self.slot);
        if phase == Phase::Ready && self.rung.elapsed() > RING_PERIOD {
            self.board.ring();
            self.rung = Instant::now();
        }
        let mut found = Found {
            parts: Vec::new(),
            count: 0,
            is_over: matches!(phase, Phase::Ended | Phase::Failed),
            has_failed: phase == Phase::Failed,
        };
        let values = self.board.number(self.slot, VALUES_BYTES_AT);
        let complete = values.load(Ordering::Acquire) as usize;
        while self.read < complete {
            let Some((count, part)) = self.next_part(complete) else {
                (found.is_over, found.has_failed) = (true, true);
                break;
            };
            found.count += count;
            found.parts.push(part);
        }
        self.received += found.count;
        found.is_over |= self.left() == 0;
        found
    }

    fn next_part(&mut self, complete: usize) -> Option<(usize, Vec<u8>)> {
        let at = VALUES_AT + self.read;
        let head = self
            .board
            .read(self.slot, at, PART_HEAD_BYTES, SLOT_BYTES)?;
        let number = |at| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?) as usize);
        let (count, length) = (number(0)?, number(4)?);
        let at = at + PART_HEAD_BYTES;
        let part = self.board.read(self.slot, at, length, SLOT_BYTES)?;
        self.read += PART_HEAD_BYTES + length;
        (self.read <= complete && count <= self.left()).then_some((count, part))
    }

    /// Withdraws the last half of the calls that have not begun: how many of the last ones are the
    /// strand's again. None if the range itself is to be withdrawn, as no worker has it, or all
    /// have begun.
    pub fn withdraw(&mut self) -> usize {
        if self.board.phase(self.slot) == Phase::Ready {
            return 0;
        }
        let Some((before, after)) = self.board.divide(self.slot, Split::halved) else {
            return 0;
        };
        let count = (before.count - after.count) as usize;
        self.count -= count.min(self.left());
        count
    }
}

impl Drop for Range {
    /// Nobody wants its values any more.
    fn drop(&mut self) {
        if std::process::id() != self.process {
            return;
        }
        let board = &self.board;
        let leaves = [
            (Phase::Ready, Phase::Free),
            (Phase::Taken, Phase::Left),
            (Phase::Ended, Phase::Free),
            (Phase::Failed, Phase::Free),
        ];
        // A range goes through these in this order.
        leaves
            .into_iter()
            .any(|(from, to)| board.moves(self.slot, from, to));
    }
}
