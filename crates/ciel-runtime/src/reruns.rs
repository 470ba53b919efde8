//! Why tasks ran although results of earlier runs were looked up: counted for the end of the run.
//!
//! It does not know single tasks. Read next: `ciel_model::RerunReason`.

use std::collections::BTreeMap;

use ciel_model::RerunReason;

/// Kinds of reasons that are counted apart.
const KINDS_MAX: usize = 1_000;

/// How often there was each reason, by function.
#[derive(Debug, Default)]
pub(crate) struct Reruns(BTreeMap<String, u64>);

impl Reruns {
    /// A task of this function ran.
    pub(crate) fn add(&mut self, what: &str, reason: &RerunReason) {
        let words = format!("{what}: {reason}");
        if self.0.len() < KINDS_MAX || self.0.contains_key(&words) {
            *self.0.entry(words).or_default() += 1;
        }
    }

    /// All of them, the most frequent first, else in the order of their words.
    pub(crate) fn all(&self) -> Vec<(String, u64)> {
        let mut all: Vec<_> = self
            .0
            .iter()
            .map(|(words, n)| (words.clone(), *n))
            .collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_frequent_reason_comes_first() {
        let mut reruns = Reruns::default();
        reruns.add("sort", &RerunReason::New);
        reruns.add("wc", &RerunReason::Evicted);
        reruns.add("wc", &RerunReason::Evicted);
        let expected = [("wc: evicted".to_string(), 2), ("sort: new".to_string(), 1)];
        assert_eq!(reruns.all(), expected);
    }
}
