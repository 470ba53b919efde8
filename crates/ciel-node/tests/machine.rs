//! What the node places where, one situation at a time.

#![allow(missing_docs)]

use ciel_model::{AttemptNumber, Class, OrderLabel, Pool, Resources, TaskKey, limits};
use ciel_node::{Action, AttemptKey, Capacity, Event, Node, Slot, WorkerKey};

/// What the strands of these tests have run before they wait.
const RAN_US: u64 = 2_000;

struct World {
    now: u64,
    node: Node,
}

impl World {
    fn new(cores: u32, serial: bool) -> World {
        let resources = cores_of(cores);
        let node = Node::new(Capacity {
            resources,
            threads: cores,
            serial,
        });
        World { now: 0, node }
    }

    /// What the node wants done, one word each: `3:process`, `3:thread`, `3:worker0`, … .
    fn tell(&mut self, event: Event) -> String {
        self.tell_all([event])
    }

    /// The same of several events with one search for places.
    fn tell_all<const N: usize>(&mut self, events: [Event; N]) -> String {
        let mut actions = Vec::new();
        self.node.handle(self.now, events, &mut actions);
        let words: Vec<String> = actions.iter().map(word).collect();
        words.join(" ")
    }

    fn offer(&mut self, task: u64, class: Class, resources: Resources) -> String {
        let event = self.offered(task, class, resources);
        self.tell(event)
    }

    fn offered(&self, task: u64, class: Class, resources: Resources) -> Event {
        Event::TaskOffered {
            run: run(task),
            label: label(task, 0),
            class,
            resources,
            resumed: None,
        }
    }

    fn resume(&mut self, task: u64, executor: &str) -> String {
        self.tell(Event::TaskOffered {
            run: run(task),
            label: label(task, 0),
            class: Class::Pooled(Pool::new(executor, 1)),
            resources: cores_of(1),
            resumed: Some(RAN_US),
        })
    }

    fn process(&mut self, task: u64, cores: u32) -> String {
        self.offer(task, Class::Process, cores_of(cores))
    }

    fn pooled(&mut self, task: u64, executor: &str) -> String {
        self.offer(task, Class::Pooled(Pool::new(executor, 1)), cores_of(1))
    }

    fn relabeled(&mut self, task: u64, position: u64, epoch: u64) -> String {
        let (run, label) = (run(task), label(position, epoch));
        self.tell(Event::TaskRelabeled { run, label })
    }

    fn script(&mut self, task: u64) -> String {
        self.offer(task, Class::Coordination, cores_of(1))
    }

    fn left(&mut self, task: u64) -> String {
        self.tell(Event::TaskLeft {
            run: run(task),
            parked: false,
        })
    }

    fn parked(&mut self, task: u64) -> String {
        self.tell(Event::TaskLeft {
            run: run(task),
            parked: true,
        })
    }

    fn ready(&mut self, worker: u64) -> String {
        self.tell(Event::WorkerReady {
            worker: WorkerKey(worker),
        })
    }

    fn lend(&mut self, running: u64) -> Option<u64> {
        let lent = self.node.lend(run(running));
        lent.map(|run| run.task.0)
    }

    fn returned(&mut self, task: u64) -> String {
        self.tell(Event::TaskReturned { run: run(task) })
    }

    fn followed(&mut self, task: u64, next: u64) -> String {
        let (run, next) = (run(task), run(next));
        self.tell(Event::TaskFollowed { run, next })
    }

    /// A worker that runs task 1 while others of its pool wait.
    fn busy(waiting: &[u64]) -> World {
        let mut world = World::new(1, false);
        world.pooled(1, "p");
        assert_eq!(world.ready(0), "1:worker0");
        for task in waiting {
            assert_eq!(world.pooled(*task, "p"), "");
        }
        world
    }
}

fn run(task: u64) -> AttemptKey {
    AttemptKey {
        task: TaskKey(task),
        attempt: AttemptNumber(0),
    }
}

fn cores_of(cores: u32) -> Resources {
    Resources {
        millicores: cores * 1000,
        ..Resources::default()
    }
}

