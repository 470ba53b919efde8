//! Segments: finished output, free of positions, that can stand at several places.
//!
//! A segment holds the output of a strand and of everything beneath it as a flat row; segments
//! that were included there stay shared. It does not know who wrote it. Read next: `retain`,
//! which makes them.

use std::sync::Arc;

use crate::piece::{Extent, Piece};

/// An immutable finished output. Cheap to clone; equal calls share one. Extents within it must
/// not be recycled while it lives.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Segment(Option<Arc<Row>>);

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Row {
    parts: Vec<SegmentPart>,
    length: u64,
}

/// One part of a segment.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub enum SegmentPart {
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
    /// Bytes in a blob of the caller.
    Extent(Extent),
    /// Another segment that stands here.
    Segment(Segment),
}

impl SegmentPart {
    fn length(&self) -> u64 {
        match self {
            SegmentPart::Bytes(bytes) => bytes.len() as u64,
            SegmentPart::Extent(extent) => extent.length,
            SegmentPart::Segment(segment) => segment.length(),
        }
    }
}

impl Segment {
    /// A segment of these parts, in order: for one that comes back from storage.
    pub fn new(parts: Vec<SegmentPart>) -> Segment {
        let parts: Vec<_> = parts.into_iter().filter(|part| part.length() > 0).collect();
        let length = parts.iter().map(SegmentPart::length).sum();
        Segment((length > 0).then(|| Arc::new(Row { parts, length })))
    }

    /// Number of bytes of output.
    pub fn length(&self) -> u64 {
        self.0.as_ref().map_or(0, |row| row.length)
    }

    /// The parts in order; none of them is empty.
    pub fn parts(&self) -> &[SegmentPart] {
        self.0.as_ref().map_or(&[], |row| &row.parts)
    }
}

/// Segments may nest as deep as memoised calls do, so they are taken apart without recursion.
impl Drop for Segment {
    fn drop(&mut self) {
        let mut rows: Vec<Row> = self
            .0
            .take()
            .and_then(Arc::into_inner)
            .into_iter()
            .collect();
        while let Some(row) = rows.pop() {
            for part in row.parts {
                if let SegmentPart::Segment(mut inner) = part {
                    rows.extend(inner.0.take().and_then(Arc::into_inner));
                }
            }
        }
    }
}

/// The frontier's way through a segment: a stack, so that depth costs no recursion.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct SegmentWalk {
    stack: Vec<(Segment, usize)>,
    part_taken: u64,
}

impl SegmentWalk {
    /// Begins a segment; the walk before it must be over.
    pub(crate) fn begin(&mut self, segment: Segment) {
        self.stack.push((segment, 0));
    }

    /// The next at most `limit` bytes; none when the walk is over.
    pub(crate) fn take(&mut self, limit: u64) -> Option<Piece> {
        loop {
            let (segment, next) = self.stack.last_mut()?;
            let Some(part) = segment.parts().get(*next).cloned() else {
                self.stack.pop();
                continue;
            };
            let length = limit.min(part.length() - self.part_taken);
            let start = self.part_taken;
            let piece = match &part {
                SegmentPart::Bytes(bytes) => {
                    Piece::Bytes(bytes[start as usize..(start + length) as usize].to_vec())
                }
                SegmentPart::Extent(extent) => Piece::Extent(extent.part(start, length)),
                SegmentPart::Segment(inner) => {
                    *next += 1;
                    self.descend(inner.clone());
                    continue;
                }
            };
            self.part_taken += length;
            if self.part_taken == part.length() {
                *next += 1;
                self.part_taken = 0;
            }
            return Some(piece);
        }
    }

    /// Enters an inner segment; one that ends with it is left at once.
    fn descend(&mut self, inner: Segment) {
        if self
            .stack
            .last()
            .is_some_and(|(segment, next)| *next == segment.parts().len())
        {
            self.stack.pop();
        }
        self.stack.push((inner, 0));
    }
}
