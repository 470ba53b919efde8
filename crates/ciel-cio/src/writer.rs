//! Writes a file: data from any strand at any time, commits in any order of completion.
//!
//! Space is handed out by one counter, so strands write their data side by side and once. A commit
//! is one small write under a lock. It does not know who the strands are, nor whether what they
//! have committed is final. Read next: `format`, then `order`.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::CioError;
use crate::extents::Extents;
use crate::format::{
    Data, FIRST_BLOCK_END, HEADER_BYTES, Item, LINK_BYTES, Record, Segment, Trailer, header,
    put_record,
};
use crate::limits::{EXTENT_BYTES_MAX, LOG_BLOCK_BYTES, RECORD_ITEMS_MAX};
use crate::order::{Frontier, Order};
use crate::recovery::record_bytes;

/// A `.cio` file that is being written. All calls may come from any thread.
#[derive(Debug)]
pub struct Writer {
    file: File,
    /// Where nothing has been written yet.
    end: AtomicU64,
    segments: AtomicU64,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Log {
    order: Order,
    /// Where the next record goes.
    at: u64,
    block_end: u64,
    is_closed: bool,
}

impl Writer {
    /// Begins a file.
    ///
    /// # Errors
    /// [`CioError::NotEmpty`] if the file is not empty, and those of the system.
    pub fn create(mut file: File) -> Result<Writer, CioError> {
        let bytes = file.metadata()?.len();
        if bytes > 0 {
            return Err(CioError::NotEmpty { bytes });
        }
        file.write_all(&header())?;
        let log = Log {
            order: Order::default(),
            at: HEADER_BYTES as u64,
            block_end: FIRST_BLOCK_END,
            is_closed: false,
        };
        Ok(Writer {
            file,
            end: AtomicU64::new(FIRST_BLOCK_END),
            segments: AtomicU64::new(1),
            log: Mutex::new(log),
        })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// A number for the segment of a strand that begins. The first strand's is
    /// [`ROOT`](crate::ROOT).
    pub fn segment(&self) -> Segment {
        Segment(self.segments.fetch_add(1, Ordering::Relaxed))
    }

    /// Writes at most [`EXTENT_BYTES_MAX`] bytes; they count when what is returned is committed.
    ///
    /// # Errors
    /// Those of the system.
    ///
    /// # Panics
    /// If there are no bytes, or more of them.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Data> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        assert!(
            (1..=EXTENT_BYTES_MAX).contains(&length),
            "an extent has 1 to {EXTENT_BYTES_MAX} bytes, not {length}"
        );
        let offset = self.end.fetch_add(u64::from(length), Ordering::Relaxed);
        self.file.write_all_at(bytes, offset)?;
        Ok(Data {
            offset,
            length,
            checksum: crc32fast::hash(bytes),
        })
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A segment continues with these items, and ends if they are its last. From now on a crash of
    /// the process does not lose them.
    ///
    /// # Errors
    /// [`CioError::Ended`] if the segment has ended, [`CioError::Closed`], and those of the system.
    pub fn commit(&self, segment: Segment, items: &[Item], is_ended: bool) -> Result<(), CioError> {
        let mut log = self.log();
        if log.is_closed {
            return Err(CioError::Closed);
        }
        let mut rest = items;
        loop {
            let (now, later) = rest.split_at(rest.len().min(RECORD_ITEMS_MAX));
            let is_last = later.is_empty();
            self.commit_some(&mut log, segment, now, is_ended && is_last)?;
            if is_last {
                return Ok(());
            }
            rest = later;
        }
    }

    fn commit_some(
        &self,
        log: &mut Log,
        segment: Segment,
        items: &[Item],
        is_ended: bool,
    ) -> Result<(), CioError> {
        if log.block_end - log.at < record_bytes(items.len()) + LINK_BYTES as u64 {
            self.continue_log(log)?;
        }
        if log.order.has_ended(segment) {
            return Err(CioError::Ended { segment });
        }
        let record = Record::Commit {
            segment,
            items: items.to_vec(),
            is_ended,
        };
        log.at = self.put(log.at, &record)?;
        let committed = log.order.commit(segment, items, is_ended);
        committed.expect("it has not ended");
        Ok(())
    }

    /// Reserves another block and says so in the last one.
    fn continue_log(&self, log: &mut Log) -> io::Result<()> {
        let length = LOG_BLOCK_BYTES;
        let offset = self.end.fetch_add(u64::from(length), Ordering::Relaxed);
        self.put(log.at, &Record::Link { offset, length })?;
        log.at = offset;
        log.block_end = offset + u64::from(length);
        Ok(())
    }

    /// Writes a record; gives where it ends.
    fn put(&self, at: u64, record: &Record) -> io::Result<u64> {
        let mut bytes = Vec::new();
        put_record(&mut bytes, record);
        self.file.write_all_at(&bytes, at)?;
        Ok(at + bytes.len() as u64)
    }

    /// Writes the index. Every segment must have ended.
    ///
    /// # Errors
    /// [`CioError::Open`] and [`CioError::Repeated`] if the file cannot be complete,
    /// [`CioError::Closed`], and those of the system. The file can be read without an index.
    pub fn close(&self) -> Result<Extents, CioError> {
        let mut log = self.log();
        if log.is_closed {
            return Err(CioError::Closed);
        }
        let walk = log.order.walk();
        match walk.frontier {
            Frontier::Complete => {}
            Frontier::Open(segment) => return Err(CioError::Open { segment }),
            Frontier::Repeated(segment) => return Err(CioError::Repeated { segment }),
        }
        let extents = Extents::from_iter(walk.data);
        let mut bytes = Vec::new();
        extents.put(&mut bytes);
        let index_offset = self.end.load(Ordering::Relaxed);
        let trailer = Trailer {
            index_offset,
            extents: extents.len() as u64,
            flat_bytes: extents.bytes(),
            index_checksum: crc32fast::hash(&bytes),
        };
        trailer.put(&mut bytes);
        self.file.write_all_at(&bytes, index_offset)?;
        self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        log.is_closed = true;
        Ok(extents)
    }

    /// Bytes that the file has when everything that was begun is written.
    pub fn file_bytes(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }
}
