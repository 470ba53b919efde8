//! How much the bytes of a task's inputs count when it is decided where the task runs.
//!
//! A byte that need not be moved, or decoded again, counts once, unless the program has said
//! otherwise for that input. It does not know where any bytes are. Read next: `task`.

use std::sync::LazyLock;

use crate::limits::WEIGHT_PERCENT_MAX;
use crate::name::Name;
use crate::rare::Usual;

/// The usual weight of an input, in percent.
const USUAL_PERCENT: u32 = 100;

/// The locality weights of the inputs of a task, as its program gives them.
#[derive(Clone, PartialEq, Eq, Debug, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct Weights {
    /// Index and weight in percent of inputs with another than the usual one, by index.
    unusual: Vec<(u32, u32)>,
}

/// Most tasks have no such weights.
impl Usual for Weights {
    fn usual() -> &'static Weights {
        static NONE: LazyLock<Weights> = LazyLock::new(Weights::default);
        &NONE
    }
}

impl Weights {
    /// Of inputs in order, each with its weight in percent, if one is given: at most
    /// [`WEIGHT_PERCENT_MAX`].
    pub fn new(given: impl IntoIterator<Item = Option<u32>>) -> Weights {
        let bounded = |(index, percent): (u32, Option<u32>)| {
            let percent = percent.unwrap_or(USUAL_PERCENT).min(WEIGHT_PERCENT_MAX);
            (index, percent)
        };
        let all = (0..).zip(given).map(bounded);
        let unusual = all.filter(|(_, percent)| *percent != USUAL_PERCENT);
        Weights {
            unusual: unusual.collect(),
        }
    }

    /// The weight of an input, in percent.
    pub fn percent_of(&self, input: u32) -> u32 {
        let found = self
            .unusual
            .binary_search_by_key(&input, |(index, _)| *index);
        found.map_or(USUAL_PERCENT, |place| self.unusual[place].1)
    }
}

/// An object that a task names, with the weight that it has there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
pub struct Near {
    /// The object.
    pub object: Name,
    /// Its weight in percent.
    pub percent: u32,
}

impl From<Name> for Near {
    /// With the usual weight.
    fn from(object: Name) -> Near {
        Near {
            object,
            percent: USUAL_PERCENT,
        }
    }
}

/// What so many bytes count.
pub fn weigh(bytes: u64, percent: u32) -> u64 {
    let weighed = u128::from(bytes) * u128::from(percent) / u128::from(USUAL_PERCENT);
    weighed.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_inputs_that_say_nothing_are_the_usual_one() {
        let weights = Weights::new([None, Some(0), Some(100), Some(u32::MAX)]);
        let percents = [0, 1, 2, 3, 4].map(|input| weights.percent_of(input));
        assert_eq!(percents, [100, 0, 100, WEIGHT_PERCENT_MAX, 100]);
        assert_eq!(Weights::new([None, Some(100)]), Weights::default());
    }

    #[test]
    fn weighed_bytes_saturate() {
        let cases = [(7, 100, 7), (7, 0, 0), (10, 250, 25), (3, 50, 1)];
        for (bytes, percent, weighed) in cases {
            assert_eq!(weigh(bytes, percent), weighed);
        }
        assert_eq!(weigh(u64::MAX, 200), u64::MAX);
    }
}
