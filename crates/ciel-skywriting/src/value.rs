//! Values as the machine holds them: small copies that name heap objects by index.
//!
//! It does not know how they are allocated or moved. Because objects name each other by index,
//! sharing and cycles are plain data. Read next: `machine::heap`.

use num_bigint::BigInt;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::builtins::Builtin;
use crate::host::Handle;

/// Names an object of one heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Index(pub(crate) u32);

/// One value, 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    /// A variable before its first assignment; never seen by programs.
    Unset,
    Null,
    Bool(bool),
    Int(i64),
    /// Always finite.
    Float(f64),
    /// A string of the code's constants.
    Constant(u32),
    /// The first `bytes` bytes of a text object, which only ever grows at its end.
    Text {
        object: Index,
        bytes: u32,
    },
    /// An integer outside the range of `Int`.
    Big(Index),
    List(Index),
    Dictionary(Index),
    Closure(Index),
    Builtin(Builtin),
    /// A variable shared with closures; never seen by programs.
    Cell(Index),
    /// What `*reference` gives until a strict use.
    Thunk(Index),
    Reference(Handle),
}

impl Value {
    /// The name that `type(x)` gives. Thunks must have been forced.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Value::Unset | Value::Cell(_) => "unset variable",
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Int(_) | Value::Big(_) => "integer",
            Value::Float(_) => "float",
            Value::Constant(_) | Value::Text { .. } => "string",
            Value::List(_) => "list",
            Value::Dictionary(_) => "dictionary",
            Value::Closure(_) | Value::Builtin(_) => "function",
            Value::Thunk(_) | Value::Reference(_) => "reference",
        }
    }

    /// The type with its article, for messages.
    pub(crate) fn a_type(self) -> String {
        let name = self.type_name();
        match name {
            "null" => name.to_owned(),
            "integer" | "unset variable" => format!("an {name}"),
            _ => format!("a {name}"),
        }
    }

    pub(crate) fn is_text(self) -> bool {
        matches!(self, Value::Constant(_) | Value::Text { .. })
    }

    /// The object it names, if any.
    pub(crate) fn index(self) -> Option<Index> {
        match self {
            Value::Text { object, .. } => Some(object),
            Value::Big(index)
            | Value::List(index)
            | Value::Dictionary(index)
            | Value::Closure(index)
            | Value::Cell(index)
            | Value::Thunk(index) => Some(index),
            Value::Unset
            | Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Constant(_)
            | Value::Builtin(_)
            | Value::Reference(_) => None,
        }
    }
}

/// The values on the heap.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Object {
    /// Moved away by the collector.
    Gone,
    Text(Text),
    Integer(Box<BigInt>),
    List(Vec<Value>),
    Dictionary(Box<Dictionary>),
    Closure(Closure),
    /// A variable that closures share.
    Cell(Value),
    /// The copy of one: nobody assigns to it, and nothing that it reaches can change.
    Fixed(Value),
    Thunk(Thunk),
}

impl Object {
    /// Visits the values inside.
    pub(crate) fn each_value(&self, mut visit: impl FnMut(Value)) {
        match self {
            Object::List(items) => items.iter().copied().for_each(visit),
            Object::Dictionary(dictionary) => {
                dictionary.entries().for_each(|(_, value)| visit(*value));
            }
            Object::Closure(closure) => closure.captures.iter().copied().for_each(visit),
            Object::Cell(value) | Object::Fixed(value) | Object::Thunk(Thunk::Forced(value)) => {
                visit(*value)
            }
            Object::Gone | Object::Text(_) | Object::Integer(_) => {}
            Object::Thunk(Thunk::Waiting(_)) => {}
        }
    }
}

/// A string that grows at its end; values are prefixes of it, so older ones stay as they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// Whether every byte is a character.
    pub(crate) is_ascii: bool,
}

/// A function with what it captured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Closure {
    pub(crate) function: u32,
    /// It is known that nothing it reaches can change, and that this is not much.
    pub(crate) is_plain: bool,
    pub(crate) captures: Box<[Value]>,
}

