//! Tasks that declare memory share it with the store of objects.

use ciel_model::{Class, Pool, Resources};
use ciel_node::{Action, AttemptKey, Capacity, Event, Kept, Node};
use proptest::prelude::*;

use crate::world::{ROOT, World, attempt_of, cores_of};

/// Bytes of memory of these machines.
const ALL: u64 = 100;

/// Two cores, and memory of which the store may have so much.
fn sharing(bound: u64) -> World {
    World {
        now: 0,
        node: node(bound),
    }
}

fn node(bound: u64) -> Node {
    let capacity = Capacity {
        resources: needs(2, Some(ALL)),
        threads: 2,
        serial: false,
    };
    Node::new(capacity).share_with_store(bound)
}

fn needs(cores: u32, memory_bytes: Option<u64>) -> Resources {
    Resources {
        memory_bytes,
        ..cores_of(cores)
    }
}

impl World {
    fn needing(&mut self, task: u64, memory: u64) -> String {
        self.offer(task, Class::Process, needs(1, Some(memory)))
    }

    fn shrank(&mut self, bytes: u64) -> String {
        self.tell(Event::StoreShrank { bytes })
    }

    fn at(&mut self, now: u64) -> String {
        self.now = now;
        self.tell(Event::Ticked)
    }
}

#[test]
fn task_waits_until_the_store_has_given_its_memory_back() {
    let mut world = sharing(60);
    assert_eq!(world.needing(1, 40), "1:process");
    assert_eq!(world.needing(2, 30), "shrink(30)");
    assert!(world.node.awaits_store());
    assert_eq!(world.shrank(30), "2:process");
    assert_eq!(world.node.lent_to_store(), 30);
}

#[test]
fn store_has_the_memory_again_when_no_task_declares_any() {
    let mut world = sharing(60);
    assert_eq!(world.needing(1, 90), "shrink(10)");
    assert_eq!(world.shrank(10), "1:process");
    assert_eq!(world.left(1), "grow(60)");
    assert_eq!(world.node.lent_to_store(), 60);
}

/// What is lent and given back for each of many tasks would be written to the disk for nothing.
#[test]
fn store_gets_nothing_back_while_a_task_that_declares_memory_waits_for_a_core() {
    let mut world = sharing(60);
    assert_eq!(world.needing(1, 90), "shrink(10)");
    assert_eq!(world.shrank(10), "1:process");
    assert_eq!(world.process(2, 1), "2:process");
    assert_eq!(world.needing(3, 90), "");
    assert_eq!(world.left(1), "3:process");
}

#[test]
fn store_gets_nothing_back_while_a_task_that_declares_memory_runs() {
    let mut world = sharing(60);
    assert_eq!(world.needing(1, 40), "1:process");
    assert_eq!(world.needing(2, 30), "shrink(30)");
    assert_eq!(world.shrank(30), "2:process");
    assert_eq!(world.left(1), "");
    assert_eq!(world.left(2), "grow(60)");
}

#[test]
fn store_is_asked_for_no_more_than_would_be_lacking_if_nothing_else_ran() {
    let mut world = sharing(20);
    assert_eq!(world.needing(1, 70), "1:process");
    assert_eq!(world.needing(2, 80), "");
    assert_eq!(world.left(1), "2:process");
    assert_eq!(world.needing(3, 90), "shrink(10)");
    assert_eq!(world.shrank(10), "");
    assert_eq!(world.left(2), "3:process");
}

#[test]
fn task_that_declares_nothing_does_not_wait_for_the_store() {
    let mut world = sharing(60);
    assert_eq!(world.needing(1, 90), "shrink(10)");
    assert_eq!(world.process(2, 1), "2:process");
}

#[test]
fn store_that_could_not_give_back_enough_is_asked_again_when_a_task_has_left() {
    let mut world = sharing(60);
    assert_eq!(world.process(1, 1), "1:process");
    assert_eq!(world.needing(2, 90), "shrink(10)");
    assert_eq!(world.shrank(50), "");
    assert_eq!(
        world.at(10_000_000),
        "",
        "the first may still free something"
    );
    assert_eq!(world.left(1), "shrink(10)");
    assert_eq!(world.shrank(10), "2:process");
}

#[test]
fn store_that_could_not_give_back_enough_is_asked_again_when_it_has_freed_something() {
    let mut world = sharing(60);
    assert_eq!(world.needing(1, 90), "shrink(10)");
    assert_eq!(world.shrank(50), "");
    assert_eq!(world.tell(Event::StoreFreed), "shrink(10)");
    assert_eq!(world.shrank(10), "1:process");
}

