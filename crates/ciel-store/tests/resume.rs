//! Runs that did not come to their end: who may take them up, and what is still there.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use ciel_store::limits::DIGEST_AT_COMMIT_BYTES_MAX;
use ciel_store::{
    Cleaning, Extent, HeldRun, LostObject, Object, ObjectName, ObjectStore, RunFolder, RunState,
    StateFolder, StoreError,
};
use tempfile::TempDir;

fn state_in(home: &TempDir) -> StateFolder {
    StateFolder::open(&home.path().join(".ciel")).unwrap()
}

/// A run of this process that could be resumed if it was broken off now.
fn recorded_run(state: &StateFolder, id: &str) -> RunFolder {
    let run = RunFolder::create(state, id, u64::MAX).unwrap();
    run.describe(b"{}").unwrap();
    run.journal_folder().unwrap();
    run
}

fn reopened(state: &StateFolder, id: &str) -> RunFolder {
    RunFolder::reopen(state, id, u64::MAX).unwrap()
}

fn object_path(run: &RunFolder, name: ObjectName) -> PathBuf {
    run.path().join("objects").join(name.to_string())
}

fn refusal(state: &StateFolder, id: &str) -> StoreError {
    RunFolder::reopen(state, id, u64::MAX).unwrap_err()
}

#[test]
fn run_that_was_broken_off_is_taken_up_with_its_files_and_without_its_scratch() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let run = recorded_run(&state, "run");
    run.describe(b"described again").unwrap();
    run.objects().put(ObjectName(1), b"kept").unwrap();
    fs::create_dir(run.path().join("scratch/folder")).unwrap();
    fs::write(run.path().join("scratch/folder/file"), "half").unwrap();
    drop(run);
    assert_eq!(state.runs().unwrap()[0].state, RunState::Unended);

    let run = reopened(&state, "run");
    let process = Some(std::process::id());
    assert_eq!(state.runs().unwrap()[0].state, RunState::Alive { process });
    assert_eq!(fs::read_dir(run.path().join("scratch")).unwrap().count(), 0);
    assert!(object_path(&run, ObjectName(1)).exists());
    assert_eq!(run.description().unwrap().unwrap(), b"described again");
    assert_eq!(run.output_path(), run.path().join("stdout"));
    run.mark_ended(b"well").unwrap();
    drop(run);
    let entry = state.runs().unwrap().remove(0);
    assert_eq!(entry.state, RunState::Ended);
    assert_eq!(entry.ending().unwrap().unwrap(), b"well");
    assert!(entry.bytes_on_disk() > 4);
}

#[test]
fn several_that_resume_one_run_at_once_leave_it_to_one() {
    const RESUMERS: usize = 4;
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    for round in 0..100 {
        let id = format!("run-{round}");
        drop(recorded_run(&state, &id));
        let (begun, done) = (Barrier::new(RESUMERS), Barrier::new(RESUMERS));
        let resume = || {
            begun.wait();
            let taken = RunFolder::reopen(&state, &id, u64::MAX);
            done.wait();
            match taken {
                Ok(_) => true,
                Err(StoreError::RunAlive { run, process }) => {
                    assert_eq!((run, process), (id.clone(), Some(std::process::id())));
                    false
                }
                Err(other) => panic!("{other}"),
            }
        };
        let taken = std::thread::scope(|scope| {
            let resumers: Vec<_> = (0..RESUMERS).map(|_| scope.spawn(resume)).collect();
            let taken = resumers.into_iter().map(|one| one.join().unwrap());
            taken.filter(|taken| *taken).count()
        });
        assert_eq!(taken, 1);
    }
}

/// A look at the runs holds each lock for an instant. A resume took that for a run that lives.
#[test]
fn those_who_look_at_the_runs_keep_nobody_from_resuming() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    drop(recorded_run(&state, "run"));
    std::thread::scope(|threads| {
        let resumer = threads.spawn(|| {
            for _ in 0..500 {
                drop(reopened(&state, "run"));
            }
        });
        while !resumer.is_finished() {
            state.runs().unwrap();
        }
        resumer.join().unwrap();
    });
}

/// Tells the copy of this test in the child process where its state folder is.
const HOLDS: &str = "CIEL_TEST_HOLDS_A_RUN";

