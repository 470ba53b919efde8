//! The references of a task as the oracle keeps them: by number, and without those it has released.
//!
//! It does not know what is behind a reference. Read next: `oracle`.

/// The references of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locals(Vec<Option<usize>>);

impl Locals {
    pub(crate) fn of(inputs: &[usize]) -> Locals {
        Locals(inputs.iter().copied().map(Some).collect())
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied().flatten()
    }

    /// What is behind that reference.
    pub(crate) fn get(&self, local: usize) -> Option<usize> {
        self.0.get(local).copied().flatten()
    }

    /// What is behind those references that the task has.
    pub(crate) fn pick(&self, which: &[usize]) -> Vec<usize> {
        which.iter().filter_map(|local| self.get(*local)).collect()
    }

    pub(crate) fn extend(&mut self, objects: impl IntoIterator<Item = usize>) {
        self.0.extend(objects.into_iter().map(Some));
    }

    /// The task can name these no more, except for `kept` ones.
    pub(crate) fn release(&mut self, which: &[usize], kept: &[usize]) {
        for local in which.iter().filter(|local| !kept.contains(local)) {
            if let Some(released) = self.0.get_mut(*local) {
                *released = None;
            }
        }
    }
}
