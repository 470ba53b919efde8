//! Files that are lost while the run lives: they are recomputed, and who has missed them begins
//! again behind that.
//!
//! Nothing that runs is stopped. What is ready waits, as it may read what is lost; a task that has
//! missed a file waits, too, whenever it was spawned. What another process has lost is the same
//! event to it as to a run that is resumed. Read next: `reconstruct`.

use std::collections::BTreeSet;

use ciel_model::{Class, Failure, FailureKind, Micros, Name, TaskKey, limits};

use crate::event::Action;
use crate::graph::Graph;
use crate::reconstruct::Reconstruction;
use crate::story::Moment;
use crate::task::{State, Task};

impl Graph {
    pub(crate) fn on_files_lost(
        &mut self,
        now: Micros,
        mut lost: Vec<Name>,
        actions: &mut Vec<Action>,
    ) {
        if self.verdict.is_over() {
            return;
        }
        self.files_lost_at = Some(now);
        lost.retain(|name| self.objects.has_file(*name));
        if lost.is_empty() {
            return;
        }
        let wanted = self.remaking.iter().flat_map(|remaking| remaking.wanted());
        let both: BTreeSet<Name> = wanted.chain(lost.iter().copied()).collect();
        let all = both.into_iter().collect::<Vec<_>>();
        if self.begin_remaking(&lost) {
            self.remake(now, &all, actions);
        }
    }

    /// Whether files are being recomputed.
    pub fn recomputes_files(&self) -> bool {
        self.remaking.is_some()
    }

    /// Whether an attempt that fails so may have missed the file of an object: the failure is its
    /// own, and not that of a task whose result it received, and files were lost while it ran. A
    /// program can fail in the same way by itself.
    pub(crate) fn may_have_missed(&self, key: TaskKey, failure: &Failure) -> bool {
        let task = &self.tasks[&key];
        let is_own = failure.kind == FailureKind::ObjectLost && failure.origin == task.label();
        is_own
            && task.begins_again()
            && self.were_files_lost(key)
            && !self.verdict.is_over()
            && task.course.misses < limits::MISSES_MAX
    }

    /// Whether a file may have been missing for a running task since it continued.
    fn were_files_lost(&self, key: TaskKey) -> bool {
        let State::Running { since } = self.tasks[&key].state else {
            return false;
        };
        let is_awaited = self.remaking.is_some() && !self.is_for_lost_files(key);
        is_awaited || self.files_lost_at.is_some_and(|lost_at| lost_at >= since)
    }

    /// Whether a task is rerun for lost files, or comes from one that is: these wait for it.
    fn is_for_lost_files(&self, key: TaskKey) -> bool {
        let before = self.remaking.as_ref();
        let before = before.and_then(|remaking| remaking.before);
        let begin = self.tasks[&key].strand.begin;
        before.is_some_and(|before| self.order.precedes(before, begin))
    }

    /// Lost files are there again, or never will be.
    pub(crate) fn take_remaking(&mut self, now: Micros) -> Option<Reconstruction> {
        let remaking = self.remaking.take()?;
        self.files_lost_at = Some(now);
        let before = remaking.before.into_iter();
        before.for_each(|mark| self.order.remove(mark));
        Some(remaking)
    }

    /// Files stay lost. A job fails for that, since it can be started again. A program that cannot,
    /// as that of a session, continues: only the tasks fail that need one of them.
    pub(crate) fn go_without_files(
        &mut self,
        now: Micros,
        failure: Failure,
        held_back: Vec<TaskKey>,
        actions: &mut Vec<Action>,
    ) {
        let root = self.root().and_then(|root| self.tasks.get(&root));
        let is_script = |root: &Task| root.descriptor.class == Class::Coordination;
        match root.is_none_or(|root| root.begins_again() || is_script(root)) {
            true => self.on_job_cancelled(now, failure, actions),
            false => self.offer_held_back(held_back, actions),
        }
    }

