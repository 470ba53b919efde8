//! Tasks that have spawned others: what was done by each with all that is beneath it.
//!
//! A pure machine. It follows tasks that take part in kept results and have spawned, and their
//! children, from spawn to end; a task is resolved when it is over and its children are. Then
//! either all is known that it and those beneath it printed, read and ran, or its result cannot be
//! kept. It does not know keys or stores. Read next: `keeper`.

use std::collections::BTreeMap;
use std::sync::Arc;

use ciel_kept::{KeptOutput, Printed};
use ciel_model::{AttemptNumber, Digest, FileRead, FunctionCode, Name, Reached};
use rustc_hash::FxHashMap;

use super::actions::Actions;
use crate::kept::{PRINTED_BYTES_MAX, Segment};

/// Files read beneath one task whose contents count; a task with more is not kept.
const READ_MAX: usize = 10_000;

/// Tasks above each other that are followed: a row of tasks each of which hands its output on to
/// the next may be as long as a program runs. Those above the last ones are not kept.
const DEPTH_MAX: u32 = 256;

/// Latest children of a task of which is known what they gave. A task that hands on what an earlier
/// one gave is not kept.
const GIVEN_MAX: usize = 10_000;

/// What a task gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Gave {
    /// That cannot be kept.
    #[default]
    Unknown,
    /// These values.
    Values(Vec<KeptOutput>),
    /// Only that object, which another task makes.
    Handed(Name),
}

/// An output of a task.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GivenOutput {
    pub(super) output: KeptOutput,
    /// The task that has made it, and the number of the output there.
    pub(super) maker: (Name, usize),
}

/// What a task itself has done that ended well.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    pub(super) written: Vec<Segment>,
    pub(super) read: Vec<FileRead>,
    pub(super) code: Reached,
    /// It was seen to do nothing that taking its result would not repeat.
    pub(super) is_harmless: bool,
    /// Its program promises that nothing else matters.
    pub(super) is_promised: bool,
    pub(super) gave: Gave,
}

/// What a task has done with all that is beneath it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Subtree {
    pub(super) printed: Vec<Printed>,
    /// None if they cannot be kept.
    pub(super) outputs: Option<Arc<[GivenOutput]>>,
    read: BTreeMap<Arc<str>, FileRead>,
    /// The code of the task itself.
    own: Reached,
    /// That of the tasks beneath it.
    code: BTreeMap<Digest, Reached>,
    /// All of it is harmless, or promised to be.
    pub(super) is_harmless: bool,
}

/// A task that is over, and what was done; none if that is not known as a whole.
pub(super) type Resolved = (Name, Option<Arc<Subtree>>);

/// Tasks that are followed.
#[derive(Debug, Default)]
pub(super) struct Subtrees {
    nodes: FxHashMap<Name, Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// Its parent, and the action of that which has spawned it.
    parent: Option<(Name, u64)>,
    /// The actions that have spawned children.
    spawned: Actions,
    /// Children that are not resolved.
    open: usize,
    /// Of those that are, what depends on their order.
    beneath: Beneath,
    done: Option<Done>,
    /// Something beneath it is not known.
    is_unknown: bool,
    is_over: bool,
    /// Followed tasks above it.
    depth: u32,
}

/// What was done by the resolved children of a task with all that is beneath them. Most children
/// print nothing and read nothing: those take no memory, however many they are.
#[derive(Debug, Default)]
struct Beneath {
    /// By the actions that have spawned them, what some have printed.
    printed: BTreeMap<u64, Vec<Printed>>,
    printed_bytes: u64,
    /// By the same, what some have read.
    read: BTreeMap<u64, BTreeMap<Arc<str>, FileRead>>,
    /// By the same, what the latest gave.
    given: BTreeMap<u64, Arc<[GivenOutput]>>,
    code: BTreeMap<Digest, Reached>,
    /// Something of it is not harmless.
    is_harmful: bool,
}

impl Subtrees {
    /// Whether a task is followed: then [`Subtrees::on_over`] will be told of it.
    pub(super) fn follows(&self, task: Name) -> bool {
        self.nodes.contains_key(&task)
    }

