//! Commands that open a stream again which they read by path.
//!
//! Such an input is a pipe: who opens it again finds what was not read before, which is nothing if
//! that was all. The same input is a file if it is whole when the command starts. So a command that
//! opens one again restarts when it is whole, if its bytes are stored and it is not impure; else it
//! fails. It does not know the inputs. Read next: `inlet`.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, OwnedFd};

use ciel_graph::{Assignment, Event, Step};
use ciel_model::{Failure, FailureKind, Label};
use ciel_store::OpenedPipes;
use ciel_store::scratch::Scratch;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Outlets;
use crate::engine::Engine;
use crate::spawning::watched;

/// The pipes that a command reads by path.
pub(crate) struct Reopening(Option<Watch>);

struct Watch {
    /// Can be read when one was opened or read.
    events: AsyncFd<OwnedFd>,
    pipes: RefCell<OpenedPipes>,
    /// In their order.
    inputs: Vec<Named>,
    /// The task is to restart, which was reported.
    restarts: Cell<bool>,
}

/// An input that a command reads by path.
pub(crate) struct Named {
    /// What the command calls it.
    pub(crate) name: String,
    /// Its bytes are stored by now, or will be, and the command may be rerun.
    pub(crate) restarts: bool,
}

/// What comes of a command that does with a stream what cannot be done with a pipe.
pub(crate) enum Misuse {
    /// It fails.
    Fails(Box<Failure>),
    /// It restarts when its streams are whole.
    ReadsWhole,
}

impl Reopening {
    /// Watches the pipes of these inputs, before the command has them; none if there are none, or
    /// the system watches no more.
    pub(crate) fn watch<'a>(
        scratch: &Scratch,
        inputs: impl Iterator<Item = (Named, &'a OwnedFd)>,
    ) -> Reopening {
        let (inputs, ends): (Vec<_>, Vec<_>) = inputs.unzip();
        if inputs.is_empty() {
            return Reopening(None);
        }
        let begin = || {
            let pipes = scratch.watch_opened(ends.into_iter().map(AsFd::as_fd))?;
            std::io::Result::Ok(Watch {
                events: watched(pipes.as_fd(), Interest::READABLE)?,
                pipes: RefCell::new(pipes),
                inputs,
                restarts: Cell::new(false),
            })
        };
        Reopening(begin().ok())
    }

    /// Waits until one is opened after it was read; what comes of that, once.
    async fn found(&self, task: &Label) -> Misuse {
        let watch = match &self.0 {
            Some(watch) if !watch.restarts.get() => watch,
            _ => return std::future::pending().await,
        };
        loop {
            let Ok(mut ready) = watch.events.readable().await else {
                return std::future::pending().await;
            };
            if let Some(misuse) = self.found_by_now(task) {
                return misuse;
            }
            ready.clear_ready();
        }
    }

    /// What comes of a task that has opened one after it was read; without waiting.
    pub(crate) fn found_by_now(&self, task: &Label) -> Option<Misuse> {
        let watch = self.0.as_ref()?;
        let again = watch.pipes.borrow_mut().opened_again()?;
        let input = &watch.inputs[again];
        if input.restarts {
            watch.restarts.set(true);
            return Some(Misuse::ReadsWhole);
        }
        let message = format!(
            "it opened its input {} again after it had read of it, which is a stream: that is a \
             pipe, to be opened once, and read from its beginning on",
            input.name
        );
        let hint = "pass the future itself in place of its stream(), or in Skywriting the \
                    reference without `stream`: the input is a file then";
        let failure = Failure::new(FailureKind::TaskError, task.clone(), message);
        Some(Misuse::Fails(Box::new(failure.with_hint(hint))))
    }
}

/// Waits until a process reads an output, or opens an input again, that is a stream.
pub(crate) async fn misused(
    (outlets, reopening): (&Outlets, &Reopening),
    process: Option<u32>,
    task: &Label,
) -> Misuse {
    tokio::select! {
        failure = outlets.misread(process, task) => Misuse::Fails(failure),
        misuse = reopening.found(task) => misuse,
    }
}

/// Restarts a task when the streams are whole that it reads. Its process is stopped, if it runs.
pub(crate) fn read_whole(engine: &Engine, assignment: &Assignment) {
    let event = Event::TaskStepped {
        task: assignment.task,
        attempt: assignment.attempt,
        step: Step::ReadWhole,
    };
    engine.with(|core, now| core.tell(now, event));
}
