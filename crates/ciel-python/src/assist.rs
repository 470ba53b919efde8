//! Calls that idle workers compute for the strand that keeps them.
//!
//! A function that leaves nothing behind gives the same value in any worker. So a strand that keeps
//! many short calls of one, while cores are idle, writes a range of them into memory that all
//! workers map (`board.rs`); one that has nothing to do computes values from the front
//! (`worker.rs`), and the strand takes them, or withdraws calls (`range.rs`). For the engine such
//! calls have run in place: it hears nothing of it, so nothing is recorded, and a replay computes
//! them again. Whatever does not go as usual (a call raises an exception, or gives what is not
//! plain; a message comes for the worker; it is killed) ends the range: the strand computes what is
//! left, as if it had never asked. It never waits for a value: it computes it, too.
//!
//! It does not know which calls these are. Read next: `stack/ahead.rs`, `stack/early.rs`,
//! `sdk/python/ciel/_assist.py`, [`ciel_model::assist`].

mod board;
mod pickles;
mod range;
mod worker;

pub use self::board::Board;
pub use self::pickles::{values_of, written};
pub use self::range::{Given, Range};
pub use self::worker::{Assistant, Work};

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time of one call from which on others may compute it: to write it, and to read its value, takes
/// a third of that.
pub const CALL_MIN: Duration = Duration::from_micros(1);

/// Time of a range, at least: to wake a worker takes half of that.
const RANGE_MIN: Duration = Duration::from_micros(100);

/// Time of a range, about, at most.
const RANGE_MAX: Duration = Duration::from_millis(2);

/// Ranges for each idle core: while one is computed, another one waits.
const RANGES_PER_CORE: usize = 2;

/// What idle workers compute for the strands of this one.
pub struct Assists {
    /// None where there is no such memory.
    board: Option<Arc<Board>>,
    /// Time of one call from which on they may.
    call_min: Duration,
    /// Calls that they have computed.
    computed: AtomicU64,
}

impl Assists {
    /// Nothing so far, by the file of the idle cores.
    pub fn new(idle_path: Option<&Path>, call_min: Duration) -> Assists {
        let board = idle_path.and_then(|path| Board::open(path).ok());
        Assists {
            board: board.map(Arc::new),
            call_min,
            computed: AtomicU64::new(0),
        }
    }

    /// How many calls they have computed.
    pub fn computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    /// They have computed so many more.
    pub fn count(&self, calls: usize) {
        self.computed.fetch_add(calls as u64, Ordering::Relaxed);
    }

    /// Where calls can be given away.
    pub fn board(&self) -> Option<&Arc<Board>> {
        self.board.as_ref()
    }

    /// How many of so many calls that take `each` are to be given away now that `cores` are idle,
    /// and `ranges` have been; none if that is not worth it.
    pub fn share_of(&self, count: usize, each: Duration, cores: usize, ranges: usize) -> usize {
        if self.board.is_none() || ranges >= RANGES_PER_CORE * cores {
            return 0;
        }
        share_of(count, each, cores, self.call_min)
    }
}

/// How many of so many calls, which take `each`, are to be given away when `cores` are idle; none
/// if that is not worth it. `call_min` is the time of one from which on it may be.
fn share_of(count: usize, each: Duration, cores: usize, call_min: Duration) -> usize {
    if each < call_min {
        return 0;
    }
    let each = each.max(Duration::from_nanos(1)).as_nanos();
    let most = RANGE_MAX.as_nanos() / each;
    let share = (count / (cores + 1)).min(usize::try_from(most).unwrap_or(usize::MAX));
    let is_worth_it = call_min.is_zero() || share as u128 * each >= RANGE_MIN.as_nanos();
    if is_worth_it { share } else { 0 }
}