    /// A task has spawned another as that action. Gives the tasks that are resolved by that.
    pub(super) fn on_spawned(&mut self, parent: Name, action: u64, child: Name) -> Vec<Resolved> {
        let node = self.nodes.entry(parent).or_default();
        let depth = node.depth + 1;
        if depth > DEPTH_MAX {
            self.nodes.entry(child).or_default();
            return self.give_up(parent);
        }
        if node.spawned.insert(action) {
            node.open += 1;
        } else {
            // An earlier attempt has spawned it, too.
            node.is_unknown = true;
        }
        let below = self.nodes.entry(child).or_default();
        (below.parent, below.depth) = (Some((parent, action)), depth);
        Vec::new()
    }

    /// What is beneath a task is not followed as its own. Gives the tasks that this resolves.
    pub(super) fn give_up(&mut self, task: Name) -> Vec<Resolved> {
        let mut next = Some(task);
        let mut row = Vec::new();
        while let Some(task) = next.take() {
            let node = self.nodes.get_mut(&task);
            if let Some(node) = node.filter(|node| !node.is_unknown) {
                node.is_unknown = true;
                next = node.parent.map(|(parent, _)| parent);
                row.push(task);
            }
        }
        let mut resolved = Vec::new();
        row.into_iter()
            .for_each(|task| self.resolve(task, &mut resolved));
        resolved
    }

    /// A task that is followed has done that and ends well.
    pub(super) fn on_ended(&mut self, task: Name, attempt: AttemptNumber, done: Done) {
        if let Some(node) = self.nodes.get_mut(&task) {
            // What an earlier attempt has spawned belongs to nothing that is kept.
            node.is_unknown |= attempt != AttemptNumber(0) && !node.spawned.is_empty();
            node.done = Some(done);
        }
    }

    /// A task has left the graph. Gives the tasks that are resolved by that, children first.
    pub(super) fn on_over(&mut self, task: Name, has_failed: bool) -> Vec<Resolved> {
        let mut resolved = Vec::new();
        if let Some(node) = self.nodes.get_mut(&task) {
            node.is_over = true;
            node.is_unknown |= has_failed || node.done.is_none();
            self.resolve(task, &mut resolved);
        }
        resolved
    }

    fn resolve(&mut self, task: Name, resolved: &mut Vec<Resolved>) {
        let mut next = Some(task);
        while let Some(task) = next.take() {
            let is_ready = |node: &Node| node.is_over && (node.is_unknown || node.open == 0);
            if !self.nodes.get(&task).is_some_and(is_ready) {
                return;
            }
            let node = self.nodes.remove(&task).expect("it was just found");
            let parent = node.parent;
            let subtree = node.subtree(task).map(Arc::new);
            if let Some((parent, action)) = parent
                && let Some(above) = self.nodes.get_mut(&parent)
            {
                above.on_child_resolved(action, subtree.as_deref());
                next = Some(parent);
            }
            resolved.push((task, subtree));
        }
    }
}

impl Node {
    fn on_child_resolved(&mut self, action: u64, child: Option<&Subtree>) {
        self.open = self.open.saturating_sub(1);
        let known = child.filter(|_| !self.is_unknown);
        if !known.is_some_and(|child| self.beneath.add(action, child)) {
            self.is_unknown = true;
            self.beneath = Beneath::default();
        }
    }

    fn subtree(self, task: Name) -> Option<Subtree> {
        let done = self.done.filter(|_| !self.is_unknown)?;
        let beneath = self.beneath;
        let mut merged = Subtree::of_one(task, &done);
        if let Gave::Handed(object) = done.gave {
            merged.outputs = handed(task, object, &beneath.given);
        }
        merged.printed = written(&done.written, &beneath.printed)?;
        merged.read.extend(beneath.read.into_values().flatten());
        merged.code.extend(beneath.code);
        merged.is_harmless &= !beneath.is_harmful;
        merged.is_harmless |= done.is_promised;
        (merged.read.len() <= READ_MAX).then_some(merged)
    }
}

