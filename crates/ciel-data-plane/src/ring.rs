//! A ring in shared memory: one producer, one consumer, no system call while both are awake.
//!
//! The memory file is a page of words and then the bytes. `HEAD` counts bytes ever written, `TAIL`
//! bytes ever taken; only the producer writes the first, only the consumer the second. What lies
//! between is the consumer's, the rest the producer's. Who finds nothing to do spins for a few
//! microseconds, then sleeps on a word of its own (`Bell`). A full ring holds the producer.
//!
//! It does not know processes: that one has died is said by who watches it
//! ([`Ring::producer_lost`], [`Ring::consumer_left`]).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::fault::{Kept, StreamFault};
use crate::limits::{RING_BYTES_MAX, RING_BYTES_MIN, RING_SPIN_US};
use crate::shared::{Bell, Shared, is_sealed, memory_file};

/// Words on lines of their own, so that the sides do not contend for them.
const HEAD: usize = 0;
const TAIL: usize = 128;
const PRODUCER: usize = 256;
const CONSUMER: usize = 260;
const CONSUMER_BELL: usize = 384;
const PRODUCER_BELL: usize = 512;
const BYTES: usize = 4096;

/// The states of `PRODUCER`.
const ABSENT: u32 = 0;
const WRITING: u32 = 1;
const ENDED: u32 = 2;
const LOST: u32 = 3;

/// The states of `CONSUMER`, besides `ABSENT`.
const READING: u32 = 1;
const LEFT: u32 = 2;

/// The ring. Clones are the same ring.
#[derive(Clone, Debug)]
pub struct Ring {
    file: Arc<File>,
    shared: Arc<Shared>,
    capacity: usize,
}

impl Ring {
    /// A new ring with room for at least so many bytes: a power of two, from 4 KiB to 1 GiB.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn create(bytes: usize) -> io::Result<Ring> {
        let capacity = bytes
            .clamp(RING_BYTES_MIN, RING_BYTES_MAX)
            .next_power_of_two();
        Ring::from_file(memory_file("ciel-ring", BYTES + capacity)?)
    }

    /// The ring that another process has created and passed on.
    ///
    /// # Errors
    /// If the file is not such a ring.
    pub fn from_file(file: File) -> io::Result<Ring> {
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        let capacity = length.saturating_sub(BYTES);
        if !is_sealed(&file) || !capacity.is_power_of_two() || capacity < RING_BYTES_MIN {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the file is not a ring",
            ));
        }
        let shared = Arc::new(Shared::map(&file, length)?);
        Ok(Ring {
            file: Arc::new(file),
            shared,
            capacity,
        })
    }

    /// The memory file, to be passed to another process.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Bytes that fit into it.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity
    }

    /// The producer's side; none if it was taken before, in whatever process.
    pub fn writer(&self) -> Option<RingWriter> {
        let ring = self.clone();
        claim(self.word(PRODUCER), WRITING).then_some(RingWriter {
            ring,
            head: 0,
            tail: 0,
        })
    }

    /// The consumer's side; none if it was taken before, in whatever process.
    pub fn reader(&self) -> Option<RingReader> {
        let ring = self.clone();
        claim(self.word(CONSUMER), READING).then_some(RingReader {
            ring,
            head: 0,
            tail: 0,
        })
    }

    /// The producer's process has died: the consumer gets a fault behind the bytes that are there.
    /// Without effect if the stream has ended well.
    pub fn producer_lost(&self) {
        let producer = self.word(PRODUCER);
        let lose = |state| (state != ENDED).then_some(LOST);
        if producer
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, lose)
            .is_ok()
        {
            self.consumer_bell().ring();
        }
    }

    /// The consumer's process has ended: what is and will be written is discarded.
    pub fn consumer_left(&self) {
        self.word(CONSUMER).store(LEFT, Ordering::SeqCst);
        self.producer_bell().ring();
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        self.shared.word(at)
    }

    fn count(&self, at: usize) -> &AtomicU64 {
        self.shared.long_word(at)
    }

    fn consumer_bell(&self) -> Bell<'_> {
        self.bell(CONSUMER_BELL)
    }

    fn producer_bell(&self) -> Bell<'_> {
        self.bell(PRODUCER_BELL)
    }

    fn bell(&self, at: usize) -> Bell<'_> {
        Bell {
            turn: self.word(at),
            waits: self.word(at + 4),
        }
    }

    /// Where a count lies in the memory, and how many bytes follow before the ring wraps.
    fn place(&self, count: u64) -> (usize, usize) {
        let within = (count & (self.capacity as u64 - 1)) as usize;
        (BYTES + within, self.capacity - within)
    }
}

fn claim(word: &AtomicU32, state: u32) -> bool {
    let order = Ordering::SeqCst;
    word.compare_exchange(ABSENT, state, order, order).is_ok()
}

/// Looks for a few microseconds, then sleeps.
fn spin_then_wait<T>(bell: &Bell<'_>, mut look: impl FnMut() -> Option<T>) -> io::Result<T> {
    let end = Instant::now() + Duration::from_micros(RING_SPIN_US);
    loop {
        for _ in 0..32 {
            if let Some(found) = look() {
                return Ok(found);
            }
            std::hint::spin_loop();
        }
        if Instant::now() >= end {
            return bell.wait_for(look);
        }
    }
}

/// The producer's side. Dropped before [`RingWriter::end`], it is lost.
#[derive(Debug)]
pub struct RingWriter {
    ring: Ring,
    head: u64,
    /// The consumer's count when it was last looked at.
    tail: u64,
}