    /// An attempt has failed for want of a file: another one begins when all files are there, and
    /// no retry is used up.
    pub(crate) fn begin_again_with_its_files(
        &mut self,
        now: Micros,
        key: TaskKey,
        actions: &mut Vec<Action>,
    ) {
        self.stop_clock(now, key);
        self.task_mut(key).course.misses += 1;
        let is_awaited = self.is_for_lost_files(key);
        if let Some(remaking) = self.remaking.as_mut().filter(|_| !is_awaited) {
            remaking.hold_reader(key);
        }
        self.begin_again(now, key, Moment::FileLost, actions);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ciel_model::{Content, Descriptor, Handle, Input, Label, Pool};

    use super::*;
    use crate::event::{Continuation, Event, Step, Wait};
    use crate::for_tests::{FIRST, ROOT, descriptor, finished, offered, root, running, tell_at};

    fn place(graph: &mut Graph, now: Micros, task: TaskKey) {
        let attempt = graph.tasks[&task].attempt;
        tell_at(graph, now, Event::TaskPlaced { task, attempt });
    }

    /// A task spawns its first child.
    fn spawn(graph: &mut Graph, now: Micros, task: TaskKey, what: &str) {
        spawn_as(graph, now, (task, 0), descriptor(what));
    }

    /// A task spawns a child as that action.
    fn spawn_as(
        graph: &mut Graph,
        now: Micros,
        (task, action): (TaskKey, u64),
        descriptor: Descriptor,
    ) {
        let step = Step::Spawn {
            action,
            first: Handle(action as u32),
            descriptor: Arc::new(descriptor),
        };
        let event = Event::TaskStepped {
            task,
            attempt: FIRST,
            step,
        };
        tell_at(graph, now, event);
    }

    /// A task fails by itself as if it had missed a file.
    fn fail(graph: &mut Graph, now: Micros, task: TaskKey) -> Vec<Action> {
        let running = &graph.tasks[&task];
        let (attempt, label) = (running.attempt, running.label());
        let failure = Failure::new(FailureKind::ObjectLost, label, "no form for it");
        let failure = Box::new(failure);
        let event = Event::TaskFailed {
            task,
            attempt,
            failure,
        };
        tell_at(graph, now, event)
    }

    /// A program that raised the error itself was once restarted sixteen times before that was its
    /// failure.
    #[test]
    fn failure_of_a_task_for_which_no_file_was_lost_is_its_own() {
        let mut graph = root();
        let actions = fail(&mut graph, 1, ROOT);
        assert_eq!(offered(&actions), []);
        assert!(
            actions
                .iter()
                .any(|action| matches!(action, Action::JobEnded(_)))
        );
    }

    #[test]
    fn task_is_restarted_once_for_each_time_that_files_were_lost_while_it_ran() {
        let mut graph = root();
        let lost = vec![Name::of_root(
            b"of a script as JSON, which no task has made",
        )];
        tell_at(&mut graph, 1, Event::FilesLost { lost });
        let actions = fail(&mut graph, 2, ROOT);
        assert_eq!(offered(&actions), [ROOT]);
        place(&mut graph, 3, ROOT);
        assert_eq!(offered(&fail(&mut graph, 4, ROOT)), []);
    }

    /// A child of a task that was rerun for a lost file failed as if it missed one, and its parent
    /// expected that. It once waited for that file, and the file for it: the run hung.
    #[test]
    fn child_of_a_rerun_task_that_fails_by_itself_does_not_wait_for_the_lost_file() {
        let mut graph = root();
        spawn(&mut graph, 1, ROOT, "maker");
        place(&mut graph, 2, TaskKey(1));
        let Label { name, .. } = graph.tasks[&TaskKey(1)].label();
        let name = name.output(0);
        let file = || Content::File {
            name,
            length: 2000,
            digest: None,
        };
        tell_at(&mut graph, 3, finished(TaskKey(1), file()));
        let lost = vec![name];
        let maker = TaskKey(2);
        assert_eq!(
            offered(&tell_at(&mut graph, 4, Event::FilesLost { lost })),
            [maker]
        );
        place(&mut graph, 5, maker);
        spawn(&mut graph, 6, maker, "child");
        place(&mut graph, 7, TaskKey(3));
        let block = Event::TaskBlocked {
            task: maker,
            attempt: FIRST,
            kept: None,
            on: vec![Handle(0)],
            wait: Wait::ALL,
            continuation: Continuation::Live,
            checkpoint: None,
        };
        tell_at(&mut graph, 8, block);
        assert!(graph.recomputes_files());
        assert_eq!(offered(&fail(&mut graph, 9, TaskKey(3))), [maker]);
        place(&mut graph, 10, maker);
        tell_at(&mut graph, 11, finished(maker, file()));
        assert!(!graph.recomputes_files());
    }

    /// A session ended, with all its results, when a task of it needed a lost file that could not
    /// be recomputed.
    #[test]
    fn reader_of_a_file_that_stays_lost_fails_alone_where_the_root_cannot_begin_again() {
        let pool = Class::Pooled(Pool::new("e", 1));
        let root = Descriptor::plain("e", pool, "session", Vec::new());
        let mut graph = running(root);
        spawn(&mut graph, 1, ROOT, "maker");
        place(&mut graph, 2, TaskKey(1));
        let name = graph.tasks[&TaskKey(1)].name.output(0);
        let file = |length| Content::File {
            name,
            length,
            digest: None,
        };
        tell_at(&mut graph, 3, finished(TaskKey(1), file(2000)));
        let reader = Descriptor {
            inputs: vec![Input::value(Handle(0))],
            ..Descriptor::plain("sh", Class::Process, "reader", Vec::new())
        };
        spawn_as(&mut graph, 4, (ROOT, 1), reader);
        let (reader, again) = (TaskKey(2), TaskKey(3));
        place(&mut graph, 5, reader);
        let lost = vec![name];
        assert_eq!(
            offered(&tell_at(&mut graph, 6, Event::FilesLost { lost })),
            [again]
        );
        assert_eq!(offered(&fail(&mut graph, 7, reader)), []);
        place(&mut graph, 8, again);
        // The task gives something else by now.
        let actions = tell_at(&mut graph, 9, finished(again, file(3000)));
        assert_eq!(offered(&actions), [reader]);
        place(&mut graph, 10, reader);
        let failed = fail(&mut graph, 11, reader);
        assert_eq!(offered(&failed), []);
        let ends = |action: &Action| matches!(action, Action::JobEnded(_));
        assert!(!actions.iter().chain(&failed).any(ends));
        spawn_as(&mut graph, 12, (ROOT, 2), descriptor("later"));
        place(&mut graph, 13, TaskKey(4));
        tell_at(
            &mut graph,
            14,
            finished(TaskKey(4), Content::Inline("7".into())),
        );
    }
}
