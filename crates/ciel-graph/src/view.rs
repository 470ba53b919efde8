//! Queries about a live graph.

use std::ops::Range;
use std::sync::Arc;

use ciel_model::{
    AttemptNumber, Class, Label, Mark, Micros, ObjectKey, Options, OrderLabel, Segmented,
    StrandKey, TaskKey,
};

use crate::functions::FunctionCounts;
use crate::graph::Graph;
use crate::objects::ObjectState;
use crate::story::Moment;
use crate::task::{State, Task};

/// Tasks named at most as those that another waits for.
const MISSING_SHOWN_MAX: usize = 16;

/// References of a task that are looked at to find those.
const MISSING_LOOKED_AT_MAX: usize = 1_024;

/// No task has this key.
const NO_TASK: TaskKey = TaskKey(u64::MAX);

/// How many tasks there were of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Tasks that were spawned.
    pub spawned: u64,
    /// Tasks that ended well, with a result of their own or a kept one.
    pub finished: u64,
    /// Equal calls that shared another's result.
    pub shared: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Attempts that failed and were retried.
    pub retried: u64,
    /// Attempts that were lost with their worker and restarted.
    pub lost: u64,
    /// Tasks that took a result which an earlier run had kept.
    #[serde(default)]
    pub kept: u64,
    /// Of those, tasks of whose result only the digest was there, and that did not run.
    #[serde(default)]
    pub known: u64,
    /// Tasks of whose result only the digest was there, and that ran because the bytes were needed.
    #[serde(default)]
    pub recomputed: u64,
    /// Tasks that ran twice for a check.
    #[serde(default)]
    pub checked: u64,
    /// Of those, tasks whose second run gave another result, as the shell counts them.
    #[serde(default)]
    pub differing: u64,
    /// Tasks that ran for so long that a duplicate was started.
    #[serde(default)]
    pub duplicated: u64,
    /// Of those, tasks whose duplicate ended first.
    #[serde(default)]
    pub overtaken: u64,
}

/// The state of a task, for `ciel ps` and `ciel why`.
#[derive(Clone, Debug, PartialEq)]
pub enum Situation {
    /// Lazy, and not demanded yet.
    Dormant,
    /// Known by the digest of its result, and its bytes are not needed yet.
    Known,
    /// It starts when these are resolved.
    Waiting(Vec<Label>),
    /// An equal call is on its way.
    Twin(Option<Label>),
    /// It waits for a place; true if it has run before.
    Ready(bool),
    /// It runs since then.
    Running(Micros),
    /// It resumes when these are resolved.
    Suspended(Vec<Label>),
    /// It has ended well, and commits after these, whose streams it reads.
    Held(Vec<Label>),
}

/// A live task as users see it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskView {
    /// Its key.
    pub task: TaskKey,
    /// Its printed name.
    pub label: Label,
    /// Which executor.
    pub executor: Arc<str>,
    /// How it is run.
    pub class: Class,
    /// `file:line` of its spawn.
    pub place: String,
    /// The task that spawned it.
    pub parent: Option<Label>,
    /// Its state.
    pub situation: Situation,
    /// What happened to it.
    pub story: Vec<(Micros, Moment)>,
    /// Its options at its spawn.
    pub options: Arc<Options>,
    /// How many times it was restarted.
    pub attempts: u32,
}

impl Graph {
    /// How many tasks there were.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of tasks that have not ended.
    pub fn pending(&self) -> usize {
        self.tasks.len()
    }

    /// Whether that attempt has been offered and not yet placed, withdrawn or given up.
    pub fn awaits_place(&self, task: TaskKey, attempt: AttemptNumber) -> bool {
        self.tasks.get(&task).is_some_and(|task| {
            task.attempt == attempt && matches!(task.state, State::Ready { .. })
        })
    }

    /// Whether a live task takes any input as a stream.
    pub fn takes_streams(&self, task: TaskKey) -> bool {
        self.tasks
            .get(&task)
            .is_some_and(|task| task.takes_streams())
    }

    /// How many children of a strand have not ended, of those that are counted.
    pub fn unfinished_children(&self, strand: StrandKey) -> u32 {
        self.children.of(strand)
    }

    /// Whether a live task reads streams, or others may read what it writes before it ends.
    pub fn has_streams(&self, task: TaskKey) -> bool {
        self.tasks
            .get(&task)
            .is_some_and(|task| task.takes_streams() || !task.descriptor.streams.outputs.is_empty())
    }

    /// The task whose result is the job's.
    pub fn root(&self) -> Option<TaskKey> {
        self.verdict.root.as_ref().map(|(root, _)| *root)
    }

    /// Whether a live task can be kept waiting in the middle without anybody's noticing: it neither
    /// reads nor writes while others do the reverse, and has no time limit.
    pub fn can_be_paused(&self, task: TaskKey) -> bool {
        self.tasks.get(&task).is_some_and(|task| {
            let descriptor = &task.descriptor;
            let is_timed = descriptor.options.timeout_us.is_some();
            !task.takes_streams() && descriptor.streams.outputs.is_empty() && !is_timed
        })
    }

    /// Where a live task begins in the serial order.
    pub fn label_of(&self, task: TaskKey) -> Option<OrderLabel> {
        let task = self.tasks.get(&task)?;
        Some(self.order.label(task.strand.begin))
    }

