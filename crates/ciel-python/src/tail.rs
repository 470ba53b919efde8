//! Whether a file has grown, without a system call: the page in which it ends is mapped.
//!
//! A child in place needs three such looks, and three system calls cost as much as a sixth of all
//! that it does. Behind the end of a file its last page is zero, and shows what anybody appends as
//! soon as that is written. What begins with zeros is not sure to be seen there; a process that has
//! started others, which may write that, looks by system calls. It does not know what is in the
//! file. Read next: `outside.rs`, `guard.rs`; `sdk/python/ciel/_streams.py`, which reads the file.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use pyo3::prelude::*;
use rustix::fs::SeekFrom;
use rustix::param::page_size;

use crate::attached::Attached;
use crate::guard::Guard;

/// What the file begins with, so that there is a page to map. If it is gone, the file was cut: no
/// text begins with that byte.
const HEAD: u8 = 0xf8;

/// Bytes behind the end that are looked at: those of a word.
const SEEN_BYTES: usize = size_of::<u64>();

/// The end of a file to which others append.
#[pyclass(frozen, module = "ciel._native")]
pub struct Tail(Attached<End>);

/// What is known of it.
struct End {
    file: RawFd,
    /// Bytes that were read.
    read: u64,
    /// Whether pages may be mapped.
    maps: bool,
    page: Option<Page>,
}

/// A page of the file, mapped.
struct Page {
    /// Goes before the mapping does.
    _guard: Guard,
    /// Its place in the file, in bytes.
    offset: u64,
    map: MmapRaw,
}

#[pymethods]
impl Tail {
    /// Of the empty file with that descriptor, which is its own, stays open, and writes where it
    /// is told to. Gives the file a head.
    ///
    /// Raises OSError if the file cannot be written.
    #[new]
    fn new(file: RawFd) -> PyResult<Tail> {
        let mut tail = End {
            file,
            read: 1,
            maps: true,
            page: None,
        };
        rustix::io::pwrite(tail.file(), &[0], 0).map_err(std::io::Error::from)?;
        tail.map();
        tail.write_head().map_err(std::io::Error::from)?;
        // A file system whose mappings do not show what is written later is not looked at so.
        if tail.page.as_ref().is_none_or(|page| page.byte(0) != HEAD) {
            tail.look_by_calls();
        }
        Ok(Tail(Attached::new(tail)))
    }

    /// Bytes that were read.
    #[getter]
    fn read(&self, py: Python<'_>) -> u64 {
        self.0.borrow(py).read
    }

    /// Whether the file has what was not read yet.
    pub fn has_grown(&self, py: Python<'_>) -> bool {
        self.0.borrow(py).has_grown()
    }

    /// From where to where the file has what was not read.
    ///
    /// Raises OSError if the system does not say.
    fn unread(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.0.borrow_mut(py).unread()
    }

    /// All up to there was read.
    ///
    /// Raises OSError if the file cannot be written.
    fn note_read(&self, py: Python<'_>, read: u64) -> PyResult<()> {
        self.0.borrow_mut(py).note_read(read)
    }

    /// Others may append nothing but zeros: looks by system calls from now on.
    fn look_by_calls(&self, py: Python<'_>) {
        self.0.borrow_mut(py).look_by_calls();
    }
}

impl End {
    fn has_grown(&self) -> bool {
        let page = self.page.as_ref();
        let is_known = page.is_some_and(|page| page.ends_at(self.read));
        !is_known && self.end() != Ok(self.read)
    }

    fn unread(&mut self) -> PyResult<(u64, u64)> {
        let end = self.end().map_err(std::io::Error::from)?;
        if end < self.read || (end > self.read && !self.has_head()) {
            self.read = 0;
        }
        Ok((self.read, end))
    }

    fn note_read(&mut self, read: u64) -> PyResult<()> {
        let was_cut = self.read == 0;
        self.read = read;
        if was_cut && read > 0 {
            self.write_head().map_err(std::io::Error::from)?;
        }
        self.map();
        Ok(())
    }

    fn look_by_calls(&mut self) {
        self.maps = false;
        self.page = None;
    }

    fn file(&self) -> BorrowedFd<'_> {
        // SAFETY: whoever made this keeps the file open.
        unsafe { BorrowedFd::borrow_raw(self.file) }
    }

    fn end(&self) -> rustix::io::Result<u64> {
        rustix::fs::seek(self.file(), SeekFrom::End(0))
    }

    fn has_head(&self) -> bool {
        let mut head = [0];
        let count = rustix::io::pread(self.file(), &mut head, 0);
        count == Ok(1) && head == [HEAD]
    }

    fn write_head(&self) -> rustix::io::Result<()> {
        rustix::io::pwrite(self.file(), &[HEAD], 0).map(drop)
    }

    /// Maps the page of the end, if the file has bytes in it.
    fn map(&mut self) {
        let bytes = page_size() as u64;
        let offset = self.read / bytes * bytes;
        if self.page.as_ref().is_some_and(|page| page.offset == offset) {
            return;
        }
        self.page = None;
        if self.maps && self.read > offset {
            self.page = Page::map(self.file, offset);
        }
    }
}

impl Page {
    fn map(file: RawFd, offset: u64) -> Option<Page> {
        let mut options = MmapOptions::new();
        options.offset(offset).len(page_size());
        let map = options.map_raw_read_only(file).ok()?;
        let guard = Guard::new(map.as_mut_ptr())?;
        Some(Page {
            _guard: guard,
            offset,
            map,
        })
    }

    /// Whether that byte of the file and those behind it are there, and zero; the head is there if
    /// it is in the page.
    fn ends_at(&self, place: u64) -> bool {
        let start = place.wrapping_sub(self.offset) as usize;
        let is_whole = self.offset != 0 || self.byte(0) == HEAD;
        is_whole && start <= self.map.len() - SEEN_BYTES && self.is_zero(start)
    }

    /// Whether the bytes from there are zero: those of one word, or of two.
    fn is_zero(&self, start: usize) -> bool {
        let first = start / SEEN_BYTES * SEEN_BYTES;
        let before_bits = 8 * (start - first);
        let seen = self.word(first) >> before_bits;
        let has_more = before_bits != 0;
        seen == 0 && !(has_more && self.word(first + SEEN_BYTES) << (64 - before_bits) != 0)
    }

    /// The word that begins there, its first byte the lowest.
    fn word(&self, place: usize) -> u64 {
        let is_there = place.is_multiple_of(SEEN_BYTES) && place + SEEN_BYTES <= self.map.len();
        assert!(is_there, "the word is in the page");
        // SAFETY: as in `byte`; pages begin at words, and so does the place.
        let word = unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(place).cast()) };
        u64::from_le(word.load(Ordering::Relaxed))
    }

    fn byte(&self, place: usize) -> u8 {
        assert!(place < self.map.len(), "the place is in the page");
        // SAFETY: the mapping has that byte, lives as long as `self`, and is only read, by atomic
        // operations. If its page of the file is gone, the guard puts another one there.
        let byte = unsafe { AtomicU8::from_ptr(self.map.as_mut_ptr().add(place)) };
        byte.load(Ordering::Relaxed)
    }
}
