//! The flat view: which bytes of the file lie where, in serial order.
//!
//! An entry is found by binary search. Neighbours that are neighbours in the file, too, are one
//! entry, up to [`EXTENT_BYTES_MAX`]. Pure. It does not know segments. Read next: `reader`.

use crate::format::{Data, ENTRY_BYTES, long, short};
use crate::limits::EXTENT_BYTES_MAX;

/// Bytes of the flat view that lie together in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where they begin in the flat view.
    pub at: u64,
    /// Where they lie in the file.
    pub data: Data,
}

/// An entry; its length follows from the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    at: u64,
    offset: u64,
    checksum: u32,
}

/// Entries between two samples.
const SAMPLED_ENTRIES: usize = 64;

/// Extents in serial order, without gaps. It takes 24 bytes for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    entries: Vec<Entry>,
    /// Where every 64th entry begins: a search among these few numbers, which stay in the cache,
    /// leaves few entries to look at.
    samples: Vec<u64>,
    bytes: u64,
}

impl Extents {
    /// Bytes of the flat view.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many extents there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the flat view is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends bytes to the flat view.
    ///
    /// # Panics
    /// If the flat view would have 2^64 bytes.
    pub fn push(&mut self, data: Data) {
        let end = self.bytes.checked_add(u64::from(data.length));
        let end = end.expect("so many bytes are nowhere");
        if !self.lengthen(data) {
            if self.entries.len().is_multiple_of(SAMPLED_ENTRIES) {
                self.samples.push(self.bytes);
            }
            self.entries.push(Entry {
                at: self.bytes,
                offset: data.offset,
                checksum: data.checksum,
            });
        }
        self.bytes = end;
    }

    /// Makes data that follow the last extent in the file part of it.
    fn lengthen(&mut self, data: Data) -> bool {
        let Some(last) = self.len().checked_sub(1).map(|last| self.get(last)) else {
            return false;
        };
        let Some(joined) = last.data.joined(data) else {
            return false;
        };
        let last = self.entries.last_mut().expect("there is one");
        last.checksum = joined.checksum;
        true
    }

    /// An extent by its place in the row.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn get(&self, place: usize) -> Extent {
        let entry = self.entries[place];
        let next = self.entries.get(place + 1);
        let end = next.map_or(self.bytes, |next| next.at);
        Extent {
            at: entry.at,
            data: Data {
                offset: entry.offset,
                length: (end - entry.at) as u32,
                checksum: entry.checksum,
            },
        }
    }

    /// All extents.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Extent> + '_ {
        (0..self.len()).map(|place| self.get(place))
    }

    /// The place of the extent that holds a byte of the flat view; none behind the last byte.
    pub fn find(&self, at: u64) -> Option<usize> {
        if at >= self.bytes {
            return None;
        }
        // The first sample is 0, so there is one before.
        let sample = self.samples.partition_point(|sample| *sample <= at) - 1;
        let from = sample * SAMPLED_ENTRIES;
        let until = self.len().min(from + SAMPLED_ENTRIES);
        let behind = self.entries[from..until].partition_point(|entry| entry.at <= at);
        Some(from + behind - 1)
    }

    /// Appends the bytes of an index.
    pub fn put(&self, buffer: &mut Vec<u8>) {
        buffer.reserve(self.len() * ENTRY_BYTES);
        for entry in &self.entries {
            buffer.extend(entry.at.to_le_bytes());
            buffer.extend(entry.offset.to_le_bytes());
            buffer.extend(entry.checksum.to_le_bytes());
        }
    }

    /// Reads an index of a flat view of so many bytes; none if it is none.
    pub fn read(index: &[u8], bytes: u64) -> Option<Extents> {
        if !index.len().is_multiple_of(ENTRY_BYTES) {
            return None;
        }
        let entries: Option<Vec<Entry>> = index.chunks(ENTRY_BYTES).map(entry).collect();
        let entries = entries?;
        let samples = entries.iter().step_by(SAMPLED_ENTRIES);
        let extents = Extents {
            samples: samples.map(|entry| entry.at).collect(),
            entries,
            bytes,
        };
        extents.is_sound().then_some(extents)
    }

    fn is_sound(&self) -> bool {
        let first = self.entries.first().map_or(self.bytes, |first| first.at);
        let ends = self.entries.iter().skip(1).map(|next| next.at);
        let mut ends = ends.chain([self.bytes]);
        let fits = |entry: &Entry| {
            let length = ends.next().and_then(|end| end.checked_sub(entry.at));
            let length = length.filter(|length| (1..=u64::from(EXTENT_BYTES_MAX)).contains(length));
            length.is_some_and(|length| entry.offset.checked_add(length).is_some())
        };
        first == 0 && self.entries.iter().all(fits)
    }
}

