//! Maps by hash that grow in steps: no insertion moves more than a leaf of them.
//!
//! A hash table that is full is copied as a whole, which takes milliseconds once it has a million
//! entries. This map is a trie over the bits of a hash, of which each leaf is a small table; a leaf
//! that is full becomes a branch. It does not shrink, as tables do not. For keys that are counted
//! up use [`KeyTable`](crate::KeyTable), which does not hash.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Entries of a leaf, at most, unless their hashes are equal.
const LEAF: usize = 64;

/// Bits of the hash by which a branch divides, and how many parts that makes.
const BITS: u32 = 3;
const PARTS: usize = 1 << BITS;

/// Branches on the way to a leaf, at most.
const DEPTH: u32 = 16;

/// An odd number with its bits well mixed: 2^64 divided by the golden ratio.
const MIXER: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone)]
enum Node<K, V> {
    Leaf(FxHashMap<K, V>),
    Branch(Box<[Node<K, V>; PARTS]>),
}

impl<K, V> Node<K, V> {
    fn new() -> Node<K, V> {
        Node::Leaf(FxHashMap::default())
    }
}

/// A map of which the growth costs each insertion a constant.
#[derive(Clone)]
pub struct HashTrie<K, V> {
    root: Node<K, V>,
    length: usize,
}

impl<K, V> Default for HashTrie<K, V> {
    fn default() -> HashTrie<K, V> {
        HashTrie {
            root: Node::new(),
            length: 0,
        }
    }
}

/// Which parts lead to a key. A table inside a leaf uses other bits.
#[derive(Clone, Copy)]
struct Path(u64);

impl Path {
    fn of(key: &impl Hash) -> Path {
        Path(FxBuildHasher.hash_one(key).wrapping_mul(MIXER))
    }

    fn part(self, depth: u32) -> usize {
        (self.0 >> (u64::BITS - BITS * (depth + 1))) as usize % PARTS
    }
}

impl<K: Hash + Eq, V> HashTrie<K, V> {
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
        let mut node = &self.root;
        let mut path = None;
        for depth in 0.. {
            match node {
                Node::Leaf(entries) => return entries.get(key),
                Node::Branch(parts) => {
                    let path = *path.get_or_insert_with(|| Path::of(key));
                    node = &parts[path.part(depth)];
                }
            }
        }
        None
    }

    /// Whether there is a value of that key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// The value of a key.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.leaf_of(key).0.get_mut(key)
    }

    /// Takes the value of a key away.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let removed = self.leaf_of(key).0.remove(key);
        self.length -= usize::from(removed.is_some());
        removed
    }

    /// Gives a key a value; the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.insert_among(key, value, |_, _| true)
    }

    /// The same; entries that `keep` does not want are removed before a leaf is divided for want of
    /// room, from that leaf. So those that are not removed otherwise cost the others a constant.
    pub fn insert_among(
        &mut self,
        key: K,
        value: V,
        mut keep: impl FnMut(&K, &V) -> bool,
    ) -> Option<V> {
        let (leaf, depth) = self.leaf_of(&key);
        let count = leaf.len();
        if count >= LEAF {
            leaf.retain(|key, value| keep(key, value));
            let removed = count - leaf.len();
            // One that is nearly full would be looked through again soon.
            if leaf.len() > LEAF / 2 && depth < DEPTH {
                self.divide(&key);
            }
            self.length -= removed;
        }
        let before = self.leaf_of(&key).0.insert(key, value);
        self.length += usize::from(before.is_none());
        before
    }

    /// All entries; their order has no meaning.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut nodes = vec![&self.root];
        let leaves = std::iter::from_fn(move || {
            loop {
                match nodes.pop()? {
                    Node::Leaf(entries) => return Some(entries),
                    Node::Branch(parts) => nodes.extend(parts.iter().rev()),
                }
            }
        });
        leaves.flatten()
    }

    /// The table where a key is, or belongs, and how many branches lead to it.
    fn leaf_of(&mut self, key: &K) -> (&mut FxHashMap<K, V>, u32) {
        let (node, depth) = self.end_of(key);
        match node {
            Node::Leaf(entries) => (entries, depth),
            Node::Branch(_) => unreachable!("a path ends at a leaf"),
        }
    }

    fn end_of(&mut self, key: &K) -> (&mut Node<K, V>, u32) {
        let (mut node, mut depth) = (&mut self.root, 0);
        if let Node::Branch(_) = node {
            let path = Path::of(key);
            while let Node::Branch(parts) = node {
                node = &mut parts[path.part(depth)];
                depth += 1;
            }
        }
        (node, depth)
    }

    /// Makes a branch of the leaf where a key belongs.
    fn divide(&mut self, key: &K) {
        let (node, depth) = self.end_of(key);
        let mut parts = Box::new(std::array::from_fn(|_| FxHashMap::default()));
        if let Node::Leaf(entries) = std::mem::replace(node, Node::new()) {
            for (key, value) in entries {
                let part = Path::of(&key).part(depth);
                let part: &mut FxHashMap<K, V> = &mut parts[part];
                part.insert(key, value);
            }
        }
        *node = Node::Branch(Box::new(parts.map(Node::Leaf)));
    }
}

