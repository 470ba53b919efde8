//! The reader's side: what a process reads while another one writes it.
//!
//! The first reader of an undecided source may have its pipe. All others, and all that come later,
//! have pipes of their own, into which a future copies what is in the file as it grows. A stream
//! whose producer has failed has no end: its readers are stopped by the graph. Read next:
//! `service`, for the mode, then `outlet`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use ciel_graph::{Assignment, Carriage, Event, Step, StreamInput};
use ciel_model::{Failure, FailureKind, Form, Handle, Label, Micros, Mode, Value, limits};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

use super::service;
use crate::core::Core;
use crate::engine::Engine;
use crate::sources::{Flow, Source};
use crate::spawning::watched;

/// An input that a task reads while it is written. It is given up when this is dropped.
pub(crate) struct Inlet {
    /// The reading end, until the process has it.
    pub(crate) descriptor: Option<OwnedFd>,
    source: Arc<Source>,
    is_direct: bool,
    copying: Option<JoinHandle<()>>,
}

impl Inlet {
    fn direct(descriptor: OwnedFd, source: Arc<Source>) -> Inlet {
        Inlet {
            descriptor: Some(descriptor),
            source,
            is_direct: true,
            copying: None,
        }
    }

    /// The reading end for a process that opens it by a path under `/dev/fd`. Who opens a named
    /// pipe so waits for its writer, which may have ended; an anonymous one it has at once.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn opened_by_path(&mut self) -> io::Result<OwnedFd> {
        let end = self.descriptor.take().expect("it is taken once");
        if !self.is_direct {
            return Ok(end);
        }
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let from = watched_end(&end, Interest::READABLE)?;
        let to = watched_end(&writer, Interest::WRITABLE)?;
        let source = self.source.clone();
        self.copying = Some(tokio::task::spawn_local(pass_on(source, from, to)));
        Ok(reader)
    }

    /// How its bytes are read.
    pub(crate) fn form(&self) -> &Form {
        &self.source.form
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        if let Some(copying) = &self.copying {
            copying.abort();
        }
        if self.is_direct {
            self.source.discard();
        }
    }
}

/// What a reader finds.
pub(crate) enum Attached {
    /// A stream.
    Stream(Inlet),
    /// Its producer has ended well by now.
    Value(Value<Handle>),
    /// Its producer is gone; the reader is to start again.
    Gone,
}

/// Makes a process the reader of one of its inputs.
///
/// # Errors
/// The failure of the task if the system refuses a pipe.
pub(crate) fn attach(
    engine: &Engine,
    assignment: &Assignment,
    stream: StreamInput,
) -> Result<Attached, Box<Failure>> {
    attach_with(engine, assignment, stream, |source, mode| match mode {
        Mode::Direct => {
            let end = engine.folder.scratch().reading_end(&source.pipe)?;
            Ok(Inlet::direct(end, source))
        }
        _ => {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            carry_over(source, mode, reader, writer)
        }
    })
}

/// Makes a task that opens files by name the reader of one of its inputs: it finds a pipe at that
/// path, where there is one of which these are both ends.
///
/// # Errors
/// The failure of the task if the system refuses a pipe.
pub(crate) fn attach_by_name(
    engine: &Engine,
    assignment: &Assignment,
    stream: StreamInput,
    (path, ends): (&Path, OwnedFd),
) -> Result<Attached, Box<Failure>> {
    let folders = engine.folder.scratch();
    attach_with(engine, assignment, stream, |source, mode| {
        if mode == Mode::Direct {
            folders.share_pipe(&source.pipe, path)?;
        }
        // Until the reader has opened the pipe, this end keeps what is in it.
        let reader = folders.reading_end(path)?;
        match mode {
            Mode::Direct => Ok(Inlet::direct(reader, source)),
            _ => carry_over(source, mode, reader, ends),
        }
    })
}

/// Finds the source of a stream, decides its mode and opens it so.
fn attach_with(
    engine: &Engine,
    assignment: &Assignment,
    stream: StreamInput,
    open: impl FnOnce(Arc<Source>, Mode) -> io::Result<Inlet>,
) -> Result<Attached, Box<Failure>> {
    let attached = engine.with(|core, now| {
        let Some(source) = core.streams.get(&stream.name).cloned() else {
            let value = core.graph().ended_stream(assignment.task, stream.input);
            return Ok(value.map_or(Attached::Gone, Attached::Value));
        };
        let service = service::decide(core, &source, assignment, stream.mode);
        let (task, input) = (&assignment.label, stream.input.0);
        let read = (assignment.attempt, input);
        core.history.stream_read(task, read, service.told(input));
        let inlet = open(source.clone(), service.mode)?;
        match service.mode {
            Mode::Direct => pass_directly(core, now, &source),
            _ => source.store(),
        }
        Ok(Attached::Stream(inlet))
    });
    attached.map_err(|error| unreadable(&assignment.label, &error))
}

