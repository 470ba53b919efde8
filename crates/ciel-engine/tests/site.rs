//! One site without its home: messages and events go in, effects and messages come out.

#![allow(missing_docs)]

use std::sync::Arc;

use ciel_engine::message::{Offer, ToHome, ToSite};
use ciel_engine::site::Site;
use ciel_engine::{Caller, Effect, Event, Reply};
use ciel_graph::{self as graph, Ahead, Assignment, Entry};
use ciel_model::{
    AttemptNumber, Class, Descriptor, Handle, Label, Name, OrderLabel, Pairing, Pool, Resources,
    StrandKey, TaskKey,
};
use ciel_node::{AttemptKey, Capacity, Node, WorkerKey};

const fn attempt_of(task: u64) -> AttemptKey {
    AttemptKey {
        task: TaskKey(task),
        number: AttemptNumber(0),
    }
}

fn class() -> Class {
    Class::Pooled(Pool::new("p", 1))
}

fn cores(count: u32) -> Resources {
    Resources {
        millicores: count * 1000,
        ..Resources::default()
    }
}

fn offer(task: u64) -> ToSite {
    let label = OrderLabel {
        position: task,
        epoch: 0,
    };
    ToSite::Offer(Box::new(Offer {
        attempt: attempt_of(task),
        label,
        class: class(),
        resources: cores(1),
        replay_us: None,
        is_root: false,
        is_limited: false,
        near: Box::default(),
        begun_in: None,
        pairing: Pairing::default(),
    }))
}

fn assignment(task: u64) -> Box<Assignment> {
    Box::new(Assignment {
        task: TaskKey(task),
        attempt: AttemptNumber(0),
        strand: StrandKey(task),
        label: Label {
            what: "t".into(),
            name: Name(u128::from(task)),
        },
        position: Name(u128::from(task)),
        next_action: 0,
        next_handle: Handle(0),
        descriptor: Arc::new(Descriptor::plain("p", class(), "t", b"t".as_slice())),
        entry: Entry::Start(Vec::new()),
        streams: Vec::new(),
        ended: None,
    })
}

fn begin(task: u64) -> ToSite {
    ToSite::Begin(assignment(task))
}

struct Alone {
    site: Site,
}

impl Alone {
    /// A site with that many cores, and a worker on each that has said hello.
    fn new(count: u32) -> Alone {
        let capacity = Capacity {
            resources: cores(count),
            threads: 1,
            serial: false,
        };
        let site = Site::new(Node::new(capacity));
        let mut alone = Alone { site };
        for task in 0..u64::from(count) {
            let told = alone.receive([offer(900 + task)]);
            assert_eq!(told, format!("start worker{task}"));
            let worker = WorkerKey(task);
            let ready = Event::WorkerReady {
                worker,
                prefetches: true,
                slots: 1,
            };
            let placed = alone.tell(ready, Caller::Nobody);
            assert_eq!(placed, format!("placed {}", 900 + task));
            let told = alone.receive([begin(900 + task)]);
            assert_eq!(told, format!("start {} in worker{task}", 900 + task));
        }
        alone
    }

    fn receive<const N: usize>(&mut self, messages: [ToSite; N]) -> String {
        let (mut effects, mut to_home) = (Vec::new(), Vec::new());
        self.site.receive(0, messages, &mut effects, &mut to_home);
        self.site.check_all();
        words(&effects, &to_home)
    }

    fn tell(&mut self, event: Event, caller: Caller) -> String {
        let (mut effects, mut to_home) = (Vec::new(), Vec::new());
        let reply = self.site.tell(0, event, caller, &mut effects, &mut to_home);
        assert_eq!(reply, Reply::Nothing, "the home replies later");
        self.site.check_all();
        words(&effects, &to_home)
    }

    /// A task in a worker ends; perhaps that worker has begun another one by itself.
    fn exit(&mut self, task: u64, worker: u64, follows: Option<u64>) -> String {
        let attempt = attempt_of(task);
        let end = Some(graph::Event::TaskFinished {
            task: attempt.task,
            attempt: attempt.number,
            outputs: Vec::new(),
            printed: false,
            audit: None,
        });
        let caller = Caller::Worker {
            worker: WorkerKey(worker),
            follows: follows.map(attempt_of),
            is_last: true,
        };
        self.tell(Event::TurnEnded { attempt, end }, caller)
    }
}

