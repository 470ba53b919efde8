//! New tasks: roots, children, successors.

use std::sync::Arc;

use bytes::Bytes;
use ciel_model::{
    ActionKey, AttemptNumber, Descriptor, FactAct, Failure, FailureKind, Handle, Input, InputMode,
    Label, Mark, Micros, Name, ObjectKey, Rare, StrandKey, TaskKey, Value, limits,
};

use crate::children::Spawner;
use crate::event::{Action, StrandChange};
use crate::graph::Graph;
use crate::lineage::Origin;
use crate::objects::ObjectState;
use crate::replay::{spawned, words};
use crate::story::{Moment, Story};
use crate::table::Table;
use crate::task::{State, Strand, Task};

/// Why a step cannot be taken; boxed because it is rare.
pub(crate) type Refusal = Box<Failure>;

impl Graph {
    pub(crate) fn on_root_submitted(
        &mut self,
        now: Micros,
        name: Name,
        descriptor: Arc<Descriptor>,
        actions: &mut Vec<Action>,
    ) {
        let begin = self.order.push_last();
        let end = self.order.push_last();
        let strand = self.new_strand(name, begin, end);
        actions.push(Action::Strand(StrandChange::Root(strand.key)));
        let outputs = descriptor.outputs;
        let key = self.new_task(now, name, descriptor, strand, None, Vec::new());
        let outputs: Vec<ObjectKey> = (0..outputs)
            .map(|index| self.objects.create(name.output(u64::from(index)), key, 1))
            .collect();
        for output in &outputs {
            self.objects.ask(*output);
        }
        self.verdict.root = Some((key, outputs.clone()));
        self.task_mut(key).outputs = outputs;
        self.live += 1;
        self.admit(now, key, actions);
    }

    /// A strand is called by its first task, which is created next.
    pub(crate) fn new_strand(&mut self, name: Name, begin: Mark, end: Mark) -> Strand {
        Strand {
            key: strand_of(TaskKey(self.next_task)),
            held: false,
            name,
            next: 0,
            tails: 0,
            begin,
            end,
            spawner: Spawner::default(),
        }
    }

    pub(crate) fn new_task(
        &mut self,
        now: Micros,
        name: Name,
        mut descriptor: Arc<Descriptor>,
        strand: Strand,
        parent: Option<Arc<Label>>,
        inputs: Vec<ObjectKey>,
    ) -> TaskKey {
        let key = TaskKey(self.next_task);
        self.next_task += 1;
        self.counts.spawned += 1;
        self.kinds.share(&mut descriptor);
        self.functions.on_spawned(&descriptor.what);
        self.owners.add(strand.begin, key);
        self.owners.add(strand.end, key);
        for held in inputs.iter().chain(&inputs) {
            self.objects.hold(*held);
        }
        let begun_at = strand.next;
        let mut task = Task {
            name,
            descriptor,
            parent,
            strand,
            state: State::Dormant,
            attempt: AttemptNumber(0),
            table: Table::of(inputs.clone()),
            inputs: inputs.into(),
            outputs: Vec::new(),
            is_spawned_once: false,
            call: None,
            ran_us: 0,
            story: Story::default(),
            course: Rare::default(),
        };
        if begun_at > 0 {
            task.course.begun_at = begun_at;
        }
        self.tasks.insert(key, Box::new(task));
        self.note(now, key, Moment::Spawned);
        key
    }

    /// A running task spawns as action `action`; its outputs get the handles from `first` on.
    pub(crate) fn spawn_child(
        &mut self,
        now: Micros,
        parent: TaskKey,
        (action, first): (u64, Handle),
        descriptor: Arc<Descriptor>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        let inputs = self.keys_of_inputs(parent, &descriptor.inputs)?;
        self.check_outputs(parent, &descriptor)?;
        self.check_free(parent, first, descriptor.outputs)?;
        let does = || spawned(&descriptor.what, &descriptor.site);
        let recorded = self.reach(parent, ActionKey::action(action), does)?;
        if let Some(act) = recorded {
            let place = (action, first);
            return self.spawn_again(parent, place, &descriptor, &inputs, act, actions);
        }
        self.check_kept(parent, &inputs)?;
        let place = (action, first);
        let key = self.create_child(now, parent, place, descriptor, inputs, actions);
        if !self.tasks[&key].descriptor.options.lazy {
            let spawner = self.children.add(self.tasks[&parent].strand.key);
            self.task_mut(key).strand.spawner = spawner;
        }
        self.settle_in(now, key, actions);
        Ok(())
    }

