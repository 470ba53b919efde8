//! What ready tasks need: those that come one after the other mostly need the same, of which there
//! is one copy.
//!
//! There may be as many ready tasks as memory has room for. It does not know what is free. Read
//! next: `node`.

use std::sync::Arc;

use ciel_model::{Class, Near, Pairing, Resources};

/// How a task is run, what it takes while it runs, and what suits it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Need {
    pub(crate) class: Class,
    pub(crate) resources: Resources,
    /// Objects that it names: a worker that keeps something made of them suits it best.
    pub(crate) near: Box<[Near]>,
    /// Which direct streams it reads or writes.
    pub(crate) pairing: Pairing,
}

/// The need that came last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs(Option<Arc<Need>>);

impl Needs {
    /// That need; the copy that is there, if the last one was the same.
    pub(crate) fn share(&mut self, need: Need) -> Arc<Need> {
        match &self.0 {
            Some(last) if **last == need => last.clone(),
            _ => self.0.insert(Arc::new(need)).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_needs_in_a_row_are_one_copy() {
        let mut needs = Needs::default();
        let mut share = |class| {
            needs.share(Need {
                class,
                resources: Resources::default(),
                near: Box::default(),
                pairing: Pairing::default(),
            })
        };
        let first = share(Class::Process);
        assert!(Arc::ptr_eq(&first, &share(Class::Process)));
        assert_eq!(share(Class::Coordination).class, Class::Coordination);
        assert_eq!(share(Class::Process), first);
    }
}
