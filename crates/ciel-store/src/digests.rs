//! Digests of files that are too long to be read while somebody waits for them.
//!
//! A thread reads them in the background and appends each digest to the file `digests` of the run,
//! a line with the object's name and the digest in hexadecimal digits. A line that is not whole, or
//! of a file that was removed meanwhile, says nothing. Read next: `objects`.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use ciel_model::Digest;

use crate::content::digest_of;

/// Where files are sent whose digests are to be made; the thread ends with it.
#[derive(Debug)]
pub(crate) struct Background(Sender<(u128, PathBuf)>);

impl Background {
    /// Starts the thread, which appends to the file at `path`; none if that cannot be.
    pub(crate) fn start(path: &Path) -> Option<Background> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.ok()?;
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("digests".to_string());
        thread.spawn(move || run(&receiver, file)).ok()?;
        Some(Background(sender))
    }

    /// The digest of the object in this file is to be made.
    pub(crate) fn take(&self, name: u128, path: PathBuf) {
        // Without the thread there is no digest, and the object is known by its length.
        let _ = self.0.send((name, path));
    }
}

fn run(receiver: &Receiver<(u128, PathBuf)>, mut digests: File) {
    while let Ok((name, path)) = receiver.recv() {
        let digest = File::open(path).and_then(|file| digest_of(&file));
        if let Ok(digest) = digest {
            // One that cannot be written is missing, like that of a run that ended before.
            let _ = digests.write_all(format!("{name:032x} {digest}\n").as_bytes());
        }
    }
}

/// The digests that a former process has written down, the newest of each object.
pub(crate) fn read(path: &Path) -> HashMap<u128, Digest> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let number = |digits: &str| u128::from_str_radix(digits, 16).ok();
    let line = |line: &str| {
        let (name, digest) = line.strip_suffix('\n')?.split_once(' ')?;
        Some((number(name)?, Digest(number(digest)?)))
    };
    text.split_inclusive('\n').filter_map(line).collect()
}

/// Replaces the digests that are written down. Those that cannot be written are missing, like that
/// of a run that ended before.
pub(crate) fn replace(path: &Path, digests: &HashMap<u128, Digest>) {
    let line = |(name, digest): (&u128, &Digest)| format!("{name:032x} {digest}\n");
    let mut lines: Vec<String> = digests.iter().map(line).collect();
    lines.sort();
    let _ = std::fs::write(path, lines.concat());
}
