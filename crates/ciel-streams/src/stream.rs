//! The machine of one stream.
//!
//! A stream takes one of two courses. *Stored*: the bytes are in an object, any number of consumers
//! read its growing prefix, at any time and more than once. *Direct*: they pass from the producer
//! to one consumer and are gone. A direct stream becomes a stored one while no byte has left it
//! (`FallBack`), never afterwards.
//!
//! It does not know who retries what: an aborted consumer is the caller's to restart. The
//! invariants stand in `check`.

use std::collections::BTreeMap;

use ciel_model::{Digest, Mode, ProducerFlags, Wish};

use crate::consumer::Consumer;
use crate::event::{AbortReason, Action, ConsumerId, Event, FallBackReason, Refusal};
use crate::limits::{CONSUMER_WAIT_MS, GRANULARITY_BYTES};

/// Who writes the bytes that a stream follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writer {
    /// A task, in its own store.
    Task,
    /// A transfer, in the consumer's store: the producer of this stream is the fetch, which
    /// commits when the last byte has arrived.
    Transfer,
}

/// One output of one attempt, and who reads it.
#[derive(Clone, Debug)]
pub struct Stream {
    writer: Writer,
    pub(crate) producer: Producer,
    pub(crate) course: Course,
    /// Bytes of the object that can be read.
    pub(crate) readable: u64,
    /// Those who read the object. The one of a direct stream is in `course`.
    pub(crate) consumers: BTreeMap<ConsumerId, Consumer>,
    is_over_budget: bool,
    pub(crate) is_held: bool,
}

/// What the producer has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Producer {
    Expected,
    Writing(ProducerFlags),
    Committed {
        flags: ProducerFlags,
        length: u64,
        digest: Digest,
    },
    Lost,
}

/// Where the bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Course {
    /// Into the object.
    Stored,
    /// Nowhere yet: the producer's pipe fills.
    Waiting,
    /// To this consumer, and then they are gone.
    Forwarded(ConsumerId),
    /// The one consumer has left or has everything; the bytes are gone.
    Gone,
}

impl Stream {
    /// A stream whose producer has not opened it.
    pub fn new(writer: Writer) -> Stream {
        Stream {
            writer,
            producer: Producer::Expected,
            course: Course::Stored,
            readable: 0,
            consumers: BTreeMap::new(),
            is_over_budget: false,
            is_held: false,
        }
    }

    /// Takes one event and appends what follows.
    ///
    /// # Errors
    /// If the event cannot have happened; nothing has changed then.
    pub fn handle(&mut self, event: Event, actions: &mut Vec<Action>) -> Result<(), Refusal> {
        match event {
            Event::Opened { flags } => self.on_opened(flags, actions)?,
            Event::Wrote { length } => self.on_wrote(length, actions)?,
            Event::ConsumerAttached {
                consumer,
                wish,
                from,
                granularity_bytes,
            } => self.on_attached(consumer, wish, (from, granularity_bytes), actions)?,
            Event::ConsumerLeft { consumer } => self.on_left(consumer, actions),
            Event::Committed { length, digest } => self.on_committed(length, digest, actions)?,
            Event::ProducerLost => self.on_producer_lost(actions),
            Event::LimitPassed => self.fall_back(FallBackReason::NoConsumer, actions),
            Event::BudgetExceeded => self.is_over_budget = true,
            Event::BudgetFree => self.is_over_budget = false,
        }
        self.hold_or_resume(actions);
        if cfg!(debug_assertions) {
            self.check_all();
        }
        Ok(())
    }

    /// Bytes that can be read from the object.
    pub fn readable_bytes(&self) -> u64 {
        self.readable
    }

    /// Whether the object has, or will have, every byte. If not, who needs the stream again has it
    /// recomputed, and the result must not be kept across runs.
    pub fn is_stored(&self) -> bool {
        self.course == Course::Stored && self.producer != Producer::Lost
    }

    /// Length and digest of the object, when it has every byte.
    pub fn complete(&self) -> Option<(u64, Digest)> {
        match self.producer {
            Producer::Committed { length, digest, .. }
                if self.course == Course::Stored && self.readable == length =>
            {
                Some((length, digest))
            }
            _ => None,
        }
    }

    fn on_opened(
        &mut self,
        flags: ProducerFlags,
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        if self.producer != Producer::Expected {
            return Err(Refusal::OutOfTurn);
        }
        self.producer = Producer::Writing(flags);
        if flags.may_stream && flags.single_consumer {
            self.course = Course::Waiting;
            actions.push(Action::AwaitConsumer {
                limit_ms: CONSUMER_WAIT_MS,
            });
        } else {
            actions.push(Action::Store);
        }
        Ok(())
    }

    fn on_wrote(&mut self, length: u64, actions: &mut Vec<Action>) -> Result<(), Refusal> {
        match self.producer {
            Producer::Expected => return Err(Refusal::NotOpened),
            Producer::Committed { length: end, .. } if length > end => {
                return Err(Refusal::BeyondEnd {
                    length: end,
                    claimed: length,
                });
            }
            Producer::Lost => return Ok(()),
            Producer::Writing(_) | Producer::Committed { .. } => {}
        }
        if self.course != Course::Stored {
            return Ok(());
        }
        if length < self.readable {
            return Err(self.shrunk(length));
        }
        self.readable = length;
        self.advance(actions);
        Ok(())
    }

