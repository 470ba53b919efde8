//! Files that are lost while the run lives: they are recomputed, and who has missed them begins
//! again behind that.
//!
//! Nothing that runs is stopped. What is ready waits, as it may read what is lost; a task that has
//! missed a file waits, too, whenever it was spawned. What another process has lost is the same
//! event to it as to a run that is resumed. Read next: `reconstruct`.

use ciel_model::{Class, Failure, FailureKind, Micros, Name, TaskKey, limits};

use crate::event::Action;
use crate::graph::Graph;
use crate::story::Moment;

impl Graph {
    pub(crate) fn on_files_lost(
        &mut self,
        now: Micros,
        mut lost: Vec<Name>,
        actions: &mut Vec<Action>,
    ) {
        if !self.keeps_lineage || self.verdict.is_over() {
            return;
        }
        lost.retain(|name| self.objects.has_file(*name));
        if lost.is_empty() {
            return;
        }
        let wanted = self.remaking.iter().flat_map(|remaking| remaking.wanted());
        let both: std::collections::BTreeSet<Name> = wanted.chain(lost.iter().copied()).collect();
        let all = both.into_iter().collect::<Vec<_>>();
        if self.begin_remaking(&lost) {
            self.remake(now, &all, actions);
        }
    }

    /// Whether an attempt that has failed so has missed the file of an object: the failure is its
    /// own, and not that of a task whose result it received.
    pub(crate) fn may_have_missed(&self, key: TaskKey, failure: &Failure) -> bool {
        let task = &self.tasks[&key];
        let is_own = failure.kind == FailureKind::ObjectLost && failure.origin == task.label();
        let begins_again = task.descriptor.replayable || task.descriptor.class == Class::Process;
        self.keeps_lineage
            && is_own
            && begins_again
            && !self.verdict.is_over()
            && task.course.misses < limits::MISSES_MAX
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
        if let Some(remaking) = &mut self.remaking {
            remaking.hold_reader(key);
        }
        self.begin_again(now, key, Moment::FileLost, actions);
    }
}