fn word(action: &Action) -> String {
    match action {
        Action::Place { run, place } => {
            let place = match place {
                Slot::Thread => "thread".to_string(),
                Slot::Process => "process".to_string(),
                Slot::Worker(worker) => format!("worker{}", worker.0),
            };
            format!("{}:{place}", run.task.0)
        }
        Action::NextTurn { run } => format!("{}:turn", run.task.0),
        Action::Refuse { run, .. } => format!("{}:refused", run.task.0),
        Action::StartWorker { worker, pool } => format!("start{}({pool})", worker.0),
        Action::StopWorker { worker } => format!("stop{}", worker.0),
        Action::DropParked { worker, task } => format!("drop{}({})", worker.0, task.0),
        Action::ContinuationLost { task } => format!("lost{}", task.0),
    }
}

/// That of a task whose number is its position in the serial order.
fn label(position: u64, epoch: u64) -> OrderLabel {
    OrderLabel { position, epoch }
}

#[test]
fn waiting_tasks_are_placed_by_their_newest_labels() {
    let mut world = World::new(1, false);
    assert_eq!(world.process(1, 1), "1:process");
    for task in [5, 6, 7] {
        assert_eq!(world.process(task, 1), "");
    }
    assert_eq!(world.relabeled(5, 90, 2), "");
    assert_eq!(world.relabeled(7, 80, 2), "");
    // One that comes late is older than what is known.
    assert_eq!(world.relabeled(7, 10, 1), "");
    assert_eq!(world.left(1), "6:process");
    assert_eq!(world.left(6), "7:process");
    assert_eq!(world.left(7), "5:process");
}

#[test]
fn lent_task_that_was_relabeled_returns_to_its_new_place_in_the_queue() {
    let mut world = World::new(1, false);
    assert_eq!(world.pooled(1, "p"), "start0(p)");
    assert_eq!(world.ready(0), "1:worker0");
    for task in [2, 3, 4, 5] {
        assert_eq!(world.pooled(task, "p"), "");
    }
    assert_eq!(world.lend(1), Some(2));
    assert_eq!(world.relabeled(2, 9, 1), "");
    assert_eq!(world.returned(2), "");
    assert_eq!(world.left(1), "3:worker0");
}

#[test]
fn freed_core_goes_to_the_earliest_in_serial_order() {
    let mut world = World::new(1, false);
    assert_eq!(world.process(9, 1), "9:process");
    assert_eq!(world.process(5, 1), "");
    assert_eq!(world.process(3, 1), "");
    assert_eq!(world.process(4, 1), "");
    assert_eq!(world.left(9), "3:process");
    assert_eq!(world.left(3), "4:process");
    assert_eq!(world.left(4), "5:process");
}

#[test]
fn task_made_ready_by_one_that_ends_gets_its_worker() {
    // A chain of tasks went from worker to worker, and each link had to wake the other process.
    let mut world = World::new(2, false);
    assert_eq!(world.pooled(1, "p"), "start0(p)");
    assert_eq!(world.ready(0), "1:worker0");
    assert_eq!(world.pooled(2, "p"), "start1(p)");
    assert_eq!(world.ready(1), "2:worker1");
    assert_eq!(world.left(1), "");
    let offered = world.offered(3, Class::Pooled(Pool::new("p", 1)), cores_of(1));
    let left = Event::TaskLeft {
        run: run(2),
        parked: false,
    };
    assert_eq!(world.tell_all([offered, left]), "3:worker1");
}

#[test]
fn process_is_placed_behind_tasks_that_only_wait_for_a_worker() {
    let mut world = World::new(2, false);
    assert_eq!(world.pooled(5, "p"), "start0(p)");
    assert_eq!(world.pooled(6, "p"), "start1(p)");
    assert_eq!(world.pooled(3, "p"), "");
    assert_eq!(world.process(7, 1), "7:process");
    assert_eq!(world.pooled(4, "p"), "");
    assert_eq!(world.ready(0), "3:worker0");
    assert_eq!(world.left(7), "");
    assert_eq!(world.ready(1), "4:worker1");
}

#[test]
fn scripts_do_not_wait_for_computation() {
    let mut world = World::new(1, false);
    assert_eq!(world.process(1, 1), "1:process");
    assert_eq!(world.script(2), "2:thread");
    assert_eq!(world.script(3), "");
    assert_eq!(world.left(2), "3:thread");
}

#[test]
fn task_larger_than_the_machine_is_refused() {
    let mut world = World::new(2, false);
    assert_eq!(world.process(1, 3), "1:refused");
    assert_eq!(world.node.queued(), 0);
}

