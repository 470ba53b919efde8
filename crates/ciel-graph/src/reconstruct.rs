//! Reconstruction: lost files are recomputed before other tasks run.
//!
//! The tasks that produced them are rerun with the same inputs, which may themselves have to be
//! recomputed. What they print is in the output already and is dropped. Until all files are
//! recomputed nothing else is offered. It does not know what is lost. Read next: `lineage`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ciel_model::{
    Content, Failure, FailureKind, Label, Mark, Micros, Name, ObjectKey, TaskKey, Value, limits,
};
use rustc_hash::FxHashSet;

use crate::event::Action;
use crate::graph::Graph;
use crate::lineage::{Ingredient, Origin, Recipe, Source};
use crate::objects::{ObjectState, Released, Stored};
use crate::task::Strand;

/// Work that comes before all other.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Reconstruction {
    /// Tasks below this one wait for the reconstruction.
    first_new: u64,
    /// In serial order before all that is rerun, and behind everything else.
    pub(crate) before: Option<Mark>,
    /// Later ones that have failed for want of a file.
    readers: BTreeSet<TaskKey>,
    /// How often it has begun.
    begun: u32,
    /// Those that would have been offered meanwhile.
    held_back: Vec<TaskKey>,
    /// Outputs of tasks that are rerun, by the tasks' names; each is held.
    outputs: BTreeMap<Name, Vec<ObjectKey>>,
    /// Objects made for those tasks, and outputs of tasks that were rerun in vain; each is held.
    ingredients: Vec<ObjectKey>,
    /// Files that are lost, by their names.
    wanted: BTreeMap<Name, Wanted>,
}

/// A file that is lost.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Wanted {
    /// In bytes.
    length: u64,
    /// What it will be recomputed as: another run may write it under another name.
    object: ObjectKey,
}

/// The error that a file cannot be recomputed.
struct NotReconstructible {
    name: Name,
    why: Why,
}

/// Why a file cannot be recomputed.
enum Why {
    /// Nobody knows where it comes from.
    Unknown,
    Source(Arc<Source>),
    /// Its task gives something of another length, or nothing, by now.
    Differs,
    /// Files are lost again and again while others are recomputed.
    TooOften,
}

impl NotReconstructible {
    fn failure(&self) -> Failure {
        let name = self.name;
        let message = format!("the object {name} is lost and cannot be recomputed");
        let (why, origin) = match &self.why {
            Why::Unknown => (String::new(), None),
            Why::Source(source) => (format!(": {source}"), Some(source.task.clone())),
            Why::Differs => (": its task gives another result by now".to_string(), None),
            Why::TooOften => (": files are lost again and again".to_string(), None),
        };
        let job = || Label {
            what: "job".into(),
            name,
        };
        let origin = origin.unwrap_or_else(job);
        let failure = Failure::new(FailureKind::ObjectLost, origin, message + &why);
        failure.with_hint("start a new run: ciel run --new …")
    }
}

impl Reconstruction {
    pub(crate) fn held(&self) -> impl Iterator<Item = ObjectKey> {
        let outputs = self.outputs.values().flatten();
        outputs.chain(&self.ingredients).copied()
    }

    /// Whether that task must wait.
    pub(crate) fn holds_back(&mut self, key: TaskKey) -> bool {
        let waits = self.is_held(key);
        if waits {
            self.held_back.push(key);
        }
        waits
    }

    /// Whether that task existed before the files were missed, or has missed one of them.
    pub(crate) fn is_held(&self, key: TaskKey) -> bool {
        key.0 < self.first_new || self.readers.contains(&key)
    }

    /// That task has missed a file.
    pub(crate) fn hold_reader(&mut self, key: TaskKey) {
        self.readers.insert(key);
    }

    /// The files that are being recomputed.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = Name> {
        self.wanted.keys().copied()
    }
}

