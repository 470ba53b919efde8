//! Where the two strands of a join meet whose second closure another thread has taken.
//!
//! The second strand is *idle* until it acts: it has neither a state nor a node, but knows the
//! join, which has both made when they are needed. So a closure that is taken and writes nothing
//! leaves no trace. The first strand, when its closure has ended, waits at the node, or here as
//! long as there is none. It does not know threads nor rayon. Read next: `strand`, then `join`.

use std::fmt;
use std::ptr::NonNull;
use std::sync::PoisonError;

use crate::strand::{Node, Pointer, State};
use crate::sync::{Arc, Mutex, MutexGuard};

/// The strand that a thread runs, or that waits.
#[derive(Debug, Default)]
pub(crate) enum Own {
    #[default]
    None,
    Begun(Box<State>),
    Idle(Idle),
}

impl Own {
    /// Its state; an idle strand begins.
    #[inline]
    pub(crate) fn state(&mut self) -> Option<&mut State> {
        if let Own::Idle(_) = self {
            self.begin();
        }
        match self {
            Own::Begun(state) => Some(state),
            Own::Idle(_) | Own::None => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self) {
        let begun = std::mem::take(self).into_state();
        *self = begun.map_or(Own::None, Own::Begun);
    }

    /// The same, for whoever keeps it.
    pub(crate) fn into_state(self) -> Option<Box<State>> {
        match self {
            Own::Begun(state) => Some(state),
            Own::Idle(idle) => Some(idle.begin()),
            Own::None => None,
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Own::None)
    }

    /// The thread from whose first open it descends.
    pub(crate) fn root(&self) -> Option<u64> {
        match self {
            Own::Begun(state) => Some(state.root),
            Own::Idle(idle) => Some(idle.join().root()),
            Own::None => None,
        }
    }

    /// Whether it has pointers into files that are open in local mode.
    pub(crate) fn has_pointers(&self) -> bool {
        match self {
            Own::Begun(state) => !state.pointers.is_empty(),
            Own::Idle(idle) => !idle.join().pointers().is_empty(),
            Own::None => false,
        }
    }

    /// Its pointers into files that are open in local mode.
    pub(crate) fn pointers(&self) -> Vec<Pointer> {
        match self {
            Own::Begun(state) => state.pointers.clone(),
            Own::Idle(idle) => idle.join().pointers(),
            Own::None => Vec::new(),
        }
    }
}

/// A join whose second closure another thread has taken.
pub(crate) trait Join: Sync {
    /// The thread from whose first open both strands descend.
    fn root(&self) -> u64;

    /// The pointers into files in local mode with which the second strand begins.
    fn pointers(&self) -> Vec<Pointer>;

    /// Where its strands meet.
    fn meeting(&self) -> &Meeting;
}

/// The second strand of a join, which has not acted yet.
pub(crate) struct Idle(NonNull<dyn Join>);

// SAFETY: what it points to is shared by threads as a reference would be, and `Join` is `Sync`.
unsafe impl Send for Idle {}

impl Idle {
    /// The second strand of this join.
    ///
    /// # Safety
    /// It is dropped, or begins, before the join ends.
    pub(crate) unsafe fn second_of(join: &(dyn Join + '_)) -> Idle {
        let join = NonNull::from(join);
        // SAFETY: the types differ in a lifetime only, and the caller promises to keep it.
        Idle(unsafe { std::mem::transmute::<NonNull<dyn Join + '_>, NonNull<dyn Join>>(join) })
    }

    fn join(&self) -> &dyn Join {
        // SAFETY: who made it has promised that the join has not ended.
        unsafe { self.0.as_ref() }
    }

    #[cold]
    fn begin(&self) -> Box<State> {
        let join = self.join();
        State::forked(join.root(), join.pointers(), Some(join.meeting().node()))
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Idle")
    }
}

/// Where the two strands meet.
#[derive(Debug)]
pub(crate) struct Meeting(Mutex<Met>);

#[derive(Debug, Default)]
struct Met {
    /// The first strand, if it waits and there is no node.
    waits: Own,
    node: Option<Arc<Node>>,
}

/// What is left when both closures have ended.
pub(crate) struct Parted {
    /// The first strand, if it waited.
    pub(crate) first: Own,
    /// The second one, if it has acted, with the node before it.
    pub(crate) second: Option<(Arc<Node>, Box<State>)>,
}

impl Meeting {
    pub(crate) fn new() -> Meeting {
        Meeting(Mutex::new(Met::default()))
    }

    fn met(&self) -> MutexGuard<'_, Met> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node between the two, made if there is none. Locks are taken against serial order here,
    /// too: a first strand that waits here is itself an idle second one now and then.
    fn node(&self) -> Arc<Node> {
        let mut met = self.met();
        if let Some(node) = &met.node {
            return node.clone();
        }
        let node = Node::new();
        if let Some(first) = std::mem::take(&mut met.waits).into_state() {
            node.wait(first);
        }
        met.node = Some(node.clone());
        node
    }

    /// The closure of the first strand has ended.
    pub(crate) fn wait(&self, first: Own) {
        let mut met = self.met();
        match &met.node {
            None => met.waits = first,
            Some(node) => {
                if let Some(first) = first.into_state() {
                    node.wait(first);
                }
            }
        }
    }

    /// The closure of the second strand has ended.
    pub(crate) fn end_second(&self, second: Own) {
        if let Own::Begun(second) = second {
            self.node().end_behind(second);
        }
    }

    /// Both closures have ended.
    pub(crate) fn part(&self) -> Parted {
        let mut met = self.met();
        let first = std::mem::take(&mut met.waits);
        let Some(node) = met.node.take() else {
            return Parted {
                first,
                second: None,
            };
        };
        let first = node.take_waiting().map_or(Own::None, Own::Begun);
        let second = node.take_ended().map(|second| (node, second));
        Parted { first, second }
    }
}
