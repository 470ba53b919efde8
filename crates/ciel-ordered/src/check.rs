//! The invariants of the stream, each checked by itself. For tests and the simulator: the work
//! grows with everything held.
//!
//! It changes nothing. Read next: `strand`, `frontier`.

use crate::strand::{Item, NOWHERE, Strand};
use crate::stream::OrderedStream;

impl OrderedStream {
    /// Checks every invariant.
    ///
    /// # Panics
    /// If one does not hold; the message names the strand.
    pub fn check_all(&self) {
        self.check_counters();
        self.check_path();
        self.strands
            .iter()
            .for_each(|strand| self.check_strand(strand));
    }

    /// The counters say what the strands hold.
    fn check_counters(&self) {
        let (mut held, mut extents, mut spilling) = (0, 0, 0);
        for body in self
            .strands
            .iter()
            .filter_map(|strand| strand.body.as_ref())
        {
            held += body.held_bytes;
            for (index, item) in body.items.iter().enumerate() {
                match item {
                    Item::Extent(extent) if index == 0 => {
                        extents += extent.1.length - body.part_taken;
                    }
                    Item::Extent(extent) => extents += extent.1.length,
                    Item::Spilling(_) => spilling += 1,
                    Item::Bytes(_) | Item::FileBytes(_) | Item::Child(..) | Item::After(_) => {}
                }
            }
        }
        assert_eq!(self.gauges.held_bytes, held, "held bytes are counted");
        assert_eq!(
            self.gauges.extent_bytes, extents,
            "extent bytes are counted"
        );
        assert_eq!(self.spilled.len(), spilling, "each ticket has its piece");
    }

    /// The frontier's path is linked both ways and holds nothing that is finished.
    fn check_path(&self) {
        let (mut below, mut place) = (NOWHERE, self.at);
        while place != NOWHERE {
            let strand = &self.strands[place];
            assert_eq!(strand.down, below, "{} leads to the frontier", strand.key);
            let is_idle = below != NOWHERE && strand.is_finished();
            assert!(!is_idle, "{} should have left the path", strand.key);
            (below, place) = (place, strand.up);
        }
    }

    /// A strand's own books: its bytes, its children, and a key that finds it.
    fn check_strand(&self, strand: &Strand) {
        let key = strand.key;
        let place = self
            .strands
            .find(key)
            .expect("a listed strand is found by its key");
        let Some(body) = &strand.body else { return };
        let memory: u64 = body.items.iter().map(Item::memory).sum();
        let part = match body.items.front() {
            Some(Item::Bytes(_) | Item::FileBytes(_)) => body.part_taken,
            _ => 0,
        };
        assert_eq!(body.held_bytes, memory - part, "{key} counts its bytes");
        let passed = body.passed.is_consistent(body.released_actions);
        assert!(
            passed,
            "{key} knows what can be withdrawn: {:?}",
            body.passed
        );
        for item in body.items.iter() {
            if let Item::Child(child, _) = item {
                assert_eq!(self.strands[*child].up, place, "a child of {key} knows it");
            }
        }
    }
}
