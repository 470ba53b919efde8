//! The core of `ciel-files` under a scheduler that decides at each lock who is next.
//!
//! The modules of strands are compiled again here with locks of `shuttle`, which runs each program
//! in many orders, chosen from seeds; one that fails prints its seed. What is checked: the file has
//! the bytes of the serial elision, at each moment a prefix of them, and nothing blocks for ever.

#![allow(
    dead_code,
    reason = "the modules of the crate serve more than the core"
)]

#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/extent.rs"]
mod extent;
#[path = "../../src/flat.rs"]
mod flat;
#[path = "../../src/form.rs"]
mod form;
#[path = "../../src/gauges.rs"]
mod gauges;
#[path = "../../src/meeting.rs"]
mod meeting;
#[path = "../../src/part.rs"]
mod part;
#[path = "../../src/strand.rs"]
mod strand;
#[path = "../../src/structured.rs"]
mod structured;
#[path = "../../src/target.rs"]
mod target;

/// The locks that take part in the check.
mod sync {
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use std::sync::{Arc, OnceLock};
}

use std::fs;
use std::sync::Arc;

use meeting::{Idle, Join, Meeting, Own, Parted};
use strand::{Node, Pointer, State};
use target::Target;

/// Orders in which each program runs.
const ORDERS: usize = 300;
/// Preemptions of an order, where few are wanted: most mistakes need one or two.
const PREEMPTIONS: usize = 3;

const ROOT: u64 = 1;

/// A file and the strand that has opened it.
struct Opened {
    folder: tempfile::TempDir,
    target: Arc<Target>,
    own: Box<State>,
}

impl Opened {
    fn new() -> Opened {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = fs::File::create(&path).unwrap();
        let target = Arc::new(Target::new(&path, file, ROOT, false, false).unwrap());
        let mut own = State::forked(ROOT, Vec::new(), None);
        own.opened(target.clone());
        Opened {
            folder,
            target,
            own,
        }
    }

    fn expect(mut self, wanted: &str) {
        assert!(self.own.flush(&self.target).unwrap());
        let written = fs::read_to_string(self.folder.path().join("file")).unwrap();
        assert_eq!(written, wanted);
    }
}

/// Writes a text and tries to put it into the file, which has a prefix of all afterwards.
fn write(own: &mut State, target: &Arc<Target>, text: &str, wanted: &str) {
    own.write(target, text.as_bytes()).unwrap();
    own.flush(target).unwrap();
    let written = fs::read_to_string(&target.path).unwrap();
    assert!(wanted.starts_with(&written), "{written}");
}

fn check(program: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(program, ORDERS);
    shuttle::check_pct(program, ORDERS, PREEMPTIONS);
}

/// A join whose second closure was taken.
struct Taken(Meeting);

impl Join for Taken {
    fn root(&self) -> u64 {
        ROOT
    }

    fn pointers(&self) -> Vec<Pointer> {
        Vec::new()
    }

    fn meeting(&self) -> &Meeting {
        &self.0
    }
}

impl Taken {
    fn new() -> Arc<Taken> {
        Arc::new(Taken(Meeting::new()))
    }

    /// Its second strand. Each program here ends it before its own reference to the join.
    fn second(&self) -> Own {
        // SAFETY: as said above.
        Own::Idle(unsafe { Idle::second_of(self) })
    }

    /// What `join` does when both closures have ended; gives the strand that continues.
    fn rejoin(&self) -> Own {
        match self.0.part() {
            Parted {
                first,
                second: None,
            } => first,
            Parted {
                first,
                second: Some((_, second)),
            } => {
                let mut own = first.into_state().unwrap();
                own.join(*second);
                Own::Begun(own)
            }
        }
    }
}

/// As `join` does when another thread takes the second closure: the first strand waits when its
/// closure has ended, the second one begins and looks there at any time.
#[test]
fn second_closure_that_runs_at_any_time_follows_the_first_one() {
    check(|| {
        let mut opened = Opened::new();
        let taken = Taken::new();
        let second = {
            let (taken, target) = (taken.clone(), opened.target.clone());
            shuttle::thread::spawn(move || {
                let mut own = taken.second();
                write(own.state().unwrap(), &target, "c", "abcde");
                write(own.state().unwrap(), &target, "d", "abcde");
                taken.0.end_second(own);
            })
        };
        write(&mut opened.own, &opened.target, "a", "abcde");
        write(&mut opened.own, &opened.target, "b", "abcde");
        taken.0.wait(Own::Begun(opened.own));
        second.join().unwrap();
        opened.own = taken.rejoin().into_state().unwrap();
        write(&mut opened.own, &opened.target, "e", "abcde");
        opened.expect("abcde");
    });
}

