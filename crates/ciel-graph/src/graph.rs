//! The graph's door and its state.
//!
//! The parts: `spawn` (new tasks), `deduplicated` (equal calls), `turn` (begin), `ahead` (what a
//! worker may prefetch), `wait` (block, wake, watch), `kept` (results of earlier runs), `settle`
//! (finish, fail, retry), `known` (results without bytes), `rollback` and `replay` (rerun a strand,
//! from an action or whole), `replay_inputs` (what it demanded), `streams` (outputs that are read
//! while they are written), `cancel`, `duplicate` and `stragglers` (second runs of pure tasks),
//! `recovery` (another process continues), `lineage` and `reconstruct` (recompute lost files),
//! `children` (how many a strand has), `objects` and `table` (results and their holders), `release`
//! (results that no task can name), `verdict` (the job's failure and end), `story` and `view`
//! (queries of users), `functions` (counts of tasks), `check` (invariants). Each handler reads the
//! state of one task and moves it to the next; a stale event finds no task of its attempt and
//! changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ciel_model::{
    AttemptNumber, Class, Digest, Failure, FailureKind, Handle, HashTrie, InputMode, KeyTable,
    Mark, Micros, Name, Near, ObjectKey, RecentKinds, SerialOrder, TaskKey, limits, weigh,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::child_names::ChildNames;
use crate::children::Children;
use crate::event::{Action, Event, Policy, Step, TaskSummary};
use crate::functions::Functions;
use crate::known_output::KnownOutput;
use crate::objects::{Objects, Released};
use crate::reconstruct::Reconstruction;
use crate::second_runs::Duplicates;
use crate::story::{Happening, Moment};
use crate::task::{State, Task};
use crate::times::Stragglers;
use crate::verdict::Verdict;
use crate::view::{Counts, Owners};
use crate::wait::Block;

/// The dynamic task graph of one job.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Graph {
    pub(crate) policy: Policy,
    pub(crate) order: SerialOrder,
    /// Boxed, so that a page with one task left in it is small.
    pub(crate) tasks: KeyTable<TaskKey, Box<Task>>,
    pub(crate) objects: Objects,
    pub(crate) next_task: u64,
    /// Outputs of pure calls made so far, by the identity of the call.
    pub(crate) calls: HashTrie<Digest, Call>,
    pub(crate) deadlines: BTreeSet<(Micros, TaskKey)>,
    /// The references that running tasks watch.
    pub(crate) watches: FxHashMap<TaskKey, FxHashSet<Handle>>,
    /// Tasks whose results are being looked up.
    pub(crate) lookups: u64,
    /// What unresolved objects will be whose results were kept without their bytes.
    pub(crate) known: BTreeMap<ObjectKey, KnownOutput>,
    /// A result that differs from what it was known to be, seen in the current event.
    #[serde(skip)]
    pub(crate) differing: Option<Box<Failure>>,
    /// Tasks that have not ended and will run, i.e. all but the dormant ones.
    pub(crate) live: u64,
    pub(crate) verdict: Verdict,
    pub(crate) counts: Counts,
    /// The transitions in the current event; none without observers.
    #[serde(skip)]
    pub(crate) watched: Option<Vec<Happening>>,
    /// Tasks held for their streams that may commit before the event is over.
    #[serde(skip)]
    pub(crate) may_commit: Vec<TaskKey>,
    /// Tasks that have lost the other end of a stream in the current event.
    #[serde(skip)]
    pub(crate) lost_streams: Vec<TaskKey>,
    pub(crate) functions: Functions,
    pub(crate) owners: Owners,
    /// Lost files that are being recomputed.
    pub(crate) remaking: Option<Reconstruction>,
    /// When files were lost last, or lost ones were there again.
    pub(crate) files_lost_at: Option<Micros>,
    pub(crate) duplicates: Duplicates,
    pub(crate) stragglers: Stragglers,
    #[serde(skip)]
    pub(crate) children: Children,
    /// A matter of memory alone.
    #[serde(skip)]
    pub(crate) kinds: RecentKinds,
    #[serde(skip)]
    pub(crate) child_names: ChildNames,
}

/// A pure call that others may share.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Call {
    pub(crate) task: TaskKey,
    pub(crate) outputs: Box<[ObjectKey]>,
}

