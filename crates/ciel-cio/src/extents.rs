//! The flat view: which bytes of the file lie where, in serial order.
//!
//! An extent is found by a search in levels. Neighbours that are neighbours in the file, too, are
//! one extent, up to [`EXTENT_BYTES_MAX`]. Pure. It does not know segments. Read next: `reader`.

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

/// Numbers that are looked at on each level of a search: two lines of a cache.
const FAN: usize = 16;

/// Extents in serial order, without gaps. It takes 21 bytes for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    /// Where each begins in the flat view; its length follows from the next one.
    starts: Vec<u64>,
    /// Where each lies in the file.
    offsets: Vec<u64>,
    checksums: Vec<u32>,
    /// Every 16th of the starts, every 16th of those, and so on until 16 are left at most. The
    /// upper levels stay in the cache, so a search waits for memory about twice, however many
    /// extents there are.
    levels: Vec<Vec<u64>>,
    bytes: u64,
}

impl Extents {
    /// Bytes of the flat view.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many extents there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether the flat view is empty.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Appends bytes to the flat view.
    ///
    /// # Panics
    /// If the flat view would have 2^64 bytes.
    pub fn push(&mut self, data: Data) {
        let end = self.bytes.checked_add(u64::from(data.length));
        let end = end.expect("so many bytes are nowhere");
        if !self.lengthen(data) {
            self.put_start(self.bytes);
            self.offsets.push(data.offset);
            self.checksums.push(data.checksum);
        }
        self.bytes = end;
    }

    /// Appends a start to the row and to the levels that it belongs to.
    fn put_start(&mut self, start: u64) {
        let mut place = self.starts.len();
        let mut level = 0;
        self.starts.push(start);
        while place > 0 && place.is_multiple_of(FAN) {
            place /= FAN;
            if self.levels.len() == level {
                self.levels.push(vec![0]);
            }
            self.levels[level].push(start);
            level += 1;
        }
    }

    /// Makes data that follow the last extent in the file part of it.
    fn lengthen(&mut self, data: Data) -> bool {
        let Some(last) = self.len().checked_sub(1).map(|last| self.get(last)) else {
            return false;
        };
        let Some(joined) = last.data.joined(data) else {
            return false;
        };
        let checksum = self.checksums.last_mut().expect("there is one");
        *checksum = joined.checksum;
        true
    }

    /// An extent by its place in the row.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn get(&self, place: usize) -> Extent {
        let at = self.starts[place];
        let end = self.starts.get(place + 1).copied().unwrap_or(self.bytes);
        Extent {
            at,
            data: Data {
                offset: self.offsets[place],
                length: (end - at) as u32,
                checksum: self.checksums[place],
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
        let levels = self.levels.iter().rev().chain([&self.starts]);
        let place = levels.fold(0, |above, level| {
            let from = above * FAN;
            let until = level.len().min(from + FAN);
            // The first one begins there or before, as it is the one of the level above.
            from + level[from..until].partition_point(|start| *start <= at) - 1
        });
        Some(place)
    }

    /// Appends the bytes of an index.
    pub fn put(&self, buffer: &mut Vec<u8>) {
        buffer.reserve(self.len() * ENTRY_BYTES);
        for extent in self.iter() {
            buffer.extend(extent.at.to_le_bytes());
            buffer.extend(extent.data.offset.to_le_bytes());
            buffer.extend(extent.data.checksum.to_le_bytes());
        }
    }

    /// Reads an index of a flat view of so many bytes; none if it is none.
    pub fn read(index: &[u8], bytes: u64) -> Option<Extents> {
        if !index.len().is_multiple_of(ENTRY_BYTES) {
            return None;
        }
        let mut extents = Extents {
            bytes,
            ..Extents::default()
        };
        for entry in index.chunks(ENTRY_BYTES) {
            extents.put_start(long(entry, 0)?);
            extents.offsets.push(long(entry, 8)?);
            extents.checksums.push(short(entry, 16)?);
        }
        extents.is_sound().then_some(extents)
    }

    fn is_sound(&self) -> bool {
        let first = self.starts.first().copied().unwrap_or(self.bytes);
        let ends = self.starts.iter().skip(1).copied().chain([self.bytes]);
        let fits = |((start, end), offset): ((&u64, u64), &u64)| {
            let length = end.checked_sub(*start);
            let length = length.filter(|length| (1..=u64::from(EXTENT_BYTES_MAX)).contains(length));
            length.is_some_and(|length| offset.checked_add(length).is_some())
        };
        first == 0 && self.starts.iter().zip(ends).zip(&self.offsets).all(fits)
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
        for count in [1, 2, 15, 16, 17, 255, 256, 257, 272, 4095, 4096, 4097, 5000] {
            let pieces = (0..count).map(|number| data(20_000 - 3 * number, b"ab"));
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
