//! The table of objects: the state of each, and the number of its holders.
//!
//! Reference counts suffice because the graph is acyclic by construction: a task can only hold
//! references it was given or made. It does not know tasks beyond the keys of those that wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use ciel_model::{
    Content, Failure, FileContent, Handle, HashTrie, KeyTable, Name, ObjectKey, SegmentedQueue,
    TaskKey, Value,
};
use rustc_hash::FxHashSet;

use crate::lineage::Origin;

pub(crate) use members::Members;

mod members;
mod recomputed;
mod recorded;
mod saved;

/// What an object is at the moment.
#[derive(Clone, Debug)]
pub(crate) enum ObjectState {
    /// Its task has not finished.
    Future {
        producer: TaskKey,
        waiters: Members<Waiter>,
        aliases: Members<ObjectKey>,
    },
    /// It will be what another, unfinished one will be.
    Alias(ObjectKey),
    /// Resolved to a stored value.
    Ready(Arc<Stored>),
    /// Its task failed.
    Failed {
        failure: Arc<Failure>,
        /// The output of the failed task itself; to demand a copy of it is to demand this one.
        source: ObjectKey,
        /// Its task had retries of its own, so another attempt of the spawner does not repeat it.
        is_final: bool,
    },
    /// It was ready, and nothing will read it: only the record of its spawn holds it.
    Dropped,
}

/// The tasks to wake or notify when an object is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) enum Waiter {
    /// A task that waits until.
    Blocked(TaskKey),
    /// A task that runs, and calls the object so.
    Watching(TaskKey, Handle),
    /// A task that waits for the first of a list, where this is the place of the object; also
    /// between such waits.
    FirstOf(TaskKey, u32),
    /// A task that reads the object while it is written.
    Reading(TaskKey),
}

/// A finished object; several keys may share it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Its name, for messages.
    pub(crate) name: Name,
    /// What it is.
    pub(crate) value: Value<ObjectKey>,
    /// How its file is recomputed, if it has a file and a lineage.
    pub(crate) origin: Option<Origin>,
}

#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) name: Name,
    pub(crate) state: ObjectState,
    /// Table entries, embedded references, aliases and roots that hold it.
    pub(crate) holders: u32,
    /// Whether a task has received its failure, or would receive it.
    pub(crate) asked: bool,
    /// The record of a spawn among its holders.
    pub(crate) recorded: Recorded,
}

/// Whether a fact of a task holds an object, beside what can name the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Recorded {
    /// None does.
    No,
    /// A fact of that task does.
    By(TaskKey),
    /// The same, and the task has released the object: no replay of it will read what it has not
    /// demanded.
    Released(TaskKey),
}

/// What a release let go of.
#[derive(Debug, Default)]
pub(crate) struct Released {
    /// Names whose files can go.
    pub(crate) files: Vec<Name>,
    /// Producers of objects without holders.
    pub(crate) unwanted: Vec<TaskKey>,
    /// Objects that only a record holds by now.
    pub(crate) unread: Vec<ObjectKey>,
}

impl Released {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.unwanted.is_empty() && self.unread.is_empty()
    }
}

/// Sources that are looked at when a file is let go of: more than it can add.
const SOURCES_LOOK: usize = 2;

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(try_from = "saved::Saved")]
pub(crate) struct Objects {
    table: KeyTable<ObjectKey, Object>,
    next: u64,
    /// How many stored values are that file.
    files: HashTrie<Name, u32>,
    /// Files without holders, from which other objects were derived.
    sources: SegmentedQueue<Origin>,
}

impl Objects {
    /// A new future that `holders` others hold from the start.
    pub(crate) fn create(&mut self, name: Name, producer: TaskKey, holders: u32) -> ObjectKey {
        let state = ObjectState::Future {
            producer,
            waiters: Members::default(),
            aliases: Members::default(),
        };
        self.insert(Object {
            name,
            state,
            holders,
            asked: false,
            recorded: Recorded::No,
        })
    }

    /// A finished value; its references are held already.
    pub(crate) fn store(
        &mut self,
        name: Name,
        value: Value<ObjectKey>,
        origin: Option<Origin>,
    ) -> ObjectState {
        self.count_file(&value.content);
        ObjectState::Ready(Arc::new(Stored {
            name,
            value,
            origin,
        }))
    }

