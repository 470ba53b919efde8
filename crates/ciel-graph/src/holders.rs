//! Who holds what a task wants to cancel.
//!
//! A task can name what its table holds, and what lies inside of the values that the table holds.
//! Nothing that another task can name is cancelled for it. Recorded facts, and inputs kept for
//! another attempt, name nothing: a replay comes to the same table. It does not know what a
//! cancellation does. Read next: `cancel`.

use ciel_model::{ObjectKey, TaskKey};
use rustc_hash::FxHashSet;

use crate::graph::Graph;
use crate::objects::ObjectState;
use crate::task::State;

/// A search through all that tasks can name.
#[derive(Default)]
struct Search {
    /// Tasks that end unless a task that stays can name their results.
    candidates: FxHashSet<TaskKey>,
    /// Those among them that the canceller named; it may name them still.
    targets: FxHashSet<TaskKey>,
    /// Objects that tasks can name which stay, and objects that only the canceller can name.
    seen: [FxHashSet<ObjectKey>; 2],
    /// Objects to look through, and by whom they are named.
    pending: Vec<(ObjectKey, Namer)>,
}

/// Who can name an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Namer {
    Other,
    Canceller,
}

impl Graph {
    /// The tasks that end when `canceller` gives up these objects: their tasks, as far as no other
    /// task can name the result, with those of their descendants that none can name. Linear in what
    /// all tasks can name, unless the canceller spawned the tasks, did not pass their results on,
    /// and they have spawned nothing.
    pub(crate) fn only_held_by(&self, canceller: TaskKey, objects: &[ObjectKey]) -> Vec<TaskKey> {
        let producers = objects
            .iter()
            .filter_map(|object| self.producer_of(*object));
        let mut targets: Vec<TaskKey> = Vec::new();
        let mut known = FxHashSet::default();
        targets.extend(producers.filter(|producer| known.insert(*producer)));
        let plain = |target: &TaskKey| self.is_held_by_parent_only(canceller, *target);
        if targets.iter().all(plain) {
            return targets;
        }
        let mut all = targets.clone();
        for target in &targets {
            let beneath = self.beneath(*target).into_iter();
            let live = beneath.filter(|key| self.tasks[key].state != State::Dormant);
            all.extend(live.filter(|key| known.insert(*key)));
        }
        let mut search = Search {
            candidates: known,
            targets: targets.into_iter().collect(),
            ..Search::default()
        };
        self.keep_what_others_name(canceller, &mut search);
        all.retain(|key| search.candidates.contains(key));
        all
    }

    /// Whether a task has one result, which only the task that spawned it can name: by its table,
    /// beside the record of the spawn.
    fn is_held_by_parent_only(&self, canceller: TaskKey, target: TaskKey) -> bool {
        let (parent, task) = (&self.tasks[&canceller], &self.tasks[&target]);
        let is_child = task.parent.as_ref().map(|label| label.name) == Some(parent.name);
        let recorded = parent.course.checkpoint.is_none();
        let holders = 1 + u32::from(parent.descriptor.replayable);
        let [output] = task.outputs[..] else {
            return false;
        };
        let object = self.objects.get(output);
        is_child
            && recorded
            && !task.course.spawned
            && task.course.twins.is_empty()
            && object.is_some_and(|object| object.holders == holders)
    }

    fn keep_what_others_name(&self, canceller: TaskKey, search: &mut Search) {
        for (key, _) in self.tasks.iter() {
            if key != canceller && !search.candidates.contains(&key) {
                self.keep_what_it_names(key, search);
            }
        }
        let roots = self.verdict.held();
        search
            .pending
            .extend(roots.map(|root| (root, Namer::Other)));
        let own = self.tasks[&canceller].table.objects();
        search
            .pending
            .extend(own.map(|own| (own, Namer::Canceller)));
        while let Some((object, namer)) = search.pending.pop() {
            self.follow_name(object, namer, search);
        }
    }

    /// This task stays: so does what it can name, and the equal call whose result it takes.
    fn keep_what_it_names(&self, key: TaskKey, search: &mut Search) {
        let task = &self.tasks[&key];
        let named = task.table.objects().map(|object| (object, Namer::Other));
        search.pending.extend(named);
        if let State::Twin { leader } = task.state
            && search.candidates.remove(&leader)
        {
            self.keep_what_it_names(leader, search);
        }
    }

    fn follow_name(&self, object: ObjectKey, namer: Namer, search: &mut Search) {
        let object = self.objects.target(object);
        if !search.seen[namer as usize].insert(object) {
            return;
        }
        match self.objects.settled_state(object) {
            ObjectState::Ready(stored) => {
                let inside = stored.value.references.iter();
                search.pending.extend(inside.map(|inside| (*inside, namer)));
            }
            ObjectState::Future { producer, .. } => {
                let given_up = namer == Namer::Canceller && search.targets.contains(producer);
                if !given_up && search.candidates.remove(producer) {
                    self.keep_what_it_names(*producer, search);
                }
            }
            ObjectState::Failed { .. } | ObjectState::Alias(_) | ObjectState::Dropped => {}
        }
    }
}
