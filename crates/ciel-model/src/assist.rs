//! Where engine and workers find the calls of which an idle worker may compute a part: the layout
//! of memory that they share.
//!
//! A strand that has many short calls, of a function that leaves nothing behind, writes a range of
//! them into a slot. A worker that has nothing to do takes it and computes its calls from the
//! front, in small steps, while the strand may withdraw calls from the end. Nothing of that is
//! recorded, and nobody depends on it: what does not come is computed by the strand. Who dies with
//! a slot loses it, until somebody who finds none looks whether both of its processes live. This
//! module knows no memory, and no calls.

/// Slots for ranges.
pub const SLOTS: usize = 64;

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 256 << 10;

/// Where the first slot is in the file of the idle cores, behind that.
pub const SLOTS_AT: usize = 4 << 10;

/// Where the phases of the slots are, numbers of 32 bits.
pub const PHASES_AT: usize = 1 << 10;

/// Bytes of that file.
pub const FILE_BYTES: usize = SLOTS_AT + SLOTS * SLOT_BYTES;

/// Where the arguments begin in a slot, behind numbers and the header of the function.
pub const ARGUMENTS_AT: usize = 2 << 10;

/// Where the values begin, in parts.
pub const VALUES_AT: usize = 96 << 10;

/// Where the header of the function begins.
pub const HEADER_AT: usize = 64;

/// Bytes that precede a part of the values: how many they are, and their bytes.
pub const PART_HEAD_BYTES: usize = 8;

/// Who may do what with a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// Nobody uses it.
    Free,
    /// A strand writes a range.
    Filling,
    /// A worker may take the range.
    Ready,
    /// A worker computes.
    Taken,
    /// It still does, but nobody wants the values.
    Left,
    /// It computes no more of them.
    Ended,
    /// As `Ended`: a call has raised an exception, or has given a value that is not plain.
    Failed,
}

impl Phase {
    /// What such a number says; a number that says nothing is no free slot.
    pub fn of(number: u32) -> Phase {
        let phases = [
            Phase::Free,
            Phase::Filling,
            Phase::Ready,
            Phase::Taken,
            Phase::Left,
            Phase::Ended,
        ];
        let found = phases.into_iter().find(|phase| *phase as u32 == number);
        found.unwrap_or(Phase::Failed)
    }

    /// Whether a slot is lost whose strand, and whose worker, lives or does not.
    pub fn is_lost(self, has_owner: bool, has_worker: bool) -> bool {
        match self {
            Phase::Free => false,
            Phase::Filling | Phase::Ready | Phase::Ended | Phase::Failed => !has_owner,
            Phase::Taken => !has_owner && !has_worker,
            Phase::Left => !has_worker,
        }
    }
}

/// Which calls of a range have begun, from the front, and how many there are, as the strand
/// withdraws some from the end: one number of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Calls that have begun.
    pub begun: u32,
    /// All calls.
    pub count: u32,
}

impl Split {
    /// None of so many calls has begun.
    pub fn of(count: u32) -> Split {
        Split { begun: 0, count }
    }

    /// The number that is shared.
    pub fn to_bits(self) -> u64 {
        u64::from(self.begun) << 32 | u64::from(self.count)
    }

    /// What such a number says.
    pub fn from_bits(bits: u64) -> Split {
        Split {
            begun: (bits >> 32) as u32,
            count: bits as u32,
        }
    }

    /// Calls that have not begun.
    pub fn left(self) -> u32 {
        self.count.saturating_sub(self.begun)
    }

    /// The next ones begin, at most so many; none if there are none.
    pub fn begun(self, calls_max: u32) -> Option<Split> {
        let begun = self.begun + self.left().min(calls_max);
        (begun > self.begun).then_some(Split { begun, ..self })
    }

    /// The strand withdraws the last half of those that have not begun; none if there are none.
    pub fn halved(self) -> Option<Split> {
        let left = self.left();
        (left > 0).then_some(Split {
            count: self.begun + left / 2,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_begun_or_withdrawn_once() {
        let mut split = Split::of(100);
        let (mut begun, mut taken) = (0, 0);
        for step in 0.. {
            let next = match step % 3 {
                0 => split.halved(),
                _ => split.begun(7),
            };
            let Some(next) = next else {
                break;
            };
            begun += next.begun - split.begun;
            taken += split.count - next.count;
            split = Split::from_bits(next.to_bits());
            assert_eq!(split, next);
        }
        assert_eq!((split.left(), begun + taken), (0, 100));
    }

    #[test]
    fn last_call_can_be_withdrawn() {
        let split = Split { begun: 3, count: 4 };
        assert_eq!(split.halved(), Some(Split { begun: 3, count: 3 }));
        assert_eq!(Split { begun: 3, count: 3 }.halved(), None);
    }

    #[test]
    fn slot_is_lost_with_those_who_would_free_it() {
        assert!(!Phase::Free.is_lost(false, false));
        assert!(Phase::Ready.is_lost(false, true));
        assert!(!Phase::Taken.is_lost(false, true));
        assert!(!Phase::Taken.is_lost(true, false), "its strand notices");
        assert!(Phase::Left.is_lost(true, false));
        assert!(Phase::Ended.is_lost(false, true));
    }

    #[test]
    fn numbers_are_phases() {
        for phase in [Phase::Free, Phase::Ready, Phase::Left, Phase::Failed] {
            assert_eq!(Phase::of(phase as u32), phase);
        }
        assert_ne!(Phase::of(77), Phase::Free);
    }
}