impl Graph {
    /// An empty graph.
    pub fn new(policy: Policy) -> Graph {
        Graph {
            policy,
            order: SerialOrder::default(),
            tasks: KeyTable::default(),
            objects: Objects::default(),
            next_task: 0,
            calls: HashTrie::default(),
            deadlines: BTreeSet::new(),
            watches: FxHashMap::default(),
            lookups: 0,
            known: BTreeMap::new(),
            differing: None,
            live: 0,
            verdict: Verdict::default(),
            counts: Counts::default(),
            watched: None,
            may_commit: Vec::new(),
            lost_streams: Vec::new(),
            functions: Functions::default(),
            owners: Owners::default(),
            remaking: None,
            files_lost_at: None,
            duplicates: Duplicates::default(),
            stragglers: Stragglers::default(),
            children: Children::default(),
            kinds: RecentKinds::default(),
            child_names: ChildNames::default(),
        }
    }

    /// What a failure does to the rest of the job.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The serial order of all marks that this graph gave out.
    pub fn order(&self) -> &SerialOrder {
        &self.order
    }

    /// When the next time limit of a task or of a wait is over.
    pub fn next_time_limit(&self) -> Option<Micros> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// When [`Event::Ticked`] is wanted at the latest.
    pub fn next_deadline(&self) -> Option<Micros> {
        [self.next_time_limit(), self.stragglers.next_look()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes one event at time `now` and appends what has to be done about it.
    pub fn handle(&mut self, now: Micros, event: Event, actions: &mut Vec<Action>) {
        self.on_event(now, event, actions);
        self.follow_streams(now, actions);
        self.look_at_differing(now, actions);
        self.look_at_remaking(now, actions);
        self.relabel_offers(actions);
        if let Some(happened) = &mut self.watched {
            let told = happened.drain(..).map(Box::new);
            actions.extend(told.map(Action::Happened));
        }
        #[cfg(debug_assertions)]
        self.check_some();
    }

    fn on_event(&mut self, now: Micros, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::RootSubmitted { name, descriptor } => {
                self.on_root_submitted(now, name, descriptor, actions)
            }
            Event::TaskPlaced { task, attempt } => self.on_task_placed(now, task, attempt, actions),
            Event::TaskStepped {
                task,
                attempt,
                step,
            } => self.on_task_stepped(now, task, attempt, step, actions),
            Event::TaskBlocked {
                task,
                attempt,
                kept,
                on,
                wait,
                continuation,
                checkpoint,
            } => {
                let block = Block::of(kept, on, wait, continuation, checkpoint);
                self.on_task_blocked(now, task, attempt, block, actions)
            }
            Event::TaskWatched {
                task,
                attempt,
                handle,
            } => self.on_task_watched(now, task, attempt, handle, actions),
            Event::TaskFinished {
                task,
                attempt,
                outputs,
                printed,
                audit,
            } => self.on_task_finished(now, task, attempt, outputs, (printed, audit), actions),
            Event::TaskTailSpawned {
                task,
                attempt,
                descriptor,
                after,
                audit: _,
            } => self.on_task_tail_spawned(now, task, attempt, (descriptor, after), actions),
            Event::TaskFailed {
                task,
                attempt,
                failure,
            } => self.on_task_failed(now, task, attempt, *failure, actions),
            Event::TaskLost {
                task,
                attempt,
                failure,
            } => self.on_task_lost(now, task, attempt, *failure, actions),
            Event::TaskRolledBack { task, to } => self.on_task_rolled_back(now, task, to, actions),
            Event::TaskRecalled { task, attempt } => self.on_task_recalled(task, attempt, actions),
            Event::EngineLost { policy, lost } => self.on_engine_lost(now, policy, lost, actions),
            Event::FilesLost { lost } => self.on_files_lost(now, lost, actions),
            Event::ContinuationLost { task } => self.on_continuation_lost(now, task, actions),
            Event::CancelRequested { task } => self.on_cancel_requested(now, task, actions),
            Event::JobCancelled { failure } => self.on_job_cancelled(now, *failure, actions),
            Event::Ticked => self.on_ticked(now, actions),
            Event::TaskRefused {
                task,
                attempt,
                failure,
            } => self.on_task_refused(now, task, attempt, *failure, actions),
            Event::ResultFound { .. } | Event::ResultKnown { .. } | Event::ResultMissing { .. } => {
                self.on_looked_up(now, event, actions)
            }
        }
    }

    fn on_task_stepped(
        &mut self,
        now: Micros,
        key: TaskKey,
        attempt: AttemptNumber,
        step: Step,
        actions: &mut Vec<Action>,
    ) {
        if self.running(key, attempt).is_none() {
            return;
        }
        if matches!(step, Step::Spawn { .. }) && self.duplicates.contains(key) {
            return self.give_duplicate_up(now, key, actions);
        }
        let refused = match step {
            Step::Spawn {
                action,
                first,
                descriptor,
            } => self.spawn_child(now, key, (action, first), descriptor, actions),
            Step::Construct { at, handle, value } => {
                let origin = self.source_of(key, &value.content);
                self.construct(key, at, handle, (value, origin))
            }
            Step::Publish {
                at,
                handle,
                index,
                value,
            } => self.publish(now, key, (at, handle), (index, value), actions),
            Step::OpenOutput { index, carriage } => {
                self.open_output(now, key, index, carriage, actions)
            }
            Step::Input { at, kind, value } => self.record_input(key, at, kind, value),
            Step::Release { handles } => {
                self.release_handles(key, &handles, actions);
                Ok(())
            }
            Step::ReadWhole => {
                self.read_whole(now, key, actions);
                Ok(())
            }
        };
        if let Err(failure) = refused {
            actions.push(Action::Stop { task: key, attempt });
            self.fail_attempt(now, key, *failure, actions);
        }
    }

    /// The task if `attempt` of it is running now; else the event is stale.
    pub(crate) fn running(&mut self, key: TaskKey, attempt: AttemptNumber) -> Option<&mut Task> {
        self.tasks
            .get_mut(&key)
            .map(Box::as_mut)
            .filter(|task| task.attempt == attempt && matches!(task.state, State::Running { .. }))
    }

    /// The task, which the caller knows to be there.
    pub(crate) fn task_mut(&mut self, key: TaskKey) -> &mut Task {
        self.tasks
            .get_mut(&key)
            .expect("the caller has just seen this task")
    }

    /// Offers a task that has all it needs to the node.
    pub(crate) fn offer(&mut self, key: TaskKey, actions: &mut Vec<Action>) {
        if self
            .remaking
            .as_mut()
            .is_some_and(|remaking| remaking.holds_back(key))
        {
            return;
        }
        let offer = self.offer_of(key, &self.tasks[&key]);
        actions.push(offer.expect("only ready tasks are offered"));
    }

    fn offer_of(&self, key: TaskKey, task: &Task) -> Option<Action> {
        let State::Ready { resume } = &task.state else {
            return None;
        };
        Some(Action::Offer {
            task: key,
            attempt: task.attempt,
            descriptor: task.descriptor.clone(),
            label: self.order.label(task.strand.end),
            replay_us: resume.as_ref().map(|_| task.replay_us()),
            is_root: self.verdict.is_root(key),
            near: self.near(task),
            pairing: self.pairing_of(key),
        })
    }

    /// The files that a task in a worker takes as references, as far as they are there by now, and
    /// count where it is decided where it runs.
    fn near(&self, task: &Task) -> Box<[Near]> {
        if !matches!(task.descriptor.class, Class::Pooled(_)) {
            return Box::default();
        }
        let options = &task.descriptor.options;
        let given = (0..).zip(&task.descriptor.inputs).zip(&task.inputs);
        let named = given.filter(|((_, input), _)| input.mode == InputMode::Reference);
        let files = named.filter_map(|((index, _), object)| {
            let percent = options.weights.percent_of(index);
            let object = self.objects.file_of(*object).filter(|_| percent > 0)?;
            Some(Near { object, percent })
        });
        files.take(limits::NEAR_MAX).collect()
    }

    /// The files that a task takes, as far as they are there by now, each with its length in bytes
    /// times its weight.
    pub fn input_files(&self, task: TaskKey) -> Vec<(Name, u64)> {
        let Some(task) = self.tasks.get(&task) else {
            return Vec::new();
        };
        let weights = &task.descriptor.options.weights;
        let files = (0..).zip(&task.inputs).filter_map(|(index, object)| {
            let (name, file) = self.objects.content_of_file(*object)?;
            Some((name, weigh(file.length, weights.percent_of(index))))
        });
        files.collect()
    }

    /// The offers of all ready tasks, as they would be made now: for a site that has lost some.
    pub fn offers(&self) -> Vec<Action> {
        let remaking = self.remaking.as_ref();
        let is_held = |key| remaking.is_some_and(|remaking| remaking.is_held(key));
        let all = self.tasks.iter().filter(|(key, _)| !is_held(*key));
        all.filter_map(|(key, task)| self.offer_of(key, task))
            .collect()
    }

    /// Corrects the labels of offers that this event has changed.
    fn relabel_offers(&mut self, actions: &mut Vec<Action>) {
        for mark in self.order.take_relabeled() {
            let Some(key) = self.owners.of(mark) else {
                continue;
            };
            let Some(task) = self.tasks.get(&key) else {
                continue;
            };
            if task.strand.end == mark && matches!(task.state, State::Ready { .. }) {
                actions.push(Action::Relabel {
                    task: key,
                    attempt: task.attempt,
                    label: self.order.label(mark),
                });
            }
        }
    }

    /// Acts on what a release let go of.
    pub(crate) fn clear(&mut self, released: Released, actions: &mut Vec<Action>) {
        let mut pending = released;
        while !pending.is_empty() {
            let mut next = Released::default();
            for name in pending.files.drain(..) {
                actions.push(Action::DropObject(name));
            }
            for producer in pending.unwanted.drain(..) {
                self.forget_dormant(producer, &mut next);
            }
            for object in pending.unread.drain(..) {
                self.drop_unread(object, &mut next);
            }
            pending = next;
        }
    }

    /// A lazy task whose outputs cannot be demanded any more is dropped.
    pub(crate) fn forget_dormant(&mut self, key: TaskKey, released: &mut Released) {
        let Some(task) = self.tasks.get(&key) else {
            return;
        };
        let wanted = task
            .outputs
            .iter()
            .any(|output| self.objects.get(*output).is_some());
        if wanted || task.state != State::Dormant {
            return;
        }
        let is_stand_in = self.is_stand_in(task);
        let task = self.tasks.remove(&key).expect("just seen");
        match is_stand_in {
            true => task
                .outputs
                .iter()
                .for_each(|output| drop(self.known.remove(output))),
            false => self.functions.on_unneeded(&task),
        }
        self.order.remove(task.strand.begin);
        self.order.remove(task.strand.end);
        self.release_all(task.table.objects(), released);
        self.release_all(task.inputs, released);
    }

    pub(crate) fn release_all(
        &mut self,
        keys: impl IntoIterator<Item = ObjectKey>,
        released: &mut Released,
    ) {
        for key in keys {
            self.objects.release(key, released);
        }
    }

    /// Whether each transition of a task gives an action from now on. What the graph does stays the
    /// same.
    pub fn watch(&mut self, is_watched: bool) {
        self.watched = is_watched.then(Vec::new);
    }

    /// Counts children from now on, and reports by [`Action::FewChildren`] when no more than `few`
    /// of a strand's are left. What the graph does stays the same.
    pub fn count_children(&mut self, few: u32) {
        self.children.count(few);
    }

    /// Something happens to a task: a part of its story.
    pub(crate) fn note(&mut self, now: Micros, key: TaskKey, moment: Moment) {
        let task = self.tasks.get_mut(&key);
        let task = task.expect("what happens, happens to a live task");
        task.story.add(now, moment);
        if let Some(happened) = &mut self.watched
            && !self.duplicates.contains(key)
        {
            happened.push(Happening {
                at: now,
                task: key,
                attempt: task.attempt,
                label: task.label(),
                parent: task.parent.as_ref().map(|parent| parent.name),
                executor: task.descriptor.executor.clone(),
                moment,
            });
        }
    }

    /// Counts an ended task, and summarises it for the history.
    pub(crate) fn summarise(
        &mut self,
        task: &mut Task,
        failure: Option<Arc<Failure>>,
        actions: &mut Vec<Action>,
    ) {
        let cancelled = failure
            .as_ref()
            .map(|failure| failure.kind == FailureKind::Cancelled);
        self.functions.on_ended(task, cancelled);
        actions.push(Action::Ended(Box::new(TaskSummary {
            label: task.label(),
            executor: task.descriptor.executor.clone(),
            site: task.descriptor.site.clone(),
            parent: task.parent.take().map(Arc::unwrap_or_clone),
            attempts: task.course.attempts_before() + 1,
            last: task.attempt,
            story: task.story.entries(),
            failure,
            ran_us: task.ran_us,
            rerun: task.course.rerun.as_deref().cloned(),
        })));
    }

    /// Whether new work at `mark` would come after the point at which the job has failed.
    pub(crate) fn is_cut(&self, mark: Mark) -> bool {
        self.verdict
            .cut
            .is_some_and(|cut| !self.order.precedes(mark, cut))
    }
}
