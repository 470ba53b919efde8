//! The strand that runs on each thread.
//!
//! A thread that waits for a closure which another one has taken may run unrelated closures
//! meanwhile, so the waiting strand is *parked*: such a closure finds none, and is refused instead
//! of writing in a wrong place. What every fork looks at is apart from the state of the strand, in
//! a few words without a destructor, so that a closure which no other thread takes costs no more
//! than to read and write them. It does not know how strands are made. Read next: `strand`.

use std::cell::{Cell, RefCell};

use crate::host;
use crate::meeting::Own;
use crate::strand::{Pointer, State};
use crate::sync::{AtomicU64, Ordering};

/// What a fork looks at.
#[derive(Debug)]
struct Here {
    /// The thread from whose first open the strand descends; [`NO_ROOT`] if there is no strand.
    root: Cell<u64>,
    /// What is not as it is for most forks, a bit for each; so that one comparison is enough for
    /// them.
    odds: Cell<u8>,
}

/// Nobody has asked yet whether the thread belongs to a pool of rayon.
const UNASKED: u8 = 1;
/// It does not.
const OUTSIDE: u8 = 2;
/// The strand waits, and the thread may run other closures meanwhile.
const PARKED: u8 = 4;
/// The strand has pointers into files that are open in local mode.
const POINTERS: u8 = 8;
/// There is no strand.
const NO_STRAND: u8 = 16;

impl Here {
    #[inline]
    fn is(&self, odd: u8) -> bool {
        self.odds.get() & odd != 0
    }

    #[inline]
    fn set(&self, odd: u8, is_so: bool) {
        let others = self.odds.get() & !odd;
        self.odds.set(if is_so { others | odd } else { others });
    }
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
    pub(crate) own: Own,
    is_parked: bool,
}

impl Standing {
    /// A strand that runs.
    pub(crate) fn of(own: Own) -> Standing {
        Standing {
            own,
            is_parked: false,
        }
    }
}

/// The strand that runs here, or is parked here.
struct Current(Own);

impl Drop for Current {
    /// What the thread's strand has written goes to the files, as far as its turn has come.
    fn drop(&mut self) {
        if let Own::Begun(own) = &mut self.0 {
            own.settle();
        }
    }
}

thread_local! {
    static HERE: Here = const {
        Here {
            root: Cell::new(NO_ROOT),
            odds: Cell::new(UNASKED | NO_STRAND),
        }
    };
    static CURRENT: RefCell<Current> = const { RefCell::new(Current(Own::None)) };
}

static ROOTS: AtomicU64 = AtomicU64::new(NO_ROOT + 1);

fn with<T>(act: impl FnOnce(&mut Own) -> T) -> T {
    CURRENT.with_borrow_mut(|current| act(&mut current.0))
}

/// Acts on the strand that runs here; none if there is none.
#[inline]
pub(crate) fn current<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    match HERE.with(|here| here.is(PARKED)) {
        true => None,
        false => with(|current| current.state().map(act)),
    }
}

/// The root of the strand that runs here, on a thread of a pool and without pointers into files in
/// local mode; none if anything of this is not so.
#[inline]
pub(crate) fn plain() -> Option<u64> {
    HERE.with(|here| (here.odds.get() == 0).then(|| here.root.get()))
}

/// Acts on the strand that runs here; a thread that has none, not even a parked one, becomes the
/// root of strands of its own.
pub(crate) fn current_or_root<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    forking()?;
    current(act)
}

/// The strand that runs here; a thread that has none becomes a root. None if one is parked here.
pub(crate) fn forking() -> Option<Forking> {
    HERE.with(|here| {
        if here.is(PARKED) {
            return None;
        }
        if here.is(NO_STRAND) {
            become_root();
        }
        Some(Forking {
            root: here.root.get(),
            has_pointers: here.is(POINTERS),
        })
    })
}

#[cold]
fn become_root() {
    let root = ROOTS.fetch_add(1, Ordering::Relaxed);
    let own = Own::Begun(State::forked(root, Vec::new(), None));
    replace(Standing::of(own));
}

/// Whether this thread belongs to a pool of rayon.
pub(crate) fn is_in_pool() -> bool {
    HERE.with(|here| {
        if here.is(UNASKED) {
            here.set(UNASKED, false);
            here.set(OUTSIDE, host::current_thread_index().is_none());
        }
        !here.is(OUTSIDE)
    })
}

/// Puts something else on this thread; gives what stood there.
pub(crate) fn replace(place: Standing) -> Standing {
    let Standing { own, is_parked } = place;
    let was_parked = HERE.with(|here| {
        let was_parked = here.is(PARKED);
        let has_pointers = own.has_pointers();
        here.root.set(own.root().unwrap_or(NO_ROOT));
        here.set(NO_STRAND, own.is_none());
        here.set(POINTERS, has_pointers);
        here.set(PARKED, is_parked);
        was_parked
    });
    Standing {
        own: with(|current| std::mem::replace(current, own)),
        is_parked: was_parked,
    }
}

/// Changes the pointers of the strand that runs here.
pub(crate) fn change_pointers(act: impl FnOnce(&mut Vec<Pointer>)) -> Option<()> {
    current(|own| {
        act(&mut own.pointers);
        HERE.with(|here| here.set(POINTERS, !own.pointers.is_empty()));
    })
}

/// The pointers of the strand that runs here into files in local mode.
pub(crate) fn pointers() -> Vec<Pointer> {
    with(|current| current.pointers())
}

/// Moves the pointers of the strand that runs here to where they were when it forked. Those of an
/// idle strand have not moved.
pub(crate) fn rewind(to: &[Pointer]) {
    with(|current| {
        if let Own::Begun(own) = current {
            own.pointers.clear();
            own.pointers.extend_from_slice(to);
        }
    });
}

/// An idle strand of this thread begins, so that it may stay somewhere else than in a join.
pub(crate) fn begin() {
    with(|current| {
        current.state();
    });
}

/// The strand of this thread waits from now on.
#[inline]
pub(crate) fn park() {
    HERE.with(|here| here.set(PARKED, true));
}

/// The strand that waits on this thread continues.
#[inline]
pub(crate) fn unpark() {
    HERE.with(|here| here.set(PARKED, false));
}

/// Takes the strand from this thread, on which it is as if it were parked.
pub(crate) fn take_to_wait() -> Own {
    let parked = Standing {
        own: Own::None,
        is_parked: true,
    };
    replace(parked).own
}
