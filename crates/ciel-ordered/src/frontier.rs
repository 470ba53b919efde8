//! The serial frontier: how bytes come out.
//!
//! The frontier stands at one strand. The strands it came through form a path of links (`up`,
//! `down`); a strand that has nothing left drops out of that path, so a chain in which each strand
//! is the last event of the one before is walked in constant memory. Each step is constant work:
//! release a piece, enter a child, leave a strand. It does not know who writes. Read next:
//! `strand`.

use crate::limits::RETAINED_BYTES_MAX;
use crate::piece::{Chunk, Piece, StrandKey};
use crate::segment::Segment;
use crate::strand::{Item, NOWHERE, StrandEnd, StrandIndex};
use crate::stream::OrderedStream;

/// What the frontier finds in front of it.
enum Front {
    Piece,
    Child(StrandIndex),
    Segment(Segment),
    After,
    Waiting,
    Finished,
    Stopped,
}

impl OrderedStream {
    /// The next bytes in serial order, at most `limit_bytes` (at least 1) of them; none when the
    /// frontier waits or all roots are done. Amortised constant work.
    pub fn take_ready(&mut self, limit_bytes: u64) -> Option<Chunk> {
        let limit = limit_bytes.max(1);
        loop {
            self.begin_root()?;
            if let Some(piece) = self.walk.take(limit) {
                return Some(self.chunk(piece, true));
            }
            match self.front() {
                Front::Piece => return Some(self.release_piece(limit)),
                Front::Child(child) => self.enter(child),
                Front::Segment(segment) => {
                    self.pass_item();
                    self.walk.begin(segment);
                }
                Front::After => self.pass_item(),
                Front::Waiting => return None,
                Front::Finished => self.leave(),
                Front::Stopped => self.stop(),
            }
        }
    }

    /// The strand at which the frontier stood after the last [`take_ready`](Self::take_ready);
    /// none when all roots are done.
    pub fn frontier(&self) -> Option<StrandKey> {
        let place = match self.at {
            NOWHERE => *self.roots.front()?,
            place => place,
        };
        Some(self.strands[place].key)
    }

    /// The discarded strand at which the output of a root ended last, if one did.
    pub fn stopped_at(&self) -> Option<StrandKey> {
        self.stopped
    }

    /// A strand that ended while the frontier is inside its last child leaves the path. A
    /// retained one stays, for it still lists that child.
    pub(crate) fn drop_out_if_finished(&mut self, place: StrandIndex) {
        let strand = &self.strands[place];
        if !strand.is_finished() || strand.down == NOWHERE || strand.is_retained() {
            return;
        }
        let (up, down) = (strand.up, strand.down);
        self.strands[down].up = up;
        if up != NOWHERE {
            self.strands[up].down = down;
        }
        self.retire(place);
    }

    fn begin_root(&mut self) -> Option<()> {
        if self.at == NOWHERE {
            self.at = self.roots.pop_front()?;
            self.root = Some(self.strands[self.at].key);
        }
        Some(())
    }

    fn front(&self) -> Front {
        let strand = &self.strands[self.at];
        if !strand.may_release() {
            return match strand.ending {
                _ if !strand.is_exhausted() => Front::Waiting,
                StrandEnd::Open => Front::Waiting,
                StrandEnd::Closed => Front::Finished,
                StrandEnd::Stopped => Front::Stopped,
            };
        }
        let body = strand
            .body
            .as_ref()
            .expect("a strand with a next item has a body");
        match &body.items[body.taken] {
            Item::Bytes(_) | Item::Extent(_) => Front::Piece,
            Item::Child(child, _) => Front::Child(*child),
            Item::After(_) => Front::After,
            Item::Segment(segment) => Front::Segment(segment.clone()),
            Item::Spilling(_) => Front::Waiting,
        }
    }

    fn chunk(&mut self, piece: Piece, shared: bool) -> Chunk {
        self.gauges.steps += 1;
        self.gauges.released_bytes += piece.length();
        let root = self.root.expect("the frontier stands in a root");
        Chunk {
            root,
            strand: self.strands[self.at].key,
            piece,
            shared,
        }
    }

    fn release_piece(&mut self, limit: u64) -> Chunk {
        let (retained, shared) = (
            self.strands[self.at].is_retained(),
            self.strands[self.at].shared,
        );
        let body = self.strands[self.at].body();
        let (index, start) = (body.taken, body.part_taken);
        let (piece, whole) = match &mut body.items[index] {
            Item::Bytes(bytes) => {
                let end = start.saturating_add(limit).min(bytes.len() as u64);
                let whole = end == bytes.len() as u64;
                let piece = match start == 0 && whole && !retained {
                    true => std::mem::take(bytes),
                    false => bytes[start as usize..end as usize].to_vec(),
                };
                body.held_bytes -= piece.len() as u64;
                self.gauges.held_bytes -= piece.len() as u64;
                (Piece::Bytes(piece), whole)
            }
            Item::Extent(extent) => {
                let part = extent.part(start, limit);
                self.gauges.extent_bytes -= part.length;
                (Piece::Extent(part), start + part.length == extent.length)
            }
            Item::Child(..) | Item::Segment(_) | Item::After(_) | Item::Spilling(_) => {
                unreachable!("the front was a piece")
            }
        };
        body.part_taken = start + piece.length();
        if whole {
            self.pass_item();
        }
        self.chunk(piece, shared)
    }

    /// The next item is released; it is dropped, or kept if the strand is retained.
    fn pass_item(&mut self) {
        let strand = &mut self.strands[self.at];
        let retained = strand.is_retained();
        let body = strand.body();
        body.part_taken = 0;
        body.note_released();
        if !retained {
            body.pop_front();
            return;
        }
        let item = &mut body.items[body.taken];
        body.taken += 1;
        if self.gauges.retained_bytes + item.memory() <= RETAINED_BYTES_MAX {
            self.gauges.retained_bytes += item.memory();
        } else {
            *item = Item::Bytes(Vec::new());
            strand.lost = true;
        }
    }

    fn enter(&mut self, child: StrandIndex) {
        self.gauges.steps += 1;
        let parent = self.at;
        self.pass_item();
        self.strands[parent].down = child;
        self.strands[child].up = parent;
        self.at = child;
        self.drop_out_if_finished(parent);
    }

    fn leave(&mut self) {
        self.gauges.steps += 1;
        let (finished, up) = (self.at, self.strands[self.at].up);
        self.retire(finished);
        self.at = up;
        if up != NOWHERE {
            self.strands[up].down = NOWHERE;
        }
    }

    fn retire(&mut self, place: StrandIndex) {
        let strand = &mut self.strands[place];
        match strand.is_retained() {
            true => strand.passed = true,
            false => self.drop_beneath(place),
        }
    }

    /// The output of this root ends here; what would come after it is dropped.
    fn stop(&mut self) {
        self.stopped = Some(self.strands[self.at].key);
        while self.at != NOWHERE {
            let (place, up) = (self.at, self.strands[self.at].up);
            if up != NOWHERE {
                self.cut(up, place);
            }
            self.drop_beneath(place);
            self.at = up;
        }
    }

    /// A retained strand keeps the child that the frontier entered as its last released item.
    fn cut(&mut self, parent: StrandIndex, child: StrandIndex) {
        let body = self.strands[parent].body();
        let last = body.taken.checked_sub(1);
        if let Some(last) =
            last.filter(|last| matches!(body.items[*last], Item::Child(c, _) if c == child))
        {
            body.items.remove(last);
            body.taken = last;
        }
    }
}
