//! Makes an ordinary file of a `.cio` file.
//!
//! The place of every extent is known, so threads copy side by side. Each extent is checked before
//! the kernel copies it; on XFS, btrfs and their like the kernel shares whole blocks instead, if
//! both places begin at the same offset in a block. It does not know names of files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::CioError;
use crate::extents::Extent;
use crate::limits::FLATTENED_BYTES;
use crate::reader::Reader;

/// Bytes of a block of the file systems that can share blocks.
const BLOCK_BYTES: u64 = 4096;

/// Bytes of an extent from which on sharing its blocks is worth a call of its own.
const SHARED_BYTES_MIN: u64 = 64 << 10;

/// Writes the flat view into an empty file, by so many threads.
///
/// # Errors
/// [`CioError::Open`] and its kin if the file is not complete, [`CioError::DataDamaged`] if data
/// are not as they were written, and those of the system. What `out` holds then has no meaning.
///
/// # Panics
/// If there is no thread.
pub fn flatten(reader: &Reader<File>, out: &File, threads: usize) -> Result<(), CioError> {
    reader.expect_complete()?;
    assert!(threads > 0, "somebody has to copy");
    out.set_len(reader.extents().bytes())?;
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let copy = || scope.spawn(|| copy_shares(reader, out, &next));
        let copies: Vec<_> = (0..threads).map(|_| copy()).collect();
        let mut ended = copies.into_iter().map(|copy| copy.join());
        ended.try_for_each(|ended| ended.expect("copying does not panic"))
    })
}

/// Copies one share of the flat view after another, as long as there are any.
fn copy_shares(reader: &Reader<File>, out: &File, next: &AtomicU64) -> Result<(), CioError> {
    let extents = reader.extents();
    let mut buffer = Vec::new();
    loop {
        let from = next.fetch_add(FLATTENED_BYTES, Ordering::Relaxed);
        let until = from + FLATTENED_BYTES;
        let Some(mut place) = extents.find(from) else {
            return Ok(());
        };
        // An extent belongs to the share in which it begins.
        if extents.get(place).at < from {
            place += 1;
        }
        while place < extents.len() && extents.get(place).at < until {
            reader.read_checked(place, &mut buffer)?;
            copy(reader.source(), extents.get(place), out, &buffer)?;
            place += 1;
        }
    }
}

/// Copies an extent, whose bytes are in the buffer.
fn copy(from: &File, extent: Extent, out: &File, bytes: &[u8]) -> io::Result<()> {
    let mut start = 0;
    for end in cuts(extent) {
        let copied = copy_in_kernel(from, extent, out, start..end);
        out.write_all_at(&bytes[copied as usize..end as usize], extent.at + copied)?;
        start = end;
    }
    Ok(())
}

/// Where the pieces of an extent end that are copied one by one: what precedes whole blocks, those,
/// and what follows them.
fn cuts(extent: Extent) -> Vec<u64> {
    let length = u64::from(extent.data.length);
    let head = extent.at.next_multiple_of(BLOCK_BYTES) - extent.at;
    let has_blocks = extent.at % BLOCK_BYTES == extent.data.offset % BLOCK_BYTES;
    match has_blocks && length >= SHARED_BYTES_MIN {
        true => vec![head, length - (length - head) % BLOCK_BYTES, length],
        false => vec![length],
    }
}

/// Copies as much of a piece as the kernel takes; gives where it stopped.
fn copy_in_kernel(from: &File, extent: Extent, out: &File, piece: std::ops::Range<u64>) -> u64 {
    let mut done = piece.start;
    while done < piece.end {
        let (mut source, mut place) = (extent.data.offset + done, extent.at + done);
        let most = (piece.end - done) as usize;
        match rustix::fs::copy_file_range(from, Some(&mut source), out, Some(&mut place), most) {
            Ok(copied) if copied > 0 => done += copied as u64,
            // Another file system, or an error that the plain write will meet again.
            Ok(_) | Err(_) => break,
        }
    }
    done
}