    /// A new finished object that one other holds.
    pub(crate) fn create_ready(
        &mut self,
        name: Name,
        value: Value<ObjectKey>,
        origin: Option<Origin>,
    ) -> ObjectKey {
        let state = self.store(name, value, origin);
        self.insert(Object {
            name,
            state,
            holders: 1,
            asked: false,
            recorded: Recorded::No,
        })
    }

    fn insert(&mut self, object: Object) -> ObjectKey {
        let key = ObjectKey(self.next);
        self.next += 1;
        self.table.insert(key, object);
        key
    }

    pub(crate) fn get(&self, key: ObjectKey) -> Option<&Object> {
        self.table.get(&key)
    }

    #[cfg(debug_assertions)]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ObjectKey, &Object)> {
        self.table.iter()
    }

    /// The object that `key` resolves to: itself, or the target of its alias.
    pub(crate) fn target(&self, key: ObjectKey) -> ObjectKey {
        match self.table.get(&key).map(|object| &object.state) {
            Some(ObjectState::Alias(target)) => *target,
            _ => key,
        }
    }

    /// The file of an object, if it is resolved to one.
    pub(crate) fn file_of(&self, key: ObjectKey) -> Option<Name> {
        self.content_of_file(key).map(|(name, _)| name)
    }

    /// The same with what it holds.
    pub(crate) fn content_of_file(&self, key: ObjectKey) -> Option<(Name, FileContent)> {
        match self.settled_state(key) {
            ObjectState::Ready(stored) => stored.value.content.file(),
            _ => None,
        }
    }

    /// The state behind all aliases.
    pub(crate) fn settled_state(&self, key: ObjectKey) -> &ObjectState {
        let target = self.target(key);
        &self
            .table
            .get(&target)
            .expect("a held object is in the table")
            .state
    }

    /// One more holder.
    pub(crate) fn hold(&mut self, key: ObjectKey) {
        self.table
            .get_mut(&key)
            .expect("only a held object can be held again")
            .holders += 1;
    }

    /// Makes `task` wait for `key`; false if there is nothing to wait for.
    pub(crate) fn wait(&mut self, key: ObjectKey, task: TaskKey) -> bool {
        self.add_waiter(key, Waiter::Blocked(task))
    }

    /// Makes `task` watch `key`, its handle `handle`; false if there is nothing to wait for.
    pub(crate) fn watch(&mut self, key: ObjectKey, task: TaskKey, handle: Handle) -> bool {
        self.add_waiter(key, Waiter::Watching(task, handle))
    }

    /// Notes that `key` is at that place of a list of which `task` waits for the first; false if it
    /// is resolved.
    pub(crate) fn follow(&mut self, key: ObjectKey, task: TaskKey, place: u32) -> bool {
        self.add_waiter(key, Waiter::FirstOf(task, place))
    }

    fn add_waiter(&mut self, key: ObjectKey, waiter: Waiter) -> bool {
        let target = self.target(key);
        match &mut self
            .table
            .get_mut(&target)
            .expect("a held object is in the table")
            .state
        {
            ObjectState::Future { waiters, .. } => {
                waiters.push(waiter);
                true
            }
            ObjectState::Ready(_) | ObjectState::Failed { .. } | ObjectState::Dropped => false,
            ObjectState::Alias(_) => unreachable!("a target is never an alias"),
        }
    }

    /// `task` reads `key` while it is written.
    pub(crate) fn read(&mut self, key: ObjectKey, task: TaskKey) -> bool {
        self.add_waiter(key, Waiter::Reading(task))
    }

    /// `task` does not read `key` any more.
    pub(crate) fn read_no_more(&mut self, key: ObjectKey, task: TaskKey) {
        self.remove_waiter(key, Waiter::Reading(task));
    }

    /// `task` does not wait for `key` any more.
    pub(crate) fn wait_no_more(&mut self, key: ObjectKey, task: TaskKey) {
        self.remove_waiter(key, Waiter::Blocked(task));
    }

    /// `task` does not watch `key` as `handle` any more.
    pub(crate) fn watch_no_more(&mut self, key: ObjectKey, task: TaskKey, handle: Handle) {
        self.remove_waiter(key, Waiter::Watching(task, handle));
    }

    /// That place of that list is of no interest any more.
    pub(crate) fn follow_no_more(&mut self, key: ObjectKey, task: TaskKey, place: u32) {
        self.remove_waiter(key, Waiter::FirstOf(task, place));
    }

    fn remove_waiter(&mut self, key: ObjectKey, gone: Waiter) {
        let target = self.target(key);
        if let Some(Object {
            state: ObjectState::Future { waiters, .. },
            ..
        }) = self.table.get_mut(&target)
        {
            waiters.take(gone);
        }
    }

    /// Marks `key` as demanded, so that its failure counts as handled.
    pub(crate) fn ask(&mut self, key: ObjectKey) {
        let target = self.target(key);
        let source = match self.table.get(&target).map(|object| &object.state) {
            Some(ObjectState::Failed { source, .. }) => *source,
            _ => target,
        };
        for key in [key, target, source] {
            if let Some(object) = self.table.get_mut(&key) {
                object.asked = true;
            }
        }
    }

    /// The future `key` becomes `state`, with all its aliases; returns the waiting tasks, and the
    /// aliases.
    ///
    /// Returns `None` if it has no holder any more: then there is nothing to settle.
    pub(crate) fn settle(
        &mut self,
        key: ObjectKey,
        state: &ObjectState,
    ) -> Option<(Members<Waiter>, Members<ObjectKey>)> {
        let object = self.table.get_mut(&key)?;
        let asked = object.asked;
        let before = std::mem::replace(&mut object.state, state.clone());
        let ObjectState::Future {
            waiters, aliases, ..
        } = before
        else {
            unreachable!("{:?} settled twice", object.name);
        };
        self.hold_source(key, state);
        for alias in aliases.iter() {
            if let Some(object) = self.table.get_mut(&alias) {
                object.state = state.clone();
                object.asked |= asked;
                self.hold_source(alias, state);
                self.table.get_mut(&key).expect("just seen").holders -= 1;
            }
        }
        if asked {
            self.ask(key);
        }
        Some((waiters, aliases))
    }

    /// A copy of a failure holds its source, which shows whether the source may still be demanded.
    fn hold_source(&mut self, key: ObjectKey, state: &ObjectState) {
        if let ObjectState::Failed { source, .. } = state
            && *source != key
        {
            self.hold(*source);
        }
    }

    /// The future `key` becomes an alias of the future `target`; tasks that wait for it wait for
    /// the target.
    pub(crate) fn alias(&mut self, key: ObjectKey, target: ObjectKey) {
        let Some(object) = self.table.get_mut(&key) else {
            return;
        };
        let asked = object.asked;
        let before = std::mem::replace(&mut object.state, ObjectState::Alias(target));
        let ObjectState::Future {
            waiters, aliases, ..
        } = before
        else {
            unreachable!("only a future can be delegated");
        };
        for alias in aliases.iter() {
            if let Some(object) = self.table.get_mut(&alias) {
                object.state = ObjectState::Alias(target);
            }
        }
        self.table.get_mut(&key).expect("just seen").holders -= aliases.len() as u32;
        let object = self.table.get_mut(&target).expect("the target is held");
        object.asked |= asked;
        object.holders += 1 + aliases.len() as u32;
        let ObjectState::Future {
            waiters: mine,
            aliases: others,
            ..
        } = &mut object.state
        else {
            unreachable!("the target is a future");
        };
        mine.extend(waiters.iter());
        others.push(key);
        others.extend(aliases.iter());
    }

    /// Drops `key` if it has no holder, and notes it if only a record holds it.
    pub(crate) fn collect(&mut self, key: ObjectKey, released: &mut Released) {
        let mut pending = vec![key];
        while let Some(key) = pending.pop() {
            let Some(object) = self.table.get(&key) else {
                continue;
            };
            if object.is_unread() {
                released.unread.push(key);
            } else if object.holders == 0 {
                let object = self.table.remove(&key).expect("just seen");
                self.let_go(key, object.state, &mut pending, released);
            }
        }
    }

    /// Removes one holder; objects without holders are dropped, and release what they hold.
    pub(crate) fn release(&mut self, key: ObjectKey, released: &mut Released) {
        let object = self
            .table
            .get_mut(&key)
            .expect("a held object is in the table");
        object.holders -= 1;
        if object.holders == 0 || object.is_unread() {
            self.collect(key, released);
        }
    }

    fn let_go(
        &mut self,
        key: ObjectKey,
        state: ObjectState,
        pending: &mut Vec<ObjectKey>,
        released: &mut Released,
    ) {
        match state {
            ObjectState::Future { producer, .. } => released.unwanted.push(producer),
            ObjectState::Alias(target) => {
                let Some(object) = self.table.get_mut(&target) else {
                    return;
                };
                object.holders -= 1;
                if let ObjectState::Future { aliases, .. } = &mut object.state {
                    aliases.take(key);
                }
                pending.push(target);
            }
            ObjectState::Ready(stored) => {
                let Some(stored) = Arc::into_inner(stored) else {
                    return;
                };
                self.let_go_of_file(&stored.value.content, stored.origin, released);
                for inner in stored.value.references {
                    self.table
                        .get_mut(&inner)
                        .expect("embedded references are held")
                        .holders -= 1;
                    pending.push(inner);
                }
            }
            ObjectState::Failed { source, .. } if source != key => {
                let held = self.table.get_mut(&source);
                held.expect("a copy holds its source").holders -= 1;
                pending.push(source);
            }
            ObjectState::Failed { .. } | ObjectState::Dropped => {}
        }
    }
}

