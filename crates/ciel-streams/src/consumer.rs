//! One attached consumer of stored bytes: how far it has been woken, and when it is next.
//!
//! It does not know why the prefix grows, nor whether the end is reached: `stream` does.

use crate::event::{Action, ConsumerId};

/// A consumer of stored bytes.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    /// It has been told of all bytes before this one.
    pub(crate) woken: u64,
    /// New bytes that are worth a wake; none if it waits for the whole.
    granularity_bytes: Option<u64>,
}

impl Consumer {
    /// A consumer that is woken while the prefix grows.
    pub(crate) fn following(from: u64, granularity_bytes: u64) -> Consumer {
        Consumer {
            woken: from,
            granularity_bytes: Some(granularity_bytes.max(1)),
        }
    }

    /// A consumer that is woken once, when the whole is there.
    pub(crate) fn of_the_whole(from: u64) -> Consumer {
        Consumer {
            woken: from,
            granularity_bytes: None,
        }
    }

    /// Wakes it if enough is new, or if anything is and `is_whole`.
    pub(crate) fn wake(
        &mut self,
        consumer: ConsumerId,
        readable: u64,
        is_whole: bool,
        actions: &mut Vec<Action>,
    ) {
        let new = readable.saturating_sub(self.woken);
        let enough = self.granularity_bytes.is_some_and(|bytes| new >= bytes);
        if new == 0 || !(enough || is_whole) {
            return;
        }
        actions.push(Action::Wake {
            consumer,
            from: self.woken,
            to: readable,
        });
        self.woken = readable;
    }
}