#[test]
fn small_task_overtakes_one_that_does_not_fit_but_not_for_ever() {
    let mut world = World::new(2, false);
    assert_eq!(world.process(900, 1), "900:process");
    assert_eq!(world.process(0, 2), "");
    let mut overtook = 0;
    for task in 1..=u64::from(limits::OVERTAKEN_MAX) + 50 {
        if world.process(task, 1).is_empty() {
            break;
        }
        overtook += 1;
        world.left(task);
    }
    assert_eq!(overtook, limits::OVERTAKEN_MAX);
    assert!(world.left(900).starts_with("0:process"));
}

#[test]
fn withdrawn_task_is_passed_over() {
    let mut world = World::new(1, false);
    world.process(1, 1);
    world.process(2, 1);
    world.process(3, 1);
    assert_eq!(world.tell(Event::TaskWithdrawn { run: run(2) }), "");
    assert_eq!(world.left(1), "3:process");
}

#[test]
fn task_withdrawn_in_the_instant_of_its_placing_gives_its_place_back() {
    // A task was offered, placed and cancelled in one event of the graph, which therefore never
    // began it: the place was taken for ever.
    let mut world = World::new(1, false);
    assert_eq!(world.process(1, 1), "1:process");
    assert_eq!(world.process(2, 1), "");
    assert_eq!(
        world.tell(Event::TaskWithdrawn { run: run(1) }),
        "2:process"
    );
}

#[test]
fn serial_mode_runs_one_thing_at_a_time_and_children_first() {
    let mut world = World::new(4, true);
    assert_eq!(world.script(9), "9:thread");
    assert_eq!(world.process(3, 1), "");
    assert_eq!(
        world.tell(Event::TaskPreempted { run: run(9) }),
        "3:process"
    );
    assert_eq!(world.script(5), "");
    assert_eq!(world.process(7, 4), "");
    assert_eq!(world.left(3), "5:thread");
    assert_eq!(world.left(5), "7:process");
    assert_eq!(world.left(7), "9:turn");
    assert_eq!(world.left(9), "");
}

#[test]
fn preempted_scripts_and_new_ones_go_by_turns() {
    let mut world = World::new(1, false);
    world.script(1);
    world.script(2);
    world.script(3);
    let preempt = |world: &mut World, task| world.tell(Event::TaskPreempted { run: run(task) });
    let mut turns = Vec::new();
    let mut at = 1;
    for _ in 0..7 {
        let next = preempt(&mut world, at);
        at = next.split(':').next().unwrap().parse().unwrap();
        turns.push(next);
    }
    for task in ["1:", "2:", "3:"] {
        let taken = turns.iter().filter(|turn| turn.starts_with(task)).count();
        assert!(taken >= 2, "{task} {turns:?}");
    }
}

#[test]
fn preempted_script_that_ends_loses_its_turn() {
    let mut world = World::new(1, false);
    world.script(1);
    world.script(2);
    assert_eq!(world.tell(Event::TaskPreempted { run: run(1) }), "2:thread");
    assert_eq!(world.left(1), "");
    assert_eq!(world.left(2), "");
    assert_eq!(world.node.queued(), 0);
}

#[test]
fn workers_are_started_together_as_far_as_cores_reach_and_used_again() {
    let mut world = World::new(2, false);
    assert_eq!(world.pooled(1, "py"), "start0(py)");
    assert_eq!(world.pooled(2, "py"), "start1(py)");
    assert_eq!(world.pooled(4, "py"), "");
    assert_eq!(world.ready(0), "1:worker0");
    assert_eq!(world.left(1), "2:worker0");
    assert_eq!(world.left(2), "4:worker0");
    assert_eq!(world.ready(1), "");
    assert_eq!(world.left(4), "");
    assert_eq!(world.pooled(3, "py"), "3:worker0");
}

#[test]
fn parked_strand_goes_on_in_its_worker_and_waits_for_it() {
    let mut world = World::new(2, false);
    world.pooled(1, "py");
    assert_eq!(world.ready(0), "1:worker0");
    assert_eq!(world.parked(1), "");
    assert_eq!(world.pooled(2, "py"), "2:worker0");
    assert_eq!(world.resume(1, "py"), "");
    assert_eq!(world.left(2), "1:worker0");
}

