//! Random lives of a journal, each crashed after every single act on the disk.
//!
//! What is found afterwards must be a whole beginning of what was appended that holds all that
//! was promised. Read next: `support`, which remembers the moments.

mod support;

use std::sync::Arc;

use ciel_journal::{Durability, Journal, MemoryDisk, Snapshot};
use proptest::prelude::*;
use support::{Moment, WatchedDisk, append_next, by_caller, last_of, write_snapshot};

/// One act of the journal's user.
#[derive(Debug, Clone, Copy)]
enum Step {
    Append(u8),
    Tend,
    Sync,
    Wait,
    BeginSnapshot,
    WriteSnapshot,
    DropSnapshot,
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..6u8).prop_map(Step::Append),
        3 => Just(Step::Tend),
        2 => Just(Step::Sync),
        2 => Just(Step::Wait),
        2 => Just(Step::BeginSnapshot),
        2 => Just(Step::WriteSnapshot),
        1 => Just(Step::DropSnapshot),
        1 => Just(Step::Close),
    ]
}

/// A number below the argument, from a row of given ones that repeats.
fn chooser(row: &[u8]) -> impl FnMut(usize) -> usize + '_ {
    let mut rest = row.iter().cycle();
    let mut turn = 0;
    move |below| {
        turn += 1;
        let given = rest.next().map_or(0, |byte| usize::from(*byte));
        (given * 31 + turn * given) % below
    }
}

/// Does the steps; gives all moments of it.
fn live(disk: &Arc<WatchedDisk>, durability: Durability, steps: &[Step]) -> Vec<Moment> {
    let opened = Journal::open_on(disk.clone(), by_caller(durability));
    let (journal, recorded) = opened.expect("what a crash leaves can be opened");
    disk.set_appended(journal.appended());
    assert_eq!(last_of(&recorded), journal.appended().0);
    disk.set_promised(journal.safe());
    let mut snapshot: Option<Snapshot> = None;
    for step in steps {
        match step {
            Step::Append(count) => {
                for _ in 0..*count {
                    disk.set_appended(append_next(&journal));
                }
            }
            Step::Tend => journal.tend().unwrap(),
            Step::Sync => journal.sync().unwrap(),
            Step::Wait => {
                let until = journal.appended();
                journal.wait_for(until).unwrap();
                disk.set_promised(until);
            }
            Step::BeginSnapshot => snapshot = snapshot.take().or(journal.begin_snapshot()),
            Step::WriteSnapshot => {
                snapshot.take().map_or(Ok(()), write_snapshot).unwrap();
            }
            Step::DropSnapshot => drop(snapshot.take()),
            Step::Close => {
                let until = journal.appended();
                drop(snapshot.take());
                journal.close().unwrap();
                disk.set_promised(until);
                return disk.take_moments();
            }
        }
    }
    let moments = disk.take_moments();
    drop(snapshot);
    moments
}

fn reopened(disk: MemoryDisk) -> (u64, MemoryDisk) {
    let opened = Journal::open_on(Arc::new(disk.clone()), by_caller(Durability::Process));
    let (journal, recorded) = opened.expect("what a crash leaves can be opened");
    let last = last_of(&recorded);
    assert_eq!(journal.appended().0, last);
    (last, disk)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn killed_at_any_act_has_a_beginning_with_all_that_was_promised(
        lives in prop::collection::vec(prop::collection::vec(step(), 1..24), 1..3),
        at in any::<prop::sample::Index>(),
    ) {
        let (mut disk, mut before) = (MemoryDisk::new(), 0);
        for steps in lives {
            let watched = WatchedDisk::on(disk);
            let moments = live(&watched, Durability::Process, &steps);
            for moment in &moments {
                let (last, _) = reopened(moment.disk.after_kill());
                prop_assert!(moment.promised.max(before) <= last);
                prop_assert!(last <= moment.appended.max(before));
            }
            let moment = &moments[at.index(moments.len())];
            (before, disk) = reopened(moment.disk.after_kill());
        }
    }

    #[test]
    fn power_lost_at_any_act_keeps_what_durable_power_promised(
        lives in prop::collection::vec(prop::collection::vec(step(), 1..24), 1..4),
        at in any::<prop::sample::Index>(),
        fate in prop::collection::vec(any::<u8>(), 1..60),
    ) {
        let (mut disk, mut promised, mut appended) = (MemoryDisk::new(), 0, 0);
        for steps in lives {
            let watched = WatchedDisk::on(disk);
            let moments = live(&watched, Durability::Power, &steps);
            let mut choose = chooser(&fate);
            for moment in &moments {
                let (last, _) = reopened(moment.disk.after_power_failure(&mut choose));
                prop_assert!(moment.promised.max(promised) <= last);
                prop_assert!(last <= moment.appended.max(appended));
            }
            let moment = &moments[at.index(moments.len())];
            (promised, appended) = (
                moment.promised.max(promised),
                moment.appended.max(appended),
            );
            let is_kill = choose(2) == 0;
            disk = if is_kill {
                moment.disk.after_kill()
            } else {
                moment.disk.after_power_failure(choose)
            };
        }
    }

    #[test]
    fn power_lost_without_a_promise_leaves_a_whole_beginning_all_the_same(
        steps in prop::collection::vec(step(), 1..40),
        fate in prop::collection::vec(any::<u8>(), 1..60),
    ) {
        let watched = WatchedDisk::on(MemoryDisk::new());
        let mut choose = chooser(&fate);
        for moment in live(&watched, Durability::Process, &steps) {
            let (last, _) = reopened(moment.disk.after_power_failure(&mut choose));
            prop_assert!(last <= moment.appended);
        }
    }
}

/// The first log had lost its header with the power, so the next opening removed it and the log
/// behind it. The power failed again and kept the first removal only: what was left looked like
/// a log whose snapshot was gone, and was refused as damaged.
#[test]
fn power_lost_while_torn_logs_are_removed_leaves_a_folder_that_opens() {
    let mut disk = MemoryDisk::new();
    let watched = WatchedDisk::on(disk.clone());
    live(
        &watched,
        Durability::Process,
        &[Step::BeginSnapshot, Step::Tend],
    );
    disk = disk.after_kill();
    disk.put_file("log-0000000000", b"");
    let watched = WatchedDisk::on(disk);
    for moment in live(&watched, Durability::Process, &[]) {
        for fates in 0..256 {
            let mut turn = 0;
            let lost = moment.disk.after_power_failure(|below| {
                turn += 1;
                if fates >> (turn % 8) & 1 == 0 {
                    0
                } else {
                    below - 1
                }
            });
            assert_eq!(reopened(lost).0, 0);
        }
    }
}

#[test]
fn killed_while_threads_write_has_all_that_was_promised() {
    let watched = WatchedDisk::on(MemoryDisk::new());
    let journal = Journal::create_on(watched.clone(), Durability::Process).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..400 {
                watched.set_appended(append_next(&journal));
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                while journal.appended().0 < 400 {
                    let until = journal.appended();
                    journal.wait_for(until).unwrap();
                    watched.set_promised(until);
                }
            });
        }
        scope.spawn(|| {
            while journal.appended().0 < 400 {
                let snapshot = journal.begin_snapshot().expect("there is no other");
                write_snapshot(snapshot).unwrap();
            }
        });
    });
    for moment in watched.take_moments() {
        let (last, _) = reopened(moment.disk);
        assert!(moment.promised <= last);
    }
    journal.close().unwrap();
}
