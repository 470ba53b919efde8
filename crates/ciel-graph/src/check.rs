//! Invariants, asserted after every event in debug builds and in simulation.

use ciel_model::{FactAct, ObjectKey, TaskKey};
use rustc_hash::FxHashMap;

use crate::functions::FunctionCounts;
use crate::graph::Graph;
use crate::objects::{ObjectState, Recorded, Waiter};
use crate::second_runs::Purpose;
use crate::task::{State, Task};

/// Tasks up to which a debug build checks everything after every event.
#[cfg(debug_assertions)]
const CHECKED_TASKS_MAX: usize = 48;

impl Graph {
    /// Everything, if the graph is small.
    #[cfg(debug_assertions)]
    pub(crate) fn check_some(&self) {
        if self.tasks.len() <= CHECKED_TASKS_MAX && self.objects.len() <= 4 * CHECKED_TASKS_MAX {
            self.check_all();
        }
    }

    /// Asserts all invariants; linear in the size of the graph.
    pub fn check_all(&self) {
        self.check_live();
        self.check_views();
        self.check_holders();
        self.check_records();
        self.check_waiters();
        self.check_deadlines();
        self.check_duplicates();
        let tasks = self.tasks.values();
        self.children.check(tasks.map(|task| task.strand.spawner));
    }

    /// No task runs twice, or would, because it takes long, unless what is said about it allows it.
    fn check_duplicates(&self) {
        let stragglers = self.duplicates.of.values();
        let stragglers = stragglers.filter(|one| one.purpose == Purpose::Straggler);
        for key in stragglers.filter_map(|one| one.task) {
            let purity = self.tasks[&key].descriptor.purity;
            assert!(self.policy.duplicates(purity), "{key:?} is a duplicate");
        }
    }

    fn check_live(&self) {
        let live = self
            .tasks
            .values()
            .filter(|task| task.state != State::Dormant)
            .count();
        assert_eq!(self.live, live as u64, "count of live tasks");
        let looked_up = self.tasks.values().map(|task| &task.state);
        let lookups = looked_up.filter(|state| **state == State::LookedUp).count();
        assert_eq!(self.lookups, lookups as u64, "count of lookups");
    }

    /// Each task is found in serial order and by number, exactly once; the functions count them.
    fn check_views(&self) {
        let all = self.all();
        assert_eq!(all.len(), self.tasks.len(), "tasks in serial order");
        let begin = |key: &TaskKey| self.tasks[key].strand.begin;
        let is_ordered = |pair: &[TaskKey]| self.order.precedes(begin(&pair[0]), begin(&pair[1]));
        assert!(all.windows(2).all(is_ordered), "serial order of tasks");
        let functions = self.functions();
        let live = |counts: &FunctionCounts| counts.spawned - counts.ended();
        let live: u64 = functions.iter().map(|(_, counts)| live(counts)).sum();
        let stands = |task: &Task| task.state == State::Dormant && self.is_stand_in(task);
        let stand_ins = self.tasks.values().filter(|task| stands(task)).count();
        assert_eq!(
            live,
            (self.tasks.len() - stand_ins) as u64,
            "live tasks by function"
        );
    }

    fn check_holders(&self) {
        let mut holders: FxHashMap<ObjectKey, u32> = FxHashMap::default();
        let mut hold = |key: &ObjectKey| *holders.entry(*key).or_default() += 1;
        for task in self.tasks.values() {
            task.table.objects().for_each(|key| hold(&key));
            let stored = task
                .course
                .checkpoint
                .iter()
                .flat_map(|stored| &stored.table);
            stored.chain(&task.inputs).for_each(&mut hold);
            assert!(
                task.course.facts.iter().is_sorted_by(|a, b| a.at < b.at),
                "facts in order"
            );
            for fact in task.course.facts.iter() {
                match &fact.act {
                    FactAct::Spawned { outputs, .. } => outputs.iter().for_each(&mut hold),
                    FactAct::Constructed { object, .. } => hold(object),
                    FactAct::Waited(_) | FactAct::Input { .. } => {}
                }
            }
        }
        self.verdict.held().for_each(|key| hold(&key));
        let remaking = self.remaking.iter().flat_map(|remaking| remaking.held());
        remaking.for_each(|key| hold(&key));
        self.duplicates.held().for_each(|key| hold(&key));
        let mut seen = Vec::new();
        for (key, object) in self.objects.iter() {
            match &object.state {
                ObjectState::Alias(target) => hold(target),
                ObjectState::Failed { source, .. } if *source != key => hold(source),
                ObjectState::Ready(stored) if !seen.contains(&std::sync::Arc::as_ptr(stored)) => {
                    seen.push(std::sync::Arc::as_ptr(stored));
                    stored.value.references.iter().for_each(&mut hold);
                }
                ObjectState::Ready(_)
                | ObjectState::Future { .. }
                | ObjectState::Failed { .. }
                | ObjectState::Dropped => {}
            }
        }
        for (key, object) in self.objects.iter() {
            let counted = holders.get(&key).copied().unwrap_or(0);
            assert_eq!(
                object.holders, counted,
                "holders of {:?}: {object:?}",
                object.name
            );
            assert!(counted > 0, "{:?} has no holder", object.name);
        }
    }

