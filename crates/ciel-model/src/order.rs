//! The serial order: which of two points of the program the serial program would reach first.
//!
//! An order-maintenance list. Every point in the program whose order matters has a mark; comparing
//! two marks is comparing two integers, inserting one is amortised O(log n) relabelings (Bender,
//! Cole, Demaine, Farach-Colton and Zito, "Two simplified algorithms for maintaining order in a
//! list", 2002). Machines without the list compare [`OrderLabel`]s. It does not know what a mark
//! means. Read next: `ciel-graph`, which keeps two marks a strand, around everything that the
//! strand spawns.

use std::cmp::Ordering;

use crate::segmented::Segmented;

/// A point of the program; valid until it is removed.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Mark(u32);

impl Mark {
    /// A number that no other mark has at the same time, below the largest number of marks that
    /// there were at once.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The position of a mark in its list at one time, for machines without the list.
///
/// Labels that were given out between two relabelings of their range compare as their marks do.
/// Others may be stale: who compares them may choose a later task first, and nothing else.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct OrderLabel {
    /// Compared first.
    pub position: u64,
    /// How often the list had been relabeled by then: of two labels of one mark, the one with the
    /// higher epoch is the newer one.
    pub epoch: u64,
}

const NONE: u32 = u32::MAX;

/// Positions between two marks after a relabeling, at least: each level of a spawn tree halves what
/// is between the marks around it, twice.
const GAP_MIN: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Node {
    tag: u64,
    previous: u32,
    next: u32,
}

/// A list of marks that can be compared in constant time.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct SerialOrder {
    nodes: Segmented<Node>,
    free: u32,
    first: u32,
    last: u32,
    length: usize,
    /// How often a range was relabeled.
    epoch: u64,
    /// Marks whose labels have changed and were not taken yet.
    #[serde(skip)]
    relabeled: Vec<Mark>,
}

impl Default for SerialOrder {
    fn default() -> Self {
        SerialOrder {
            nodes: Segmented::default(),
            free: NONE,
            first: NONE,
            last: NONE,
            length: 0,
            epoch: 0,
            relabeled: Vec::new(),
        }
    }
}

impl SerialOrder {
    /// Number of marks.
    pub fn len(&self) -> usize {
        self.length
    }

    /// The mark after this one, or the first; none at the end.
    pub fn next(&self, mark: Option<Mark>) -> Option<Mark> {
        let next = mark.map_or(self.first, |mark| self.nodes[mark.0 as usize].next);
        (next != NONE).then_some(Mark(next))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The label of a mark, as it is now.
    pub fn label(&self, mark: Mark) -> OrderLabel {
        OrderLabel {
            position: self.nodes[mark.0 as usize].tag,
            epoch: self.epoch,
        }
    }

    /// Takes the marks whose labels have changed since the last time. Some may have been removed.
    pub fn take_relabeled(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.relabeled)
    }

    /// A new mark after all others.
    pub fn push_last(&mut self) -> Mark {
        self.insert(self.last, NONE)
    }

    /// A new mark immediately before `mark`.
    pub fn insert_before(&mut self, mark: Mark) -> Mark {
        self.insert(self.nodes[mark.0 as usize].previous, mark.0)
    }

    /// Removes `mark`, which must not be used afterwards.
    pub fn remove(&mut self, mark: Mark) {
        let node = self.nodes[mark.0 as usize];
        match node.previous {
            NONE => self.first = node.next,
            previous => self.nodes[previous as usize].next = node.next,
        }
        match node.next {
            NONE => self.last = node.previous,
            next => self.nodes[next as usize].previous = node.previous,
        }
        self.nodes[mark.0 as usize].next = self.free;
        self.free = mark.0;
        self.length -= 1;
    }

    /// The serial order of two marks.
    pub fn compare(&self, a: Mark, b: Mark) -> Ordering {
        self.nodes[a.0 as usize]
            .tag
            .cmp(&self.nodes[b.0 as usize].tag)
    }

    /// Whether `a` comes before `b`.
    pub fn precedes(&self, a: Mark, b: Mark) -> bool {
        self.compare(a, b) == Ordering::Less
    }

    fn insert(&mut self, previous: u32, next: u32) -> Mark {
        let tag = loop {
            let low = if previous == NONE {
                0
            } else {
                self.nodes[previous as usize].tag
            };
            let high = if next == NONE {
                u64::MAX
            } else {
                self.nodes[next as usize].tag
            };
            if high - low >= 2 {
                // Inserting always just before the same mark is the common case (a parent and its
                // children), so a new mark takes the lower part of the gap: it lasts longer.
                let gap = high - low;
                let step = if next == NONE {
                    gap / 2
                } else {
                    (gap / 2).clamp(1, 1 << 24)
                };
                break low + step;
            }
            self.relabel_around(if previous == NONE { next } else { previous });
        };
        let node = Node {
            tag,
            previous,
            next,
        };
        let index = self.take_index(node);
        match previous {
            NONE => self.first = index,
            _ => self.nodes[previous as usize].next = index,
        }
        match next {
            NONE => self.last = index,
            _ => self.nodes[next as usize].previous = index,
        }
        self.length += 1;
        Mark(index)
    }

