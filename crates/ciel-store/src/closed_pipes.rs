//! How the system tells that pipes are opened, and closed by somebody who could only read.
//!
//! It does not know whose pipes they are. Read next: `opened_pipes`, for those that are to be read.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::inotify::{ReadFlags, WatchFlags};

use crate::watch_groups::WatchGroup;

/// Pipes that are to be written only.
pub struct ClosedPipes {
    group: WatchGroup,
    /// In their order.
    watches: Vec<i32>,
}

impl ClosedPipes {
    /// Watches these pipes from now on, by a group that has no other watches.
    ///
    /// # Errors
    /// A pipe is not there, or the system watches no more for this user.
    pub(crate) fn watch(mut group: WatchGroup, pipes: &[PathBuf]) -> io::Result<ClosedPipes> {
        let events = WatchFlags::OPEN | WatchFlags::CLOSE_NOWRITE;
        let watches = pipes.iter().map(|pipe| group.watch(pipe, events));
        let watches = watches.collect::<io::Result<_>>()?;
        Ok(ClosedPipes { group, watches })
    }

    /// Takes what was told so far: the pipes that somebody has closed who had opened them for
    /// reading only.
    pub fn closed_by_readers(&self) -> Vec<usize> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut events = self.group.events(&mut buffer);
        let mut closed = Vec::new();
        while let Ok(event) = events.next() {
            let mut watches = self.watches.iter();
            if event.events().contains(ReadFlags::CLOSE_NOWRITE) {
                closed.extend(watches.position(|watch| *watch == event.wd()));
            }
        }
        closed
    }
}

impl AsFd for ClosedPipes {
    /// It can be read when there is something to take.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    /// A reader that had gone before anybody looked was seen by nobody.
    #[test]
    fn pipe_that_a_reader_has_closed_is_told_and_one_that_writers_have_closed_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let pipes = ["written", "both", "read"].map(|name| folder.path().join(name));
        for pipe in &pipes {
            mkfifoat(CWD, pipe, Mode::RUSR | Mode::WUSR).unwrap();
        }
        let open = |read: bool, write: bool, at: usize| {
            let mut options = std::fs::File::options();
            options.read(read).write(write).open(&pipes[at]).unwrap()
        };
        let _ends = [0, 1, 2].map(|at| open(true, true, at));
        let closed =
            ClosedPipes::watch(WatchGroup::take(&Arc::default()).unwrap(), &pipes).unwrap();
        drop(open(false, true, 0));
        drop(open(true, true, 1));
        assert_eq!(closed.closed_by_readers(), []);
        let reader = open(true, false, 2);
        assert_eq!(closed.closed_by_readers(), []);
        drop(reader);
        assert_eq!(closed.closed_by_readers(), [2]);
        assert_eq!(closed.closed_by_readers(), []);
    }
}
