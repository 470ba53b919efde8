//! Strands that spawn faster than their children end: they pause, so that a job needs memory for a
//! bounded number of tasks that wait, whatever it spawns in the end.
//!
//! A strand can pause where it *yields*: where it waits for nothing. If more than a bound of its
//! children have not ended by then, it is not offered to a site, so it has no slot, until half of
//! the bound is left. A strand that never yields is never paused. Which strand pauses when is a
//! matter of scheduling: nothing of it is recorded, and a run that is resumed begins with nothing
//! paused.
//!
//! # Why no job hangs that would end without the bound
//!
//! Of the unfinished tasks take the one that the serial program would be at, the *first*: all
//! before it has ended, and all that is beneath it. It can name only what was spawned before it or
//! beneath it, so it waits for nothing. It is not paused, as it has no unfinished children. So it
//! runs and ends, and then the next one is first: every child of a paused strand comes before what
//! this strand does next, so all of them end, whether or not strands beneath are paused, too. With
//! any bound, and at any depth of a recursion whose levels are all paused, the innermost level
//! continues.
//!
//! That needs what the serial program has: a task waits for earlier ones only. There are these
//! exceptions:
//!
//! - a strand whose outputs others read while it writes them: children that do so wait for itself.
//!   It never pauses, and neither does one that reads a stream;
//! - an equal call, whose result is to come from a later one that began first;
//! - a task that waits for the end of an output of its ancestor's, as it read that from the start.
//!
//! A task in such a wait has no slot. So the bound *gives way* to one paused strand after the
//! other, in serial order, whenever no task but the root has a slot or is on its way to one, no
//! result is looked up and no time limit is set: then nothing else would happen. (The root of a
//! session always has its slot; that of a program which computes continues beside them.) Each time,
//! a strand spawns until it yields again, so every strand comes to its end. The times are counted.
//! What tasks say to each other outside of the engine is not seen: a child that never ends unless
//! its parent spawns more may keep it paused, if there are as many children beside it.
//!
//! The root of a session is never offered again: it keeps its slot. It asks to be told when few
//! of its children are left, spawns nothing meanwhile, and the bound gives way to it, too.
//!
//! It does not know how many children a strand has. Read next: `children` of `ciel-graph`.

use std::collections::BTreeMap;

use ciel_graph::Graph;
use ciel_model::{KeyMap, SegmentedQueue, StrandKey, TaskKey};
use ciel_node::AttemptKey;
use serde::{Deserialize, Serialize};

use super::{FromHome, Home};
use crate::message::{Notice, Offer, ToSite};

/// How it stands with strands that have too many children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pausing {
    /// Strands that are paused.
    pub paused: usize,
    /// How often a strand was paused so far.
    pub ever_paused: u64,
    /// Times that a strand resumed although no more of its children had ended, because nothing else
    /// could have happened.
    pub gave_way: u64,
}

/// The strands that are paused.
#[derive(Clone, Debug)]
pub(super) struct Spawners {
    children_max: u32,
    /// By their attempts.
    paused: BTreeMap<AttemptKey, (StrandKey, Box<Offer>)>,
    attempts: KeyMap<StrandKey, AttemptKey>,
    /// The root, if it awaits in its slot that few children are left.
    root: Option<(StrandKey, AttemptKey)>,
    ever_paused: u64,
    gave_way: u64,
}

impl Spawners {
    fn new(children_max: u32) -> Spawners {
        Spawners {
            children_max,
            paused: BTreeMap::new(),
            attempts: KeyMap::default(),
            root: None,
            ever_paused: 0,
            gave_way: 0,
        }
    }

    fn put(&mut self, strand: StrandKey, offer: Box<Offer>) {
        let attempt = offer.attempt;
        self.ever_paused += u64::from(self.remove(attempt).is_none());
        self.attempts.insert(strand, attempt);
        self.paused.insert(attempt, (strand, offer));
    }

    fn take_root(
        &mut self,
        is_meant: impl Fn(StrandKey, AttemptKey) -> bool,
    ) -> Option<AttemptKey> {
        let taken = self.root.take_if(|(strand, root)| is_meant(*strand, *root));
        taken.map(|(_, attempt)| attempt)
    }

    fn remove(&mut self, attempt: AttemptKey) -> Option<Box<Offer>> {
        let (strand, offer) = self.paused.remove(&attempt)?;
        if self.attempts.get(&strand) == Some(&attempt) {
            self.attempts.remove(&strand);
        }
        Some(offer)
    }

    /// The first of them in serial order.
    fn first(&self) -> Option<AttemptKey> {
        let places = self.paused.iter();
        let first = places.min_by_key(|(attempt, (_, offer))| (offer.label, **attempt));
        first.map(|(attempt, _)| *attempt)
    }
}

/// Whether a strand with so many children pauses where it yields.
fn is_crowded(graph: &Graph, children_max: u32, strand: StrandKey) -> bool {
    graph.unfinished_children(strand) > children_max
}

impl Home {
    /// From now on strands pause of which more than so many children, at least one, have not ended.
    pub(crate) fn bound_children(&mut self, children_max: u32) {
        let children_max = children_max.max(1);
        self.state.count_children(children_max / 2);
        self.spawners = Some(Box::new(Spawners::new(children_max)));
    }

    /// Whether so many children of a strand have not ended that it is to yield.
    pub(crate) fn has_many_children(&self, strand: StrandKey) -> bool {
        let spawners = self.spawners.as_ref();
        spawners.is_some_and(|one| is_crowded(self.graph(), one.children_max, strand))
    }

