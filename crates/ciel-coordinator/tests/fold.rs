//! A coordinator that is folded from records is the one that they were made by.

#![allow(missing_docs)]

mod conversation;

use std::sync::Arc;

use ciel_coordinator::{Coordinator, FoldError, Record};
use ciel_graph::{Action, Entry, Event};
use ciel_model::{
    AttemptNumber, Class, Descriptor, Failure, FailureKind, Label, Name, StrandKey, TaskKey,
};
use ciel_ordered::Piece;
use conversation::Conversation;

fn fold(
    snapshot: Option<&[u8]>,
    records: &[Vec<u8>],
) -> Result<(Coordinator, Vec<Action>), FoldError> {
    let mut done = Vec::new();
    let records = records.iter().map(Vec::as_slice);
    let coordinator = Coordinator::fold(snapshot, records, |_, actions| {
        done.extend_from_slice(actions);
        Ok::<(), FoldError>(())
    })?;
    Ok((coordinator, done))
}

#[test]
fn fold_of_all_records_equals_the_original() {
    let original = Conversation::hold();
    let (folded, done) = fold(None, &original.records.all()).unwrap();
    assert_eq!(folded.snapshot(), original.coordinator.snapshot());
    assert_eq!(done, original.actions);
    assert_eq!(folded.now(), original.coordinator.now());
    assert_eq!(original.coordinator.refusal(), None);
}

#[test]
fn fold_from_a_snapshot_does_the_same_as_the_original_after_it() {
    let mut original = Conversation::begin();
    original.open();
    let snapshot = original.coordinator.snapshot().unwrap();
    let (covered, before) = (original.records.all().len(), original.actions.len());
    original.work();
    original.end();
    let (folded, done) = fold(Some(&snapshot), &original.records.all()[covered..]).unwrap();
    assert_eq!(done, original.actions[before..]);
    assert_eq!(
        folded.graph().counts(),
        original.coordinator.graph().counts()
    );
    assert_eq!(folded.changes(), original.coordinator.changes());
}

#[test]
fn output_that_a_snapshot_holds_can_be_released_before_the_record_behind_it() {
    // The run had released it when a rollback undid what was not released; the fold had not.
    let task = TaskKey(0);
    let mut original = alone();
    let printed = || Piece::Bytes(b"begun\n".to_vec());
    let written = original.coordinator.write(StrandKey(0), 0, printed());
    written.unwrap();
    let snapshot = original.coordinator.snapshot().unwrap();
    let covered = original.records.all().len();
    let released = original.coordinator.output_mut().take_ready(u64::MAX);
    assert_eq!(released.map(|chunk| chunk.piece), Some(printed()));
    original.tell(Event::TaskRolledBack { task, to: 0 });
    let records = original.records.all().split_off(covered);
    let records = records.iter().map(Vec::as_slice);
    let mut released = Vec::new();
    let folded = Coordinator::fold(Some(&snapshot), records, |coordinator, _| {
        while let Some(chunk) = coordinator.output_mut().take_ready(u64::MAX) {
            released.push(chunk.piece);
        }
        Ok::<(), FoldError>(())
    });
    folded.unwrap();
    assert_eq!(released, [printed()]);
}

#[test]
fn restored_snapshot_gives_the_same_output_as_the_original() {
    let mut original = Conversation::begin();
    original.open();
    let snapshot = original.coordinator.snapshot().unwrap();
    let mut restored = Coordinator::restore(&snapshot).unwrap();
    let chunk = restored.output_mut().take_ready(u64::MAX);
    assert!(chunk.is_some());
    assert_eq!(
        chunk,
        original.coordinator.output_mut().take_ready(u64::MAX)
    );
    let errors = restored.errors_mut().take_ready(u64::MAX);
    assert!(errors.is_some());
    assert_eq!(
        errors,
        original.coordinator.errors_mut().take_ready(u64::MAX)
    );
}

#[test]
fn no_snapshot_is_taken_while_standard_error_is_on_its_way_to_the_disk() {
    let mut original = Conversation::begin();
    original.open();
    let piece = Piece::Bytes(vec![b'e'; 1 << 10]);
    original.coordinator.write_error(StrandKey(0), 0, piece);
    let spills = original.coordinator.errors_mut().spillable(1);
    assert!(!spills.is_empty());
    assert_eq!(original.coordinator.snapshot(), None);
    for spill in spills {
        original.coordinator.errors_mut().put_back(spill).unwrap();
    }
    assert!(original.coordinator.snapshot().is_some());
}

