//! How the system tells in which order pipes are opened and read.
//!
//! It does not know whose pipes they are. Read next: `removals`, which is told of files.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{ReadFlags, WatchFlags};
use rustix::fs::{Mode, OFlags};

use crate::watch_groups::WatchGroup;

/// Pipes that are watched from before anybody has opened or read one.
pub struct OpenedPipes {
    group: WatchGroup,
    pipes: Vec<Pipe>,
}

struct Pipe {
    watch: i32,
    /// The pipe, which nobody can read by this.
    path: OwnedFd,
    was_read: bool,
    was_opened_again: bool,
}

impl OpenedPipes {
    /// Watches the pipes of which these are ends, by a group that has no other watches.
    ///
    /// # Errors
    /// The system watches no more for this user.
    pub(crate) fn watch<'a>(
        mut group: WatchGroup,
        ends: impl Iterator<Item = BorrowedFd<'a>>,
    ) -> io::Result<OpenedPipes> {
        let pipes = ends.map(|end| Pipe::watch(&mut group, end));
        let pipes = pipes.collect::<io::Result<_>>()?;
        Ok(OpenedPipes { group, pipes })
    }

    /// Takes what was told so far; the first pipe that was opened after it had been read. Two that
    /// open it before it is read are not told from one.
    pub fn opened_again(&mut self) -> Option<usize> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut events = self.group.events(&mut buffer);
        while let Ok(event) = events.next() {
            let mut pipes = self.pipes.iter_mut();
            if let Some(pipe) = pipes.find(|pipe| pipe.watch == event.wd()) {
                pipe.note(&self.group, event.events());
            }
        }
        self.pipes.iter().position(|pipe| pipe.was_opened_again)
    }
}

impl AsFd for OpenedPipes {
    /// It can be read when there is something to take.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
    }
}

impl Pipe {
    fn watch(group: &mut WatchGroup, end: BorrowedFd<'_>) -> io::Result<Pipe> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let path = rustix::fs::open(path_of(end), flags, Mode::empty())?;
        let events = WatchFlags::OPEN | WatchFlags::ACCESS;
        let watch = group.watch(path_of(path.as_fd()), events)?;
        Ok(Pipe {
            watch,
            path,
            was_read: false,
            was_opened_again: false,
        })
    }

    fn note(&mut self, group: &WatchGroup, event: ReadFlags) {
        if event.contains(ReadFlags::OPEN) {
            self.was_opened_again |= self.was_read;
        } else if event.contains(ReadFlags::ACCESS) && !self.was_read {
            self.was_read = true;
            // What is read from now on wakes nobody; if that fails, more is told than needed.
            let _ = group.change(path_of(self.path.as_fd()), WatchFlags::OPEN);
        }
    }
}

fn path_of(descriptor: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::sync::Arc;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    /// Two pipes, of which the second one has bytes.
    fn pipes() -> (OpenedPipes, [OwnedFd; 2]) {
        let (first, _) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (second, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        rustix::io::write(&writer, b"abc").unwrap();
        let ends = [first, second];
        let group = WatchGroup::take(&Arc::default()).unwrap();
        let opened = OpenedPipes::watch(group, ends.iter().map(AsFd::as_fd)).unwrap();
        (opened, ends)
    }

    fn read_by_path(pipe: &OwnedFd) {
        let mut file = File::open(path_of(pipe.as_fd())).unwrap();
        file.read_exact(&mut [0]).unwrap();
    }

    /// A command with `wc -l < $f; wc -l < $f` had no lines at the second time, and ended well.
    #[test]
    fn opening_after_reading_is_found_whether_it_is_looked_at_between_or_not() {
        for is_looked_at in [false, true] {
            let (mut opened, ends) = pipes();
            read_by_path(&ends[1]);
            if is_looked_at {
                assert_eq!(opened.opened_again(), None);
            }
            read_by_path(&ends[1]);
            assert_eq!(opened.opened_again(), Some(1));
        }
    }

    #[test]
    fn opening_before_anything_was_read_is_harmless() {
        let (mut opened, ends) = pipes();
        drop(File::open(path_of(ends[1].as_fd())).unwrap());
        read_by_path(&ends[1]);
        assert_eq!(opened.opened_again(), None);
    }
}