    fn take_index(&mut self, node: Node) -> u32 {
        if self.free == NONE {
            self.nodes.push(node);
            return u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 marks");
        }
        let index = self.free;
        self.free = self.nodes[index as usize].next;
        self.nodes[index as usize] = node;
        index
    }

    /// Spreads the smallest enclosing aligned range of tags that is sparse enough.
    fn relabel_around(&mut self, centre: u32) {
        let tag = self.nodes[centre as usize].tag;
        let (mut left, mut right) = (centre, centre);
        let mut count = 1u64;
        for bits in 1..=64u32 {
            let mask = if bits == 64 {
                u64::MAX
            } else {
                (1u64 << bits) - 1
            };
            let (low, high) = (tag & !mask, tag | mask);
            left = self.widen_left(left, low, &mut count);
            right = self.widen_right(right, high, &mut count);
            if mask / (count + 1) < GAP_MIN {
                continue;
            }
            // Density threshold (1/T)^bits with T = 1.5: room for many inserts until the next time.
            let room = (mask as f64 + 1.0) / 1.5f64.powi(bits as i32);
            if (count as f64) < room {
                return self.spread(left, low, mask, count);
            }
        }
        unreachable!("2^63 marks do not fit in memory");
    }

    fn widen_left(&self, mut left: u32, low: u64, count: &mut u64) -> u32 {
        loop {
            let previous = self.nodes[left as usize].previous;
            if previous == NONE || self.nodes[previous as usize].tag < low {
                return left;
            }
            left = previous;
            *count += 1;
        }
    }

    fn widen_right(&self, mut right: u32, high: u64, count: &mut u64) -> u32 {
        loop {
            let next = self.nodes[right as usize].next;
            if next == NONE || self.nodes[next as usize].tag > high {
                return right;
            }
            right = next;
            *count += 1;
        }
    }

    fn spread(&mut self, left: u32, low: u64, mask: u64, count: u64) {
        let step = mask / (count + 1);
        let mut node = left;
        self.epoch += 1;
        for i in 0..count {
            self.relabeled.push(Mark(node));
            self.nodes[node as usize].tag = low + step * (i + 1);
            node = self.nodes[node as usize].next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_ordered(order: &SerialOrder, marks: &[Mark]) {
        for pair in marks.windows(2) {
            assert!(order.precedes(pair[0], pair[1]));
        }
    }

    #[test]
    fn many_inserts_before_one_mark_stay_ordered() {
        let mut order = SerialOrder::default();
        let end = order.push_last();
        let mut marks: Vec<Mark> = (0..50_000).map(|_| order.insert_before(end)).collect();
        marks.push(end);
        assert_ordered(&order, &marks);
    }

    #[test]
    fn deep_nesting_stays_ordered() {
        let mut order = SerialOrder::default();
        let mut ends = vec![order.push_last()];
        let mut begins = Vec::new();
        for _ in 0..50_000 {
            let parent = *ends.last().expect("one end");
            begins.push(order.insert_before(parent));
            ends.push(order.insert_before(parent));
        }
        begins.extend(ends.iter().rev());
        assert_ordered(&order, &begins);
    }

    /// Keeps labels like a machine that receives changes only.
    fn hear(order: &mut SerialOrder, labels: &mut std::collections::BTreeMap<Mark, OrderLabel>) {
        for mark in order.take_relabeled() {
            let label = order.label(mark);
            let before = labels.insert(mark, label);
            assert!(before.is_none_or(|before| before.epoch < label.epoch));
        }
    }

    #[test]
    fn labels_compare_as_their_marks_once_changes_are_heard() {
        let mut order = SerialOrder::default();
        let mut marks = vec![order.push_last()];
        let mut labels = std::collections::BTreeMap::new();
        for depth in 0..2000 {
            // Each strand spawns one child, and is older than it.
            let end = marks[depth];
            let mark = order.insert_before(end);
            hear(&mut order, &mut labels);
            labels.insert(mark, order.label(mark));
            labels.entry(end).or_insert_with(|| order.label(end));
            marks.push(mark);
        }
        assert!(order.epoch > 10, "the list was relabeled");
        marks.reverse();
        assert_ordered(&order, &marks);
        let is_before = |pair: &[Mark]| labels[&pair[0]] < labels[&pair[1]];
        assert!(marks.windows(2).all(is_before));
    }

    proptest! {
        #[test]
        fn random_inserts_and_removals_agree_with_a_vector(
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4), 1..400)
        ) {
            let mut order = SerialOrder::default();
            let mut model = vec![order.push_last()];
            for (index, what) in steps {
                let at = index.index(model.len());
                match what {
                    0 if model.len() > 1 => order.remove(model.remove(at)),
                    1 => model.push(order.push_last()),
                    _ => model.insert(at, order.insert_before(model[at])),
                }
                prop_assert_eq!(order.len(), model.len());
                for pair in model.windows(2) {
                    prop_assert!(order.precedes(pair[0], pair[1]));
                }
            }
        }
    }
}
