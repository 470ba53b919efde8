//! The ordered stream and the acts of its strands.
//!
//! The order, exactly: the output of a strand is its events in program order, where a write gives
//! its bytes, and a spawn gives the child's whole output at that point. A tail-spawned task
//! continues the same strand. Acts of different strands may arrive in any order; those of one
//! strand arrive in its program order.
//!
//! This file only lays pieces in their places. It does not know when bytes go out (`frontier`) or
//! how memory is bounded (`spill`).

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use crate::error::OrderedError;
use crate::history::{History, HistoryError};
use crate::piece::{Extent, Piece, Sink, StrandKey};
use crate::spill::Spilled;
use crate::strand::{Body, Item, NOWHERE, StrandEnd, StrandIndex, Strands};

/// What the frontier does at the end of a discarded strand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It stops there for good: the output of this root is a prefix. For a strand that failed,
    /// was cancelled or never ran.
    Stop,
    /// It passes on. For a lazy strand, whose output has no place here.
    Skip,
}

/// What the machine holds at an instant, and what it has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Gauges {
    /// Strands that have a place.
    pub strands: usize,
    /// Bytes in memory that are not released.
    pub held_bytes: u64,
    /// Bytes in extents that are not released.
    pub extent_bytes: u64,
    /// Bytes released so far.
    pub released_bytes: u64,
    /// Steps of the frontier so far: chunks, strands entered and strands left.
    pub steps: u64,
}

/// The output of all strands of some roots, one root after another in order of opening.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct OrderedStream {
    pub(crate) strands: Strands,
    pub(crate) roots: VecDeque<StrandIndex>,
    /// The strand at the serial frontier.
    pub(crate) at: StrandIndex,
    pub(crate) root: Option<StrandKey>,
    pub(crate) spilled: FxHashMap<u64, Spilled>,
    pub(crate) tickets: u64,
    pub(crate) dropped: Vec<Extent>,
    pub(crate) stopped: Option<StrandKey>,
    pub(crate) gauges: Gauges,
    /// Bytes released so far, by the number of the sink.
    pub(crate) released: Vec<u64>,
}

impl Default for OrderedStream {
    fn default() -> OrderedStream {
        OrderedStream::new()
    }
}

impl OrderedStream {
    /// An empty stream.
    pub fn new() -> OrderedStream {
        OrderedStream {
            strands: Strands::default(),
            roots: VecDeque::new(),
            at: NOWHERE,
            root: None,
            spilled: FxHashMap::default(),
            tickets: 0,
            dropped: Vec::new(),
            stopped: None,
            gauges: Gauges::default(),
            released: Vec::new(),
        }
    }

    /// Opens a root; its output follows that of all roots opened before.
    pub fn open_root(&mut self, root: StrandKey) -> Result<(), OrderedError> {
        if self.strands.find(root).is_some() {
            return Err(OrderedError::AlreadyKnown { strand: root });
        }
        let place = self.strands.insert(root, NOWHERE);
        self.roots.push_back(place);
        Ok(())
    }

    /// The child's whole output belongs at this point of the parent's. In a replay the child is
    /// matched with the one spawned before and keeps its output.
    pub fn spawn(&mut self, parent: StrandKey, child: StrandKey) -> Result<(), OrderedError> {
        let place = self.open_place(parent)?;
        let known = self.strands.find(child);
        if known.is_some_and(|known| self.strands[known].up != place) {
            return Err(OrderedError::AlreadyKnown { strand: child });
        }
        if self.take_point(place, child.0)? {
            return Ok(());
        }
        if known.is_some() {
            return Err(OrderedError::AlreadyKnown { strand: child });
        }
        let child = self.strands.insert(child, place);
        self.strands[place].body().push_child(child);
        Ok(())
    }

    /// The strand has done so many actions; what it writes or spawns next belongs there. A spawn is
    /// an action itself.
    pub fn reach(&mut self, strand: StrandKey, actions: u64) -> Result<(), OrderedError> {
        let place = self.open_place(strand)?;
        self.strands[place].body().reach(actions);
        Ok(())
    }

    /// The strand writes to [`Sink::OUTPUT`], as [`write_to`](Self::write_to) does.
    pub fn write(
        &mut self,
        strand: StrandKey,
        piece: impl Into<Piece>,
    ) -> Result<(), OrderedError> {
        self.write_to(strand, Sink::OUTPUT, piece)
    }

    /// The strand writes to a sink. In a replay, what it wrote before is compared and not stored
    /// again, and it must go to the same sinks in the same order.
    pub fn write_to(
        &mut self,
        strand: StrandKey,
        sink: Sink,
        piece: impl Into<Piece>,
    ) -> Result<(), OrderedError> {
        let place = self.open_place(strand)?;
        let piece = piece.into();
        if piece.length() == 0 {
            return Ok(());
        }
        let body = self.strands[place].body();
        let known = body
            .history()
            .take_piece(sink, &piece)
            .map_err(|misfit| refusal(strand, misfit))?;
        if known == piece.length() {
            return Ok(());
        }
        let rest = piece.after(known);
        match &rest {
            Piece::Bytes(bytes) => self.gauges.held_bytes += bytes.len() as u64,
            Piece::Extent(extent) => self.gauges.extent_bytes += extent.length,
        }
        body.push_piece(sink, rest);
        Ok(())
    }

