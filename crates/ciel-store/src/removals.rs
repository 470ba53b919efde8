//! How the system tells that files are removed or closed: nobody has to look for that.
//!
//! It does not know which files there are to be. Read next: `run`, whose journal is watched so, and
//! `memory_folder`, which counts files until nobody has them open.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// A descriptor that can be read without waiting once a file has been removed from a folder, or the
/// folder itself; what is read says nothing more. It does not see what other machines remove.
///
/// # Errors
/// The folder is not there, or the system watches no more for this user.
pub fn watch_removals(folder: &Path) -> io::Result<OwnedFd> {
    let told = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let removed = WatchFlags::DELETE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    inotify::add_watch(&told, folder, removed)?;
    Ok(told)
}

/// A descriptor that can be read without waiting once somebody has closed a file of a folder, or
/// the last mapping of one; what is read says nothing more.
///
/// # Errors
/// As for [`watch_removals`].
pub(crate) fn watch_closing(folder: &Path) -> io::Result<OwnedFd> {
    let told = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let closed = WatchFlags::CLOSE_NOWRITE | WatchFlags::CLOSE_WRITE;
    inotify::add_watch(&told, folder, closed)?;
    Ok(told)
}
