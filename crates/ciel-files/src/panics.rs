//! Scopes of which a strand has panicked, from then until they end.
//!
//! What a scope learns of its strands at its end it learns from their states, but for strands that
//! come before others which still run. It knows neither strands nor scopes. Read next: `scope`.

use std::sync::PoisonError;

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// Scopes that run and of which a strand has panicked, and their number.
static PANICKED: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static PANICKED_COUNT: AtomicU64 = AtomicU64::new(0);

fn panicked() -> MutexGuard<'static, Vec<u64>> {
    PANICKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A strand of this scope has panicked.
#[cold]
pub(crate) fn note(scope: u64) {
    let mut panicked = panicked();
    if !panicked.contains(&scope) {
        panicked.push(scope);
        PANICKED_COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether a strand of this scope, whose strands have all ended, has panicked; forgets it.
pub(crate) fn take(scope: u64) -> bool {
    // The end of a strand happens before that of its scope, so its own panic is seen.
    if PANICKED_COUNT.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let mut panicked = panicked();
    let Some(place) = panicked.iter().position(|one| *one == scope) else {
        return false;
    };
    panicked.swap_remove(place);
    PANICKED_COUNT.fetch_sub(1, Ordering::Relaxed);
    true
}
