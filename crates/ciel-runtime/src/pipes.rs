//! The pipes of one task: standard error, shown live, whole lines at a time, kept for `ciel logs`,
//! its end for messages; and standard output, if that may go out before the task commits.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use ciel_graph::Assignment;
use ciel_model::{Label, limits};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::engine::Engine;
use crate::output;

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

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

/// The reading ends of a task's streams.
pub(crate) struct Pipes {
    pub(crate) errors: TaskPipe,
    output: Option<TaskPipe>,
}

impl Pipes {
    /// A pipe for standard error, and one for standard output if that is `live`; with the writing
    /// ends in this order.
    pub(crate) fn open(label: &Label, live: bool) -> std::io::Result<(Pipes, Vec<OwnedFd>)> {
        let (errors, writer) = TaskPipe::open(Stream::Errors, label)?;
        let mut writers = vec![writer];
        let mut output = None;
        if live {
            let (pipe, writer) = TaskPipe::open(Stream::Output, label)?;
            output = Some(pipe);
            writers.push(writer);
        }
        Ok((Pipes { errors, output }, writers))
    }

    /// Waits for more on any of them and passes it on.
    pub(crate) async fn read(&mut self, engine: &Engine, assignment: &Assignment) {
        match &mut self.output {
            None => self.errors.read(engine, assignment).await,
            Some(output) => tokio::select! {
                () = self.errors.read(engine, assignment) => {}
                () = output.read(engine, assignment) => {}
            },
        }
    }

    /// Takes what is in them without waiting, when the task has ended.
    pub(crate) fn drain(&mut self, engine: &Engine, assignment: &Assignment) {
        self.errors.drain(engine, assignment);
        if let Some(output) = &mut self.output {
            output.drain(engine, assignment);
        }
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
    pipe: Receiver,
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
pub(crate) fn read_now(pipe: &Receiver, buffer: &mut Vec<u8>) -> bool {
    buffer.resize(READ_BYTES, 0);
    let count = loop {
        match rustix::io::read(pipe, &mut *buffer) {
            Err(Errno::INTR) => {}
            read => break read.unwrap_or(0),
        }
    };
    buffer.truncate(count);
    count > 0
}

impl TaskPipe {
    /// A pipe and its writing end.
    pub(crate) fn open(stream: Stream, label: &Label) -> std::io::Result<(TaskPipe, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        let pipe = Receiver::from_owned_fd(reader)?;
        let errors = TaskPipe {
            stream,
            differs: None,
            pipe,
            label: label.clone(),
            open: true,
            line: Vec::new(),
            kept: VecDeque::new(),
            buffer: Vec::new(),
        };
        Ok((errors, writer))
    }

    /// Waits for more and passes it on; for ever once the pipe is closed.
    pub(crate) async fn read(&mut self, engine: &Engine, assignment: &Assignment) {
        if !self.open {
            return std::future::pending().await;
        }
        self.buffer.reserve(READ_BYTES);
        match self.pipe.read_buf(&mut self.buffer).await {
            Ok(0) | Err(_) => self.open = false,
            Ok(_) => self.pass_on(engine, assignment),
        }
    }

    /// Takes what is in the pipe without waiting, when the task has ended.
    pub(crate) fn drain(&mut self, engine: &Engine, assignment: &Assignment) {
        while self.open {
            self.open = read_now(&self.pipe, &mut self.buffer);
            if self.open {
                self.pass_on(engine, assignment);
            }
        }
        if !self.line.is_empty() {
            self.line.push(b'\n');
            self.show(engine, self.line.len());
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
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        rustix::io::ioctl_fionbio(&reader, true).unwrap();
        let pipe = Receiver::from_owned_fd(reader).unwrap();
        rustix::io::write(&writer, b"last words").unwrap();
        let mut buffer = Vec::new();
        assert!(read_now(&pipe, &mut buffer));
        assert_eq!(buffer, b"last words");
        assert!(!read_now(&pipe, &mut buffer));
        drop(writer);
        assert!(!read_now(&pipe, &mut buffer) && buffer.is_empty());
    }
}