    /// How many children of a paused attempt have not ended; none if it is not paused.
    pub(crate) fn paused_for(&self, attempt: AttemptKey) -> Option<u32> {
        let spawners = self.spawners.as_ref()?;
        let offered = spawners.paused.get(&attempt).map(|(strand, _)| *strand);
        let root = spawners.root.filter(|(_, root)| *root == attempt);
        let strand = offered.or(root.map(|(strand, _)| strand))?;
        Some(self.graph().unfinished_children(strand))
    }

    /// How it stands with the bound of children, if there is one.
    pub(crate) fn pausing(&self) -> Option<Pausing> {
        let spawners = self.spawners.as_ref()?;
        Some(Pausing {
            paused: spawners.paused.len() + usize::from(spawners.root.is_some()),
            ever_paused: spawners.ever_paused,
            gave_way: spawners.gave_way,
        })
    }

    /// Keeps the offer of a strand that pauses, or gives it back.
    pub(super) fn pause(&mut self, offer: Box<Offer>) -> Option<Box<Offer>> {
        let Some(spawners) = &mut self.spawners else {
            return Some(offer);
        };
        let attempt = offer.attempt;
        let graph = self.state.graph();
        let is_paused = spawners.paused.contains_key(&attempt);
        let yields = self.asks == Some(attempt) && !graph.has_streams(attempt.task);
        let strand = graph.strand_of(attempt.task);
        let pauses = |strand: &StrandKey| {
            is_paused || yields && is_crowded(graph, spawners.children_max, *strand)
        };
        match strand.filter(pauses) {
            Some(strand) => {
                spawners.put(strand, offer);
                None
            }
            None => Some(offer),
        }
    }

    /// The root awaits in its slot that few of its children are left; it is told so at once unless
    /// it has too many.
    pub(crate) fn on_children_awaited(
        &mut self,
        attempt: AttemptKey,
        out: &mut SegmentedQueue<FromHome>,
    ) {
        let graph = self.state.graph();
        let is_root = graph.root() == Some(attempt.task) && !graph.has_streams(attempt.task);
        let strand = graph.strand_of(attempt.task).filter(|_| is_root);
        let crowded = self.spawners.as_mut().zip(strand);
        let crowded = crowded.filter(|(one, strand)| is_crowded(graph, one.children_max, *strand));
        match crowded {
            Some((spawners, strand)) => {
                spawners.ever_paused += u64::from(spawners.root.is_none());
                spawners.root = Some((strand, attempt));
            }
            None => self.tell_few_children(attempt, out),
        }
    }

    fn tell_few_children(&mut self, attempt: AttemptKey, out: &mut SegmentedQueue<FromHome>) {
        if let Some(spawners) = &mut self.spawners {
            spawners.take_root(|_, root| root == attempt);
        }
        let notice = Notice::FewChildren;
        self.send(attempt, ToSite::Notify { attempt, notice }, out);
    }

    /// Few children of a strand are left.
    pub(super) fn on_few_children(
        &mut self,
        strand: StrandKey,
        out: &mut SegmentedQueue<FromHome>,
    ) {
        let spawners = self.spawners.as_mut();
        let root = spawners.and_then(|one| one.take_root(|its, _| its == strand));
        if let Some(root) = root {
            return self.tell_few_children(root, out);
        }
        let spawners = self.spawners.as_mut();
        let paused = spawners.and_then(|one| {
            let attempt = *one.attempts.get(&strand)?;
            one.remove(attempt)
        });
        if let Some(offer) = paused {
            self.unpause(offer, out);
        }
    }

    /// A message to the site of an attempt that may be paused.
    pub(super) fn note_for_paused(&mut self, attempt: AttemptKey, message: &ToSite) {
        let Some(spawners) = &mut self.spawners else {
            return;
        };
        match message {
            ToSite::Relabel { label, .. } => {
                if let Some((_, offer)) = spawners.paused.get_mut(&attempt) {
                    offer.label = *label;
                }
            }
            ToSite::Withdraw { .. } | ToSite::Stop { .. } => {
                spawners.remove(attempt);
                spawners.take_root(|_, root| root == attempt);
            }
            _ => {}
        }
    }

    /// Resumes a paused strand if nothing else would happen.
    pub(super) fn give_way_to_spawner(&mut self, out: &mut SegmentedQueue<FromHome>) -> bool {
        let spawners = self.spawners.as_ref();
        let is_paused = spawners.is_some_and(|one| one.root.is_some() || !one.paused.is_empty());
        if !is_paused || !self.is_idle() {
            return false;
        }
        let spawners = self.spawners.as_mut();
        let offer = spawners.and_then(|one| {
            one.gave_way += 1;
            one.remove(one.first()?)
        });
        match offer {
            Some(offer) => self.unpause(offer, out),
            None => self.give_way_to_root(out),
        }
        true
    }

    /// The root comes last: whoever else is paused spawns less by then.
    fn give_way_to_root(&mut self, out: &mut SegmentedQueue<FromHome>) {
        let root = self
            .spawners
            .as_mut()
            .and_then(|one| one.take_root(|_, _| true));
        root.into_iter()
            .for_each(|root| self.tell_few_children(root, out));
    }

    /// Whether nothing will happen by itself, but for what the root does.
    fn is_idle(&self) -> bool {
        let graph = self.graph();
        let root: Option<TaskKey> = graph.root();
        !self.placement.is_active_beside(root)
            && !graph.awaits_results()
            && graph.next_time_limit().is_none()
    }

    fn unpause(&mut self, offer: Box<Offer>, out: &mut SegmentedQueue<FromHome>) {
        if let Some(offer) = self.hold(offer) {
            self.offer(offer, out);
        }
    }
}
