//! Two closures that may run at the same time.
//!
//! A closure that no other thread takes runs in the strand of its parent: nothing is allocated, and
//! nothing is written but fields of the own thread. One that *migrates* gets a node and a state,
//! and is joined in constant time. It knows rayon, and not how a file is written. Read next:
//! `strand`, `scope`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::strand::{Node, Pointer, State};
use crate::thread::{self, Forking, Standing};

/// Runs two closures, perhaps at the same time, as [`rayon::join`] does: both are strands, and all
/// that the first one writes precedes what the second one writes. Pointers of files in local mode
/// begin in both where they are now, and are there again afterwards.
///
/// # Panics
/// If a closure does. What the serial elision would have written by then stays.
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    match thread::is_in_pool() {
        true => join_here(a, b),
        false => in_pool(|| join_here(a, b)),
    }
}

/// Continues the strand of this thread on a thread of the pool.
pub(crate) fn in_pool<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::forking();
    let mut own = thread::replace(Standing::default());
    let result = rayon::scope(|_| {
        let before = thread::replace(std::mem::take(&mut own));
        let result = catch_unwind(AssertUnwindSafe(act));
        own = thread::replace(before);
        result
    });
    thread::replace(own);
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

#[inline]
fn join_here<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let Some(Forking { root, has_pointers }) = thread::forking() else {
        return rayon::join(a, b);
    };
    let frame = Frame {
        pointers: has_pointers.then(pointers),
        stolen: OnceLock::new(),
        first_panicked: AtomicBool::new(false),
    };
    let rejoin = Rejoin(&frame);
    let results = rayon::join_context(
        |_| {
            let mut first = First {
                frame: &frame,
                is_whole: false,
            };
            let result = a();
            first.is_whole = true;
            result
        },
        |context| match context.migrated() {
            true => frame.run_stolen(root, b),
            false => {
                thread::unpark();
                frame.rewind();
                b()
            }
        },
    );
    drop(rejoin);
    results
}

/// The pointers of the strand that runs here.
#[cold]
fn pointers() -> Box<[Pointer]> {
    let pointers = thread::current(|own| own.pointers.clone());
    pointers
        .expect("a strand that forks runs here")
        .into_boxed_slice()
}

/// What the two closures of a join share.
struct Frame {
    /// The pointers at the fork, if there were any.
    pointers: Option<Box<[Pointer]>>,
    /// The node before the second closure, if another thread has taken it.
    stolen: OnceLock<Arc<Node>>,
    /// The first closure has panicked, so the serial elision does not run the second one.
    first_panicked: AtomicBool,
}

impl Frame {
    /// Moves the pointers to where they were at the fork.
    #[inline]
    fn rewind(&self) {
        if let Some(at_fork) = &self.pointers {
            rewind(at_fork);
        }
    }

    fn run_stolen<R>(&self, root: u64, b: impl FnOnce() -> R) -> R {
        let node = self.stolen.get_or_init(Node::new);
        let pointers = self.pointers.as_deref().unwrap_or_default().to_vec();
        let own = State::forked(root, pointers, Some(node.clone()));
        let _second = Second {
            node,
            before: thread::replace(Standing::of(own)),
        };
        b()
    }
}

#[cold]
fn rewind(at_fork: &[Pointer]) {
    thread::change_pointers(|pointers| {
        pointers.clear();
        pointers.extend_from_slice(at_fork);
    });
}

/// The first closure of a join, while it runs.
struct First<'a> {
    frame: &'a Frame,
    is_whole: bool,
}

impl Drop for First<'_> {
    /// The strand waits. If the second closure runs elsewhere, its turn may come from now on,
    /// unless the first one has panicked.
    #[inline]
    fn drop(&mut self) {
        match self.frame.stolen.get() {
            Some(node) if self.is_whole => wait_at(node),
            Some(_) | None => thread::park(),
        }
        if !self.is_whole {
            self.frame.first_panicked.store(true, Ordering::Relaxed);
        }
    }
}

#[cold]
fn wait_at(node: &Arc<Node>) {
    if let Some(own) = thread::take_to_wait() {
        node.wait(own);
    }
}

/// The second closure of a join, while it runs on another thread.
struct Second<'a> {
    node: &'a Arc<Node>,
    before: Standing,
}

impl Drop for Second<'_> {
    fn drop(&mut self) {
        let own = thread::replace(std::mem::take(&mut self.before));
        self.node
            .end_behind(own.state.expect("a strand runs until its closure ends"));
    }
}

/// After a join, or when it is left by a panic: the strand continues.
struct Rejoin<'a>(&'a Frame);

impl Drop for Rejoin<'_> {
    #[inline]
    fn drop(&mut self) {
        match self.0.stolen.get() {
            None => thread::unpark(),
            Some(node) => rejoin(node, self.0.first_panicked.load(Ordering::Relaxed)),
        }
        self.0.rewind();
    }
}

/// Puts the strand that waits at a node, or is parked here, on its thread again.
#[cold]
fn rejoin(node: &Arc<Node>, first_panicked: bool) {
    let here = thread::replace(Standing::default());
    let mut own = node
        .take_waiting()
        .or(here.state)
        .expect("the strand waits for its join");
    if let Some(ended) = node.take_ended()
        && !first_panicked
    {
        own = rejoined(node, own, ended);
    }
    thread::replace(Standing::of(own));
}

/// A strand with what the second closure has written. If strands that the closure has forked for
/// ever still run, the strand continues behind them.
pub(crate) fn rejoined(node: &Arc<Node>, mut own: Box<State>, mut ended: Box<State>) -> Box<State> {
    ended.absorb();
    let is_whole = ended
        .node
        .as_ref()
        .is_some_and(|last| Arc::ptr_eq(last, node));
    if is_whole {
        own.join(*ended);
        return own;
    }
    node.end_before(own);
    ended
}