impl Graph {
    /// Offers no task until these files are recomputed; false if all of them are being recomputed
    /// already. Otherwise what an earlier process has begun waits, too, and is not used.
    pub(crate) fn begin_remaking(&mut self, lost: &[Name]) -> bool {
        let mut remaking = self.remaking.take().unwrap_or_default();
        let gone: FxHashSet<Name> = lost.iter().copied().collect();
        let is_new = !lost
            .iter()
            .all(|name| self.remakes(&remaking, *name, &gone));
        if is_new {
            // What was rerun may have inputs that are lost now.
            remaking.first_new = self.next_task;
            let before = remaking.before.replace(self.order.push_last());
            before.into_iter().for_each(|mark| self.order.remove(mark));
            remaking.begun += 1;
            remaking.wanted.clear();
            let outputs = std::mem::take(&mut remaking.outputs);
            remaking.ingredients.extend(outputs.into_values().flatten());
        }
        self.remaking = Some(remaking);
        is_new
    }

    /// Whether that file will be there, or is there under another name that is not lost.
    fn remakes(&self, remaking: &Reconstruction, name: Name, gone: &FxHashSet<Name>) -> bool {
        let Some(wanted) = remaking.wanted.get(&name) else {
            return false;
        };
        match self.objects.settled_state(wanted.object) {
            ObjectState::Future { .. } => true,
            ObjectState::Ready(stored) => {
                let file = stored.value.content.file();
                file.is_some_and(|(name, _)| !gone.contains(&name))
            }
            ObjectState::Alias(_) | ObjectState::Failed { .. } | ObjectState::Dropped => false,
        }
    }

    /// Reruns the tasks that produced these files.
    pub(crate) fn remake(&mut self, now: Micros, lost: &[Name], actions: &mut Vec<Action>) {
        let gone: FxHashSet<Name> = lost.iter().copied().collect();
        self.objects.forget_sources(&gone);
        let origins: Vec<Origin> = self.objects.origins_of(&gone);
        let held = |name: &&Name| self.objects.has_file(**name);
        let held: Vec<Name> = lost.iter().filter(held).copied().collect();
        if let Some(name) = held.first()
            && self.remaking_mut().begun > limits::RECONSTRUCTIONS_MAX
        {
            let (name, why) = (*name, Why::TooOften);
            return self.give_up_remaking(now, &NotReconstructible { name, why }, actions);
        }
        for name in &held {
            let origin = origins.iter().find(|origin| origin.0.name == *name);
            let made = match origin {
                Some(origin) => self.remake_one(now, origin, &gone, actions).map(drop),
                None => Err(NotReconstructible {
                    name: *name,
                    why: Why::Unknown,
                }),
            };
            if let Err(lost) = made {
                return self.give_up_remaking(now, &lost, actions);
            }
        }
    }

    /// The object of a file that is recomputed.
    fn remake_one(
        &mut self,
        now: Micros,
        origin: &Origin,
        gone: &FxHashSet<Name>,
        actions: &mut Vec<Action>,
    ) -> Result<ObjectKey, NotReconstructible> {
        let unmakeable = || {
            let source = origin.0.source.clone();
            let (name, why) = (origin.0.name, source.map_or(Why::Differs, Why::Source));
            NotReconstructible { name, why }
        };
        let recipe = origin.0.recipe.as_ref().ok_or_else(unmakeable)?;
        if !self.remaking_mut().outputs.contains_key(&recipe.task) {
            let mut inputs = Vec::with_capacity(recipe.inputs.len());
            for input in &recipe.inputs {
                inputs.push(self.provide(now, input, gone, actions)?);
            }
            let outputs = self.run_once_more(now, recipe, inputs, actions);
            self.remaking_mut().outputs.insert(recipe.task, outputs);
        }
        let remaking = self.remaking_mut();
        let outputs = &remaking.outputs[&recipe.task];
        let output = outputs.get(origin.0.output as usize).copied();
        let object = output.ok_or_else(unmakeable)?;
        let length = origin.0.length;
        let wanted = Wanted { length, object };
        remaking.wanted.insert(origin.0.name, wanted);
        Ok(object)
    }

    /// An object for a task that is rerun.
    fn provide(
        &mut self,
        now: Micros,
        ingredient: &Ingredient<Origin>,
        gone: &FxHashSet<Name>,
        actions: &mut Vec<Action>,
    ) -> Result<ObjectKey, NotReconstructible> {
        let value = &ingredient.value;
        if let Content::File { name, .. } = value.content
            && (gone.contains(&name) || !self.objects.has_file(name))
        {
            let unknown = NotReconstructible {
                name,
                why: Why::Unknown,
            };
            let origin = ingredient.origin.as_ref().ok_or(unknown)?;
            return self.remake_one(now, origin, gone, actions);
        }
        let mut references = Vec::with_capacity(value.references.len());
        for inner in &value.references {
            let inner = self.provide(now, inner, gone, actions)?;
            self.objects.hold(inner);
            references.push(inner);
        }
        let value = Value {
            form: value.form.clone(),
            content: value.content.clone(),
            references,
        };
        let origin = ingredient.origin.clone();
        let object = self.objects.create_ready(ingredient.name, value, origin);
        self.remaking_mut().ingredients.push(object);
        Ok(object)
    }

