//! The strands in memory: a slab of small entries, and a body for those that wrote or spawned.
//!
//! A strand that never writes costs one entry, one item of its parent and one row of the key
//! index: under 100 bytes. This module keeps the byte counters true; it does not know the order
//! in which anything is released. Read next: `frontier`.

use std::ops::Range;

use ciel_model::{KeyTable, Segmented, SegmentedQueue};

use crate::history::History;
use crate::limits::COALESCED_BYTES_MAX;
use crate::piece::{Extent, Piece, Sink, StrandKey};

/// StrandIndex of a strand in the slab. [`NOWHERE`] means none, to keep the links small.
pub(crate) type StrandIndex = u32;

/// No strand.
pub(crate) const NOWHERE: StrandIndex = u32::MAX;

/// The state of a strand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum StrandEnd {
    /// The strand may still write.
    Open,
    /// The strand writes no more; the frontier passes at its end.
    Closed,
    /// The strand writes no more, and the frontier stops at its end.
    Stopped,
}

/// One strand. `up` is where the frontier goes after it; `down` is the child it has entered.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Strand {
    pub(crate) key: StrandKey,
    pub(crate) body: Option<Box<Body>>,
    pub(crate) up: StrandIndex,
    pub(crate) down: StrandIndex,
    pub(crate) ending: StrandEnd,
    /// Only committed pieces may go out.
    pub(crate) held: bool,
}

/// The items of a strand's output, in order.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Item {
    /// Bytes for [`Sink::OUTPUT`].
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    /// Bytes for another sink.
    FileBytes(Box<FileBytes>),
    Extent(Box<(Sink, Extent)>),
    /// A child, and which action of the strand it is.
    Child(StrandIndex, u64),
    /// What follows was written after so many actions of the strand.
    After(u64),
    /// Bytes that the caller is writing to a blob, under this ticket.
    Spilling(u64),
}

/// Bytes for a sink other than [`Sink::OUTPUT`], which needs less memory.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct FileBytes {
    pub(crate) sink: Sink,
    #[serde(with = "serde_bytes")]
    pub(crate) bytes: Vec<u8>,
}

impl Item {
    /// That piece for that sink.
    pub(crate) fn of(sink: Sink, piece: Piece) -> Item {
        match piece {
            Piece::Bytes(bytes) if sink == Sink::OUTPUT => Item::Bytes(bytes),
            Piece::Bytes(bytes) => Item::FileBytes(Box::new(FileBytes { sink, bytes })),
            Piece::Extent(extent) => Item::Extent(Box::new((sink, extent))),
        }
    }

    /// Bytes in memory, and their sink.
    pub(crate) fn bytes_mut(&mut self) -> Option<(Sink, &mut Vec<u8>)> {
        match self {
            Item::Bytes(bytes) => Some((Sink::OUTPUT, bytes)),
            Item::FileBytes(file) => Some((file.sink, &mut file.bytes)),
            Item::Extent(_) | Item::Child(..) | Item::After(_) | Item::Spilling(_) => None,
        }
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Item::Bytes(bytes) => bytes.len() as u64,
            Item::FileBytes(file) => file.bytes.len() as u64,
            Item::Extent(_) | Item::Child(..) | Item::After(_) | Item::Spilling(_) => 0,
        }
    }

    /// How many actions the strand has done behind this item, if that is another number than in
    /// front of it.
    fn actions_behind(&self) -> Option<u64> {
        match self {
            Item::Child(_, action) => Some(action + 1),
            Item::After(actions) => Some(*actions),
            Item::Bytes(_) | Item::FileBytes(_) | Item::Extent(_) | Item::Spilling(_) => None,
        }
    }
}

/// What the frontier has passed of a strand, as far as nothing was written there: children that
/// can be withdrawn.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Passed {
    /// The first action to which the strand can be rolled back.
    pub(crate) least: u64,
    /// The actions from there on that are children.
    children: Vec<Range<u64>>,
    /// Bytes of the whole stream that were released when the frontier entered the last child.
    pub(crate) released_bytes: u64,
}

impl Passed {
    fn pass_child(&mut self, action: u64) {
        match self.children.last_mut() {
            Some(last) if last.end == action => last.end += 1,
            _ => self.children.push(action..action + 1),
        }
    }

    /// What came before so many actions cannot be undone any more.
    pub(crate) fn fix(&mut self, actions: u64) {
        self.least = actions;
        self.children.clear();
    }

    /// Whether all of it is behind `least` and before so many actions, in order.
    pub(crate) fn is_consistent(&self, actions: u64) -> bool {
        let first = self.children.first().map_or(actions, |first| first.start);
        let last = self.children.last().map_or(self.least, |last| last.end);
        let in_order = self.children.is_sorted_by(|one, next| one.end < next.start);
        self.least <= first && last <= actions && in_order
    }

