//! The two ends of a direct stream, which need a slot each at the same time.
//!
//! A producer that begins has a core *kept* for its reader, which is ready as soon as the producer
//! writes. Where another stream has the second core, a producer is *held* until two are free. Both
//! end after a time: what does not fit begins alone, and its stream is stored. So pipelines that
//! are longer than the slots go on, and nothing waits for a reader that does not come. A reader
//! goes before tasks that have not begun. It does not know whether a stream is direct. Read next:
//! `computation`.

use std::sync::Arc;

use ciel_model::{Micros, SingleReader, TaskKey, limits};

use crate::event::AttemptKey;
use crate::node::{Node, Ready};

/// What is kept for a reader.
const READER_MILLICORES: u32 = 1000;

impl Node {
    /// Whether a task leaves what is free to the reader of another one, or to both ends of a stream
    /// together. If so, the time when it does not is a deadline.
    pub(crate) fn leaves_to_pairs(&mut self, now: Micros, ready: &Ready) -> bool {
        let is_own = |producer: &&AttemptKey| Some(producer.task) == ready.need.pairing.reads;
        let others = self.kept_for_readers.keys().filter(|it| !is_own(it));
        let room = self.room_beside(others.count());
        let need = ready.need.resources.millicores;
        need > 0 && need > room || self.holds_producer(now, ready, room)
    }

    /// Free thousandths of a core beside those that are kept for so many readers.
    fn room_beside(&self, readers: usize) -> u32 {
        let kept = READER_MILLICORES.saturating_mul(readers as u32);
        self.free.millicores.saturating_sub(kept)
    }

    fn holds_producer(&mut self, now: Micros, ready: &Ready, room: u32) -> bool {
        let need = ready.need.resources.millicores + READER_MILLICORES;
        let is_scarce = need > room && need <= self.capacity.resources.millicores;
        let is_reader = ready.need.pairing.reads.is_some();
        if !is_scarce || is_reader || self.kept_until(now, ready).is_none() || !self.has_pair() {
            return false;
        }
        let since = *self.held_producers.entry(ready.attempt()).or_insert(now);
        let until = since.saturating_add(limits::STREAM_PRODUCER_HELD_US);
        if until > now {
            self.set_deadline(until);
        }
        until > now
    }

    /// Whether an end of a stream has a slot.
    fn has_pair(&self) -> bool {
        self.placed.values().any(|placed| placed.is_stream_end)
    }

    /// Until when a core is kept for the reader of a producer that begins now; none if it has none.
    fn kept_until(&self, now: Micros, ready: &Ready) -> Option<Micros> {
        let until = match ready.need.pairing.reader {
            SingleReader::None => return None,
            SingleReader::Expected => ready
                .since
                .saturating_add(limits::STREAM_READER_EXPECTED_US),
            SingleReader::Waits => now.saturating_add(limits::STREAM_SLOT_KEPT_US),
        };
        let is_possible = !self.capacity.serial && self.slots() > 1;
        (is_possible && until > now).then_some(until)
    }

    /// A task has its slot, and perhaps was the reader for which that was kept.
    pub(crate) fn keep_for_reader(&mut self, now: Micros, ready: &Ready) {
        self.held_producers.remove(&ready.attempt());
        if let Some(producer) = ready.need.pairing.reads {
            self.kept_for_readers
                .retain(|kept, _| kept.task != producer);
        }
        let until = self.kept_until(now, ready);
        let has_room = self.room_beside(self.kept_for_readers.len()) >= READER_MILLICORES;
        if let Some(until) = until.filter(|_| has_room) {
            self.kept_for_readers.insert(ready.attempt(), until);
            self.set_deadline(until);
        }
    }

    /// The reader of a producer waits for nothing else.
    pub(crate) fn on_reader_waits(&mut self, now: Micros, producer: AttemptKey) {
        if let Some(ready) = self.queued.get_mut(&producer) {
            Arc::make_mut(&mut ready.need).pairing.reader = SingleReader::Waits;
        } else if let Some(until) = self.kept_for_readers.get_mut(&producer) {
            *until = now.saturating_add(limits::STREAM_SLOT_KEPT_US);
        }
    }

    /// Nothing is kept any more for readers that have not come by now. When the next core is not is
    /// a deadline.
    pub(crate) fn keep_no_longer(&mut self, now: Micros) {
        self.kept_for_readers.retain(|_, until| *until > now);
        if let Some(until) = self.kept_for_readers.values().min() {
            self.set_deadline(*until);
        }
    }

    /// Asserts that what keeps a core for its reader has a slot, and what is held has none.
    pub(crate) fn check_pairs(&self) {
        let is_placed = |producer: &TaskKey| self.placed.keys().any(|it| it.task == *producer);
        for held in self.held_producers.keys() {
            assert!(self.queued.contains_key(held), "{held:?} is in no queue");
        }
        for producer in self.kept_for_readers.keys() {
            assert!(is_placed(&producer.task), "{producer:?} has no slot");
        }
    }
}
