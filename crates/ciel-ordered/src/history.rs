//! What an open strand has written since its last mark, small enough to keep: lengths and
//! fingerprints, with which a replay is compared.
//!
//! The output since the mark is a path through (own bytes, points), where a point is a child. A
//! checkpoint fixes one place on that path and the fingerprint of the
//! stretch before it. A replay must pass through every checkpoint with the same fingerprints; its
//! bytes are not stored again. This module does not know where the pieces are or whether they
//! have been released. Read next: `stream`.

use crate::fingerprint::Fingerprint;
use crate::limits::{CHECKPOINT_BYTES_MAX, CHECKPOINT_POINTS_MAX};
use crate::piece::{Piece, Sink};

/// A place on the path of a strand's output, and the fingerprint since the last checkpoint.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Progress {
    bytes: u64,
    points: u64,
    stretch: Fingerprint,
    /// The sink of the last piece of the stretch.
    sink: Option<Sink>,
}

impl Progress {
    fn start() -> Progress {
        Progress {
            bytes: 0,
            points: 0,
            stretch: Fingerprint::new(),
            sink: None,
        }
    }

    fn begin_stretch(&mut self) {
        self.stretch = Fingerprint::new();
        self.sink = None;
    }

    fn take_piece(&mut self, sink: Sink, piece: &Piece, from: u64, length: u64) {
        self.bytes += length;
        if self.sink != Some(sink) {
            self.sink = Some(sink);
            self.stretch.absorb_sink(sink.0);
        }
        match piece {
            Piece::Bytes(bytes) => {
                self.stretch
                    .absorb(&bytes[from as usize..(from + length) as usize]);
            }
            Piece::Extent(_) => self.stretch.absorb_unknown(),
        }
    }

    fn take_point(&mut self, key: u64) {
        self.points += 1;
        self.stretch.absorb_point(key);
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            bytes: self.bytes,
            points: self.points,
            value: self.stretch.value(),
        }
    }
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Checkpoint {
    bytes: u64,
    points: u64,
    value: Option<[u64; 2]>,
}

impl Checkpoint {
    /// Equal as far as both are known.
    fn agrees(&self, other: &Checkpoint) -> bool {
        self.value.is_none() || other.value.is_none() || self.value == other.value
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
enum Run {
    /// All output is new.
    First,
    /// Output is compared; `next` is the next checkpoint, one past the last for the end.
    Again { at: Progress, next: usize },
    /// The replay differed.
    Diverged,
}

/// Why an act does not fit the history. Offsets count the strand's own bytes from its start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HistoryError {
    /// The replay differs; everything before this byte agreed.
    Mismatch(u64),
    /// It had differed before.
    Diverged,
}

/// The history of one strand since its last mark.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct History {
    bytes_before_mark: u64,
    end: Progress,
    checkpoints: Vec<Checkpoint>,
    run: Run,
}

impl History {
    pub(crate) fn new() -> History {
        History {
            bytes_before_mark: 0,
            end: Progress::start(),
            checkpoints: Vec::new(),
            run: Run::First,
        }
    }

    /// Takes a piece that the strand writes now; returns how many of its first bytes repeat earlier
    /// ones. The rest is recorded as new.
    pub(crate) fn take_piece(&mut self, sink: Sink, piece: &Piece) -> Result<u64, HistoryError> {
        let known = self.compare_piece(sink, piece)?;
        if known < piece.length() {
            let length = piece.length() - known;
            self.end.take_piece(sink, piece, known, length);
            if self.stretch_length().0 >= CHECKPOINT_BYTES_MAX {
                self.lay_checkpoint();
            }
        }
        Ok(known)
    }

    /// Takes a child at this point; returns whether it repeats an earlier one.
    pub(crate) fn take_point(&mut self, key: u64) -> Result<bool, HistoryError> {
        match &mut self.run {
            Run::Diverged => Err(HistoryError::Diverged),
            Run::First => {
                self.end.take_point(key);
                let (bytes, points) = self.stretch_length();
                if bytes > 0 || points >= CHECKPOINT_POINTS_MAX {
                    self.lay_checkpoint();
                }
                Ok(false)
            }
            Run::Again { at, next } => {
                if at.points == target(&self.checkpoints, &self.end, *next).points {
                    return Err(self.diverge());
                }
                at.take_point(key);
                self.pass_checkpoints()?;
                Ok(true)
            }
        }
    }

    /// Checks that nothing known is missing when the strand ends or is marked.
    pub(crate) fn expect_complete(&mut self) -> Result<(), HistoryError> {
        match self.run {
            Run::First | Run::Diverged => Ok(()),
            Run::Again { .. } => Err(self.diverge()),
        }
    }

