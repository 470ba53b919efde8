//! The regions of memory that two processes share: which value of a direct stream lies where.
//!
//! The producer places a value in a region, tells the reader of it through the pipe of the stream,
//! and uses the region again when the reader has released it, in whatever order that happens. A
//! value for which there is no room goes through the pipe itself. Where two regions are in use, the
//! producer waits for a release before it takes fresh pages, but no longer than these take: so few
//! pages pass between a producer and a reader that lets go, and nobody depends on a release. It
//! does not know processes, pipes or mappings. Read next: `limits`; `shared_memory.rs` of
//! `ciel-python`, which has the memory.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use crate::limits::{
    FRESH_MIB_US, SHARED_AT_ONCE_PARTS, SHARED_BYTES, SHARED_BYTES_MIN, SHARED_HELD_PARTS,
    SHARED_UNIT_BYTES, SHARED_UNTAKEN_PARTS, SHARED_VALUE_BYTES_MIN, SHARED_VALUE_PARTS,
};

/// Bytes of a region as the producer tells of it.
pub const REGION_BYTES: usize = 24;

/// A part of the memory that holds one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    offset: u64,
    length: u64,
    number: u64,
}

/// What was told is no region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no region of shared memory has {length} bytes from {offset} on")]
pub struct NoRegion {
    offset: u64,
    length: u64,
}

impl Region {
    /// A region of memory of so many bytes that another process has told of.
    ///
    /// # Errors
    /// If it lies outside of the memory, or nothing is placed like that.
    pub fn from_bytes(bytes: [u8; REGION_BYTES], memory: u64) -> Result<Region, NoRegion> {
        let word = |at: usize| {
            let word = bytes[8 * at..8 * at + 8].try_into();
            u64::from_le_bytes(word.expect("eight bytes"))
        };
        let region = Region {
            offset: word(0),
            length: word(1),
            number: word(2),
        };
        match region.is_placed(memory) {
            true => Ok(region),
            false => Err(region.refused()),
        }
    }

    /// As the other process is told: three numbers, the lowest byte of each first.
    pub fn to_bytes(self) -> [u8; REGION_BYTES] {
        let words = [self.offset, self.length, self.number].map(u64::to_le_bytes);
        let mut bytes = [0; REGION_BYTES];
        bytes.copy_from_slice(words.as_flattened());
        bytes
    }

    /// Where it begins, in bytes from the beginning of the memory.
    pub fn offset(self) -> usize {
        self.offset as usize
    }

    /// Bytes of its value.
    pub fn length(self) -> usize {
        self.length as usize
    }

    /// A number that no other region of this memory has had, and never zero.
    pub fn number(self) -> u64 {
        self.number
    }

    /// The unit of memory that it begins with, which no other region has at the same time.
    pub fn unit(self) -> usize {
        (self.offset / SHARED_UNIT_BYTES) as usize
    }

    fn is_placed(self, memory: u64) -> bool {
        self.offset.is_multiple_of(SHARED_UNIT_BYTES)
            && is_shared(self.length, memory)
            && self.offset <= memory - self.room()
            && self.number > 0
    }

    fn refused(self) -> NoRegion {
        NoRegion {
            offset: self.offset,
            length: self.length,
        }
    }

    /// The bytes of its units.
    pub fn units(self) -> Range<usize> {
        self.offset as usize..self.end() as usize
    }

    /// Whole units.
    fn room(self) -> u64 {
        self.length.next_multiple_of(SHARED_UNIT_BYTES)
    }

    fn end(self) -> u64 {
        self.offset + self.room()
    }
}

/// Whether a value of so many bytes is large enough for a region of such memory, and not too large.
pub fn is_shared(length: u64, memory: u64) -> bool {
    (SHARED_VALUE_BYTES_MIN..=memory / SHARED_VALUE_PARTS).contains(&length)
}

/// How much memory a stream gets where so many bytes are free, of which others want some, too: all
/// that it could use, or half of what is free, or just so much that a value of `length` bytes is
/// shared; nothing if that is not free.
pub fn granted(length: u64, free: u64) -> Option<u64> {
    if !is_shared(length, SHARED_BYTES) {
        return None;
    }
    let least = length.next_multiple_of(SHARED_UNIT_BYTES) * SHARED_VALUE_PARTS;
    let least = least.clamp(SHARED_BYTES_MIN, SHARED_BYTES);
    let half = free / 2 / SHARED_UNIT_BYTES * SHARED_UNIT_BYTES;
    (least <= free).then(|| half.clamp(least, SHARED_BYTES))
}

/// Where a value goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// To pages that are there.
    Warm(Region),
    /// To pages of which some are not there yet.
    Fresh(Region),
    /// To what the reader releases next, if it does so within the time that fresh pages take.
    NextReleased(Duration),
    /// Through the pipe.
    Pipe,
}

/// The regions in use, as the producer knows them.
#[derive(Clone, Debug)]
pub struct Regions {
    /// Bytes of the memory.
    memory: u64,
    /// By their offsets.
    used: BTreeMap<u64, Region>,
    /// Where the pages end that are there.
    warm_end: u64,
    /// That of the newest.
    number: u64,
    /// What the reader had not taken when somebody asked last, the oldest first.
    untaken: VecDeque<Region>,
    untaken_bytes: u64,
}

