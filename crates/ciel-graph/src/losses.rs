//! Losses: workers that die while a task runs in them, and how many of these count for a task.
//!
//! A strand may run children in place of which the graph has not heard. If one of them kills the
//! worker, the strand is lost, and its replay spawns them as tasks; the one that is to blame may
//! run in place within such a task, and so on through all levels. Therefore the loss of a strand
//! counts for a task that it has spawned since. Read next: `settle`, for what follows.

use ciel_model::{AttemptNumber, Class, Failure, Micros, TaskKey, limits};

use crate::event::Action;
use crate::graph::Graph;
use crate::story::Moment;
use crate::task::Task;

impl Graph {
    pub(crate) fn on_task_lost(
        &mut self,
        now: Micros,
        key: TaskKey,
        attempt: AttemptNumber,
        failure: Failure,
        actions: &mut Vec<Action>,
    ) {
        let Some(task) = self.running(key, attempt) else {
            return;
        };
        let again = task.descriptor.replayable || task.descriptor.class == Class::Process;
        if !again || self.losses_of(key) >= limits::LOSSES_MAX {
            return self.fail_attempt(now, key, failure, actions);
        }
        self.task_mut(key).course.losses += 1;
        self.counts.lost += 1;
        self.stop_clock(now, key);
        self.begin_again(now, key, Moment::Lost, actions);
    }

    /// Losses that count for a task: its own, and one for each strand above it that was lost when
    /// this one, or the one beneath it, perhaps ran in place there.
    pub fn losses_of(&self, task: TaskKey) -> u32 {
        let Some(mut task) = self.tasks.get(&task).map(Box::as_ref) else {
            return 0;
        };
        let mut losses = task.course.losses;
        while losses < limits::LOSSES_MAX
            && let Some(above) = self.lost_above(task)
        {
            losses += 1;
            task = above;
        }
        losses
    }

    /// The task that spawned this one, if it was lost before and had waited for nothing since.
    fn lost_above(&self, task: &Task) -> Option<&Task> {
        let spawner = task.parent.as_ref()?.name;
        if self.counts.lost == 0 || task.descriptor.class == Class::Process {
            return None;
        }
        let above = self.tasks.values().find(|above| above.name == spawner)?;
        let (spawned_at, _) = *task.story.entries().first()?;
        let entries = above.story.entries();
        let mut before = entries
            .iter()
            .rev()
            .skip_while(|entry| entry.0 > spawned_at);
        let last = before.find(|entry| matches!(entry.1, Moment::Lost | Moment::Woken));
        let is_lost = last.is_some_and(|entry| entry.1 == Moment::Lost);
        (is_lost && above.course.losses > 0).then_some(above)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ciel_model::{Descriptor, FailureKind, Handle};

    use super::*;
    use crate::event::{Continuation, Event, Step, Wait};
    use crate::for_tests::{descriptor, root, running, tell_at};

    /// The newest attempt of a task starts if need be, spawns a child with that handle, waits for
    /// it, and its child begins.
    fn go_down(graph: &mut Graph, now: Micros, task: TaskKey, action: u64) -> TaskKey {
        let attempt = graph.tasks[&task].attempt;
        tell_at(graph, now, Event::TaskPlaced { task, attempt });
        let child = TaskKey(graph.next_task);
        let descriptor = Arc::new(descriptor("child"));
        let first = Handle(action as u32);
        let step = Step::Spawn {
            action,
            first,
            descriptor,
        };
        let stepped = Event::TaskStepped {
            task,
            attempt,
            step,
        };
        tell_at(graph, now, stepped);
        let blocked = Event::TaskBlocked {
            task,
            attempt,
            kept: None,
            on: vec![first],
            wait: Wait::ALL,
            continuation: Continuation::Live,
            checkpoint: None,
        };
        tell_at(graph, now, blocked);
        let attempt = graph.tasks[&child].attempt;
        tell_at(
            graph,
            now,
            Event::TaskPlaced {
                task: child,
                attempt,
            },
        );
        child
    }

    /// The worker of a task dies; whether the task is restarted.
    fn lose(graph: &mut Graph, now: Micros, task: TaskKey) -> bool {
        let attempt = graph.tasks[&task].attempt;
        let label = graph.tasks[&task].label();
        let failure = Failure::new(FailureKind::WorkerLost, label, "its worker died");
        let lost = Event::TaskLost {
            task,
            attempt,
            failure: Box::new(failure),
        };
        tell_at(graph, now, lost);
        graph.tasks.get(&task).is_some()
    }

    /// A command cannot be replayed, but nothing of it is out before it has ended.
    #[test]
    fn command_whose_process_was_lost_restarts_without_a_retry() {
        let command = Descriptor::plain("sh", Class::Process, "command", Vec::new());
        let mut graph = running(command);
        for loss in 1..=limits::LOSSES_MAX {
            assert!(lose(&mut graph, 1, TaskKey(0)), "loss {loss}");
            let attempt = graph.tasks[&TaskKey(0)].attempt;
            let task = TaskKey(0);
            tell_at(&mut graph, 1, Event::TaskPlaced { task, attempt });
        }
        assert!(!lose(&mut graph, 1, TaskKey(0)), "its loss is its failure");
    }

    /// A task deep in a recursion killed its worker while all above it ran in place. The strand was
    /// lost, its replay spawned the next level as a task, that was lost with all beneath it, and so
    /// on: as many workers died as there were levels, although three losses are the most.
    #[test]
    fn levels_that_are_lost_one_after_the_other_count_together() {
        let mut graph = root();
        let mut task = TaskKey(0);
        for now in 1..=u64::from(limits::LOSSES_MAX) {
            assert!(lose(&mut graph, now, task), "loss {now}");
            task = go_down(&mut graph, now, task, 0);
        }
        assert_eq!(graph.losses_of(task), limits::LOSSES_MAX);
        assert!(!lose(&mut graph, 10, task), "its loss is its failure");
    }

    #[test]
    fn loss_before_which_a_task_was_spawned_does_not_count_for_it() {
        let mut graph = root();
        let child = go_down(&mut graph, 1, TaskKey(0), 0);
        assert!(lose(&mut graph, 2, child));
        assert_eq!(graph.losses_of(child), 1);
        assert_eq!(graph.losses_of(TaskKey(0)), 0);
    }

    #[test]
    fn loss_after_which_a_strand_has_waited_does_not_count_for_what_it_spawns_then() {
        let mut graph = root();
        assert!(lose(&mut graph, 1, TaskKey(0)));
        let child = go_down(&mut graph, 2, TaskKey(0), 0);
        assert_eq!(graph.losses_of(child), 1);
        crate::for_tests::finish(&mut graph, child);
        let next = go_down(&mut graph, 3, TaskKey(0), 1);
        assert_eq!(graph.losses_of(next), 0);
    }
}