    /// Whether it is replayed and has not yet repeated all of its output.
    pub(crate) fn is_behind(&self) -> bool {
        !matches!(self.run, Run::First)
    }

    /// From here on replays begin at this point.
    pub(crate) fn mark(&mut self) {
        self.bytes_before_mark += self.end.bytes;
        self.forget_since_mark();
    }

    /// The output since the mark was withdrawn.
    pub(crate) fn forget_since_mark(&mut self) {
        self.end = Progress::start();
        self.checkpoints = Vec::new();
        self.run = Run::First;
    }

    /// The strand is replayed from the last mark; so many bytes and points at the end of what came
    /// since are withdrawn.
    pub(crate) fn roll_back(&mut self, bytes: u64, points: u64) {
        if bytes > 0 || points > 0 {
            self.cut_end(bytes, points);
        }
        let nothing_known = self.end.bytes == 0 && self.end.points == 0;
        self.run = match nothing_known {
            true => Run::First,
            false => Run::Again {
                at: Progress::start(),
                next: 0,
            },
        };
    }

    /// Takes bytes and points away from the end. The fingerprint of the stretch that is cut is not
    /// known: of it a replay is compared in length only.
    fn cut_end(&mut self, bytes: u64, points: u64) {
        let end = &mut self.end;
        (end.bytes, end.points) = (end.bytes - bytes, end.points - points);
        self.checkpoints
            .retain(|laid| laid.bytes <= end.bytes && laid.points <= end.points);
        end.begin_stretch();
        if self.stretch_length() != (0, 0) {
            self.end.stretch.absorb_unknown();
        }
    }

    fn compare_piece(&mut self, sink: Sink, piece: &Piece) -> Result<u64, HistoryError> {
        let mut known = 0;
        while known < piece.length() {
            match &mut self.run {
                Run::First => break,
                Run::Diverged => return Err(HistoryError::Diverged),
                Run::Again { at, next } => {
                    let room = target(&self.checkpoints, &self.end, *next).bytes - at.bytes;
                    if room == 0 {
                        return Err(self.diverge());
                    }
                    let length = room.min(piece.length() - known);
                    at.take_piece(sink, piece, known, length);
                    known += length;
                    self.pass_checkpoints()?;
                }
            }
        }
        Ok(known)
    }

    /// Compares at each checkpoint that the replay stands on; at the end of what is known the
    /// replay is over.
    fn pass_checkpoints(&mut self) -> Result<(), HistoryError> {
        while let Run::Again { at, next } = &mut self.run {
            let ahead = target(&self.checkpoints, &self.end, *next);
            if (at.bytes, at.points) != (ahead.bytes, ahead.points) {
                return Ok(());
            }
            if !ahead.agrees(&at.checkpoint()) {
                return Err(self.diverge());
            }
            at.begin_stretch();
            *next += 1;
            if *next > self.checkpoints.len() {
                self.run = Run::First;
            }
        }
        Ok(())
    }

    fn lay_checkpoint(&mut self) {
        self.checkpoints.push(self.end.checkpoint());
        self.end.begin_stretch();
    }

    /// Bytes and points since the last checkpoint.
    fn stretch_length(&self) -> (u64, u64) {
        let last = self
            .checkpoints
            .last()
            .map_or((0, 0), |last| (last.bytes, last.points));
        (self.end.bytes - last.0, self.end.points - last.1)
    }

    /// The offset is that of the last checkpoint that agreed: the difference is after it.
    fn diverge(&mut self) -> HistoryError {
        let passed = match &self.run {
            Run::Again { next, .. } => *next,
            Run::First | Run::Diverged => 0,
        };
        let agreed = passed
            .checked_sub(1)
            .map_or(0, |last| self.checkpoints[last].bytes);
        self.run = Run::Diverged;
        HistoryError::Mismatch(self.bytes_before_mark + agreed)
    }
}