    /// Forgets the children from action `to` on; returns how many there are.
    pub(crate) fn take_back(&mut self, to: u64) -> u64 {
        let mut count = 0;
        while let Some(last) = self.children.pop_if(|last| last.end > to) {
            count += last.end - last.start.max(to);
            if last.start < to {
                self.children.push(last.start..to);
            }
        }
        count
    }
}

/// The items of a strand that wrote or spawned. Items are numbered from 0 for good; `first` is
/// the number of the one in front.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Body {
    pub(crate) items: SegmentedQueue<Item>,
    pub(crate) first: u64,
    /// Of a held strand, items below this number are committed.
    pub(crate) final_until: u64,
    /// Items below this number are before the last mark.
    pub(crate) marked_until: u64,
    /// Actions that the strand has done at the end of the items.
    pub(crate) actions: u64,
    /// Actions that it has done by now.
    reached: u64,
    /// Actions that it had done at the end of what is released.
    pub(crate) released_actions: u64,
    /// What of that can be undone.
    pub(crate) passed: Passed,
    /// Bytes of the next item that are released.
    pub(crate) part_taken: u64,
    /// Bytes in memory that are not released.
    pub(crate) held_bytes: u64,
    pub(crate) history: Option<Box<History>>,
}

impl Body {
    fn new() -> Body {
        Body {
            items: SegmentedQueue::default(),
            first: 0,
            final_until: 0,
            marked_until: 0,
            actions: 0,
            reached: 0,
            released_actions: 0,
            passed: Passed::default(),
            part_taken: 0,
            held_bytes: 0,
            history: None,
        }
    }

    /// Number of the strand's next item.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.items.is_empty()
    }

    /// The strand has done so many actions; its next output belongs there.
    pub(crate) fn reach(&mut self, actions: u64) {
        self.reached = actions;
    }

    /// The item in front is released and goes.
    pub(crate) fn pass_front(&mut self) {
        let front = self.items.pop_front();
        let actions = front.as_ref().and_then(Item::actions_behind);
        self.released_actions = actions.unwrap_or(self.released_actions);
        if let Some(Item::Child(_, action)) = front {
            self.passed.pass_child(action);
        }
        if self.first < self.marked_until {
            self.passed.fix(self.released_actions);
        }
        self.first += 1;
        self.part_taken = 0;
    }

    pub(crate) fn history(&mut self) -> &mut History {
        self.history.get_or_insert_with(|| Box::new(History::new()))
    }

    /// Adds a piece that is not empty; small writes are joined, but never across a commit.
    pub(crate) fn push_piece(&mut self, sink: Sink, piece: Piece) {
        self.push_reached();
        let may_join = self.end() > self.final_until.max(self.marked_until) && !self.is_exhausted();
        let Piece::Bytes(bytes) = &piece else {
            return self.items.push_back(Item::of(sink, piece));
        };
        self.held_bytes += bytes.len() as u64;
        match self.items.back_mut().and_then(Item::bytes_mut) {
            Some((of, last))
                if may_join && of == sink && last.len() + bytes.len() <= COALESCED_BYTES_MAX =>
            {
                extend_within_bound(last, bytes);
            }
            _ => self.items.push_back(Item::of(sink, piece)),
        }
    }

    /// Adds a child: the next action.
    pub(crate) fn push_child(&mut self, child: StrandIndex) {
        let action = self.reached.max(self.actions);
        self.items.push_back(Item::Child(child, action));
        self.actions = action + 1;
    }

    /// Output from action `to` on that is neither released nor marked is removed.
    pub(crate) fn withdraw(&mut self, to: u64) -> Vec<Item> {
        if to > self.actions {
            return Vec::new();
        }
        let first_open = self.final_until.max(self.marked_until);
        let first_open = first_open.saturating_sub(self.first) as usize;
        let first_open = first_open.max(usize::from(self.part_taken > 0));
        let mut behind = self.actions_before(first_open.min(self.items.len()));
        let mut kept = first_open.min(self.items.len());
        while let Some(item) = self.items.get(kept) {
            let stands_at = match item {
                Item::Child(_, action) => *action,
                item => item.actions_behind().unwrap_or(behind),
            };
            if stands_at >= to {
                break;
            }
            behind = item.actions_behind().unwrap_or(behind);
            kept += 1;
        }
        while kept > first_open && matches!(self.items[kept - 1], Item::After(_)) {
            kept -= 1;
        }
        self.truncate(kept)
    }

    /// Takes the items from index `kept` on away, none of which is released.
    pub(crate) fn truncate(&mut self, kept: usize) -> Vec<Item> {
        let gone = self.items.split_off(kept);
        self.held_bytes -= gone.iter().map(Item::memory).sum::<u64>();
        self.actions = self.actions_before(self.items.len());
        gone
    }

    /// Actions that the strand had done in front of an item.
    pub(crate) fn actions_before(&self, index: usize) -> u64 {
        let mut items = (0..index).rev().map(|index| &self.items[index]);
        let behind = items.find_map(Item::actions_behind);
        behind.unwrap_or(self.released_actions)
    }

    /// Notes which actions are before the next item.
    fn push_reached(&mut self) {
        if self.reached > self.actions {
            self.items.push_back(Item::After(self.reached));
            self.actions = self.reached;
        }
    }

    /// Frees the slack of the growing buffers when the strand writes no more.
    fn shrink(&mut self) {
        self.items.shrink();
        if let Some((_, bytes)) = self.items.back_mut().and_then(Item::bytes_mut) {
            bytes.shrink_to_fit();
        }
    }
}

