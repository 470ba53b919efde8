//! The name of the latest child: whoever looks at a spawn before it happens asks for it first.
//!
//! A matter of time alone: names are hashes. Read next: `spawn`.

use std::cell::Cell;

use ciel_model::Name;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChildNames(Cell<Option<Latest>>);

#[derive(Clone, Copy, Debug)]
struct Latest {
    strand: Name,
    action: u64,
    name: Name,
}

impl ChildNames {
    /// The name of what a strand spawns as that action.
    pub(crate) fn of(&self, strand: Name, action: u64) -> Name {
        match self.0.get() {
            Some(latest) if (latest.strand, latest.action) == (strand, action) => latest.name,
            _ => {
                let name = strand.spawn(action);
                self.0.set(Some(Latest {
                    strand,
                    action,
                    name,
                }));
                name
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_child_has_its_own_name_whoever_was_asked_for_before() {
        let names = ChildNames::default();
        for (strand, action) in [(0, 0), (0, 0), (0, 1), (7, 1), (0, 1)] {
            let strand = Name(strand);
            assert_eq!(names.of(strand, action), strand.spawn(action));
        }
    }
}