impl Beneath {
    /// Adds what the child of that action has done; false if that is more than can be kept.
    fn add(&mut self, action: u64, child: &Subtree) -> bool {
        self.is_harmful |= !child.is_harmless;
        for (digest, code) in child.codes() {
            self.code.entry(digest).or_insert_with(|| code.clone());
        }
        if !child.read.is_empty() {
            self.read.insert(action, child.read.clone());
        }
        if !child.printed.is_empty() {
            let printed = child.printed.iter();
            let bytes = printed.map(|printed| printed.bytes.len() as u64);
            self.printed_bytes += bytes.sum::<u64>();
            self.printed.insert(action, child.printed.clone());
        }
        if let Some(outputs) = &child.outputs {
            self.given.insert(action, outputs.clone());
            if self.given.len() > GIVEN_MAX {
                self.given.pop_first();
            }
        }
        self.printed_bytes <= PRINTED_BYTES_MAX
    }
}

/// What a task has written itself, and its children at their places; none if it is too much.
fn written(own: &[Segment], children: &BTreeMap<u64, Vec<Printed>>) -> Option<Vec<Printed>> {
    let mut written = Written::default();
    let mut own = own.iter().peekable();
    for (action, printed) in children {
        while let Some(segment) = own.next_if(|segment| segment.after <= *action) {
            written.add(segment.file.as_ref(), &segment.bytes);
        }
        for printed in printed {
            written.add(printed.file.as_ref(), &printed.bytes);
        }
    }
    own.for_each(|segment| written.add(segment.file.as_ref(), &segment.bytes));
    written.printed()
}

impl Subtree {
    /// Of a task that has spawned nothing; none if it has printed too much.
    pub(super) fn of(task: Name, done: &Done) -> Option<Subtree> {
        let mut written = Written::default();
        for segment in &done.written {
            written.add(segment.file.as_ref(), &segment.bytes);
        }
        let printed = written.printed()?;
        Some(Subtree {
            printed,
            is_harmless: done.is_harmless || done.is_promised,
            ..Subtree::of_one(task, done)
        })
    }

    fn of_one(task: Name, done: &Done) -> Subtree {
        let read = done.read.iter();
        let given = |(index, output): (usize, &KeptOutput)| GivenOutput {
            output: output.clone(),
            maker: (task, index),
        };
        let outputs = match &done.gave {
            Gave::Values(outputs) => Some(outputs.iter().enumerate().map(given).collect()),
            Gave::Handed(_) | Gave::Unknown => None,
        };
        Subtree {
            printed: Vec::new(),
            outputs,
            read: read.map(|file| (file.path.clone(), file.clone())).collect(),
            own: done.code.clone(),
            code: BTreeMap::new(),
            is_harmless: done.is_harmless,
        }
    }

    /// All code that ran, its own first.
    fn codes(&self) -> impl Iterator<Item = (Digest, &Reached)> {
        let own = self.own.digest().map(|digest| (digest, &self.own));
        let beneath = self.code.iter().map(|(digest, code)| (*digest, code));
        let is_other = |(digest, _): &(Digest, &Reached)| Some(*digest) != self.own.digest();
        own.into_iter().chain(beneath.filter(is_other))
    }

    /// Files that were read, by path.
    pub(super) fn read(&self) -> Vec<FileRead> {
        self.read.values().cloned().collect()
    }

    /// Pieces of code beneath a task that its own code does not lead to.
    pub(super) fn unnamed_by<'a>(&'a self, own: &'a [FunctionCode]) -> Vec<&'a FunctionCode> {
        let all = self.codes().map(|(_, code)| code);
        let others = all.filter(|code| code.pieces() != own);
        let pieces = others.flat_map(|code| called(code.pieces()));
        let is_own = |piece: &FunctionCode| {
            own.iter()
                .any(|known| known.digest == piece.digest && known.name == piece.name)
        };
        pieces.filter(|piece| !is_own(piece)).collect()
    }
}

