//! The pipes of one task: standard error, shown live, whole lines at a time, kept for `ciel logs`,
//! its end for messages; and standard output, if that may go out before the task commits. Where
//! output that waits is bounded, they are not read while that is exceeded, and what becomes output
//! when the task commits comes through pipes, too. Read next: `stored_pipe`.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use ciel_engine::Event;
use ciel_graph::Assignment;
use ciel_model::{Failure, FailureKind, Label, limits};
use ciel_node::AttemptKey;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::output;
use crate::spawning::watched;

mod stored_pipe;

use stored_pipe::StoredPipe;

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// How long a task has run when its pipes are watched. Of one that has ended by then they are read
/// once: to watch them would cost more than that.
const UNWATCHED_MS: u64 = 5;

/// Bytes of a line that never ends before it is shown in parts.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Which stream a pipe carries.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Stream {
    /// Standard error.
    Errors,
    /// Standard output that is released while the task runs.
    Output,
}

fn key_of(assignment: &Assignment) -> AttemptKey {
    AttemptKey {
        task: assignment.task,
        number: assignment.attempt,
    }
}

/// Which of a task's pipes has something to read.
#[derive(Clone, Copy, PartialEq)]
enum Ready {
    Errors,
    Output,
    Stored(usize),
}

/// Whether output of the task is read as it comes.
#[derive(Clone, Copy, PartialEq)]
enum Reading {
    /// Always: nothing bounds output that waits, or the task is to end.
    Freely,
    /// As long as it need not pause.
    Bounded,
    /// Not before it is told to read on.
    Paused,
}

/// The reading ends of a task's streams.
pub(crate) struct Pipes {
    pub(crate) errors: TaskPipe,
    output: Option<TaskPipe>,
    stored: Vec<StoredPipe>,
    reading: Reading,
    orders_errors: bool,
    /// Why output could not be stored.
    trouble: Option<std::io::Error>,
}

impl Pipes {
    /// A pipe for standard error, and one for standard output if that is `live`; with the writing
    /// ends in this order.
    pub(crate) fn open(
        engine: &Engine,
        label: &Label,
        live: bool,
    ) -> std::io::Result<(Pipes, Vec<OwnedFd>)> {
        let (errors, writer) = TaskPipe::open(Stream::Errors, label)?;
        let mut writers = vec![writer];
        let mut output = None;
        if live {
            let (pipe, writer) = TaskPipe::open(Stream::Output, label)?;
            output = Some(pipe);
            writers.push(writer);
        }
        let reading = match engine.settings.output_bound() {
            Some(_) => Reading::Bounded,
            None => Reading::Freely,
        };
        let pipes = Pipes {
            errors,
            output,
            stored: Vec::new(),
            reading,
            orders_errors: engine.settings.ordered_errors,
            trouble: None,
        };
        Ok((pipes, writers))
    }

    /// Moves what comes out of a pipe to a file.
    pub(crate) fn store(&mut self, pipe: OwnedFd, file: File) -> std::io::Result<()> {
        self.stored.push(StoredPipe::new(&pipe, file)?);
        Ok(())
    }

    /// Waits for more on any of them and passes it on. Output that is paused is not looked at.
    pub(crate) async fn read(&mut self, engine: &Engine, assignment: &Assignment) {
        let ready = self.ready().await;
        let is_output = ready != Ready::Errors || self.orders_errors;
        if is_output && self.pauses(engine, assignment) {
            return;
        }
        match ready {
            Ready::Errors => self.errors.take(engine, assignment),
            Ready::Output => {
                let output = self.output.iter_mut();
                output.for_each(|output| output.take(engine, assignment));
            }
            Ready::Stored(index) => {
                let moved = self.stored[index].take();
                self.note_stored(moved, engine, assignment);
            }
        }
    }

