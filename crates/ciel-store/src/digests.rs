//! Digests of what a run keeps on the disk, for the next process of the run.
//!
//! Each is a line of the file `digests`: the name of the bytes, and their digest in hexadecimal
//! digits. A line that is incomplete, or of bytes that no longer exist, is ignored. A background
//! thread reads bytes that are too many to be read at once. Read next: `objects`, `spill`.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};

use ciel_model::Digest;

use crate::content::digest_of;
use crate::values::{Extent, ObjectName};

/// Bytes that have a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// An object.
    Object(ObjectName),
    /// Spilled output.
    Spilled(Extent),
    /// Released output.
    Released {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Object(name) => name.fmt(f),
            Part::Spilled(Extent {
                blob,
                offset,
                length,
            }) => write!(f, "spill:{blob}:{offset}:{length}"),
            Part::Released { offset, length } => write!(f, "stdout:{offset}:{length}"),
        }
    }
}

impl Part {
    fn parse(text: &str) -> Option<Part> {
        let mut words = text.split(':');
        let kind = words.next()?;
        let numbers: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        match (kind, numbers.as_slice()) {
            ("spill", &[blob, offset, length]) => Some(Part::Spilled(Extent {
                blob,
                offset,
                length,
            })),
            ("stdout", &[offset, length]) => Some(Part::Released { offset, length }),
            (name, &[]) => {
                let name = u128::from_str_radix(name, 16).ok()?;
                Some(Part::Object(ObjectName(name)))
            }
            _ => None,
        }
    }
}

/// The file of digests of a run. Any thread may use it.
#[derive(Debug)]
pub struct Digests {
    path: PathBuf,
    /// None if it cannot be written.
    log: OnceLock<Option<Log>>,
}

#[derive(Debug)]
struct Log {
    file: File,
    /// Where parts are sent whose digests are computed in the background.
    background: Sender<(Part, PathBuf)>,
}

impl Digests {
    pub(crate) fn new(path: PathBuf) -> Digests {
        Digests {
            path,
            log: OnceLock::new(),
        }
    }

    /// From now on digests are kept. What an earlier process has written down is kept of the parts
    /// that `is_known` knows.
    pub(crate) fn keep(&self, is_known: impl Fn(&Part) -> bool) {
        let mut kept = self.read();
        let before = kept.len();
        kept.retain(|(part, _)| is_known(part));
        if kept.len() < before {
            let lines: String = kept
                .iter()
                .map(|(part, digest)| line(part, *digest))
                .collect();
            // Digests that cannot be written are missing, like those of a run that ended before.
            let _ = std::fs::write(&self.path, lines);
        }
        self.log.get_or_init(|| Log::start(&self.path));
    }

    /// Whether digests are kept.
    pub(crate) fn are_kept(&self) -> bool {
        self.log.get().is_some()
    }

    /// Writes down a digest.
    pub fn note(&self, part: Part, digest: Digest) {
        if let Some(Some(log)) = self.log.get() {
            write(&log.file, &part, digest);
        }
    }

    /// Has the digest of the whole file at `path` computed and written down in the background.
    pub(crate) fn note_later(&self, part: Part, path: PathBuf) {
        if let Some(Some(log)) = self.log.get() {
            // Without the thread there is no digest, and the part is known by its length.
            let _ = log.background.send((part, path));
        }
    }

    /// All digests that are written down, the oldest first.
    pub fn read(&self) -> Vec<(Part, Digest)> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.split_inclusive('\n').filter_map(parse).collect()
    }
}

impl Log {
    fn start(path: &Path) -> Option<Log> {
        let open = || OpenOptions::new().create(true).append(true).open(path);
        let (file, other) = (open().ok()?, open().ok()?);
        let (background, receiver) = channel();
        let thread = std::thread::Builder::new().name("digests".to_string());
        thread.spawn(move || compute(&receiver, &other)).ok()?;
        Some(Log { file, background })
    }
}

fn compute(receiver: &Receiver<(Part, PathBuf)>, digests: &File) {
    while let Ok((part, path)) = receiver.recv() {
        let digest = File::open(path).and_then(|file| digest_of(&file));
        if let Ok(digest) = digest {
            write(digests, &part, digest);
        }
    }
}

/// A digest that cannot be written is missing, like those of a run that ended before.
fn write(mut file: &File, part: &Part, digest: Digest) {
    let _ = file.write_all(line(part, digest).as_bytes());
}

fn line(part: &Part, digest: Digest) -> String {
    format!("{part} {digest}\n")
}

fn parse(line: &str) -> Option<(Part, Digest)> {
    let (part, digest) = line.strip_suffix('\n')?.split_once(' ')?;
    let digest = u128::from_str_radix(digest, 16).ok()?;
    Some((Part::parse(part)?, Digest(digest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_read_as_it_was_written_and_half_a_line_is_not() {
        let extent = Extent {
            blob: 3,
            offset: 4,
            length: 5,
        };
        let (offset, length) = (6, 7);
        for part in [
            Part::Object(ObjectName(0xabc)),
            Part::Spilled(extent),
            Part::Released { offset, length },
        ] {
            let line = line(&part, Digest(8));
            assert_eq!(parse(&line), Some((part, Digest(8))));
            assert_eq!(parse(&line[..line.len() - 1]), None);
        }
        assert_eq!(parse("spill:1:2 3\n"), None);
    }
}
