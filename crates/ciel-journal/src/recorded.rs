//! What a journal holds when it is opened.
//!
//! It does not know files, only their bytes that count. Read next: `folder`, which finds them.

use std::path::PathBuf;

use crate::frame::{Content, Sequence};
use crate::reader::Reader;

/// The records from which a run resumes.
#[derive(Debug)]
pub struct Recorded {
    /// The payload of the newest snapshot, if one was made.
    pub snapshot: Option<Vec<u8>>,
    /// The last record that the snapshot covers; 0 without one.
    pub snapshot_until: Sequence,
    /// All records after that.
    pub records: Records,
    /// What was cut off, if anything was.
    pub cut: Option<Cut>,
    /// Whether the journal was closed in order, and nothing was written since.
    pub is_closed: bool,
}

/// The end of a log that did not become safe and is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The file in which it began.
    pub path: PathBuf,
    /// The offset there.
    pub offset: u64,
    /// Bytes cut off, there and in files after it.
    pub bytes: u64,
    /// Intact records among them.
    pub records: u64,
}

/// Records in order. They stay in the bytes of the files and are not copied.
#[derive(Debug, Default)]
pub struct Records {
    pub(crate) files: Vec<Vec<u8>>,
}

impl Records {
    /// Each record with its number.
    pub fn iter(&self) -> impl Iterator<Item = (Sequence, &[u8])> {
        let frames = self.files.iter().flat_map(|file| Reader::new(file));
        frames.filter_map(|frame| match frame.content {
            Content::Record(payload) => Some((frame.sequence, payload)),
            Content::SyncMark { .. } | Content::End => None,
        })
    }
}