    fn create_child(
        &mut self,
        now: Micros,
        parent: TaskKey,
        (action, first): (u64, Handle),
        descriptor: Arc<Descriptor>,
        inputs: Vec<ObjectKey>,
        actions: &mut Vec<Action>,
    ) -> TaskKey {
        let spawner = self.task_mut(parent);
        let label = spawner.shared_label();
        let end_of_parent = spawner.strand.end;
        let parent_strand = spawner.strand.key;
        let strand_name = spawner.strand.name;
        spawner.course.spawned = true;
        let records = spawner.descriptor.replayable;
        let is_spawned_once = !records || spawner.descriptor.options.retries == 0;
        let name = self.child_names.of(strand_name, action);
        let before = records.then(|| self.order.insert_before(end_of_parent));
        let begin = self.order.insert_before(end_of_parent);
        let end = self.order.insert_before(end_of_parent);
        let mut strand = self.new_strand(name, begin, end);
        strand.held = is_held(&descriptor);
        let child_strand = strand.key;
        let count = descriptor.outputs;
        let placing = placing(&descriptor, (parent_strand, action), child_strand);
        let call = records.then(|| self.tasks[&parent].recorded_call(&descriptor, &inputs));
        let key = self.new_task(now, name, descriptor, strand, Some(label), inputs);
        actions.extend(placing);
        let holders = 1 + u32::from(records);
        let outputs: Vec<ObjectKey> = (0..count)
            .map(|index| self.objects.create(name.output(index.into()), key, holders))
            .collect();
        if records {
            let made = outputs.iter();
            made.for_each(|output| self.objects.record(*output, parent));
        }
        let spawner = self.task_mut(parent);
        spawner.table.add(first, &outputs);
        if let (Some(call), Some(before)) = (call, before) {
            let act = FactAct::Spawned {
                child: key,
                before,
                call,
                first,
                outputs: outputs.as_slice().into(),
            };
            spawner.record(ActionKey::action(action), act);
        }
        let task = self.task_mut(key);
        task.outputs = outputs;
        task.is_spawned_once = is_spawned_once;
        key
    }

    /// Decides what becomes of a task that has just been created.
    fn settle_in(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        let task = &self.tasks[&key];
        if task.descriptor.options.lazy {
            return;
        }
        if self.is_cut(task.strand.end) {
            return self.cancel_unstarted(now, key, actions);
        }
        self.live += 1;
        if task.descriptor.purity.is_pure() && self.join_equal_call(now, key, actions) {
            return;
        }
        self.admit(now, key, actions);
    }

    /// Waits for what the task needs to start, or offers it; and so for the lazy tasks it wakes.
    pub(crate) fn admit(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        let mut wanted = Vec::new();
        self.admit_one(now, key, &mut wanted, actions);
        self.wake_dormant(now, wanted, actions);
    }

