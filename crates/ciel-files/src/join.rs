//! Two closures that may run at the same time.
//!
//! A closure that no other thread takes runs in the strand of its parent: nothing is allocated, and
//! nothing is written but fields of the own thread. One that *migrates* gets a node and a state
//! when it first acts, and is joined in constant time. It knows rayon, and not how a file is
//! written. Read next: `meeting`, `strand`, `scope`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::host;
use crate::meeting::{Idle, Join, Meeting, Own, Parted};
use crate::strand::{Node, Pointer, State};
use crate::sync::{Arc, AtomicBool, OnceLock, Ordering};
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
    match thread::plain() {
        Some(root) => join_as(root, NoPointers, a, b),
        None => join_elsewhere(a, b),
    }
}

/// The same where anything is not as usual.
#[cold]
fn join_elsewhere<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    if !thread::is_in_pool() {
        return in_pool(|| join_elsewhere(a, b));
    }
    match thread::forking() {
        None => host::join(a, b),
        Some(Forking { root, has_pointers }) => match has_pointers {
            true => join_as(root, thread::pointers().into_boxed_slice(), a, b),
            false => join_as(root, NoPointers, a, b),
        },
    }
}

/// Continues the strand of this thread on a thread of the pool.
pub(crate) fn in_pool<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::forking();
    let mut own = thread::replace(Standing::default());
    let result = host::scope(|_| {
        let before = thread::replace(std::mem::take(&mut own));
        let result = catch_unwind(AssertUnwindSafe(act));
        own = thread::replace(before);
        result
    });
    thread::replace(own);
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// The pointers of a strand when it forks.
trait Pointers: Sync {
    /// Moves those of the strand that runs here to where they were then.
    fn rewind(&self);

    /// Those with which a strand begins that another thread runs.
    fn copied(&self) -> Vec<Pointer>;
}

/// A strand that has none, as nearly all.
struct NoPointers;

impl Pointers for NoPointers {
    #[inline]
    fn rewind(&self) {}

    fn copied(&self) -> Vec<Pointer> {
        Vec::new()
    }
}

impl Pointers for Box<[Pointer]> {
    #[cold]
    fn rewind(&self) {
        thread::rewind(self);
    }

    fn copied(&self) -> Vec<Pointer> {
        self.to_vec()
    }
}

/// Runs two closures as a strand of this root, on a thread of the pool.
#[inline]
fn join_as<P, A, B, RA, RB>(root: u64, pointers: P, a: A, b: B) -> (RA, RB)
where
    P: Pointers,
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let frame = Frame {
        root,
        pointers,
        stolen: OnceLock::new(),
        first_panicked: AtomicBool::new(false),
    };
    let rejoin = Rejoin(&frame);
    let results = host::join_context(
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
            true => frame.run_stolen(b),
            false => {
                thread::unpark();
                frame.pointers.rewind();
                b()
            }
        },
    );
    // The frame belongs to this function alone now, so that it is looked at once.
    std::mem::forget(rejoin);
    match frame.stolen.into_inner() {
        None => thread::unpark(),
        Some(meeting) => continue_behind(meeting),
    }
    frame.pointers.rewind();
    results
}

/// What the two closures of a join share.
struct Frame<P> {
    /// The thread from whose first open the strand descends.
    root: u64,
    /// The pointers at the fork.
    pointers: P,
    /// Where the two meet, if another thread has taken the second one. Counted, since to drop that
    /// takes fewer instructions in a join that nobody takes.
    stolen: OnceLock<Arc<Meeting>>,
    /// The first closure has panicked, so the serial elision does not run the second one.
    first_panicked: AtomicBool,
}

impl<P: Pointers> Frame<P> {
    #[cold]
    fn run_stolen<R>(&self, b: impl FnOnce() -> R) -> R {
        let meeting = self.stolen.get_or_init(|| Arc::new(Meeting::new()));
        // SAFETY: whoever keeps an idle strand keeps it within a closure of this strand, and that
        // ends before the join: it is put back when the closure ends, whether it panics or not.
        // `Entered` may stay, so there the strand begins.
        let idle = unsafe { Idle::second_of(self) };
        let _second = Second {
            meeting,
            before: thread::replace(Standing::of(Own::Idle(idle))),
        };
        b()
    }
}

impl<P: Pointers> Join for Frame<P> {
    fn root(&self) -> u64 {
        self.root
    }

    fn pointers(&self) -> Vec<Pointer> {
        self.pointers.copied()
    }

    fn meeting(&self) -> &Meeting {
        self.stolen.get().expect("its second closure was taken")
    }
}

/// The first closure of a join, while it runs.
struct First<'a, P> {
    frame: &'a Frame<P>,
    is_whole: bool,
}

impl<P> Drop for First<'_, P> {
    /// The strand waits. If the second closure runs elsewhere, its turn may come from now on,
    /// unless the first one has panicked.
    #[inline]
    fn drop(&mut self) {
        match self.frame.stolen.get() {
            Some(meeting) if self.is_whole => wait_at(meeting),
            Some(_) | None => thread::park(),
        }
        if !self.is_whole {
            self.frame.first_panicked.store(true, Ordering::Relaxed);
        }
    }
}

#[cold]
#[inline(never)]
fn wait_at(meeting: &Meeting) {
    meeting.wait(thread::take_to_wait());
}

/// The second closure of a join, while it runs on another thread.
struct Second<'a> {
    meeting: &'a Meeting,
    before: Standing,
}

impl Drop for Second<'_> {
    fn drop(&mut self) {
        let second = thread::replace(std::mem::take(&mut self.before)).own;
        self.meeting.end_second(second);
    }
}

/// When a join is left by a panic: the strand continues.
struct Rejoin<'a, P: Pointers>(&'a Frame<P>);

impl<P: Pointers> Drop for Rejoin<'_, P> {
    #[cold]
    fn drop(&mut self) {
        match self.0.stolen.get() {
            None => thread::unpark(),
            Some(meeting) => rejoin_at(meeting, self.0.first_panicked.load(Ordering::Relaxed)),
        }
        self.0.pointers.rewind();
    }
}

/// A join has ended whose second closure was taken.
#[cold]
fn continue_behind(meeting: Arc<Meeting>) {
    rejoin_at(&meeting, false);
}

/// Puts the strand that waits at a meeting, or is parked here, on its thread again.
#[cold]
fn rejoin_at(meeting: &Meeting, first_panicked: bool) {
    let here = thread::replace(Standing::default());
    let Parted { first, second } = meeting.part();
    let mut own = if first.is_none() { here.own } else { first };
    if let Some((node, ended)) = second
        && !first_panicked
    {
        let first = own.into_state().expect("the strand waits for its join");
        own = Own::Begun(rejoined(&node, first, ended));
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
