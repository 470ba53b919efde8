//! Tables with counted keys: what was made one after the other lies side by side in memory, and no
//! insertion moves what is there.
//!
//! Tasks and objects get their keys from a counter, and are mostly looked up in about that order. A
//! table finds them by their number in pages: it neither hashes nor compares, and grows by a page
//! at a time, where a hash table is copied as a whole now and then. A page goes when nothing is
//! left in it; the last one that went is kept for the next, as entries often come and go one by
//! one. Iteration is in the order of keys. For keys with few entries at a time, or with two
//! numbers, use [`KeyMap`](crate::KeyMap).

use std::fmt;
use std::marker::PhantomData;
use std::ops::Index;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::reference::ObjectKey;
use crate::task::TaskKey;

/// Entries of a page.
const PAGE: usize = 16;

/// Pages of a chunk: as many as a set of bits has.
const CHUNK: usize = 64;

/// A key that is counted up from 0.
pub trait CountedKey: Copy {
    /// The key of that number.
    fn of_number(number: u64) -> Self;

    /// Its number.
    fn number(self) -> u64;
}

impl CountedKey for TaskKey {
    fn of_number(number: u64) -> TaskKey {
        TaskKey(number)
    }

    fn number(self) -> u64 {
        self.0
    }
}

impl CountedKey for ObjectKey {
    fn of_number(number: u64) -> ObjectKey {
        ObjectKey(number)
    }

    fn number(self) -> u64 {
        self.0
    }
}

#[derive(Clone)]
struct Page<V> {
    entries: [Option<V>; PAGE],
    used: usize,
}

#[derive(Clone)]
struct Chunk<V> {
    pages: [Option<Box<Page<V>>>; CHUNK],
    used: Bits,
}

/// Numbers below 64, which it gives in order.
#[derive(Clone, Copy, Default)]
struct Bits(u64);

impl Bits {
    fn add(&mut self, number: usize) {
        self.0 |= 1 << number;
    }

    fn remove(&mut self, number: usize) {
        self.0 &= !(1 << number);
    }
}

impl Iterator for Bits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let number = (self.0 != 0).then(|| self.0.trailing_zeros() as usize)?;
        self.remove(number);
        Some(number)
    }
}

/// A table from keys that are counted up.
#[derive(Clone)]
pub struct KeyTable<K, V> {
    chunks: Vec<Option<Box<Chunk<V>>>>,
    /// The chunks that are there, in order.
    used: Vec<usize>,
    length: usize,
    /// The page that was emptied last.
    spare_page: Option<Box<Page<V>>>,
    /// The chunk that was emptied last.
    spare_chunk: Option<Box<Chunk<V>>>,
    keys: PhantomData<fn() -> K>,
}

/// Where a key is: the chunk, the page in it, the entry in that.
fn place(number: u64) -> (usize, usize, usize) {
    let number = number as usize;
    let page = number / PAGE;
    (page / CHUNK, page % CHUNK, number % PAGE)
}

impl<K, V> Default for KeyTable<K, V> {
    fn default() -> KeyTable<K, V> {
        KeyTable {
            chunks: Vec::new(),
            used: Vec::new(),
            length: 0,
            spare_page: None,
            spare_chunk: None,
            keys: PhantomData,
        }
    }
}

impl<V> Page<V> {
    fn new() -> Box<Page<V>> {
        Box::new(Page {
            entries: [const { None }; PAGE],
            used: 0,
        })
    }
}

impl<V> Chunk<V> {
    fn new() -> Box<Chunk<V>> {
        Box::new(Chunk {
            pages: [const { None }; CHUNK],
            used: Bits::default(),
        })
    }
}

