//! Room on the disk: how much of a run's budget its files take, and whose they are.
//!
//! While they take more than a *mark*, three quarters of the budget, tasks are held as they are
//! while too much output waits: all that have not begun, but the first one in serial order, and
//! whatever that waits for. What tasks in their slots make then is counted, and is not refused, so
//! the budget is exceeded by at most what was on its way when the mark was reached.
//!
//! # Why a job ends that the serial program could do within the budget
//!
//! `holds` shows that the first task is never held, and that each held one goes after a finite
//! time; so some task always runs. A task is refused its object only if it is the *first*, all
//! before it being final but the strands that it is beneath, and if what the serial program would
//! hold at this point does not fit, the object included. That is counted as all files that the
//! graph knows, without those of *later* tasks: strands that have a place behind the frontier. The
//! frontier lags while output before it is not released, and who made a file is not known after a
//! resume. Both make files count as later, so too little is counted and never too much. What the
//! engine has dropped and not removed from the disk yet is not among the files of the graph. So the
//! count is at most what the serial program holds, with two differences: what programs name is held
//! until they say that they do not, and a file that cannot be recomputed stays as long as what was
//! derived from it.
//!
//! Files in memory do not count, nor do those that were on the disk before the run. Which objects
//! are in memory depends on the order in which they are made: the argument is about a serial
//! program that has them all on the disk, and what is in memory only makes the count less.
//!
//! It does not know the disk: the caller says how many bytes are on it. Nothing of it is recorded.
//! Read next: `holds`, `pressed`.

use ciel_model::{HashTrie, Label, Name, StrandKey};

/// Of a budget, so many parts are the mark.
const MARK_PARTS: u64 = 3;

/// Parts of a budget.
const PARTS: u64 = 4;

/// Who made a file.
#[derive(Clone, Debug)]
pub(super) struct Maker {
    pub(super) label: Label,
    pub(super) strand: StrandKey,
}

/// The budget, what takes it, and who made that.
#[derive(Clone, Debug)]
pub(super) struct Room {
    budget_bytes: u64,
    present_bytes: u64,
    makers: HashTrie<Name, Maker>,
}

impl Room {
    pub(super) fn new(budget_bytes: u64) -> Room {
        Room {
            budget_bytes,
            present_bytes: 0,
            makers: HashTrie::default(),
        }
    }

    /// So many bytes are on the disk now.
    pub(super) fn set_present(&mut self, bytes: u64) {
        self.present_bytes = bytes;
    }

    /// Whether more is on the disk than the mark.
    pub(super) fn is_scarce(&self) -> bool {
        let mark = self.budget_bytes / PARTS * MARK_PARTS;
        self.present_bytes > mark
    }

    /// A task has made a file.
    pub(super) fn note(&mut self, name: Name, maker: Maker) {
        self.makers.insert(name, maker);
    }

    /// A file is not needed any more.
    pub(super) fn forget(&mut self, name: Name) {
        self.makers.remove(&name);
    }

    /// Who made a file, if that is known.
    pub(super) fn maker(&self, name: Name) -> Option<&Maker> {
        self.makers.get(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_scarce_above_three_quarters_of_the_budget() {
        let mut room = Room::new(100);
        room.set_present(75);
        assert!(!room.is_scarce());
        room.set_present(76);
        assert!(room.is_scarce());
        let mut none = Room::new(0);
        assert!(!none.is_scarce(), "nothing is on the disk");
        none.set_present(1);
        assert!(none.is_scarce());
    }
}
