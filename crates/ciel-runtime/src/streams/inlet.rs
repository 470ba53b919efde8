//! The reader's side: what a process reads while another one writes it.
//!
//! The first reader of an undecided source may have its pipe. All others, and all that come later,
//! have pipes of their own, into which a future copies what is in the file as it grows. A stream
//! whose producer has failed has no end: its readers are stopped by the graph. Read next:
//! `service`, for the mode, then `outlet`.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use ciel_graph::{Assignment, Carriage, Event, Step, StreamInput};
use ciel_model::{
    AttemptNumber, Failure, FailureKind, Form, Handle, Label, Micros, Mode, Value, limits,
};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

use super::pouring::{pour, watched_end};
use super::service::{self, Service};
use super::transfer::{Ended, Transfer};
use crate::core::Core;
use crate::data_plane::Offer;
use crate::engine::Engine;
use crate::sources::{Flow, Source};

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

    /// Whether its bytes are stored, so that they can be read again when all are there.
    pub(crate) fn is_stored(&self) -> bool {
        !self.is_direct
    }

    /// The reading end for another future, and what is written to it.
    pub(super) fn taken(&mut self) -> (OwnedFd, Arc<Source>) {
        let end = self.descriptor.take().expect("it is taken once");
        (end, self.source.clone())
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
    engine: &Arc<Engine>,
    assignment: &Assignment,
    stream: StreamInput,
) -> Result<Attached, Box<Failure>> {
    attach_with(engine, assignment, stream, |source, way| match way {
        Way::Direct => {
            let end = engine.folder.scratch().reading_end(&source.pipe)?;
            Ok(Inlet::direct(end, source))
        }
        way => {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            carry_over(source, way, reader, writer)
        }
    })
}

/// Makes a task that opens files by name the reader of one of its inputs: it finds a pipe at that
/// path, where there is one of which these are both ends.
///
/// # Errors
/// The failure of the task if the system refuses a pipe.
pub(crate) fn attach_by_name(
    engine: &Arc<Engine>,
    assignment: &Assignment,
    stream: StreamInput,
    (path, ends): (&Path, OwnedFd),
) -> Result<Attached, Box<Failure>> {
    let folders = engine.folder.scratch();
    attach_with(engine, assignment, stream, |source, way| {
        if matches!(way, Way::Direct) {
            folders.share_pipe(&source.pipe, path)?;
        }
        // Until the reader has opened the pipe, this end keeps what is in it.
        let reader = folders.reading_end(path)?;
        match way {
            Way::Direct => Ok(Inlet::direct(reader, source)),
            way => carry_over(source, way, reader, ends),
        }
    })
}

/// How the bytes of a source come to a reader.
enum Way {
    /// It has the pipe of the producer.
    Direct,
    /// From the file.
    Copied(Pace),
    /// Over a connection.
    Fetched(Offer, Box<Reader>),
}

/// When a reader has bytes that are stored.
#[derive(Clone, Copy)]
struct Pace {
    mode: Mode,
    /// It has so many new bytes at least, or the rest.
    granularity_bytes: u64,
}

impl Pace {
    /// How far a reader that has `at` bytes may read, and whether that is the end.
    fn reach(self, at: u64, flow: Flow) -> (u64, bool) {
        match flow {
            Flow::Stored { bytes, is_whole } if is_whole => (bytes, true),
            Flow::Stored { bytes, .. }
                if self.mode.follows_production()
                    && bytes.saturating_sub(at) >= self.granularity_bytes =>
            {
                (bytes, false)
            }
            Flow::Stored { .. } | Flow::Open | Flow::Direct | Flow::Discarded => (at, false),
        }
    }
}

/// Who reads over a connection, and what `ciel why` says of that so far.
struct Reader {
    engine: Arc<Engine>,
    task: Label,
    read: (AttemptNumber, u32),
    told: String,
    pace: Pace,
}

impl Reader {
    /// Says more.
    fn tell(&self, how: &str) {
        let told = format!("{}{how}", self.told);
        let mut core = self.engine.lock();
        core.history.stream_read(&self.task, self.read, told);
    }
}

/// Finds the source of a stream, decides its mode and opens it so.
fn attach_with(
    engine: &Arc<Engine>,
    assignment: &Assignment,
    stream: StreamInput,
    open: impl FnOnce(Arc<Source>, Way) -> io::Result<Inlet>,
) -> Result<Attached, Box<Failure>> {
    let attached = engine.with(|core, now| {
        let Some(source) = core.streams.get(&stream.name).cloned() else {
            let value = core.graph().ended_stream(assignment.task, stream.input);
            return Ok(value.map_or(Attached::Gone, Attached::Value));
        };
        let mut service = service::decide(core, &source, assignment, stream.mode);
        let streams = &assignment.descriptor.streams;
        let granularity_bytes = streams.granularity_of(stream.input.0);
        let offer = offered(core, &source, &mut service, granularity_bytes);
        let pace = Pace {
            mode: service.mode,
            granularity_bytes,
        };
        let (task, input) = (&assignment.label, stream.input.0);
        let (read, told) = ((assignment.attempt, input), service.told(input));
        core.history.stream_read(task, read, told.clone());
        let way = match (service.mode, offer) {
            (Mode::Direct, _) => Way::Direct,
            (_, Some(offer)) => {
                let (engine, task) = (engine.clone(), task.clone());
                let reader = Reader {
                    engine,
                    task,
                    read,
                    told,
                    pace,
                };
                Way::Fetched(offer, Box::new(reader))
            }
            (_, None) => Way::Copied(pace),
        };
        let inlet = open(source.clone(), way)?;
        match service.mode {
            Mode::Direct => pass_directly(core, now, &source),
            _ => source.store(),
        }
        Ok(Attached::Stream(inlet))
    });
    attached.map_err(|error| unreadable(&assignment.label, &error))
}

