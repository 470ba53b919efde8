//! Commands that read an output that is a stream.
//!
//! Such an output is a pipe, of which the engine has both ends: who reads it waits for ever for
//! what it has not written, or takes bytes from those that are to read them. Programs that look at
//! a file before they write it do so. The kernel tells when a pipe is opened, and when one who
//! could only read has closed it, however soon that was. One that opens it for both may
//! write alone; nothing tells when it reads, so it is looked at then, more and more rarely, and one
//! that has ended by then is not found. Read next: `outlet`.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ciel_model::{Failure, FailureKind, Label, limits};
use ciel_spawner::{Reading, reading};
use ciel_store::ClosedPipes;
use ciel_store::scratch::Scratch;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

use crate::sources::{Flow, Source};
use crate::spawning::watched;

/// The pipes of outputs that a command opens by path.
pub(super) struct Misreading {
    /// Can be read when one was opened or closed.
    events: AsyncFd<OwnedFd>,
    closed: ClosedPipes,
    /// What the command calls the outputs, in the order of their pipes.
    outputs: Vec<(String, Arc<Source>)>,
    pipes: Vec<PathBuf>,
    /// When to look next, if a process could read one, and after how long that is.
    next: Cell<Option<(Instant, Duration)>>,
}

impl Misreading {
    /// Watches the pipes of these outputs; none if there are none, or the system watches no more.
    pub(super) fn watch(
        scratch: &Scratch,
        outputs: Vec<(String, Arc<Source>)>,
    ) -> Option<Misreading> {
        if outputs.is_empty() {
            return None;
        }
        let pipes: Vec<PathBuf> = outputs.iter().map(|(_, it)| it.pipe.clone()).collect();
        let closed = scratch.watch_closed(&pipes).ok()?;
        Some(Misreading {
            events: watched(closed.as_fd(), Interest::READABLE).ok()?,
            closed,
            outputs,
            pipes,
            next: Cell::new(None),
        })
    }

    /// Waits until a process of the task reads one of them; its failure.
    pub(super) async fn found(&self, process: u32, task: &Label) -> Box<Failure> {
        loop {
            tokio::select! {
                event = self.await_event() => match event {
                    Ok(()) => self.next.set(None),
                    Err(_) => return std::future::pending().await,
                },
                () = self.await_due() => {}
            }
            if let Some(failure) = self.found_by_now(task) {
                return failure;
            }
            match reading(process, &self.pipes) {
                Reading::Of(at) => return Box::new(failure(&self.outputs[at].0, task)),
                Reading::Possible => self.look_later(),
                Reading::Nowhere => self.next.set(None),
            }
        }
    }

    /// The failure of the task if a process has opened one for reading, and has closed it; without
    /// waiting. One that goes directly to its reader is closed by that, too.
    pub(super) fn found_by_now(&self, task: &Label) -> Option<Box<Failure>> {
        let closed = self.closed.closed_by_readers().into_iter();
        let mut closed = closed.map(|at| &self.outputs[at]);
        let is_own =
            |source: &Source| matches!(*source.flow.borrow(), Flow::Open | Flow::Stored { .. });
        let read = closed.find(|(_, source)| is_own(source));
        read.map(|(output, _)| Box::new(failure(output, task)))
    }

    /// Waits until somebody has opened or closed one.
    async fn await_event(&self) -> std::io::Result<()> {
        // Before it is taken: what is told meanwhile is news.
        self.events.readable().await?.clear_ready();
        Ok(())
    }

    /// Waits until it is time to look.
    async fn await_due(&self) {
        match self.next.get() {
            Some((at, _)) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn look_later(&self) {
        let after = match self.next.get() {
            Some((_, before)) => before * 2,
            None => Duration::from_millis(limits::STREAM_MISREAD_MS_MIN),
        };
        let after = after.min(Duration::from_millis(limits::STREAM_MISREAD_MS_MAX));
        self.next.set(Some((Instant::now() + after, after)));
    }
}

fn failure(output: &str, task: &Label) -> Failure {
    let message = format!(
        "it opened its output {output} for reading, which is a stream: that is a pipe, to be \
         written once, from its beginning to its end"
    );
    let hint = "make it an ordinary output, which is a file: leave out `stdout=ciel.stream`, or in \
                Skywriting its name in `stream`";
    Failure::new(FailureKind::TaskError, task.clone(), message).with_hint(hint)
}
