//! Histories of long runs: bounded in bytes, exact in counts, and cheap to glance at.

#![allow(missing_docs)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ciel_graph::FunctionCounts;
use ciel_store::{RunFolder, StateFolder};
use ciel_view::history::{Bounds, Reader, Writer};
use ciel_view::inspect::{self, Found, Tasks};
use ciel_view::limits::{FAILURE_BYTES_MAX, HISTORY_BYTES_MAX};
use ciel_view::records::{CountsRecord, EndRecord, LogRecord, RunRecord, TaskRecord, TaskState};

const BOUNDS: Bounds = Bounds {
    failed: 64 << 10,
    tasks: 256 << 10,
    logs: 64 << 10,
};

/// Of these, each thousandth fails.
const TASKS: u64 = 100_000;

fn run(id: &str) -> RunRecord {
    RunRecord {
        run: id.to_string(),
        command: vec!["job.sw".to_string()],
        started_s: 1,
        pid: 2,
        folder: "/".to_string(),
        resumed: false,
    }
}

fn task(number: u64, state: TaskState) -> TaskRecord {
    let mut task = TaskRecord {
        name: format!("{:032x}", u128::from(number) << 90 | u128::from(number)),
        what: "work".to_string(),
        executor: "python".to_string(),
        state,
        story: vec![(number, "spawned".into()), (number + 5, "ended".into())],
        attempts: 1,
        ..TaskRecord::default()
    };
    if state == TaskState::Failed {
        task.failure = Some(format!("{}: TaskError: no", task.label()));
    }
    task
}

fn state_of(number: u64) -> TaskState {
    match number.is_multiple_of(1000) {
        true => TaskState::Failed,
        false => TaskState::Finished,
    }
}

fn counts(spawned: u64, failed: u64) -> CountsRecord {
    let counts = FunctionCounts {
        spawned,
        failed,
        finished: spawned - failed,
        ..FunctionCounts::default()
    };
    CountsRecord::new(vec![(Arc::from("work"), counts)], &[])
}

/// The history of a long run in a state folder.
fn long_run(state: &Path) -> RunFolder {
    let folder = StateFolder::open(state).unwrap();
    let folder = RunFolder::create(&folder, "0000-1", u64::MAX).unwrap();
    let mut writer = Writer::begin(&folder.history_path(), BOUNDS, &run("0000-1")).unwrap();
    for number in 0..TASKS {
        writer.task(task(number, state_of(number))).unwrap();
        if number % 500 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.counts(counts(TASKS, TASKS / 1000)).unwrap();
    let end = EndRecord {
        failure: None,
        counts: ciel_graph::Counts::default(),
        elapsed_us: 9,
        store: None,
    };
    writer.end(end).unwrap();
    folder
}

fn bytes_of(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}

#[test]
fn parts_of_a_history_leave_room_for_the_rest_of_it() {
    let Bounds {
        failed,
        tasks,
        logs,
    } = Bounds::default();
    assert!(failed + tasks + logs <= HISTORY_BYTES_MAX * 3 / 4);
}

#[test]
fn history_of_a_long_run_is_bounded_and_keeps_failures_newest_tasks_and_counts() {
    let home = tempfile::tempdir().unwrap();
    let folder = long_run(home.path());
    let reader = Reader::new(&folder.history_path());
    let bytes = bytes_of(&folder.history_path());
    assert!(bytes <= BOUNDS.failed + BOUNDS.tasks + 4096, "{bytes}");
    let tasks = reader.tasks(|_| true);
    let failed = tasks.iter().filter(|task| task.state == TaskState::Failed);
    assert_eq!(failed.count() as u64, TASKS / 1000);
    let newest: Vec<TaskRecord> = (TASKS - 100..TASKS)
        .map(|number| task(number, state_of(number)))
        .collect();
    assert_eq!(tasks[tasks.len() - 100..], newest);
    assert_eq!(reader.counts(), Some(counts(TASKS, TASKS / 1000)));
}

/// The part with the newest tasks is the large one; a glance must not read it.
#[test]
fn glance_at_a_long_run_reads_failures_and_counts_only() {
    let home = tempfile::tempdir().unwrap();
    let folder = long_run(home.path());
    let path = folder.history_path();
    drop(folder);
    let before = inspect::runs(home.path(), Tasks::First(20)).unwrap();
    for part in ["tasks", "tasks.old"] {
        fs::write(path.join(part), "this is no record").unwrap();
    }
    assert_eq!(
        inspect::runs(home.path(), Tasks::First(20)).unwrap(),
        before
    );
    assert_eq!((before[0].tasks.len(), before[0].left_out), (20, 80));
    assert_eq!(
        before[0].counts.as_ref().map(CountsRecord::ended),
        Some(TASKS)
    );
}

#[test]
fn task_of_a_long_run_is_found_by_its_label_and_another_is_not() {
    let home = tempfile::tempdir().unwrap();
    drop(long_run(home.path()));
    let label = task(1000, TaskState::Failed).label();
    let Found::Run(found) = inspect::find(home.path(), &label).unwrap() else {
        panic!("{label} is not found");
    };
    assert_eq!(found.tasks, [task(1000, TaskState::Failed)]);
    let Found::Nothing(Some(names)) = inspect::find(home.path(), "wrok").unwrap() else {
        panic!("it is found");
    };
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["work"]);
}

