//! File systems of a test's own: small, full, or read-only.
//!
//! Only some users may mount; a test that cannot says so and is skipped. It does not know what is
//! kept there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of a small disk, in KiB.
pub const DISK_KIB: usize = 4 << 10;

/// The file that keeps room from others.
const BALLAST: &str = "ballast";

/// A small file system in memory, gone with the value.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// One of [`DISK_KIB`] at `path`, where nothing is yet; none if this user may not make one.
    pub fn new(path: &Path) -> Option<SmallDisk> {
        fs::create_dir(path).unwrap();
        let size = format!("size={DISK_KIB}k,mode=755");
        let words = ["-t", "tmpfs", "-o", &size, "ciel-test"];
        let mounted = Command::new("mount").args(words).arg(path).output().ok()?;
        mounted
            .status
            .success()
            .then(|| SmallDisk(path.to_path_buf()))
    }

    /// Leaves at most so much room, in KiB.
    pub fn leave(&self, kib: usize) {
        let found = rustix::fs::statvfs(&self.0).unwrap();
        let free = (found.f_bavail * found.f_frsize) as usize;
        let ballast = vec![b'b'; free.saturating_sub(kib << 10)];
        fs::write(self.0.join(BALLAST), ballast).unwrap();
    }

    /// Gives all room back, also while a process that another test is just starting has the
    /// ballast open: removing it would not.
    pub fn make_room(&self) {
        fs::write(self.0.join(BALLAST), []).unwrap();
    }

    /// Whether anything may be written there from now on.
    pub fn set_read_only(&self, read_only: bool) {
        let option = if read_only {
            "remount,ro"
        } else {
            "remount,rw"
        };
        let mounted = Command::new("mount")
            .args(["-o", option])
            .arg(&self.0)
            .status();
        assert!(mounted.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What cannot be taken away now is taken away with the machine.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
