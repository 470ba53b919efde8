//! Which thread takes the next turn, and who is woken for what is left.
//!
//! Most turns of scripts take microseconds, of which most go by under the lock that all threads
//! share. Two threads with such turns only wait for each other, and each meeting costs more than a
//! turn. So a thread whose turn was short leaves fresh turns to another one that is in the first
//! stretch of a script, and so will be back within its fuel; turns that have waited for a while
//! show that this was wrong. It knows neither scripts nor the lock. Read next: `scripts`, whose
//! threads ask here.

use std::collections::VecDeque;
use std::time::Duration;

use ciel_model::Micros;

/// Microseconds: a turn that took less was short, and one that has waited for as long is old.
const TURN_SHORT_US: Micros = 50;

/// What is known of a turn before it is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// A script that has not used up its fuel yet; most end or wait long before.
    Fresh,
    /// A script that has.
    Long,
}

struct Waiting<T> {
    since: Micros,
    pace: Pace,
    turn: T,
}

/// One thread's side: the turn it has in hand, or what its last one was like.
#[derive(Debug)]
pub(crate) enum ThreadState {
    /// It works on a turn since then.
    Full {
        /// Of what kind.
        pace: Pace,
        /// Since then.
        since: Micros,
    },
    /// It has none.
    Empty {
        /// Its last turn was short.
        was_short: bool,
        /// It has slept since, and found nothing old.
        has_rested: bool,
        /// It has waited since, and had no need to be woken.
        has_spun: bool,
    },
}

impl Default for ThreadState {
    fn default() -> ThreadState {
        ThreadState::Empty {
            was_short: false,
            has_rested: false,
            has_spun: true,
        }
    }
}

/// Whether more than a few of the latest turns took long. One alone proves nothing: its thread may
/// have had to wait for a core.
#[derive(Clone, Copy, Default)]
struct LongTurns {
    weight: u32,
}

impl LongTurns {
    /// Short turns that outweigh a long one.
    const SHORT_TO_LONG: u32 = 8;
    /// Long turns that count at most.
    const COUNTED_MAX: u32 = 8;

    fn add(&mut self, was_short: bool) {
        self.weight = match was_short {
            true => self.weight.saturating_sub(1),
            false => {
                (self.weight + Self::SHORT_TO_LONG).min(Self::COUNTED_MAX * Self::SHORT_TO_LONG)
            }
        };
    }

    fn are_common(self) -> bool {
        self.weight >= 2 * Self::SHORT_TO_LONG
    }
}

/// Turns that wait for a thread, oldest first, and what the threads are about.
pub(crate) struct Turns<T> {
    waiting: VecDeque<Waiting<T>>,
    /// Threads with a fresh turn in hand.
    fresh: usize,
    /// How often turns took long lately.
    long_turns: LongTurns,
    /// Threads that sleep, or have been woken and do not run yet, or spin.
    asleep: usize,
    /// Threads among them that need not be woken.
    spinning: usize,
}

impl<T> Turns<T> {
    /// No turns and no threads.
    pub(crate) fn new() -> Turns<T> {
        Turns {
            waiting: VecDeque::new(),
            fresh: 0,
            long_turns: LongTurns::default(),
            asleep: 0,
            spinning: 0,
        }
    }

    /// A turn that waits from now on.
    pub(crate) fn push(&mut self, now: Micros, pace: Pace, turn: T) {
        self.waiting.push_back(Waiting {
            since: now,
            pace,
            turn,
        });
    }

    /// The newest turn, if it is the thread's own, which then continues with it at once.
    pub(crate) fn retake(
        &mut self,
        now: Micros,
        hand: &mut ThreadState,
        is_own: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        self.waiting.back().filter(|newest| is_own(&newest.turn))?;
        self.put_down(now, hand);
        let newest = self.waiting.pop_back()?;
        Some(self.hand_out(now, hand, newest))
    }

    fn hand_out(&mut self, now: Micros, hand: &mut ThreadState, waiting: Waiting<T>) -> T {
        let Waiting { pace, turn, .. } = waiting;
        self.fresh += usize::from(pace == Pace::Fresh);
        *hand = ThreadState::Full { pace, since: now };
        turn
    }