    fn admit_one(
        &mut self,
        now: Micros,
        key: TaskKey,
        wanted: &mut Vec<TaskKey>,
        actions: &mut Vec<Action>,
    ) {
        let task = &self.tasks[&key];
        let given = task.descriptor.inputs.iter().zip(&task.inputs);
        let needed = given.filter(|(input, _)| input.mode != InputMode::Reference);
        let relies = self.may_rely(task);
        let is_known = |object: &ObjectKey| relies && self.known_content(*object).is_some();
        let needed = needed.map(|(_, object)| *object);
        let needed: Vec<ObjectKey> = needed.filter(|object| !is_known(object)).collect();
        let read = |object: &ObjectKey| self.join_stream(key, *object);
        let (read, needed): (Vec<_>, Vec<_>) = needed.into_iter().partition(read);
        read.iter().for_each(|object| self.objects.ask(*object));
        let missing = self.wait_for(key, &needed, wanted);
        let task = self.task_mut(key);
        if missing > 0 {
            task.state = State::Waiting { missing };
            return self.tell_producer(key, &needed, actions);
        }
        self.note(now, key, Moment::Ready);
        self.offer_or_look_up(now, key, actions);
        self.duplicate_for_check(now, key, actions);
    }

    /// Demands `objects` for a task; returns how many are unresolved, and notes who makes those.
    fn wait_for(&mut self, key: TaskKey, objects: &[ObjectKey], wanted: &mut Vec<TaskKey>) -> u32 {
        let mut missing = 0;
        for object in objects {
            self.objects.ask(*object);
            if self.objects.wait(*object, key) {
                missing += 1;
                wanted.extend(self.producer_of(*object));
            }
        }
        missing
    }

    /// Demands `objects` for a task and wakes the lazy tasks that produce them; returns how many
    /// are unresolved.
    pub(crate) fn wait_and_demand(
        &mut self,
        now: Micros,
        key: TaskKey,
        objects: &[ObjectKey],
        actions: &mut Vec<Action>,
    ) -> u32 {
        let mut wanted = Vec::new();
        let missing = self.wait_for(key, objects, &mut wanted);
        self.wake_dormant(now, wanted, actions);
        missing
    }

    /// Wakes the lazy task that makes `object`, if it sleeps.
    pub(crate) fn demand(&mut self, now: Micros, object: ObjectKey, actions: &mut Vec<Action>) {
        let wanted = self.producer_of(object).into_iter().collect();
        self.wake_dormant(now, wanted, actions);
    }

    pub(crate) fn producer_of(&self, object: ObjectKey) -> Option<TaskKey> {
        match self.objects.settled_state(object) {
            ObjectState::Future { producer, .. } => Some(*producer),
            _ => None,
        }
    }

    /// Wakes those of `wanted` that sleep, and whom they want in turn. A list instead of a
    /// recursion: chains of lazy tasks may be as long as the user likes.
    pub(crate) fn wake_dormant(
        &mut self,
        now: Micros,
        mut wanted: Vec<TaskKey>,
        actions: &mut Vec<Action>,
    ) {
        while let Some(key) = wanted.pop() {
            let task = self.tasks.get(&key);
            if task.is_some_and(|task| task.state == State::Dormant) {
                self.live += 1;
                self.on_stand_in_needed(key);
                self.admit_one(now, key, &mut wanted, actions);
            }
        }
    }

    /// The keys of a task's handles, whose values are there or will be.
    pub(crate) fn keys_of(
        &self,
        key: TaskKey,
        handles: &[Handle],
    ) -> Result<Vec<ObjectKey>, Refusal> {
        let keys = self.keys_named(key, handles)?;
        self.check_kept(key, &keys)?;
        Ok(keys)
    }

    /// The keys of a task's handles; a task that is replayed still names values that were dropped.
    pub(crate) fn keys_named(
        &self,
        key: TaskKey,
        handles: &[Handle],
    ) -> Result<Vec<ObjectKey>, Refusal> {
        self.look_up(key, handles.iter())
    }

    /// The keys of what a child of the task is given.
    fn keys_of_inputs(&self, key: TaskKey, inputs: &[Input]) -> Result<Vec<ObjectKey>, Refusal> {
        self.look_up(key, inputs.iter().map(|input| &input.handle))
    }

