//! A terminal of the kernel: what is written into one end is read at the other, unchanged.
//!
//! It does not know who writes.

use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, OutputModes, tcgetattr, tcsetattr};

/// The end that is read here, and the end for a process. A line's end stays one byte.
pub fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let theirs = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut modes = tcgetattr(&theirs).unwrap();
    modes.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&theirs, OptionalActions::Now, &modes).unwrap();
    (File::from(ours), theirs)
}