impl<K: CountedKey, V> KeyTable<K, V> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let (chunk, page, entry) = place(key.number());
        let chunk = self.chunks.get(chunk)?.as_ref()?;
        chunk.pages[page].as_ref()?.entries[entry].as_ref()
    }

    /// The value of a key.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (chunk, page, entry) = place(key.number());
        let chunk = self.chunks.get_mut(chunk)?.as_mut()?;
        chunk.pages[page].as_mut()?.entries[entry].as_mut()
    }

    /// Whether there is a value of that key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Gives a key a value; the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (chunk, page, entry) = place(key.number());
        if self.chunks.get(chunk).is_none_or(Option::is_none) {
            self.add_chunk(chunk);
        }
        let spare = &mut self.spare_chunk;
        let new = || spare.take().unwrap_or_else(Chunk::new);
        let chunk = self.chunks[chunk].get_or_insert_with(new);
        chunk.used.add(page);
        let spare = &mut self.spare_page;
        let new = || spare.take().unwrap_or_else(Page::new);
        let page = chunk.pages[page].get_or_insert_with(new);
        let before = page.entries[entry].replace(value);
        let added = usize::from(before.is_none());
        page.used += added;
        self.length += added;
        before
    }

    fn add_chunk(&mut self, chunk: usize) {
        let length = self.chunks.len().max(chunk + 1);
        self.chunks.resize_with(length, || None);
        let at = self.used.partition_point(|used| *used < chunk);
        self.used.insert(at, chunk);
    }

    fn remove_chunk(&mut self, chunk: usize) {
        self.spare_chunk = self.chunks[chunk].take();
        let at = self.used.partition_point(|used| *used < chunk);
        self.used.remove(at);
    }

    /// Takes the value of a key away.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (chunk_at, page_at, entry) = place(key.number());
        let chunk = self.chunks.get_mut(chunk_at)?.as_mut()?;
        let page = chunk.pages[page_at].as_mut()?;
        let value = page.entries[entry].take()?;
        self.length -= 1;
        page.used -= 1;
        if page.used == 0 {
            self.spare_page = chunk.pages[page_at].take();
            chunk.used.remove(page_at);
            if chunk.used.0 == 0 {
                self.remove_chunk(chunk_at);
            }
        }
        Some(value)
    }

    /// All entries, in the order of keys.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let chunks = self.used.iter().filter_map(|chunk| {
            let first = *chunk * CHUNK;
            Some((self.chunks[*chunk].as_ref()?, first))
        });
        let pages = chunks.flat_map(|(chunk, first)| {
            let pages = chunk.used.map(move |page| (page, (first + page) * PAGE));
            pages.filter_map(|(page, first)| Some((chunk.pages[page].as_ref()?, first)))
        });
        pages.flat_map(|(page, first)| {
            let entries = page.entries.iter().zip(first as u64..);
            entries.filter_map(|(value, number)| Some((K::of_number(number), value.as_ref()?)))
        })
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, in the order of keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// All values, in the order of keys.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        let chunks = self.chunks.iter_mut().flatten();
        let pages = chunks.flat_map(|chunk| chunk.pages.iter_mut().flatten());
        pages.flat_map(|page| page.entries.iter_mut().flatten())
    }
}

impl<K: CountedKey, V> Index<&K> for KeyTable<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the key is in the table")
    }
}

impl<K: CountedKey, V> FromIterator<(K, V)> for KeyTable<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> KeyTable<K, V> {
        let mut table = KeyTable::default();
        for (key, value) in entries {
            table.insert(key, value);
        }
        table
    }
}

impl<K: CountedKey + fmt::Debug, V: fmt::Debug> fmt::Debug for KeyTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Written as a map, in the order of keys.
impl<K: CountedKey + Serialize, V: Serialize> Serialize for KeyTable<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(self.length))?;
        for (key, value) in self.iter() {
            map.serialize_entry(&key, value)?;
        }
        map.end()
    }
}

impl<'de, K, V> Deserialize<'de> for KeyTable<K, V>
where
    K: CountedKey + Deserialize<'de>,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeyTable<K, V>, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

struct Entries<K, V>(PhantomData<fn() -> (K, V)>);

impl<'de, K, V> Visitor<'de> for Entries<K, V>
where
    K: CountedKey + Deserialize<'de>,
    V: Deserialize<'de>,
{
    type Value = KeyTable<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map with counted keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KeyTable<K, V>, A::Error> {
        let mut table = KeyTable::default();
        while let Some((key, value)) = map.next_entry()? {
            table.insert(key, value);
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_insertions_and_removals_agree_with_a_map(
            steps in prop::collection::vec((any::<bool>(), 0u64..3 * (CHUNK * PAGE) as u64), 0..400)
        ) {
            let (mut table, mut model) = (KeyTable::default(), BTreeMap::new());
            for (step, (inserts, number)) in steps.into_iter().enumerate() {
                let key = TaskKey(number % 40 * (number % 3 * 2048 + 1));
                match inserts {
                    true => prop_assert_eq!(table.insert(key, step), model.insert(key, step)),
                    false => prop_assert_eq!(table.remove(&key), model.remove(&key)),
                }
                prop_assert_eq!(table.len(), model.len());
                prop_assert_eq!(table.get(&key), model.get(&key));
            }
            let entries: Vec<_> = table.iter().map(|(key, value)| (key, *value)).collect();
            prop_assert_eq!(entries, model.clone().into_iter().collect::<Vec<_>>());
            let bytes = postcard::to_stdvec(&table).expect("a table in memory can be written");
            prop_assert_eq!(&bytes, &postcard::to_stdvec(&model).expect("a map, too"));
            let read: KeyTable<TaskKey, usize> = postcard::from_bytes(&bytes).expect("its bytes");
            prop_assert_eq!(read.len(), model.len());
        }
    }

    #[test]
    fn emptied_table_keeps_a_spare_page_and_a_spare_chunk_without_entries() {
        let mut table: KeyTable<TaskKey, u8> = (0..10_000).map(|n| (TaskKey(n), 0)).collect();
        for number in 0..10_000 {
            assert_eq!(table.remove(&TaskKey(number)), Some(0));
        }
        assert!(table.is_empty() && table.chunks.iter().all(Option::is_none));
        let page = table.spare_page.expect("the last page");
        assert!(page.used == 0 && page.entries.iter().all(Option::is_none));
        let chunk = table.spare_chunk.expect("the last chunk");
        assert!(chunk.used.0 == 0 && chunk.pages.iter().all(Option::is_none));
    }
}