    /// This strand writes no more. A held one still needs its commit.
    pub fn close(&mut self, strand: StrandKey) -> Result<(), OrderedError> {
        let place = self.open_place(strand)?;
        self.expect_complete(place)?;
        self.strands[place].end(StrandEnd::Closed);
        self.drop_out_if_finished(place);
        Ok(())
    }

    /// The strand is given up: what of it is final stays, what is held and not committed is
    /// dropped with the children spawned there. Acts of those then find no place.
    pub fn discard(&mut self, strand: StrandKey, after: After) -> Result<(), OrderedError> {
        let place = self.open_place(strand)?;
        self.drop_uncommitted(place);
        self.strands[place].end(match after {
            After::Stop => StrandEnd::Stopped,
            After::Skip => StrandEnd::Closed,
        });
        self.drop_out_if_finished(place);
        Ok(())
    }

    /// What the strand writes from here on waits for a commit, and can be rolled back. A strand
    /// that is held already stays as it is.
    pub fn hold(&mut self, strand: StrandKey) -> Result<(), OrderedError> {
        let place = self.open_place(strand)?;
        if self.strands[place].held {
            return Ok(());
        }
        self.commit(strand)?;
        self.strands[place].held = true;
        Ok(())
    }

    /// Everything held so far is final, and nothing more is held.
    pub fn release(&mut self, strand: StrandKey) -> Result<(), OrderedError> {
        self.commit(strand)?;
        if let Some(place) = self.strands.find(strand) {
            self.strands[place].held = false;
        }
        Ok(())
    }

    /// Everything written so far is final; replays begin here. Also for a closed strand.
    pub fn commit(&mut self, strand: StrandKey) -> Result<(), OrderedError> {
        let place = self.place(strand)?;
        self.mark_place(place)?;
        if let Some(body) = &mut self.strands[place].body {
            body.final_until = body.end();
        }
        Ok(())
    }

    /// The held strand's attempt failed: what is not committed is dropped, with the children
    /// spawned there. The next attempt may spawn them again.
    pub fn withdraw(&mut self, strand: StrandKey) -> Result<(), OrderedError> {
        let place = self.place(strand)?;
        if !self.strands[place].held {
            return Err(OrderedError::NotHeld { strand });
        }
        self.drop_uncommitted(place);
        if let Some(history) = self.history(place) {
            history.forget_since_mark();
        }
        self.drop_out_if_finished(place);
        Ok(())
    }

    /// How many actions an open strand had done at the end of its output: those of a replay, too,
    /// which has not come that far.
    pub fn reached(&self, strand: StrandKey) -> u64 {
        let place = self.strands.find(strand);
        let body = place.and_then(|place| self.strands[place].body.as_ref());
        body.map_or(0, |body| body.actions)
    }

    /// The strand's state is saved, or its next task begins: replays will begin here. An endless
    /// strand that is marked now and then needs memory only for what is not released.
    pub fn mark(&mut self, strand: StrandKey) -> Result<(), OrderedError> {
        let place = self.open_place(strand)?;
        self.mark_place(place)
    }

