//! An act on damaged records, of which a panic is an answer.
//!
//! Records with valid checksums may still be inconsistent: through a faulty disk, a different
//! build, a journal written by hand. The machines assert against that, as they do against bugs of
//! the engine; to check each event before it is processed would double their work. So the one place
//! that folds records treats their panic as an error of the records. It does not know what is
//! folded. Read next: `recovery`.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Arc;
use std::thread;

/// The message of a panic, on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PanicError(pub(crate) String);

/// Runs a closure whose state is dropped if it panics. The message of the panic is not printed, but
/// returned.
///
/// # Errors
/// The panic's message.
pub(crate) fn catch_panic<T>(act: impl FnOnce() -> T) -> Result<T, PanicError> {
    let this = thread::current().id();
    let before: Arc<dyn Fn(&PanicHookInfo<'_>) + Send + Sync> = panic::take_hook().into();
    let others = before.clone();
    panic::set_hook(Box::new(move |about| {
        if thread::current().id() != this {
            others(about);
        }
    }));
    // Nothing that the act has touched is looked at again after a panic.
    let done = panic::catch_unwind(AssertUnwindSafe(act));
    panic::set_hook(Box::new(move |about| before(about)));
    done.map_err(|payload| PanicError(words(&*payload)))
}

fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let first = text.unwrap_or_default().lines().next().unwrap_or_default();
    first.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_an_answer_with_its_first_line() {
        assert_eq!(catch_panic(|| 41), Ok(41));
        let asserted = catch_panic(|| assert!(thread::panicking(), "no task {}\nat all", 7));
        assert_eq!(asserted, Err(PanicError("no task 7".to_string())));
        let plain = catch_panic(|| panic!("plain"));
        assert_eq!(plain, Err::<(), _>(PanicError("plain".to_string())));
    }
}
