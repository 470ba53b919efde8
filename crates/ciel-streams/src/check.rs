//! The invariants of a stream, asserted after every event in debug builds.
//!
//! Read next: `stream`, whose states these are.

use crate::stream::{Course, Producer, Stream};

impl Stream {
    /// All of them.
    ///
    /// # Panics
    /// If one does not hold: a bug of this crate.
    pub(crate) fn check_all(&self) {
        self.check_consumers();
        self.check_course();
        self.check_end();
    }

    fn check_consumers(&self) {
        if self.course != Course::Stored {
            assert!(self.consumers.is_empty(), "readers without bytes: {self:?}");
        }
    }

    fn check_course(&self) {
        let is_committed = matches!(self.producer, Producer::Committed { .. });
        match self.course {
            Course::Stored => assert_ne!(self.producer, Producer::Lost, "{self:?}"),
            Course::Waiting | Course::Forwarded(_) => {
                assert!(matches!(self.producer, Producer::Writing(_)), "{self:?}");
                assert_eq!(self.readable, 0, "bytes of a direct stream: {self:?}");
            }
            Course::Gone => assert_ne!(self.producer, Producer::Expected, "{self:?}"),
        }
        if self.is_held {
            assert_eq!(self.course, Course::Stored, "held without need: {self:?}");
        }
        if self.complete().is_some() {
            assert!(is_committed && !self.is_held, "{self:?}");
        }
    }

    fn check_end(&self) {
        if let Producer::Committed { length, .. } = self.producer {
            assert!(self.readable <= length, "bytes behind the end: {self:?}");
        }
        if self.complete().is_some() {
            assert!(
                self.consumers.is_empty(),
                "nobody told of the end: {self:?}"
            );
        }
    }
}