    fn run_once_more(
        &mut self,
        now: Micros,
        recipe: &Recipe<Origin>,
        inputs: Vec<ObjectKey>,
        actions: &mut Vec<Action>,
    ) -> Vec<ObjectKey> {
        let begin = self.order.push_last();
        let end = self.order.push_last();
        let strand = Strand {
            next: recipe.begun_at,
            tails: recipe.tails,
            ..self.new_strand(recipe.strand, begin, end)
        };
        let descriptor = recipe.descriptor.clone();
        let parent = recipe.parent.clone();
        let key = self.new_task(now, recipe.task, descriptor, strand, parent, inputs);
        let names = (0..recipe.descriptor.outputs).map(|index| recipe.task.output(index.into()));
        let outputs: Vec<ObjectKey> = names
            .map(|name| self.objects.create(name, key, 1))
            .collect();
        for output in &outputs {
            self.objects.ask(*output);
        }
        self.task_mut(key).outputs = outputs.clone();
        self.live += 1;
        self.admit(now, key, actions);
        outputs
    }

    /// Continues with everything else when all lost files are recomputed.
    pub(crate) fn look_at_remaking(&mut self, now: Micros, actions: &mut Vec<Action>) {
        let Some(remaking) = &self.remaking else {
            return;
        };
        let outputs = || remaking.outputs.values().flatten();
        if outputs().any(|output| self.is_future(*output)) {
            return;
        }
        let failed = outputs().find_map(|output| match self.objects.settled_state(*output) {
            ObjectState::Failed { failure, .. } => Some(failure.clone()),
            _ => None,
        });
        let recomputed = self.recomputed(remaking);
        let wanted = remaking.wanted.keys().copied();
        let other = wanted
            .into_iter()
            .find(|name| !recomputed.contains_key(name));
        let remaking = self.take_remaking(now).expect("just seen");
        let mut released = Released::default();
        if other.is_none() {
            self.objects.replace_files(&recomputed, &mut released);
        }
        drop(recomputed);
        self.release_all(remaking.held(), &mut released);
        self.clear(released, actions);
        match (failed, other) {
            (Some(failure), _) => {
                self.go_without_files(now, (*failure).clone(), remaking.held_back, actions);
            }
            (None, Some(name)) => {
                let why = Why::Differs;
                let failure = NotReconstructible { name, why }.failure();
                self.go_without_files(now, failure, remaking.held_back, actions);
            }
            (None, None) => self.offer_held_back(remaking.held_back, actions),
        }
    }

    /// What the rerun tasks have made in place of the lost files, each in a file of the same
    /// length, by the names of the lost ones.
    fn recomputed(&self, remaking: &Reconstruction) -> BTreeMap<Name, Arc<Stored>> {
        let stored = |wanted: &Wanted| match self.objects.settled_state(wanted.object) {
            ObjectState::Ready(stored) => Some(stored.clone()),
            _ => None,
        };
        let is_like = |wanted: &Wanted, stored: &Stored| {
            let file = stored.value.content.file();
            file.is_some_and(|(_, content)| content.length == wanted.length)
        };
        let wanted = remaking.wanted.iter();
        let made = wanted.filter_map(|(name, wanted)| {
            let stored = stored(wanted).filter(|stored| is_like(wanted, stored))?;
            Some((*name, stored))
        });
        made.collect()
    }

    pub(crate) fn offer_held_back(
        &mut self,
        mut held_back: Vec<TaskKey>,
        actions: &mut Vec<Action>,
    ) {
        held_back.sort();
        held_back.dedup();
        for key in held_back {
            let attempt = self.tasks.get(&key).map(|task| task.attempt);
            if attempt.is_some_and(|attempt| self.awaits_place(key, attempt)) {
                self.offer(key, actions);
            }
        }
    }