    fn look_up<'a>(
        &self,
        key: TaskKey,
        handles: impl Iterator<Item = &'a Handle>,
    ) -> Result<Vec<ObjectKey>, Refusal> {
        let task = &self.tasks[&key];
        let look_up = |handle: &Handle| {
            task.table.get(*handle).ok_or_else(|| {
                let message = format!("it used handle {}, which it does not have", handle.0);
                Box::new(Failure::new(FailureKind::Refused, task.label(), message))
            })
        };
        handles.map(look_up).collect()
    }

    /// The same value with engine keys, each with another holder.
    pub(crate) fn adopt(
        &mut self,
        key: TaskKey,
        value: Value<Handle>,
    ) -> Result<Value<ObjectKey>, Refusal> {
        let references = self.keys_of(key, &value.references)?;
        for reference in &references {
            self.objects.hold(*reference);
        }
        Ok(Value {
            form: value.form,
            content: value.content,
            references,
        })
    }

    /// New data of a running task, and how its file is recomputed.
    pub(crate) fn construct(
        &mut self,
        key: TaskKey,
        at: ActionKey,
        handle: Handle,
        (value, origin): (Value<Handle>, Option<Origin>),
    ) -> Result<(), Refusal> {
        self.check_free(key, handle, 1)?;
        let recorded = self.reach(key, at, || "stored an object".to_string())?;
        let object = match recorded {
            Some(act) => self.construct_again(key, &act, &value)?,
            None => {
                let value = self.adopt(key, value)?;
                self.create_object(key, at, handle, (value, origin))
            }
        };
        self.task_mut(key).table.add(handle, &[object]);
        Ok(())
    }

    fn create_object(
        &mut self,
        key: TaskKey,
        at: ActionKey,
        handle: Handle,
        (value, origin): (Value<ObjectKey>, Option<Origin>),
    ) -> ObjectKey {
        let task = &self.tasks[&key];
        let name = at.name_of_object(task.strand.name);
        let records = task.descriptor.replayable;
        let object = self.objects.create_ready(name, value, origin);
        if records {
            self.objects.hold(object);
            let act = FactAct::Constructed { handle, object };
            self.task_mut(key).record(at, act);
        }
        object
    }

    /// Records what the environment answered.
    pub(crate) fn record_input(
        &mut self,
        key: TaskKey,
        at: ActionKey,
        kind: Arc<str>,
        value: Bytes,
    ) -> Result<(), Refusal> {
        let does = || format!("observed its environment ({kind})");
        let recorded = self.reach(key, at, does)?;
        match recorded {
            Some(FactAct::Input { kind: before, .. }) if before == kind => {}
            Some(act) => {
                let how = format!("{} where it had {}", does(), words(&act));
                return Err(self.differs(key, &how));
            }
            None if self.tasks[&key].descriptor.replayable => {
                self.task_mut(key)
                    .record(at, FactAct::Input { kind, value });
            }
            None => {}
        }
        Ok(())
    }

    pub(crate) fn on_task_tail_spawned(
        &mut self,
        now: Micros,
        key: TaskKey,
        attempt: AttemptNumber,
        (descriptor, after): (Arc<Descriptor>, u64),
        actions: &mut Vec<Action>,
    ) {
        if self.running(key, attempt).is_none() {
            return;
        }
        if self.duplicates.contains(key) {
            return self.give_duplicate_up(now, key, actions);
        }
        let whole = self.check_replayed(key);
        let inputs = whole.and_then(|()| self.keys_of_inputs(key, &descriptor.inputs));
        let inputs = inputs.and_then(|inputs| {
            self.check_kept(key, &inputs)?;
            let (want, have) = (self.tasks[&key].outputs.len(), descriptor.outputs as usize);
            if want == have {
                return Ok(inputs);
            }
            let message = format!("its successor has {have} outputs instead of {want}");
            Err(Box::new(Failure::new(
                FailureKind::Refused,
                self.tasks[&key].label(),
                message,
            )))
        });
        match inputs {
            Ok(inputs) => {
                let strand = &mut self.task_mut(key).strand;
                strand.next = strand.next.max(after);
                self.hand_over(now, key, descriptor, inputs, actions)
            }
            Err(failure) => {
                actions.push(Action::Stop { task: key, attempt });
                self.fail_attempt(now, key, *failure, actions);
            }
        }
    }

    fn hand_over(
        &mut self,
        now: Micros,
        key: TaskKey,
        descriptor: Arc<Descriptor>,
        inputs: Vec<ObjectKey>,
        actions: &mut Vec<Action>,
    ) {
        self.stop_clock(now, key);
        // Before there is a successor, which would be dropped with the last holder of its outputs.
        self.on_original_gone(now, key, actions);
        let task = self.task_mut(key);
        let mut strand = task.strand.clone();
        // The successor counts in its place.
        task.strand.spawner = Spawner::default();
        let name = strand.name.tail(strand.tails);
        strand.tails += 1;
        let outputs = std::mem::take(&mut task.outputs);
        let twins = task.take_twins();
        let wanted = task.take_wanted();
        let label = task.label();
        self.note(now, key, Moment::TailSpawned);
        self.forget_call(key);
        self.promote_twins(now, twins, actions);
        actions.push(Action::Strand(StrandChange::Committed(strand.key)));
        // The first action of the successor separates its spawns from those before it.
        self.order.remove(strand.begin);
        strand.begin = self.order.insert_before(strand.end);
        let successor = self.new_task(now, name, descriptor, strand, Some(Arc::new(label)), inputs);
        for output in &outputs {
            self.objects.reassign(*output, successor);
        }
        if let Some((root, _)) = &mut self.verdict.root
            && *root == key
        {
            *root = successor;
        }
        self.task_mut(successor).outputs = outputs;
        if !wanted.is_empty() {
            self.task_mut(successor).course.wanted = wanted;
        }
        self.dismiss(now, key, None, actions);
        if self.is_cut(self.tasks[&successor].strand.end) {
            return self.cancel_unstarted(now, successor, actions);
        }
        self.live += 1;
        self.admit(now, successor, actions);
    }

    /// A task gives each handle once.
    fn check_free(&self, key: TaskKey, first: Handle, count: u32) -> Result<(), Refusal> {
        let task = &self.tasks[&key];
        if task.table.is_free(first, count) {
            return Ok(());
        }
        let message = format!(
            "it defined handle {}, which it already has or may not use",
            first.0
        );
        Err(Box::new(Failure::new(
            FailureKind::Refused,
            task.label(),
            message,
        )))
    }

    /// The number of outputs that a worker requests is bounded.
    fn check_outputs(&self, key: TaskKey, descriptor: &Descriptor) -> Result<(), Refusal> {
        let (want, most) = (descriptor.outputs, limits::OUTPUTS_MAX);
        if want <= most {
            return Ok(());
        }
        let message = format!("it spawned a task with {want} outputs; the maximum is {most}");
        Err(Box::new(Failure::new(
            FailureKind::Refused,
            self.tasks[&key].label(),
            message,
        )))
    }
}

/// Every strand has the key of its first task, so a recorded spawn identifies its strand.
pub(crate) fn strand_of(first: TaskKey) -> StrandKey {
    StrandKey(first.0)
}

/// Whether the output of a task waits for its commit: it is not declared live, or a failed attempt
/// of it would have to be withdrawn.
fn is_held(descriptor: &Descriptor) -> bool {
    let mut inputs = descriptor.inputs.iter();
    let reads = inputs.any(|input| input.mode == InputMode::Stream);
    let taken_back = reads || descriptor.options.retries > 0 && !descriptor.replayable;
    taken_back || !descriptor.options.live
}

/// The position of a child's output.
pub(crate) fn placing(
    descriptor: &Descriptor,
    (parent, action): (StrandKey, u64),
    child: StrandKey,
) -> impl Iterator<Item = Action> + use<> {
    let live = !is_held(descriptor);
    let spawned = StrandChange::Spawned {
        parent,
        action,
        child,
        live,
    };
    let skipped = descriptor
        .options
        .lazy
        .then_some(StrandChange::Skipped(child));
    std::iter::once(spawned).chain(skipped).map(Action::Strand)
}
