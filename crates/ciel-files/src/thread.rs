//! The strand that runs on each thread.
//!
//! A thread that waits for a closure which another one has taken may run unrelated closures
//! meanwhile, so the waiting strand is parked: such a closure finds none, and is refused instead
//! of writing in a wrong place. It does not know how strands are made. Read next: `strand`.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::strand::State;

/// What a thread has.
#[derive(Default)]
struct Thread {
    /// The strand that runs on it.
    current: Option<Box<State>>,
    /// Strands that wait further down its stack, the innermost last.
    #[expect(clippy::vec_box, reason = "states go from hand to hand as pointers")]
    parked: Vec<Box<State>>,
}

impl Drop for Thread {
    /// What the thread's strand has written goes to the files, as far as its turn has come.
    fn drop(&mut self) {
        if let Some(own) = &mut self.current {
            own.settle();
        }
    }
}

thread_local! {
    static THREAD: RefCell<Thread> = const {
        RefCell::new(Thread { current: None, parked: Vec::new() })
    };
}

static ROOTS: AtomicU64 = AtomicU64::new(1);

fn with<T>(act: impl FnOnce(&mut Thread) -> T) -> T {
    THREAD.with_borrow_mut(act)
}

/// Acts on the strand that runs here; none if there is none.
pub(crate) fn current<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    with(|thread| thread.current.as_deref_mut().map(act))
}

/// Acts on the strand that runs here; a thread that has none and waits for none becomes the root of
/// strands of its own.
pub(crate) fn current_or_root<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    with(|thread| {
        if thread.current.is_none() && thread.parked.is_empty() {
            let root = ROOTS.fetch_add(1, Ordering::Relaxed);
            thread.current = Some(State::forked(root, Vec::new(), None));
        }
        thread.current.as_deref_mut().map(act)
    })
}

/// Takes the strand from this thread.
pub(crate) fn take() -> Option<Box<State>> {
    with(|thread| thread.current.take())
}

/// Lets a strand run on this thread; gives the one that did.
pub(crate) fn put(state: Option<Box<State>>) -> Option<Box<State>> {
    with(|thread| std::mem::replace(&mut thread.current, state))
}

/// The strand of this thread waits from now on.
pub(crate) fn park() {
    with(|thread| {
        if let Some(state) = thread.current.take() {
            thread.parked.push(state);
        }
    });
}

/// The innermost strand that waits on this thread.
pub(crate) fn unpark() -> Option<Box<State>> {
    with(|thread| thread.parked.pop())
}