    fn give_up_remaking(
        &mut self,
        now: Micros,
        lost: &NotReconstructible,
        actions: &mut Vec<Action>,
    ) {
        let mut held_back = Vec::new();
        if let Some(remaking) = self.take_remaking(now) {
            let mut released = Released::default();
            self.release_all(remaking.held(), &mut released);
            self.clear(released, actions);
            held_back = remaking.held_back;
        }
        self.go_without_files(now, lost.failure(), held_back, actions);
    }

    fn remaking_mut(&mut self) -> &mut Reconstruction {
        self.remaking
            .as_mut()
            .expect("files are recomputed between its start and its end")
    }
}

#[cfg(test)]
mod tests {
    use ciel_model::{
        ActionKey, AttemptNumber, Class, Descriptor, Digest, FileContent, Handle, Input, Purity,
    };

    use super::*;
    use crate::event::{Checkpoint, Continuation, Event, Policy, Step, Wait};
    use crate::for_tests::{ROOT, descriptor, finished, offered, root, tell};

    /// A spawn with one output, whose handle is the index.
    fn spawn(action: u64, descriptor: Descriptor) -> Step {
        let first = Handle(action as u32);
        Step::Spawn {
            action,
            first,
            descriptor: Arc::new(descriptor),
        }
    }

    fn place(graph: &mut Graph, task: TaskKey, attempt: u32) {
        let attempt = AttemptNumber(attempt);
        tell(graph, Event::TaskPlaced { task, attempt });
    }

    fn finish(graph: &mut Graph, task: TaskKey, file: Name, length: u64) -> Vec<Action> {
        finish_with(graph, task, file_of(file, length, None))
    }

    fn finish_with(graph: &mut Graph, task: TaskKey, content: Content) -> Vec<Action> {
        tell(graph, finished(task, content))
    }

    /// A root that runs, and a child of it that has made a file; and that file.
    fn parent_of_a_file(impure: bool) -> (Graph, Name) {
        parent_of_a_file_with(impure, None)
    }

    fn parent_of_a_file_with(impure: bool, digest: Option<Digest>) -> (Graph, Name) {
        let mut graph = root();
        let child = Descriptor::plain("sh", Class::Process, "child", Vec::new())
            .with(|it| it.purity = Purity::of(impure.then_some(false), false));
        let step = Event::TaskStepped {
            task: ROOT,
            attempt: AttemptNumber(0),
            step: spawn(0, child),
        };
        tell(&mut graph, step);
        place(&mut graph, TaskKey(1), 0);
        let file = Name::of_root(b"job").spawn(0).output(0);
        finish_with(&mut graph, TaskKey(1), file_of(file, 7, digest));
        (graph, file)
    }

    fn file_of(name: Name, length: u64, digest: Option<Digest>) -> Content {
        Content::File {
            name,
            length,
            digest,
        }
    }

    fn lose_engine_and(graph: &mut Graph, lost: Name) -> Vec<Action> {
        let event = Event::EngineLost {
            policy: Policy::default(),
            lost: vec![lost],
        };
        tell(graph, event)
    }

    fn failure(actions: &[Action]) -> Option<FailureKind> {
        actions.iter().find_map(|action| match action {
            Action::JobEnded(ending) => ending.result.as_ref().err().map(|failure| failure.kind),
            _ => None,
        })
    }

    #[test]
    fn lost_file_is_made_again_before_anything_else_goes_on() {
        let (mut graph, file) = parent_of_a_file(false);
        let actions = lose_engine_and(&mut graph, file);
        assert_eq!(offered(&actions), [TaskKey(2)]);
        place(&mut graph, TaskKey(2), 0);
        let actions = finish(&mut graph, TaskKey(2), file, 7);
        assert_eq!(offered(&actions), [ROOT]);
        let dropped = |action: &Action| matches!(action, Action::DropObject(_));
        assert!(!actions.iter().any(dropped), "{actions:?}");
    }

