//! What one strand has written to one file: pieces of the spill file, then a buffer.
//!
//! A strand whose turn it is *leads*: its bytes go to the file when the buffer is full. What any
//! other strand writes beyond a buffer is spilled. Parts of strands that follow one another are
//! joined in constant time but for the last buffer. It does not know which strand leads.

use std::collections::LinkedList;
use std::io;

use crate::extent::{Extent, SPILLED_BYTES_MAX};
use crate::gauges;
use crate::sync::Arc;
use crate::target::Target;

/// Bytes that a strand gathers before it writes them; also what two parts may copy when they are
/// joined.
pub(crate) const BUFFER_BYTES: usize = 64 << 10;

/// What a strand has written to a file and the file has not received.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) target: Arc<Target>,
    /// Everything before this part is in the file.
    leads: bool,
    /// What precedes the buffer; nothing if it leads. A list, since two of them are joined in
    /// constant time, and each piece is long or the last of a strand.
    spilled: LinkedList<Extent>,
    buffer: Vec<u8>,
}

impl Part {
    /// That of the strand which has opened the file, or of one that may have to wait for its turn.
    pub(crate) fn new(target: Arc<Target>, leads: bool) -> Part {
        Part {
            target,
            leads,
            spilled: LinkedList::new(),
            buffer: Vec::new(),
        }
    }

    pub(crate) fn leads(&self) -> bool {
        self.leads
    }

    /// Whether nobody can write to the file any more, and this part, which is in it now, was the
    /// last.
    pub(crate) fn is_done(&mut self) -> bool {
        let is_settled = self.leads && self.target.is_dropped();
        if is_settled {
            // Nobody is left to whom the failure of a write could be reported.
            let _ = self.empty_buffer();
        }
        is_settled && Arc::strong_count(&self.target) == 1
    }

    fn is_empty(&self) -> bool {
        self.spilled.is_empty() && self.buffer.is_empty()
    }

    /// Whether bytes fit the buffer; if so, they are in it now. After a failed write none fit.
    #[inline]
    pub(crate) fn gather(&mut self, bytes: &[u8]) -> bool {
        let fits = self.buffer.len() + bytes.len() <= BUFFER_BYTES && !self.target.has_failed();
        if fits {
            self.buffer.extend_from_slice(bytes);
        }
        fits
    }

    /// Writes the buffer to the file or to the spill file, and then bytes that would not fit it.
    ///
    /// # Errors
    /// A write failed.
    pub(crate) fn write_through(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.empty_buffer()?;
        if bytes.len() < BUFFER_BYTES {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.put(bytes)
    }

    /// Everything before this part is in the file, so this part goes there, too.
    ///
    /// # Errors
    /// A write failed.
    pub(crate) fn lead(&mut self) -> io::Result<()> {
        self.leads = true;
        let spilled = std::mem::take(&mut self.spilled);
        self.append(spilled)
    }

    /// Leaves nothing in the buffer.
    ///
    /// # Errors
    /// A write failed.
    pub(crate) fn empty_buffer(&mut self) -> io::Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() {
            return Ok(());
        }
        let put = self.put(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        put
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.leads {
            true => self.target.append(bytes),
            false => bytes.chunks(SPILLED_BYTES_MAX).try_for_each(|piece| {
                let extent = self.target.spill(piece)?;
                self.note(extent);
                Ok(())
            }),
        }
    }

    /// Adds a piece; neighbours in the spill file are one.
    fn note(&mut self, extent: Extent) {
        let last = self.spilled.back_mut();
        if !last.is_some_and(|last| last.join(extent)) {
            gauges::extent_kept();
            self.spilled.push_back(extent);
        }
    }

    /// Everything before these pieces is in the file.
    fn append(&self, extents: LinkedList<Extent>) -> io::Result<()> {
        extents.into_iter().try_for_each(|extent| {
            gauges::extent_appended();
            self.target.append_spilled(extent)
        })
    }

    /// Appends the part of a strand that follows this one.
    ///
    /// # Errors
    /// A write failed.
    pub(crate) fn join(&mut self, next: Part) -> io::Result<()> {
        if next.is_empty() {
            self.leads |= next.leads;
            return Ok(());
        }
        if next.spilled.is_empty() && self.gather(&next.buffer) {
            return Ok(());
        }
        self.empty_buffer()?;
        let mut behind = next.spilled;
        match self.leads {
            true => self.append(behind)?,
            false => self.spilled.append(&mut behind),
        }
        self.buffer = next.buffer;
        Ok(())
    }
}