impl RingWriter {
    /// Free room to write into, in place: at least one byte, waited for if the ring is full. None
    /// if the consumer has left.
    ///
    /// # Errors
    /// If the memory is damaged or the system refuses to wait.
    pub fn reserve(&mut self) -> io::Result<Option<&mut [u8]>> {
        let ring = &self.ring;
        if ring.word(CONSUMER).load(Ordering::Acquire) == LEFT {
            return Ok(None);
        }
        let capacity = ring.capacity as u64;
        if self.head - self.tail == capacity {
            // A quarter at once, so that the sides do not wake each other for every few bytes.
            let (head, enough) = (self.head, capacity - capacity / 4);
            let look = || {
                let tail = ring.count(TAIL).load(Ordering::Acquire);
                let is_left = ring.word(CONSUMER).load(Ordering::SeqCst) == LEFT;
                (head.wrapping_sub(tail) <= enough || is_left).then_some((tail, is_left))
            };
            let (tail, is_left) = spin_then_wait(&ring.producer_bell(), look)?;
            if is_left {
                return Ok(None);
            }
            self.tail = tail;
        }
        let used = self.head.wrapping_sub(self.tail);
        if used > capacity {
            return Err(StreamFault::Damaged { read: self.head }.into());
        }
        let (at, before_wrap) = ring.place(self.head);
        let free = (capacity - used) as usize;
        // SAFETY: what does not lie between the counts is the producer's, of which there is one.
        Ok(Some(unsafe {
            ring.shared.bytes_mut(at, free.min(before_wrap))
        }))
    }

    /// Passes the first bytes of the reserved room to the consumer.
    ///
    /// # Panics
    /// If there are more than were reserved.
    pub fn advance(&mut self, bytes: usize) {
        let used = self.head - self.tail + bytes as u64;
        assert!(used <= self.ring.capacity as u64, "more than was reserved");
        self.head += bytes as u64;
        self.ring.count(HEAD).store(self.head, Ordering::Release);
        self.ring.consumer_bell().ring();
    }

    /// Writes all bytes, and says whether the consumer takes them.
    ///
    /// # Errors
    /// As for [`RingWriter::reserve`].
    pub fn put(&mut self, mut bytes: &[u8]) -> io::Result<Kept> {
        while !bytes.is_empty() {
            let Some(room) = self.reserve()? else {
                return Ok(Kept::Discarded);
            };
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            self.advance(now.len());
            bytes = later;
        }
        Ok(Kept::Taken)
    }

    /// The stream ends here, and well. Returns its length in bytes.
    pub fn end(self) -> u64 {
        let order = Ordering::SeqCst;
        // Refused if the producer was said to be lost before.
        let _ = self
            .ring
            .word(PRODUCER)
            .compare_exchange(WRITING, ENDED, order, order);
        self.ring.consumer_bell().ring();
        self.head
    }
}

impl Write for RingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for RingWriter {
    fn drop(&mut self) {
        self.ring.producer_lost();
    }
}

/// The consumer's side. Dropped, it has left.
#[derive(Debug)]
pub struct RingReader {
    ring: Ring,
    /// The producer's count when it was last looked at.
    head: u64,
    tail: u64,
}

impl RingReader {
    /// The next bytes, in place, waited for if there are none. No bytes are the true end.
    ///
    /// # Errors
    /// [`StreamFault::ProducerLost`] behind the last byte of a producer that is lost;
    /// [`StreamFault::Damaged`] if the counts make no sense.
    pub fn peek(&mut self) -> io::Result<&[u8]> {
        let ring = &self.ring;
        if self.head == self.tail {
            let tail = self.tail;
            let look = || {
                // The state first: a count that is read after the end is the last one.
                let state = ring.word(PRODUCER).load(Ordering::SeqCst);
                let head = ring.count(HEAD).load(Ordering::SeqCst);
                (head != tail || state == ENDED || state == LOST).then_some((state, head))
            };
            let (state, head) = spin_then_wait(&ring.consumer_bell(), look)?;
            if head == tail && state == LOST {
                return Err(StreamFault::ProducerLost { read: tail }.into());
            }
            self.head = head;
        }
        let there = self.head.wrapping_sub(self.tail);
        if there > ring.capacity as u64 {
            return Err(StreamFault::Damaged { read: self.tail }.into());
        }
        let (at, before_wrap) = ring.place(self.tail);
        // SAFETY: what lies between the counts is the consumer's, of which there is one.
        Ok(unsafe { ring.shared.bytes(at, before_wrap.min(there as usize)) })
    }

    /// Gives the first of the bytes back to the producer.
    ///
    /// # Panics
    /// If there are more than were shown.
    pub fn consume(&mut self, bytes: usize) {
        assert!(bytes as u64 <= self.head - self.tail, "more than was shown");
        self.tail += bytes as u64;
        self.ring.count(TAIL).store(self.tail, Ordering::Release);
        let used = self
            .ring
            .count(HEAD)
            .load(Ordering::Relaxed)
            .wrapping_sub(self.tail);
        let capacity = self.ring.capacity as u64;
        if used <= capacity - capacity / 4 {
            self.ring.producer_bell().ring();
        }
    }
}

impl Read for RingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let there = self.peek()?;
        let count = there.len().min(buffer.len());
        buffer[..count].copy_from_slice(&there[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl Drop for RingReader {
    fn drop(&mut self) {
        self.ring.consumer_left();
    }
}
