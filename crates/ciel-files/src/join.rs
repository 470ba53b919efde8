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
use crate::thread;

/// Runs two closures, perhaps at the same time, as [`rayon::join`] does: both are strands, and all
/// that the first one writes precedes what the second one writes. Pointers of files in local mode
/// begin in both where they are now, and are there again afterwards.
///
/// # Panics
/// If a closure does. What the serial elision would have written by then stays.
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    match rayon::current_thread_index() {
        Some(_) => join_here(a, b),
        None => in_pool(|| join_here(a, b)),
    }
}

/// Continues the strand of this thread on a thread of the pool.
pub(crate) fn in_pool<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::current_or_root(|_| ());
    let mut own = thread::put(None);
    let result = rayon::scope(|_| {
        let before = thread::put(own.take());
        let result = catch_unwind(AssertUnwindSafe(act));
        own = thread::put(before);
        result
    });
    thread::put(own);
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

fn join_here<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let begin = thread::current_or_root(|own| (own.root, own.pointers.clone()));
    let Some((root, pointers)) = begin else {
        return rayon::join(a, b);
    };
    let frame = Frame {
        pointers,
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

/// What the two closures of a join share.
struct Frame {
    /// The pointers at the fork.
    pointers: Vec<Pointer>,
    /// The node before the second closure, if another thread has taken it.
    stolen: OnceLock<Arc<Node>>,
    /// The first closure has panicked, so the serial elision does not run the second one.
    first_panicked: AtomicBool,
}

impl Frame {
    /// Moves the pointers to where they were at the fork.
    fn rewind(&self) {
        if !self.pointers.is_empty() {
            thread::current(|own| own.pointers.clone_from(&self.pointers));
        }
    }

    fn run_stolen<R>(&self, root: u64, b: impl FnOnce() -> R) -> R {
        let node = self.stolen.get_or_init(Node::new);
        let own = State::forked(root, self.pointers.clone(), Some(node.clone()));
        let _second = Second {
            node,
            before: thread::put(Some(own)),
        };
        b()
    }
}

/// The first closure of a join, while it runs.
struct First<'a> {
    frame: &'a Frame,
    is_whole: bool,
}

impl Drop for First<'_> {
    /// The strand waits. If the second closure runs elsewhere, its turn may come from now on,
    /// unless the first one has panicked.
    fn drop(&mut self) {
        let stolen = self.frame.stolen.get();
        match stolen.filter(|_| self.is_whole) {
            Some(node) => {
                if let Some(own) = thread::take_to_wait() {
                    node.wait(own);
                }
            }
            None => thread::park(),
        }
        if !self.is_whole {
            self.frame.first_panicked.store(true, Ordering::Relaxed);
        }
    }
}

/// The second closure of a join, while it runs on another thread.
struct Second<'a> {
    node: &'a Arc<Node>,
    before: Option<Box<State>>,
}

impl Drop for Second<'_> {
    fn drop(&mut self) {
        let own = thread::put(self.before.take());
        self.node
            .end_behind(own.expect("a strand runs until its closure ends"));
    }
}

/// After a join, or when it is left by a panic: the strand continues.
struct Rejoin<'a>(&'a Frame);

impl Drop for Rejoin<'_> {
    fn drop(&mut self) {
        let Some(node) = self.0.stolen.get() else {
            thread::unpark();
            return self.0.rewind();
        };
        let here = thread::put(None);
        let mut own = node
            .take_waiting()
            .or(here)
            .expect("the strand waits for its join");
        own.is_parked = false;
        if let Some(ended) = node.take_ended()
            && !self.0.first_panicked.load(Ordering::Relaxed)
        {
            own = rejoined(node, own, ended);
        }
        thread::put(Some(own));
        self.0.rewind();
    }
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
