//! The flat view of a file: read, seek, and reads at any offset in O(log extents).
//!
//! A closed file is read by its index, any other by its log. A read of a closed file does not check
//! data, as a checksum covers more than most reads want; [`Reader::copy_checked`] does. It does not
//! know who wrote the file. Read next: `recovery`, then `flatten`.

use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::error::CioError;
use crate::extents::{Extent, Extents};
use crate::format::{HEADER_BYTES, MAGIC, TRAILER_BYTES, Trailer, check_header};
use crate::order::Unreached;
use crate::recovery::{Ending, is_intact, recover};
use crate::source::{Source, read_most};

/// A `.cio` file that is open for reading.
#[derive(Debug)]
pub struct Reader<S> {
    source: S,
    extents: Extents,
    ending: Ending,
    rest: Vec<Unreached>,
    at: u64,
}

/// Whether a file begins like a `.cio` file.
///
/// # Errors
/// Those of the system.
pub fn is_structured(source: &impl Source) -> io::Result<bool> {
    let mut head = [0; MAGIC.len()];
    let count = read_most(source, &mut head, 0)?;
    Ok(head[..count] == MAGIC)
}

impl<S: Source> Reader<S> {
    /// Opens a file. If it was not closed, the flat view ends at the frontier; what a live writer
    /// commits later is not seen.
    ///
    /// # Errors
    /// If there is no header of this format, or the system cannot read.
    pub fn open(source: S) -> Result<Reader<S>, CioError> {
        let (extents, ending, rest) = match indexed(&source)? {
            Some(extents) => (extents, Ending::Complete, Vec::new()),
            None => {
                let found = recover(&source)?;
                (found.extents, found.ending, found.rest)
            }
        };
        Ok(Reader {
            source,
            extents,
            ending,
            rest,
            at: 0,
        })
    }

    /// Why the flat view ends where it does.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// Says as an error why the flat view is not the whole file.
    ///
    /// # Errors
    /// [`CioError::Open`], [`CioError::Repeated`] or [`CioError::DataDamaged`].
    pub fn expect_complete(&self) -> Result<(), CioError> {
        match self.ending {
            Ending::Complete => Ok(()),
            Ending::Open(segment) => Err(CioError::Open { segment }),
            Ending::Repeated(segment) => Err(CioError::Repeated { segment }),
            Ending::Damaged(extent) => Err(damaged(extent)),
        }
    }

    /// Segments that are committed behind the frontier, by their numbers.
    pub fn rest(&self) -> &[Unreached] {
        &self.rest
    }

    /// Which bytes lie where.
    pub fn extents(&self) -> &Extents {
        &self.extents
    }

    /// The file itself.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Reads bytes of the flat view into the buffer; gives how many, and 0 behind the last one.
    /// Fewer than the buffer holds are read at the end, and before bytes that cannot be read.
    ///
    /// # Errors
    /// If the first byte cannot be read: those of the system, and `UnexpectedEof` if the file is
    /// shorter than its index says.
    pub fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let Some(mut place) = self.extents.find(at) else {
            return Ok(0);
        };
        let mut filled = 0;
        while filled < buffer.len() && place < self.extents.len() {
            let extent = self.extents.get(place);
            let skipped = at + filled as u64 - extent.at;
            let most = u64::from(extent.data.length) - skipped;
            let wanted = (buffer.len() - filled).min(most as usize);
            let piece = &mut buffer[filled..filled + wanted];
            match read_most(&self.source, piece, extent.data.offset + skipped) {
                Ok(count) if count == wanted => filled += wanted,
                Ok(0) if filled == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => return Ok(filled + count),
                Err(error) if filled == 0 => return Err(error),
                Err(_) => return Ok(filled),
            }
            place += 1;
        }
        Ok(filled)
    }

    /// Writes the flat view, every extent after its check.
    ///
    /// # Errors
    /// [`CioError::DataDamaged`] at the first extent that is not as it was written; everything
    /// before it is in `out`. Else those of the system.
    pub fn copy_checked(&self, out: &mut impl Write) -> Result<(), CioError> {
        let mut buffer = Vec::new();
        for place in 0..self.extents.len() {
            self.read_checked(place, &mut buffer)?;
            out.write_all(&buffer)?;
        }
        Ok(())
    }

    /// Reads an extent by its place in the row and checks it.
    pub(crate) fn read_checked(&self, place: usize, buffer: &mut Vec<u8>) -> Result<(), CioError> {
        let extent = self.extents.get(place);
        match is_intact(&self.source, extent.data, buffer)? {
            true => Ok(()),
            false => Err(damaged(extent)),
        }
    }
}

fn damaged(extent: Extent) -> CioError {
    CioError::DataDamaged {
        at: extent.at,
        bytes: u64::from(extent.data.length),
        offset: extent.data.offset,
    }
}

/// The extents by the index, if the file is closed and neither index nor trailer is damaged.
fn indexed(source: &impl Source) -> Result<Option<Extents>, CioError> {
    let mut head = [0; HEADER_BYTES];
    let count = read_most(source, &mut head, 0)?;
    check_header(&head[..count])?;
    let file_bytes = source.bytes()?;
    let mut last = [0; TRAILER_BYTES];
    let trailer_offset = file_bytes.saturating_sub(TRAILER_BYTES as u64);
    let count = read_most(source, &mut last, trailer_offset)?;
    let Some(trailer) = Trailer::read(&last[..count], file_bytes) else {
        return Ok(None);
    };
    // The trailer has shown that the index lies inside the file.
    let mut index = vec![0; (trailer_offset - trailer.index_offset) as usize];
    let count = read_most(source, &mut index, trailer.index_offset)?;
    let is_intact = count == index.len() && crc32fast::hash(&index) == trailer.index_checksum;
    Ok(is_intact
        .then(|| Extents::read(&index, trailer.flat_bytes))
        .flatten())
}

impl<S: Source> Read for Reader<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl<S: Source> Seek for Reader<S> {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        let (from, by) = match place {
            SeekFrom::Start(place) => (place, 0),
            SeekFrom::Current(by) => (self.at, by),
            SeekFrom::End(by) => (self.extents.bytes(), by),
        };
        let place = from.checked_add_signed(by);
        self.at = place.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