/// The second closure writes nothing, but the second closure of a join in it does, which a third
/// thread has taken: the strand between waits without having begun, and begins for that one.
#[test]
fn strand_that_waits_and_has_not_begun_begins_when_the_one_behind_it_writes() {
    check(|| {
        let mut opened = Opened::new();
        let (outer, inner) = (Taken::new(), Taken::new());
        let third = {
            let (inner, target) = (inner.clone(), opened.target.clone());
            shuttle::thread::spawn(move || {
                let mut own = inner.second();
                write(own.state().unwrap(), &target, "b", "abc");
                inner.0.end_second(own);
            })
        };
        let second = {
            let (outer, inner) = (outer.clone(), inner.clone());
            shuttle::thread::spawn(move || {
                inner.0.wait(outer.second());
                third.join().unwrap();
                outer.0.end_second(inner.rejoin());
            })
        };
        write(&mut opened.own, &opened.target, "a", "abc");
        outer.0.wait(Own::Begun(opened.own));
        second.join().unwrap();
        opened.own = outer.rejoin().into_state().unwrap();
        write(&mut opened.own, &opened.target, "c", "abc");
        opened.expect("abc");
    });
}

/// A strand that does nothing leaves neither node nor state.
#[test]
fn second_closure_that_writes_nothing_makes_no_node() {
    check(|| {
        let opened = Opened::new();
        let taken = Taken::new();
        let second = {
            let taken = taken.clone();
            shuttle::thread::spawn(move || taken.0.end_second(taken.second()))
        };
        taken.0.wait(Own::Begun(opened.own));
        second.join().unwrap();
        let Parted { first, second } = taken.0.part();
        assert!(second.is_none());
        assert!(matches!(first, Own::Begun(_)));
    });
}

/// As `fork` does: a chain of strands, each of which ends before the next one on its own time.
#[test]
fn chain_of_strands_that_end_at_any_time_is_absorbed_in_order() {
    check(|| {
        let mut opened = Opened::new();
        let nodes = [Node::new(), Node::new(), Node::new()];
        let last = State::forked(ROOT, Vec::new(), Some(nodes[2].clone()));
        let first = std::mem::replace(&mut opened.own, last);
        nodes[0].end_before(first);
        let threads: Vec<_> = ["a", "b"]
            .into_iter()
            .enumerate()
            .map(|(number, text)| {
                let (before, behind) = (nodes[number].clone(), nodes[number + 1].clone());
                let target = opened.target.clone();
                shuttle::thread::spawn(move || {
                    let mut own = State::forked(ROOT, Vec::new(), Some(before));
                    write(&mut own, &target, text, "abc");
                    own.absorb();
                    behind.end_before(own);
                })
            })
            .collect();
        write(&mut opened.own, &opened.target, "c", "abc");
        for thread in threads {
            thread.join().unwrap();
        }
        opened.expect("abc");
    });
}

/// A join within the second closure of a join, whose own second closure is taken, too: it looks
/// through two nodes.
#[test]
fn joins_within_joins_lead_as_soon_as_all_before_them_wait() {
    check(|| {
        let mut opened = Opened::new();
        let outer = Node::new();
        let second = {
            let (outer, target) = (outer.clone(), opened.target.clone());
            shuttle::thread::spawn(move || {
                let mut own = State::forked(ROOT, Vec::new(), Some(outer.clone()));
                let inner = Node::new();
                let third = {
                    let (inner, target) = (inner.clone(), target.clone());
                    shuttle::thread::spawn(move || {
                        let mut own = State::forked(ROOT, Vec::new(), Some(inner.clone()));
                        write(&mut own, &target, "c", "abcd");
                        inner.end_behind(own);
                    })
                };
                write(&mut own, &target, "b", "abcd");
                inner.wait(own);
                third.join().unwrap();
                let mut own = inner.take_waiting().unwrap();
                own.join(*inner.take_ended().unwrap());
                outer.end_behind(own);
            })
        };
        write(&mut opened.own, &opened.target, "a", "abcd");
        outer.wait(opened.own);
        second.join().unwrap();
        opened.own = outer.take_waiting().unwrap();
        opened.own.join(*outer.take_ended().unwrap());
        write(&mut opened.own, &opened.target, "d", "abcd");
        opened.expect("abcd");
    });
}
