//! Spilling: output buffered beyond a bound leaves memory.
//!
//! The machine hands out the pieces that will be needed last; the caller writes them to a blob
//! and gives an extent back, or the bytes if it could not. It does not know files. Read next:
//! `limits`.

use crate::error::OrderedError;
use crate::limits::{HELD_BYTES_AFTER_SPILL, HELD_BYTES_MAX, SPILL_PIECE_BYTES_MIN};
use crate::piece::{Extent, Piece, Sink, StrandKey};
use crate::strand::{Item, NOWHERE, StrandIndex};
use crate::stream::OrderedStream;

/// Names a piece that the caller is writing to a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

/// A piece to be written to a blob. The frontier waits before it until the ticket is returned.
#[derive(Debug, PartialEq, Eq)]
pub struct Spill {
    /// To be given back with the extent or the bytes.
    pub ticket: Ticket,
    /// The bytes; they are the caller's now.
    pub bytes: Vec<u8>,
}

/// Where a piece that is being spilled belongs.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) struct Spilled {
    strand: StrandKey,
    number: u64,
    pub(crate) sink: Sink,
    pub(crate) length: u64,
}

impl OrderedStream {
    /// Extents that are not released, in no particular order.
    pub fn extents(&self) -> Vec<Extent> {
        let bodies = self
            .strands
            .iter()
            .filter_map(|strand| strand.body.as_ref());
        let items = bodies.flat_map(|body| body.items.iter());
        let extents = items.filter_map(|item| match item {
            Item::Extent(extent) => Some(extent.1),
            _ => None,
        });
        extents.collect()
    }

    /// Whether bytes that were handed out are still out: neither spilled nor returned.
    pub fn is_spilling(&self) -> bool {
        !self.spilled.is_empty()
    }

    /// Bytes that wait behind the frontier: in memory, in extents, and between the two.
    pub fn waiting_bytes(&self) -> u64 {
        let moving: u64 = self.spilled.values().map(|spilled| spilled.length).sum();
        self.gauges.held_bytes + self.gauges.extent_bytes + moving
    }

    /// Bytes that should be spilled now; 0 while the bound of `limits` is kept.
    pub fn excess_bytes(&self) -> u64 {
        match self.held_bytes() > HELD_BYTES_MAX {
            true => self.held_bytes() - HELD_BYTES_AFTER_SPILL,
            false => 0,
        }
    }

    /// Hands out held pieces, those furthest from the frontier first, until `wanted` bytes are
    /// reached or none is left that is worth it. Work: the strands behind the frontier, at worst.
    pub fn spillable(&mut self, wanted: u64) -> Vec<Spill> {
        let mut spills = Vec::new();
        let mut missing = wanted;
        for top in self.tops_from_the_far_end() {
            let mut places = vec![(top, self.items_of(top))];
            while let Some((place, end)) = places.pop() {
                let child = self.spill_back_to_a_child(place, end, &mut missing, &mut spills);
                if missing == 0 {
                    return spills;
                }
                if let Some((child, index)) = child {
                    places.push((place, index));
                    places.push((child, self.items_of(child)));
                }
            }
        }
        spills
    }

    /// The bytes of a ticket are in this extent now.
    ///
    /// # Panics
    /// If the extent has another length than the bytes had: the blob would be torn.
    pub fn replace(&mut self, ticket: Ticket, extent: Extent) -> Result<(), OrderedError> {
        let spilled = self
            .spilled
            .remove(&ticket.0)
            .ok_or(OrderedError::UnknownTicket)?;
        assert_eq!(
            extent.length, spilled.length,
            "an extent holds exactly the spilled bytes"
        );
        let item = self.spilling_item(spilled);
        *item = Item::of(spilled.sink, Piece::Extent(extent));
        self.gauges.extent_bytes += extent.length;
        Ok(())
    }

    /// The bytes of a ticket could not be written; they stay in memory.
    ///
    /// # Panics
    /// If they are not as many as were handed out.
    pub fn put_back(&mut self, spill: Spill) -> Result<(), OrderedError> {
        let spilled = self
            .spilled
            .remove(&spill.ticket.0)
            .ok_or(OrderedError::UnknownTicket)?;
        assert_eq!(
            spill.bytes.len() as u64,
            spilled.length,
            "the bytes come back whole"
        );
        let item = self.spilling_item(spilled);
        *item = Item::of(spilled.sink, Piece::Bytes(spill.bytes));
        self.gauges.held_bytes += spilled.length;
        let place = self
            .strands
            .find(spilled.strand)
            .expect("its item was just found");
        self.strands[place].body().held_bytes += spilled.length;
        Ok(())
    }

    /// Roots not begun from the last one on, then the path of the frontier from its root down.
    fn tops_from_the_far_end(&self) -> Vec<StrandIndex> {
        let mut path = Vec::new();
        let mut place = self.at;
        while place != NOWHERE {
            path.push(place);
            place = self.strands[place].up;
        }
        self.roots
            .iter()
            .rev()
            .copied()
            .chain(path.into_iter().rev())
            .collect()
    }

    fn items_of(&self, place: StrandIndex) -> usize {
        self.strands[place]
            .body
            .as_ref()
            .map_or(0, |body| body.items.len())
    }

    /// Spills items of one strand backwards from before `end`, as far as the next child; returns
    /// that child and its position.
    fn spill_back_to_a_child(
        &mut self,
        place: StrandIndex,
        end: usize,
        missing: &mut u64,
        spills: &mut Vec<Spill>,
    ) -> Option<(StrandIndex, usize)> {
        for index in (0..end).rev() {
            if *missing == 0 {
                return None;
            }
            let body = self.strands[place].body.as_ref()?;
            if let Item::Child(child, _) = body.items[index] {
                return Some((child, index));
            }
            if let Some(spill) = self.spill_item(place, index) {
                *missing = missing.saturating_sub(spill.bytes.len() as u64);
                spills.push(spill);
            }
        }
        None
    }

    fn spill_item(&mut self, place: StrandIndex, index: usize) -> Option<Spill> {
        let strand = self.strands[place].key;
        let body = self.strands[place].body();
        let part = if index == 0 { body.part_taken } else { 0 };
        let number = body.first + index as u64;
        let (sink, bytes) = body.items[index].bytes_mut()?;
        if bytes.len() - (part as usize) < SPILL_PIECE_BYTES_MIN {
            return None;
        }
        let mut bytes = std::mem::take(bytes);
        bytes.drain(..part as usize);
        let length = bytes.len() as u64;
        let ticket = self.tickets;
        self.tickets += 1;
        body.items[index] = Item::Spilling(ticket);
        body.held_bytes -= length;
        if part > 0 {
            body.part_taken = 0;
        }
        self.gauges.held_bytes -= length;
        self.spilled.insert(
            ticket,
            Spilled {
                strand,
                number,
                sink,
                length,
            },
        );
        Some(Spill {
            ticket: Ticket(ticket),
            bytes,
        })
    }

    fn spilling_item(&mut self, spilled: Spilled) -> &mut Item {
        let place = self
            .strands
            .find(spilled.strand)
            .expect("tickets go with their strands");
        let body = self.strands[place].body();
        &mut body.items[(spilled.number - body.first) as usize]
    }
}
