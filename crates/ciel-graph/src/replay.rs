//! Replay: the actions of a strand, compared with its recorded facts.
//!
//! Its facts are found by the index of the action. A spawn returns the recorded child, a construct
//! the recorded object. A difference is a failure that names both. It does not know why the strand
//! is replayed. Read next: `rollback`, `recovery`.

use ciel_model::{
    ActionKey, CallKey, Content, Descriptor, Fact, FactAct, Failure, FailureKind, Form, Handle,
    ObjectKey, RecordedCall, Site, TaskKey, Value, limits,
};

use crate::event::Action;
use crate::graph::Graph;
use crate::objects::ObjectState;
use crate::spawn::{Refusal, placing, strand_of};
use crate::task::Task;

impl Graph {
    /// A running task has come to `at`; what was recorded there, if it had come that far before.
    /// Recorded inputs may be skipped: a task that received them does not observe again.
    pub(crate) fn reach(
        &mut self,
        key: TaskKey,
        at: ActionKey,
        does: impl FnOnce() -> String,
    ) -> Result<Option<FactAct>, Refusal> {
        let task = &self.tasks[&key];
        let least = task.strand.next;
        if at.action < least || at.action >= limits::ACTIONS_MAX {
            let message = format!(
                "it gave the index {} to an action; the minimum is {least}",
                at.action
            );
            let failure = Failure::new(FailureKind::Refused, task.label(), message);
            return Err(Box::new(failure));
        }
        let (passed, recorded) = task.recorded_at(at);
        let next = task.course.facts.get(passed).filter(|_| recorded.is_none());
        let left_out = task.course.facts.iter_from(task.course.met.min(passed));
        let left_out = left_out
            .take(passed.saturating_sub(task.course.met))
            .filter(|fact| !fact.act.is_taken())
            .chain(next)
            .next();
        if let Some(before) = left_out {
            let how = format!("{} where it had {}", does(), words(&before.act));
            return Err(self.differs(key, &how));
        }
        let recorded = recorded.cloned();
        let task = self.task_mut(key);
        let met = passed + usize::from(recorded.is_some());
        if task.course.met != met {
            task.course.met = met;
        }
        task.strand.next = at.after();
        Ok(recorded)
    }

    /// A replayed spawn: returns the recorded child, if it is the same call.
    pub(crate) fn spawn_again(
        &mut self,
        parent: TaskKey,
        (action, first): (u64, Handle),
        descriptor: &Descriptor,
        inputs: &[ObjectKey],
        act: FactAct,
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        let differing = |how: String| {
            let spawned = spawned(&descriptor.what, &descriptor.site);
            Err(self.differs(parent, &format!("{spawned}{how}")))
        };
        let FactAct::Spawned {
            child,
            call,
            outputs,
            ..
        } = &act
        else {
            return differing(format!(" where it had {}", words(&act)));
        };
        let now = CallKey::of(descriptor, inputs.iter().copied());
        if let Some(reason) = call.key().diff(&now, &descriptor.payload) {
            let is_there = *call.site() == descriptor.site && *call.what() == descriptor.what;
            return differing(match is_there {
                true => format!(", but {reason}"),
                false => format!(" where it had {}", words(&act)),
            });
        }
        let place = (self.tasks[&parent].strand.key, action);
        actions.extend(placing(descriptor, place, strand_of(*child)));
        for output in outputs {
            self.objects.hold(*output);
        }
        self.task_mut(parent).table.add(first, outputs);
        Ok(())
    }

    /// A replayed object: the recorded one, with another holder, if it can be the same.
    pub(crate) fn construct_again(
        &mut self,
        key: TaskKey,
        act: &FactAct,
        value: &Value<Handle>,
    ) -> Result<ObjectKey, Refusal> {
        let FactAct::Constructed { object, .. } = act else {
            let how = format!("stored an object where it had {}", words(act));
            return Err(self.differs(key, &how));
        };
        if !self.is_like(*object, value) {
            let how = "stored another value than before, as an object of its own";
            return Err(self.differs(key, how));
        }
        self.objects.hold(*object);
        Ok(*object)
    }

    /// The failure of a task whose replay differs from its facts.
    pub(crate) fn differs(&self, key: TaskKey, how: &str) -> Refusal {
        let label = self.tasks[&key].label();
        let message = format!("in its replay it {how}");
        let failure = Failure::new(FailureKind::NonDeterministic, label, message);
        Box::new(failure.with_hint(
            "each replay must spawn and observe the same; clock, random numbers and environment \
             must be recorded (Python: ciel.now(), ciel.task_rng(), ciel.entropy(), \
             ciel.environ())",
        ))
    }

    /// Whether an object can be the same as a value, as far as the graph can decide: equal values
    /// of Python may have different pickles, of which bytes may be a part, and a file is not read.
    fn is_like(&self, object: ObjectKey, value: &Value<Handle>) -> bool {
        let ObjectState::Ready(stored) = self.objects.settled_state(object) else {
            return false;
        };
        match (&stored.value.content, &value.content) {
            _ if matches!(value.form, Form::Pickle | Form::Bytes) => {
                stored.value.form == value.form
            }
            (Content::Inline(before), Content::Inline(now)) => before == now,
            (before, now) => before.length() == now.length(),
        }
    }

    /// A replay that ends must have done all that it did before.
    pub(crate) fn check_replayed(&self, key: TaskKey) -> Result<(), Refusal> {
        let task = &self.tasks[&key];
        match task
            .course
            .facts
            .iter_from(task.course.met)
            .find(|fact| !fact.act.is_taken())
        {
            None => Ok(()),
            Some(fact) => {
                let how = format!("ended where it had {}", words(&fact.act));
                Err(self.differs(key, &how))
            }
        }
    }
}

impl Task {
    /// How many facts come before `at`, and what is recorded there.
    fn recorded_at(&self, at: ActionKey) -> (usize, Option<&FactAct>) {
        if self.course.facts.last().is_none_or(|last| last.at < at) {
            return (self.course.facts.len(), None);
        }
        let index = self.course.facts.partition_point(|fact| fact.at < at);
        let there = self.course.facts.get(index).filter(|fact| fact.at == at);
        (index, there.map(|fact| &fact.act))
    }

    /// The call of a child, as a fact about it has it.
    pub(crate) fn recorded_call(
        &self,
        descriptor: &Descriptor,
        inputs: &[ObjectKey],
    ) -> RecordedCall {
        let before = self.course.facts.last();
        RecordedCall::of(descriptor, inputs, before.and_then(|fact| fact.act.call()))
    }

    /// Adds a fact after all others.
    pub(crate) fn record(&mut self, at: ActionKey, act: FactAct) {
        self.course.facts.push(Fact { at, act });
        self.course.met = self.course.facts.len();
    }
}

/// What a recorded fact was, in words: it had ….
pub(crate) fn words(act: &FactAct) -> String {
    match act {
        FactAct::Spawned { call, .. } => spawned(call.what(), call.site()),
        FactAct::Constructed { .. } => "stored an object".to_string(),
        FactAct::Waited(ended) if ended.cancels => "cancelled references".to_string(),
        FactAct::Waited(_) => "waited for the first of several".to_string(),
        FactAct::Input { kind, .. } => format!("observed its environment ({kind})"),
    }
}

/// What a spawn is in words.
pub(crate) fn spawned(what: &str, site: &Site) -> String {
    format!("spawned {what}{}", at(&site.to_string()))
}

fn at(place: &str) -> String {
    match place {
        "" => String::new(),
        place => format!(" at {place}"),
    }
}
