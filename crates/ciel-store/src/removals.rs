//! How the system tells that files of a folder are removed: nobody has to look for that.
//!
//! It does not know which files there are to be. Read next: `run`, whose journal is watched so.

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