    /// The turn in hand is over.
    pub(crate) fn put_down(&mut self, now: Micros, hand: &mut ThreadState) {
        if let ThreadState::Full { pace, since } = *hand {
            self.fresh -= usize::from(pace == Pace::Fresh);
            let was_short = now.saturating_sub(since) < TURN_SHORT_US;
            self.long_turns.add(was_short);
            *hand = ThreadState::Empty {
                was_short,
                has_rested: false,
                has_spun: false,
            };
        }
    }

    /// The oldest turn, unless it is better left to another thread. An empty hand asks.
    pub(crate) fn take(&mut self, now: Micros, hand: &mut ThreadState) -> Option<T> {
        let oldest = self.waiting.front()?;
        let is_young = now.saturating_sub(oldest.since) < TURN_SHORT_US;
        let was_short = matches!(
            *hand,
            ThreadState::Empty {
                was_short: true,
                ..
            }
        );
        if was_short && is_young && self.fresh > 0 && !self.long_turns.are_common() {
            return None;
        }
        let oldest = self.waiting.pop_front()?;
        Some(self.hand_out(now, hand, oldest))
    }

    /// The turn in hand turns out to be one that can take long.
    pub(crate) fn may_take_long(&mut self, hand: &mut ThreadState) {
        if let ThreadState::Full { pace, .. } = hand {
            self.fresh -= usize::from(*pace == Pace::Fresh);
            *pace = Pace::Long;
        }
    }

    /// How long a thread without a turn sleeps if it is not woken: until a turn that it left to
    /// another becomes old, but only once. For ever if `None`.
    pub(crate) fn rest(&mut self, hand: &mut ThreadState) -> Option<Duration> {
        self.asleep += 1;
        match hand {
            ThreadState::Empty { has_rested, .. } if !*has_rested && !self.waiting.is_empty() => {
                *has_rested = true;
                Some(Duration::from_micros(TURN_SHORT_US))
            }
            _ => None,
        }
    }

    /// Whether a thread sleeps, and no turn waits for it.
    pub(crate) fn has_idle_thread(&self) -> bool {
        self.waiting.is_empty() && self.asleep > 0
    }

    /// Whether a thread that rests first looks out for turns for a moment, once after each turn.
    /// Where turns are short, most that come are better left to the thread that makes them.
    pub(crate) fn begin_spin(&mut self, hand: &mut ThreadState) -> bool {
        let ThreadState::Empty { has_spun, .. } = hand else {
            return false;
        };
        let spins = !*has_spun && self.waiting.is_empty() && self.long_turns.are_common();
        *has_spun = true;
        self.spinning += usize::from(spins);
        spins
    }

    /// It has looked; says whether there may be a turn for it.
    pub(crate) fn end_spin(&mut self) -> bool {
        self.spinning -= 1;
        !self.waiting.is_empty()
    }

    /// A thread is awake again.
    pub(crate) fn rise(&mut self) {
        self.asleep -= 1;
    }

    /// Whether all of so many threads sleep, and nothing waits for one of them.
    pub(crate) fn is_resting(&self, threads: u32) -> bool {
        self.waiting.is_empty() && self.asleep == threads as usize
    }