fn words(effects: &[Effect], to_home: &[ToHome]) -> String {
    let done = effects.iter().map(|effect| match effect {
        Effect::StartWorker { worker, .. } => format!("start worker{}", worker.0),
        Effect::StartInWorker { worker, begun } => {
            format!("start {} in worker{}", begun.assignment.task.0, worker.0)
        }
        Effect::StopInWorker { attempt, .. } => format!("stop {}", attempt.task.0),
        Effect::SendStarts {
            attempt, starts, ..
        } => {
            format!("send {} starts behind {}", starts.len(), attempt.task.0)
        }
        Effect::ReplyLate { attempt, reply } => format!("reply {reply:?} to {}", attempt.task.0),
        effect => format!("{effect:?}"),
    });
    let said = to_home.iter().map(|message| match message {
        ToHome::Placed { attempt, .. } => format!("placed {}", attempt.task.0),
        ToHome::Acted(graph::Event::TaskFinished { task, .. }) => format!("finished {}", task.0),
        ToHome::Acted(graph::Event::TaskLost { task, .. }) => format!("lost {}", task.0),
        ToHome::MayPrefetch { behind, .. } => format!("what follows {}", behind.task.0),
        ToHome::ContinuationLost { task } => format!("no live copy of {}", task.0),
        message => format!("{message:?}"),
    });
    done.chain(said).collect::<Vec<String>>().join(", ")
}

/// A site of two cores at which 1 runs in worker 0, which has received 2 to follow it, and 901 runs
/// in worker 1.
fn with_a_start_ahead() -> Alone {
    let mut alone = Alone::new(2);
    assert_eq!(alone.exit(900, 0, None), "finished 900");
    assert_eq!(alone.receive([offer(1)]), "placed 1");
    assert_eq!(
        alone.receive([begin(1)]),
        "start 1 in worker0, what follows 1"
    );
    let ahead = Ahead {
        assignment: assignment(2),
        awaited: Vec::new(),
    };
    let starts = ToSite::Prefetch {
        behind: attempt_of(1),
        starts: vec![ahead],
    };
    assert_eq!(alone.receive([starts]), "send 1 starts behind 1");
    alone
}

#[test]
fn attempt_that_is_stopped_in_the_batch_in_which_it_begins_never_reaches_its_worker() {
    // Its worker was requested to stop a start that it had not received yet, and then to run it.
    let mut alone = Alone::new(1);
    assert_eq!(alone.exit(900, 0, None), "finished 900");
    assert_eq!(alone.receive([offer(1)]), "placed 1");
    let stop = ToSite::Stop {
        attempt: attempt_of(1),
    };
    assert_eq!(alone.receive([begin(1), stop]), "");
    assert_eq!(alone.receive([offer(2)]), "placed 2");
}

#[test]
fn task_that_its_worker_has_begun_gets_no_second_slot_while_the_home_is_asked() {
    // It was offered before the home had agreed, got a slot in the idle worker, and the slot that
    // it followed into was lost for good.
    let mut alone = with_a_start_ahead();
    assert_eq!(alone.exit(901, 1, None), "finished 901");
    assert_eq!(alone.exit(1, 0, Some(2)), "finished 1, placed 2");
    assert_eq!(alone.receive([offer(2)]), "");
    assert_eq!(
        alone.receive([begin(2)]),
        "start 2 in worker0, what follows 2"
    );
    assert_eq!(alone.receive([offer(3)]), "placed 3");
}

#[test]
fn follower_that_the_home_refuses_stops_and_its_slot_is_free_when_it_has_left() {
    let mut alone = with_a_start_ahead();
    assert_eq!(alone.exit(1, 0, Some(2)), "finished 1, placed 2");
    let refuse = ToSite::Refuse {
        attempt: attempt_of(2),
    };
    assert_eq!(alone.receive([refuse]), "reply FollowerStopped to 1");
    assert_eq!(alone.receive([offer(3)]), "");
    let left = Event::TurnEnded {
        attempt: attempt_of(1),
        end: None,
    };
    assert_eq!(alone.tell(left, Caller::Nobody), "placed 3");
}

