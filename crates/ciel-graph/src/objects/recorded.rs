//! Objects that only the record of their spawn holds.
//!
//! A replay of the task that spawned them comes to the same handles, but reads only what the task
//! has demanded. So a value that it has released without that, and that nobody else holds, is
//! dropped; its key stays, with which the replay compares its calls. It does not know what a task
//! has demanded. Read next: `release`, which does.

use ciel_model::{ObjectKey, TaskKey};

use super::{Object, ObjectState, Objects, Recorded, Released};

impl Object {
    /// Whether it has a value that nobody can name, and a record of a task that has released it.
    pub(super) fn is_unread(&self) -> bool {
        self.holders == 1
            && matches!(self.recorded, Recorded::Released(_))
            && matches!(self.state, ObjectState::Ready(_))
    }
}

impl Objects {
    /// A fact of `task` is one of the holders of `key`.
    pub(crate) fn record(&mut self, key: ObjectKey, task: TaskKey) {
        self.set_recorded(key, Recorded::By(task));
    }

    /// No fact holds `key` any more.
    pub(crate) fn forget_record(&mut self, key: ObjectKey) {
        self.set_recorded(key, Recorded::No);
    }

    fn set_recorded(&mut self, key: ObjectKey, recorded: Recorded) {
        let object = self.table.get_mut(&key);
        object.expect("a held object is in the table").recorded = recorded;
    }

    /// `task` has released `key`: a fact of it that holds the object does not name it any more.
    pub(crate) fn give_up(&mut self, key: ObjectKey, task: TaskKey) {
        if let Some(object) = self.table.get_mut(&key)
            && object.recorded == Recorded::By(task)
        {
            object.recorded = Recorded::Released(task);
        }
    }

    /// The task whose record alone holds the value of `key`.
    pub(crate) fn recorder_of_unread(&self, key: ObjectKey) -> Option<TaskKey> {
        let object = self.table.get(&key).filter(|object| object.is_unread())?;
        match object.recorded {
            Recorded::Released(task) => Some(task),
            Recorded::No | Recorded::By(_) => None,
        }
    }

    /// Whether the value of `key` was dropped.
    pub(crate) fn is_dropped(&self, key: ObjectKey) -> bool {
        let object = self.table.get(&key);
        object.is_some_and(|object| matches!(object.state, ObjectState::Dropped))
    }

    /// Drops the value of `key`, which releases what it holds.
    pub(crate) fn drop_value(&mut self, key: ObjectKey, released: &mut Released) {
        let object = self.table.get_mut(&key);
        let object = object.expect("the caller has seen that it is held");
        let value = std::mem::replace(&mut object.state, ObjectState::Dropped);
        self.drop_state(value, released);
    }
}
