//! What happens to tasks, for those who watch: a bounded ring between the machines, which append
//! under the lock, and the input/output thread, which hands it on.
//!
//! It is empty unless there is an observer, which it does not know. Read next: `tracing`.

use std::collections::VecDeque;

use ciel_graph::Happening;
use ciel_node::Slot;

/// Moments after which the input/output thread is asked to hand them on.
const GATHERED_MOMENTS: usize = 1 << 10;

/// Moments that may wait; beyond it the oldest gives way.
const WAITING_MOMENTS_MAX: usize = 64 << 10;

/// Something that happened, and where the task had its place then.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) happening: Box<Happening>,
    pub(crate) slot: Option<Slot>,
}

/// What has gathered.
#[derive(Debug, Default)]
pub(crate) struct Moments {
    /// Oldest first.
    pub(crate) seen: VecDeque<Seen>,
    /// Moments before those that have given way.
    pub(crate) lost: u64,
}

impl Moments {
    /// Something happened. True if the input/output thread has to be asked to hand it on now.
    pub(crate) fn add(&mut self, happening: Box<Happening>, slot: Option<Slot>) -> bool {
        if self.seen.len() == WAITING_MOMENTS_MAX {
            self.seen.pop_front();
            self.lost += 1;
        }
        self.seen.push_back(Seen { happening, slot });
        self.seen.len() == GATHERED_MOMENTS
    }

    /// What has gathered since the last time.
    pub(crate) fn take(&mut self) -> Moments {
        std::mem::take(self)
    }
}

#[cfg(test)]
mod tests {
    use ciel_graph::Moment;
    use ciel_model::{AttemptNumber, Label, Name, TaskKey};

    use super::*;

    #[test]
    fn ring_loses_the_oldest_and_says_how_many() {
        let mut moments = Moments::default();
        let mut asked = 0;
        for at in 0..WAITING_MOMENTS_MAX as u64 + 3 {
            let happening = Happening {
                at,
                task: TaskKey(at),
                attempt: AttemptNumber(0),
                label: Label {
                    what: "work".into(),
                    name: Name(1),
                },
                parent: None,
                executor: "python".into(),
                moment: Moment::Spawned,
            };
            asked += u64::from(moments.add(Box::new(happening), None));
        }
        assert_eq!(asked, 1);
        let taken = moments.take();
        assert_eq!((taken.lost, taken.seen.len()), (3, WAITING_MOMENTS_MAX));
        assert_eq!(taken.seen[0].happening.at, 3);
        assert_eq!(moments.take().seen.len(), 0);
    }
}
