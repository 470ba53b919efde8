//! One attempt of a task, as its executor sees it: its actions, and what it receives.
//!
//! Scripts, processes, workers and tasks inside the engine run attempts in ways of their own. This
//! module has what they share. An [`Attempt`] numbers its actions and their handles, knows whether
//! it has written output and which failures of other tasks it has received, and turns what the task
//! does into events for [`Engine::tell`](crate::Engine::tell). It is to the engine what `Strand` is
//! to the Python SDK. Its owner also keeps the assignment, and submits the events. Read next:
//! `action`, then `wait`.

mod action;
mod outputs;
mod position;
mod received;
mod state;
mod wait;

use ciel_graph::{self as graph, Assignment, Entry, Step};
use ciel_model::{ActionKey, Fact, Failure, Handle, Resolution};
use ciel_node::AttemptKey;

use self::outputs::Outputs;
use self::position::Position;
use crate::event::{Event, attempt_of};
use crate::message::Answers;

pub use action::{Act, Action, At};
pub use outputs::OutputError;
pub use position::IndexError;
pub use received::ReceivedFailures;
pub use state::saved_state;
pub use wait::{Blocked, Kept, Waited};

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
    outputs: Outputs,
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
            outputs: Outputs::new(assignment.descriptor.outputs),
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
            Entry::Replay { inputs, facts, .. } => {
                self.rewind(&facts);
                inputs
            }
            Entry::Restore { answers, facts, .. } => {
                self.rewind(&facts);
                answers
            }
        };
        self.receive_all(&answers);
        answers
    }

    /// It is before all of `facts`, which it does again.
    pub fn rewind(&mut self, facts: &[Fact]) {
        self.position.rewind(facts);
    }

    /// It receives what became of a reference.
    pub fn receive(&mut self, known: &Resolution) {
        if let Resolution::Failed(failure) = known {
            self.received.add(failure.clone());
        }
    }

    fn receive_all(&mut self, answers: &Answers) {
        answers.iter().for_each(|(_, known)| self.receive(known));
    }

    /// The failures of other tasks that it has received, one of which may be its own end.
    pub fn received(&self) -> &ReceivedFailures {
        &self.received
    }

    /// Whether what it does at `at` it did before, in a run that it repeats.
    pub fn repeats(&self, at: ActionKey) -> bool {
        self.position.repeats(at)
    }

    /// Whether it has not come to the end of what it repeats.
    pub fn is_replaying(&self) -> bool {
        self.position.is_replaying()
    }

    /// Actions of its strand so far.
    pub fn actions(&self) -> u64 {
        self.position.actions()
    }

    /// It has done so many actions, by its own count.
    ///
    /// # Errors
    /// It had done more.
    pub fn reach(&mut self, actions: u64) -> Result<(), IndexError> {
        self.position.reach(actions)
    }

    /// A wait is over whose end depends on time: that was an action.
    pub fn pass_wait(&mut self) {
        self.position.pass(At::Action);
    }

    /// It gives one of its outputs before its end, which it does once for each.
    ///
    /// # Errors
    /// It has no such output, or gave that before.
    pub fn give(&mut self, output: u32) -> Result<(), OutputError> {
        self.outputs.give(output)
    }

    /// Whether it may give that output.
    ///
    /// # Errors
    /// It has no such output, or gave that before.
    pub fn may_give(&self, output: u32) -> Result<(), OutputError> {
        self.outputs.may_give(output)
    }

    /// Whether it has given an output before its end.
    pub fn has_given(&self) -> bool {
        self.outputs.any_given()
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
        let AttemptKey {
            task,
            number: attempt,
        } = self.key;
        Event::Graph(graph::Event::TaskStepped {
            task,
            attempt,
            step,
        })
    }

    /// It has failed.
    pub fn failed(&self, failure: Failure) -> graph::Event {
        let AttemptKey {
            task,
            number: attempt,
        } = self.key;
        graph::Event::TaskFailed {
            task,
            attempt,
            failure: Box::new(failure),
        }
    }

    /// Whatever ran it is gone.
    pub fn lost(&self, failure: Failure) -> graph::Event {
        let AttemptKey {
            task,
            number: attempt,
        } = self.key;
        graph::Event::TaskLost {
            task,
            attempt,
            failure: Box::new(failure),
        }
    }

    /// It uses these handles no more; nothing if there are none.
    pub fn release(&self, handles: Vec<Handle>) -> Option<Event> {
        let releases = !handles.is_empty();
        releases.then(|| self.step(Step::Release { handles }))
    }

    /// It watches a reference, and continues.
    pub fn watch(&self, handle: Handle) -> graph::Event {
        let AttemptKey {
            task,
            number: attempt,
        } = self.key;
        graph::Event::TaskWatched {
            task,
            attempt,
            handle,
        }
    }

    /// It has ended so, and has left its slot.
    pub fn left_with(&self, end: graph::Event) -> Event {
        let (attempt, end) = (self.key, Some(end));
        Event::TurnEnded { attempt, end }
    }

    /// It has left its slot, and the graph knows of its end.
    pub fn left(&self) -> Event {
        let (attempt, end) = (self.key, None);
        Event::TurnEnded { attempt, end }
    }
}
