//! The story of a task: a bounded record of what happened to it.

use std::num::NonZeroU64;
use std::sync::Arc;

use ciel_model::{AttemptNumber, Label, Micros, Name, TaskKey, limits};

/// One transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// It was spawned.
    Spawned,
    /// All that it needs to start is resolved.
    Ready,
    /// It began to run.
    Started,
    /// It waits for references and holds no place.
    Suspended,
    /// Its wait has ended.
    Woken,
    /// It resumed.
    Resumed,
    /// An attempt failed and is retried.
    Retried,
    /// Its worker died; it is restarted.
    Lost,
    /// It was rolled back to one of its actions; it is restarted.
    RolledBack,
    /// It ended by tail-spawning a successor.
    TailSpawned,
    /// It succeeded.
    Finished,
    /// It failed for good.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// An earlier run had kept its result.
    Kept,
    /// It ended well, and commits after the tasks at the other ends of its streams.
    Held,
    /// A task at the other end of a stream started again or failed, and so it is restarted.
    StreamLost,
    /// It runs for much longer than others of its function, and so a second time.
    Duplicated,
    /// Its second run ended first, and gave its result.
    Overtaken,
    /// An earlier run had kept the digest of its result, but not all of the bytes.
    Known,
    /// The file of something that it read was lost; it is restarted when that is recomputed.
    FileLost,
    /// It opened a stream again of which it had read; it is restarted when that is whole.
    Reopened,
}

impl Moment {
    /// All of them, in the order in which they are declared.
    pub const ALL: [Moment; 21] = [
        Moment::Spawned,
        Moment::Ready,
        Moment::Started,
        Moment::Suspended,
        Moment::Woken,
        Moment::Resumed,
        Moment::Retried,
        Moment::Lost,
        Moment::RolledBack,
        Moment::TailSpawned,
        Moment::Finished,
        Moment::Failed,
        Moment::Cancelled,
        Moment::Kept,
        Moment::Held,
        Moment::StreamLost,
        Moment::Duplicated,
        Moment::Overtaken,
        Moment::Known,
        Moment::FileLost,
        Moment::Reopened,
    ];

    /// The moment that has these words; none if another version wrote them.
    pub fn of_words(words: &str) -> Option<Moment> {
        Moment::ALL
            .into_iter()
            .find(|moment| moment.words() == words)
    }

    /// The words that `ciel why` shows.
    pub fn words(self) -> &'static str {
        match self {
            Moment::Spawned => "spawned",
            Moment::Ready => "ready to start",
            Moment::Started => "started",
            Moment::Suspended => "suspended, waiting",
            Moment::Woken => "ready to resume",
            Moment::Resumed => "resumed",
            Moment::Retried => "attempt failed, retried",
            Moment::Lost => "lost with its worker, restarted",
            Moment::FileLost => "missed the file of an object, restarted",
            Moment::Reopened => "opened a stream again, restarted to read it whole",
            Moment::RolledBack => "rolled back, restarted",
            Moment::TailSpawned => "tail-spawned its successor",
            Moment::Finished => "finished",
            Moment::Failed => "failed",
            Moment::Cancelled => "cancelled",
            Moment::Held => "ended, waiting for the other ends of its streams",
            Moment::StreamLost => "lost the other end of a stream, restarted",
            Moment::Kept => "took the result that an earlier run kept",
            Moment::Known => "known by the digest that an earlier run kept",
            Moment::Duplicated => "runs for long, a duplicate was started",
            Moment::Overtaken => "overtaken by its duplicate, stopped",
        }
    }
}

/// A transition of a task, for observers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// The time of the transition.
    pub at: Micros,
    /// The task.
    pub task: TaskKey,
    /// The number of the attempt; after a loss or a retry, that of the next one.
    pub attempt: AttemptNumber,
    /// The label of the task.
    pub label: Label,
    /// The name of the task that spawned it.
    pub parent: Option<Name>,
    /// The executor of the task.
    pub executor: Arc<str>,
    /// The transition.
    pub moment: Moment,
}

