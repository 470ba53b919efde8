//! When the input/output thread looks at the run without being asked to: ten times a second while
//! anything happens, and not at all otherwise.
//!
//! A machine that waits is left alone: whatever happens later wakes the thread. That somebody
//! removes the journal is no event of the run, so the system tells it; a look follows as always,
//! not at once, when more is perhaps being removed. It does not know what is looked at. Read next:
//! `io_thread`.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use ciel_store::FileObjects;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Interval, MissedTickBehavior};

use crate::spawning::watched;

/// Between two looks.
const LOOK_MS: u64 = 100;

/// Looks between which the number of tasks is written into the history.
pub(crate) const LOOKS_BETWEEN_COUNTS: u64 = 10;

/// Looks after the last thing that happened: the counts are written once more, and the watchdog
/// sees the same twice.
const LAST_LOOKS: u64 = LOOKS_BETWEEN_COUNTS + 2;

/// The looks to come.
pub(crate) struct Looks {
    interval: Interval,
    /// Looks since anything happened.
    quiet: u64,
    rests: bool,
}

impl Looks {
    /// The first is due now.
    pub(crate) fn new() -> Looks {
        let mut interval = tokio::time::interval(Duration::from_millis(LOOK_MS));
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Looks {
            interval,
            quiet: 0,
            rests: false,
        }
    }

    /// Waits until a look is due; for ever while none is.
    pub(crate) async fn due(&mut self) {
        match self.rests {
            true => std::future::pending().await,
            false => drop(self.interval.tick().await),
        }
    }

    /// A look was taken. Whether it may have been the last: nothing has happened for long.
    pub(crate) fn is_quiet(&mut self, has_happened: bool) -> bool {
        self.quiet = match has_happened {
            true => 0,
            false => self.quiet + 1,
        };
        self.quiet >= LAST_LOOKS
    }

    /// No look is due until something happens.
    pub(crate) fn rest(&mut self) {
        self.rests = true;
    }

    /// Something happens.
    pub(crate) fn resume(&mut self) {
        if std::mem::take(&mut self.rests) {
            self.quiet = 0;
            self.interval.reset();
        }
    }
}

/// Tells of removals from the journal's folder, or from memory.
pub(crate) struct Removals(Option<AsyncFd<OwnedFd>>);

impl Removals {
    /// Those of that folder, if there is one. A system may refuse to tell of any.
    pub(crate) fn of(folder: Option<&Path>) -> Removals {
        let told = folder.map(|folder| {
            let told = ciel_store::watch_removals(folder)?;
            watched(told.as_fd(), Interest::READABLE)
        });
        Removals(told.and_then(Result::ok))
    }

    /// Those of what is mapped of objects that are not in memory any more.
    pub(crate) fn of_mappings(objects: &FileObjects) -> Removals {
        let told = objects.watch_memory();
        let told = told.map(|told| watched(told?.as_fd(), Interest::READABLE));
        Removals(told.and_then(Result::ok))
    }

    /// Those of what processes have of the memory that streams share.
    pub(crate) fn of_stream_memory(objects: &FileObjects) -> Removals {
        let told = objects.watch_stream_memory();
        let told = told.and_then(|told| watched(told.as_fd(), Interest::READABLE));
        Removals(told.ok())
    }

    /// Whether removals are told.
    pub(crate) fn are_told(&self) -> bool {
        self.0.is_some()
    }

    /// Waits for the next ones.
    pub(crate) async fn next(&mut self) {
        let ready = match &self.0 {
            Some(told) => told.readable().await,
            None => std::future::pending().await,
        };
        // What was removed is looked up; here it only has to be taken.
        let mut taken = [0; 4096];
        let read = ready.map(|mut ready| {
            let read = ready.try_io(|told| Ok(rustix::io::read(told, &mut taken)?));
            read.map_or(true, |read| read.is_ok())
        });
        if !read.unwrap_or(false) {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_runtime(test: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn looks_end_some_time_after_the_last_that_happened() {
        in_runtime(async {
            let mut looks = Looks::new();
            for has_happened in [true, false, true] {
                assert!(!looks.is_quiet(has_happened));
            }
            for _ in 1..LAST_LOOKS {
                assert!(!looks.is_quiet(false));
            }
            assert!(looks.is_quiet(false));
            looks.rest();
            let look = tokio::time::timeout(Duration::from_millis(3 * LOOK_MS), looks.due());
            assert!(look.await.is_err());
            looks.resume();
            looks.due().await;
            assert!(!looks.is_quiet(false));
        });
    }

    #[test]
    fn removals_are_told_and_nothing_else_is() {
        in_runtime(async {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("log");
            std::fs::write(&file, "a").unwrap();
            let mut removals = Removals::of(Some(folder.path()));
            assert!(removals.are_told());
            std::fs::write(&file, "b").unwrap();
            let told = tokio::time::timeout(Duration::from_millis(50), removals.next());
            assert!(told.await.is_err());
            std::fs::remove_file(&file).unwrap();
            removals.next().await;
            std::fs::remove_dir(folder.path()).unwrap();
            removals.next().await;
            assert!(removals.are_told());
        });
    }

    #[test]
    fn removals_of_a_folder_that_is_not_there_are_not_told() {
        in_runtime(async {
            assert!(!Removals::of(Some(Path::new("/not/there"))).are_told());
            assert!(!Removals::of(None).are_told());
        });
    }
}
