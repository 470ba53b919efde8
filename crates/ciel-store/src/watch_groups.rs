//! Groups of watches by which the system tells what happens to files, used one after the other.
//!
//! To close a group waits until the system has forgotten its last watches, some 8 ms and up to 60;
//! to remove a watch takes a few microseconds. So a group that is not used any more is kept for
//! the next use. It does not know what is watched. Read next: `closed_pipes`, `opened_pipes`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::limits::WATCH_GROUPS_IDLE_MAX;

/// The groups that nobody uses. They have no watches, and nothing that was told.
#[derive(Debug, Default)]
pub(crate) struct IdleGroups(Mutex<Vec<OwnedFd>>);

/// A group in use. It is idle when this is dropped.
#[derive(Debug)]
pub(crate) struct WatchGroup {
    /// None only while it is dropped.
    descriptor: Option<OwnedFd>,
    watches: Vec<i32>,
    idle: Arc<IdleGroups>,
}

impl WatchGroup {
    /// An idle group, or a new one.
    ///
    /// # Errors
    /// The system has no more groups for this user.
    pub(crate) fn take(idle: &Arc<IdleGroups>) -> io::Result<WatchGroup> {
        let descriptor = idle.0.lock().expect("nobody panics with the groups").pop();
        let descriptor = match descriptor {
            Some(descriptor) => descriptor,
            None => inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
        };
        Ok(WatchGroup {
            descriptor: Some(descriptor),
            watches: Vec::new(),
            idle: idle.clone(),
        })
    }

    fn descriptor(&self) -> &OwnedFd {
        self.descriptor
            .as_ref()
            .expect("it is there until this is dropped")
    }

    /// Watches a file. The number of the watch is that of no other file, nor of one watched
    /// in an earlier use of the group.
    ///
    /// # Errors
    /// The file is not there, or the system watches no more for this user.
    pub(crate) fn watch(&mut self, path: impl Arg, events: WatchFlags) -> io::Result<i32> {
        let watch = inotify::add_watch(self.descriptor(), path, events)?;
        if !self.watches.contains(&watch) {
            self.watches.push(watch);
        }
        Ok(watch)
    }

    /// A file that is watched is watched for other events from now on.
    ///
    /// # Errors
    /// The file is not there.
    pub(crate) fn change(&self, path: impl Arg, events: WatchFlags) -> io::Result<()> {
        inotify::add_watch(self.descriptor(), path, events)?;
        Ok(())
    }

    /// What was told, some of it perhaps after the end of an earlier use: of watches of that.
    pub(crate) fn events<'a>(
        &'a self,
        buffer: &'a mut [MaybeUninit<u8>],
    ) -> Reader<'a, &'a OwnedFd> {
        Reader::new(self.descriptor(), buffer)
    }

    /// Removes all watches, and takes what they have told. False if that cannot be.
    fn clear(&mut self) -> bool {
        for watch in std::mem::take(&mut self.watches) {
            // It is gone already if its file is.
            let _ = inotify::remove_watch(self.descriptor(), watch);
        }
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut events = self.events(&mut buffer);
        loop {
            match events.next() {
                Ok(_) => {}
                Err(error) => return error == Errno::AGAIN,
            }
        }
    }
}

impl AsFd for WatchGroup {
    /// It can be read when something was told.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor().as_fd()
    }
}

impl Drop for WatchGroup {
    fn drop(&mut self) {
        let is_clear = self.clear();
        let mut idle = self.idle.0.lock().expect("nobody panics with the groups");
        let has_room = idle.len() < WATCH_GROUPS_IDLE_MAX;
        idle.extend(self.descriptor.take().filter(|_| is_clear && has_room));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    /// Each stream had a group of its own, whose close at its end held up all other tasks: 8 ms for
    /// each of a hundred short commands that read one.
    #[test]
    fn group_is_used_again_and_says_nothing_of_its_earlier_use() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        paths.iter().for_each(|path| drop(File::create(path)));
        let idle = Arc::default();
        let open = |at: usize| drop(File::open(&paths[at]).unwrap());
        let told = |group: &WatchGroup| {
            let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
            let mut events = group.events(&mut buffer);
            std::iter::from_fn(|| events.next().ok().map(|event| event.wd())).collect::<Vec<_>>()
        };
        let mut group = WatchGroup::take(&idle).unwrap();
        let (number, first) = (
            group.as_fd().as_raw_fd(),
            group.watch(&paths[0], WatchFlags::OPEN).unwrap(),
        );
        open(0);
        drop(group);
        open(0);
        let mut group = WatchGroup::take(&idle).unwrap();
        assert_eq!(group.as_fd().as_raw_fd(), number);
        assert_eq!(told(&group), []);
        let second = group.watch(&paths[1], WatchFlags::OPEN).unwrap();
        assert_ne!(first, second);
        open(0);
        open(1);
        assert_eq!(told(&group), [second]);
        let other = WatchGroup::take(&idle).unwrap();
        assert_ne!(other.as_fd().as_raw_fd(), number);
    }

    #[test]
    fn group_whose_file_is_gone_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        File::create(&path).unwrap();
        let idle = Arc::default();
        let mut group = WatchGroup::take(&idle).unwrap();
        group.watch(&path, WatchFlags::OPEN).unwrap();
        std::fs::remove_file(&path).unwrap();
        drop(group);
        assert_eq!(idle.0.lock().unwrap().len(), 1);
    }

    #[test]
    fn no_more_groups_are_kept_than_the_bound() {
        let idle = Arc::default();
        let take = || WatchGroup::take(&idle).unwrap();
        drop(
            std::iter::repeat_with(take)
                .take(WATCH_GROUPS_IDLE_MAX + 2)
                .collect::<Vec<_>>(),
        );
        assert_eq!(idle.0.lock().unwrap().len(), WATCH_GROUPS_IDLE_MAX);
    }
}
