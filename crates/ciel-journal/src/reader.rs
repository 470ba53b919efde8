//! Judges the bytes of a file of the journal: which frames count, and what the rest is.
//!
//! Let X be the first offset at which no valid next frame is. An intact sync mark behind X, by
//! which bytes beyond X were synced, makes the file *damaged*: safe bytes are lost, and nothing is
//! skipped silently. Otherwise the bytes behind X are the rest of writes that never became safe:
//! *torn*, to be cut. Pure; no input is trusted, and no memory is allocated by a claimed length.
//! Read next: `folder`, which puts files together.

use crate::frame::{
    Content, FRAME_HEAD_BYTES, FileKind, Frame, HEADER_BYTES, Header, HeaderFault, MARKER,
    Sequence, claimed_bytes, frame_at,
};
use crate::limits::SURVEY_FACTOR_MAX;

/// Yields the frames of a file in order, up to the first that is not intact.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    file: &'a [u8],
    header: Result<Header, HeaderFault>,
    at: usize,
    last: Sequence,
    is_ended: bool,
}

/// What a file is after its last frame in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEnd {
    /// Nothing follows.
    Clean {
        /// Whether the last frame was an end.
        is_ended: bool,
    },
    /// The rest of writes that did not become safe.
    Torn {
        /// Where it begins; 0 if the header is not whole.
        offset: usize,
        /// Its length.
        bytes: usize,
        /// Intact records in it, which are lost with it.
        records: u64,
    },
    /// Bytes that were safe are not what they were.
    Damaged {
        /// Where that begins.
        offset: usize,
        /// The first intact frame behind; none if looking for it was given up.
        next_intact: Option<usize>,
    },
    /// The file was written in another format.
    OtherFormat {
        /// Its number.
        found: u32,
    },
}

impl<'a> Reader<'a> {
    /// Begins with the first frame of a whole file.
    pub fn new(file: &'a [u8]) -> Reader<'a> {
        let header = Header::read(file);
        let last = match header {
            Ok(Header {
                kind: FileKind::Log,
                base,
                ..
            }) => base,
            _ => Sequence(0),
        };
        Reader {
            file,
            header,
            at: if header.is_ok() { HEADER_BYTES } else { 0 },
            last,
            is_ended: false,
        }
    }

    /// The header, if there is one.
    pub fn header(&self) -> Option<Header> {
        self.header.ok()
    }

    /// The last record up to here. Pieces of a snapshot are counted from 1.
    pub fn last_record(&self) -> Sequence {
        self.last
    }

    /// Reads to the end and classifies it.
    pub fn ending(&mut self) -> FileEnd {
        self.by_ref().for_each(drop);
        if let Err(HeaderFault::OtherFormat { found }) = self.header {
            return FileEnd::OtherFormat { found };
        }
        let is_ended = self.is_ended;
        if self.at == self.file.len() && self.header.is_ok() {
            return FileEnd::Clean { is_ended };
        }
        let rest = survey(self.file, self.at);
        if rest.synced_bytes > self.at as u64 || rest.is_given_up {
            return FileEnd::Damaged {
                offset: self.at,
                next_intact: rest.first_intact,
            };
        }
        FileEnd::Torn {
            offset: self.at,
            bytes: self.file.len() - self.at,
            records: rest.records,
        }
    }

    fn is_in_order(&self, frame: &Frame<'_>) -> bool {
        match frame.content {
            Content::Record(_) => self.last.0.checked_add(1) == Some(frame.sequence.0),
            Content::SyncMark { synced_bytes } => {
                frame.sequence <= self.last && synced_bytes <= frame.offset as u64
            }
            Content::End => frame.sequence == self.last,
        }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        self.header.ok()?;
        let frame = frame_at(self.file, self.at).filter(|frame| self.is_in_order(frame))?;
        self.at = frame.end;
        self.is_ended = frame.content == Content::End;
        if let Content::Record(_) = frame.content {
            self.last = frame.sequence;
        }
        Some(frame)
    }
}

/// What the intact frames behind an offset say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survey {
    /// The first of them.
    pub first_intact: Option<usize>,
    /// How many records there are.
    pub records: u64,
    /// The highest synced offset, by the marks among them.
    pub synced_bytes: u64,
    /// The highest synced record, by the marks among them.
    pub synced: Sequence,
    /// Whether there were too many bytes that look like frames and are none.
    pub is_given_up: bool,
}

/// Looks for intact frames behind an offset of a file, with any bytes between them.
pub fn survey(file: &[u8], from: usize) -> Survey {
    let mut found = Survey::default();
    let mut at = from;
    let mut budget = (file.len() - from).saturating_mul(SURVEY_FACTOR_MAX);
    while let Some(candidate) = next_marker(file, at) {
        let cost = FRAME_HEAD_BYTES + claimed_bytes(file, candidate).unwrap_or(0);
        if cost > budget {
            found.is_given_up = true;
            break;
        }
        budget -= cost;
        at = candidate + 1;
        if let Some(frame) = frame_at(file, candidate) {
            found.first_intact.get_or_insert(frame.offset);
            found.add(&frame);
            at = frame.end;
        }
    }
    found
}

impl Survey {
    fn add(&mut self, frame: &Frame<'_>) {
        match frame.content {
            Content::Record(_) => self.records += 1,
            Content::SyncMark { synced_bytes } if synced_bytes <= frame.offset as u64 => {
                self.synced_bytes = self.synced_bytes.max(synced_bytes);
                self.synced = self.synced.max(frame.sequence);
            }
            Content::SyncMark { .. } | Content::End => {}
        }
    }
}

fn next_marker(file: &[u8], from: usize) -> Option<usize> {
    let rest = file.get(from..)?;
    let found = rest.windows(MARKER.len()).position(|four| four == MARKER)?;
    Some(from + found)
}
