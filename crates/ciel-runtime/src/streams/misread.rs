//! Commands that open an output for reading that is a stream.
//!
//! Such an output is a pipe, of which the engine has both ends: who reads it waits for ever for
//! what it has not written, or takes bytes from those that are to read them. Programs that look at
//! a file before they write it do so. The kernel tells when a pipe is opened. Read next: `outlet`.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use ciel_model::{Failure, FailureKind, Label};
use ciel_spawner::opened_for_reading;
use ciel_store::watch_opening;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::spawning::watched;

/// The pipes of outputs that a command opens by path.
pub(super) struct Misreading {
    told: AsyncFd<OwnedFd>,
    /// What the command calls the outputs, in the order of their pipes.
    outputs: Vec<String>,
    pipes: Vec<PathBuf>,
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
        })
    }

    /// Waits until a process of the task has opened one of them for reading only; its failure.
    pub(super) async fn found(&self, process: u32, task: &Label) -> Box<Failure> {
        loop {
            let Ok(mut ready) = self.told.readable().await else {
                return std::future::pending().await;
            };
            // What is told does not matter, nor that there was nothing.
            let _ = ready.try_io(|told| {
                let mut events = [MaybeUninit::<u8>::uninit(); 4096];
                Ok(rustix::io::read(told.get_ref(), &mut events).map(drop)?)
            });
            if let Some(at) = opened_for_reading(process, &self.pipes) {
                return Box::new(failure(&self.outputs[at], task));
            }
        }
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
