//! Tasks whose spawns the thread of kept results is told of.
//!
//! A pure table. A row of tasks each of which spawns the next may be as long as a program runs, and
//! to follow each of them costs as much as to run it; so only the first ones of a row are. It does
//! not know what is kept. Read first: `spawns`.

use ciel_model::{Name, TaskKey};
use rustc_hash::FxHashMap;

/// Tasks above each other that are followed. Those below that spawn are not kept.
const DEPTH_MAX: u32 = 4_000;

/// The depth of tasks below these that have spawned nothing.
const BELOW: u32 = DEPTH_MAX + 1;

/// The same of those that have.
const SPAWNED_BELOW: u32 = DEPTH_MAX + 2;

/// Tasks that take part in kept results and have spawned, and what those have spawned.
#[derive(Default)]
pub(super) struct Followed {
    /// By task, how many followed ones are above it.
    depths: FxHashMap<Name, u32>,
    /// Tasks below these that have ended well, as their thread is not told of each.
    ended_below: Vec<(TaskKey, Name)>,
}

/// So many of them are told at once.
const TOLD_TOGETHER: usize = 256;

/// What a spawn means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Spawn {
    /// Parent and child are followed from now on.
    First,
    /// The child is followed, as its parent was.
    Next,
    /// The child is not followed, but its parent is.
    Last,
    /// Neither is followed.
    Below,
}

impl Followed {
    /// A task has spawned another.
    pub(super) fn on_spawned(&mut self, parent: Name, child: Name) -> Spawn {
        let (spawn, depth) = match self.depths.get_mut(&parent) {
            None => {
                self.depths.insert(parent, 0);
                (Spawn::First, 1)
            }
            Some(above) if *above < DEPTH_MAX => (Spawn::Next, *above + 1),
            Some(&mut DEPTH_MAX) => (Spawn::Last, BELOW),
            Some(above) => {
                *above = SPAWNED_BELOW;
                (Spawn::Below, BELOW)
            }
        };
        // One that is spawned again may have spawned already.
        self.depths.entry(child).or_insert(depth);
        spawn
    }

    /// Whether a task is followed.
    pub(super) fn contains(&self, task: Name) -> bool {
        self.depths.get(&task).is_some_and(|depth| *depth < BELOW)
    }

    /// Whether a task has spawned and is not followed.
    pub(super) fn has_spawned_below(&self, task: Name) -> bool {
        self.depths.get(&task) == Some(&SPAWNED_BELOW)
    }

    /// A task that is not followed, and has spawned, has ended well. Gives such tasks, if there are
    /// enough.
    pub(super) fn on_ended_below(
        &mut self,
        key: TaskKey,
        task: Name,
    ) -> Option<Vec<(TaskKey, Name)>> {
        self.ended_below.push((key, task));
        (self.ended_below.len() == TOLD_TOGETHER).then(|| self.take_ended_below())
    }

    /// Those that were not given before.
    pub(super) fn take_ended_below(&mut self) -> Vec<(TaskKey, Name)> {
        std::mem::take(&mut self.ended_below)
    }

    /// A task has left the graph. Gives whether it was followed.
    pub(super) fn remove(&mut self, task: Name) -> bool {
        let depth = self.depths.remove(&task);
        depth.is_some_and(|depth| depth < BELOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop of a million tail calls took two and a half times the processor time of one that is
    /// not recorded: each task was followed, though only the last ones of a row are kept.
    #[test]
    fn only_the_first_tasks_of_a_row_are_followed() {
        let mut followed = Followed::default();
        let mut task = Name(1);
        for depth in 0..2 * DEPTH_MAX {
            let child = task.spawn(0);
            let expected = match depth {
                0 => Spawn::First,
                1..DEPTH_MAX => Spawn::Next,
                DEPTH_MAX => Spawn::Last,
                _ => Spawn::Below,
            };
            assert_eq!(followed.on_spawned(task, child), expected);
            let is_first = depth <= DEPTH_MAX;
            assert_eq!(followed.contains(task), is_first);
            assert_eq!(followed.has_spawned_below(task), !is_first);
            assert!(!followed.has_spawned_below(child));
            assert_eq!(followed.remove(task), is_first);
            task = child;
        }
        assert!(!followed.remove(task) && followed.depths.is_empty());
    }

    #[test]
    fn tasks_below_are_given_together_each_once() {
        let mut followed = Followed::default();
        let task = |number: u64| (TaskKey(number), Name(number.into()));
        let count = TOLD_TOGETHER as u64;
        let mut end = |number| {
            let (key, name) = task(number);
            followed.on_ended_below(key, name)
        };
        let given: Vec<_> = (0..=count).filter_map(&mut end).collect();
        let expected: Vec<_> = (0..count).map(task).collect();
        assert_eq!(given, [expected]);
        assert_eq!(followed.take_ended_below(), [task(count)]);
        assert!(followed.take_ended_below().is_empty());
    }

    #[test]
    fn parent_of_many_is_as_deep_as_before() {
        let mut followed = Followed::default();
        let spawned = (0..3).map(|action| followed.on_spawned(Name(1), Name(1).spawn(action)));
        let expected = [Spawn::First, Spawn::Next, Spawn::Next];
        assert!(spawned.eq(expected));
        let child = Name(1).spawn(1);
        followed.on_spawned(child, child.spawn(0));
        followed.on_spawned(Name(1), child);
        assert_eq!(followed.depths[&child.spawn(0)], 2);
    }
}
