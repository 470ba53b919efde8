//! The largest objects of a run and who made them, for people who look for what takes the room.
//!
//! It does not know the store; whoever makes an object says so here. Read next: `store_view`.

use std::fmt::{self, Display};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ciel_model::Label;
use ciel_store::{Object, ObjectName};

/// Who makes an object.
pub(crate) enum Maker<'a> {
    Task(&'a Label),
    /// It is the copy of a user's file, or a list of such.
    File(&'a dyn Display),
}

impl Display for Maker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Maker::Task(label) => label.fmt(f),
            Maker::File(file) => file.fmt(f),
        }
    }
}

/// Objects that are remembered.
const LARGEST_MAX: usize = 10;

/// An object that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Large {
    pub(crate) name: ObjectName,
    pub(crate) length: u64,
    /// The task that made it, or the user's file that it is a copy of.
    pub(crate) maker: String,
}

/// The largest objects so far, those of equal length in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Largest(Mutex<Vec<Large>>);

impl Largest {
    /// An object was made. One that is recomputed takes its own place.
    pub(crate) fn note(&self, maker: &dyn Display, object: &Object) {
        let (name, length) = (object.name, object.length);
        let mut all = self.locked();
        all.retain(|one| one.name != name);
        let place = all.partition_point(|one| one.length >= length);
        if place == LARGEST_MAX {
            return;
        }
        all.truncate(LARGEST_MAX - 1);
        let maker = maker.to_string();
        all.insert(
            place,
            Large {
                name,
                length,
                maker,
            },
        );
    }

    /// The largest objects so far, the largest first.
    pub(crate) fn all(&self) -> Vec<Large> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Large>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(lengths: &[u64]) -> Vec<(u64, String)> {
        let largest = Largest::default();
        for (number, length) in lengths.iter().enumerate() {
            let object = Object {
                name: ObjectName(number as u128 % 100),
                length: *length,
                digest: None,
            };
            largest.note(&number, &object);
        }
        let all = largest.all().into_iter();
        all.map(|one| (one.length, one.maker)).collect()
    }

    #[test]
    fn largest_come_first_and_the_number_is_bounded() {
        let lengths: Vec<u64> = (0..100).map(|number| number % 50).collect();
        let all = noted(&lengths);
        assert_eq!(all.len(), LARGEST_MAX);
        assert_eq!(all[0], (49, "49".to_string()));
        assert_eq!(all[1], (49, "99".to_string()));
        assert_eq!(all[9], (45, "95".to_string()));
    }

    #[test]
    fn object_that_is_recomputed_is_there_once() {
        let mut lengths = vec![0; 101];
        (lengths[0], lengths[100]) = (7, 8);
        assert_eq!(noted(&lengths)[0], (8, "100".to_string()));
        assert_eq!(noted(&lengths)[1].0, 0);
    }
}
