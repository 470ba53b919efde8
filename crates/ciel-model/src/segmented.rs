//! Lists that grow by segments, so that no push moves what is there.
//!
//! A vector is copied as a whole whenever it doubles; of a million entries that takes milliseconds,
//! in which everybody waits who wants the lock. Here only the first segment doubles, which all that
//! most lists need fits into.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Entries of a segment.
const SEGMENT: usize = 1024;

/// A list that only grows and shrinks at its end.
#[derive(Clone)]
pub struct Segmented<T> {
    first: Vec<T>,
    /// All but the last one are full; none of a short list, which takes less memory so.
    rest: Option<Box<Segments<T>>>,
}

#[derive(Clone)]
struct Segments<T>(Vec<Vec<T>>);

impl<T> Default for Segmented<T> {
    fn default() -> Segmented<T> {
        Segmented {
            first: Vec::new(),
            rest: None,
        }
    }
}

impl<T> Segmented<T> {
    fn rest(&self) -> &[Vec<T>] {
        self.rest.as_ref().map_or(&[], |rest| &rest.0)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        match self.rest() {
            [] => self.first.len(),
            [full @ .., last] => (1 + full.len()) * SEGMENT + last.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Adds an entry at the end.
    pub fn push(&mut self, entry: T) {
        match self.rest.as_mut().and_then(|rest| rest.0.last_mut()) {
            None if self.first.len() < SEGMENT => self.first.push(entry),
            Some(last) if last.len() < SEGMENT => last.push(entry),
            _ => {
                let mut segment = Vec::with_capacity(SEGMENT);
                segment.push(entry);
                let rest = self
                    .rest
                    .get_or_insert_with(|| Box::new(Segments(Vec::new())));
                rest.0.push(segment);
            }
        }
    }

    /// Takes the last entry away.
    pub fn pop(&mut self) -> Option<T> {
        let rest = self.rest.as_mut().map(|rest| &mut rest.0);
        let Some(rest) = rest.filter(|rest| !rest.is_empty()) else {
            return self.first.pop();
        };
        let entry = rest.last_mut().and_then(Vec::pop);
        rest.pop_if(|last| last.is_empty());
        entry
    }

    fn segment(&self, number: usize) -> Option<&Vec<T>> {
        match number.checked_sub(1) {
            None => Some(&self.first),
            Some(number) => self.rest().get(number),
        }
    }

    /// The entry at an index.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.segment(index / SEGMENT)?.get(index % SEGMENT)
    }

    /// The entry at an index.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let segment = match (index / SEGMENT).checked_sub(1) {
            None => &mut self.first,
            Some(number) => self.rest.as_mut()?.0.get_mut(number)?,
        };
        segment.get_mut(index % SEGMENT)
    }

    /// The last entry.
    pub fn last(&self) -> Option<&T> {
        self.rest().last().unwrap_or(&self.first).last()
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.first.iter().chain(self.rest().iter().flatten())
    }

    /// The entries from an index on.
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = &T> {
        (index..self.len()).map(|index| &self[index])
    }

    /// The index of the first entry for which `is_before` is false, if all before it satisfy it.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match is_before(&self[middle]) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Takes away the entries from an index on, and gives them in order.
    pub fn split_off(&mut self, index: usize) -> Vec<T> {
        let count = self.len().saturating_sub(index);
        let mut gone: Vec<T> = (0..count).filter_map(|_| self.pop()).collect();
        gone.reverse();
        gone
    }

    /// All entries in order.
    pub fn into_entries(self) -> impl Iterator<Item = T> {
        self.first
            .into_iter()
            .chain(self.rest.into_iter().flat_map(|rest| rest.0).flatten())
    }
}

impl<T: PartialEq> PartialEq for Segmented<T> {
    fn eq(&self, other: &Segmented<T>) -> bool {
        self.first == other.first && self.rest() == other.rest()
    }
}

impl<T: Eq> Eq for Segmented<T> {}

impl<T> Index<usize> for Segmented<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        let segment = match (index / SEGMENT).checked_sub(1) {
            None => &self.first,
            Some(number) => &self.rest()[number],
        };
        &segment[index % SEGMENT]
    }
}

impl<T> IndexMut<usize> for Segmented<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.get_mut(index).expect("the index is in the list")
    }
}

impl<T> From<Vec<T>> for Segmented<T> {
    fn from(entries: Vec<T>) -> Segmented<T> {
        match entries.len() <= SEGMENT {
            true => Segmented {
                first: entries,
                rest: None,
            },
            false => entries.into_iter().collect(),
        }
    }
}

impl<T> Extend<T> for Segmented<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, entries: I) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}

impl<T> FromIterator<T> for Segmented<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Segmented<T> {
        let mut all = Segmented::default();
        all.extend(entries);
        all
    }
}

impl<T: fmt::Debug> fmt::Debug for Segmented<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Written as a sequence.
impl<T: Serialize> Serialize for Segmented<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut sequence = serializer.serialize_seq(Some(self.len()))?;
        for entry in self.iter() {
            sequence.serialize_element(entry)?;
        }
        sequence.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Segmented<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Segmented<T>, D::Error> {
        deserializer.deserialize_seq(Entries(PhantomData))
    }
}

struct Entries<T>(PhantomData<fn() -> T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
    type Value = Segmented<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Segmented<T>, A::Error> {
        let mut all = Segmented::default();
        while let Some(entry) = sequence.next_element()? {
            all.push(entry);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_pushes_and_pops_agree_with_a_vector(
            steps in prop::collection::vec((any::<bool>(), 0usize..2 * SEGMENT), 0..12)
        ) {
            let (mut list, mut model) = (Segmented::default(), Vec::new());
            for (pushes, count) in steps {
                for number in 0..count {
                    match pushes {
                        true => {
                            list.push(number);
                            model.push(number);
                        }
                        false => prop_assert_eq!(list.pop(), model.pop()),
                    }
                }
                prop_assert_eq!((list.len(), list.last()), (model.len(), model.last()));
                prop_assert_eq!(list.is_empty(), model.is_empty());
            }
            prop_assert!(list.iter().eq(&model));
            prop_assert_eq!(&list, &Segmented::from(model.clone()));
            let half = model.len() / 2;
            prop_assert!(list.iter_from(half).eq(&model[half..]));
            prop_assert_eq!(list.get(model.len()), None);
            let bytes = postcard::to_stdvec(&list).expect("a list in memory can be written");
            prop_assert_eq!(&bytes, &postcard::to_stdvec(&model).expect("a vector, too"));
            prop_assert_eq!(postcard::from_bytes::<Segmented<usize>>(&bytes), Ok(list.clone()));
            prop_assert_eq!(list.split_off(half), model.split_off(half));
            prop_assert_eq!(list.into_entries().collect::<Vec<_>>(), model);
        }
    }

    #[test]
    fn entries_stay_where_they_are() {
        let mut list: Segmented<usize> = (0..10 * SEGMENT).collect();
        let before: Vec<*const usize> = list.iter().map(std::ptr::from_ref).collect();
        list.extend(10 * SEGMENT..100 * SEGMENT);
        assert!(
            list.iter()
                .map(std::ptr::from_ref)
                .zip(before)
                .all(|(now, before)| now == before)
        );
        assert_eq!(
            list.partition_point(|number| *number < 10 * SEGMENT),
            10 * SEGMENT
        );
    }
}
