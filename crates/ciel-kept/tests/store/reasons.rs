//! Why nothing is found: what has changed, and what became of the task before.

use ciel_kept::{Ended, Found, Parts};
use ciel_model::{Digest, FunctionCode, Reached, RerunReason, Site};

use crate::{found, function, parts, place, small};

#[test]
fn place_of_a_function_is_no_part_of_the_key_and_its_code_is() {
    let with = |pieces: Vec<FunctionCode>| Parts {
        code: Reached::of(pieces.clone()).digest(),
        pieces: pieces.into(),
        ..parts(1)
    };
    assert_eq!(with(vec![function("f", 90, 1)]).key(), parts(1).key());
    let called = with(vec![function("f", 3, 1), function("g", 8, 2)]);
    assert_ne!(called.key(), parts(1).key());
}

#[test]
fn miss_names_what_changed_since_the_last_result_at_the_same_position() {
    let (_home, mut kept) = place();
    kept.keep(&[small(1)], 100).unwrap();
    let pieces = vec![function("f", 3, 1), function("g", 9, 4)];
    let recoded = Parts {
        code: Reached::of(pieces.clone()).digest(),
        pieces: pieces.into(),
        ..parts(1)
    };
    let mut refilled = parts(1);
    refilled.inputs[0].digest = Digest(6);
    for (now, reason) in [
        (recoded, RerunReason::CodeChanged(function("g", 9, 4))),
        (
            parts(2),
            RerunReason::ArgumentChanged(Some("command".into())),
        ),
        (refilled, RerunReason::InputChanged("reads".into())),
    ] {
        let found = kept.find(&[now], Digest(1), 100).unwrap();
        assert_eq!(found, Found::Nothing(reason));
    }
    assert_eq!(found(&kept, 3), Found::Nothing(RerunReason::New));
    kept.begin(&[Digest(3)]).unwrap();
    assert_eq!(found(&kept, 3), Found::Nothing(RerunReason::NeverFinished));
    for (ended, reason) in [
        (Ended::Impurely, RerunReason::Impure),
        (Ended::Unkept, RerunReason::NotKept),
    ] {
        kept.note_unkept(&[(Digest(3), ended)]).unwrap();
        assert_eq!(found(&kept, 3), Found::Nothing(reason));
    }
    kept.begin(&[Digest(3)]).unwrap();
    assert_eq!(found(&kept, 3), Found::Nothing(RerunReason::NeverFinished));
    kept.keep(&[small(3)], 100).unwrap();
    assert!(matches!(found(&kept, 3), Found::Entry(_)));
}

/// A run looks for results of its own surroundings, and for those that hold anywhere.
#[test]
fn miss_in_several_surroundings_names_what_changed_in_those_of_the_last_result() {
    let (_home, mut kept) = place();
    kept.keep(&[small(1)], 100).unwrap();
    let elsewhere = Parts {
        surroundings: Digest(9),
        ..parts(2)
    };
    let reason = RerunReason::ArgumentChanged(Some("command".into()));
    for now in [[elsewhere.clone(), parts(2)], [parts(2), elsewhere]] {
        let found = kept.find(&now, Digest(1), 100).unwrap();
        assert_eq!(found, Found::Nothing(reason.clone()));
    }
}

/// One more task in a list moved all behind it, and a function whose code was the same ran because
/// of `code changed`: the place of another one had become its own.
#[test]
fn another_function_at_the_same_position_is_no_earlier_one() {
    let (_home, mut kept) = place();
    kept.keep(&[small(1)], 100).unwrap();
    let pieces = vec![function("g", 9, 4)];
    let other = Parts {
        code: Reached::of(pieces.clone()).digest(),
        pieces: pieces.into(),
        ..parts(1)
    };
    let script = Parts {
        executor: "skywriting".into(),
        ..parts(1)
    };
    for now in [other, script] {
        let found = kept.peek(&[now], Digest(1)).unwrap();
        assert_eq!(found, Found::Nothing(RerunReason::New));
    }
}

/// A function that is never kept ran because of the arguments that another one had once had at its
/// place, in every run.
#[test]
fn task_that_was_not_kept_since_runs_for_that_reason() {
    let (_home, mut kept) = place();
    kept.keep(&[small(1)], 100).unwrap();
    for (ended, reason) in [
        (Ended::Unkept, RerunReason::NotKept),
        (Ended::Impurely, RerunReason::Impure),
    ] {
        kept.note_unkept(&[(Digest(1), ended)]).unwrap();
        let found = kept.find(&[parts(2)], Digest(1), 100).unwrap();
        assert_eq!(found, Found::Nothing(reason));
    }
}

/// Whether there are many or few notes of begun tasks, that of a task goes with its end.
#[test]
fn ended_task_is_no_longer_noted_as_begun() {
    for count in [1, 10, 5_000] {
        let (_home, mut kept) = place();
        let begun: Vec<Digest> = (0..count).map(|number| Digest(1_000 + number)).collect();
        kept.begin(&begun).unwrap();
        kept.begin(&[Digest(3)]).unwrap();
        kept.keep(&[small(3), small(4)], 100).unwrap();
        let changed = RerunReason::ArgumentChanged(Some("command".into()));
        let found = |place| kept.find(&[parts(7)], Digest(place), 100).unwrap();
        assert_eq!(found(3), Found::Nothing(changed));
        assert_eq!(found(1_000), Found::Nothing(RerunReason::NeverFinished));
    }
}

/// Where the pieces of one of both were not known, the first one of the other was named with its
/// line: that of the task, wherever the change was.
#[test]
fn miss_without_known_pieces_names_the_function_and_no_line() {
    let (_home, mut kept) = place();
    kept.keep(&[small(1)], 100).unwrap();
    let recoded = Parts {
        code: Reached::of(vec![function("f", 3, 7)]).digest(),
        pieces: Default::default(),
        ..parts(1)
    };
    let found = kept.find(&[recoded], Digest(1), 100).unwrap();
    let Found::Nothing(RerunReason::CodeChanged(function)) = found else {
        panic!("{found:?}");
    };
    assert_eq!((&*function.name, function.place), ("f", Site::default()));
}

#[test]
fn places_with_equal_keys_have_reasons_of_their_own() {
    let (_home, mut kept) = place();
    kept.keep(&[small(1)], 100).unwrap();
    assert!(kept.is_news(Digest(7), &parts(1)).unwrap());
    kept.note_taken(&[(Digest(7), parts(1).key())]).unwrap();
    assert!(!kept.is_news(Digest(7), &parts(1)).unwrap());
    for place in [Digest(1), Digest(7)] {
        let reason = RerunReason::ArgumentChanged(Some("command".into()));
        let found = kept.find(&[parts(2)], place, 100).unwrap();
        assert_eq!(found, Found::Nothing(reason));
    }
}
