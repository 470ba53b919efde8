//! Values that a strand receives before it asks for them, with those that it has waited for.
//!
//! A program that asks for the results of a list one after the other would otherwise be resumed for
//! each of them. It has received them as if it had asked: a replay receives them, too. This module
//! does not know how a wait ends. Read next: `wait`.

use ciel_model::{Content, Handle, ObjectKey, TaskKey};

use crate::event::Until;
use crate::graph::Graph;
use crate::objects::ObjectState;
use crate::task::Resume;

/// Values that come with one answer, at most.
const LATER_MAX: usize = 256;

impl Graph {
    /// What a strand is told when its wait is over: what it has waited for, and then what it
    /// probably asks for next.
    pub(crate) fn told_after(&mut self, key: TaskKey, resume: &Resume) -> Vec<Handle> {
        let mut told = resume.on.clone();
        let is_wanted = resume.wait.until == Until::AllAndLater;
        if let Some(last) = resume.on.last().filter(|_| is_wanted) {
            let (handles, objects): (Vec<_>, Vec<_>) = self.later(key, *last).into_iter().unzip();
            self.note_asked(key, &objects);
            told.extend(handles);
        }
        told
    }

    /// Small values behind that handle, without a gap.
    fn later(&self, key: TaskKey, last: Handle) -> Vec<(Handle, ObjectKey)> {
        let handles = (last.0.saturating_add(1)..u32::MAX).map(Handle);
        let small = handles.map_while(|handle| {
            let object = self.unread_small(key, handle)?;
            Some((handle, object))
        });
        small.take(LATER_MAX).collect()
    }

    /// What a strand that can be replayed calls by that handle, if it is a small value without
    /// references that the strand has not received.
    fn unread_small(&self, key: TaskKey, handle: Handle) -> Option<ObjectKey> {
        let task = &self.tasks[&key];
        let object = task.table.get(handle)?;
        if !task.descriptor.replayable || task.course.asked.contains(&object) {
            return None;
        }
        let ObjectState::Ready(stored) = self.objects.settled_state(object) else {
            return None;
        };
        let value = &stored.value;
        let is_small = matches!(value.content, Content::Inline(_)) && value.references.is_empty();
        is_small.then_some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Action, Continuation, Entry, Wait};
    use crate::for_tests::{block_for, fail, finish, parent_of, place};

    const LATER: Wait = Wait {
        until: Until::AllAndLater,
        ..Wait::ALL
    };

    /// What the root is told when it waits for the result of its first child.
    fn told(graph: &mut Graph, on: u32) -> Vec<u32> {
        let actions = block_for(graph, Handle(on), LATER, Continuation::Live);
        let answers = actions.into_iter().find_map(|action| match action {
            Action::Continue { answers, .. } => Some(answers),
            Action::Begin(assignment) => match assignment.entry {
                Entry::Resume(answers) => Some(answers),
                _ => None,
            },
            _ => None,
        });
        let answers = answers.expect("it goes on at once");
        answers.into_iter().map(|(handle, _)| handle.0).collect()
    }

    #[test]
    fn results_that_follow_without_a_gap_come_with_the_one_that_was_waited_for() {
        let mut graph = parent_of(6);
        for child in [1, 2, 3, 5] {
            place(&mut graph, TaskKey(child));
            finish(&mut graph, TaskKey(child));
        }
        assert_eq!(told(&mut graph, 0), [0, 1, 2]);
        // What it was told is as if it had asked for it, and comes once.
        assert_eq!(told(&mut graph, 0), [0]);
        assert_eq!(told(&mut graph, 4), [4]);
        graph.check_all();
    }

    #[test]
    fn failures_do_not_come_unasked() {
        let mut graph = parent_of(3);
        for child in [1, 2, 3] {
            place(&mut graph, TaskKey(child));
        }
        finish(&mut graph, TaskKey(1));
        fail(&mut graph, TaskKey(2));
        finish(&mut graph, TaskKey(3));
        assert_eq!(told(&mut graph, 0), [0]);
        graph.check_all();
    }
}
