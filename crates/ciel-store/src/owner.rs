//! Whose a state folder is: what another user owns, or could have written, is not trusted.
//!
//! A journal holds commands and an object may hold pickles, so a user who can write them can run
//! anything as the user who resumes the run. It does not know what the files are for. Read next:
//! [`crate::folder`].

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, Stat, fchmod, fstat};
use rustix::process::geteuid;

use crate::error::{StoreError, failure};
use crate::network;

/// Permission to write for the group and for others.
const WRITE_BY_OTHERS: u32 = 0o022;
/// Any permission for the group and for others.
const ANY_BY_OTHERS: u32 = 0o077;
/// Whose files the kernel shows when their owner has no number here.
const OVERFLOW_USER: u32 = 65534;
/// Files that container runtimes leave in the root of a container.
const CONTAINER_MARKS: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

/// Who owns an open file or folder, and who may write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    user: u32,
    mode: u32,
}

impl Owner {
    /// The owner of the open `handle`, whose path is `path`.
    pub(crate) fn of(handle: impl AsFd, path: &Path) -> Result<Owner, StoreError> {
        let stat = fstat(handle).map_err(|errno| failure("look at", path.to_path_buf(), errno))?;
        Ok(Owner::told(&stat))
    }

    /// The owner of what the system has told this about.
    pub(crate) fn told(stat: &Stat) -> Owner {
        Owner {
            user: stat.st_uid,
            mode: stat.st_mode & 0o7777,
        }
    }

    /// Whether [`Owner::expect_private`] accepts it.
    pub(crate) fn is_private(self) -> bool {
        self.user == geteuid().as_raw() && !self.is_shared()
    }

    /// Whether another user could have written it.
    pub(crate) fn is_shared(self) -> bool {
        self.mode & WRITE_BY_OTHERS != 0
    }

    /// Refuses what belongs to another user, whatever its mode.
    ///
    /// # Errors
    /// `OtherOwner`.
    pub(crate) fn expect_own(self, path: &Path) -> Result<(), StoreError> {
        let user = geteuid().as_raw();
        match self.user == user {
            true => Ok(()),
            false => Err(StoreError::OtherOwner {
                path: path.to_path_buf(),
                owner: self.user,
                user,
                is_mounted: self.user == OVERFLOW_USER || is_mounted(path),
            }),
        }
    }

    /// Refuses what belongs to another user, and what others could have written.
    ///
    /// # Errors
    /// `OtherOwner`, `WritableByOthers`.
    pub(crate) fn expect_private(self, path: &Path) -> Result<(), StoreError> {
        self.expect_own(path)?;
        match self.is_shared() {
            false => Ok(()),
            true => Err(StoreError::WritableByOthers {
                path: path.to_path_buf(),
                mode: self.mode,
            }),
        }
    }

    /// Takes all permissions of others from the folder that is open as `handle`.
    ///
    /// # Errors
    /// `ReadOnly`, `System`.
    pub(crate) fn close_to_others(self, handle: impl AsFd, path: &Path) -> Result<(), StoreError> {
        if self.mode & ANY_BY_OTHERS == 0 {
            return Ok(());
        }
        let mode = Mode::from_raw_mode(self.mode & !ANY_BY_OTHERS);
        fchmod(handle, mode).map_err(|errno| failure("change", path.to_path_buf(), errno))
    }
}

/// Whether owners may differ at this path because its files come from elsewhere: another machine,
/// or the host of a container.
fn is_mounted(path: &Path) -> bool {
    let is_container = CONTAINER_MARKS.iter().any(|mark| Path::new(mark).exists());
    is_container || maps_users() || network::kind_at(path).is_some()
}

/// Whether this process is in a user namespace, where numbers of users mean something else.
fn maps_users() -> bool {
    let Ok(map) = fs::read_to_string("/proc/self/uid_map") else {
        return false;
    };
    let words: Vec<&str> = map.split_whitespace().collect();
    words != ["0", "0", "4294967295"]
}