#[test]
fn task_that_cannot_fit_beside_what_the_store_keeps_is_refused_with_what_there_is() {
    let mut world = sharing(60);
    assert_eq!(world.needing(1, 90), "shrink(10)");
    assert_eq!(world.needing(2, 95), "");
    assert_eq!(world.needing(3, 60), "");
    assert_eq!(world.shrank(30), "3:process");
    assert_eq!(world.left(3), "shrink(10)");
    assert_eq!(world.shrank(30), "");
    let again = world.node.next_deadline().unwrap();
    assert_eq!(world.at(again), "shrink(10)");
    let mut actions = Vec::new();
    let bytes = 30;
    let shrank = [Event::StoreShrank { bytes }];
    world.node.handle(world.now, shrank, &mut actions);
    let refused: Vec<&str> = actions.iter().filter_map(refusal).collect();
    let words = |wanted: &str| {
        format!(
            "needs {wanted} bytes of memory, this machine offers 100 bytes, of which 30 bytes are \
             results in memory that others still use or the disk has no room for"
        )
    };
    assert_eq!(refused, [words("90"), words("95")]);
    assert!(actions.contains(&Action::GrowStore { bytes: 60 }));
    assert_eq!(world.node.queued(), 0);
}

/// A worker may have mapped what it keeps beside its tasks, and nothing else would let go of it.
#[test]
fn idle_workers_are_ended_that_keep_no_strand_before_a_task_is_refused() {
    let mut world = sharing(60);
    for (task, worker) in [(1, 0), (2, 1)] {
        world.pooled(task, "py");
        world.ready(worker);
    }
    world.parked(1);
    world.left(2);
    assert_eq!(world.needing(3, 90), "shrink(10)");
    assert_eq!(world.shrank(50), "stop1");
    assert_eq!(world.tell(Event::StoreFreed), "shrink(10)");
    assert_eq!(world.shrank(10), "3:process");
}

/// A root that had been handed over to by one that declared nothing waited for ever.
#[test]
fn root_that_declares_memory_gets_it_from_the_store_or_is_refused() {
    for shrank in [10, 30] {
        let mut world = sharing(60);
        let mut root = world.offered(ROOT, Class::Pooled(Pool::new("py", 1)), needs(1, Some(90)));
        if let Event::TaskOffered { is_root, .. } = &mut root {
            *is_root = true;
        }
        assert_eq!(world.tell(root), "shrink(10)");
        let placed = world.shrank(shrank);
        if shrank == 10 {
            assert_eq!(placed, "start0(py) start1(py)");
            assert_eq!(world.ready(0), "1000:worker0");
            continue;
        }
        let again = world.node.next_deadline().unwrap();
        assert_eq!(world.at(again), "shrink(10)");
        assert_eq!(world.shrank(shrank), "1000:refused grow(60)");
    }
}

fn refusal(action: &Action) -> Option<&str> {
    match action {
        Action::Refuse { lacking, .. } => Some(lacking),
        _ => None,
    }
}

/// A store, tasks, and what each knows of the other.
struct Play {
    node: Node,
    now: u64,
    /// What the store may take, and what it has; some of it is mapped by readers.
    allowed: u64,
    used: u64,
    mapped: u64,
    asked: Option<u64>,
    next: u64,
    needs: Vec<(u64, u64)>,
    placed: Vec<u64>,
    ended: usize,
}

#[derive(Clone, Debug)]
enum Step {
    Offer(Option<u64>),
    /// Of those in their slots, that one leaves.
    Leave(prop::sample::Index),
    Withdraw(prop::sample::Index),
    Fill(u64),
    Release(u64),
    /// Readers have mapped so much of what is there.
    Map(u64),
    Answer,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::option::weighted(0.8, 0..ALL + 10).prop_map(Step::Offer),
        3 => any::<prop::sample::Index>().prop_map(Step::Leave),
        1 => any::<prop::sample::Index>().prop_map(Step::Withdraw),
        2 => (0..ALL).prop_map(Step::Fill),
        1 => (0..ALL).prop_map(Step::Release),
        2 => (0..ALL).prop_map(Step::Map),
        3 => Just(Step::Answer),
        1 => (0..2_000_000u64).prop_map(Step::Pass),
    ]
}