impl Objects {
    /// The future `key` will be made by another task.
    pub(crate) fn reassign(&mut self, key: ObjectKey, to: TaskKey) {
        if let Some(Object {
            state: ObjectState::Future { producer, .. },
            ..
        }) = self.table.get_mut(&key)
        {
            *producer = to;
        }
    }
}

impl Objects {
    /// Lets go of a state that no object will carry.
    pub(crate) fn drop_state(&mut self, state: ObjectState, released: &mut Released) {
        let ObjectState::Ready(stored) = state else {
            return;
        };
        let Some(stored) = Arc::into_inner(stored) else {
            return;
        };
        self.let_go_of_file(&stored.value.content, stored.origin, released);
        for inner in stored.value.references {
            self.release(inner, released);
        }
    }

    /// Whether `key` was demanded: by a task that waits for it, or by the job itself.
    pub(crate) fn is_asked(&self, key: ObjectKey) -> bool {
        self.table.get(&key).is_some_and(|object| object.asked)
    }
}

/// The files that stored values occupy, and when they are dropped.
impl Objects {
    /// A stored value was dropped; its file is removed with the last one, unless objects derived
    /// from it could not be recomputed without it.
    fn let_go_of_file(
        &mut self,
        content: &Content,
        origin: Option<Origin>,
        released: &mut Released,
    ) {
        let Content::File { name, .. } = content else {
            return;
        };
        let count = self
            .files
            .get_mut(name)
            .expect("each stored file is counted");
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.files.remove(name);
        match origin.filter(Origin::is_needed) {
            Some(origin) => self.sources.push_back(origin),
            None => released.files.push(*name),
        }
        self.purge_sources(released);
    }

