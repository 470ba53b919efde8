//! What a task of a job computes, and which children it keeps.
//!
//! Halves visit a tree, left before right. A strand has a level for each call that it is
//! in, the outermost first, and in each the right half until that has begun. What runs in place of
//! the outermost one may become a task, which takes the inner levels along. It does not know time.
//! Read next: `world`.

use std::collections::VecDeque;

use ciel_model::Handle;

/// The right half of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// A call of so many halvings, which has not begun, and which one of all it is.
    Kept(u32, u64),
    /// A task.
    Promoted(Handle),
    /// It has begun, or ended.
    Taken,
}

/// What a strand does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// So many spawns, and one piece of work.
    Work {
        /// Spawns before it.
        spawns: u32,
    },
    /// It needs the result of a task.
    Wait(Handle),
    /// It has ended.
    End,
}

/// What has become of a strand of which a child has become a task.
#[derive(Clone, Debug)]
pub(super) struct Promoted {
    /// The strand of the child, which runs on.
    pub(super) child: Strand,
    /// What the spawner waits for.
    pub(super) handle: Handle,
    /// The other half and its halvings, if it had not begun.
    pub(super) other: Option<(Handle, u32)>,
}

/// The strand of one task.
#[derive(Clone, Debug)]
pub(super) struct Strand {
    /// Halvings of the next call.
    next: Option<u32>,
    levels: VecDeque<Right>,
    handles: u32,
    /// Calls so far.
    calls: u64,
}

impl Strand {
    /// A strand with so many halvings before it.
    pub(super) fn new(halvings: u32) -> Strand {
        Strand {
            next: Some(halvings),
            levels: VecDeque::new(),
            handles: 0,
            calls: 0,
        }
    }

    /// What it does next.
    pub(super) fn advance(&mut self) -> Move {
        if let Some(halvings) = self.next.take() {
            return self.descend(halvings);
        }
        while let Some(right) = self.levels.back_mut() {
            match std::mem::replace(right, Right::Taken) {
                Right::Kept(halvings, _) => return self.descend(halvings),
                Right::Promoted(handle) => return Move::Wait(handle),
                Right::Taken => drop(self.levels.pop_back()),
            }
        }
        Move::End
    }

    fn descend(&mut self, halvings: u32) -> Move {
        let first = self.calls;
        self.calls += u64::from(halvings);
        let kept = (0..halvings).rev().zip(first..);
        self.levels
            .extend(kept.map(|(halvings, number)| Right::Kept(halvings, number)));
        Move::Work {
            spawns: 2 * halvings,
        }
    }

    /// Whether something runs in place of it.
    pub(super) fn has_inside(&self) -> bool {
        !self.levels.is_empty()
    }

    /// Children that it keeps and that have not begun.
    pub(super) fn pending(&self) -> usize {
        let is_kept = |right: &&Right| matches!(right, Right::Kept(..));
        self.levels.iter().filter(is_kept).count()
    }

    /// Strands that have to become tasks before one of the children that it keeps can.
    pub(super) fn before_pending(&self) -> usize {
        let is_kept = |right: &Right| matches!(right, Right::Kept(..));
        self.levels.iter().position(is_kept).unwrap_or(0)
    }

    /// Calls so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Which one of all calls the first child is that it keeps.
    pub(super) fn first_pending(&self) -> Option<u64> {
        self.levels.iter().find_map(|right| match right {
            Right::Kept(_, number) => Some(*number),
            Right::Promoted(_) | Right::Taken => None,
        })
    }

    /// Makes tasks of what runs in place of it, and of its other half.
    pub(super) fn promote(&mut self) -> Promoted {
        let mut levels = std::mem::take(&mut self.levels);
        let mut right = levels.pop_front().expect("something runs in place of it");
        let handle = self.take_handle();
        let mut other = None;
        if let Right::Kept(halvings, _) = right {
            let promoted = self.take_handle();
            other = Some((promoted, halvings));
            right = Right::Promoted(promoted);
        }
        self.levels.push_back(right);
        let child = Strand {
            next: None,
            levels,
            handles: 0,
            calls: self.calls,
        };
        Promoted {
            child,
            handle,
            other,
        }
    }

    fn take_handle(&mut self) -> Handle {
        self.handles += 1;
        Handle(self.handles - 1)
    }
}
