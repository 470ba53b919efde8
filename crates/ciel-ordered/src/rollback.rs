//! Rollback: what a strand did from one of its actions on is taken away.
//!
//! What was written stays if it is final, released or not: that depends on what was recorded only,
//! and not on how far the thread that writes has come. Children that the frontier has passed or
//! entered go, if nothing was written there; then the frontier returns to the strand. It does not
//! know why a strand is rolled back. Read next: `history`, `cut`.

use std::ops::Range;

use crate::cut::Leaving;
use crate::error::OrderedError;
use crate::piece::StrandKey;
use crate::strand::{Item, NOWHERE, StrandIndex};
use crate::stream::OrderedStream;

impl OrderedStream {
    /// The strand is replayed from its last mark (its start, the last [`mark`](Self::mark), hold or
    /// commit). What came from its action `to` on is withdrawn with the children spawned there;
    /// `to` is [`rollback_min`](Self::rollback_min) at least, else what is released stays. The
    /// replay must repeat what came before; with [`u64::MAX`] that is all.
    pub fn roll_back(&mut self, strand: StrandKey, to: u64) -> Result<(), OrderedError> {
        let place = self.open_place(strand)?;
        let mut points = self.take_back(place, to);
        let Some(body) = &mut self.strands[place].body else {
            return Ok(());
        };
        let withdrawn = body.withdraw(to);
        let mut bytes = 0;
        for item in withdrawn {
            match &item {
                Item::Bytes(_) | Item::FileBytes(_) => bytes += item.memory(),
                Item::Extent(extent) => bytes += extent.1.length,
                Item::Spilling(ticket) => bytes += self.spilled[ticket].length,
                Item::Child(..) => points += 1,
                Item::After(_) => {}
            }
            self.drop_item(item);
        }
        if let Some(history) = self.history(place) {
            history.roll_back(bytes, points);
        }
        Ok(())
    }

    /// The first action to which a strand can be rolled back so that nothing that was written, by
    /// it or beneath it, and is final has to be withdrawn.
    pub fn rollback_min(&self, strand: StrandKey) -> u64 {
        let Some(place) = self.strands.find(strand) else {
            return 0;
        };
        let Some(body) = &self.strands[place].body else {
            return 0;
        };
        let mut least = self.released_min(place);
        // Behind the child in which the walk is; none where that is not beneath the strand.
        let mut behind = (self.strands[place].down != NOWHERE).then_some(body.released_actions);
        self.walk_reachable(|stand, from, leaving| {
            let written = self.last_written(stand.place, from..stand.passed);
            if stand.place != place {
                least = behind.filter(|_| written.is_some()).unwrap_or(least);
                return true;
            }
            least = written.map_or(least, |index| body.actions_before(index));
            behind = Some(body.actions_before(stand.passed));
            matches!(leaving, Leaving::Into(_))
        });
        least
    }

    /// As [`rollback_min`](Self::rollback_min), of what is released.
    fn released_min(&self, place: StrandIndex) -> u64 {
        let strand = &self.strands[place];
        let Some(body) = &strand.body else {
            return 0;
        };
        match strand.down != NOWHERE && self.gauges.released_bytes > body.passed.released_bytes {
            true => body.released_actions,
            false => body.passed.least,
        }
    }

    /// The frontier comes back to a strand from a child: what was written there cannot be undone.
    pub(crate) fn fix_if_written(&mut self, place: StrandIndex) {
        let released_bytes = self.gauges.released_bytes;
        if let Some(body) = &mut self.strands[place].body
            && released_bytes > body.passed.released_bytes
        {
            body.passed.fix(body.released_actions);
        }
    }

    /// Takes back the passed children from action `to` on; returns how many there are.
    fn take_back(&mut self, place: StrandIndex, to: u64) -> u64 {
        let least = self.released_min(place);
        let released = self.strands[place]
            .body
            .as_ref()
            .map_or(0, |body| body.released_actions);
        if to < least || to >= released {
            return 0;
        }
        if self.strands[place].down != NOWHERE {
            while self.at != place {
                let (inner, up) = (self.at, self.strands[self.at].up);
                self.drop_beneath(inner);
                self.at = up;
            }
            self.strands[place].down = NOWHERE;
        }
        let body = self.strands[place].body();
        body.released_actions = to;
        body.passed.take_back(to)
    }

    /// The last of these items that has bytes.
    fn last_written(&self, place: StrandIndex, items: Range<usize>) -> Option<usize> {
        let body = self.strands[place].body.as_ref()?;
        items.rev().find(|index| match &body.items[*index] {
            Item::Bytes(_) | Item::FileBytes(_) | Item::Extent(_) | Item::Spilling(_) => true,
            Item::Child(..) | Item::After(_) => false,
        })
    }
}
