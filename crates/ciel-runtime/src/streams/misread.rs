//! Commands that read an output that is a stream.
//!
//! Such an output is a pipe, of which the engine has both ends: who reads it waits for ever for
//! what it has not written, or takes bytes from those that are to read them. Programs that look at
//! a file before they write it do so. The kernel tells when a pipe is opened. One that opens it for
//! reading and writing may write alone; nothing tells when it reads, so it is looked at then, more
//! and more rarely. Read next: `outlet`.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use ciel_model::{Failure, FailureKind, Label, limits};
use ciel_spawner::{Reading, reading};
use ciel_store::watch_opening;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

use crate::spawning::watched;

/// The pipes of outputs that a command opens by path.
pub(super) struct Misreading {
    told: AsyncFd<OwnedFd>,
    /// What the command calls the outputs, in the order of their pipes.
    outputs: Vec<String>,
    pipes: Vec<PathBuf>,
    /// When to look next, if a process could read one, and after how long that is.
    next: Cell<Option<(Instant, Duration)>>,
}

impl Misreading {
    /// Watches the pipes of these outputs; none if there are none, or the system watches no more.
    pub(super) fn watch(outputs: Vec<(String, PathBuf)>) -> Option<Misreading> {
        let (outputs, pipes): (Vec<_>, Vec<_>) = outputs.into_iter().unzip();
        if outputs.is_empty() {
            return None;
        }
        let told = watch_opening(&pipes).ok()?;
        Some(Misreading {
            told: watched(told.as_fd(), Interest::READABLE).ok()?,
            outputs,
            pipes,
            next: Cell::new(None),
        })
    }

    /// Waits until a process of the task reads one of them; its failure.
    pub(super) async fn found(&self, process: u32, task: &Label) -> Box<Failure> {
        loop {
            tokio::select! {
                opened = self.opened() => match opened {
                    Ok(()) => self.next.set(None),
                    Err(_) => return std::future::pending().await,
                },
                () = self.is_due() => {}
            }
            match reading(process, &self.pipes) {
                Reading::Of(at) => return Box::new(failure(&self.outputs[at], task)),
                Reading::Possible => self.look_later(),
                Reading::Nowhere => self.next.set(None),
            }
        }
    }

    /// Waits until somebody has opened one.
    async fn opened(&self) -> std::io::Result<()> {
        let mut ready = self.told.readable().await?;
        // What is told does not matter, nor that there was nothing.
        let _ = ready.try_io(|told| {
            let mut events = [MaybeUninit::<u8>::uninit(); 4096];
            Ok(rustix::io::read(told.get_ref(), &mut events).map(drop)?)
        });
        Ok(())
    }

    async fn is_due(&self) {
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
