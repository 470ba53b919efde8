//! Tasks that wait until the serial order has reached them.
//!
//! The turn of a task has come when the serial frontier stands at its strand: everything before it
//! is final. A strand without a place in the order (of a lazy task, or behind the output's end) has
//! nothing to wait for. It does not know what the tasks do then. Read next: `exports`, `output`.

use ciel_journal::Sequence;
use ciel_model::StrandKey;
use ciel_node::AttemptKey;
use ciel_ordered::OrderedStream;
use tokio::sync::oneshot;

/// What a task receives when its turn has come: the last record among its causes, if any are kept.
pub(crate) type Causes = Option<Sequence>;

/// A task that waits for its turn.
#[derive(Debug)]
struct Waiting {
    strand: ciel_ordered::StrandKey,
    attempt: AttemptKey,
    turn: oneshot::Sender<Causes>,
}

impl Waiting {
    fn has_turn(&self, stream: &OrderedStream) -> bool {
        stream.frontier() == Some(self.strand) || !stream.has_place(self.strand)
    }
}

/// All tasks that wait for their turns.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    waiting: Vec<Waiting>,
}

impl Gate {
    /// A task waits from now on; the receiver fails if it is stopped before its turn.
    pub(crate) fn wait(
        &mut self,
        strand: StrandKey,
        attempt: AttemptKey,
    ) -> oneshot::Receiver<Causes> {
        let (turn, receiver) = oneshot::channel();
        self.waiting.push(Waiting {
            strand: ciel_ordered::StrandKey(strand.0),
            attempt,
            turn,
        });
        receiver
    }

    /// Whether no task waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether [`open`](Gate::open) would let any go.
    pub(crate) fn is_due(
        &self,
        stream: &OrderedStream,
        is_stopping: impl Fn(AttemptKey) -> bool,
    ) -> bool {
        let is_due = |waiting: &Waiting| waiting.has_turn(stream) && !is_stopping(waiting.attempt);
        self.waiting.iter().any(is_due)
    }

    /// A task is stopped, and waits no longer.
    pub(crate) fn stop(&mut self, attempt: AttemptKey) {
        self.waiting.retain(|waiting| waiting.attempt != attempt);
    }

    /// Lets those go whose turn has come in the order of `stream`, and which are not to stop; what
    /// is recorded up to `causes` includes the causes of what they do.
    pub(crate) fn open(
        &mut self,
        stream: &OrderedStream,
        causes: Causes,
        is_stopping: impl Fn(AttemptKey) -> bool,
    ) {
        let come =
            |waiting: &mut Waiting| waiting.has_turn(stream) && !is_stopping(waiting.attempt);
        for waiting in self.waiting.extract_if(.., come) {
            // One that has stopped waiting does not mind.
            let _ = waiting.turn.send(causes);
        }
    }
}

#[cfg(test)]
mod tests {
    use ciel_model::{AttemptNumber, TaskKey};

    use super::*;

    fn attempt(task: u64) -> AttemptKey {
        AttemptKey {
            task: TaskKey(task),
            number: AttemptNumber(0),
        }
    }

    fn never(_: AttemptKey) -> bool {
        false
    }

    /// A stream in which strand 1 has spawned 2 and 3, in this order.
    fn stream() -> OrderedStream {
        let key = ciel_ordered::StrandKey;
        let mut stream = OrderedStream::new();
        stream.open_root(key(1)).unwrap();
        for child in [2, 3] {
            stream.spawn(key(1), key(child)).unwrap();
        }
        stream
    }

    #[test]
    fn turn_comes_when_everything_before_has_ended() {
        let (mut gate, mut stream) = (Gate::default(), stream());
        let mut turn = gate.wait(StrandKey(3), attempt(3));
        assert_eq!(stream.take_ready(1), None);
        assert!(!gate.is_due(&stream, never));
        gate.open(&stream, None, never);
        assert!(turn.try_recv().is_err() && !gate.is_empty());
        stream.close(ciel_ordered::StrandKey(2)).unwrap();
        assert_eq!(stream.take_ready(1), None);
        assert!(gate.is_due(&stream, never));
        gate.open(&stream, Some(Sequence(7)), never);
        assert_eq!(turn.try_recv(), Ok(Some(Sequence(7))));
        assert!(gate.is_empty());
    }

    #[test]
    fn strand_without_a_place_waits_for_nothing_unless_it_is_to_stop() {
        let mut gate = Gate::default();
        let mut turn = gate.wait(StrandKey(9), attempt(9));
        gate.open(&stream(), None, |_| true);
        assert!(turn.try_recv().is_err());
        gate.open(&stream(), None, never);
        assert_eq!(turn.try_recv(), Ok(None));
    }

    #[test]
    fn stopped_task_gets_no_turn() {
        let mut gate = Gate::default();
        let mut turn = gate.wait(StrandKey(9), attempt(9));
        gate.stop(attempt(9));
        gate.open(&stream(), None, never);
        assert_eq!(turn.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }
}