    /// How many threads to wake: for old turns, and for all turns when no thread is likely to be
    /// back for them soon.
    pub(crate) fn wanting(&self, now: Micros) -> usize {
        if self.asleep == self.spinning {
            return 0;
        }
        let old = |waiting: &&Waiting<T>| now.saturating_sub(waiting.since) >= TURN_SHORT_US;
        let wanting = match self.fresh == 0 || self.long_turns.are_common() {
            true => self.waiting.len(),
            false => self.waiting.iter().filter(old).count(),
        };
        let wanting = wanting.saturating_sub(self.spinning);
        wanting.min(self.asleep - self.spinning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Micros = TURN_SHORT_US;

    fn with_turns(count: u32) -> Turns<u32> {
        let mut turns = Turns::new();
        (0..count).for_each(|turn| turns.push(0, Pace::Fresh, turn));
        turns
    }

    fn after_a_short_turn() -> ThreadState {
        ThreadState::Empty {
            was_short: true,
            has_rested: false,
            has_spun: false,
        }
    }

    #[test]
    fn young_turn_is_left_to_a_thread_that_will_be_back_soon() {
        let mut turns = with_turns(2);
        let (mut one, mut other) = (ThreadState::default(), after_a_short_turn());
        assert_eq!(turns.take(1, &mut one), Some(0));
        assert_eq!(turns.take(2, &mut other), None);
        turns.put_down(3, &mut one);
        assert_eq!(turns.take(3, &mut one), Some(1));
    }

    #[test]
    fn old_turn_is_taken_by_whoever_comes() {
        let mut turns = with_turns(2);
        let (mut one, mut other) = (ThreadState::default(), after_a_short_turn());
        assert_eq!(turns.take(1, &mut one), Some(0));
        assert_eq!(turns.take(OLD, &mut other), Some(1));
    }

    #[test]
    fn thread_whose_turn_took_long_takes_young_turns_too() {
        let mut turns = with_turns(3);
        let (mut one, mut other) = (ThreadState::default(), ThreadState::default());
        assert_eq!(turns.take(0, &mut one), Some(0));
        assert_eq!(turns.take(0, &mut other), Some(1));
        turns.put_down(OLD, &mut other);
        turns.push(OLD, Pace::Fresh, 3);
        assert_eq!(turns.take(OLD, &mut other), Some(2));
        turns.put_down(2 * OLD, &mut other);
        assert_eq!(turns.take(2 * OLD, &mut other), Some(3));
    }

    #[test]
    fn long_turn_in_another_hand_is_not_waited_for() {
        let mut turns = Turns::new();
        turns.push(0, Pace::Long, 0);
        turns.push(0, Pace::Fresh, 1);
        let (mut one, mut other) = (ThreadState::default(), after_a_short_turn());
        assert_eq!(turns.take(0, &mut one), Some(0));
        assert_eq!(turns.take(1, &mut other), Some(1));
    }

    #[test]
    fn thread_that_left_a_turn_looks_again_once_and_then_sleeps_for_ever() {
        let mut turns = with_turns(2);
        let (mut one, mut other) = (ThreadState::default(), after_a_short_turn());
        assert_eq!(turns.take(0, &mut one), Some(0));
        assert_eq!(turns.take(0, &mut other), None);
        assert_eq!(
            turns.rest(&mut other),
            Some(Duration::from_micros(TURN_SHORT_US))
        );
        turns.rise();
        assert_eq!(turns.take(1, &mut other), None);
        assert_eq!(turns.rest(&mut other), None);
    }

    #[test]
    fn sleepers_are_woken_for_young_turns_when_long_turns_are_common() {
        let mut turns = with_turns(0);
        let (mut one, mut other) = (ThreadState::default(), ThreadState::default());
        assert_eq!(turns.rest(&mut other), None);
        let mut wanting = Vec::new();
        for now in [0, OLD, 2 * OLD] {
            turns.push(now, Pace::Fresh, 0);
            turns.push(now, Pace::Fresh, 1);
            assert_eq!(turns.take(now, &mut one), Some(0));
            wanting.push(turns.wanting(now));
            turns.put_down(now + OLD, &mut one);
            assert_eq!(turns.take(now + OLD, &mut one), Some(1));
            turns.put_down(now + OLD, &mut one);
        }
        assert_eq!(wanting, [0, 0, 0]);
        turns.push(3 * OLD, Pace::Fresh, 0);
        turns.push(3 * OLD, Pace::Fresh, 1);
        assert_eq!(turns.take(3 * OLD, &mut one), Some(0));
        assert_eq!(turns.wanting(3 * OLD), 1);
    }

    #[test]
    fn long_turn_alone_is_outweighed_by_short_ones() {
        let mut turns = LongTurns::default();
        turns.add(false);
        assert!(!turns.are_common());
        turns.add(false);
        assert!(turns.are_common());
        turns.add(true);
        assert!(!turns.are_common());
    }

    #[test]
    fn turn_that_may_take_long_is_not_waited_for() {
        let mut turns = with_turns(2);
        let (mut one, mut other) = (ThreadState::default(), after_a_short_turn());
        assert_eq!(turns.take(0, &mut one), Some(0));
        turns.may_take_long(&mut one);
        assert_eq!(turns.take(1, &mut other), Some(1));
    }

    #[test]
    fn threads_without_turns_sleep_until_they_are_woken() {
        let mut turns = with_turns(0);
        assert_eq!(turns.rest(&mut ThreadState::default()), None);
        assert_eq!(turns.wanting(OLD), 0);
        turns.push(OLD, Pace::Fresh, 0);
        assert_eq!(turns.wanting(OLD), 1);
    }

    #[test]
    fn sleepers_are_woken_for_old_turns_only_while_another_will_be_back() {
        let mut turns = with_turns(3);
        let (mut one, mut other) = (ThreadState::default(), ThreadState::default());
        assert_eq!(turns.rest(&mut other), Some(Duration::from_micros(OLD)));
        assert_eq!(turns.wanting(0), 1);
        assert_eq!(turns.take(0, &mut one), Some(0));
        assert_eq!(turns.wanting(1), 0);
        assert_eq!(turns.wanting(OLD), 1);
        turns.rise();
        assert_eq!(turns.wanting(OLD), 0);
    }
    /// Turns of which the last two took long, and a hand that has put down the last one.
    fn with_long_turns() -> (Turns<u32>, ThreadState) {
        let (mut turns, mut one) = (with_turns(2), ThreadState::default());
        for now in [0, OLD] {
            turns.take(now, &mut one).expect("there are two");
            turns.put_down(now + OLD, &mut one);
        }
        (turns, one)
    }

    /// The second of two tasks of a round waited for the thread that ran the first one, since the
    /// turn of the script that had spawned both was short.
    #[test]
    fn young_turn_is_taken_at_once_where_long_turns_are_common() {
        let (mut turns, mut one) = with_long_turns();
        let mut other = after_a_short_turn();
        (0..2).for_each(|turn| turns.push(2 * OLD, Pace::Fresh, turn));
        assert_eq!(turns.take(2 * OLD, &mut one), Some(0));
        assert_eq!(turns.take(2 * OLD, &mut other), Some(1));
    }

    #[test]
    fn thread_after_long_turns_looks_out_once_and_need_not_be_woken() {
        let (mut turns, mut one) = with_long_turns();
        assert_eq!(turns.rest(&mut one), None);
        assert!(turns.begin_spin(&mut one));
        assert!(turns.has_idle_thread());
        turns.push(2 * OLD, Pace::Fresh, 0);
        assert!(!turns.has_idle_thread());
        assert_eq!(turns.wanting(2 * OLD), 0);
        assert!(turns.end_spin());
        turns.rise();
        assert_eq!(turns.take(2 * OLD, &mut one), Some(0));
        turns.put_down(3 * OLD, &mut one);
        assert_eq!(turns.rest(&mut one), None);
        assert!(turns.begin_spin(&mut one));
        assert!(!turns.end_spin());
        assert!(!turns.begin_spin(&mut one));
        turns.push(3 * OLD, Pace::Fresh, 1);
        assert_eq!(turns.wanting(3 * OLD), 1);
    }

    #[test]
    fn more_turns_than_threads_that_look_out_wake_sleepers() {
        let (mut turns, mut one) = with_long_turns();
        let mut other = ThreadState::default();
        assert_eq!(turns.rest(&mut other), None);
        assert!(!turns.begin_spin(&mut other));
        assert_eq!(turns.rest(&mut one), None);
        assert!(turns.begin_spin(&mut one));
        (0..3).for_each(|turn| turns.push(2 * OLD, Pace::Fresh, turn));
        assert_eq!(turns.wanting(2 * OLD), 1);
    }

    #[test]
    fn thread_after_short_turns_sleeps_at_once() {
        let (mut turns, mut one) = (with_turns(1), ThreadState::default());
        assert_eq!(turns.take(0, &mut one), Some(0));
        turns.put_down(1, &mut one);
        assert_eq!(turns.rest(&mut one), None);
        assert!(!turns.begin_spin(&mut one));
    }
}
