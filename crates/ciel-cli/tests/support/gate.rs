//! A named pipe at which tasks are held until the test lets them through.
//!
//! A task waits with `read x < gate`. Read next: `words`, which writes such tasks.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};

/// The gate; the test holds both its ends, so opening it never waits.
pub struct Gate(File);

impl Gate {
    /// A closed one at `path`.
    pub fn new(path: &Path) -> Gate {
        mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
        Gate(
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(path)
                .unwrap(),
        )
    }

    /// Lets so many tasks through, those that come later included.
    pub fn release(&self, count: usize) {
        (&self.0).write_all(&vec![b'\n'; count]).unwrap();
    }
}
