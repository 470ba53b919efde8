//! The queue of requests to the thread of kept results, which is woken as seldom as that allows.
//!
//! Most requests only say what has happened: they are deferrable until the thread is due to keep a
//! batch, and to wake it for each would cost more than to keep the result. It does not know what a
//! request says. Read next: `kept`, then `keeper`.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::kept::Request;

/// Requests that are deferred; with one more the thread is woken.
const DEFERRED_MAX: usize = 256;

/// The end into which anybody puts requests.
#[derive(Clone)]
pub(crate) struct Sender(Arc<Shared>);

/// The end of the thread of kept results.
pub(crate) struct Receiver(Arc<Shared>);

/// Both ends of a new queue.
pub(crate) fn queue() -> (Sender, Receiver) {
    let shared = Arc::<Shared>::default();
    (Sender(shared.clone()), Receiver(shared))
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wanted: Condvar,
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<Request>,
    /// One of them is not deferrable.
    is_urgent: bool,
    sleep: Sleep,
    /// Nobody takes requests any more.
    is_closed: bool,
}

/// What the thread waits for.
#[derive(Clone, Copy, Default, PartialEq)]
enum Sleep {
    /// Nothing: it works.
    #[default]
    Awake,
    /// A request that is not deferrable, or the instant when it is due.
    UntilUrgent,
    /// Any request.
    UntilAny,
}

impl Queue {
    /// Whether there is enough for a thread that waits for that.
    fn has(&self, wanted: Sleep) -> bool {
        let is_urgent = self.is_urgent || self.requests.len() > DEFERRED_MAX;
        match wanted {
            Sleep::Awake => false,
            Sleep::UntilUrgent => is_urgent,
            Sleep::UntilAny => is_urgent || !self.requests.is_empty(),
        }
    }
}

impl Sender {
    /// Puts a request behind the others. After the receiver has gone it is dropped: then the run is
    /// over, and nothing is looked up or kept any more.
    pub(crate) fn send(&self, request: Request) {
        let mut queue = self.0.lock();
        if queue.is_closed {
            return;
        }
        queue.is_urgent |= !request.is_deferrable();
        queue.requests.push_back(request);
        if queue.has(queue.sleep) {
            queue.sleep = Sleep::Awake;
            drop(queue);
            self.0.wanted.notify_one();
        }
    }
}

impl Receiver {
    /// Waits until the thread has something to do, and takes all requests, in order. With an
    /// instant deferrable ones wait until then. Gives whether that has passed.
    pub(crate) fn receive(&self, taken: &mut VecDeque<Request>, due: Option<Instant>) -> bool {
        let sleep = match due {
            Some(_) => Sleep::UntilUrgent,
            None => Sleep::UntilAny,
        };
        let mut queue = self.0.lock();
        let mut is_due = false;
        while !queue.has(sleep) && !is_due {
            queue.sleep = sleep;
            queue = match due {
                None => self.0.wait(queue),
                Some(due) => {
                    let left = due.saturating_duration_since(Instant::now());
                    is_due = left.is_zero();
                    let waited = self.0.wanted.wait_timeout(queue, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        queue.sleep = Sleep::Awake;
        queue.is_urgent = false;
        taken.append(&mut queue.requests);
        is_due || due.is_some_and(|due| due <= Instant::now())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.is_closed = true;
        let left = std::mem::take(&mut queue.requests);
        drop(queue);
        drop(left);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        let waited = self.wanted.wait(queue);
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use ciel_model::{Digest, Name};

    use super::*;

    fn deferrable(task: u128) -> Request {
        Request::Over {
            task: Name(task),
            has_failed: false,
        }
    }

    fn tasks(taken: &VecDeque<Request>) -> Vec<u128> {
        let task = |request: &Request| match request {
            Request::Over { task, .. } => task.0,
            _ => 0,
        };
        taken.iter().map(task).collect()
    }

    #[test]
    fn deferrable_requests_are_taken_in_order_when_the_thread_is_due() {
        let (sender, receiver) = queue();
        sender.send(deferrable(1));
        sender.send(deferrable(2));
        let mut taken = VecDeque::new();
        let due = Instant::now() + Duration::from_millis(5);
        assert!(receiver.receive(&mut taken, Some(due)));
        assert!(Instant::now() >= due);
        assert_eq!(tasks(&taken), [1, 2]);
    }

    #[test]
    fn urgent_request_is_taken_at_once_with_those_before_it() {
        let (sender, receiver) = queue();
        let mut taken = VecDeque::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sender.send(deferrable(1));
                sender.send(Request::Close);
            });
            let due = Instant::now() + Duration::from_secs(3600);
            assert!(!receiver.receive(&mut taken, Some(due)));
        });
        assert_eq!(tasks(&taken), [1, 0]);
    }

    #[test]
    fn any_request_wakes_a_thread_that_is_due_for_nothing() {
        let (sender, receiver) = queue();
        let mut taken = VecDeque::new();
        std::thread::scope(|scope| {
            scope.spawn(|| sender.send(deferrable(3)));
            assert!(!receiver.receive(&mut taken, None));
        });
        assert_eq!(tasks(&taken), [3]);
    }

    #[test]
    fn only_so_many_requests_are_deferred() {
        let (sender, receiver) = queue();
        let all = DEFERRED_MAX as u128 + 1;
        (0..all).for_each(|task| sender.send(deferrable(task)));
        let mut taken = VecDeque::new();
        let due = Instant::now() + Duration::from_secs(3600);
        assert!(!receiver.receive(&mut taken, Some(due)));
        assert_eq!(tasks(&taken), (0..all).collect::<Vec<_>>());
    }

    #[test]
    fn request_to_read_a_file_is_not_deferrable() {
        let of = |digest| Request::Read(PathBuf::from("file"), digest);
        assert!(of(Some(Digest(1))).is_deferrable() && !of(None).is_deferrable());
    }

    #[test]
    fn requests_after_the_end_are_dropped() {
        let (sender, receiver) = queue();
        drop(receiver);
        sender.send(deferrable(1));
        assert!(sender.0.lock().requests.is_empty());
    }
}
