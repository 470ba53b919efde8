//! The strand that runs on each thread.
//!
//! A thread that waits for a closure which another one has taken may run unrelated closures
//! meanwhile, so the waiting strand is *parked*: such a closure finds none, and is refused instead
//! of writing in a wrong place. What every fork looks at is apart from the state of the strand, in
//! a few words without a destructor, so that a closure which no other thread takes costs no more
//! than to read and write them. It does not know how strands are made. Read next: `strand`.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::strand::{Pointer, State};

/// What a fork looks at.
#[derive(Debug)]
struct Here {
    /// The thread from whose first open the strand descends; [`NO_ROOT`] if there is no strand.
    root: Cell<u64>,
    /// It has pointers into files that are open in local mode.
    has_pointers: Cell<bool>,
    /// It waits, and the thread may run other closures meanwhile.
    is_parked: Cell<bool>,
    /// Whether the thread belongs to a pool of rayon.
    in_pool: Cell<InPool>,
}

/// Whether a thread belongs to a pool, which is asked once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InPool {
    Unasked,
    No,
    Yes,
}

/// The strand that forks on a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forking {
    /// The thread from whose first open it descends.
    pub(crate) root: u64,
    /// It has pointers into files that are open in local mode.
    pub(crate) has_pointers: bool,
}

/// The root where there is no strand.
const NO_ROOT: u64 = 0;

/// What stands on a thread: a strand, which may be parked, or nothing.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    pub(crate) state: Option<Box<State>>,
    is_parked: bool,
}

impl Standing {
    /// A strand that runs.
    pub(crate) fn of(state: Box<State>) -> Standing {
        Standing {
            state: Some(state),
            is_parked: false,
        }
    }
}

/// The state of the strand that runs here, or is parked here.
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
    static HERE: Here = const {
        Here {
            root: Cell::new(NO_ROOT),
            has_pointers: Cell::new(false),
            is_parked: Cell::new(false),
            in_pool: Cell::new(InPool::Unasked),
        }
    };
    static CURRENT: RefCell<Current> = const { RefCell::new(Current(None)) };
}

static ROOTS: AtomicU64 = AtomicU64::new(NO_ROOT + 1);

fn with<T>(act: impl FnOnce(&mut Option<Box<State>>) -> T) -> T {
    CURRENT.with_borrow_mut(|current| act(&mut current.0))
}

/// Acts on the strand that runs here; none if there is none.
#[inline]
pub(crate) fn current<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    match HERE.with(|here| here.is_parked.get()) {
        true => None,
        false => with(|current| current.as_deref_mut().map(act)),
    }
}

/// Acts on the strand that runs here; a thread that has none, not even a parked one, becomes the
/// root of strands of its own.
pub(crate) fn current_or_root<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    forking()?;
    current(act)
}

/// The strand that runs here; a thread that has none becomes a root. None if one is parked here.
#[inline]
pub(crate) fn forking() -> Option<Forking> {
    HERE.with(|here| {
        if here.is_parked.get() {
            return None;
        }
        if here.root.get() == NO_ROOT {
            become_root();
        }
        Some(Forking {
            root: here.root.get(),
            has_pointers: here.has_pointers.get(),
        })
    })
}

#[cold]
fn become_root() {
    let root = ROOTS.fetch_add(1, Ordering::Relaxed);
    replace(Standing::of(State::forked(root, Vec::new(), None)));
}

/// Whether this thread belongs to a pool of rayon.
#[inline]
pub(crate) fn is_in_pool() -> bool {
    HERE.with(|here| match here.in_pool.get() {
        InPool::Yes => true,
        InPool::No => false,
        InPool::Unasked => ask_pool(here),
    })
}

#[cold]
fn ask_pool(here: &Here) -> bool {
    let is_in_pool = rayon::current_thread_index().is_some();
    here.in_pool.set(match is_in_pool {
        true => InPool::Yes,
        false => InPool::No,
    });
    is_in_pool
}

/// Puts something else on this thread; gives what stood there.
pub(crate) fn replace(place: Standing) -> Standing {
    let Standing { state, is_parked } = place;
    let was_parked = HERE.with(|here| {
        let root = state.as_ref().map_or(NO_ROOT, |own| own.root);
        let has_pointers = state.as_ref().is_some_and(|own| !own.pointers.is_empty());
        here.root.set(root);
        here.has_pointers.set(has_pointers);
        here.is_parked.replace(is_parked)
    });
    Standing {
        state: with(|current| std::mem::replace(current, state)),
        is_parked: was_parked,
    }
}

/// Changes the pointers of the strand that runs here.
pub(crate) fn change_pointers(act: impl FnOnce(&mut Vec<Pointer>)) -> Option<()> {
    current(|own| {
        act(&mut own.pointers);
        HERE.with(|here| here.has_pointers.set(!own.pointers.is_empty()));
    })
}

/// The strand of this thread waits from now on.
#[inline]
pub(crate) fn park() {
    HERE.with(|here| here.is_parked.set(true));
}

/// The strand that waits on this thread continues.
#[inline]
pub(crate) fn unpark() {
    HERE.with(|here| here.is_parked.set(false));
}

/// Takes the strand from this thread, on which it is as if it were parked.
pub(crate) fn take_to_wait() -> Option<Box<State>> {
    let parked = Standing {
        state: None,
        is_parked: true,
    };
    replace(parked).state
}