/// One evaluation of `*reference`. Each has its own copy of the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Thunk {
    Waiting(Handle),
    Forced(Value),
}

/// A key of a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Text(Arc<str>),
    Int(i64),
}

/// A key that is only looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyView<'a> {
    Text(&'a str),
    Int(i64),
}

impl Key {
    pub(crate) fn view(&self) -> KeyView<'_> {
        match self {
            Key::Text(text) => KeyView::Text(text),
            Key::Int(number) => KeyView::Int(*number),
        }
    }
}

impl KeyView<'_> {
    pub(crate) fn owned(self) -> Key {
        match self {
            KeyView::Text(text) => Key::Text(Arc::from(text)),
            KeyView::Int(number) => Key::Int(number),
        }
    }

    /// The key as JSON spells it.
    pub(crate) fn spelling(self) -> String {
        match self {
            KeyView::Text(text) => text.to_owned(),
            KeyView::Int(number) => number.to_string(),
        }
    }

    /// What a new entry under this key takes, with its share of spare room.
    pub(crate) fn bytes(self) -> usize {
        const ENTRY_BYTES: usize = 96;
        match self {
            KeyView::Text(text) => ENTRY_BYTES + text.len(),
            KeyView::Int(_) => ENTRY_BYTES,
        }
    }

    fn hash(self) -> usize {
        let mut hasher = FxHasher::default();
        Hash::hash(&self, &mut hasher);
        hasher.finish() as usize
    }
}

/// Up to this many entries are searched one by one.
const LINEAR_MAX: usize = 8;

/// An ordered dictionary with a probing table. A removed entry leaves an empty place, which the
/// next rebuild drops; there are never more empty places than entries.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Dictionary {
    places: Vec<Option<(Key, Value)>>,
    /// How many places hold an entry.
    count: usize,
    /// Number of a place plus one, or zero; a power of two long, at most half full. Empty while all
    /// places are searched one by one.
    table: Vec<u32>,
}