    /// A recomputed file with other bytes once kept the digest of the first ones, so each later
    /// resume found it changed. One that had become too short for a file was not missed at all,
    /// and the job continued without it.
    #[test]
    fn recomputed_file_has_its_own_digest_and_the_length_of_the_first() {
        let (one, other) = (Some(Digest(1)), Some(Digest(2)));
        let file = |length, digest| move |name| file_of(name, length, digest);
        let short = |_| Content::Inline("short".into());
        type Recomputed<'a> = &'a dyn Fn(Name) -> Content;
        let table: [(Option<Digest>, Recomputed<'_>, Option<Option<Digest>>); 7] = [
            (one, &file(7, one), Some(one)),
            (one, &file(7, other), Some(other)),
            (one, &file(7, None), Some(None)),
            (None, &file(7, other), Some(other)),
            (None, &file(8, None), None),
            (one, &file(8, one), None),
            (one, &short, None),
        ];
        for (number, (before, recomputed, digest)) in table.into_iter().enumerate() {
            let (mut graph, name) = parent_of_a_file_with(false, before);
            lose_engine_and(&mut graph, name);
            place(&mut graph, TaskKey(2), 0);
            let actions = finish_with(&mut graph, TaskKey(2), recomputed(name));
            let lost = digest.is_none().then_some(FailureKind::ObjectLost);
            assert_eq!(failure(&actions), lost, "row {number}");
            if let Some(digest) = digest {
                let expected = FileContent { length: 7, digest };
                assert_eq!(graph.files().get(&name), Some(&expected), "row {number}");
            }
        }
    }

    /// A source without holders was once a reason to fail the job, although everything derived from
    /// it existed.
    #[test]
    fn lost_source_is_missed_only_when_it_is_needed() {
        for (made_is_lost, failed) in [(false, None), (true, Some(FailureKind::ObjectLost))] {
            let (mut graph, source) = parent_of_a_file(true);
            let user = Descriptor {
                inputs: vec![Input::value(Handle(0))],
                ..Descriptor::plain("sh", Class::Process, "user", Vec::new())
            };
            let step = Event::TaskStepped {
                task: ROOT,
                attempt: AttemptNumber(0),
                step: spawn(1, user),
            };
            tell(&mut graph, step);
            place(&mut graph, TaskKey(2), 0);
            let made = Name::of_root(b"job").spawn(1).output(0);
            finish(&mut graph, TaskKey(2), made, 9);
            // The parent releases the source: it resumes from here with the derived object.
            let block = Event::TaskBlocked {
                task: ROOT,
                attempt: AttemptNumber(0),
                kept: Some(vec![Handle(1)]),
                on: vec![Handle(0)],
                wait: Wait::ALL,
                continuation: Continuation::Live,
                checkpoint: Some(Box::new(Checkpoint {
                    state: "here".into(),
                    kept: vec![Handle(0)],
                })),
            };
            let dropped = |action: &Action| matches!(action, Action::DropObject(_));
            assert!(!tell(&mut graph, block).iter().any(dropped));
            assert!(graph.files().contains_key(&source));
            let lost = if made_is_lost {
                vec![source, made]
            } else {
                vec![source]
            };
            let policy = Policy::default();
            let actions = tell(&mut graph, Event::EngineLost { policy, lost });
            assert_eq!(failure(&actions), failed);
            assert_eq!(offered(&actions).is_empty(), made_is_lost);
        }
    }

    #[test]
    fn file_of_an_impure_task_is_not_made_again() {
        let (mut graph, file) = parent_of_a_file(true);
        let actions = lose_engine_and(&mut graph, file);
        assert_eq!(failure(&actions), Some(FailureKind::ObjectLost));
    }

    /// The next run of it may receive another answer.
    #[test]
    fn file_of_a_task_that_asked_for_the_time_is_not_made_again() {
        for asks in [false, true] {
            let mut graph = root();
            let stepped = |task, step| Event::TaskStepped {
                task,
                attempt: AttemptNumber(0),
                step,
            };
            tell(&mut graph, stepped(ROOT, spawn(0, descriptor("child"))));
            place(&mut graph, TaskKey(1), 0);
            if asks {
                let (kind, value) = ("time".into(), "7".into());
                let at = ActionKey::action(0);
                tell(
                    &mut graph,
                    stepped(TaskKey(1), Step::Input { at, kind, value }),
                );
            }
            let file = Name::of_root(b"job").spawn(0).output(0);
            finish(&mut graph, TaskKey(1), file, 7);
            let actions = lose_engine_and(&mut graph, file);
            assert_eq!(failure(&actions), asks.then_some(FailureKind::ObjectLost));
        }
    }
}
