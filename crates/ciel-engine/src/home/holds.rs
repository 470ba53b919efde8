//! Back-pressure: while more output than a bound waits behind the serial frontier, or the run's
//! files take too much of the disk, tasks wait.
//!
//! What waits is all output, in memory and on disk, for standard output, ordered files and ordered
//! standard error alike, and what processes have written that becomes output when they end. Held
//! are tasks that have not begun, and those that ask after they have written, by a wait for
//! nothing; neither has a slot. Processes that write are paused in their slots. So the bound is
//! exceeded by what the others write until they end or ask, and by what is in pipes. Of each kind
//! of tasks no more than there are cores are on their way to slots.
//!
//! # Why no job hangs that would end without the bound
//!
//! The *leftmost* strand is the one at the frontier: all before it is final. It is neither held nor
//! paused. It waits for nothing behind it, as the serial program never waits: what it can name was
//! spawned before, and has ended, or is beneath it; and then the first unfinished strand there is
//! leftmost itself. There are three exceptions:
//!
//! - it is an equal call, whose result is to come from a later one that began first;
//! - it writes a stream for a later task, which is not held but may wait for others that are;
//! - others have all slots. They end or ask, unless they write such streams or are paused.
//!
//! Processes that read or write streams are not paused, nor are those with a time limit, which
//! would run on meanwhile. All others wait for nobody.
//!
//! So the bound *gives way* to one held or paused task after the other, in serial order: at once
//! if nothing has a slot or is on its way to one, and at every look, [`BETWEEN_LOOKS_US`] apart,
//! that finds the leftmost strand without a slot or with such a stream. As long as the frontier
//! stands in any of these cases, each of these tasks goes after a finite time. The times are
//! counted. What tasks say to each other outside of the engine is not seen.
//!
//! It does not know what is written. Read next: `backpressure`, which has the home obey, and `room`
//! about the disk.

use std::collections::{BTreeMap, BTreeSet};

use ciel_model::{Class, KeyMap, Micros, OrderLabel, SingleReader};
use ciel_node::AttemptKey;
use ciel_ordered::StrandKey;

use super::pauses::Pauses;
use crate::message::Offer;

/// Tasks of one kind, scripts or all others, that may be on their way to slots on few cores; on
/// more it is their number, so that as many workers can start at once.
pub(super) const OFFERED_MIN: usize = 4;

/// Microseconds between two looks at the leftmost strand.
const BETWEEN_LOOKS_US: Micros = 200_000;

/// What the streams say at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Bytes that wait behind the frontier.
    pub(super) waiting_bytes: u64,
    /// The files of the run take too much of the disk.
    pub(super) room_is_scarce: bool,
    /// The strand at the frontier.
    pub(super) leftmost: Option<StrandKey>,
    /// Tasks of one kind that may be on their way to slots.
    pub(super) offered_max: usize,
}

#[derive(Clone, Debug)]
struct Held {
    offer: Box<Offer>,
    strand: StrandKey,
}

/// The tasks that are held, and those on their way.
#[derive(Clone, Debug)]
pub(super) struct Holds {
    bound_bytes: u64,
    /// Scripts, and all others.
    held: [BTreeMap<(OrderLabel, AttemptKey), Held>; 2],
    labels: KeyMap<AttemptKey, OrderLabel>,
    strands: KeyMap<StrandKey, AttemptKey>,
    /// Those that went while the bound was kept, and may not have begun; likewise.
    offered: [BTreeSet<AttemptKey>; 2],
    /// Running processes.
    pub(super) pauses: Pauses,
    next_look: Option<Micros>,
    ever_held: u64,
    gave_way: u64,
}

impl Holds {
    pub(super) fn new(bound_bytes: u64) -> Holds {
        Holds {
            bound_bytes,
            held: Default::default(),
            labels: KeyMap::default(),
            strands: KeyMap::default(),
            offered: Default::default(),
            pauses: Pauses::default(),
            next_look: None,
            ever_held: 0,
            gave_way: 0,
        }
    }

    /// Whether a task that has just become ready goes at once: the bound is kept, none like it is
    /// held, and there is room among the offered.
    pub(super) fn admits(&mut self, offer: &Offer, seen: Seen) -> bool {
        let kind = kind(offer);
        let is_first = self.held[kind].is_empty() && self.offered[kind].len() < seen.offered_max;
        let admits = is_first && !self.is_exceeded(seen);
        if admits {
            self.offered[kind].insert(offer.attempt);
        }
        admits
    }

    /// Holds a ready task until [`next`](Self::next) gives it back.
    pub(super) fn put(&mut self, offer: Box<Offer>, strand: StrandKey) {
        let attempt = offer.attempt;
        self.ever_held += u64::from(self.remove(attempt).is_none());
        self.labels.insert(attempt, offer.label);
        self.strands.insert(strand, attempt);
        let place = (offer.label, attempt);
        self.held[kind(&offer)].insert(place, Held { offer, strand });
    }