    /// What the machine holds and has done.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            strands: self.strands.len(),
            ..self.gauges
        }
    }

    /// Bytes of all strands in memory that are not released.
    pub fn held_bytes(&self) -> u64 {
        self.gauges.held_bytes
    }

    /// Bytes for this sink that are released.
    pub fn released_bytes_of(&self, sink: Sink) -> u64 {
        self.released.get(sink.0 as usize).copied().unwrap_or(0)
    }

    /// Bytes that are not released, in memory and in extents, by sink; sinks without any are left
    /// out. Work: all strands that have a place.
    pub fn unreleased_bytes(&self) -> BTreeMap<Sink, u64> {
        let mut bytes = BTreeMap::new();
        for body in self
            .strands
            .iter()
            .filter_map(|strand| strand.body.as_ref())
        {
            let mut part = body.part_taken;
            for item in body.items.iter() {
                let (sink, length) = match item {
                    Item::Bytes(held) => (Sink::OUTPUT, held.len() as u64),
                    Item::FileBytes(file) => (file.sink, file.bytes.len() as u64),
                    Item::Extent(extent) => (extent.0, extent.1.length),
                    Item::Spilling(ticket) => {
                        let spilled = &self.spilled[ticket];
                        (spilled.sink, spilled.length)
                    }
                    Item::Child(..) | Item::After(_) => continue,
                };
                *bytes.entry(sink).or_default() += length - std::mem::take(&mut part);
            }
        }
        bytes
    }

    /// Whether this strand is replayed and has not yet repeated all of its output.
    pub fn is_behind(&self, strand: StrandKey) -> bool {
        let body = self
            .strands
            .find(strand)
            .and_then(|place| self.strands[place].body.as_ref());
        body.and_then(|body| body.history.as_ref())
            .is_some_and(|history| history.is_behind())
    }

    /// Whether what this strand writes has a place: it is known and has not ended.
    pub fn has_place(&self, strand: StrandKey) -> bool {
        self.open_place(strand).is_ok()
    }

    /// Whether the frontier has not passed a strand: it has a place, or has ended behind others.
    pub fn knows(&self, strand: StrandKey) -> bool {
        self.strands.find(strand).is_some()
    }

    /// Bytes of this strand alone in memory that are not released; 0 if it has no place.
    pub fn held_by(&self, strand: StrandKey) -> u64 {
        let body = self
            .strands
            .find(strand)
            .and_then(|place| self.strands[place].body.as_ref());
        body.map_or(0, |body| body.held_bytes)
    }

    /// Extents that were dropped before their release since the last call; the caller may recycle
    /// them.
    pub fn take_dropped(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.dropped)
    }

    pub(crate) fn place(&self, strand: StrandKey) -> Result<StrandIndex, OrderedError> {
        self.strands
            .find(strand)
            .ok_or(OrderedError::Unknown { strand })
    }

    pub(crate) fn open_place(&self, strand: StrandKey) -> Result<StrandIndex, OrderedError> {
        let place = self.place(strand)?;
        match self.strands[place].ending {
            StrandEnd::Open => Ok(place),
            StrandEnd::Closed | StrandEnd::Stopped => Err(OrderedError::Closed { strand }),
        }
    }

    pub(crate) fn history(&mut self, place: StrandIndex) -> Option<&mut History> {
        self.strands[place].body.as_mut()?.history.as_deref_mut()
    }

    fn take_point(&mut self, place: StrandIndex, key: u64) -> Result<bool, OrderedError> {
        let strand = &mut self.strands[place];
        let key_of_strand = strand.key;
        strand
            .body()
            .history()
            .take_point(key)
            .map_err(|misfit| refusal(key_of_strand, misfit))
    }

    fn expect_complete(&mut self, place: StrandIndex) -> Result<(), OrderedError> {
        let strand = self.strands[place].key;
        match self.history(place) {
            Some(history) => history
                .expect_complete()
                .map_err(|misfit| refusal(strand, misfit)),
            None => Ok(()),
        }
    }

    fn mark_place(&mut self, place: StrandIndex) -> Result<(), OrderedError> {
        self.expect_complete(place)?;
        if let Some(history) = self.history(place) {
            history.mark();
        }
        if let Some(body) = &mut self.strands[place].body {
            body.marked_until = body.end();
            body.passed.fix(body.released_actions);
        }
        Ok(())
    }

    fn drop_uncommitted(&mut self, place: StrandIndex) {
        let strand = &mut self.strands[place];
        let Some(body) = strand.body.as_mut().filter(|_| strand.held) else {
            return;
        };
        let kept = body.final_until.saturating_sub(body.first) as usize;
        let items = body.truncate(kept);
        for item in items {
            self.drop_item(item);
        }
    }

    /// Drops an item that is not released, and everything beneath it.
    pub(crate) fn drop_item(&mut self, item: Item) {
        match item {
            Item::Bytes(_) | Item::FileBytes(_) => self.gauges.held_bytes -= item.memory(),
            Item::Extent(extent) => {
                self.gauges.extent_bytes -= extent.1.length;
                self.dropped.push(extent.1);
            }
            Item::Child(child, _) => self.drop_beneath(child),
            Item::After(_) => {}
            Item::Spilling(ticket) => {
                self.spilled.remove(&ticket);
            }
        }
    }

    /// Removes a strand and all its descendants, released or not.
    pub(crate) fn drop_beneath(&mut self, top: StrandIndex) {
        let mut places = vec![top];
        while let Some(place) = places.pop() {
            if let Some(body) = self.strands.remove(place) {
                self.drop_body(*body, &mut places);
            }
        }
    }

    fn drop_body(&mut self, body: Body, places: &mut Vec<StrandIndex>) {
        let mut part = body.part_taken;
        for item in body.items.into_entries() {
            let part = std::mem::take(&mut part);
            match item {
                Item::Child(child, _) => places.push(child),
                Item::Bytes(_) | Item::FileBytes(_) => {
                    self.gauges.held_bytes -= item.memory() - part;
                }
                Item::Extent(extent) => {
                    self.gauges.extent_bytes -= extent.1.length - part;
                    self.dropped.push(extent.1.part(part, u64::MAX));
                }
                item @ (Item::After(_) | Item::Spilling(_)) => self.drop_item(item),
            }
        }
    }
}

fn refusal(strand: StrandKey, misfit: HistoryError) -> OrderedError {
    match misfit {
        HistoryError::Mismatch(offset) => OrderedError::Mismatch { strand, offset },
        HistoryError::Diverged => OrderedError::Diverged { strand },
    }
}
