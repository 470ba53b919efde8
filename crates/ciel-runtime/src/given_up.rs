//! Spilled output that is lost: which records to give up, so that the tasks which wrote it run once
//! more.
//!
//! Pure. It does not know why the output is lost. Read next: `recovery`.

use ciel_coordinator::Record;
use ciel_graph::{Event, Step};
use ciel_journal::{Recorded, Sequence};
use ciel_model::Purity;
use ciel_ordered::{Extent, Piece};

/// The first record that put any of these bytes into the output. None if a snapshot did, or if a
/// task of the job does more than give a result, so that none may run once more unasked.
pub(crate) fn first_given_up(recorded: &Recorded, lost: &[Extent]) -> Option<Sequence> {
    let mut first = None;
    let mut written = vec![false; lost.len()];
    for (sequence, bytes) in recorded.records.iter() {
        let record = Record::read(bytes)?;
        if declares_effects(&record) {
            return None;
        }
        let (Record::Wrote { piece, .. }
        | Record::WroteError { piece, .. }
        | Record::WroteFile { piece, .. }) = &record
        else {
            continue;
        };
        for (written, lost) in written.iter_mut().zip(lost) {
            if overlaps(piece, lost) {
                *written = true;
                first = first.or(Some(sequence));
            }
        }
    }
    first.filter(|_| written.iter().all(|written| *written))
}

fn declares_effects(record: &Record) -> bool {
    let Record::Event { event, .. } = record else {
        return false;
    };
    match event {
        Event::RootSubmitted { descriptor, .. } => descriptor.purity == Purity::Impure,
        Event::TaskStepped {
            step: Step::Spawn { descriptor, .. },
            ..
        } => descriptor.purity == Purity::Impure,
        _ => false,
    }
}

fn overlaps(piece: &Piece, lost: &Extent) -> bool {
    match piece {
        Piece::Bytes(_) => false,
        Piece::Extent(extent) => {
            extent.blob == lost.blob
                && extent.offset < lost.offset + lost.length
                && lost.offset < extent.offset + extent.length
        }
    }
}