    async fn ready(&self) -> Ready {
        let is_paused = self.reading == Reading::Paused;
        let output = async {
            match &self.output {
                Some(output) => output.ready().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.errors.ready(), if !(is_paused && self.orders_errors) => Ready::Errors,
            () = output, if !is_paused => Ready::Output,
            index = stored_pipe::first_ready(&self.stored), if !is_paused => Ready::Stored(index),
            else => std::future::pending().await,
        }
    }

    /// Whether nothing is to be read for now; the engine will tell when.
    fn pauses(&mut self, engine: &Engine, assignment: &Assignment) -> bool {
        if self.reading == Reading::Bounded {
            let attempt = key_of(assignment);
            engine.with(|core, now| {
                if core.engine().must_pause(attempt) {
                    self.reading = Reading::Paused;
                    core.tell(now, Event::ProcessPaused { attempt });
                }
            });
        }
        self.reading == Reading::Paused
    }

    /// What was paused is read again.
    pub(crate) fn read_on(&mut self) {
        if self.reading == Reading::Paused {
            self.reading = Reading::Bounded;
        }
    }

    /// The task is to end: nothing is paused any more.
    pub(crate) fn free(&mut self) {
        self.reading = Reading::Freely;
    }

    /// After a failure nobody reads any more, so that the task has a broken pipe.
    fn note_stored(
        &mut self,
        moved: std::io::Result<()>,
        engine: &Engine,
        assignment: &Assignment,
    ) {
        if let Err(error) = moved {
            self.trouble = Some(error);
            return self.stored.clear();
        }
        let bytes = self.stored.iter().map(StoredPipe::bytes).sum();
        let attempt = key_of(assignment);
        engine.with(|core, now| core.tell(now, Event::ProcessWrote { attempt, bytes }));
    }

    /// The failure of the task if its output could not be stored.
    pub(crate) fn trouble(&self, label: &Label) -> Option<Failure> {
        let error = self.trouble.as_ref()?;
        let kind = match error.kind() {
            std::io::ErrorKind::StorageFull => FailureKind::DiskFull,
            _ => FailureKind::TaskError,
        };
        let message = format!("cannot store what it writes: {error}");
        Some(Failure::new(kind, label.clone(), message))
    }

    /// Takes what is in them without waiting, when the task has ended; `last` comes behind its
    /// standard error.
    pub(crate) fn drain(
        &mut self,
        engine: &Engine,
        assignment: &Assignment,
        last: Option<Vec<u8>>,
    ) {
        self.errors.take_rest(engine, assignment);
        if let Some(last) = last {
            self.errors.buffer = last;
            self.errors.pass_on(engine, assignment);
        }
        self.errors.drain(engine, assignment);
        if let Some(output) = &mut self.output {
            output.drain(engine, assignment);
        }
        let drained = self.stored.iter_mut().try_for_each(StoredPipe::drain);
        self.trouble = self.trouble.take().or(drained.err());
        self.stored.clear();
    }

    /// Whether anything went out while the task ran.
    pub(crate) fn has_printed(&self) -> bool {
        self.output
            .as_ref()
            .is_some_and(|output| !output.kept.is_empty())
    }

    /// The end of standard output that went out while the task ran, if it did so.
    pub(crate) fn output_end(&self) -> Option<String> {
        self.output.as_ref().map(TaskPipe::end)
    }

    /// The failure if the output of a replayed task differed.
    pub(crate) fn differs(&self) -> Option<String> {
        self.output.as_ref()?.differs.clone()
    }
}

/// The reading end of one stream of a task.
pub(crate) struct TaskPipe {
    stream: Stream,
    pipe: OwnedFd,
    /// What the reactor knows of the pipe, once it is watched.
    watched: OnceCell<AsyncFd<OwnedFd>>,
    watched_from: Instant,
    label: Label,
    open: bool,
    /// The beginning of a line that has not ended.
    line: Vec<u8>,
    /// The last bytes.
    kept: VecDeque<u8>,
    buffer: Vec<u8>,
    /// The failure if the output of a replayed task differs.
    pub(crate) differs: Option<String>,
}

/// Reads into `buffer` what is in a pipe at this moment, a bounded part at a time; whether there
/// was anything. The pipe itself is asked: what the reactor knows of it may be older than the news
/// that its writer has ended.
pub(crate) fn read_now(pipe: impl AsFd, buffer: &mut Vec<u8>) -> bool {
    buffer.clear();
    read_some(pipe, buffer).is_ok_and(|count| count > 0)
}

/// Adds to `buffer` what is in a pipe, a bounded part of it; 0 at the end of it.
fn read_some(pipe: impl AsFd, buffer: &mut Vec<u8>) -> rustix::io::Result<usize> {
    buffer.reserve(READ_BYTES);
    loop {
        match rustix::io::read(&pipe, spare_capacity(buffer)) {
            Err(Errno::INTR) => {}
            read => return read,
        }
    }
}

impl TaskPipe {
    /// A pipe and its writing end.
    pub(crate) fn open(stream: Stream, label: &Label) -> std::io::Result<(TaskPipe, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        let errors = TaskPipe {
            stream,
            differs: None,
            pipe: reader,
            watched: OnceCell::new(),
            watched_from: Instant::now() + Duration::from_millis(UNWATCHED_MS),
            label: label.clone(),
            open: true,
            line: Vec::new(),
            kept: VecDeque::new(),
            buffer: Vec::new(),
        };
        Ok((errors, writer))
    }