/// The outputs of a task whose only one is that object, which a child of its has made.
fn handed(
    task: Name,
    object: Name,
    children: &BTreeMap<u64, Arc<[GivenOutput]>>,
) -> Option<Arc<[GivenOutput]>> {
    let mut latest = children.iter().rev();
    latest.find_map(|(action, outputs)| {
        let child_name = task.spawn(*action);
        let mut numbered = (0..).zip(outputs.iter());
        let (_, given) = numbered.find(|(index, _)| child_name.output(*index) == object)?;
        Some([given.clone()].into())
    })
}

/// The pieces of a function as others list them: they name it once, with all that it captures.
fn called(pieces: &[FunctionCode]) -> &[FunctionCode] {
    match pieces {
        [bare, whole, ..] if bare.name == whole.name && bare.place == whole.place => &pieces[1..],
        _ => pieces,
    }
}

/// Bytes by the place that they go to, the places in the order of their first use.
#[derive(Default)]
struct Written(Vec<(Option<Arc<str>>, Vec<u8>)>);

impl Written {
    fn add(&mut self, file: Option<&Arc<str>>, bytes: &[u8]) {
        match self.0.iter_mut().find(|(known, _)| known.as_ref() == file) {
            Some((_, all)) => all.extend_from_slice(bytes),
            None => self.0.push((file.cloned(), bytes.to_vec())),
        }
    }

    /// None if it is more than can be kept.
    fn printed(self) -> Option<Vec<Printed>> {
        let length: usize = self.0.iter().map(|(_, bytes)| bytes.len()).sum();
        let printed = |(file, bytes): (Option<Arc<str>>, Vec<u8>)| Printed {
            file,
            bytes: bytes.into(),
        };
        (length as u64 <= PRINTED_BYTES_MAX).then(|| self.0.into_iter().map(printed).collect())
    }
}

#[cfg(test)]
mod tests {
    use ciel_model::Site;

    use super::*;

    const ROOT: Name = Name(1);
    const CHILD: Name = Name(2);
    const OTHER: Name = Name(3);
    const FIRST: AttemptNumber = AttemptNumber(0);

    fn segment(after: u64, file: Option<&str>, bytes: &'static str) -> Segment {
        Segment {
            after,
            file: file.map(Into::into),
            bytes: bytes.into(),
        }
    }

    fn done(written: Vec<Segment>) -> Done {
        Done {
            written,
            is_harmless: true,
            ..Done::default()
        }
    }

    fn texts(subtree: &Subtree) -> Vec<(Option<&str>, &str)> {
        let text = |printed: &Printed| std::str::from_utf8(&printed.bytes).unwrap().to_string();
        let printed = subtree.printed.iter();
        printed
            .map(|it| (it.file.as_deref(), &*text(it).leak()))
            .collect()
    }

    /// A root that has spawned two as actions 0 and 2, and prints around them.
    fn parent() -> Subtrees {
        let mut trees = Subtrees::default();
        trees.on_spawned(ROOT, 0, CHILD);
        trees.on_spawned(ROOT, 2, OTHER);
        let own = vec![
            segment(0, None, "a"),
            segment(1, None, "c"),
            segment(1, Some("log"), "x"),
            segment(3, None, "e"),
        ];
        trees.on_ended(ROOT, FIRST, done(own));
        trees
    }

    #[test]
    fn output_of_a_task_and_its_children_comes_in_serial_order() {
        let mut trees = parent();
        assert!(trees.on_over(ROOT, false).is_empty());
        trees.on_ended(OTHER, FIRST, done(vec![segment(0, None, "d")]));
        assert_eq!(trees.on_over(OTHER, false).len(), 1);
        let own = vec![segment(0, Some("log"), "w"), segment(0, None, "b")];
        trees.on_ended(CHILD, FIRST, done(own));
        let resolved = trees.on_over(CHILD, false);
        let (name, root) = resolved.last().unwrap();
        assert_eq!((resolved.len(), *name), (2, ROOT));
        let expected = [(None, "abcde"), (Some("log"), "wx")];
        assert_eq!(texts(root.as_ref().unwrap()), expected);
        assert!(trees.nodes.is_empty());
    }

