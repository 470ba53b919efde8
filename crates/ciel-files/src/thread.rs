//! The strand that runs on each thread.
//!
//! A thread that waits for a closure which another one has taken may run unrelated closures
//! meanwhile, so the waiting strand is *parked*: such a closure finds none, and is refused instead
//! of writing in a wrong place. It does not know how strands are made. Read next: `strand`.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::strand::State;

/// The strand that runs here, or is parked here.
struct Current(Option<Box<State>>);

impl Drop for Current {
    /// What the thread's strand has written goes to the files, as far as its turn has come.
    fn drop(&mut self) {
        if let Some(own) = &mut self.0 {
            own.settle();
        }
    }
}

thread_local! {
    static CURRENT: RefCell<Current> = const { RefCell::new(Current(None)) };
}

static ROOTS: AtomicU64 = AtomicU64::new(1);

fn with<T>(act: impl FnOnce(&mut Option<Box<State>>) -> T) -> T {
    CURRENT.with_borrow_mut(|current| act(&mut current.0))
}

/// Acts on the strand that runs here; none if there is none.
pub(crate) fn current<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    with(|current| match current {
        Some(own) if !own.is_parked => Some(act(own)),
        Some(_) | None => None,
    })
}

/// Acts on the strand that runs here; a thread that has none, not even a parked one, becomes the
/// root of strands of its own.
pub(crate) fn current_or_root<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    with(|current| {
        let new = || State::forked(ROOTS.fetch_add(1, Ordering::Relaxed), Vec::new(), None);
        let own = current.get_or_insert_with(new);
        (!own.is_parked).then(|| act(own))
    })
}

/// Lets a strand run on this thread; gives the one that did, or was parked.
pub(crate) fn put(state: Option<Box<State>>) -> Option<Box<State>> {
    with(|current| std::mem::replace(current, state))
}

/// The strand of this thread waits from now on.
pub(crate) fn park() {
    with(|current| {
        if let Some(own) = current {
            own.is_parked = true;
        }
    });
}

/// The strand that waits on this thread continues.
pub(crate) fn unpark() {
    with(|current| {
        if let Some(own) = current {
            own.is_parked = false;
        }
    });
}

/// Takes the strand from this thread, on which it is as if it were parked.
pub(crate) fn take_to_wait() -> Option<Box<State>> {
    with(|current| current.replace(State::parked()))
}