    /// Each output of a recorded spawn knows whose record holds it; what nobody reads is dropped.
    fn check_records(&self) {
        let mut records: FxHashMap<ObjectKey, TaskKey> = FxHashMap::default();
        for (key, task) in self.tasks.iter() {
            for fact in task.course.facts.iter() {
                if let FactAct::Spawned { outputs, .. } = &fact.act {
                    records.extend(outputs.iter().map(|output| (*output, key)));
                }
            }
        }
        for (key, object) in self.objects.iter() {
            let recorded = match object.recorded {
                Recorded::No => None,
                Recorded::By(task) | Recorded::Released(task) => Some(task),
            };
            let counted = records.get(&key).copied();
            assert_eq!(recorded, counted, "the record of {:?}", object.name);
            if let Some(task) = self.objects.recorder_of_unread(key) {
                let asked = self.tasks[&task].course.asked.contains(&key);
                assert!(asked, "{:?} is there, and nobody reads it", object.name);
            }
        }
    }

    fn check_waiters(&self) {
        let mut waits: FxHashMap<TaskKey, u32> = FxHashMap::default();
        let mut follows: FxHashMap<TaskKey, u32> = FxHashMap::default();
        let mut reads: FxHashMap<TaskKey, usize> = FxHashMap::default();
        let mut watching = 0;
        for (_, object) in self.objects.iter() {
            if let ObjectState::Future {
                waiters, producer, ..
            } = &object.state
            {
                for waiter in waiters.iter() {
                    match waiter {
                        Waiter::Blocked(task) => *waits.entry(task).or_default() += 1,
                        Waiter::FirstOf(task, _) => *follows.entry(task).or_default() += 1,
                        Waiter::Reading(task) => *reads.entry(task).or_default() += 1,
                        Waiter::Watching(task, handle) => {
                            let known = self.watches.get(&task);
                            let known = known.is_some_and(|known| known.contains(&handle));
                            assert!(known, "{task:?} watches {handle:?} unknown to itself");
                            watching += 1;
                        }
                    }
                }
                assert!(
                    self.tasks.contains_key(producer),
                    "{:?} has no producer",
                    object.name
                );
            }
        }
        let watches: usize = self.watches.values().map(|watched| watched.len()).sum();
        assert_eq!(watches, watching, "watches of which objects know");
        for key in self.watches.keys() {
            assert!(
                matches!(self.tasks[key].state, State::Running { .. }),
                "{key:?} watches while it does not run"
            );
        }
        for (key, task) in self.tasks.iter() {
            if let State::Waiting { missing } | State::Suspended { missing, .. } = &task.state {
                let found = waits.get(&key).or(follows.get(&key));
                assert_eq!(found, Some(missing), "what {} waits for", task.label());
            }
            let read = reads.remove(&key).unwrap_or(0);
            assert_eq!(read, task.course.reads.len(), "what {} reads", task.label());
            self.check_streams(key, task);
            let left = task.course.first_of.as_ref().map_or(0, |list| list.left());
            let followed = follows.remove(&key).unwrap_or(0);
            assert_eq!(followed, left, "the rest of the list of {}", task.label());
        }
        assert!(reads.is_empty(), "readers that ended: {reads:?}");
        assert!(follows.is_empty(), "lists of tasks that ended: {follows:?}");
    }

    /// Open outputs are those of tasks that have started; what is read is such an output, and no
    /// held task could have committed.
    fn check_streams(&self, key: TaskKey, task: &Task) {
        let writes = task.has_started();
        let label = task.label();
        assert!(
            writes || task.course.open.is_empty(),
            "{label} has open outputs"
        );
        for read in &task.course.reads {
            assert!(self.has_writer(*read), "{label} reads what nobody writes");
        }
        let idle = matches!(task.state, State::Dormant | State::Twin { .. });
        assert!(
            !idle || task.course.reads.is_empty(),
            "{label} reads too early"
        );
        assert!(!self.could_commit(key), "{label} is held for nothing");
    }

    fn check_deadlines(&self) {
        for (at, key) in &self.deadlines {
            assert_eq!(
                self.tasks[key].course.deadline,
                Some(*at),
                "deadline of {key:?}"
            );
        }
    }
}