    #[test]
    fn task_with_a_child_that_failed_or_of_which_nothing_is_known_is_not_known() {
        for has_failed in [true, false] {
            let mut trees = parent();
            trees.on_over(ROOT, false);
            let resolved = trees.on_over(CHILD, has_failed);
            assert_eq!(resolved, [(CHILD, None), (ROOT, None)]);
            assert_eq!(trees.on_over(OTHER, false), [(OTHER, None)]);
            assert!(trees.nodes.is_empty());
        }
    }

    #[test]
    fn task_that_was_retried_after_it_had_spawned_is_not_known() {
        let mut trees = Subtrees::default();
        trees.on_spawned(ROOT, 0, CHILD);
        trees.on_ended(CHILD, FIRST, done(Vec::new()));
        trees.on_over(CHILD, false);
        trees.on_ended(ROOT, AttemptNumber(1), done(Vec::new()));
        assert_eq!(trees.on_over(ROOT, false), [(ROOT, None)]);
    }

    /// Each of them kept half a kilobyte until its parent ended: a task that mapped over an endless
    /// iterator took more than a gigabyte.
    #[test]
    fn silent_children_that_are_resolved_take_no_memory() {
        let mut trees = Subtrees::default();
        for action in 0..3 * GIVEN_MAX as u64 {
            let child = ROOT.spawn(action);
            trees.on_spawned(ROOT, action, child);
            let gave = Gave::Values(Vec::new());
            trees.on_ended(
                child,
                FIRST,
                Done {
                    gave,
                    ..done(Vec::new())
                },
            );
            trees.on_over(child, false);
        }
        let beneath = &trees.nodes[&ROOT].beneath;
        assert_eq!(trees.nodes.len(), 1);
        assert_eq!(beneath.given.len(), GIVEN_MAX);
        assert!(beneath.printed.is_empty() && beneath.read.is_empty());
    }

    #[test]
    fn task_whose_children_print_more_than_can_be_kept_is_not_known() {
        let mut trees = parent();
        let many: &str = "m".repeat(PRINTED_BYTES_MAX as usize - 1).leak();
        for (child, bytes) in [(CHILD, many), (OTHER, "mm")] {
            trees.on_ended(child, FIRST, done(vec![segment(0, None, bytes)]));
            assert!(matches!(&trees.on_over(child, false)[..], [(_, Some(_))]));
        }
        assert!(trees.nodes[&ROOT].beneath.printed.is_empty());
        assert_eq!(trees.on_over(ROOT, false), [(ROOT, None)]);
    }

    #[test]
    fn promise_of_a_parent_covers_what_its_children_do() {
        for is_promised in [true, false] {
            let mut trees = Subtrees::default();
            trees.on_spawned(ROOT, 0, CHILD);
            trees.on_ended(CHILD, FIRST, Done::default());
            trees.on_over(CHILD, false);
            let own = Done {
                is_promised,
                ..done(Vec::new())
            };
            trees.on_ended(ROOT, FIRST, own);
            let (_, root) = trees.on_over(ROOT, false).pop().unwrap();
            assert_eq!(root.unwrap().is_harmless, is_promised);
        }
    }

    #[test]
    fn code_beneath_counts_unless_the_parent_leads_to_it() {
        let piece = |name: &str, digest| FunctionCode {
            name: name.into(),
            place: Site::default(),
            digest: Digest(digest),
        };
        let child = Reached::of(vec![piece("f", 1), piece("f", 2), piece("g", 3)]);
        let subtree = Subtree::of(
            CHILD,
            &Done {
                code: child,
                ..Done::default()
            },
        );
        let subtree = subtree.unwrap();
        let own = Reached::of(vec![piece("root", 9), piece("f", 2), piece("g", 3)]);
        assert!(subtree.unnamed_by(own.pieces()).is_empty());
        let own = Reached::of(vec![piece("root", 9), piece("f", 2), piece("g", 4)]);
        assert_eq!(subtree.unnamed_by(own.pieces()), [&piece("g", 3)]);
    }
}
