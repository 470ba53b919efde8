//! A folder that no process of the run can write to, whoever its user is.
//!
//! Permissions do not bind root. A read-only mount does: the spawner leaves the mounts of the
//! system for a copy of its own, which all processes of the run inherit, and nobody else sees what
//! changes in it. It does not know what is in the folder. Next: `server`, its only user.

use std::ffi::CStr;
use std::io;
use std::ptr;

/// What the flags of a mounted file system and those of a mount have in common.
const SHARED_FLAGS: u64 =
    libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_NOATIME | libc::MS_NODIRATIME;

/// Makes a folder read-only for this process and all that it starts from now on. Mounts of the
/// system stay visible, also later ones. Call it once, and from a process with one thread.
///
/// # Errors
/// `PermissionDenied` for users who may not mount, and where the system forbids it to root; others
/// if there is no such folder. Nothing is protected then, and nothing else has changed.
pub(crate) fn protect(folder: &CStr) -> io::Result<()> {
    // SAFETY: there is one thread, so none is left behind in the old mounts.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    // Nothing that is mounted here is to be seen outside.
    mount(None, c"/", libc::MS_SLAVE | libc::MS_REC)?;
    let flags = flags_of(folder)? | libc::MS_BIND;
    mount(Some(folder), folder, libc::MS_BIND)?;
    mount(None, folder, flags | libc::MS_REMOUNT | libc::MS_RDONLY)
}

/// The flags that a mount of the folder has already, and is to keep.
fn flags_of(folder: &CStr) -> io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_flag.bits() & SHARED_FLAGS)
}

fn mount(source: Option<&CStr>, target: &CStr, flags: u64) -> io::Result<()> {
    let source = source.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: both paths end in a zero and live for the call; type and data may be absent for
    // binding and for changes of flags.
    check(unsafe { libc::mount(source, target.as_ptr(), ptr::null(), flags, ptr::null()) })
}

fn check(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