#[test]
fn failures_beyond_their_bound_are_kept_among_the_newest_tasks() {
    let home = tempfile::tempdir().unwrap();
    let mut writer = Writer::begin(home.path(), BOUNDS, &run("a")).unwrap();
    for number in 0..10_000 {
        writer.task(task(number, TaskState::Failed)).unwrap();
    }
    writer.flush().unwrap();
    assert!(bytes_of(home.path()) <= BOUNDS.failed + BOUNDS.tasks + 4096);
    let tasks = Reader::new(home.path()).tasks(|_| true);
    let names = |number| task(number, TaskState::Failed).name;
    assert_eq!(tasks.first().map(|task| task.name.clone()), Some(names(0)));
    assert_eq!(
        tasks.last().map(|task| task.name.clone()),
        Some(names(9_999))
    );
}

#[test]
fn resumed_run_replaces_what_its_former_process_knew() {
    let home = tempfile::tempdir().unwrap();
    let mut first = Writer::begin(home.path(), BOUNDS, &run("a")).unwrap();
    first.task(task(1, TaskState::Failed)).unwrap();
    first.task(task(2, TaskState::Cancelled)).unwrap();
    first
        .end(EndRecord {
            failure: Some("interrupted".to_string()),
            counts: ciel_graph::Counts::default(),
            elapsed_us: 9,
            store: None,
        })
        .unwrap();
    let mut second = Writer::begin(home.path(), BOUNDS, &run("a")).unwrap();
    let mut again = task(1, TaskState::Finished);
    again.story.push((70, "finished".into()));
    let mut failed = task(2, TaskState::Failed);
    failed.story.push((80, "failed".into()));
    second.task(again.clone()).unwrap();
    second.task(failed.clone()).unwrap();
    second.flush().unwrap();
    let reader = Reader::new(home.path());
    assert_eq!(reader.tasks(|_| true), [again, failed]);
    assert_eq!(reader.end(), None);
    assert!(reader.run().unwrap().resumed);
}

#[test]
fn output_of_tasks_is_bounded_and_the_newest_stays() {
    let home = tempfile::tempdir().unwrap();
    let mut writer = Writer::begin(home.path(), BOUNDS, &run("a")).unwrap();
    for number in 0..10_000 {
        let log = LogRecord {
            task: "work@1".to_string(),
            stream: "stderr".to_string(),
            text: format!("line {number}\n"),
        };
        writer.log(log).unwrap();
    }
    writer.flush().unwrap();
    assert!(bytes_of(home.path()) <= BOUNDS.logs + 4096);
    let reader = Reader::new(home.path());
    let newest = reader.logs("work@1").pop().map(|log| log.text);
    assert_eq!(newest.as_deref(), Some("line 9999\n"));
    assert_eq!(reader.logs("work@2"), []);
}

#[test]
fn torn_line_and_overlong_failure_do_no_harm() {
    let home = tempfile::tempdir().unwrap();
    let mut writer = Writer::begin(home.path(), BOUNDS, &run("a")).unwrap();
    let mut long = task(1, TaskState::Failed);
    long.failure = Some(format!(
        "{}: {}",
        long.label(),
        "é".repeat(FAILURE_BYTES_MAX)
    ));
    writer.task(long).unwrap();
    writer.task(task(2, TaskState::Finished)).unwrap();
    writer.flush().unwrap();
    let path = home.path().join("tasks");
    let mut torn = fs::read(&path).unwrap();
    torn.extend_from_slice(b"{\"record\":\"task\",\"na");
    fs::write(&path, torn).unwrap();
    let mut writer = Writer::begin(home.path(), BOUNDS, &run("a")).unwrap();
    writer.task(task(3, TaskState::Finished)).unwrap();
    writer.flush().unwrap();
    let tasks = Reader::new(home.path()).tasks(|_| true);
    assert_eq!(tasks.len(), 3);
    let kept = tasks[0].failure.as_ref().map_or(0, String::len);
    assert!(kept <= FAILURE_BYTES_MAX + 4, "{kept}");
}