/// Transitions that take no memory of their own: there may be as many tasks as memory has room for,
/// and most were only spawned and are ready.
const FEW: usize = 2;

/// Transitions for which there is room more than there are, at most.
const ROOM: usize = 3;

/// Bits in which a moment is kept beside its time.
const MOMENT_BITS: u32 = 5;

/// The first and the latest transitions of a task, each in one word: the time, and the place of the
/// moment in [`Moment::ALL`].
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(from = "Vec<(Micros, Moment)>", into = "Vec<(Micros, Moment)>")]
pub(crate) struct Story(Entries);

#[derive(Clone, Debug)]
enum Entries {
    /// The first ones are there, each plus one.
    Few([Option<NonZeroU64>; FEW]),
    Many(Vec<u64>),
}

impl Default for Entries {
    fn default() -> Entries {
        Entries::Few([None; FEW])
    }
}

impl From<Vec<(Micros, Moment)>> for Story {
    fn from(entries: Vec<(Micros, Moment)>) -> Story {
        let mut story = Story::default();
        for (at, moment) in entries {
            story.add(at, moment);
        }
        story
    }
}

impl From<Story> for Vec<(Micros, Moment)> {
    fn from(story: Story) -> Vec<(Micros, Moment)> {
        story.entries()
    }
}

fn packed(at: Micros, moment: Moment) -> u64 {
    at << MOMENT_BITS | moment as u64
}

impl Story {
    /// Adds a transition; past the bound, one from the middle gives way.
    pub(crate) fn add(&mut self, now: Micros, moment: Moment) {
        let entry = packed(now, moment);
        match &mut self.0 {
            Entries::Few(few) => match few.iter_mut().find(|place| place.is_none()) {
                Some(place) => *place = NonZeroU64::new(entry + 1),
                None => {
                    let mut entries = Vec::with_capacity(FEW + ROOM);
                    entries.extend(self.packed());
                    entries.push(entry);
                    self.0 = Entries::Many(entries);
                }
            },
            Entries::Many(entries) => {
                if entries.len() >= limits::STORY_ENTRIES_MAX {
                    entries.remove(limits::STORY_ENTRIES_MAX / 2);
                }
                if entries.len() == entries.capacity() {
                    entries.reserve_exact(ROOM);
                }
                entries.push(entry);
            }
        }
    }

    fn packed(&self) -> impl Iterator<Item = u64> {
        let (few, many): (&[_], &[u64]) = match &self.0 {
            Entries::Few(few) => (few, &[]),
            Entries::Many(entries) => (&[], entries),
        };
        let few = few.iter().flatten().map(|entry| entry.get() - 1);
        few.chain(many.iter().copied())
    }

    /// All that is kept, oldest first.
    pub(crate) fn entries(&self) -> Vec<(Micros, Moment)> {
        let moment = |entry: u64| Moment::ALL[(entry & ((1 << MOMENT_BITS) - 1)) as usize];
        self.packed()
            .map(|entry| (entry >> MOMENT_BITS, moment(entry)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_kept_with_its_time() {
        let moments = (1 << 50..).zip(Moment::ALL);
        for (at, moment) in moments {
            let mut story = Story::default();
            story.add(at, moment);
            assert_eq!(story.entries(), [(at, moment)]);
            assert_eq!(Story::from(story.entries()).entries(), story.entries());
        }
    }

    #[test]
    fn story_keeps_the_first_and_the_latest_transitions_in_order() {
        let mut story = Story::default();
        let mut all = Vec::new();
        for at in 0..3 * limits::STORY_ENTRIES_MAX as u64 {
            story.add(at, Moment::Spawned);
            all.push((at, Moment::Spawned));
            if all.len() > limits::STORY_ENTRIES_MAX {
                all.remove(limits::STORY_ENTRIES_MAX / 2);
            }
            assert_eq!(story.entries(), all);
        }
        assert_eq!(size_of::<Story>(), size_of::<Vec<u64>>());
    }
}
