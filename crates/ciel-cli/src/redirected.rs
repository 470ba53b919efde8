//! Standard output that is a regular file: the shell made it so, and it outlives this process.
//!
//! A file to which an earlier process of the run has written is compared with the output from its
//! start, and only the rest is appended. A file with other content is not changed. What it holds
//! when the first byte of the run is about to be written is none of the run's. A file that is
//! standard error, too, has messages between the output and is not compared. It does not know where
//! the bytes come from. Read next: `sink`, for `--output`.

use std::fs::File;
use std::io::{self, Write};

use rustix::fs::{OFlags, SeekFrom, Stat};

use crate::cli_error::CliError;
use crate::sink::first_difference;

/// Files that a run remembers; beyond it the oldest is forgotten.
const KNOWN_MAX: usize = 16;

/// This process's standard output, as a file to read.
const TO_READ: &str = "/proc/self/fd/1";

/// A file that was standard output, as it is kept: device, inode, where the bytes of the run begin,
/// and whether these are output and result or (with `--output`) the result only.
type Known = (u64, u64, u64, bool);

/// Standard output that continues where a former process of the run stopped.
#[derive(Debug)]
pub struct Redirected {
    /// The file to read, or why it cannot be read.
    reader: io::Result<File>,
    /// Where in the file the next byte belongs.
    at: u64,
    /// Where the file ended at the start of this process.
    end: u64,
    /// Writing goes to the end of the file.
    is_at_end: bool,
    /// Why nothing is written to it.
    refused: Option<String>,
}

/// Looks at standard output. `kept` is what this gave to a former process of the run; what is given
/// now belongs to later ones. The output is written as it comes where there is no [`Redirected`].
pub fn take_up(kept: Option<Vec<u8>>, whole: bool) -> (Option<Redirected>, Option<Vec<u8>>) {
    let Some(file) = regular_file() else {
        return (None, kept);
    };
    let (device, inode, end) = (file.st_dev, file.st_ino, file.st_size as u64);
    // One that is not ours to read is as good as none: the file is new to us then.
    let mut known: Vec<Known> = kept
        .as_deref()
        .and_then(|kept| serde_json::from_slice(kept).ok())
        .unwrap_or_default();
    let is_this = |known: &Known| (known.0, known.1, known.3) == (device, inode, whole);
    let begin = known
        .iter()
        .find(|known| is_this(known))
        .map(|known| known.2);
    if let Some(begin) = begin.filter(|begin| *begin <= end) {
        let redirected = Redirected {
            reader: File::open(TO_READ),
            at: begin,
            end,
            is_at_end: false,
            refused: None,
        };
        return (Some(redirected), kept);
    }
    known.retain(|known| !is_this(known));
    known.push((device, inode, position(end), whole));
    known.drain(..known.len().saturating_sub(KNOWN_MAX));
    let known = serde_json::to_vec(&known).expect("numbers make JSON");
    (None, Some(known))
}

/// Standard output, if it is a file of its own.
fn regular_file() -> Option<Stat> {
    let own = rustix::fs::fstat(io::stdout()).ok()?;
    let other = rustix::fs::fstat(io::stderr());
    let is_shared =
        other.is_ok_and(|other| (other.st_dev, other.st_ino) == (own.st_dev, own.st_ino));
    let is_file = rustix::fs::FileType::from_raw_mode(own.st_mode).is_file();
    (is_file && !is_shared).then_some(own)
}

/// Where the next byte goes that is written to a file of that length.
fn position(end: u64) -> u64 {
    let stdout = io::stdout();
    let flags = rustix::fs::fcntl_getfl(&stdout).unwrap_or(OFlags::empty());
    match flags.contains(OFlags::APPEND) {
        true => end,
        false => rustix::fs::tell(&stdout).unwrap_or(end),
    }
}

impl Redirected {
    /// Takes the next bytes of what the run shows, and writes those that the file does not hold.
    ///
    /// # Errors
    /// The file holds other bytes there, or cannot be read or written.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let held = self.end.saturating_sub(self.at).min(bytes.len() as u64) as usize;
        self.compare(&bytes[..held])?;
        self.at += bytes.len() as u64;
        let rest = &bytes[held..];
        if rest.is_empty() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        if !self.is_at_end {
            rustix::fs::seek(&stdout, SeekFrom::End(0))?;
            self.is_at_end = true;
        }
        stdout.write_all(rest).and_then(|()| stdout.flush())
    }

    /// All that the run shows has come.
    ///
    /// # Errors
    /// The file continues after it.
    pub fn end(&mut self) -> io::Result<()> {
        match self.at < self.end {
            true => Err(self.refuse(format!("it continues after the last byte, {}", self.at))),
            false => Ok(()),
        }
    }

    /// Why nothing was written to the file, if that is so.
    pub fn refusal(&self) -> Option<CliError> {
        let why = self.refused.as_deref()?;
        let message = format!("standard output no longer holds the output of the run: {why}");
        let hint = "nothing was appended to it; rerun the same command with another file, which \
                    gets the whole output, or with --new for a new run";
        Some(CliError::usage("output.differs", message).with_hint(hint))
    }

    fn compare(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let found = match &self.reader {
            Ok(reader) => first_difference(reader, self.at, bytes),
            Err(error) => {
                let why = format!("it cannot be read: {error}");
                return Err(self.refuse(why));
            }
        };
        match found? {
            None => Ok(()),
            Some(equal) => {
                let at = self.at + equal;
                Err(self.refuse(format!("it differs from byte {at} on")))
            }
        }
    }

    fn refuse(&mut self, why: String) -> io::Error {
        self.refused = Some(why);
        io::Error::other("its contents differ")
    }
}
