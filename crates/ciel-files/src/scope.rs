//! Closures of a scope, and closures that are spawned for ever.
//!
//! Each is a strand that was forked by hand, so it has a node whether it migrates or not. It does
//! not know how a file is written. Read next: `fork`.

use crate::fork::{NO_SCOPE, Strand, fork, fork_in};
use crate::host;
use crate::join::in_pool;
use crate::panics;
use crate::sync::{AtomicU64, Ordering};
use crate::thread;

static SCOPES: AtomicU64 = AtomicU64::new(NO_SCOPE + 1);

/// Closures that may run at the same time as the one that spawns them; see [`scope`].
pub struct Scope<'a, 'scope> {
    rayon: &'a host::Scope<'scope>,
    id: u64,
}

impl<'scope> Scope<'_, 'scope> {
    /// Runs a closure, perhaps later or at the same time: what it writes comes here, before all
    /// that the caller writes from now on.
    pub fn spawn(&self, act: impl FnOnce(&Scope<'_, 'scope>) + Send + 'scope) {
        let (strand, id) = (fork_in(self.id), self.id);
        self.rayon
            .spawn(move |rayon| strand.run(|| act(&Scope { rayon, id })));
    }
}

/// Runs a closure that can spawn others, and returns when all have ended, as [`rayon::scope`] does.
///
/// # Panics
/// If a closure does. What the serial elision would have written by then stays.
pub fn scope<'scope, R: Send>(act: impl FnOnce(&Scope<'_, 'scope>) -> R + Send) -> R {
    match thread::is_in_pool() {
        true => scope_here(act),
        false => in_pool(|| scope_here(act)),
    }
}

fn scope_here<'scope, R: Send>(act: impl FnOnce(&Scope<'_, 'scope>) -> R + Send) -> R {
    let waiting = Waiting::new();
    let id = waiting.scope;
    host::scope(|rayon| {
        let _aside = Park;
        act(&Scope { rayon, id })
    })
}

/// A scope: when this is dropped, all strands of it have ended, and the one that made it continues.
pub(crate) struct Waiting {
    scope: u64,
    /// It was made by a strand, and not by a closure of another pool or library.
    by_strand: bool,
}

impl Waiting {
    pub(crate) fn new() -> Waiting {
        Waiting {
            by_strand: thread::forking().is_some(),
            scope: SCOPES.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// A strand for all that runs in this scope; the one that made it waits.
    pub(crate) fn fork_all(&self) -> Strand {
        let strand = fork_in(self.scope);
        thread::park();
        strand
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let has_panicked = panics::take(self.scope);
        if !self.by_strand {
            return;
        }
        thread::unpark();
        thread::current(|own| own.end_scope(self.scope, has_panicked));
    }
}

/// Strands that are forked by hand and end together, on whatever threads.
///
/// Drop it on the thread that made it, when all of them have ended: if one has panicked, what the
/// serial elision would have written by then is what they have written, and the strand of this
/// thread continues behind it.
pub struct Group(Waiting);

impl Group {
    /// A group without strands.
    pub fn new() -> Group {
        Group(Waiting::new())
    }

    /// Forks a strand of the group, as [`fork`] does.
    pub fn fork(&self) -> Strand {
        fork_in(self.0.scope)
    }
}

impl Default for Group {
    fn default() -> Group {
        Group::new()
    }
}

/// The strand of this thread waits when this is dropped.
struct Park;

impl Drop for Park {
    fn drop(&mut self) {
        thread::park();
    }
}

/// Runs a closure on the pool, some time: what it writes comes here, before all that the caller
/// writes from now on. A file can be closed when it has ended.
pub fn spawn(act: impl FnOnce() + Send + 'static) {
    let strand = fork();
    host::spawn(move || strand.run(act));
}