    /// Lets go of sources of which nothing is left that was made of them. All are looked at in
    /// turn, a few for each file.
    fn purge_sources(&mut self, released: &mut Released) {
        for _ in 0..SOURCES_LOOK.min(self.sources.len()) {
            match self.sources.pop_front() {
                Some(source) if source.is_needed() => self.sources.push_back(source),
                Some(source) => released.files.push(source.0.name),
                None => return,
            }
        }
    }

    /// The files of all resolved objects, and of those from which others were derived.
    pub(crate) fn all_files(&self) -> BTreeMap<Name, FileContent> {
        let file = |object: &Object| match &object.state {
            ObjectState::Ready(stored) => stored.value.content.file(),
            _ => None,
        };
        let sources = self.sources.iter();
        let sources = sources.map(|source| {
            let (length, digest) = (source.0.length, source.0.digest);
            (source.0.name, FileContent { length, digest })
        });
        self.table
            .values()
            .filter_map(file)
            .chain(sources)
            .collect()
    }

    /// Whether that file is on disk, as far as is known.
    pub(crate) fn has_file(&self, name: Name) -> bool {
        self.files.contains_key(&name) || self.sources.iter().any(|source| source.0.name == name)
    }

    /// These files are missing. A file without holders is missed only when an object has to be
    /// recomputed from it.
    pub(crate) fn forget_sources(&mut self, gone: &FxHashSet<Name>) {
        self.sources.retain(|source| !gone.contains(&source.0.name));
    }

    /// The origins of the objects that are these files.
    pub(crate) fn origins_of(&self, files: &FxHashSet<Name>) -> Vec<Origin> {
        let origin = |object: &Object| match &object.state {
            ObjectState::Ready(stored) => stored.origin.clone(),
            _ => None,
        };
        let origins = self.table.values().filter_map(origin);
        origins
            .filter(|origin| files.contains(&origin.0.name))
            .collect()
    }
}
