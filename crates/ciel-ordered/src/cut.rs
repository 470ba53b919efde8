//! The cut: a strand that is cancelled keeps what the serial frontier can reach, and no more.
//!
//! What is reachable depends on what was recorded only, and not on how far the thread that writes
//! has come: a fold keeps the same bytes. It does not know why a strand is cancelled. Read next:
//! `frontier`.

use crate::error::OrderedError;
use crate::piece::StrandKey;
use crate::strand::{Item, NOWHERE, StrandEnd, StrandIndex};
use crate::stream::OrderedStream;

/// Where the walk of the frontier is: a strand, and the number of its items that it has passed.
#[derive(Clone, Copy)]
pub(crate) struct Stand {
    pub(crate) place: StrandIndex,
    pub(crate) passed: usize,
}

/// Why the walk leaves a strand.
pub(crate) enum Leaving {
    /// The strand has not ended, or its next item is not final.
    Waiting,
    /// It enters this child.
    Into(StrandIndex),
    /// Nothing is left of the strand.
    Finished,
}

impl OrderedStream {
    /// The strand writes no more. Output that the frontier can reach now, released or not, stays;
    /// the rest is dropped with the children spawned there, whose acts then find no place. The
    /// frontier passes at its end.
    pub fn cut(&mut self, strand: StrandKey) -> Result<(), OrderedError> {
        let place = self.open_place(strand)?;
        let kept = self.reachable(place);
        if let Some(body) = &mut self.strands[place].body {
            for item in body.truncate(kept) {
                self.drop_item(item);
            }
        }
        self.strands[place].end(StrandEnd::Closed);
        self.drop_out_if_finished(place);
        Ok(())
    }

    /// The number of items of an open strand that the frontier would pass or enter if all that it
    /// can reach were released now.
    fn reachable(&self, strand: StrandIndex) -> usize {
        let mut kept = 0;
        self.walk_reachable(|stand, _, leaving| {
            if stand.place == strand {
                kept = stand.passed;
            }
            stand.place != strand || matches!(leaving, Leaving::Into(_))
        });
        kept
    }

    /// Walks from the frontier on over all that it can reach now. `visit` receives each stretch of
    /// items of one strand up to a child or to where the walk leaves it: the stand behind it, the
    /// number of items before it, and how it is left; it says whether the walk continues.
    pub(crate) fn walk_reachable(&self, mut visit: impl FnMut(Stand, usize, &Leaving) -> bool) {
        let from = match self.at {
            NOWHERE => self.roots.front().copied(),
            at => Some(at),
        };
        let mut stands: Vec<Stand> = Vec::new();
        let mut next = from.map(|place| Stand { place, passed: 0 });
        while let Some(mut stand) = next {
            let before = stand.passed;
            let leaving = self.walk(&mut stand);
            if !visit(stand, before, &leaving) {
                return;
            }
            next = match leaving {
                Leaving::Waiting => break,
                Leaving::Into(place) => {
                    stands.push(stand);
                    Some(Stand { place, passed: 0 })
                }
                Leaving::Finished => stands.pop().or_else(|| self.above(stand.place)),
            };
        }
    }

    /// The strand that the frontier had come from when it entered `place`.
    fn above(&self, place: StrandIndex) -> Option<Stand> {
        let place = self.strands[place].up;
        (place != NOWHERE).then_some(Stand { place, passed: 0 })
    }

    /// Passes all items of a strand up to its next child.
    fn walk(&self, stand: &mut Stand) -> Leaving {
        let strand = &self.strands[stand.place];
        if let Some(body) = &strand.body {
            let committed = body.final_until.saturating_sub(body.first) as usize;
            let end = match strand.held {
                true => committed.min(body.items.len()),
                false => body.items.len(),
            };
            while stand.passed < end {
                stand.passed += 1;
                if let Item::Child(child, _) = body.items[stand.passed - 1] {
                    return Leaving::Into(child);
                }
            }
            if end < body.items.len() {
                return Leaving::Waiting;
            }
        }
        match strand.ending {
            StrandEnd::Closed => Leaving::Finished,
            StrandEnd::Open | StrandEnd::Stopped => Leaving::Waiting,
        }
    }
}