    fn shrunk(&self, claimed: u64) -> Refusal {
        Refusal::Shrunk {
            readable: self.readable,
            claimed,
        }
    }

    fn on_attached(
        &mut self,
        consumer: ConsumerId,
        wish: Wish,
        (from, granularity_bytes): (u64, Option<u64>),
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        if self.consumers.contains_key(&consumer) || self.course == Course::Forwarded(consumer) {
            return Err(Refusal::AlreadyAttached { consumer });
        }
        let abort = |reason| Action::Abort { consumer, reason };
        let flags = match self.producer {
            Producer::Expected => return Err(Refusal::NotOpened),
            Producer::Lost => {
                actions.push(abort(AbortReason::ProducerLost));
                return Ok(());
            }
            Producer::Writing(flags) | Producer::Committed { flags, .. } => flags,
        };
        let mode = wish.mode(flags);
        match self.course {
            Course::Forwarded(_) | Course::Gone => actions.push(abort(AbortReason::NotStored)),
            Course::Waiting if mode == Mode::Direct && from == 0 => {
                self.course = Course::Forwarded(consumer);
                actions.push(Action::Attach { consumer, mode });
                actions.push(Action::Forward { consumer });
            }
            Course::Waiting | Course::Stored => {
                self.fall_back(FallBackReason::StoredBytesNeeded, actions);
                let mode = mode.stored();
                self.attach_to_object(consumer, mode, (from, granularity_bytes));
                actions.push(Action::Attach { consumer, mode });
                self.advance(actions);
            }
        }
        Ok(())
    }

    fn attach_to_object(
        &mut self,
        consumer: ConsumerId,
        mode: Mode,
        (from, bytes): (u64, Option<u64>),
    ) {
        let follows = match self.writer {
            Writer::Task => mode.follows_production(),
            Writer::Transfer => mode.follows_transfer(),
        };
        let state = if follows {
            Consumer::following(from, bytes.unwrap_or(GRANULARITY_BYTES))
        } else {
            Consumer::of_the_whole(from)
        };
        self.consumers.insert(consumer, state);
    }

    fn on_left(&mut self, consumer: ConsumerId, actions: &mut Vec<Action>) {
        self.consumers.remove(&consumer);
        if self.course == Course::Forwarded(consumer) {
            self.course = Course::Gone;
            actions.push(Action::Drain);
        }
    }

    fn on_committed(
        &mut self,
        length: u64,
        digest: Digest,
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        let Producer::Writing(flags) = self.producer else {
            return Err(Refusal::OutOfTurn);
        };
        if length < self.readable {
            return Err(self.shrunk(length));
        }
        self.producer = Producer::Committed {
            flags,
            length,
            digest,
        };
        self.fall_back(FallBackReason::ProducerEnded, actions);
        if let Course::Forwarded(consumer) = self.course {
            self.course = Course::Gone;
            actions.push(Action::End {
                consumer,
                length,
                digest,
            });
        }
        self.advance(actions);
        Ok(())
    }

    fn on_producer_lost(&mut self, actions: &mut Vec<Action>) {
        let is_over = match self.producer {
            Producer::Expected | Producer::Writing(_) => false,
            Producer::Committed { .. } => {
                self.complete().is_some() || self.course != Course::Stored
            }
            Producer::Lost => true,
        };
        if is_over {
            return;
        }
        self.producer = Producer::Lost;
        let forwarded = match self.course {
            Course::Forwarded(consumer) => Some(consumer),
            Course::Stored | Course::Waiting | Course::Gone => None,
        };
        self.course = Course::Gone;
        let attached = std::mem::take(&mut self.consumers).into_keys();
        actions.extend(attached.chain(forwarded).map(|consumer| Action::Abort {
            consumer,
            reason: AbortReason::ProducerLost,
        }));
    }

    /// Stores the stream after all, if nothing has left it.
    fn fall_back(&mut self, reason: FallBackReason, actions: &mut Vec<Action>) {
        if self.course == Course::Waiting {
            self.course = Course::Stored;
            actions.push(Action::FallBack { reason });
        }
    }

    /// Wakes whom the new prefix concerns, and at the end says so to all.
    fn advance(&mut self, actions: &mut Vec<Action>) {
        if self.course != Course::Stored {
            return;
        }
        let complete = self.complete();
        for (&consumer, state) in &mut self.consumers {
            state.wake(consumer, self.readable, complete.is_some(), actions);
        }
        let Some((length, digest)) = complete else {
            return;
        };
        for (consumer, state) in std::mem::take(&mut self.consumers) {
            actions.push(if state.woken > length {
                Action::Abort {
                    consumer,
                    reason: AbortReason::BeyondEnd,
                }
            } else {
                Action::End {
                    consumer,
                    length,
                    digest,
                }
            });
        }
    }

    /// Only what is stored counts against the budget; a direct producer is held by its consumer.
    fn hold_or_resume(&mut self, actions: &mut Vec<Action>) {
        let is_storing = self.course == Course::Stored
            && self.producer != Producer::Expected
            && self.complete().is_none();
        let should_hold = is_storing && self.is_over_budget;
        if should_hold && !self.is_held {
            actions.push(Action::Hold);
        }
        if is_storing && !should_hold && self.is_held {
            actions.push(Action::Resume);
        }
        self.is_held = should_hold;
    }
}