    /// Waits for more; for ever once the pipe is closed.
    async fn ready(&self) {
        if !self.open || self.watched().await.readable().await.is_err() {
            std::future::pending().await
        }
    }

    /// Has the reactor watch the pipe; where it has no room for that, later.
    async fn watched(&self) -> &AsyncFd<OwnedFd> {
        let mut at = self.watched_from;
        loop {
            if let Some(watched) = self.watched.get() {
                return watched;
            }
            tokio::time::sleep_until(at).await;
            at += Duration::from_millis(UNWATCHED_MS);
            if let Ok(watched) = watched(self.pipe.as_fd(), Interest::READABLE) {
                return self.watched.get_or_init(|| watched);
            }
        }
    }

    /// Passes on what there is, a bounded part of it.
    fn take(&mut self, engine: &Engine, assignment: &Assignment) {
        let Some(watched) = self.watched.get() else {
            return;
        };
        let buffer = &mut self.buffer;
        match watched.try_io(Interest::READABLE, |pipe| Ok(read_some(pipe, buffer)?)) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => self.open = false,
            Ok(_) => self.pass_on(engine, assignment),
        }
    }

    /// Takes what is in the pipe without waiting, when the task has ended.
    pub(crate) fn drain(&mut self, engine: &Engine, assignment: &Assignment) {
        self.take_rest(engine, assignment);
        if !self.line.is_empty() {
            self.line.push(b'\n');
            self.show(engine, self.line.len());
        }
    }

    fn take_rest(&mut self, engine: &Engine, assignment: &Assignment) {
        while self.open {
            self.open = read_now(&self.pipe, &mut self.buffer);
            if self.open {
                self.pass_on(engine, assignment);
            }
        }
    }

    fn pass_on(&mut self, engine: &Engine, assignment: &Assignment) {
        let bytes = std::mem::take(&mut self.buffer);
        self.kept.extend(&bytes);
        let excess = self.kept.len().saturating_sub(limits::ERROR_TAIL_BYTES_MAX);
        self.kept.drain(..excess);
        if self.stream == Stream::Output {
            let (strand, label) = (assignment.strand, &assignment.label);
            let after = assignment.next_action;
            let written = engine.with(|core, _| core.write(strand, label, after, bytes));
            self.differs = self.differs.take().or(written.err());
            output::spill_excess(engine);
            return;
        }
        engine
            .lock()
            .history
            .log(&assignment.label, "stderr", &bytes);
        if engine.settings.ordered_errors {
            let (strand, after) = (assignment.strand, assignment.next_action);
            engine.with(|core, _| core.write_error(strand, after, bytes));
            output::spill_excess(engine);
            return;
        }
        self.line.extend_from_slice(&bytes);
        self.buffer = bytes;
        self.buffer.clear();
        let whole = self
            .line
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map(|at| at + 1);
        match whole {
            Some(whole) => self.show(engine, whole),
            None if self.line.len() > LINE_BYTES_MAX => self.show(engine, self.line.len()),
            None => {}
        }
    }

    fn show(&mut self, engine: &Engine, count: usize) {
        engine
            .observer
            .error_output(Some(&self.label), &self.line[..count]);
        self.line.drain(..count);
    }

    /// The last bytes as text, for a failure.
    pub(crate) fn end(&self) -> String {
        let (before, after) = self.kept.as_slices();
        String::from_utf8_lossy(&[before, after].concat()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a task's process and the last bytes that it wrote come on different ways. When
    /// the end was known first, and the reactor had not looked at the pipe since, the pipe passed
    /// for empty: now and then the last lines of a task were missing, above all on a loaded
    /// machine.
    #[tokio::test]
    async fn bytes_that_the_reactor_has_not_seen_are_read() {
        let (pipe, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        rustix::io::ioctl_fionbio(&pipe, true).unwrap();
        rustix::io::write(&writer, b"last words").unwrap();
        let mut buffer = Vec::new();
        assert!(read_now(&pipe, &mut buffer));
        assert_eq!(buffer, b"last words");
        assert!(!read_now(&pipe, &mut buffer));
        drop(writer);
        assert!(!read_now(&pipe, &mut buffer) && buffer.is_empty());
    }
}