impl<K: Hash + Eq, V> FromIterator<(K, V)> for HashTrie<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> HashTrie<K, V> {
        let mut map = HashTrie::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

impl<K: Hash + Eq + fmt::Debug, V: fmt::Debug> fmt::Debug for HashTrie<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Written as a map.
impl<K: Hash + Eq + Serialize, V: Serialize> Serialize for HashTrie<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(self.length))?;
        for (key, value) in self.iter() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de, K, V> Deserialize<'de> for HashTrie<K, V>
where
    K: Hash + Eq + Deserialize<'de>,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HashTrie<K, V>, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

struct Entries<K, V>(PhantomData<fn() -> (K, V)>);

impl<'de, K, V> Visitor<'de> for Entries<K, V>
where
    K: Hash + Eq + Deserialize<'de>,
    V: Deserialize<'de>,
{
    type Value = HashTrie<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HashTrie<K, V>, A::Error> {
        let mut entries = HashTrie::default();
        while let Some((key, value)) = map.next_entry()? {
            entries.insert(key, value);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Entries of the largest leaf.
    fn largest<K, V>(node: &Node<K, V>) -> usize {
        match node {
            Node::Leaf(entries) => entries.len(),
            Node::Branch(parts) => parts.iter().map(largest).max().unwrap_or(0),
        }
    }

    proptest! {
        #[test]
        fn any_insertions_and_removals_agree_with_a_map(
            steps in prop::collection::vec((0..4u8, 0..2_000u32), 0..4_000)
        ) {
            let (mut trie, mut model) = (HashTrie::default(), BTreeMap::new());
            for (step, (kind, key)) in steps.into_iter().enumerate() {
                match kind {
                    0 => prop_assert_eq!(trie.remove(&key), model.remove(&key)),
                    _ => prop_assert_eq!(trie.insert(key, step), model.insert(key, step)),
                }
                prop_assert_eq!(trie.len(), model.len());
                prop_assert_eq!(trie.get(&key), model.get(&key));
                prop_assert_eq!(trie.get_mut(&key), model.get_mut(&key));
            }
            let entries: BTreeMap<_, _> = trie.iter().map(|(key, value)| (*key, *value)).collect();
            prop_assert_eq!(entries, model.clone());
            let bytes = postcard::to_stdvec(&trie).expect("a map in memory can be written");
            let read: BTreeMap<u32, usize> = postcard::from_bytes(&bytes).expect("a map");
            prop_assert_eq!(&read, &model);
            let read: HashTrie<u32, usize> = postcard::from_bytes(&bytes).expect("its bytes");
            prop_assert_eq!(read.len(), model.len());
        }
    }

    #[test]
    fn no_leaf_outgrows_its_bound_whatever_bits_the_keys_differ_in() {
        for shift in [0, 20, 40] {
            let trie: HashTrie<u64, ()> = (0..100_000).map(|key| (key << shift, ())).collect();
            assert_eq!(trie.len(), 100_000);
            assert!(largest(&trie.root) <= LEAF, "keys shifted by {shift}");
        }
    }

    #[test]
    fn entries_that_are_not_wanted_leave_when_their_leaf_is_full() {
        let mut trie = HashTrie::default();
        for key in 0..100_000u64 {
            trie.insert_among(key, (), |other, ()| other + 100 > key);
        }
        assert!(trie.len() <= PARTS * LEAF, "{} entries", trie.len());
        assert_eq!(trie.iter().count(), trie.len());
        assert!((99_901..100_000).all(|key| trie.contains_key(&key)));
    }

    /// A hash of which all bits are the same.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Colliding(u32);

    impl Hash for Colliding {
        fn hash<H: std::hash::Hasher>(&self, _hasher: &mut H) {}
    }

    #[test]
    fn keys_of_one_hash_share_a_leaf_that_is_not_divided_for_ever() {
        let trie: HashTrie<Colliding, u32> = (0..1_000).map(|key| (Colliding(key), key)).collect();
        assert_eq!(trie.len(), 1_000);
        assert_eq!(trie.get(&Colliding(999)), Some(&999));
    }
}