/// The job that was started again at once after `kill -9`, as by `timeout -s KILL` in a loop, took
/// the former run for live, began from the start, and appended to the same file: a killed process
/// gives back its memory before its locks.
#[test]
fn run_whose_killed_process_is_not_gone_yet_is_resumed() {
    if let Some(home) = std::env::var_os(HOLDS) {
        return hold_runs_with_much_memory(&PathBuf::from(home));
    }
    let home = TempDir::new().unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--nocapture",
            "run_whose_killed_process_is_not_gone_yet_is_resumed",
        ])
        .env(HOLDS, home.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let told = BufReader::new(child.stdout.take().unwrap());
    assert!(told.lines().any(|line| line.unwrap().ends_with("held")));
    let state = state_in(&home);
    child.kill().unwrap();
    drop(reopened(&state, "first"));
    assert_eq!(state.runs().unwrap()[1].state, RunState::Unended);
    child.wait().unwrap();
}

/// The child: it waits to be killed.
fn hold_runs_with_much_memory(home: &Path) {
    let state = StateFolder::open(&home.join(".ciel")).unwrap();
    let _held = ["first", "second"].map(|id| recorded_run(&state, id));
    let memory = vec![1_u8; 256 << 20];
    println!("held");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(memory);
}

#[test]
fn run_that_lives_is_refused_with_its_process() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let _living = recorded_run(&state, "living");
    let error = refusal(&state, "living");
    let process = std::process::id();
    assert!(
        matches!(&error, StoreError::RunAlive { run, process: Some(found) }
            if run == "living" && *found == process)
    );
    assert_eq!(
        error.to_string(),
        format!("run living is live in process {process}")
    );
}

#[test]
fn run_that_ended_or_left_no_journal_or_never_was_is_refused() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    recorded_run(&state, "ended").mark_ended(b"").unwrap();
    drop(RunFolder::create(&state, "bare", u64::MAX).unwrap());
    let robbed = recorded_run(&state, "robbed");
    fs::remove_dir(robbed.journal_folder().unwrap()).unwrap();
    drop(robbed);
    fs::create_dir(state.path().join("runs/notes")).unwrap();
    for (id, code) in [
        ("ended", "store.run-ended"),
        ("bare", "store.run-unrecorded"),
        ("robbed", "store.run-unrecorded"),
        ("notes", "store.run-unknown"),
        ("never", "store.run-unknown"),
        ("../x", "store.invalid-name"),
    ] {
        assert_eq!(refusal(&state, id).code(), code, "{id}");
    }
    for entry in state.runs().unwrap() {
        assert_eq!(entry.state, RunState::Ended, "{}", entry.id);
    }
}

#[test]
fn clean_keeps_what_can_be_resumed_unless_all_is_asked_for() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let _living = recorded_run(&state, "living");
    drop(recorded_run(&state, "unended"));
    recorded_run(&state, "ended").mark_ended(b"").unwrap();
    let cleaned = state.clean(Cleaning::Ended).unwrap();
    assert_eq!(cleaned.removed, ["ended"]);
    assert_eq!(
        (cleaned.alive, cleaned.unended),
        (vec!["living".into()], vec!["unended".into()])
    );
    drop(reopened(&state, "unended"));
    let cleaned = state.clean(Cleaning::All).unwrap();
    assert_eq!(cleaned.removed, ["unended"]);
    assert_eq!(
        (cleaned.alive, cleaned.unended),
        (vec!["living".into()], vec![])
    );
}

#[test]
fn removal_by_id_takes_ended_runs_only() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    for id in ["a", "b"] {
        recorded_run(&state, id).mark_ended(b"").unwrap();
    }
    drop(recorded_run(&state, "unended"));
    let cleaned = state
        .remove(&["b".into(), "unended".into(), "never".into()])
        .unwrap();
    assert_eq!(
        (cleaned.removed, cleaned.unended),
        (vec!["b".into()], vec!["unended".into()])
    );
    assert_eq!(state.runs().unwrap().len(), 2);
}