#[test]
fn follower_whose_attempt_has_waited_elsewhere_meanwhile_does_not_continue_from_its_start() {
    // The message that it has begun was on its way for so long that the attempt ran at another
    // site, waited there, and was offered to this one again: the home took the one for the other.
    let mut alone = with_a_start_ahead();
    assert_eq!(alone.exit(1, 0, Some(2)), "finished 1, placed 2");
    assert_eq!(alone.receive([offer(2)]), "");
    let mut again = assignment(2);
    again.entry = Entry::Replay {
        inputs: Vec::new(),
        facts: Vec::new(),
        until: 0,
    };
    let told = alone.receive([ToSite::Begin(again)]);
    assert_eq!(told, "reply FollowerStopped to 1, lost 2");
    let left = Event::TurnEnded {
        attempt: attempt_of(1),
        end: None,
    };
    assert_eq!(alone.tell(left, Caller::Nobody), "");
    assert_eq!(alone.receive([offer(3)]), "placed 3");
}

#[test]
fn attempt_that_is_stopped_before_the_home_has_confirmed_its_slot_leaves_it_at_once() {
    // Its first worker had died while the home confirmed it there, and it got a slot in another
    // one, which was requested to stop what it had never begun.
    let mut alone = Alone::new(1);
    assert_eq!(alone.exit(900, 0, None), "finished 900");
    assert_eq!(alone.receive([offer(1)]), "placed 1");
    let stop = ToSite::Stop {
        attempt: attempt_of(1),
    };
    assert_eq!(alone.receive([stop]), "");
    assert_eq!(alone.receive([offer(2)]), "placed 2");
}

#[test]
fn follower_that_is_stopped_in_the_batch_in_which_it_is_confirmed_stops_in_its_worker() {
    // It was forgotten as if its worker had not begun it, and its slot was taken for ever.
    let mut alone = with_a_start_ahead();
    assert_eq!(alone.exit(1, 0, Some(2)), "finished 1, placed 2");
    let stop = ToSite::Stop {
        attempt: attempt_of(2),
    };
    assert_eq!(
        alone.receive([begin(2), stop]),
        "start 2 in worker0, stop 2"
    );
    let left = Event::TurnEnded {
        attempt: attempt_of(2),
        end: None,
    };
    assert_eq!(alone.tell(left, Caller::Nobody), "");
    assert_eq!(alone.receive([offer(3)]), "placed 3");
}

#[test]
fn attempt_that_its_worker_has_left_for_the_next_one_is_not_stopped_there() {
    // Its strand was rolled back before the home had heard of its end: the worker was requested to
    // stop an attempt that it did not run any more.
    let mut alone = with_a_start_ahead();
    assert_eq!(alone.exit(1, 0, Some(2)), "finished 1, placed 2");
    let stop = ToSite::Stop {
        attempt: attempt_of(1),
    };
    let refuse = ToSite::Refuse {
        attempt: attempt_of(2),
    };
    assert_eq!(alone.receive([stop]), "");
    assert_eq!(alone.receive([refuse]), "reply FollowerStopped to 1");
    let left = Event::TurnEnded {
        attempt: attempt_of(1),
        end: None,
    };
    assert_eq!(alone.tell(left, Caller::Nobody), "");
    assert_eq!(alone.receive([offer(3)]), "placed 3");
}

#[test]
fn attempt_whose_worker_is_gone_before_it_begins_is_lost() {
    let mut alone = Alone::new(1);
    assert_eq!(alone.exit(900, 0, None), "finished 900");
    assert_eq!(alone.receive([offer(1)]), "placed 1");
    let worker = WorkerKey(0);
    assert_eq!(alone.tell(Event::WorkerGone { worker }, Caller::Nobody), "");
    assert_eq!(alone.receive([begin(1)]), "lost 1");
}

#[test]
fn live_copy_of_a_task_that_ended_with_its_worker_is_reported_lost() {
    let mut alone = Alone::new(1);
    let worker = WorkerKey(0);
    assert_eq!(alone.tell(Event::WorkerGone { worker }, Caller::Nobody), "");
    let left = Event::TurnEnded {
        attempt: attempt_of(900),
        end: None,
    };
    assert_eq!(alone.tell(left, Caller::Nobody), "");
    let suspend = ToSite::Suspend {
        attempt: attempt_of(900),
        parked: true,
    };
    assert_eq!(alone.receive([suspend]), "no live copy of 900");
}