/// A root that runs, alone.
fn alone() -> Conversation {
    let mut alone = Conversation::begin();
    alone.tell(Event::RootSubmitted {
        name: Name::of_root(b"alone"),
        descriptor: Arc::new(
            Descriptor::plain("sim", Class::Coordination, "root", Vec::new())
                .with(|it| it.replayable = true),
        ),
    });
    let (task, attempt) = (TaskKey(0), AttemptNumber(0));
    alone.tell(Event::TaskPlaced { task, attempt });
    alone
}

#[test]
fn strand_is_not_rolled_back_behind_what_it_has_written() {
    let mut alone = alone();
    assert_eq!(alone.coordinator.rollback_min(TaskKey(0)), Some(0));
    let piece = Piece::Bytes(b"begun\n".to_vec());
    alone.coordinator.write(StrandKey(0), 2, piece).unwrap();
    assert_eq!(alone.coordinator.rollback_min(TaskKey(0)), Some(2));
}

/// Actions that ran in place leave no facts; only what was written behind them is known.
#[test]
fn replay_is_to_come_as_far_as_its_strand_had_written_to_either_stream() {
    for is_error in [false, true] {
        let mut alone = alone();
        let piece = Piece::Bytes(b"begun\n".to_vec());
        match is_error {
            false => alone.coordinator.write(StrandKey(0), 5, piece).unwrap(),
            true => alone.coordinator.write_error(StrandKey(0), 5, piece),
        }
        let (task, attempt) = (TaskKey(0), AttemptNumber(0));
        let failure = Failure::new(FailureKind::WorkerLost, label(), "it died");
        alone.tell(Event::TaskLost {
            task,
            attempt,
            failure: Box::new(failure),
        });
        let attempt = AttemptNumber(1);
        alone.tell(Event::TaskPlaced { task, attempt });
        let replayed = alone.actions.iter().find_map(|action| match action {
            Action::Begin(assignment) => match assignment.entry {
                Entry::Replay { until, .. } => Some(until),
                _ => None,
            },
            _ => None,
        });
        assert_eq!(replayed, Some(5), "standard error: {is_error}");
    }
}

fn label() -> Label {
    Label {
        what: "root".into(),
        name: Name(0),
    }
}

#[test]
fn record_without_its_end_or_with_more_behind_it_is_refused() {
    for record in Conversation::hold().records.all() {
        assert!(Record::read(&record).is_some());
        for length in 0..record.len() {
            assert_eq!(Record::read(&record[..length]), None, "{length} bytes");
        }
        let longer: Vec<u8> = record.iter().copied().chain([0]).collect();
        assert_eq!(Record::read(&longer), None);
    }
}

#[test]
fn fold_over_a_damaged_record_is_refused() {
    let records = Conversation::hold().records.all();
    for damaged in 0..records.len() {
        let mut records = records.clone();
        records[damaged][0] = 99;
        assert_eq!(fold(None, &records).unwrap_err(), FoldError::Record);
    }
}

#[test]
fn snapshot_without_its_end_is_refused() {
    let snapshot = Conversation::hold().coordinator.snapshot().unwrap();
    for length in 0..snapshot.len() {
        let torn = &snapshot[..length];
        assert_eq!(Coordinator::restore(torn).unwrap_err(), FoldError::Snapshot);
    }
    assert!(Coordinator::restore(&snapshot).is_ok());
}

#[test]
fn snapshot_with_more_behind_it_is_refused() {
    let mut snapshot = Conversation::hold().coordinator.snapshot().unwrap();
    snapshot.push(0);
    assert_eq!(
        Coordinator::restore(&snapshot).unwrap_err(),
        FoldError::Snapshot
    );
}

#[test]
fn records_without_their_beginning_are_refused() {
    let records = Conversation::hold().records.all();
    assert_eq!(fold(None, &records[1..]).unwrap_err(), FoldError::Beginning);
    assert_eq!(fold(None, &[]).unwrap_err(), FoldError::Beginning);
}