#[test]
fn held_run_is_taken_up_by_nobody_until_it_is_let_go() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    drop(recorded_run(&state, "run"));
    let held = HeldRun::take(&state, "run").unwrap();
    assert_eq!(refusal(&state, "run").code(), "store.run-alive");
    assert!(state.clean(Cleaning::All).unwrap().removed.is_empty());
    held.remove_scratch().unwrap();
    drop(held);
    assert!(!state.path().join("runs/run/scratch").exists());
    reopened(&state, "run")
        .scratch()
        .path(1, 0, "output")
        .unwrap();
}

#[test]
fn restored_objects_are_known_and_what_is_lost_or_foreign_is_told_or_removed() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let run = recorded_run(&state, "run");
    for (name, bytes) in [
        (1, "whole"),
        (2, "shortened"),
        (3, "deleted"),
        (4, "unrecorded"),
        (5, ""),
    ] {
        run.objects()
            .put(ObjectName(name), bytes.as_bytes())
            .unwrap();
    }
    let path = |name| object_path(&run, ObjectName(name));
    fs::remove_file(path(2)).unwrap();
    fs::write(path(2), "short").unwrap();
    fs::remove_file(path(3)).unwrap();
    fs::create_dir(path(6)).unwrap();
    fs::write(run.path().join("objects/diary"), "foreign").unwrap();
    let folder = run.path().join("objects");
    drop(run);

    let run = reopened(&state, "run");
    let known = [(1, 5), (2, 9), (3, 7), (5, 0), (6, 1)];
    let lost = run
        .objects()
        .retain(
            &known.map(|(name, length)| Object {
                name: ObjectName(name),
                length,
                digest: None,
            }),
            u64::MAX,
        )
        .unwrap();
    let lost_object = |name, expected, found| LostObject {
        name: ObjectName(name),
        expected,
        found,
    };
    assert_eq!(
        lost,
        [
            lost_object(2, 9, Some(5)),
            lost_object(3, 7, None),
            lost_object(6, 1, None)
        ]
    );
    assert_eq!(&*run.objects().map(ObjectName(1)).unwrap(), b"whole");
    assert!(run.objects().map(ObjectName(5)).unwrap().is_empty());
    assert_eq!(run.budget().used(), 5);
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
    run.objects().put(ObjectName(2), b"shortened").unwrap();
    assert!(run.objects().release(ObjectName(1)).unwrap());
    assert_eq!(run.budget().used(), 9);
}

/// A recorded run with the objects 1 and 2, each of them `whole`.
fn run_with_two_objects(state: &StateFolder) -> (RunFolder, [Object; 2]) {
    let run = recorded_run(state, "run");
    run.record(false);
    let names = [ObjectName(1), ObjectName(2)];
    let written = names.map(|name| run.objects().put(name, b"whole").unwrap());
    (run, written)
}

/// A flipped bit that kept the length once went unnoticed, and the job's result was wrong.
#[test]
fn restored_object_with_other_bytes_is_lost() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let (run, written) = run_with_two_objects(&state);
    let names = [ObjectName(1), ObjectName(2)];
    flip(&object_path(&run, names[1]));
    drop(run);

    let run = reopened(&state, "run");
    let lost = run.objects().retain(&written, u64::MAX).unwrap();
    let found = Some(5);
    let (name, expected) = (names[1], 5);
    assert_eq!(
        lost,
        [LostObject {
            name,
            expected,
            found
        }]
    );
    assert_eq!(&*run.objects().map(names[0]).unwrap(), b"whole");
    // The task that made it gives it again.
    run.objects().put(name, b"whole").unwrap();
    assert_eq!(&*run.objects().map(name).unwrap(), b"whole");
}

#[test]
fn object_that_was_not_compared_at_the_resume_is_compared_at_its_first_use() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let (run, written) = run_with_two_objects(&state);
    let names = [ObjectName(1), ObjectName(2)];
    drop(run);

    let run = reopened(&state, "run");
    assert!(run.objects().retain(&written, 0).unwrap().is_empty());
    flip(&object_path(&run, names[1]));
    let error = run.objects().map(names[1]).unwrap_err();
    assert_eq!(error.code(), "store.changed-object");
    // The next process of the run finds it missing and has it recomputed.
    assert!(!object_path(&run, names[1]).exists());
    // What was compared once is compared again when somebody has written to it.
    assert_eq!(&*run.objects().map(names[0]).unwrap(), b"whole");
    flip(&object_path(&run, names[0]));
    let error = run.objects().map(names[0]).unwrap_err();
    assert_eq!(error.code(), "store.changed-object");
}

