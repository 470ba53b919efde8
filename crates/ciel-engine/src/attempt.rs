//! One attempt of a task, as whoever runs it sees it: what it does, and what it receives.
//!
//! Scripts, processes, workers and tasks inside the engine run attempts in ways of their own. What
//! all of them have in common is here. An [`Attempt`] numbers its actions and the handles that
//! they make, knows whether it has written output and which failures of other tasks it has
//! received, and turns what the task does into events for [`Engine::tell`](crate::Engine::tell).
//! It is to the engine what `Strand` is to the Python SDK. Whoever owns one also keeps the
//! assignment, and tells the events. Read next: `action`, then `wait`.

mod action;
mod position;
mod received;
mod state;
mod wait;

use std::sync::Arc;

use ciel_graph::{self as graph, Assignment, Entry, Step};
use ciel_model::{Failure, Handle, Resolution};
use ciel_node::AttemptKey;

use self::position::Position;
use crate::event::{Event, attempt_of};
use crate::message::Answers;

pub use action::{Act, Action, At};
pub use received::ReceivedFailures;
pub use state::saved_state;
pub use wait::{Blocked, Keep, Waited};

/// An attempt that runs or waits.
#[derive(Clone, Debug)]
pub struct Attempt {
    key: AttemptKey,
    /// The first handle that it has not given to anything.
    next_handle: Handle,
    position: Position,
    /// Whether it has written ordered output: then equal calls do not share its result.
    printed: bool,
    received: ReceivedFailures,
}

impl Attempt {
    /// The attempt of an assignment that has not run before, or whose state was saved.
    pub fn new(assignment: &Assignment) -> Attempt {
        Attempt {
            key: attempt_of(assignment),
            next_handle: assignment.next_handle,
            position: Position::starting(assignment.next_action),
            printed: state::has_printed(&assignment.entry),
            received: ReceivedFailures::default(),
        }
    }

    /// Which attempt it is.
    pub fn key(&self) -> AttemptKey {
        self.key
    }

    /// It begins or continues with what its assignment brings; the answers among that.
    pub fn enter(&mut self, entry: Entry) -> Answers {
        let answers = match entry {
            Entry::Start(answers) | Entry::Resume(answers) => answers,
            Entry::Replay { inputs, facts } => {
                self.position.rewind(&facts);
                inputs
            }
            Entry::Restore { answers, facts, .. } => {
                self.position.rewind(&facts);
                answers
            }
        };
        self.receive(&answers);
        answers
    }

    /// It receives what became of references.
    pub fn receive(&mut self, answers: &Answers) {
        for (_, resolution) in answers {
            if let Resolution::Failed(failure) = resolution {
                self.received.add(failure.clone());
            }
        }
    }

    /// The failure of another task that an error hands on, if this attempt has received that
    /// failure: the error has its message, and the task is printed as `task`.
    pub fn handed_on(&self, task: &str, message: &str) -> Option<&Arc<Failure>> {
        self.received.find(task, message)
    }

    /// Whether it is still to do again something that it did before.
    pub fn is_replaying(&self) -> bool {
        self.position.is_replaying()
    }

    /// It writes ordered output: the position of that, as the number of actions before it.
    pub fn write(&mut self) -> u64 {
        self.printed = true;
        self.position.actions()
    }

    /// Gives handles to `count` new objects; the first.
    ///
    /// A task that makes more than there are handles for is refused by the graph.
    fn make(&mut self, count: u32) -> Handle {
        let first = self.next_handle;
        self.next_handle = Handle(first.0.saturating_add(count));
        first
    }

    fn step(&self, step: Step) -> Event {
        let AttemptKey { task, attempt } = self.key;
        Event::Graph(graph::Event::TaskStepped {
            task,
            attempt,
            step,
        })
    }

    fn end(&self, end: graph::Event) -> Event {
        let (run, end) = (self.key, Some(end));
        Event::TurnEnded { run, end }
    }

    /// Whatever ran it is gone.
    pub fn lost(&self, failure: Failure) -> Event {
        let AttemptKey { task, attempt } = self.key;
        self.end(graph::Event::TaskLost {
            task,
            attempt,
            failure,
        })
    }

    /// Nothing of it runs any more, and the graph knows of its end.
    pub fn left(&self) -> Event {
        let (run, end) = (self.key, None);
        Event::TurnEnded { run, end }
    }
}