impl Dictionary {
    /// In the order in which the keys came.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = &(Key, Value)> + Clone {
        self.places.iter().flatten()
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.places.iter_mut().flatten().map(|(_, value)| value)
    }

    pub(crate) fn get(&self, key: KeyView<'_>) -> Option<Value> {
        let entry = self.places[self.find(key)?].as_ref();
        entry.map(|(_, value)| *value)
    }

    /// Puts `value` under `key`, at the end if the key is new.
    pub(crate) fn insert(&mut self, key: KeyView<'_>, value: Value) {
        if let Some(at) = self.find(key) {
            self.places[at] = Some((key.owned(), value));
            return;
        }
        self.places.push(Some((key.owned(), value)));
        self.count += 1;
        let places = self.places.len();
        if places <= LINEAR_MAX {
            return;
        }
        if places * 2 > self.table.len() {
            self.rebuild();
        } else {
            self.enter(places - 1);
        }
    }

    /// Takes the entry of `key` out.
    pub(crate) fn remove(&mut self, key: KeyView<'_>) -> Option<Value> {
        let at = self.find(key)?;
        let (_, value) = self.places[at].take()?;
        self.count -= 1;
        if self.count * 2 < self.places.len() {
            self.rebuild();
        }
        Some(value)
    }

    /// Bytes taken besides the object itself.
    pub(crate) fn bytes(&self) -> usize {
        let keys = self.entries().map(|(key, _)| match key {
            Key::Text(text) => text.len() + 16,
            Key::Int(_) => 0,
        });
        self.places.capacity() * size_of::<Option<(Key, Value)>>()
            + self.table.capacity() * size_of::<u32>()
            + keys.sum::<usize>()
            + size_of::<Dictionary>()
    }

    /// The place that holds the entry of `key`.
    fn find(&self, key: KeyView<'_>) -> Option<usize> {
        let holds = |place: &Option<(Key, Value)>| {
            place.as_ref().is_some_and(|(other, _)| other.view() == key)
        };
        if self.table.is_empty() {
            return self.places.iter().position(holds);
        }
        let mask = self.table.len() - 1;
        let mut slot = key.hash() & mask;
        loop {
            let place = self.table[slot] as usize;
            if place == 0 {
                return None;
            }
            if holds(&self.places[place - 1]) {
                return Some(place - 1);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Drops empty entries and rebuilds the table.
    fn rebuild(&mut self) {
        self.places.retain(Option::is_some);
        self.table = match self.places.len() {
            0..=LINEAR_MAX => Vec::new(),
            places => vec![0; (places * 4).next_power_of_two()],
        };
        if !self.table.is_empty() {
            (0..self.places.len()).for_each(|at| self.enter(at));
        }
    }

    /// Enters a place that holds an entry into the table.
    fn enter(&mut self, at: usize) {
        let Some((key, _)) = &self.places[at] else {
            return;
        };
        let mask = self.table.len() - 1;
        let mut slot = key.view().hash() & mask;
        while self.table[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.table[slot] = u32::try_from(at + 1).expect("the heap budget bounds a dictionary");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_sixteen_bytes_and_an_object_forty() {
        assert_eq!(size_of::<Value>(), 16);
        assert!(size_of::<Object>() <= 40, "{}", size_of::<Object>());
    }

    #[test]
    fn a_large_dictionary_keeps_order_and_finds_every_key() {
        let mut dictionary = Dictionary::default();
        for number in 0..1000 {
            dictionary.insert(KeyView::Text(&format!("k{number}")), Value::Int(number));
            dictionary.insert(KeyView::Int(number), Value::Int(-number));
        }
        dictionary.insert(KeyView::Text("k7"), Value::Null);
        assert_eq!(dictionary.len(), 2000);
        assert_eq!(dictionary.get(KeyView::Text("k7")), Some(Value::Null));
        assert_eq!(dictionary.get(KeyView::Int(999)), Some(Value::Int(-999)));
        assert_eq!(dictionary.get(KeyView::Text("absent")), None);
        assert_eq!(
            dictionary.entries().nth(2).map(|(key, _)| key),
            Some(&Key::Text("k1".into()))
        );
    }
    /// Removal in whatever order leaves what a plain list of entries would hold, and takes steps in
    /// proportion: a queue of a hundred thousand keys is emptied at once.
    #[test]
    fn entries_are_removed_in_any_order_and_quickly() {
        let mut dictionary = Dictionary::default();
        let mut expected: Vec<(i64, i64)> = Vec::new();
        for step in 0..3000_i64 {
            let key = step * 7919 % 101;
            if step % 3 == 0 {
                let at = expected.iter().position(|(other, _)| *other == key);
                let removed = at.map(|at| Value::Int(expected.remove(at).1));
                assert_eq!(dictionary.remove(KeyView::Int(key)), removed);
            } else {
                dictionary.insert(KeyView::Int(key), Value::Int(step));
                match expected.iter_mut().find(|(other, _)| *other == key) {
                    Some(entry) => entry.1 = step,
                    None => expected.push((key, step)),
                }
            }
            let entries: Vec<_> = dictionary.entries().cloned().collect();
            let wanted = expected.iter();
            let wanted: Vec<_> = wanted
                .map(|(key, value)| (Key::Int(*key), Value::Int(*value)))
                .collect();
            assert_eq!(entries, wanted);
            assert_eq!(dictionary.len(), wanted.len());
        }
        let mut queue = Dictionary::default();
        (0..100_000).for_each(|key| queue.insert(KeyView::Int(key), Value::Null));
        (0..100_000).for_each(|key| assert!(queue.remove(KeyView::Int(key)).is_some()));
        assert_eq!(
            (queue.len(), queue.places.len(), queue.table.len()),
            (0, 0, 0)
        );
    }
}
