//! What could run at the same time if the children that a machine keeps were tasks.
//!
//! Each child has a level: it is one above the highest of the children whose results it was given.
//! Children of one level do not need each other. Read next: `promote`.

use std::cell::Cell;

use rustc_hash::FxHashMap;

use super::Machine;
use super::kept::{Child, Kept, Slot};
use crate::host::Handle;
use crate::value::Value;

/// What could run at the same time if the children that a machine keeps were tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parallel {
    /// Two of them: neither needs the other, and it is so for most that come after them.
    Children,
    /// One of them, beside the strand that has spawned it.
    Strand,
    /// Nothing, or little for long: the strand needs the one that runs in place, and others need
    /// it, too, or two could begin before a row of others.
    Nothing,
    /// Nothing, and of many children each one needs one before it.
    Row,
}

/// Pending children that are many, if each needs one before it.
const ROW_MIN: u32 = 16;

/// Slots of kept children among which those that are pending are looked for, unless all are.
const SLOTS_MAX: usize = 256;

/// The level of what needs nothing that is kept.
const LOWEST: u32 = 1;

/// The level of a task whose result the machine does not know.
const AWAITED: u32 = 0;

/// The levels of children, of which each may need one that was added before it.
#[derive(Default)]
struct Levels {
    by_number: FxHashMap<usize, u32>,
    /// Children that were added.
    count: u32,
    /// Those that could begin.
    ready: u32,
    highest: u32,
}

impl Levels {
    /// Adds a child above that level; without one, it could begin.
    fn add(&mut self, number: usize, below: Option<u32>) {
        let level = below.map_or(LOWEST, |below| below + 1);
        self.by_number.insert(number, level);
        self.count += 1;
        self.ready += u32::from(below.is_none());
        self.highest = self.highest.max(level);
    }

    fn of(&self, number: usize) -> u32 {
        self.by_number.get(&number).copied().unwrap_or(LOWEST)
    }

    /// Whether so many that run and these have one and a half on each level, on average.
    fn is_wide(&self, running: u32) -> bool {
        2 * (self.count + running) >= 3 * self.highest.max(running)
    }

    /// What they allow, beside so many that run in place.
    fn parallel(&self, running: u32) -> Parallel {
        let ready = self.ready + running;
        match self.count {
            _ if ready > 1 && self.is_wide(running) => Parallel::Children,
            ROW_MIN.. if ready > 1 => Parallel::Nothing,
            ROW_MIN.. => Parallel::Row,
            1.. if running == 0 && ready > 0 => Parallel::Strand,
            _ => Parallel::Nothing,
        }
    }

    /// Whether they are a row, and the first of them could not begin.
    fn is_stopped_row(&self) -> bool {
        self.count >= ROW_MIN && self.ready == 0 && !self.is_wide(0)
    }
}

impl Machine {
    /// What another thread would be worth to it. It looks at a few of the kept children, or, which
    /// takes some tenth of a microsecond for each, at `all` of them.
    pub fn parallel(&self, all: bool) -> Parallel {
        let runs = self.is_in_place() || self.detached.is_some();
        self.levels(all).parallel(u32::from(runs))
    }

    /// Whether each of many pending children needs one before it, and the first of them a task.
    pub(super) fn awaits_as_a_row(&self) -> bool {
        self.has_many(usize::MAX) && self.levels(true).is_stopped_row()
    }

    /// Whether nothing could run beside it, and of many pending children, of which it looks at a
    /// few, each one needs one before it.
    pub(super) fn has_row(&self) -> bool {
        self.has_many(SLOTS_MAX) && self.parallel(false) == Parallel::Row
    }

    /// Whether so many children are pending that they may be a row. Most machines have few, whose
    /// levels cost more than to count them.
    fn has_many(&self, slots: usize) -> bool {
        self.unsealed(slots).nth(ROW_MIN as usize - 1).is_some()
    }

    fn levels(&self, all: bool) -> Levels {
        let (slots, most) = if all {
            (usize::MAX, usize::MAX)
        } else {
            (SLOTS_MAX, ROW_MIN as usize)
        };
        let mut levels = Levels::default();
        for number in self.unsealed(slots).take(most) {
            levels.add(number, self.level_below(number, &levels));
        }
        levels
    }

    /// How many of the oldest pending children, of at most so many, could begin.
    pub(super) fn ready_ones(&self, most: usize) -> usize {
        let levels = self.levels(false);
        let numbers = self.unsealed(SLOTS_MAX).take(most.min(ROW_MIN as usize));
        let ready = numbers.take_while(|number| levels.of(*number) == LOWEST);
        ready.count()
    }

    /// Pending children among so many slots that may become tasks.
    fn unsealed(&self, slots: usize) -> impl Iterator<Item = usize> {
        let oldest = self.strands[0].oldest as usize;
        let pending = self.kept.all_pending(oldest, slots);
        let pending = pending.filter(|(_, child)| !child.is_sealed);
        pending.map(|(number, _)| number)
    }

    /// The highest level of what a pending child was given and nobody has given yet; nothing if it
    /// could begin.
    fn level_below(&self, number: usize, levels: &Levels) -> Option<u32> {
        let highest = Cell::new(None);
        let look = |number: usize| {
            let level = match self.kept.slot(number) {
                Slot::Pending(_) => Some(levels.of(number)),
                Slot::Running(_) => Some(LOWEST),
                Slot::Promoted(own) if self.table.get(own).is_none() => Some(AWAITED),
                _ => None,
            };
            highest.set(highest.get().max(level));
            false
        };
        for root in self.frozen(number) {
            self.names_kept(*root, look);
        }
        highest.get()
    }

    /// Whether the oldest pending child of the strand was given the result of a task that is not
    /// known.
    pub(super) fn oldest_awaits(&self) -> bool {
        let oldest = self.kept.pending(self.strand().oldest as usize);
        oldest.is_some_and(|(number, child)| !self.awaited_by(number, child).is_empty())
    }

    /// The results of tasks that a pending child was given, and that are not known.
    pub(super) fn awaited_by(&self, number: usize, child: Child) -> Vec<Handle> {
        if child.is_sealed || self.is_in_place() {
            return Vec::new();
        }
        let unknown = |value: &Value| match value {
            Value::Reference(handle) => self.unknown_task(*handle),
            _ => None,
        };
        self.frozen(number).iter().filter_map(unknown).collect()
    }

    /// The handle of a promoted child whose result is not known.
    fn unknown_task(&self, handle: Handle) -> Option<Handle> {
        match self.kept.slot(Kept::number(handle)?) {
            Slot::Promoted(own) if self.table.get(own).is_none() => Some(own),
            _ => None,
        }
    }
}
