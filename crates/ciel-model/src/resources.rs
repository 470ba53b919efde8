//! What a task needs of a machine, and what a machine has.
//!
//! Amounts are whole numbers of a small unit, so that sums are exact: cores in thousandths, memory
//! in bytes, anything else in thousandths.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::words::size;

/// An amount of each resource.
#[derive(Clone, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
pub struct Resources {
    /// Thousandths of a core.
    pub millicores: u32,
    /// Bytes of memory; `None` when not declared.
    pub memory_bytes: Option<u64>,
    /// Others by name, in thousandths.
    pub others: BTreeMap<Arc<str>, u32>,
}

impl Default for Resources {
    /// One core and nothing else.
    fn default() -> Self {
        Resources {
            millicores: 1000,
            memory_bytes: None,
            others: BTreeMap::new(),
        }
    }
}

impl Resources {
    /// What [`awaited`](Self::awaited) calls memory.
    pub const MEMORY: &str = "memory";

    /// Whether `need` fits into what is free here.
    pub fn holds(&self, need: &Resources) -> bool {
        self.lacking(need).is_none()
    }

    /// The first resource that is insufficient for `need`, with the requested and the available
    /// amount, as text.
    pub fn lacking(&self, need: &Resources) -> Option<String> {
        if need.millicores > self.millicores {
            return Some(shortage(
                "cores",
                thousandths(need.millicores),
                thousandths(self.millicores),
            ));
        }
        if let (Some(want), Some(have)) = (need.memory_bytes, self.memory_bytes)
            && want > have
        {
            return Some(shortage("of memory", size(want), size(have)));
        }
        need.others.iter().find_map(|(name, want)| {
            let have = self.others.get(name).copied().unwrap_or(0);
            (*want > have).then(|| shortage(name, thousandths(*want), thousandths(have)))
        })
    }

    /// What `need` waits for when it does not fit into what is free here, in words: `a core`,
    /// `2 cores`, `memory`, or another resource by name.
    pub fn awaited(&self, need: &Resources) -> Option<String> {
        if need.millicores > self.millicores {
            return Some(match need.millicores {
                ..=1000 => "a core".to_string(),
                more => format!("{} cores", thousandths(more)),
            });
        }
        if let (Some(want), Some(have)) = (need.memory_bytes, self.memory_bytes)
            && want > have
        {
            return Some(Resources::MEMORY.to_string());
        }
        let lacks = |(name, want): &(&Arc<str>, &u32)| {
            **want > self.others.get(*name).copied().unwrap_or(0)
        };
        need.others
            .iter()
            .find(lacks)
            .map(|(name, _)| name.to_string())
    }

    /// Takes `need` away; it must fit.
    pub fn take(&mut self, need: &Resources) {
        debug_assert!(self.holds(need));
        self.millicores -= need.millicores;
        if let (Some(want), Some(have)) = (need.memory_bytes, self.memory_bytes.as_mut()) {
            *have -= want;
        }
        for (name, want) in &need.others {
            *self
                .others
                .get_mut(name)
                .expect("taken resources are there") -= want;
        }
    }

    /// Returns what [`Resources::take`] took.
    pub fn give_back(&mut self, need: &Resources) {
        self.millicores += need.millicores;
        if let (Some(want), Some(have)) = (need.memory_bytes, self.memory_bytes.as_mut()) {
            *have += want;
        }
        for (name, want) in &need.others {
            *self
                .others
                .get_mut(name)
                .expect("taken resources are there") += want;
        }
    }
}

fn shortage(name: &str, want: String, have: String) -> String {
    format!("needs {want} {name}, this machine offers {have}")
}

fn thousandths(amount: u32) -> String {
    let text = format!("{}.{:03}", amount / 1000, amount % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Resources {
        let others = [("gpu".into(), 1000)].into_iter().collect();
        Resources {
            millicores: 2000,
            memory_bytes: Some(100),
            others,
        }
    }

    #[test]
    fn what_is_taken_is_given_back() {
        let need = Resources {
            millicores: 1500,
            memory_bytes: Some(60),
            ..machine()
        };
        let mut free = machine();
        free.take(&need);
        assert!(!free.holds(&need));
        free.give_back(&need);
        assert_eq!(free, machine());
    }

    #[test]
    fn shortage_is_told_in_words() {
        let need = Resources {
            millicores: 2500,
            ..Resources::default()
        };
        let told = machine().lacking(&need);
        assert_eq!(
            told.as_deref(),
            Some("needs 2.5 cores, this machine offers 2")
        );
    }

    #[test]
    fn what_is_waited_for_is_told_in_words() {
        let free = Resources {
            millicores: 0,
            memory_bytes: Some(10),
            others: BTreeMap::new(),
        };
        let mut need = Resources::default();
        assert_eq!(free.awaited(&need).as_deref(), Some("a core"));
        need.millicores = 2500;
        assert_eq!(free.awaited(&need).as_deref(), Some("2.5 cores"));
        (need.millicores, need.memory_bytes) = (0, Some(11));
        assert_eq!(free.awaited(&need).as_deref(), Some("memory"));
        need.memory_bytes = None;
        assert_eq!(free.awaited(&need), None);
        need.others = machine().others;
        assert_eq!(free.awaited(&need).as_deref(), Some("gpu"));
    }

    #[test]
    fn undeclared_memory_always_fits() {
        assert!(machine().holds(&Resources::default()));
    }
}
