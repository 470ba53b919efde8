//! What the home does while output that waits behind the frontier exceeds a bound, or the disk has
//! too little room.
//!
//! Ready tasks go through `holds` before they are offered; running processes are paused before more
//! is read of what they write. Nothing of it is recorded: a run that is
//! resumed begins with nothing held. Read next: `holds`, which says why no job hangs.

use ciel_graph as graph;
use ciel_model::{Micros, SegmentedQueue};
use ciel_node::AttemptKey;
use serde::{Deserialize, Serialize};

use super::holds::{Holds, OFFERED_MIN, Seen};
use super::placement::Stage;
use super::{FromHome, Home};
use crate::message::{Offer, ToSite};

/// How it stands with output that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Bytes that wait behind the frontier.
    pub waiting_bytes: u64,
    /// More than this, and tasks are held; `u64::MAX` without a bound.
    pub bound_bytes: u64,
    /// The files of the run take so much of the disk that tasks are held.
    pub room_is_scarce: bool,
    /// Tasks that are held.
    pub held: usize,
    /// Processes that are paused.
    pub paused: usize,
    /// How often a task was held so far.
    pub ever_held: u64,
    /// How often a process was paused so far.
    pub ever_paused: u64,
    /// Tasks that went although the bound was exceeded, because nothing else could have moved the
    /// frontier.
    pub gave_way: u64,
}

impl Home {
    /// From now on tasks are held while more than so many bytes of output wait.
    pub fn bound_output(&mut self, bound_bytes: u64) {
        self.holds = Some(Box::new(Holds::new(bound_bytes)));
    }

    /// How it stands with output that waits, if that is bounded.
    pub fn pressure(&self) -> Option<Pressure> {
        let holds = self.holds.as_ref()?;
        Some(Pressure {
            waiting_bytes: self.waiting_bytes(),
            bound_bytes: holds.bound_bytes(),
            room_is_scarce: self.room_is_scarce(),
            held: holds.len(),
            paused: holds.pauses.len(),
            ever_held: holds.ever_held(),
            ever_paused: holds.pauses.ever_paused(),
            gave_way: holds.gave_way(),
        })
    }

    /// Whether an attempt is held.
    pub fn is_held(&self, attempt: AttemptKey) -> bool {
        self.holds
            .as_ref()
            .is_some_and(|holds| holds.holds(attempt))
    }

    /// Whether any attempt is held or paused, and so waits for the frontier.
    pub fn has_held(&self) -> bool {
        self.holds.as_ref().is_some_and(|holds| !holds.is_empty())
    }

    /// Whether a strand that has written or spawned is to wait for nothing before it does so again:
    /// the bound is exceeded, and its output waits for others, or too many of its children have not
    /// ended.
    pub fn should_ask(&self, strand: ciel_model::StrandKey) -> bool {
        self.has_many_children(strand) || self.has_written_much(strand)
    }

    fn has_written_much(&self, strand: ciel_model::StrandKey) -> bool {
        let Some(holds) = &self.holds else {
            return false;
        };
        let strand = ciel_ordered::StrandKey(strand.0);
        let output = self.state.output();
        holds.too_much_waits(self.waiting_bytes())
            && output.frontier() != Some(strand)
            && output.has_place(strand)
    }

    /// Whether what a process writes is not to be read for now.
    pub fn must_pause(&self, attempt: AttemptKey) -> bool {
        let Some(holds) = &self.holds else {
            return false;
        };
        let output = self.state.output();
        let waits = |strand: ciel_model::StrandKey| {
            let strand = ciel_ordered::StrandKey(strand.0);
            output.frontier() != Some(strand) && output.has_place(strand)
        };
        holds.too_much_waits(self.waiting_bytes())
            && self.is_placed(attempt)
            && self.graph().can_be_paused(attempt.task)
            && self.graph().strand_of(attempt.task).is_some_and(waits)
            && (!holds.pauses.is_excused(attempt) || self.leftmost_works())
    }

    /// A process has written so many bytes by now.
    pub(crate) fn on_process_wrote(&mut self, attempt: AttemptKey, bytes: u64) {
        let placement = &self.placement;
        let runs = |attempt| placement.slot_of(attempt).is_some();
        if let Some(holds) = &mut self.holds {
            holds.pauses.note_written(attempt, bytes, runs);
        }
    }

    /// A process is paused until [`let_go`](Self::let_go) has its output read again.
    pub(crate) fn on_process_paused(&mut self, attempt: AttemptKey) {
        if let Some(holds) = &mut self.holds {
            holds.pauses.put(attempt);
        }
    }

    fn is_placed(&self, attempt: AttemptKey) -> bool {
        self.placement.slot_of(attempt).is_some()
    }

    fn waiting_bytes(&self) -> u64 {
        let pauses = self.holds.iter().map(|holds| &holds.pauses);
        let written = pauses.map(|pauses| pauses.written_bytes(|attempt| self.is_placed(attempt)));
        let waiting = self.state.output().waiting_bytes() + self.state.errors().waiting_bytes();
        waiting + written.sum::<u64>()
    }

    /// Notes that an event is an attempt's wait for nothing.
    pub(super) fn note_asking(&mut self, event: &graph::Event) {
        self.asks = match event {
            graph::Event::TaskBlocked {
                task,
                attempt,
                on,
                wait,
                ..
            } if on.is_empty() && !wait.is_timely() => Some(AttemptKey {
                task: *task,
                number: *attempt,
            }),
            _ => None,
        };
    }

