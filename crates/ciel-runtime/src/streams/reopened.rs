//! Commands that open a stream again which they read by path.
//!
//! Such an input is a pipe: who opens it again finds what was not read before, which is nothing if
//! that was all. The same input is a file if it is whole when the command starts, so the command
//! would give other bytes then. It does not know the inputs. Read next: `inlet`.

use std::cell::RefCell;
use std::os::fd::{AsFd, OwnedFd};

use ciel_model::{Failure, FailureKind, Label};
use ciel_store::OpenedPipes;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Outlets;
use crate::spawning::watched;

/// The pipes that a command reads by path.
pub(crate) struct Reopening(Option<Watch>);

struct Watch {
    told: AsyncFd<OwnedFd>,
    pipes: RefCell<OpenedPipes>,
    /// What the command calls them, in their order.
    inputs: Vec<String>,
}

impl Reopening {
    /// Watches the pipes of inputs with these names, before the command has them; none if there
    /// are none, or the system watches no more.
    pub(crate) fn watch<'a>(inputs: impl Iterator<Item = (String, &'a OwnedFd)>) -> Reopening {
        let (inputs, ends): (Vec<_>, Vec<_>) = inputs.unzip();
        if inputs.is_empty() {
            return Reopening(None);
        }
        let begin = || {
            let pipes = OpenedPipes::watch(ends.into_iter().map(AsFd::as_fd))?;
            std::io::Result::Ok(Watch {
                told: watched(pipes.as_fd(), Interest::READABLE)?,
                pipes: RefCell::new(pipes),
                inputs,
            })
        };
        Reopening(begin().ok())
    }

    /// Waits until one is opened after it was read; the failure of the task.
    async fn found(&self, task: &Label) -> Box<Failure> {
        let Some(watch) = &self.0 else {
            return std::future::pending().await;
        };
        loop {
            let Ok(mut ready) = watch.told.readable().await else {
                return std::future::pending().await;
            };
            if let Some(failure) = self.told(task) {
                return failure;
            }
            ready.clear_ready();
        }
    }

    /// The failure of a task that has opened one after it was read; without waiting.
    pub(crate) fn told(&self, task: &Label) -> Option<Box<Failure>> {
        let watch = self.0.as_ref()?;
        let again = watch.pipes.borrow_mut().opened_again()?;
        let message = format!(
            "it opened its input {} again after it had read of it, which is a stream: that is a \
             pipe, to be opened once, and read from its beginning on",
            watch.inputs[again]
        );
        let hint = "pass the future itself in place of its stream(), or in Skywriting the \
                    reference without `stream`: the input is a file then";
        let failure = Failure::new(FailureKind::TaskError, task.clone(), message);
        Some(Box::new(failure.with_hint(hint)))
    }
}

/// Waits until a process reads an output, or opens an input again, that is a stream; its failure.
pub(crate) async fn misused(
    (outlets, reopening): (&Outlets, &Reopening),
    process: Option<u32>,
    task: &Label,
) -> Box<Failure> {
    tokio::select! {
        failure = outlets.misread(process, task) => failure,
        failure = reopening.found(task) => failure,
    }
}
