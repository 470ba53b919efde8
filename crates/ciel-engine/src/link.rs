//! One end of a link between home and site, over a network that loses, repeats and reorders frames.
//!
//! Messages are numbered, acknowledged, and sent again until they are; they are delivered once and
//! in order. A frame names the incarnation of its site: the site's process has one number each time
//! it joins, and frames of another incarnation are refused. An end that is silent for too long is
//! lost to the other end. It does not know what a message means, nor how bytes travel. Read next:
//! `link/sessions`, the home's ends of all links.

mod sessions;

use std::collections::{BTreeMap, VecDeque};

use ciel_model::Micros;
use serde::{Deserialize, Serialize};

pub use sessions::{FromSessions, Sessions};

/// Messages after the last acknowledged one that are sent, and that are kept if they come early.
pub const WINDOW: usize = 256;

/// How long an end waits for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Microseconds after which what is not acknowledged is sent again.
    pub resend_us: Micros,
    /// Microseconds after which an end that has nothing to say sends a frame nevertheless.
    pub beat_us: Micros,
    /// Microseconds of silence after which the other end is lost.
    pub silence_us: Micros,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            resend_us: 200_000,
            beat_us: 500_000,
            silence_us: 3_000_000,
        }
    }
}

/// What travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame<T> {
    /// The incarnation of the site.
    pub incarnation: u64,
    /// All messages up to this number have been received.
    pub acknowledged: u64,
    /// What it carries.
    pub body: Body<T>,
}

/// What a frame carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body<T> {
    /// Nothing but the acknowledgement.
    Beat,
    /// A message, and its number; the first one has number 1.
    Message(u64, T),
    /// That incarnation was lost: whatever it runs is not wanted any more.
    Fenced,
}

/// A frame of another incarnation than that of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherIncarnation;

/// One end, which sends `T` and receives `U`.
#[derive(Clone, Debug)]
pub struct Link<T, U> {
    timing: Timing,
    incarnation: u64,
    /// Messages that were not acknowledged, from the number after `acknowledged` on.
    unacknowledged: VecDeque<T>,
    acknowledged: u64,
    /// The last number that was received in order.
    received: u64,
    /// Messages that came before one that is missing.
    early: BTreeMap<u64, U>,
    /// When a frame is due although there is nothing new to say.
    beat_at: Micros,
    resend_at: Option<Micros>,
    heard_at: Micros,
}

impl<T: Clone, U> Link<T, U> {
    /// A link of an incarnation from which no message has arrived yet.
    pub fn new(now: Micros, incarnation: u64, timing: Timing) -> Link<T, U> {
        Link {
            timing,
            incarnation,
            unacknowledged: VecDeque::new(),
            acknowledged: 0,
            received: 0,
            early: BTreeMap::new(),
            beat_at: now + timing.beat_us,
            resend_at: None,
            heard_at: now,
        }
    }

    /// The incarnation of its site.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// When [`Link::tick`] is wanted at the latest.
    pub fn next_deadline(&self) -> Micros {
        let silent_at = self.heard_at + self.timing.silence_us;
        let resend_at = self.resend_at.unwrap_or(Micros::MAX);
        self.beat_at.min(resend_at).min(silent_at)
    }

    /// Whether no message has arrived for so long that the other end is lost.
    pub fn is_silent(&self, now: Micros) -> bool {
        now >= self.heard_at + self.timing.silence_us
    }

    /// Sends a message.
    pub fn send(&mut self, now: Micros, message: T, frames: &mut Vec<Frame<T>>) {
        self.unacknowledged.push_back(message);
        let number = self.acknowledged + self.unacknowledged.len() as u64;
        if self.unacknowledged.len() <= WINDOW {
            frames.push(self.frame_of(number));
            self.note_sent(now);
        }
    }

    /// Takes a frame, and appends the messages that are in order by now. A message is acknowledged
    /// with the next frame, which is due soon.
    ///
    /// # Errors
    /// [`OtherIncarnation`]; the frame changes nothing then.
    pub fn receive(
        &mut self,
        now: Micros,
        frame: Frame<U>,
        messages: &mut Vec<U>,
    ) -> Result<(), OtherIncarnation> {
        if frame.incarnation != self.incarnation {
            return Err(OtherIncarnation);
        }
        self.heard_at = now;
        self.on_acknowledged(now, frame.acknowledged);
        let Body::Message(number, message) = frame.body else {
            return Ok(());
        };
        self.beat_at = self.beat_at.min(now + self.timing.resend_us / 4);
        let is_near = number <= self.received + WINDOW as u64;
        if number > self.received && is_near {
            self.early.insert(number, message);
        }
        while let Some(message) = self.early.remove(&(self.received + 1)) {
            self.received += 1;
            messages.push(message);
        }
        Ok(())
    }

    /// Appends what is due by now.
    pub fn tick(&mut self, now: Micros, frames: &mut Vec<Frame<T>>) {
        if self.resend_at.is_some_and(|at| at <= now) {
            let first = self.acknowledged + 1;
            let count = self.unacknowledged.len().min(WINDOW) as u64;
            frames.extend((first..first + count).map(|number| self.frame_of(number)));
            self.resend_at = None;
            self.note_sent(now);
        }
        if self.beat_at <= now {
            frames.push(self.frame(Body::Beat));
            self.beat_at = now + self.timing.beat_us;
        }
    }

    fn on_acknowledged(&mut self, now: Micros, number: u64) {
        let fresh = number.saturating_sub(self.acknowledged) as usize;
        if fresh == 0 || fresh > self.unacknowledged.len() {
            return;
        }
        let held_back = self.unacknowledged.len().saturating_sub(WINDOW);
        self.unacknowledged.drain(..fresh);
        self.acknowledged = number;
        let is_idle = self.unacknowledged.is_empty();
        let wait = match held_back {
            // Messages that waited for the window are sent with those that are due.
            0 => self.timing.resend_us,
            _ => 0,
        };
        self.resend_at = (!is_idle).then_some(now + wait);
    }

    fn note_sent(&mut self, now: Micros) {
        let resend_at = now + self.timing.resend_us;
        self.resend_at.get_or_insert(resend_at);
        self.beat_at = now + self.timing.beat_us;
    }

    fn frame_of(&self, number: u64) -> Frame<T> {
        let index = (number - self.acknowledged - 1) as usize;
        let message = self.unacknowledged[index].clone();
        self.frame(Body::Message(number, message))
    }

    fn frame(&self, body: Body<T>) -> Frame<T> {
        Frame {
            incarnation: self.incarnation,
            acknowledged: self.received,
            body,
        }
    }
}
