//! A strand that is run again, compared with what it did before.
//!
//! Its spawns are answered with the children that it has, its objects with those that it stored.
//! What differs is a failure that names both. It does not know why the strand is run again. Read
//! next: `resume`.

use ciel_model::{
    CallKey, Content, Descriptor, Fact, Failure, FailureKind, Form, Handle, ObjectKey, Site,
    TaskKey, Value,
};

use crate::event::Action;
use crate::graph::Graph;
use crate::objects::ObjectState;
use crate::spawn::{Refusal, placing, strand_of};

impl Graph {
    /// A replayed spawn: the recorded child is given again, if it is the same call.
    pub(crate) fn spawn_again(
        &mut self,
        parent: TaskKey,
        descriptor: &Descriptor,
        inputs: &[ObjectKey],
        fact: Fact,
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        let differing = |how: String| {
            let spawned = spawned(&descriptor.what, &descriptor.site);
            Err(self.differs(parent, &format!("{spawned}{how}")))
        };
        let Fact::Spawned {
            child,
            call,
            what,
            outputs,
            site,
        } = &fact
        else {
            return differing(format!(" where it had {}", words(&fact)));
        };
        let now = CallKey::of(descriptor, inputs.iter().copied());
        if let Some(reason) = call.diff(&now) {
            return differing(match *what == descriptor.what && *site == descriptor.site {
                true => format!(", but {reason}"),
                false => format!(" where it had {}", words(&fact)),
            });
        }
        let parent_strand = self.tasks[&parent].strand.key;
        actions.extend(placing(descriptor, parent_strand, strand_of(*child)));
        for output in outputs {
            self.objects.hold(*output);
        }
        let task = self.task_mut(parent);
        task.table.extend(outputs);
        task.replayed += 1;
        Ok(())
    }

    /// The failure of a task that, run again, did something else than before.
    pub(crate) fn differs(&self, key: TaskKey, how: &str) -> Refusal {
        let label = self.tasks[&key].label();
        let message = format!("run again, it {how}");
        let failure = Failure::new(FailureKind::NonDeterministic, label, message);
        Box::new(failure.with_hint(
            "a task must spawn and ask the same every time; what it takes from clock, chance or \
             environment must be recorded (Python: ciel.now(), ciel.task_rng(), ciel.entropy(), \
             ciel.environ())",
        ))
    }

    /// Whether an object can be the same as a value, as far as that can be told here: equal values
    /// of Python may have different pickles, of which bytes may be a part, and a file is not read.
    pub(crate) fn is_like(&self, object: ObjectKey, value: &Value<Handle>) -> bool {
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
        match task.facts.get(task.replayed) {
            None => Ok(()),
            Some(fact) => {
                let how = format!("ended where it had {}", words(fact));
                Err(self.differs(key, &how))
            }
        }
    }
}

/// What a recorded fact was, in words: it had ….
pub(crate) fn words(fact: &Fact) -> String {
    match fact {
        Fact::Spawned { what, site, .. } => spawned(what, site),
        Fact::Constructed { .. } => "stored an object".to_string(),
        Fact::Input { kind, .. } => format!("asked the outside ({kind})"),
    }
}

fn spawned(what: &str, site: &Site) -> String {
    format!("spawned {what}{}", at(&site.to_string()))
}

fn at(place: &str) -> String {
    match place {
        "" => String::new(),
        place => format!(" at {place}"),
    }
}
