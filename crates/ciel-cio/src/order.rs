//! The serial order of segments, from commits that come in any order.
//!
//! A segment is what one strand writes: its own bytes, and at the place of each spawn the segment
//! of the child. The flat file is the root's segment with every child put in its place. While
//! strands are open, all up to the first segment that is not whole is known: the *frontier*. Pure.
//! It does not know files. Read next: `recovery`.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::format::{Data, Item, ROOT, Segment};

/// All that is committed.
#[derive(Clone, Debug, Default)]
pub struct Order {
    segments: FxHashMap<Segment, Committed>,
}

#[derive(Clone, Debug, Default)]
struct Committed {
    items: Vec<Item>,
    is_ended: bool,
}

/// Why a commit is refused: its segment has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended(pub Segment);

/// Where the frontier is, and why there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontier {
    /// Everything is committed.
    Complete,
    /// What follows is not committed: this segment has not ended.
    Open(Segment),
    /// This segment stands at two places, which no writer does.
    Repeated(Segment),
}

/// A segment of which something is committed behind the frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// Which one.
    pub segment: Segment,
    /// Its own committed bytes behind the frontier, without those of its children.
    pub bytes: u64,
    /// Whether it has ended.
    pub is_ended: bool,
}

/// The committed segments in serial order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The bytes up to the frontier.
    pub data: Vec<Data>,
    /// Where they end, and why.
    pub frontier: Frontier,
    /// What is committed behind the frontier, by its numbers.
    pub rest: Vec<Unreached>,
}

impl Order {
    /// A segment continues with these items, and ends if they are its last.
    ///
    /// # Errors
    /// If it has ended already.
    pub fn commit(
        &mut self,
        segment: Segment,
        items: &[Item],
        is_ended: bool,
    ) -> Result<(), Ended> {
        let committed = self.segments.entry(segment).or_default();
        if committed.is_ended {
            return Err(Ended(segment));
        }
        committed.items.extend_from_slice(items);
        committed.is_ended = is_ended;
        Ok(())
    }

    /// Whether a segment has ended.
    pub fn has_ended(&self, segment: Segment) -> bool {
        let committed = self.segments.get(&segment);
        committed.is_some_and(|committed| committed.is_ended)
    }

    /// All bytes up to the frontier. It takes time and memory in proportion to the items.
    pub fn walk(&self) -> Walk {
        let mut data = Vec::new();
        let mut reached = FxHashSet::from_iter([ROOT]);
        let mut stack = vec![(ROOT, 0)];
        let frontier = self.follow(&mut stack, &mut data, &mut reached);
        Walk {
            data,
            frontier,
            rest: self.unreached(&stack, &reached),
        }
    }

    /// A stack of its own, as segments may be nested as deep as the program wants.
    fn follow(
        &self,
        stack: &mut Vec<(Segment, usize)>,
        data: &mut Vec<Data>,
        reached: &mut FxHashSet<Segment>,
    ) -> Frontier {
        while let Some((segment, place)) = stack.pop() {
            let Some(committed) = self.segments.get(&segment) else {
                return Frontier::Open(segment);
            };
            match committed.items.get(place) {
                Some(item) => {
                    stack.push((segment, place + 1));
                    match item {
                        Item::Data(piece) => data.push(*piece),
                        Item::Child(child) if !reached.insert(*child) => {
                            return Frontier::Repeated(*child);
                        }
                        Item::Child(child) => stack.push((*child, 0)),
                    }
                }
                None if committed.is_ended => {}
                None => return Frontier::Open(segment),
            }
        }
        Frontier::Complete
    }

    /// Of a segment on the stack, what lies behind its place; of one that is not reached, all.
    fn unreached(
        &self,
        stack: &[(Segment, usize)],
        reached: &FxHashSet<Segment>,
    ) -> Vec<Unreached> {
        let whole = self.segments.keys().filter(|one| !reached.contains(one));
        let places = stack.iter().copied().chain(whole.map(|one| (*one, 0)));
        let unreached = |(segment, place): (Segment, usize)| {
            let committed = self.segments.get(&segment)?;
            let behind = &committed.items[place..];
            (!behind.is_empty() || !reached.contains(&segment)).then(|| Unreached {
                segment,
                bytes: behind.iter().map(Item::bytes).sum(),
                is_ended: committed.is_ended,
            })
        };
        let mut rest: Vec<Unreached> = places.filter_map(unreached).collect();
        rest.sort_unstable_by_key(|one| one.segment);
        rest
    }
}

impl Item {
    /// Bytes of the strand itself.
    fn bytes(&self) -> u64 {
        match self {
            Item::Data(data) => u64::from(data.length),
            Item::Child(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: Segment = Segment(7);
    const OTHER: Segment = Segment(3);

    fn data(offset: u64) -> Data {
        Data {
            offset,
            length: 1,
            checksum: 0,
        }
    }

    #[test]
    fn child_stands_at_its_spawn_whenever_it_commits() {
        let mut order = Order::default();
        let items = [Item::Child(CHILD), Item::Data(data(1))];
        order.commit(CHILD, &[Item::Data(data(2))], true).unwrap();
        assert_eq!(order.walk().frontier, Frontier::Open(ROOT));
        order.commit(ROOT, &items, true).unwrap();
        let walk = order.walk();
        assert_eq!(walk.data, [data(2), data(1)]);
        assert_eq!(walk.frontier, Frontier::Complete);
    }

    #[test]
    fn frontier_waits_for_the_first_open_segment_and_the_rest_is_listed() {
        let mut order = Order::default();
        let items = [1, 4].map(|offset| Item::Data(data(offset)));
        let items = [items[0], Item::Child(CHILD), items[1], Item::Child(OTHER)];
        order.commit(ROOT, &items, true).unwrap();
        order.commit(CHILD, &[Item::Data(data(2))], false).unwrap();
        order.commit(OTHER, &[Item::Data(data(3))], true).unwrap();
        let walk = order.walk();
        assert_eq!(walk.data, [data(1), data(2)]);
        assert_eq!(walk.frontier, Frontier::Open(CHILD));
        let rest = [ROOT, OTHER].map(|segment| Unreached {
            segment,
            bytes: 1,
            is_ended: true,
        });
        assert_eq!(walk.rest, rest);
    }

    #[test]
    fn segment_that_holds_itself_ends_the_walk() {
        let mut order = Order::default();
        order.commit(ROOT, &[Item::Child(ROOT)], true).unwrap();
        assert_eq!(order.walk().frontier, Frontier::Repeated(ROOT));
    }

    #[test]
    fn nesting_of_any_depth_needs_no_stack_of_the_thread() {
        let mut order = Order::default();
        let depth = 200_000;
        for number in 0..depth {
            let child = [Item::Data(data(number)), Item::Child(Segment(number + 1))];
            order.commit(Segment(number), &child, true).unwrap();
        }
        order.commit(Segment(depth), &[], true).unwrap();
        let walk = order.walk();
        assert_eq!(walk.frontier, Frontier::Complete);
        assert_eq!(walk.data.len() as u64, depth);
    }

    #[test]
    fn commit_behind_the_end_is_refused() {
        let mut order = Order::default();
        order.commit(ROOT, &[], true).unwrap();
        assert_eq!(order.commit(ROOT, &[], false), Err(Ended(ROOT)));
    }
}