impl Regions {
    /// None in use, in so many bytes of memory, of which `pages` bytes have pages already, from its
    /// beginning on.
    pub fn new(memory: u64, pages: u64) -> Regions {
        Regions {
            memory,
            used: BTreeMap::new(),
            warm_end: pages.min(memory),
            number: 0,
            untaken: VecDeque::new(),
            untaken_bytes: 0,
        }
    }

    /// Where the pages end that are there.
    pub fn warm_end(&self) -> u64 {
        self.warm_end
    }

    /// Where a value of so many bytes goes: into the lowest free region, for its pages may be
    /// there; through the pipe if nothing is free, or such values have no region. `is_released`
    /// says whether the reader does not need a region any more, `may_wait` whether the producer
    /// still has time to wait.
    pub fn place(
        &mut self,
        length: u64,
        may_wait: bool,
        mut is_released: impl FnMut(Region) -> bool,
    ) -> Place {
        if !is_shared(length, self.memory) {
            return Place::Pipe;
        }
        self.used.retain(|_, region| !is_released(*region));
        let region = self.lowest(length);
        if !region.is_placed(self.memory) {
            return Place::Pipe;
        }
        let fresh = region.end().saturating_sub(self.warm_end);
        let may_be_warm = self.used.len() > 1 && region.room() <= self.warm_end;
        if may_wait && may_be_warm && fresh > 0 && region.end() > self.memory / SHARED_AT_ONCE_PARTS
        {
            let time = (fresh * FRESH_MIB_US) >> 20;
            return Place::NextReleased(Duration::from_micros(time));
        }
        self.use_region(region);
        match fresh {
            0 => Place::Warm(region),
            _ => Place::Fresh(region),
        }
    }

    /// It may lie behind the end of the memory.
    fn lowest(&self, length: u64) -> Region {
        let mut region = Region {
            offset: 0,
            length,
            number: self.number + 1,
        };
        for used in self.used.values() {
            if used.offset >= region.end() {
                break;
            }
            region.offset = used.end();
        }
        region
    }

    fn use_region(&mut self, region: Region) {
        self.number = region.number;
        self.warm_end = self.warm_end.max(region.end());
        self.used.insert(region.offset, region);
        self.untaken.push_back(region);
        self.untaken_bytes += region.length;
        if cfg!(debug_assertions) {
            self.check_all();
        }
    }

    /// Whether the reader is so far behind that the producer is to be held, when it has taken
    /// the regions up to that number.
    pub fn is_far_ahead(&mut self, taken: u64) -> bool {
        while let Some(region) = self.untaken.pop_front_if(|region| region.number <= taken) {
            self.untaken_bytes -= region.length;
        }
        self.untaken_bytes > self.memory / SHARED_UNTAKEN_PARTS
    }

    /// The invariant: each region lies in the memory, where pages are, and no two of them overlap.
    ///
    /// # Panics
    /// If that does not hold: a bug of this crate.
    fn check_all(&self) {
        let mut end = 0;
        for region in self.used.values() {
            assert!(
                region.offset >= end && region.is_placed(self.memory),
                "{self:?}"
            );
            end = region.end();
        }
        assert!(end <= self.warm_end, "{self:?}");
    }
}

/// The regions that a reader has not released.
#[derive(Clone, Debug)]
pub struct HeldRegions {
    /// Bytes of the memory.
    memory: u64,
    /// By their offsets.
    held: BTreeMap<u64, Region>,
    bytes: u64,
}

impl HeldRegions {
    /// None, in so many bytes of memory.
    pub fn new(memory: u64) -> HeldRegions {
        HeldRegions {
            memory,
            held: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// The producer has told of a region.
    ///
    /// # Errors
    /// If it lies over one that is held: the producer has used that too early.
    pub fn take(&mut self, region: Region) -> Result<(), NoRegion> {
        let before = self.held.range(..region.end()).next_back();
        if before.is_some_and(|(_, held)| held.end() > region.offset) {
            return Err(region.refused());
        }
        self.held.insert(region.offset, region);
        self.bytes += region.length;
        Ok(())
    }

    /// Nothing points into a region any more.
    pub fn give_back(&mut self, region: Region) {
        let given = self.held.remove(&region.offset);
        assert_eq!(given, Some(region), "given back without being held");
        self.bytes -= region.length;
    }

    /// Whether so much is held that a further value is to be copied.
    pub fn is_full(&self) -> bool {
        self.bytes > self.memory / SHARED_HELD_PARTS
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The bytes that are in no region which is held.
    pub fn gaps(&self) -> Vec<Range<usize>> {
        let ends = self.held.values().map(|region| region.end());
        let begins = self.held.keys().copied();
        let gaps = std::iter::once(0).chain(ends);
        gaps.zip(begins.chain([self.memory]))
            .map(|(begin, end)| begin as usize..end as usize)
            .filter(|gap| !gap.is_empty())
            .collect()
    }
}