impl FromIterator<Data> for Extents {
    fn from_iter<I: IntoIterator<Item = Data>>(data: I) -> Extents {
        let mut extents = Extents::default();
        data.into_iter().for_each(|data| extents.push(data));
        extents
    }
}

impl Data {
    /// Both, if they can be one extent.
    pub fn joined(self, next: Data) -> Option<Data> {
        let length = self.length.checked_add(next.length)?;
        let follows = self.offset + u64::from(self.length) == next.offset;
        (follows && length <= EXTENT_BYTES_MAX).then(|| Data {
            offset: self.offset,
            length,
            checksum: checksum_of_both(self, next),
        })
    }
}

fn checksum_of_both(one: Data, next: Data) -> u32 {
    let hasher =
        |data: Data| crc32fast::Hasher::new_with_initial_len(data.checksum, u64::from(data.length));
    let mut both = hasher(one);
    both.combine(&hasher(next));
    both.finalize()
}

fn entry(bytes: &[u8]) -> Option<Entry> {
    Some(Entry {
        at: long(bytes, 0)?,
        offset: long(bytes, 8)?,
        checksum: short(bytes, 16)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(offset: u64, bytes: &[u8]) -> Data {
        Data {
            offset,
            length: bytes.len() as u32,
            checksum: crc32fast::hash(bytes),
        }
    }

    #[test]
    fn neighbours_in_the_file_are_one_extent_with_the_checksum_of_both() {
        let extents = Extents::from_iter([data(10, b"ab"), data(12, b"cde"), data(9, b"f")]);
        let wanted = [data(10, b"abcde"), data(9, b"f")];
        let found: Vec<Data> = extents.iter().map(|extent| extent.data).collect();
        assert_eq!(found, wanted);
        assert_eq!(extents.bytes(), 6);
        assert_eq!(extents.find(4), Some(0));
        assert_eq!(extents.find(5), Some(1));
        assert_eq!(extents.find(6), None);
    }

    #[test]
    fn every_byte_is_found_in_the_extent_that_holds_it() {
        for count in [1, 63, 64, 65, 128, 300] {
            let pieces = (0..count).map(|number| data(1000 - 3 * number, b"ab"));
            let extents = Extents::from_iter(pieces);
            let mut index = Vec::new();
            extents.put(&mut index);
            assert_eq!(Extents::read(&index, 2 * count).as_ref(), Some(&extents));
            for at in 0..2 * count {
                assert_eq!(extents.find(at), Some(at as usize / 2));
            }
            assert_eq!(extents.find(2 * count), None);
        }
    }

    #[test]
    fn extent_does_not_grow_over_its_bound() {
        let half = vec![7; EXTENT_BYTES_MAX as usize / 2 + 1];
        let second = 10 + half.len() as u64;
        let extents = Extents::from_iter([data(10, &half), data(second, &half)]);
        assert_eq!(extents.len(), 2);
    }

    #[test]
    fn index_that_has_gaps_or_turns_back_is_refused() {
        let extents = Extents::from_iter([data(10, b"ab"), data(100, b"cde")]);
        let mut index = Vec::new();
        extents.put(&mut index);
        assert_eq!(Extents::read(&index, 5), Some(extents));
        assert_eq!(Extents::read(&index, 2), None);
        assert_eq!(Extents::read(&index[1..], 5), None);
        index[0] = 1;
        assert_eq!(Extents::read(&index, 5), None);
        assert_eq!(Extents::read(&[], 0), Some(Extents::default()));
        assert_eq!(Extents::read(&[], 1), None);
    }
}
