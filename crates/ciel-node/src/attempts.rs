//! A table of attempts, of each task the latest one.
//!
//! It grows by a page at a time, as [`KeyTable`] does. Read next: `node`.

use std::ops::Index;

use ciel_model::{AttemptNumber, KeyTable, TaskKey};

use crate::event::AttemptKey;

/// A table from attempts, at most one of each task.
#[derive(Clone, Debug)]
pub(crate) struct Attempts<V>(KeyTable<TaskKey, (AttemptNumber, V)>);

impl<V> Default for Attempts<V> {
    fn default() -> Attempts<V> {
        Attempts(KeyTable::default())
    }
}

impl<V> Attempts<V> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, attempt: &AttemptKey) -> Option<&V> {
        let latest = self.0.get(&attempt.task);
        let latest = latest.filter(|(number, _)| *number == attempt.number);
        latest.map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, attempt: &AttemptKey) -> Option<&mut V> {
        let latest = self.0.get_mut(&attempt.task);
        let latest = latest.filter(|(number, _)| *number == attempt.number);
        latest.map(|(_, value)| value)
    }

    pub(crate) fn contains_key(&self, attempt: &AttemptKey) -> bool {
        self.get(attempt).is_some()
    }

    /// Whether any attempt of that task is in the table.
    pub(crate) fn contains_task(&self, task: TaskKey) -> bool {
        self.0.get(&task).is_some()
    }

    /// In place of what an earlier attempt of the task has.
    pub(crate) fn insert(&mut self, attempt: AttemptKey, value: V) {
        self.0.insert(attempt.task, (attempt.number, value));
    }

    pub(crate) fn remove(&mut self, attempt: &AttemptKey) -> Option<V> {
        self.get(attempt)?;
        self.0.remove(&attempt.task).map(|(_, value)| value)
    }
}

impl<V> Index<&AttemptKey> for Attempts<V> {
    type Output = V;

    fn index(&self, attempt: &AttemptKey) -> &V {
        self.get(attempt).expect("the attempt is in the table")
    }
}