    /// Holds an offer, or gives it back. Held are tasks that have not begun, and those that ask,
    /// whose output has a place. Who reads a stream is not: its writer may be blocked.
    pub(super) fn hold(&mut self, offer: Box<Offer>) -> Option<Box<Offer>> {
        if self.holds.is_none() {
            return Some(offer);
        }
        let seen = self.seen();
        let holds = self.holds.as_mut()?;
        let attempt = offer.attempt;
        let is_new = offer.replay_us.is_none() && offer.begun_in.is_none();
        let asks = self.asks == Some(attempt);
        let reads = self.state.graph().takes_streams(attempt.task);
        let strand = self.state.graph().strand_of(attempt.task);
        let strand = strand.map(|strand| ciel_ordered::StrandKey(strand.0));
        let strand = strand.filter(|strand| self.state.output().has_place(*strand));
        match strand {
            Some(strand) if !reads && (is_new || asks || holds.holds(attempt)) => {
                match holds.admits(&offer, seen) {
                    true => Some(offer),
                    false => {
                        holds.put(offer, strand);
                        None
                    }
                }
            }
            _ => Some(offer),
        }
    }

    /// A message to the site of an attempt that may be held.
    pub(super) fn note_for_held(&mut self, attempt: AttemptKey, message: &ToSite) {
        let Some(holds) = &mut self.holds else {
            return;
        };
        match message {
            ToSite::Relabel { label, .. } => holds.relabel(attempt, *label),
            ToSite::ReaderWaits { .. } => holds.note_reader(attempt),
            ToSite::Withdraw { .. } | ToSite::Stop { .. } => drop(holds.remove(attempt)),
            _ => {}
        }
    }

    /// Offers what is held and may go, and has what is paused read again; whether anything went.
    pub(crate) fn let_go(&mut self, now: Micros, out: &mut SegmentedQueue<FromHome>) -> bool {
        if !self.has_held() {
            return self.give_way_to_spawner(out);
        }
        let mut went = self.read_on(out);
        while let Some(offer) = self.next_held() {
            self.offer(offer, out);
            went = true;
        }
        let must_look = self.holds.as_mut().is_some_and(|holds| holds.is_due(now));
        if must_look && !went && !self.leftmost_works() {
            went = self.give_way(out);
        }
        went || self.give_way_to_spawner(out)
    }

    /// The frontier may have moved. If it rests before what is not final, and nothing can move it
    /// further, the bound gives way.
    pub(crate) fn on_frontier_moved(
        &mut self,
        now: Micros,
        rests: bool,
        out: &mut SegmentedQueue<FromHome>,
    ) {
        let went = self.let_go(now, out);
        let is_stuck = rests && !self.placement.is_active() && !self.graph().awaits_results();
        if !went && self.has_held() && is_stuck {
            self.give_way(out);
        }
    }

    fn next_held(&mut self) -> Option<Box<Offer>> {
        let seen = self.seen();
        let placement = &self.placement;
        let is_offered = |attempt| matches!(placement.stage_of(attempt), Some((_, Stage::Offered)));
        self.holds.as_mut()?.next(seen, is_offered)
    }

    fn seen(&self) -> Seen {
        Seen {
            waiting_bytes: self.waiting_bytes(),
            room_is_scarce: self.room_is_scarce(),
            leftmost: self.state.output().frontier(),
            offered_max: self.placement.cores().max(OFFERED_MIN),
        }
    }

    /// Has what processes write read again that need not pause any more; whether there were any.
    fn read_on(&mut self, out: &mut SegmentedQueue<FromHome>) -> bool {
        let paused = self.holds.iter().flat_map(|holds| holds.pauses.paused());
        let free: Vec<AttemptKey> = paused.filter(|it| !self.must_pause(*it)).collect();
        for attempt in &free {
            if let Some(holds) = &mut self.holds {
                holds.pauses.remove(*attempt);
            }
            self.send(*attempt, ToSite::ReadOn { attempt: *attempt }, out);
        }
        !free.is_empty()
    }

    /// The first one that is held or paused goes although the bound is exceeded.
    fn give_way(&mut self, out: &mut SegmentedQueue<FromHome>) -> bool {
        let graph = self.state.graph();
        let Some(holds) = &mut self.holds else {
            return false;
        };
        let paused = holds.pauses.paused();
        let labelled = paused.filter_map(|it| Some((graph.label_of(it.task)?, it)));
        let first_paused = labelled.min();
        match first_paused.filter(|paused| holds.first().is_none_or(|held| *paused < held)) {
            Some((_, attempt)) => {
                holds.give_way_to(attempt);
                self.send(attempt, ToSite::ReadOn { attempt }, out);
                true
            }
            None => {
                let first = holds.give_way();
                let went = first.is_some();
                first.into_iter().for_each(|offer| self.offer(offer, out));
                went
            }
        }
    }

    /// Whether the strand at the frontier is in a slot, and nothing but its own work keeps it from
    /// its end.
    fn leftmost_works(&self) -> bool {
        let leftmost = self.state.output().frontier();
        leftmost.is_some_and(|strand| {
            let strand = ciel_model::StrandKey(strand.0);
            self.graph().depends_on_itself(strand)
        })
    }
}