    /// The attempt is not to run, or not here.
    pub(super) fn remove(&mut self, attempt: AttemptKey) -> Option<Box<Offer>> {
        let label = self.labels.remove(&attempt)?;
        let held = self.take(label, attempt)?;
        if self.strands.get(&held.strand) == Some(&attempt) {
            self.strands.remove(&held.strand);
        }
        Some(held.offer)
    }

    fn take(&mut self, label: OrderLabel, attempt: AttemptKey) -> Option<Held> {
        let mut each = self.held.iter_mut();
        each.find_map(|held| held.remove(&(label, attempt)))
    }

    /// A held task has another label.
    pub(super) fn relabel(&mut self, attempt: AttemptKey, label: OrderLabel) {
        let before = self.labels.get(&attempt).copied();
        let held = before.and_then(|before| self.take(before, attempt));
        if let Some(mut held) = held {
            held.offer.label = label;
            self.labels.insert(attempt, label);
            self.held[kind(&held.offer)].insert((label, attempt), held);
        }
    }

    /// The reader of what a held task will write directly waits for that only.
    pub(super) fn note_reader(&mut self, attempt: AttemptKey) {
        let label = self.labels.get(&attempt).copied();
        let place = label.map(|label| (label, attempt));
        let mut each = self.held.iter_mut();
        let held = place.and_then(|place| each.find_map(|held| held.get_mut(&place)));
        if let Some(held) = held {
            held.offer.pairing.reader = SingleReader::Waits;
        }
    }

    pub(super) fn holds(&self, attempt: AttemptKey) -> bool {
        self.labels.contains_key(&attempt)
    }

    /// Whether nothing is held or paused.
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.pauses.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether so many waiting bytes are more than the bound.
    pub(super) fn too_much_waits(&self, waiting_bytes: u64) -> bool {
        waiting_bytes > self.bound_bytes
    }

    /// Whether tasks are held.
    fn is_exceeded(&self, seen: Seen) -> bool {
        seen.room_is_scarce || self.too_much_waits(seen.waiting_bytes)
    }

    /// The next held task that goes: the leftmost, or the first one while the bound is kept and
    /// there is room among the offered. `is_offered` says which of these have not begun.
    pub(super) fn next(
        &mut self,
        seen: Seen,
        is_offered: impl Fn(AttemptKey) -> bool,
    ) -> Option<Box<Offer>> {
        if let Some(attempt) = seen.leftmost.and_then(|strand| self.strands.get(&strand)) {
            let attempt = *attempt;
            return self.remove(attempt);
        }
        if self.is_exceeded(seen) {
            return None;
        }
        let kind = (0..2).find(|kind| {
            let (held, offered) = (&self.held[*kind], &mut self.offered[*kind]);
            if !held.is_empty() && offered.len() >= seen.offered_max {
                offered.retain(|attempt| is_offered(*attempt));
            }
            !held.is_empty() && offered.len() < seen.offered_max
        })?;
        let (_, first) = *self.held[kind].keys().next()?;
        self.offered[kind].insert(first);
        self.remove(first)
    }

    /// The first held task in serial order, and its place there.
    pub(super) fn first(&self) -> Option<(OrderLabel, AttemptKey)> {
        let firsts = self.held.iter().filter_map(|held| held.keys().next());
        firsts.min().copied()
    }

    /// The first held task goes although the bound is exceeded.
    pub(super) fn give_way(&mut self) -> Option<Box<Offer>> {
        let (_, first) = self.first()?;
        self.gave_way += 1;
        self.remove(first)
    }

    /// A paused process continues although the bound is exceeded.
    pub(super) fn give_way_to(&mut self, paused: AttemptKey) {
        self.gave_way += 1;
        self.pauses.excuse(paused);
    }

    /// Bytes of output that may wait; `u64::MAX` without a bound.
    pub(super) fn bound_bytes(&self) -> u64 {
        self.bound_bytes
    }

    /// How often a task was held.
    pub(super) fn ever_held(&self) -> u64 {
        self.ever_held
    }

    /// Times that the bound gave way.
    pub(super) fn gave_way(&self) -> u64 {
        self.gave_way
    }

    /// When the leftmost strand is looked at; none if nothing is held.
    pub(super) fn next_look(&self) -> Option<Micros> {
        self.next_look.filter(|_| !self.is_empty())
    }

    /// Whether it is time for a look; the next one is then set.
    pub(super) fn is_due(&mut self, now: Micros) -> bool {
        let is_due = self.next_look.is_some_and(|at| at <= now);
        if self.is_empty() {
            self.next_look = None;
        } else if is_due || self.next_look.is_none() {
            self.next_look = Some(now.saturating_add(BETWEEN_LOOKS_US));
        }
        is_due && !self.is_empty()
    }
}

fn kind(offer: &Offer) -> usize {
    usize::from(offer.class != Class::Coordination)
}
