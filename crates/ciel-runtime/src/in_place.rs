//! How many tasks of each function ran in the strand that spawned them, as calls.
//!
//! Of those the graph does not know. The counts are those of this process: a resumed run counts
//! what runs in it. Read next: `scripts` and `workers`, which report them.

use std::sync::Arc;

use ciel_graph::Counts;
use ciel_model::limits;
use ciel_view::records::InPlaceCount;
use rustc_hash::FxHashMap;

/// What functions are counted as that come after too many others.
const OTHERS: &str = "(other functions)";

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct InPlace {
    functions: FxHashMap<Arc<str>, u64>,
    all: u64,
}

impl InPlace {
    /// So many tasks of a function have ended.
    pub(crate) fn add(&mut self, what: Arc<str>, count: u64) {
        self.all = self.all.saturating_add(count);
        let is_known = self.functions.contains_key(&what);
        let what = match is_known || self.functions.len() < limits::FUNCTIONS_COUNTED_MAX {
            true => what,
            false => OTHERS.into(),
        };
        let counted = self.functions.entry(what).or_default();
        *counted = counted.saturating_add(count);
    }

    /// The counts of all tasks, if `graph` are those of the others.
    pub(crate) fn with(&self, graph: Counts) -> Counts {
        Counts {
            spawned: graph.spawned + self.all,
            finished: graph.finished + self.all,
            ..graph
        }
    }

    /// Each function.
    pub(crate) fn functions(&self) -> Vec<InPlaceCount> {
        let functions = self.functions.iter();
        functions
            .map(|(what, count)| (what.clone(), *count))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_functions_are_counted_together() {
        let mut counts = InPlace::default();
        for number in 0..limits::FUNCTIONS_COUNTED_MAX + 3 {
            counts.add(number.to_string().into(), 2);
        }
        counts.add("0".into(), 1);
        let functions = counts.functions();
        let of = |what: &str| {
            functions
                .iter()
                .find(|one| &*one.0 == what)
                .map(|one| one.1)
        };
        assert_eq!((of("0"), of(OTHERS)), (Some(3), Some(6)));
        let all = counts.with(Counts::default());
        let expected = 2 * (limits::FUNCTIONS_COUNTED_MAX as u64 + 3) + 1;
        assert_eq!((all.spawned, all.finished), (expected, expected));
    }
}