/// Writes to the file of an object in place, so long after the beginning of time: an hour that is
/// told apart from others on every system.
fn overwrite(path: &std::path::Path, bytes: &[u8], after: Duration) {
    let mut permissions = fs::metadata(path).unwrap().permissions();
    permissions.set_mode(0o600);
    fs::set_permissions(path, permissions).unwrap();
    let mut file = fs::File::options().write(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + after).unwrap();
}

/// A process trusted what it had written, so a reader got other bytes than the task had made, if a
/// task of root or of the same user overwrote its input.
#[test]
fn object_that_is_overwritten_in_place_is_found_at_its_next_use() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let (run, written) = run_with_two_objects(&state);
    let [first, second] = written.map(|object| object.name);
    overwrite(&object_path(&run, first), b"whole", Duration::ZERO);
    assert_eq!(&*run.objects().map(first).unwrap(), b"whole", "same bytes");
    for name in [first, second] {
        overwrite(&object_path(&run, name), b"whale", Duration::from_secs(1));
        let error = run.objects().share(name).unwrap_err();
        assert_eq!(error.code(), "store.changed-object");
        assert!(!object_path(&run, name).exists());
    }
}

/// A file with a second name is copied, and the copy is what nobody may write to.
#[test]
fn adopted_file_that_is_overwritten_in_place_is_found_at_its_next_use() {
    let home = TempDir::new().unwrap();
    let run = RunFolder::create(&state_in(&home), "run", u64::MAX).unwrap();
    let [moved, copied] = ["moved", "copied"].map(|purpose| {
        let path = run.scratch().path(1, 0, purpose).unwrap();
        fs::write(&path, "whole").unwrap();
        path
    });
    fs::hard_link(&copied, home.path().join("second name")).unwrap();
    for (name, path) in [(ObjectName(1), moved), (ObjectName(2), copied)] {
        run.objects().adopt(name, &path).unwrap();
        assert_eq!(&*run.objects().map(name).unwrap(), b"whole");
        overwrite(&object_path(&run, name), b"whale", Duration::ZERO);
        let error = run.objects().share(name).unwrap_err();
        assert_eq!(error.code(), "store.changed-object");
    }
}

/// Without a digest nobody can tell that the bytes are still the same.
#[test]
fn object_without_a_digest_is_lost_as_soon_as_somebody_has_written_to_it() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let run = RunFolder::create(&state, "run", u64::MAX).unwrap();
    let object = run.objects().put(ObjectName(1), b"whole").unwrap();
    assert_eq!(object.digest, None, "the run is not recorded");
    assert!(run.objects().verify(object.name).is_ok());
    overwrite(&object_path(&run, object.name), b"whale", Duration::ZERO);
    let error = run.objects().verify(object.name).unwrap_err();
    assert_eq!(error.code(), "store.changed-object");
}

#[test]
fn long_file_gets_its_digest_in_the_background() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let run = recorded_run(&state, "run");
    run.record(false);
    let scratch = run.scratch().path(1, 0, "out").unwrap();
    let length = DIGEST_AT_COMMIT_BYTES_MAX + 1;
    fs::write(&scratch, vec![7; length as usize]).unwrap();
    let name = ObjectName(1);
    let object = run.objects().adopt(name, &scratch).unwrap();
    assert_eq!(object.digest, None);
    let digests = run.path().join("digests");
    let deadline = Instant::now() + Duration::from_secs(600);
    while !fs::read_to_string(&digests).is_ok_and(|text| text.ends_with('\n')) {
        assert!(Instant::now() < deadline, "no digest");
        std::thread::yield_now();
    }
    flip(&object_path(&run, name));
    drop(run);

    let run = reopened(&state, "run");
    let lost = run.objects().retain(&[object], u64::MAX).unwrap();
    assert_eq!(lost.len(), 1);
}