/// Grows by doubling, but never past the bound of a joined buffer.
fn extend_within_bound(buffer: &mut Vec<u8>, bytes: &[u8]) {
    let needed = buffer.len() + bytes.len();
    if needed > buffer.capacity() {
        let capacity = needed.max((2 * buffer.capacity()).min(COALESCED_BYTES_MAX));
        buffer.reserve_exact(capacity - buffer.len());
    }
    buffer.extend_from_slice(bytes);
}

impl Strand {
    fn new(key: StrandKey, up: StrandIndex) -> Strand {
        Strand {
            key,
            body: None,
            up,
            down: NOWHERE,
            ending: StrandEnd::Open,
            held: false,
        }
    }

    pub(crate) fn body(&mut self) -> &mut Body {
        self.body.get_or_insert_with(|| Box::new(Body::new()))
    }

    /// Nothing that it has now is still to be released.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.body.as_ref().is_none_or(|body| body.is_exhausted())
    }

    /// The frontier has nothing to do here any more.
    pub(crate) fn is_finished(&self) -> bool {
        self.ending == StrandEnd::Closed && self.is_exhausted()
    }

    /// The next item is final.
    pub(crate) fn may_release(&self) -> bool {
        let next_is_final = |body: &Body| !self.held || body.first < body.final_until;
        self.body
            .as_ref()
            .is_some_and(|body| !body.is_exhausted() && next_is_final(body))
    }

    /// The strand writes no more: what only an open strand needs is dropped.
    pub(crate) fn end(&mut self, ending: StrandEnd) {
        self.ending = ending;
        if let Some(body) = &mut self.body {
            body.history = None;
            body.shrink();
            if body.items.is_empty() {
                self.body = None;
            }
        }
    }
}

/// All strands that have a place, by place and by key.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Strands {
    entries: Segmented<Strand>,
    free: Segmented<StrandIndex>,
    places: KeyTable<StrandKey, StrandIndex>,
}

impl Strands {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// All strands that have a place, in the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Strand> {
        self.places.values().map(|place| &self[*place])
    }

    pub(crate) fn find(&self, key: StrandKey) -> Option<StrandIndex> {
        self.places.get(&key).copied()
    }

    /// Adds a strand whose key is not known.
    pub(crate) fn insert(&mut self, key: StrandKey, up: StrandIndex) -> StrandIndex {
        let strand = Strand::new(key, up);
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = strand;
                place
            }
            None => {
                self.entries.push(strand);
                StrandIndex::try_from(self.entries.len() - 1).expect("fewer than 2^32 strands live")
            }
        };
        let before = self.places.insert(key, place);
        assert!(before.is_none() && place != NOWHERE, "{key} has two places");
        place
    }

    /// Takes a strand out; its items are the caller's to account for.
    pub(crate) fn remove(&mut self, place: StrandIndex) -> Option<Box<Body>> {
        let strand = &mut self[place];
        let (key, body) = (strand.key, strand.body.take());
        let known = self.places.remove(&key);
        assert_eq!(known, Some(place), "{key} is not where its key says");
        self.free.push(place);
        body
    }
}

impl std::ops::Index<StrandIndex> for Strands {
    type Output = Strand;

    fn index(&self, place: StrandIndex) -> &Strand {
        &self.entries[place as usize]
    }
}

impl std::ops::IndexMut<StrandIndex> for Strands {
    fn index_mut(&mut self, place: StrandIndex) -> &mut Strand {
        &mut self.entries[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strand_and_item_stay_small() {
        assert!(size_of::<Strand>() <= 32);
        assert!(size_of::<Item>() <= 24);
    }
}
