//! Strands that are forked by hand, and run on whatever thread.
//!
//! It knows neither rayon nor how a file is written. Read next: `strand`.

use std::borrow::BorrowMut;
use std::marker::PhantomData;

use crate::meeting::Own;
use crate::panics;
use crate::strand::{Node, State};
use crate::sync::Arc;
use crate::thread::{self, Standing};

/// The scope of a strand that belongs to none.
pub(crate) const NO_SCOPE: u64 = 0;

/// A strand that was forked and has not begun. If it is dropped, it ends without a byte.
#[derive(Debug)]
pub struct Strand {
    pub(crate) state: Option<Box<State>>,
    pub(crate) next: Arc<Node>,
    pub(crate) scope: u64,
    /// The node before a strand that has no place yet; none for one that has.
    pub(crate) detached: Option<Arc<Node>>,
}

/// Forks a strand by hand: what it writes comes here, before all that the caller writes from now
/// on. Its pointers of files in local mode begin where the caller's are.
///
/// ```
/// use std::io::Write;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("log");
/// let log = ciel_files::File::create(&path, ciel_files::Mode::SerialAppend).unwrap();
/// let strand = ciel_files::fork();
/// let other = log.dup();
/// let thread = std::thread::spawn(move || strand.run(|| writeln!(&other, "first").unwrap()));
/// writeln!(&log, "second").unwrap();
/// thread.join().unwrap();
/// log.close().unwrap();
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "first\nsecond\n");
/// ```
pub fn fork() -> Strand {
    fork_in(NO_SCOPE)
}

/// The same, of a scope that ends when its strands have ended.
pub(crate) fn fork_in(scope: u64) -> Strand {
    let next = Node::new();
    let state = thread::current_or_root(|own| {
        let pointers = own.pointers.clone();
        let behind = State::forked(own.root, pointers.clone(), Some(next.clone()));
        let before = std::mem::replace(own, *behind);
        // Where the caller has written nothing since its last fork, the child takes its place.
        if before.is_vacant() {
            return Box::new(before);
        }
        let node = Node::new();
        let child = State::forked(own.root, pointers, Some(node.clone()));
        node.end_before(Box::new(before));
        child
    });
    Strand {
        state,
        next,
        scope,
        detached: None,
    }
}

impl Strand {
    /// Runs a closure as this strand, on whatever thread, and ends the strand.
    ///
    /// # Panics
    /// If the closure does. What it has written by then stays. In a strand of a [`Group`] that cuts
    /// what comes behind it in the group; of any other one the caller keeps the panic, so that what
    /// comes behind it stays, too.
    ///
    /// [`Group`]: crate::Group
    pub fn run<R>(mut self, act: impl FnOnce() -> R) -> R {
        self.within(act)
    }

    /// Runs a closure as this strand, which does not end with it: it continues with the next call,
    /// and ends when it is dropped.
    ///
    /// # Panics
    /// As [`run`](Strand::run).
    pub fn within<R>(&mut self, act: impl FnOnce() -> R) -> R {
        let mut running = Running::new(self);
        let result = act();
        running.is_whole = true;
        result
    }

    /// Makes this strand the one that runs on this thread, until [`Entered::leave`]. For hosts that
    /// cannot pass a closure.
    pub fn enter(mut self) -> Entered {
        thread::begin();
        Entered {
            before: thread::replace(self.take_standing()),
            strand: Some(self),
            stays_on_its_thread: PhantomData,
        }
    }

    /// What stands on a thread that runs this strand.
    fn take_standing(&mut self) -> Standing {
        let own = self.state.take().map(Own::Begun);
        own.map(Standing::of).unwrap_or_default()
    }

    /// Cuts a strand that has not begun into two that follow one another.
    pub(crate) fn split(mut self) -> (Strand, Strand) {
        let middle = Node::new();
        let state = self.state.take();
        let fork =
            |left: &State| State::forked(left.root, left.pointers.clone(), Some(middle.clone()));
        let right = Strand {
            state: state.as_deref().map(fork),
            next: self.next.clone(),
            scope: self.scope,
            detached: None,
        };
        let left = Strand {
            state,
            next: middle,
            scope: self.scope,
            detached: None,
        };
        (left, right)
    }
}

impl Drop for Strand {
    /// It has written its last byte.
    fn drop(&mut self) {
        if let Some(mut state) = self.state.take()
            && self.detached.is_none()
        {
            state.absorb();
            self.next.end_before(state);
        }
    }
}

/// A strand that runs on this thread until it is left. If this is dropped, the strand ends.
#[derive(Debug)]
pub struct Entered {
    strand: Option<Strand>,
    before: Standing,
    stays_on_its_thread: PhantomData<*const ()>,
}

impl Entered {
    /// Lets the strand that ran here before continue. The one that is left may be entered again,
    /// on whatever thread, and ends when it is dropped.
    pub fn leave(mut self) -> Strand {
        self.restore().expect("a strand is left once")
    }

    fn restore(&mut self) -> Option<Strand> {
        let mut strand = self.strand.take()?;
        let left = thread::replace(std::mem::take(&mut self.before));
        strand.state = left.own.into_state();
        Some(strand)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        drop(self.restore());
    }
}

/// A strand that runs on this thread until this is dropped.
pub(crate) struct Running<S: BorrowMut<Strand>> {
    strand: S,
    before: Standing,
    /// Whether its closure has ended without a panic.
    pub(crate) is_whole: bool,
}

impl<S: BorrowMut<Strand>> Running<S> {
    pub(crate) fn new(mut strand: S) -> Running<S> {
        Running {
            before: thread::replace(strand.borrow_mut().take_standing()),
            strand,
            is_whole: false,
        }
    }
}

impl<S: BorrowMut<Strand>> Drop for Running<S> {
    fn drop(&mut self) {
        let strand = self.strand.borrow_mut();
        let left = thread::replace(std::mem::take(&mut self.before));
        strand.state = left.own.into_state();
        // What runs a strand of no scope, such as a thread, keeps its panic.
        if !self.is_whole
            && strand.scope != NO_SCOPE
            && let Some(state) = &mut strand.state
        {
            state.panicked_in = state.panicked_in.or(Some(strand.scope));
            panics::note(strand.scope);
        }
    }
}
