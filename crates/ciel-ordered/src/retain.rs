//! Retention: keeping what is released, so that a finished strand can become a segment.
//!
//! Only strands that may be memoised are retained; their memory is bounded in `limits`, beyond
//! which a strand gives no segment. It does not know what a memo is. Read next: `segment`.

use crate::error::OrderedError;
use crate::piece::StrandKey;
use crate::segment::{Segment, SegmentPart};
use crate::strand::{Item, Retention, Strand, StrandEnd, StrandIndex};
use crate::stream::OrderedStream;

impl OrderedStream {
    /// From its start on, what the strand and its descendants release is kept until
    /// [`forget`](Self::forget). Refused with `NoSegment` when the strand already wrote.
    pub fn retain(&mut self, strand: StrandKey) -> Result<(), OrderedError> {
        let place = self.open_place(strand)?;
        let entry = &mut self.strands[place];
        if entry.body.is_some() {
            return Err(OrderedError::NoSegment { strand });
        }
        entry.retain(match entry.retention {
            Retention::None | Retention::Asked => Retention::Asked,
            Retention::Inherited | Retention::Both => Retention::Both,
        });
        Ok(())
    }

    /// The whole output of a retained strand and its descendants, all closed and committed.
    ///
    /// # Errors
    /// `NoSegment` when that is not so, when a released piece was beyond the bound, and while a
    /// piece is being spilled.
    pub fn segment_of(&self, strand: StrandKey) -> Result<Segment, OrderedError> {
        let top = self.place(strand)?;
        let mut parts = Vec::new();
        let mut places = vec![(top, 0)];
        while let Some((place, index)) = places.pop() {
            let entry = &self.strands[place];
            if !gives_segment(entry) {
                return Err(OrderedError::NoSegment { strand });
            }
            let Some(item) = entry.body.as_ref().and_then(|body| body.items.get(index)) else {
                continue;
            };
            places.push((place, index + 1));
            match item {
                Item::Bytes(bytes) => parts.push(SegmentPart::Bytes(bytes.as_slice().into())),
                Item::Extent(extent) => parts.push(SegmentPart::Extent(**extent)),
                Item::Child(child, _) => places.push((*child, 0)),
                Item::After(_) => {}
                Item::Segment(segment) => parts.push(SegmentPart::Segment(segment.clone())),
                Item::Spilling(_) => return Err(OrderedError::NoSegment { strand }),
            }
        }
        Ok(Segment::new(parts))
    }

    /// The segment has been made or is not wanted: what is only retained is dropped. Extents
    /// within it are not reported as dropped, for a segment may use them.
    pub fn forget(&mut self, strand: StrandKey) -> Result<(), OrderedError> {
        let top = self.place(strand)?;
        let entry = &mut self.strands[top];
        match entry.retention {
            Retention::None | Retention::Inherited => Err(OrderedError::NoSegment { strand }),
            Retention::Both => {
                entry.retention = Retention::Inherited;
                Ok(())
            }
            Retention::Asked => {
                self.forget_beneath(top);
                Ok(())
            }
        }
    }

    fn forget_beneath(&mut self, top: StrandIndex) {
        let mut places = vec![top];
        while let Some(place) = places.pop() {
            let entry = &mut self.strands[place];
            if entry.retention == Retention::Both {
                entry.retention = Retention::Asked;
                continue;
            }
            entry.retention = Retention::None;
            let passed = entry.passed;
            self.drop_retained(place, &mut places);
            if passed {
                self.drop_beneath(place);
            }
        }
    }

    fn drop_retained(&mut self, place: StrandIndex, places: &mut Vec<StrandIndex>) {
        let Some(body) = &mut self.strands[place].body else {
            return;
        };
        let is_child = |item: &Item| match item {
            Item::Child(child, _) => Some(*child),
            Item::Bytes(_)
            | Item::Extent(_)
            | Item::Segment(_)
            | Item::After(_)
            | Item::Spilling(_) => None,
        };
        places.extend(body.items.iter().filter_map(is_child));
        self.gauges.retained_bytes -= body
            .items
            .drain(..body.taken)
            .map(|item| item.memory())
            .sum::<u64>();
        body.first += std::mem::take(&mut body.taken) as u64;
    }
}

fn gives_segment(strand: &Strand) -> bool {
    let committed = |body: &crate::strand::Body| body.final_until >= body.end();
    strand.ending == StrandEnd::Closed
        && strand.is_retained()
        && !strand.lost
        && (!strand.held || strand.body.as_ref().is_none_or(|body| committed(body)))
}