/// The place ahead of a replay: a checkpoint, or the end of what is known.
fn target(checkpoints: &[Checkpoint], end: &Progress, next: usize) -> Checkpoint {
    checkpoints
        .get(next)
        .cloned()
        .unwrap_or_else(|| end.checkpoint())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(history: &mut History, text: &str) -> Result<u64, HistoryError> {
        write_to(history, Sink::OUTPUT, text)
    }

    fn write_to(history: &mut History, sink: Sink, text: &str) -> Result<u64, HistoryError> {
        history.take_piece(sink, &Piece::Bytes(text.as_bytes().to_vec()))
    }

    fn two_runs_of_text_and_a_child() -> History {
        let mut history = History::new();
        write(&mut history, "before").unwrap();
        history.take_point(1).unwrap();
        write(&mut history, "after").unwrap();
        history.roll_back(0, 0);
        history
    }

    #[test]
    fn equal_replay_cut_otherwise_is_known_and_what_follows_is_new() {
        let mut history = two_runs_of_text_and_a_child();
        assert_eq!(write(&mut history, "be"), Ok(2));
        assert_eq!(write(&mut history, "fore"), Ok(4));
        assert_eq!(history.take_point(1), Ok(true));
        assert_eq!(write(&mut history, "after that"), Ok(5));
        assert_eq!(history.take_point(2), Ok(false));
    }

    #[test]
    fn replay_with_other_bytes_is_reported_from_the_last_checkpoint_that_agreed() {
        let mut history = two_runs_of_text_and_a_child();
        write(&mut history, "before").unwrap();
        history.take_point(1).unwrap();
        assert_eq!(write(&mut history, "AFTER"), Err(HistoryError::Mismatch(6)));
        assert_eq!(write(&mut history, "more"), Err(HistoryError::Diverged));
    }

    #[test]
    fn replay_that_writes_to_another_sink_is_reported() {
        let mut history = History::new();
        write_to(&mut history, Sink(1), "to the log").unwrap();
        history.take_point(1).unwrap();
        history.roll_back(0, 0);
        write_to(&mut history, Sink(2), "to the log").unwrap();
        assert_eq!(history.take_point(1), Err(HistoryError::Mismatch(0)));
    }

    #[test]
    fn replay_with_the_same_sinks_cut_otherwise_is_known() {
        let mut history = History::new();
        for (sink, text) in [(1, "one"), (2, "two"), (1, "three")] {
            write_to(&mut history, Sink(sink), text).unwrap();
        }
        history.take_point(1).unwrap();
        history.roll_back(0, 0);
        for (sink, text) in [(1, "o"), (1, "ne"), (2, "tw"), (2, "o"), (1, "three")] {
            assert_eq!(
                write_to(&mut history, Sink(sink), text),
                Ok(text.len() as u64)
            );
        }
        assert_eq!(history.take_point(1), Ok(true));
    }

    #[test]
    fn replay_without_the_child_is_reported() {
        let mut history = two_runs_of_text_and_a_child();
        assert_eq!(
            write(&mut history, "beforeafter"),
            Err(HistoryError::Mismatch(0))
        );
    }

    #[test]
    fn replay_that_ends_early_is_reported() {
        let mut history = two_runs_of_text_and_a_child();
        write(&mut history, "bef").unwrap();
        assert_eq!(history.expect_complete(), Err(HistoryError::Mismatch(0)));
    }

    #[test]
    fn replay_against_an_extent_compares_its_length_only() {
        let mut history = History::new();
        let extent = crate::piece::Extent {
            blob: 0,
            offset: 0,
            length: 4,
        };
        let piece = Piece::Extent(extent);
        history.take_piece(Sink::OUTPUT, &piece).unwrap();
        history.take_point(1).unwrap();
        history.roll_back(0, 0);
        assert_eq!(write(&mut history, "four"), Ok(4));
        assert_eq!(history.take_point(1), Ok(true));
        assert_eq!(history.expect_complete(), Ok(()));
    }

    #[test]
    fn replay_after_a_mark_begins_at_the_mark() {
        let mut history = History::new();
        write(&mut history, "first task").unwrap();
        history.mark();
        write(&mut history, "second").unwrap();
        history.roll_back(0, 0);
        assert_eq!(write(&mut history, "sec"), Ok(3));
        assert_eq!(write(&mut history, "OND"), Err(HistoryError::Mismatch(10)));
    }

    #[test]
    fn long_output_is_compared_now_and_then() {
        let line = "x".repeat(CHECKPOINT_BYTES_MAX as usize);
        let mut history = History::new();
        (0..3).for_each(|_| assert_eq!(write(&mut history, &line), Ok(0)));
        history.roll_back(0, 0);
        assert_eq!(write(&mut history, &line), Ok(CHECKPOINT_BYTES_MAX));
        let other = "y".repeat(CHECKPOINT_BYTES_MAX as usize);
        assert_eq!(
            write(&mut history, &other),
            Err(HistoryError::Mismatch(CHECKPOINT_BYTES_MAX))
        );
    }

    #[test]
    fn many_children_without_writes_share_checkpoints() {
        let mut history = History::new();
        (0..6400).for_each(|key| assert_eq!(history.take_point(key), Ok(false)));
        assert_eq!(history.checkpoints.len(), 100);
    }
}
