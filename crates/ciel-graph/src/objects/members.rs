//! A list from which any member can be taken at a constant cost.
//!
//! Most lists have one member, or none, and need no memory of their own. Short ones are looked
//! through. A long one knows where each member stands, and leaves gaps that are closed when there
//! are as many as members. It does not know what its members are. Read next: `objects`, for which
//! tasks wait and aliases follow in their order.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Members up to which a list is looked through.
const SHORT_MAX: usize = 16;

/// A list in the order in which its members came. A member may stored in it several times.
#[derive(Clone, Debug)]
pub(crate) enum Members<T> {
    /// None, or one.
    Few(Option<T>),
    /// More, or as many as are left of them.
    Many(Box<Many<T>>),
}

/// A list with memory of its own.
#[derive(Clone, Debug)]
pub(crate) struct Many<T> {
    /// None where a member was taken.
    row: Vec<Option<T>>,
    gone: usize,
    /// The index of each member of a long list.
    long: Option<Box<FxHashMap<T, Vec<u32>>>>,
}

impl<T> Default for Members<T> {
    fn default() -> Members<T> {
        Members::Few(None)
    }
}

impl<T: Copy + Eq + Hash> Members<T> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Members::Few(one) => usize::from(one.is_some()),
            Members::Many(many) => many.len(),
        }
    }

    pub(crate) fn push(&mut self, member: T) {
        match self {
            Members::Few(one @ None) => *one = Some(member),
            Members::Few(Some(one)) => *self = Members::Many(Many::of(*one, member)),
            Members::Many(many) => many.push(member),
        }
    }

    /// Removes a member.
    pub(crate) fn take(&mut self, member: T) {
        match self {
            Members::Few(one) => *one = one.filter(|one| *one != member),
            Members::Many(many) => many.take(member),
        }
    }

    pub(crate) fn extend(&mut self, members: impl IntoIterator<Item = T>) {
        members.into_iter().for_each(|member| self.push(member));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        let (few, many) = match self {
            Members::Few(one) => (*one, None),
            Members::Many(many) => (None, Some(many)),
        };
        let many = many.into_iter().flat_map(|many| many.row.iter());
        few.into_iter().chain(many.flatten().copied())
    }
}

impl<T: Copy + Eq + Hash> Many<T> {
    fn of(one: T, other: T) -> Box<Many<T>> {
        Box::new(Many {
            row: vec![Some(one), Some(other)],
            gone: 0,
            long: None,
        })
    }

    fn len(&self) -> usize {
        self.row.len() - self.gone
    }

    fn push(&mut self, member: T) {
        let at = self.row.len() as u32;
        self.row.push(Some(member));
        match &mut self.long {
            Some(long) => long.entry(member).or_default().push(at),
            None if self.row.len() > SHORT_MAX => self.close_gaps(),
            None => {}
        }
    }

    fn take(&mut self, member: T) {
        let Some(long) = &mut self.long else {
            return self.row.retain(|other| *other != Some(member));
        };
        for at in long.remove(&member).unwrap_or_default() {
            self.row[at as usize] = None;
            self.gone += 1;
        }
        if self.gone > self.len() {
            self.close_gaps();
        }
    }

    fn close_gaps(&mut self) {
        self.row.retain(Option::is_some);
        self.gone = 0;
        if self.row.len() <= SHORT_MAX {
            self.long = None;
            return;
        }
        let mut long: FxHashMap<T, Vec<u32>> = FxHashMap::default();
        for (at, member) in (0..).zip(self.row.iter().flatten()) {
            long.entry(*member).or_default().push(at);
        }
        self.long = Some(Box::new(long));
    }
}

impl<T: Copy + Eq + Hash> FromIterator<T> for Members<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Members<T> {
        let mut all = Members::default();
        all.extend(members);
        all
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use proptest::prelude::*;

    use super::*;

    thread_local! {
        static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts how often one is compared or hashed.
    #[derive(Clone, Copy, Debug)]
    struct Counted(u32);

    impl PartialEq for Counted {
        fn eq(&self, other: &Counted) -> bool {
            LOOKED_AT.set(LOOKED_AT.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted {}

    impl Hash for Counted {
        fn hash<H: Hasher>(&self, state: &mut H) {
            LOOKED_AT.set(LOOKED_AT.get() + 1);
            self.0.hash(state);
        }
    }

    /// How many members are looked at to fill a list and to take all away, the last one first.
    fn looked_at(count: u32) -> u64 {
        LOOKED_AT.set(0);
        let mut members: Members<Counted> = (0..count).map(Counted).collect();
        (0..count)
            .rev()
            .for_each(|member| members.take(Counted(member)));
        assert_eq!(members.len(), 0);
        LOOKED_AT.get()
    }

    /// To let go of n aliases of one object, or of a first-of wait for it by n tasks, once took n²
    /// steps.
    #[test]
    fn to_take_all_members_looks_at_each_a_few_times() {
        let (thousand, ten_thousand) = (looked_at(1_000), looked_at(10_000));
        assert!(ten_thousand <= 12 * thousand, "{thousand}, {ten_thousand}");
        assert!(ten_thousand <= 100_000, "{ten_thousand}");
    }

    proptest! {
        #[test]
        fn any_pushes_and_takes_agree_with_a_vector(
            steps in prop::collection::vec((any::<bool>(), 0u32..40), 0..200)
        ) {
            let (mut members, mut model) = (Members::default(), Vec::new());
            for (pushes, member) in steps {
                if pushes {
                    members.push(member);
                    model.push(member);
                } else {
                    members.take(member);
                    model.retain(|other| *other != member);
                }
                prop_assert_eq!(members.len(), model.len());
            }
            prop_assert_eq!(members.iter().collect::<Vec<_>>(), model);
        }
    }
}
