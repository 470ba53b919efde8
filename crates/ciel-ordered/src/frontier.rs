//! The serial frontier: how bytes are released.
//!
//! The frontier is at one strand. The strands that it descended through form a path of links (`up`,
//! `down`); a strand that has nothing left drops out of that path, so a chain in which each strand
//! is the last event of the one before is walked in constant memory. Each step is constant work:
//! release a piece, enter a child, leave a strand. It does not know who writes. Read next:
//! `strand`.

use crate::piece::{Chunk, Piece, Sink, StrandKey};
use crate::strand::{Item, NOWHERE, StrandEnd, StrandIndex};
use crate::stream::OrderedStream;

/// What the frontier finds in front of it.
enum Front {
    Piece,
    Child(StrandIndex),
    After,
    Waiting,
    Finished,
    Stopped,
}

impl OrderedStream {
    /// The next bytes in serial order, at most `limit_bytes` (at least 1) of them; none when the
    /// frontier waits or all roots are done. Amortised constant work.
    pub fn take_ready(&mut self, limit_bytes: u64) -> Option<Chunk> {
        self.advance()
            .then(|| self.release_piece(limit_bytes.max(1)))
    }

    /// Moves the frontier over whatever has no bytes, as far as it can go; whether
    /// [`take_ready`](Self::take_ready) would give bytes. Amortised constant work.
    pub fn advance(&mut self) -> bool {
        while self.begin_root().is_some() {
            match self.front() {
                Front::Piece => return true,
                Front::Child(child) => self.enter(child),
                Front::After => self.pass_item(),
                Front::Waiting => return false,
                Front::Finished => self.leave(),
                Front::Stopped => self.stop(),
            }
        }
        false
    }

    /// The strand at which the frontier was after the last [`advance`](Self::advance); none when
    /// all roots are done.
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

    /// A strand that ended while the frontier is inside its last child leaves the path.
    pub(crate) fn drop_out_if_finished(&mut self, place: StrandIndex) {
        let strand = &self.strands[place];
        if !strand.is_finished() || strand.down == NOWHERE {
            return;
        }
        let (up, down) = (strand.up, strand.down);
        self.strands[down].up = up;
        if up != NOWHERE {
            self.strands[up].down = down;
        }
        self.drop_beneath(place);
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
        match &body.items[0] {
            Item::Bytes(_) | Item::FileBytes(_) | Item::Extent(_) => Front::Piece,
            Item::Child(child, _) => Front::Child(*child),
            Item::After(_) => Front::After,
            Item::Spilling(_) => Front::Waiting,
        }
    }

    fn chunk(&mut self, sink: Sink, piece: Piece) -> Chunk {
        self.gauges.steps += 1;
        self.gauges.released_bytes += piece.length();
        let number = sink.0 as usize;
        if self.released.len() <= number {
            self.released.resize(number + 1, 0);
        }
        self.released[number] += piece.length();
        let root = self.root.expect("the frontier stands in a root");
        Chunk {
            root,
            strand: self.strands[self.at].key,
            sink,
            piece,
        }
    }

    fn release_piece(&mut self, limit: u64) -> Chunk {
        let body = self.strands[self.at].body();
        let start = body.part_taken;
        let (sink, piece, whole) = match &mut body.items[0] {
            Item::Extent(extent) => {
                let (sink, extent) = **extent;
                let part = extent.part(start, limit);
                self.gauges.extent_bytes -= part.length;
                let whole = start + part.length == extent.length;
                (sink, Piece::Extent(part), whole)
            }
            item => {
                let (sink, bytes) = item.bytes_mut().expect("the front was a piece");
                let end = start.saturating_add(limit).min(bytes.len() as u64);
                let whole = end == bytes.len() as u64;
                let piece = match start == 0 && whole {
                    true => std::mem::take(bytes),
                    false => bytes[start as usize..end as usize].to_vec(),
                };
                body.held_bytes -= piece.len() as u64;
                self.gauges.held_bytes -= piece.len() as u64;
                (sink, Piece::Bytes(piece), whole)
            }
        };
        body.part_taken = start + piece.length();
        body.passed.fix(body.released_actions);
        if whole {
            self.pass_item();
        }
        self.chunk(sink, piece)
    }

    /// The next item is released.
    fn pass_item(&mut self) {
        self.strands[self.at].body().pass_front();
    }

    fn enter(&mut self, child: StrandIndex) {
        self.gauges.steps += 1;
        let parent = self.at;
        self.pass_item();
        self.strands[parent].body().passed.released_bytes = self.gauges.released_bytes;
        self.strands[parent].down = child;
        self.strands[child].up = parent;
        self.at = child;
        self.drop_out_if_finished(parent);
    }

    fn leave(&mut self) {
        self.gauges.steps += 1;
        let (finished, up) = (self.at, self.strands[self.at].up);
        self.drop_beneath(finished);
        self.at = up;
        if up != NOWHERE {
            self.fix_if_written(up);
            self.strands[up].down = NOWHERE;
        }
    }

    /// The output of this root ends here; later output is dropped.
    fn stop(&mut self) {
        self.stopped = Some(self.strands[self.at].key);
        while self.at != NOWHERE {
            let (place, up) = (self.at, self.strands[self.at].up);
            self.drop_beneath(place);
            self.at = up;
        }
    }
}