/// From now on the bytes of a source are nowhere but in its pipe.
fn pass_directly(core: &mut Core, now: Micros, source: &Source) {
    source.flow.send_replace(Flow::Direct);
    let step = Step::OpenOutput {
        index: source.index,
        carriage: Carriage::Direct,
    };
    let (task, attempt) = (source.producer.task, source.producer.number);
    let event = Event::TaskStepped {
        task,
        attempt,
        step,
    };
    core.tell(now, event);
}

fn unreadable(task: &Label, error: &io::Error) -> Box<Failure> {
    let message = format!("cannot read a stream: {error}");
    Box::new(Failure::new(FailureKind::TaskError, task.clone(), message))
}

/// From now on what comes into the file of a source comes out of that pipe.
fn carry_over(
    source: Arc<Source>,
    mode: Mode,
    reader: OwnedFd,
    writer: OwnedFd,
) -> io::Result<Inlet> {
    // A smaller pipe is slower, and that is all.
    let _ = rustix::pipe::fcntl_setpipe_size(&writer, limits::STREAM_PIPE_BYTES);
    let writer = watched_end(&writer, Interest::WRITABLE)?;
    let copying = tokio::task::spawn_local(copy(source.clone(), mode, writer));
    Ok(Inlet {
        descriptor: Some(reader),
        source,
        is_direct: false,
        copying: Some(copying),
    })
}

/// An end of a pipe that does not block, and is watched.
fn watched_end(end: &OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    rustix::io::ioctl_fionbio(end, true)?;
    watched(end.as_fd(), interest)
}

/// Copies until the source is whole or the reader has left. If neither happens, it waits until it
/// is dropped with its reader.
async fn copy(source: Arc<Source>, mode: Mode, writer: AsyncFd<OwnedFd>) {
    let mut changes = source.flow.subscribe();
    let mut at = 0;
    loop {
        let (bytes, is_whole) = match *changes.borrow_and_update() {
            Flow::Stored { bytes, is_whole } if is_whole || mode.follows_production() => {
                (bytes, is_whole)
            }
            Flow::Stored { .. } | Flow::Open | Flow::Direct | Flow::Discarded => (at, false),
        };
        while at < bytes {
            let Ok(mut ready) = writer.writable().await else {
                return std::future::pending().await;
            };
            match ready.try_io(|writer| copy_some(&source, writer, &mut at, bytes)) {
                Ok(Ok(())) => tokio::task::yield_now().await,
                // The reader wants no more of it.
                Ok(Err(_)) => return std::future::pending().await,
                Err(_would_block) => {}
            }
        }
        if is_whole {
            return;
        }
        let is_over = changes.changed().await.is_err();
        assert!(!is_over, "a source that is read is not gone");
    }
}

fn copy_some(
    source: &Source,
    writer: &AsyncFd<OwnedFd>,
    at: &mut u64,
    until: u64,
) -> io::Result<()> {
    let count = (until - *at).min(limits::STREAM_COPY_BYTES_MAX as u64) as usize;
    let flags = SpliceFlags::NONBLOCK;
    splice(&source.file, Some(at), writer.get_ref(), None, count, flags)?;
    Ok(())
}

/// Moves what goes directly to one reader from the producer's pipe to that of the reader, until its
/// end. If the reader leaves before, the producer is not held any more.
async fn pass_on(source: Arc<Source>, from: AsyncFd<OwnedFd>, to: AsyncFd<OwnedFd>) {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    let most = limits::STREAM_COPY_BYTES_MAX;
    loop {
        let (Ok(mut readable), Ok(mut writable)) = (from.readable().await, to.writable().await)
        else {
            return std::future::pending().await;
        };
        match splice(from.get_ref(), None, to.get_ref(), None, most, flags) {
            Ok(0) => return,
            Ok(_) => tokio::task::yield_now().await,
            Err(Errno::AGAIN | Errno::INTR) => {
                let ready = ready_ends(from.get_ref(), to.get_ref());
                if !ready[0] {
                    readable.clear_ready();
                }
                if !ready[1] {
                    writable.clear_ready();
                }
            }
            Err(_) => {
                source.discard();
                return std::future::pending().await;
            }
        }
    }
}

/// Whether the one end has something to read, and the other one room.
fn ready_ends(from: &OwnedFd, to: &OwnedFd) -> [bool; 2] {
    let mut looked = [
        PollFd::new(from, PollFlags::IN),
        PollFd::new(to, PollFlags::OUT),
    ];
    // Without a look both pass for ready, and are retried.
    match poll(&mut looked, Some(&Timespec::default())) {
        Ok(_) => looked.map(|end| !end.revents().is_empty()),
        Err(_) => [true, true],
    }
}
