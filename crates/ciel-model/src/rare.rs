//! A value that is mostly the usual one, and takes a word then.
//!
//! There may be as many pending tasks as memory has room for, and most of them have the default of
//! most of what a task can have. It does not know what it holds. Read next: `task`.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A type of which one value is the usual one.
pub trait Usual: Default + PartialEq + 'static {
    /// The default value, one copy for all.
    fn usual() -> &'static Self;
}

/// A value that takes memory of its own only if it is not the usual one.
#[derive(Clone)]
pub struct Rare<T>(Option<Box<T>>);

impl<T> Rare<T> {
    /// The value to be changed, unless it is the usual one.
    pub fn unusual_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Rare<T> {
        Rare(None)
    }
}

impl<T: Usual> From<T> for Rare<T> {
    fn from(value: T) -> Rare<T> {
        Rare((value != *T::usual()).then(|| Box::new(value)))
    }
}

impl<T: Usual> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::usual())
    }
}

/// Whoever changes it may make it an unusual one.
impl<T: Usual> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Usual> PartialEq for Rare<T> {
    fn eq(&self, other: &Rare<T>) -> bool {
        **self == **other
    }
}

impl<T: Usual + Eq> Eq for Rare<T> {}

impl<T: Usual + Hash> Hash for Rare<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: Usual + fmt::Debug> fmt::Debug for Rare<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Written as the value.
impl<T: Usual + Serialize> Serialize for Rare<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Usual + Deserialize<'de>> Deserialize<'de> for Rare<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rare<T>, D::Error> {
        T::deserialize(deserializer).map(Rare::from)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    impl Usual for Vec<u8> {
        fn usual() -> &'static Vec<u8> {
            static EMPTY: LazyLock<Vec<u8>> = LazyLock::new(Vec::new);
            &EMPTY
        }
    }

    #[test]
    fn usual_value_takes_a_word_and_is_written_as_any_other() {
        assert_eq!(size_of::<Rare<Vec<u8>>>(), size_of::<usize>());
        let mut rare: Rare<Vec<u8>> = Rare::from(Vec::new());
        assert!(rare.is_empty() && rare.unusual_mut().is_none());
        rare.push(7);
        assert_eq!(rare.unusual_mut(), Some(&mut vec![7]));
        for value in [Vec::new(), vec![1, 2]] {
            let bytes = postcard::to_stdvec(&value).expect("a vector can be written");
            let read: Rare<Vec<u8>> = postcard::from_bytes(&bytes).expect("its bytes");
            assert_eq!(read, Rare::from(value.clone()));
            assert_eq!(read.0.is_some(), !value.is_empty());
            assert_eq!(postcard::to_stdvec(&read), Ok(bytes));
        }
    }
}
