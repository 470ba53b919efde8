//! Traces of made-up runs.

#![allow(missing_docs)]

mod check;

use ciel_graph::{Happening, Moment};
use ciel_model::{AttemptNumber, Label, Name, TaskKey};
use ciel_view::trace::{BEGINNING, Spot, Tracer};

const BYTES_MAX: u64 = 1 << 20;

fn label(number: u128) -> Label {
    Label {
        what: format!("work{number}").into(),
        name: Name(number << 96 | number),
    }
}

fn happening(at: u64, number: u128, moment: Moment) -> Happening {
    Happening {
        at,
        task: TaskKey(number as u64),
        attempt: AttemptNumber(0),
        label: label(number),
        parent: (number > 1).then(|| label(1).name),
        executor: "python".into(),
        moment,
    }
}

/// A trace of these moments, each with its time, its task and perhaps a place.
fn trace(bytes_max: u64, moments: &[(u64, u128, Moment, Option<Spot>)]) -> String {
    let mut out = Vec::new();
    let mut tracer = Tracer::begin(&mut out, bytes_max, "r", &["job.py".to_string()]).unwrap();
    for (at, task, moment, spot) in moments {
        tracer
            .happened(&happening(*at, *task, *moment), *spot)
            .unwrap();
    }
    tracer.finish(1_000_000).unwrap();
    String::from_utf8(out).unwrap()
}

use Moment::{
    Cancelled, Failed, Finished, Lost, Ready, Resumed, Spawned, Started, Suspended, TailSpawned,
    Woken,
};

#[test]
fn spawned_task_runs_on_its_worker_while_the_parent_waits() {
    let (first, second) = (Some(Spot::Worker(7)), Some(Spot::Worker(9)));
    let text = trace(
        BYTES_MAX,
        &[
            (0, 1, Spawned, None),
            (0, 1, Ready, None),
            (2, 1, Started, first),
            (5, 2, Spawned, None),
            (5, 2, Ready, None),
            (6, 1, Suspended, None),
            (7, 2, Started, second),
            (9, 2, Finished, None),
            (9, 1, Woken, None),
            (12, 1, Resumed, first),
            (13, 1, Finished, None),
        ],
    );
    assert!(text.starts_with(BEGINNING), "{text}");
    let shown = check::read(&text);
    let slice = |name: &str, row: &str| (name.into(), row.into(), "workers".into());
    let expected = [
        slice("work1", "worker 7"),
        slice("work2", "worker 9"),
        slice("work1", "worker 7"),
    ];
    assert_eq!(shown.slices, expected);
    assert_eq!((shown.arrows, shown.waits), (1, 1));
    assert!(text.contains(r#""queued_us":2"#), "{text}");
}

#[test]
fn tasks_at_the_same_time_get_slots_of_their_own_and_free_ones_are_used_again() {
    let command = Some(Spot::Command);
    let text = trace(
        BYTES_MAX,
        &[
            (1, 2, Started, command),
            (2, 3, Started, command),
            (3, 2, Finished, None),
            (4, 4, Started, command),
            (5, 3, Failed, None),
            (6, 4, Cancelled, None),
        ],
    );
    let shown = check::read(&text);
    let rows: Vec<&str> = shown
        .slices
        .iter()
        .map(|(_, row, _)| row.as_str())
        .collect();
    assert_eq!(rows, ["slot 1", "slot 2", "slot 1"]);
    assert_eq!(shown.ends, ["failed", "cancelled"]);
}

#[test]
fn successor_gets_an_arrow_from_the_task_that_handed_over() {
    let script = Some(Spot::Script);
    let text = trace(
        BYTES_MAX,
        &[
            (1, 1, Started, script),
            (3, 1, TailSpawned, None),
            (3, 2, Spawned, None),
            (4, 2, Started, script),
            (5, 2, Finished, None),
        ],
    );
    assert_eq!(check::read(&text).arrows, 1);
}

#[test]
fn what_runs_or_waits_at_the_end_of_a_run_ends_there() {
    let script = Some(Spot::Script);
    let text = trace(
        BYTES_MAX,
        &[
            (1, 1, Started, script),
            (2, 2, Started, script),
            (3, 1, Suspended, None),
            (4, 1, Lost, None),
            (5, 3, Started, script),
            (5, 3, Suspended, None),
        ],
    );
    let shown = check::read(&text);
    assert_eq!((shown.slices.len(), shown.waits), (3, 2));
}

#[test]
fn clock_that_goes_back_between_threads_does_no_harm() {
    let script = Some(Spot::Script);
    let text = trace(
        BYTES_MAX,
        &[
            (9, 1, Started, script),
            (8, 1, Finished, None),
            (7, 2, Started, script),
        ],
    );
    assert_eq!(check::read(&text).slices.len(), 2);
}

#[test]
fn trace_is_bounded_whole_and_says_where_it_ends() {
    let mut moments = Vec::new();
    for number in 1..10_000 {
        let spot = Some(Spot::Worker(number as u64 % 50));
        moments.push((number as u64, number, Spawned, None));
        moments.push((number as u64, number, Started, spot));
        if number % 2 == 0 {
            moments.push((number as u64, number, Suspended, None));
        }
        if number >= 50 {
            moments.push((number as u64, number - 49, Finished, None));
        }
    }
    let text = trace(100_000, &moments);
    assert!((50_000..=100_000).contains(&text.len()), "{}", text.len());
    let shown = check::read(&text);
    assert_eq!(
        shown.instants.last().unwrap(),
        "the trace is full; later events are missing"
    );
}

#[test]
fn missing_moments_end_what_runs_and_are_told() {
    let mut out = Vec::new();
    let mut tracer = Tracer::begin(&mut out, BYTES_MAX, "r", &[]).unwrap();
    tracer
        .happened(&happening(1, 1, Started), Some(Spot::Script))
        .unwrap();
    tracer.missed(3).unwrap();
    tracer.happened(&happening(2, 1, Finished), None).unwrap();
    tracer
        .happened(&happening(3, 2, Started), Some(Spot::Script))
        .unwrap();
    tracer.finish(4).unwrap();
    let shown = check::read(&String::from_utf8(out).unwrap());
    assert_eq!(shown.instants, ["ciel run", "3 events are missing"]);
    assert_eq!(shown.slices.len(), 2);
}