    /// Whether the live task of a strand is in a slot and writes no open output, so that nothing
    /// but its own work keeps it from its end. Work: all live tasks.
    pub fn depends_on_itself(&self, strand: StrandKey) -> bool {
        let mut tasks = self.tasks.iter().map(|(_, task)| task);
        tasks.any(|task| {
            let is_placed = matches!(task.state, State::Running { .. });
            task.strand.key == strand && is_placed && task.course.open.is_empty()
        })
    }

    /// How many tasks there were of each function, in no order.
    pub fn functions(&self) -> Vec<(Arc<str>, FunctionCounts)> {
        self.functions.all()
    }

    /// All live tasks in serial order.
    pub fn all(&self) -> Vec<TaskKey> {
        self.in_order_after(None, usize::MAX)
    }

    /// Live tasks after `task` in serial order, or from the first: those that begin at one of the
    /// next so many marks. It costs the number of marks, however many tasks live.
    pub fn in_order_after(&self, task: Option<TaskKey>, marks_max: usize) -> Vec<TaskKey> {
        let after = task.map(|task| self.tasks.get(&task).map(|task| task.strand.begin));
        let mut mark = match after {
            // Nothing comes after one that has ended.
            Some(None) => return Vec::new(),
            Some(Some(begin)) => self.order.next(Some(begin)),
            None => self.order.next(None),
        };
        let mut found = Vec::new();
        for _ in 0..marks_max {
            let Some(here) = mark else {
                break;
            };
            found.extend(self.begins_at(here));
            mark = self.order.next(Some(here));
        }
        found
    }

    /// Live tasks that answer to what a person typed, among those that begin at marks of a range
    /// of numbers; `None` if no marks have such numbers. It costs the length of the range.
    pub fn find(&self, text: &str, numbers: Range<usize>) -> Option<Vec<TaskKey>> {
        let numbers = numbers.start..numbers.end.min(self.owners.0.len());
        let answers = |(index, key): &(usize, TaskKey)| {
            let task = self.tasks.get(key);
            let task = task.filter(|task| task.strand.begin.index() == *index);
            task.is_some_and(|task| task.label().answers_to(text))
        };
        let owners = numbers.clone().map(|index| (index, self.owners.0[index]));
        let found = owners.filter(answers).map(|(_, key)| key);
        (!numbers.is_empty()).then(|| found.collect())
    }

    /// The task that begins at a mark; none where one ends.
    pub(crate) fn begins_at(&self, mark: Mark) -> Option<TaskKey> {
        let key = *self.owners.0.get(mark.index())?;
        let task = self.tasks.get(&key)?;
        (task.strand.begin == mark).then_some(key)
    }

    /// One live task.
    pub fn view(&self, key: TaskKey) -> Option<TaskView> {
        let task = self.tasks.get(&key)?;
        Some(TaskView {
            task: key,
            label: task.label(),
            executor: task.descriptor.executor.clone(),
            class: task.descriptor.class.clone(),
            place: task.place(),
            parent: task.parent.as_deref().cloned(),
            situation: self.situation(task),
            story: task.story.entries(),
            options: task.descriptor.options.clone(),
            attempts: task.attempt.0 + 1,
        })
    }

    fn situation(&self, task: &Task) -> Situation {
        match &task.state {
            State::Dormant if self.is_stand_in(task) => Situation::Known,
            State::Dormant => Situation::Dormant,
            State::Waiting { .. } => Situation::Waiting(self.missing(&task.inputs)),
            State::Twin { leader } => {
                Situation::Twin(self.tasks.get(leader).map(|task| task.label()))
            }
            State::LookedUp => Situation::Ready(false),
            State::Ready { resume } => Situation::Ready(resume.is_some()),
            State::Running { since } => Situation::Running(*since),
            State::Held { .. } => Situation::Held(self.missing(&task.course.reads)),
            State::Suspended { resume, .. } => {
                let on: Vec<ObjectKey> = resume
                    .on
                    .iter()
                    .filter_map(|handle| task.table.get(*handle))
                    .collect();
                Situation::Suspended(self.missing(&on))
            }
        }
    }

    /// The producers of those of `objects` that are unresolved, each once; at most as many as are
    /// shown.
    fn missing(&self, objects: &[ObjectKey]) -> Vec<Label> {
        let mut labels: Vec<Label> = Vec::new();
        for object in objects.iter().take(MISSING_LOOKED_AT_MAX) {
            if let ObjectState::Future { producer, .. } = self.objects.settled_state(*object)
                && let Some(task) = self.tasks.get(producer)
                && !labels.contains(&task.label())
            {
                labels.push(task.label());
            }
            if labels.len() == MISSING_SHOWN_MAX {
                break;
            }
        }
        labels
    }
}

/// Which task begins or ends at a mark, by the mark's number. What stands there for tasks that have
/// ended is out of date.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Owners(Segmented<TaskKey>);

impl Owners {
    /// The task that has, or had, that mark.
    pub(crate) fn of(&self, mark: Mark) -> Option<TaskKey> {
        self.0.get(mark.index()).copied()
    }

    pub(crate) fn add(&mut self, mark: Mark, task: TaskKey) {
        let index = mark.index();
        while index >= self.0.len() {
            self.0.push(NO_TASK);
        }
        self.0[index] = task;
    }
}