impl Play {
    fn new(bound: u64) -> Play {
        let node = node(bound);
        Play {
            allowed: node.lent_to_store(),
            node,
            now: 0,
            used: 0,
            mapped: 0,
            asked: None,
            next: 0,
            needs: Vec::new(),
            placed: Vec::new(),
            ended: 0,
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Offer(memory) => self.offer(*memory),
            Step::Leave(index) if !self.placed.is_empty() => {
                let task = self.placed.remove(index.index(self.placed.len()));
                self.leave(task);
            }
            Step::Withdraw(index) => {
                let waiting = self.waiting();
                if !waiting.is_empty() {
                    let task = waiting[index.index(waiting.len())];
                    self.ended += 1;
                    self.needs.retain(|(each, _)| *each != task);
                    let attempt = attempt_of(task);
                    self.tell(Event::TaskWithdrawn { attempt });
                }
            }
            Step::Fill(bytes) => self.used = self.allowed.max(self.used).min(self.used + bytes),
            Step::Release(bytes) => self.used = self.used.saturating_sub(*bytes).max(self.mapped),
            Step::Map(bytes) => self.mapped = self.used.min(*bytes),
            Step::Answer => self.answer(),
            Step::Pass(time) => {
                self.now += time;
                self.tell(Event::Ticked);
            }
            Step::Leave(_) => {}
        }
    }

    fn offer(&mut self, memory: Option<u64>) {
        let task = self.next;
        self.next += 1;
        self.needs.push((task, memory.unwrap_or(0)));
        let event = World {
            now: 0,
            node: node(0),
        }
        .offered(task, Class::Process, needs(1, memory));
        self.tell(event);
    }

    fn leave(&mut self, task: u64) {
        self.ended += 1;
        self.needs.retain(|(each, _)| *each != task);
        let (attempt, kept) = (attempt_of(task), Kept::Nothing);
        self.tell(Event::TaskLeft { attempt, kept });
    }

    /// The store has written back what it could.
    fn answer(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.used = self.used.min(self.mapped.max(asked));
            let bytes = self.used.max(asked);
            self.tell(Event::StoreShrank { bytes });
        }
    }

    fn waiting(&self) -> Vec<u64> {
        let all = self.needs.iter().map(|(task, _)| *task);
        all.filter(|task| !self.placed.contains(task)).collect()
    }

    fn need_of(&self, attempt: AttemptKey) -> u64 {
        let found = self.needs.iter().find(|(task, _)| *task == attempt.task.0);
        found.expect("it was offered").1
    }

    fn tell(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.node.handle(self.now, [event], &mut actions);
        for action in actions {
            match action {
                Action::Place { attempt, .. } => self.placed.push(attempt.task.0),
                Action::Refuse { attempt, .. } => {
                    let kept = self.used.max(self.allowed);
                    assert!(self.need_of(attempt) > ALL - kept, "{attempt:?} would fit");
                    self.needs.retain(|(task, _)| *task != attempt.task.0);
                    self.ended += 1;
                }
                Action::ShrinkStore { bytes } => {
                    assert_eq!(self.asked, None, "one request at a time");
                    (self.asked, self.allowed) = (Some(bytes), bytes);
                }
                Action::GrowStore { bytes } => {
                    assert_eq!(self.asked, None);
                    self.allowed = bytes;
                }
                other => panic!("{other:?}"),
            }
        }
        let given = self
            .placed
            .iter()
            .map(|task| self.need_of(attempt_of(*task)));
        let given: u64 = given.sum();
        let has = self.used.max(self.allowed);
        assert!(
            has <= self.node.lent_to_store(),
            "the store has what it is not lent"
        );
        assert!(given + has <= ALL, "{given} and {has} are given");
    }
}

proptest! {
    /// What tasks and the store have never exceeds what there is, whatever the store keeps and
    /// however late it answers; and each task begins, or is refused because it cannot fit.
    #[test]
    fn memory_is_given_once_and_no_task_waits_for_ever(
        bound in 0..ALL + 20,
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut play = Play::new(bound);
        for step in &steps {
            play.take(step);
        }
        let mut rounds = 0;
        while !play.needs.is_empty() {
            rounds += 1;
            prop_assert!(rounds < 1000, "{:?} wait for ever", play.needs);
            play.answer();
            match (play.placed.pop(), play.node.next_deadline()) {
                (Some(task), _) => play.leave(task),
                (None, Some(deadline)) => {
                    play.now = play.now.max(deadline);
                    play.tell(Event::Ticked);
                }
                (None, None) => {}
            }
        }
        prop_assert_eq!(play.ended as u64, play.next);
        play.answer();
        prop_assert_eq!(play.node.lent_to_store(), bound.min(ALL));
    }
}