/// Offers a source at the data plane if its reader is to have it over a connection. Without a port
/// it is served otherwise.
fn offered(
    core: &mut Core,
    source: &Source,
    service: &mut Service,
    granularity_bytes: u64,
) -> Option<Offer> {
    if service.mode != Mode::IndirectTcp {
        return None;
    }
    let object = source.growing();
    let object = object.map(|object| object.with_granularity(granularity_bytes));
    match object.and_then(|object| core.data_plane.offer(object)) {
        Ok(offer) => Some(offer),
        Err(error) => {
            let reason = format!("no port can be opened: {error}");
            *service = Service::of(Mode::IndirectTcp, Some(reason));
            None
        }
    }
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
    way: Way,
    reader: OwnedFd,
    writer: OwnedFd,
) -> io::Result<Inlet> {
    // A smaller pipe is slower, and that is all.
    let _ = rustix::pipe::fcntl_setpipe_size(&writer, limits::STREAM_PIPE_BYTES);
    let end = watched_end(&writer, Interest::WRITABLE)?;
    let copying = match way {
        Way::Direct => unreachable!("its reader has the pipe of the producer"),
        Way::Copied(pace) => tokio::task::spawn_local(copy(source.clone(), (pace, 0), end)),
        Way::Fetched(offer, reader) => {
            let transfer = Transfer::start(offer, reader.engine.folder.clone(), writer)?;
            tokio::task::spawn_local(fetch(source.clone(), transfer, *reader, end))
        }
    };
    Ok(Inlet {
        descriptor: Some(reader),
        source,
        is_direct: false,
        copying: Some(copying),
    })
}

/// Copies until the source is whole or the reader has left. If neither happens, it waits until it
/// is dropped with its reader.
async fn copy(source: Arc<Source>, (pace, mut at): (Pace, u64), writer: AsyncFd<OwnedFd>) {
    let mut changes = source.flow.subscribe();
    loop {
        let (bytes, is_whole) = pace.reach(at, *changes.borrow_and_update());
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

/// Waits until a transfer has ended. Without a connection the reader has the rest from the file.
async fn fetch(
    source: Arc<Source>,
    mut transfer: Transfer,
    reader: Reader,
    writer: AsyncFd<OwnedFd>,
) {
    match transfer.end().await {
        Ended::Whole { bytes, connections } => {
            let noun = if connections == 1 {
                "connection"
            } else {
                "connections"
            };
            reader.tell(&format!(", {bytes} bytes over {connections} {noun}"));
        }
        Ended::Left => std::future::pending().await,
        Ended::Broken { read, fault } => {
            reader.tell(&format!(", after {read} bytes from the file: {fault}"));
            reader.engine.lock().data_plane.give_up(transfer.address());
            drop(transfer);
            copy(source, (reader.pace, read), writer).await;
        }
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
    if pour(&from, &to).await.is_err() {
        source.discard();
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(bytes: u64, is_whole: bool) -> Flow {
        Flow::Stored { bytes, is_whole }
    }

    /// How often a reader is woken, and with how many bytes each time.
    fn wakes(mode: Mode, granularity_bytes: u64, growth: &[Flow]) -> Vec<u64> {
        let pace = Pace {
            mode,
            granularity_bytes,
        };
        let mut at = 0;
        let mut found = Vec::new();
        for flow in growth {
            let (reach, _) = pace.reach(at, *flow);
            if reach > at {
                found.push(reach - at);
                at = reach;
            }
        }
        found
    }

    #[test]
    fn wake_brings_the_granularity_at_least_and_the_end_brings_the_rest() {
        let mut growth: Vec<Flow> = (0..=25).map(|bytes| stored(bytes, false)).collect();
        growth.push(stored(25, true));
        let pipe = Mode::IndirectPipe;
        assert_eq!(wakes(pipe, 1, &growth), vec![1; 25]);
        assert_eq!(wakes(pipe, 10, &growth), [10, 10, 5]);
        assert_eq!(wakes(pipe, 25, &growth), [25]);
        assert_eq!(wakes(pipe, 1000, &growth), [25]);
        assert_eq!(wakes(Mode::Overlap, 10, &growth), [25]);
        let bursts = [3, 14, 15, 40].map(|bytes| stored(bytes, false));
        assert_eq!(wakes(pipe, 10, &bursts), [14, 26]);
    }
}