#[test]
fn worker_gone_is_told_for_each_strand_parked_there() {
    let mut world = World::new(1, false);
    world.pooled(1, "py");
    world.ready(0);
    world.parked(1);
    assert_eq!(world.pooled(2, "py"), "2:worker0");
    assert_eq!(
        world.tell(Event::WorkerGone {
            worker: WorkerKey(0)
        }),
        "lost1"
    );
    assert_eq!(world.left(2), "");
    assert_eq!(world.resume(1, "py"), "start1(py)");
    assert_eq!(world.ready(1), "1:worker1");
}

#[test]
fn forgotten_strand_is_dropped_where_it_is_parked() {
    let mut world = World::new(1, false);
    world.pooled(1, "py");
    world.ready(0);
    world.parked(1);
    assert_eq!(
        world.tell(Event::TaskForgotten { task: TaskKey(1) }),
        "drop0(1)"
    );
    assert_eq!(
        world.tell(Event::WorkerGone {
            worker: WorkerKey(0)
        }),
        ""
    );
}

#[test]
fn withdrawn_strand_is_dropped_where_it_is_parked() {
    // Withdrawing forgot the home without a word, so the copy stayed in the worker.
    let mut world = World::new(1, false);
    world.pooled(1, "py");
    world.ready(0);
    world.parked(1);
    assert_eq!(world.pooled(2, "py"), "2:worker0");
    assert_eq!(world.resume(1, "py"), "");
    assert_eq!(world.tell(Event::TaskWithdrawn { run: run(1) }), "drop0(1)");
    assert_eq!(world.left(2), "");
}

#[test]
fn idle_worker_of_another_kind_makes_room() {
    let mut world = World::new(1, false);
    for (task, executor) in [(1, "a"), (2, "b"), (3, "c")] {
        world.pooled(task, executor);
        world.ready(task - 1);
        world.left(task);
    }
    assert_eq!(world.pooled(4, "d"), "stop0 start3(d)");
}

#[test]
fn worker_that_keeps_a_strand_gives_way_when_nothing_else_can() {
    // One slot allows three workers. When each kept a strand that waited for a task of a fourth
    // kind, that one could never start and the job never ended.
    let mut world = World::new(1, false);
    for (task, executor) in [(1, "a"), (2, "b"), (3, "c")] {
        world.pooled(task, executor);
        world.ready(task - 1);
        world.parked(task);
    }
    assert_eq!(world.pooled(4, "d"), "lost1 stop0 start3(d)");
    assert_eq!(world.ready(3), "4:worker3");
}

#[test]
fn worker_that_retires_gets_nothing_new_and_goes_on_with_what_it_keeps() {
    let mut world = World::new(1, false);
    let retired = |worker| Event::WorkerRetired {
        worker: WorkerKey(worker),
    };
    world.pooled(1, "py");
    world.ready(0);
    world.parked(1);
    assert_eq!(world.pooled(2, "py"), "2:worker0");
    assert_eq!(world.tell(retired(0)), "");
    assert_eq!(world.left(2), "");
    assert_eq!(world.pooled(3, "py"), "start1(py)");
    assert_eq!(world.ready(1), "3:worker1");
    assert_eq!(world.resume(1, "py"), "");
    assert_eq!(world.left(3), "1:worker0");
}

#[test]
fn workers_that_have_retired_take_no_room_and_are_not_kept_without_bound() {
    let mut world = World::new(1, false);
    let mut told = Vec::new();
    for worker in 0..5 {
        world.pooled(2 * worker, "py");
        world.ready(worker);
        world.parked(2 * worker);
        world.pooled(2 * worker + 1, "py");
        told.push(world.tell(Event::WorkerRetired {
            worker: WorkerKey(worker),
        }));
        world.left(2 * worker + 1);
    }
    assert_eq!(told, ["", "", "", "lost0 stop0", "lost2 stop1"]);
}

#[test]
fn strand_whose_worker_is_busy_goes_on_elsewhere_when_waiting_would_cost_more() {
    let mut world = World::new(2, false);
    world.pooled(1, "py");
    world.pooled(2, "py");
    world.ready(0);
    world.ready(1);
    assert_eq!(world.parked(1), "");
    assert_eq!(world.pooled(3, "py"), "3:worker0");
    assert_eq!(world.left(2), "");
    assert_eq!(world.resume(1, "py"), "");
    let patience = RAN_US + limits::RESUME_PATIENCE_US;
    assert_eq!(world.node.next_deadline(), Some(patience));
    world.now = patience;
    assert_eq!(world.tell(Event::Ticked), "drop0(1) lost1 1:worker1");
    assert_eq!(world.node.next_deadline(), None);
}

