//! Descriptors: tasks as they are requested.
//!
//! A descriptor has what to run and with which references; it does not know where or when, nor what
//! its payload means (only the executor does). There may be as many pending tasks as memory has
//! room for, and most of them differ from the one before in their payload and their inputs alone,
//! so they share the rest. Read next: `recorded_call`, for what facts keep of it.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::code::{CodeIdentity, Reached, Site};
use crate::payload::Payload;
use crate::rare::Rare;
use crate::stream::Streams;
use crate::task::{Class, Input, Keeping, Options, Purity};

mod usual;
mod written;

/// A task to be run. What it has in common with others reads and changes like fields of its own.
#[derive(Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// What to run, as the executor understands it; it names inputs by index.
    pub payload: Payload,
    /// The references it is given, which become the task's handles `0..n`.
    pub inputs: Vec<Input>,
    /// The rest.
    pub kind: Arc<TaskKind>,
}

/// What tasks that are spawned by one line of a program mostly have in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskKind {
    /// Who runs it.
    pub executor: Arc<str>,
    /// How it is run.
    pub class: Class,
    /// The name that messages show: the function or command.
    pub what: Arc<str>,
    /// The code that it runs.
    pub code: CodeIdentity,
    /// All code that it may reach.
    pub reached: Reached,
    /// Number of outputs.
    pub outputs: u32,
    /// Those of them that are streams, and how it reads those of others.
    pub streams: Rare<Streams>,
    /// The options.
    pub options: Arc<Options>,
    /// Where it was spawned.
    pub site: Site,
    /// What is said about its effects.
    pub purity: Purity,
    /// The strand's spawns are recorded so that it can be replayed from its start.
    pub replayable: bool,
    /// Whether its result is kept across runs, and whether it takes one that was.
    pub keeping: Keeping,
}

impl Descriptor {
    /// A task with one output, default options and nothing special about it.
    pub fn plain(executor: &str, class: Class, what: &str, payload: impl Into<Bytes>) -> Self {
        let kind = TaskKind {
            executor: executor.into(),
            class,
            what: what.into(),
            code: CodeIdentity::default(),
            reached: Reached::default(),
            outputs: 1,
            streams: Rare::default(),
            options: Options::shared_default(),
            site: Site::default(),
            purity: Purity::Unsaid,
            replayable: false,
            keeping: Keeping::Never,
        };
        Descriptor {
            payload: Payload::new(payload),
            inputs: Vec::new(),
            kind: Arc::new(kind),
        }
    }

    /// The same task but for that change.
    pub fn with(mut self, change: impl FnOnce(&mut Descriptor)) -> Descriptor {
        change(&mut self);
        self
    }
}

impl Deref for Descriptor {
    type Target = TaskKind;

    fn deref(&self) -> &TaskKind {
        &self.kind
    }
}

/// Whoever changes it has a kind of its own from then on.
impl DerefMut for Descriptor {
    fn deref_mut(&mut self) -> &mut TaskKind {
        Arc::make_mut(&mut self.kind)
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        written::Descriptor::of(self).fmt(f)
    }
}

impl Serialize for Descriptor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        written::Descriptor::of(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Descriptor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Descriptor, D::Error> {
        written::deserialize(deserializer)
    }
}

/// The kinds of the latest tasks, so that equal ones become one.
#[derive(Clone, Default, Debug)]
pub struct RecentKinds(VecDeque<Arc<TaskKind>>);

/// Kinds among which an equal one is looked for: a loop mostly spawns fewer.
const RECENT_KINDS_MAX: usize = 8;

impl RecentKinds {
    /// The first of the latest kinds that is such a one.
    pub fn find(&self, is_such: impl Fn(&TaskKind) -> bool) -> Option<&Arc<TaskKind>> {
        self.0.iter().find(|recent| is_such(recent))
    }

    /// Notes a kind; the oldest one is forgotten if there are too many.
    pub fn add(&mut self, kind: Arc<TaskKind>) {
        self.0.truncate(RECENT_KINDS_MAX - 1);
        self.0.push_front(kind);
    }

    /// Lets the task share its kind with an earlier one, unless others see this descriptor.
    pub fn share(&mut self, descriptor: &mut Arc<Descriptor>) {
        let Some(descriptor) = Arc::get_mut(descriptor) else {
            return;
        };
        let kind = &mut descriptor.kind;
        match self.0.iter().find(|recent| *recent == kind) {
            Some(recent) => *kind = recent.clone(),
            None => {
                let kind = kind.clone();
                self.add(kind);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Handle;

    fn call(payload: &'static [u8]) -> Descriptor {
        Descriptor::plain("python", Class::Coordination, "f", payload)
    }

    #[test]
    fn tasks_that_differ_in_payload_and_inputs_share_the_rest() {
        let mut recent = RecentKinds::default();
        let mut first = Arc::new(call(b"1"));
        let mut second = Arc::new(call(b"2").with(|it| it.inputs = vec![Input::value(Handle(1))]));
        let whole = (*second).clone();
        recent.share(&mut first);
        recent.share(&mut second);
        assert!(Arc::ptr_eq(&first.kind, &second.kind));
        assert_eq!(*second, whole);
    }

    #[test]
    fn tasks_of_which_anything_else_differs_share_nothing() {
        let mut recent = RecentKinds::default();
        let mut first = Arc::new(call(b"1"));
        let mut second = Arc::new(call(b"1").with(|it| it.site.line += 1));
        recent.share(&mut first);
        recent.share(&mut second);
        assert_eq!((first.site.line, second.site.line), (0, 1));
    }

    #[test]
    fn change_of_a_task_leaves_those_alone_that_shared_its_kind() {
        let first = call(b"1");
        let second = first.clone().with(|it| it.outputs = 2);
        assert_eq!((first.outputs, second.outputs), (1, 2));
    }

    #[test]
    fn lines_in_turn_share_their_kinds_and_only_the_latest_are_kept() {
        let mut recent = RecentKinds::default();
        let of_line = |line| Arc::new(call(b"1").with(|it| it.site.line = line));
        let (mut first, mut second) = (of_line(1), of_line(2));
        recent.share(&mut first);
        recent.share(&mut second);
        let mut third = of_line(1);
        recent.share(&mut third);
        assert!(Arc::ptr_eq(&first.kind, &third.kind));
        for line in 10..30 {
            recent.share(&mut of_line(line));
        }
        assert_eq!(recent.0.len(), RECENT_KINDS_MAX);
    }

    #[test]
    fn task_is_small_and_comes_back_as_it_was_written() {
        let task = call(b"{}").with(|it| {
            it.inputs = vec![Input::stream(Handle(3))];
            it.outputs = 2;
            it.options = Options::shared_live();
        });
        let bytes = postcard::to_stdvec(&task).expect("a task in memory can be written");
        assert_eq!(postcard::from_bytes(&bytes), Ok(task));
        assert!(size_of::<Descriptor>() <= 64);
    }
}