/// Flips a bit in the middle of a read-only file.
fn flip(path: &std::path::Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn restored_spill_is_read_and_released_and_new_output_goes_to_a_new_file() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let run = recorded_run(&state, "run");
    let first = run.spill().append(b"first").unwrap();
    let second = run.spill().append(b"second").unwrap();
    let path = run.scratch().path(1, 0, "stdout").unwrap();
    fs::write(&path, "adopted and released meanwhile").unwrap();
    run.spill().adopt(&path).unwrap();
    let beyond = Extent {
        offset: 8,
        length: 100,
        ..first
    };
    let elsewhere = Extent { blob: 7, ..first };
    drop(run);

    let run = reopened(&state, "run");
    let part = Extent {
        offset: second.offset + 3,
        length: 3,
        ..second
    };
    let lost = run
        .spill()
        .restore([first, beyond, part, elsewhere])
        .unwrap();
    assert_eq!(lost, [beyond, elsewhere]);
    assert_eq!(run.spill().read(part).unwrap(), b"ond");
    assert_eq!(run.budget().used(), 11);
    let files = run.path().join("spill");
    assert_eq!(fs::read_dir(&files).unwrap().count(), 1);
    let more = run.spill().append(b"more").unwrap();
    assert_eq!((more.blob, more.offset), (8, 0));
    run.spill().release(first).unwrap();
    run.spill().release(part).unwrap();
    assert!(!files.join(first.blob.to_string()).exists());
    assert_eq!(run.budget().used(), 4);
    assert_eq!(run.spill().read(more).unwrap(), b"more");
}

/// A flipped bit of spilled output that kept the length was once released.
#[test]
fn restored_spill_with_other_bytes_is_lost_as_a_whole_range() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let run = recorded_run(&state, "run");
    run.record(false);
    let first = run.spill().append(b"first").unwrap();
    let second = run.spill().append(b"second").unwrap();
    let path = run.scratch().write(1, 0, "stdout", b"adopted").unwrap();
    let adopted = run.spill().adopt(&path).unwrap();
    let file = |extent: Extent| run.path().join("spill").join(extent.blob.to_string());
    // The middle of the two is in the second one.
    flip(&file(first));
    let files = [file(first), file(adopted)];
    drop(run);

    let part = Extent {
        offset: second.offset + 3,
        length: 3,
        ..second
    };
    let run = reopened(&state, "run");
    let restored = |run: &RunFolder| run.spill().restore([first, part, adopted]).unwrap();
    assert_eq!(restored(&run), [part]);
    assert_eq!(run.spill().read(first).unwrap(), b"first");
    flip(&files[1]);
    // Once more in the same process, as when records are given up.
    assert_eq!(restored(&run), [part, adopted]);
    assert_eq!(run.budget().used(), 11);
}

#[test]
fn restoring_nothing_leaves_nothing() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let run = recorded_run(&state, "run");
    run.objects().put(ObjectName(1), b"object").unwrap();
    run.spill().append(b"output").unwrap();
    drop(run);
    let run = reopened(&state, "run");
    assert!(run.objects().retain(&[], u64::MAX).unwrap().is_empty());
    assert!(run.spill().restore([]).unwrap().is_empty());
    assert_eq!(run.budget().used(), 0);
    for folder in ["objects", "spill"] {
        assert_eq!(fs::read_dir(run.path().join(folder)).unwrap().count(), 0);
    }
    assert_eq!(run.spill().append(b"afresh").unwrap().blob, 0);
}

#[test]
fn state_of_another_version_is_not_renewed_over_a_run_that_can_be_resumed() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    drop(recorded_run(&state, "unended"));
    fs::remove_file(state.path().join("format")).unwrap();
    fs::write(state.path().join("format"), "ciel-state 99\n").unwrap();
    let cleaned = StateFolder::renew(state.path(), Cleaning::Ended).unwrap();
    assert_eq!(cleaned.unended, ["unended"]);
    let refused = StateFolder::open(state.path()).unwrap_err();
    assert_eq!(refused.code(), "store.other-format");
    let cleaned = StateFolder::renew(state.path(), Cleaning::All).unwrap();
    assert_eq!(cleaned.removed, ["unended"]);
    StateFolder::open(state.path()).unwrap();
}