#[test]
fn strand_that_cannot_be_replayed_waits_for_its_worker_however_long() {
    let mut world = World::new(2, false);
    world.pooled(1, "py");
    world.pooled(2, "py");
    world.ready(0);
    world.ready(1);
    world.parked(1);
    world.pooled(3, "py");
    world.left(2);
    let resumed = Some(u64::MAX);
    let offered = Event::TaskOffered {
        run: run(1),
        label: label(1, 0),
        class: Class::Pooled(Pool::new("py", 1)),
        resources: cores_of(1),
        resumed,
    };
    assert_eq!(world.tell(offered), "");
    world.now = u64::MAX / 2;
    assert_eq!(world.tell(Event::Ticked), "");
    assert_eq!(world.left(3), "1:worker0");
}

#[test]
fn lent_task_takes_the_place_of_the_one_before_it() {
    let mut world = World::busy(&[5, 3, 4]);
    assert_eq!(world.lend(1), Some(3));
    assert!(world.node.is_lent(run(3)));
    assert_eq!(world.followed(1, 3), "3:worker0");
    assert!(!world.node.is_lent(run(3)));
    assert_eq!(world.left(3), "4:worker0");
    assert_eq!(world.left(4), "5:worker0");
}

#[test]
fn task_that_was_offered_and_begun_at_once_has_the_place_without_a_queue() {
    let mut world = World::busy(&[5]);
    assert_eq!(world.followed(1, 2), "2:worker0");
    assert_eq!(world.left(2), "5:worker0");
    assert_eq!(world.left(5), "");
    assert_eq!(world.node.placed(), 0);
}

#[test]
fn returned_task_is_placed_elsewhere_in_its_order() {
    let mut world = World::new(2, false);
    world.pooled(1, "p");
    world.pooled(2, "p");
    world.ready(0);
    world.ready(1);
    world.pooled(3, "p");
    world.pooled(4, "p");
    assert_eq!((world.lend(1), world.lend(1)), (Some(3), Some(4)));
    assert_eq!(world.left(2), "");
    assert_eq!(world.returned(4), "4:worker1");
    assert_eq!(world.returned(3), "");
    assert_eq!(world.left(4), "3:worker1");
    assert_eq!(world.returned(3), "");
}

#[test]
fn lent_tasks_are_ready_again_when_their_worker_is_gone() {
    let mut world = World::busy(&[3, 4, 5]);
    assert_eq!((world.lend(1), world.lend(1)), (Some(3), Some(4)));
    let worker = WorkerKey(0);
    assert_eq!(world.tell(Event::WorkerGone { worker }), "");
    assert_eq!(world.left(1), "start1(p)");
    assert_eq!(world.ready(1), "3:worker1");
    assert_eq!(world.left(3), "4:worker1");
}

#[test]
fn withdrawn_task_that_was_lent_is_not_ready_any_more() {
    let mut world = World::busy(&[3, 4]);
    assert_eq!(world.lend(1), Some(3));
    assert_eq!(world.tell(Event::TaskWithdrawn { run: run(3) }), "");
    assert_eq!(world.returned(3), "");
    assert_eq!(world.left(1), "4:worker0");
    assert_eq!(world.node.queued(), 0);
}

#[test]
fn what_needs_something_else_than_the_running_task_is_not_lent() {
    let mut world = World::busy(&[]);
    assert_eq!(world.process(3, 1), "");
    assert_eq!(world.lend(1), None);
    let mut world = World::busy(&[]);
    assert_eq!(world.resume(3, "p"), "");
    assert_eq!(world.lend(1), None);
    let mut world = World::busy(&[]);
    assert_eq!(world.pooled(3, "q"), "");
    assert_eq!(world.lend(1), None);
    assert_eq!(World::busy(&[]).lend(1), None);
}

#[test]
fn one_worker_is_lent_a_share_of_what_waits_and_a_serial_one_nothing() {
    let waiting: Vec<u64> = (2..42).collect();
    assert_eq!(World::busy(&waiting).node.share(), 20);
    assert_eq!(World::busy(&[2]).node.share(), 0);
    let mut serial = World::new(1, true);
    for task in 1..42 {
        serial.pooled(task, "p");
    }
    assert_eq!(serial.node.share(), 0);
}
