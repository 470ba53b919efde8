//! The ranges of one file that have digests, and whether their bytes are still those.
//!
//! A file is written range by range and used in parts; a part is what it was if each range is that
//! it overlaps. It does not know what the file holds. Read next: `digests`, where ranges are
//! written down; `spill`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use ciel_model::Digest;

use crate::content::digest_of_range;

/// The digest of bytes up to `end`.
#[derive(Debug)]
struct Range {
    end: u64,
    digest: Digest,
    /// What comparing it has given.
    agrees: Option<bool>,
}

/// Ranges by their first bytes; none overlaps another.
#[derive(Debug, Default)]
pub struct Ranges(BTreeMap<u64, Range>);

impl Ranges {
    /// One more range. A file that was emptied is written again from its beginning, so it takes the
    /// place of all that it overlaps.
    pub fn add(&mut self, offset: u64, length: u64, digest: Digest) {
        let Some(end) = offset.checked_add(length) else {
            return;
        };
        while let Some((at, range)) = self.0.range(..end).next_back()
            && range.end > offset
        {
            let at = *at;
            self.0.remove(&at);
        }
        let agrees = None;
        self.0.insert(
            offset,
            Range {
                end,
                digest,
                agrees,
            },
        );
    }

    /// The file has so many bytes: ranges beyond them are dropped.
    pub fn cut(&mut self, length: u64) {
        self.0.retain(|_, range| range.end <= length);
    }

    /// Where the last range ends.
    pub fn end(&self) -> u64 {
        self.0.values().next_back().map_or(0, |range| range.end)
    }

    /// Whether so many bytes of the file are those that were written, as far as there is a digest.
    /// Each range is read once.
    ///
    /// # Errors
    /// Those of reading.
    pub fn agree(&mut self, file: &File, offset: u64, length: u64) -> io::Result<bool> {
        let end = offset.saturating_add(length);
        for (begin, range) in self.0.range_mut(..end).rev() {
            if range.end <= offset {
                break;
            }
            let agrees = match range.agrees {
                Some(agrees) => agrees,
                None => digest_of_range(file, *begin, range.end - begin)? == range.digest,
            };
            range.agrees = Some(agrees);
            if !agrees {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn newer_range_takes_the_place_of_all_that_it_overlaps() {
        let mut ranges = Ranges::default();
        for (number, (offset, length)) in [(0, 10), (10, 10), (20, 10), (5, 10)].iter().enumerate()
        {
            ranges.add(*offset, *length, Digest(number as u128));
        }
        let left = ranges.0.iter().map(|(at, range)| (*at, range.digest.0));
        assert_eq!(left.collect::<Vec<_>>(), [(5, 3), (20, 2)]);
        assert_eq!(ranges.end(), 30);
        ranges.cut(29);
        assert_eq!(ranges.end(), 15);
    }

    #[test]
    fn part_agrees_if_each_range_does_that_it_overlaps() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789abcdefghij").unwrap();
        let mut ranges = Ranges::default();
        ranges.add(0, 10, Digest::of(b"0123456789"));
        ranges.add(10, 5, Digest::of(b"abXde"));
        for (offset, length, agrees) in [
            (0, 10, true),
            (0, 11, false),
            (14, 1, false),
            (15, 5, true),
            (3, 0, true),
            (3, 2, true),
        ] {
            let found = ranges.agree(&file, offset, length).unwrap();
            assert_eq!(found, agrees, "{offset}, {length}");
        }
    }
}
