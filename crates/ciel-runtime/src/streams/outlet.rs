//! The producer's side: what a process writes is passed on, stored, or discarded.
//!
//! One future for each open output moves bytes from its pipe to its file while they are stored, and
//! keeps the pipe open: so a producer that dies is no end of file for its reader, and a reader that
//! leaves is no broken pipe for the producer. Read next: `inlet`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ciel_graph::{Assignment, Carriage, Event, Step};
use ciel_model::{Failure, FailureKind, Form, Label, Name, limits};
use ciel_node::AttemptKey;
use rustix::pipe::{SpliceFlags, splice};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::full_pipe::FullPipe;
use super::misread::Misreading;
use crate::engine::Engine;
use crate::error::hint_of_limit;
use crate::executors::command::Stdout;
use crate::sources::{Flow, Source};
use crate::spawning::watched;
use crate::workspace::TaskWorkspace;

/// For how long a producer without a reader may be held.
const READER_WAIT: Duration = Duration::from_millis(limits::STREAM_READER_WAIT_MS);

/// For how long if the reader has a slot.
const READER_START: Duration = Duration::from_millis(limits::STREAM_READER_START_MS);

/// Bytes that are discarded at once.
const DISCARDED_BYTES: usize = 64 << 10;

/// A producer that has no reader may be held by its full pipe.
struct Held {
    full: FullPipe,
    engine: Arc<Engine>,
}

impl Held {
    /// Returns when it was held for the time for which it may be: a short one, unless its reader
    /// has a slot and is about to begin.
    async fn in_vain(&self, source: &Source) -> io::Result<()> {
        self.full.stays_full(READER_WAIT).await?;
        let latest = Instant::now() + READER_START;
        while self.engine.lock().reader_begins(source) && Instant::now() < latest {
            self.full.stays_full(READER_WAIT).await?;
        }
        Ok(())
    }
}

/// Both ends of the pipe of an output.
///
/// The kernel tells of every write into an empty pipe, and that wakes this thread: it would take a
/// core from the two processes that share the pipe, where nobody here moves its bytes.
enum Ends {
    Watched(AsyncFd<OwnedFd>),
    Unwatched(OwnedFd),
}

impl Ends {
    /// Watched where bytes that go that way are moved here; those of a direct reader are not.
    ///
    /// # Errors
    /// As the system says.
    fn for_flow(self, flow: Flow) -> io::Result<Ends> {
        match (self, flow == Flow::Direct) {
            (Ends::Watched(ends), true) => Ok(Ends::Unwatched(ends.into_inner())),
            (Ends::Unwatched(ends), false) => {
                Ok(Ends::Watched(watched(ends.as_fd(), Interest::READABLE)?))
            }
            (ends, _) => Ok(ends),
        }
    }

    fn pipe(&self) -> &OwnedFd {
        match self {
            Ends::Watched(ends) => ends.get_ref(),
            Ends::Unwatched(ends) => ends,
        }
    }

    /// Moves what is in the pipe, a bounded part of it, once there is something.
    ///
    /// # Errors
    /// As the system says, such as that the disk is full.
    async fn moved(&self, source: &Source) -> io::Result<()> {
        let Ends::Watched(ends) = self else {
            return std::future::pending().await;
        };
        let mut ready = ends.readable().await?;
        let moved = ready.try_io(|ends| move_some(source, ends.get_ref()));
        moved.unwrap_or(Ok(()))
    }
}

/// What has become of the bytes of an output.
pub(crate) enum Carried {
    /// They are in this file.
    Stored(PathBuf),
    /// They went to the one reader.
    Passed,
}

/// The open outputs of one task that runs. They are closed when this is dropped.
pub(crate) struct Outlets {
    engine: Arc<Engine>,
    attempt: AttemptKey,
    open: Vec<Outlet>,
    /// Those that the process opens by path.
    misreading: Option<Misreading>,
}

struct Outlet {
    index: u32,
    name: Name,
    path: PathBuf,
    /// Whom to tell how the process ended, and what comes of that.
    running: Option<(oneshot::Sender<bool>, JoinHandle<io::Result<Flow>>)>,
}

impl Outlet {
    /// Its process was lost, or was told to end. What somebody has looked at meanwhile stays, for a
    /// replay of that.
    fn keep_looked_at(&self, engine: &Engine) {
        let was_looked_at = engine.lock().streams.was_looked_at(&self.name);
        if was_looked_at {
            self.keep_partial(engine);
        }
    }

    /// Its task has failed. What it had written stays: it precedes the failure.
    fn keep_partial(&self, engine: &Engine) {
        let core = engine.lock();
        let source = core.streams.get(&self.name);
        let Some(form) = source.map(|source| source.form.clone()) else {
            return;
        };
        drop(core);
        // Without it a replay says that it has found something else.
        let partial = engine.folder.partial();
        let _ = partial.keep(self.name.0, form.name(), &self.path);
    }
}

/// Where the bytes of an output come out, and where they are stored.
pub(crate) struct Place {
    /// What the producer writes to.
    pub(crate) pipe: PathBuf,
    /// Both ends of that.
    pub(crate) ends: OwnedFd,
    /// The file that becomes the object.
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// How the bytes are read.
    pub(crate) form: Form,
}

impl Outlets {
    /// None open yet.
    pub(crate) fn new(engine: &Arc<Engine>, attempt: AttemptKey) -> Outlets {
        Outlets {
            engine: engine.clone(),
            attempt,
            open: Vec::new(),
            misreading: None,
        }
    }

    /// The attempt whose outputs they are.
    pub(crate) fn attempt(&self) -> AttemptKey {
        self.attempt
    }

    /// Makes the pipes that a process will write to in place of files.
    ///
    /// # Errors
    /// The failure of the task if the system refuses one.
    pub(crate) fn make(
        &mut self,
        assignment: &Assignment,
        stdout: &Stdout,
        desk: &mut TaskWorkspace<'_>,
    ) -> Result<(), Box<Failure>> {
        let mut by_path = Vec::new();
        for index in assignment.descriptor.streams.outputs.iter().copied() {
            let (pipe, ends) = desk.output_pipe(index)?;
            let (path, file) = desk.growing_output(index)?;
            let form = Form::Bytes;
            let place = Place {
                pipe,
                ends,
                path,
                file,
                form,
            };
            let source = self.open(&assignment.label, index, place)?;
            if *stdout != Stdout::Output(index) {
                by_path.push((desk.output_name(index), source));
            }
        }
        self.misreading = Misreading::watch(self.engine.folder.scratch(), by_path);
        Ok(())
    }

    /// Waits until a process of the task reads one of its outputs; its failure.
    pub(crate) async fn misread(&self, process: Option<u32>, task: &Label) -> Box<Failure> {
        match (&self.misreading, process) {
            (Some(misreading), Some(process)) => misreading.found(process, task).await,
            _ => std::future::pending().await,
        }
    }

    /// The failure of the task if a process of it has read one of its outputs; without waiting.
    pub(crate) fn misread_by_now(&self, task: &Label) -> Option<Box<Failure>> {
        self.misreading.as_ref()?.found_by_now(task)
    }

    /// From now on what comes out of the pipe of an output is carried on; gives what it comes from.
    ///
    /// # Errors
    /// The failure of the task if the system refuses that.
    pub(crate) fn open(
        &mut self,
        task: &Label,
        index: u32,
        place: Place,
    ) -> Result<Arc<Source>, Box<Failure>> {
        let name = task.name.output(u64::from(index));
        // A smaller pipe is slower, and that is all.
        let _ = rustix::pipe::fcntl_setpipe_size(&place.ends, limits::STREAM_PIPE_BYTES);
        let ends = watched(place.ends.as_fd(), Interest::READABLE).map_err(|error| {
            let message = format!("cannot use the pipe of output {index}: {error}");
            let failure = Failure::new(FailureKind::TaskError, task.clone(), message);
            Box::new(match hint_of_limit(&error) {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            })
        })?;
        let files = (place.pipe, place.file);
        let source = Arc::new(Source::new((self.attempt, index), files, place.form));
        let changes = source.flow.subscribe();
        // Where the system tells nobody when the pipe is full, its bytes are stored from the start.
        let full = FullPipe::watch(ends.get_ref()).ok();
        let engine = self.engine.clone();
        let held = full.map(|full| Held { full, engine });
        let (ended, end) = oneshot::channel();
        let pipe = (Ends::Watched(ends), held);
        let carrying = carry(source.clone(), pipe, changes, end);
        let carrying = tokio::task::spawn_local(carrying);
        self.engine.lock().streams.insert(name, source.clone());
        self.open.push(Outlet {
            index,
            name,
            path: place.path,
            running: Some((ended, carrying)),
        });
        Ok(source)
    }

    /// The task writes: others may read.
    pub(crate) fn tell_opened(&self) {
        for outlet in &self.open {
            let step = Step::OpenOutput {
                index: outlet.index,
                carriage: Carriage::Stored,
            };
            let (task, attempt) = (self.attempt.task, self.attempt.number);
            let event = Event::TaskStepped {
                task,
                attempt,
                step,
            };
            self.engine.with(|core, now| core.tell(now, event));
        }
    }

    /// The task has ended, well or not; gives what has become of each output.
    ///
    /// # Errors
    /// The failure of the task if its bytes could not be stored.
    pub(crate) async fn end(
        &mut self,
        task: &Label,
        is_well: bool,
    ) -> Result<Vec<(u32, Carried)>, Box<Failure>> {
        let mut all = Vec::with_capacity(self.open.len());
        for outlet in &mut self.open {
            let Some((ended, carrying)) = outlet.running.take() else {
                continue;
            };
            // It takes the word before it ends.
            let _ = ended.send(is_well);
            let flow = carrying.await.expect("copying does not panic");
            match is_well {
                true => self.engine.folder.partial().forget(outlet.name.0),
                false => outlet.keep_partial(&self.engine),
            }
            all.push((outlet.index, outlet.path.clone(), flow));
        }
        let carried = |(index, path, flow): (u32, PathBuf, io::Result<Flow>)| match flow {
            Ok(Flow::Direct | Flow::Discarded) => Ok((index, Carried::Passed)),
            Ok(Flow::Open | Flow::Stored { .. }) => Ok((index, Carried::Stored(path))),
            Err(error) => {
                let kind = match error.kind() {
                    io::ErrorKind::StorageFull => FailureKind::DiskFull,
                    _ => FailureKind::TaskError,
                };
                let message = format!("cannot store its output {index}: {error}");
                Err(Box::new(Failure::new(kind, task.clone(), message)))
            }
        };
        all.into_iter().map(carried).collect()
    }
}

impl Drop for Outlets {
    fn drop(&mut self) {
        let lost = self.open.iter().filter(|outlet| outlet.running.is_some());
        lost.for_each(|outlet| outlet.keep_looked_at(&self.engine));
        let mut core = self.engine.lock();
        for outlet in &self.open {
            core.streams.remove(&outlet.name, self.attempt);
        }
    }
}

/// As [`carry_to_end`]; readers on other threads hear of an end that is none.
async fn carry(
    source: Arc<Source>,
    pipe: (Ends, Option<Held>),
    changes: watch::Receiver<Flow>,
    end: oneshot::Receiver<bool>,
) -> io::Result<Flow> {
    let carried = carry_to_end(source.clone(), pipe, changes, end).await;
    source.lose();
    carried
}

/// Moves what comes out of a pipe until its producer has ended; gives the way that it took.
async fn carry_to_end(
    source: Arc<Source>,
    (mut ends, mut held): (Ends, Option<Held>),
    mut changes: watch::Receiver<Flow>,
    mut end: oneshot::Receiver<bool>,
) -> io::Result<Flow> {
    if held.is_none() {
        source.store();
    }
    let mut copied = Ok(());
    let is_well = loop {
        let flow = *changes.borrow_and_update();
        held = held.filter(|_| flow == Flow::Open);
        ends = ends.for_flow(flow)?;
        let moves = matches!(flow, Flow::Stored { .. } | Flow::Discarded);
        tokio::select! {
            biased;
            // A producer that is dropped with its future has not ended well.
            is_well = &mut end => break is_well.unwrap_or(false),
            _ = changes.changed(), if !moves => {}
            () = is_held_in_vain(held.as_ref(), &source), if !moves => source.store(),
            moved = ends.moved(&source), if moves => {
                if let Err(error) = moved {
                    // The producer is not to wait for ever for room in the pipe.
                    source.flow.send_replace(Flow::Discarded);
                    copied = Err(error);
                }
                tokio::task::yield_now().await;
            }
        }
    };
    drop(held);
    source.store();
    let flow = *source.flow.borrow();
    if flow == Flow::Direct && !is_well {
        tokio::task::spawn_local(keep_open(ends, changes));
        return Ok(flow);
    }
    while flow != Flow::Direct && copied.is_ok() {
        match move_some(&source, ends.pipe()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            moved => copied = moved,
        }
    }
    copied?;
    if let Flow::Stored { .. } = flow
        && is_well
    {
        source.complete();
    }
    Ok(flow)
}

/// Returns when a producer without a reader was held for the time for which it may be, or nobody
/// can tell any more.
async fn is_held_in_vain(held: Option<&Held>, source: &Source) {
    match held {
        Some(held) => drop(held.in_vain(source).await),
        None => std::future::pending().await,
    }
}

/// The reader of a producer that has not ended well sees no end before it is stopped itself.
async fn keep_open(ends: Ends, mut changes: watch::Receiver<Flow>) {
    // The flow of a source that is gone has no reader.
    let _ = changes.wait_for(|flow| *flow != Flow::Direct).await;
    drop(ends);
}

/// Moves what is in the pipe, a bounded part of it.
fn move_some(source: &Source, ends: &OwnedFd) -> io::Result<()> {
    let flow = *source.flow.borrow();
    let Flow::Stored { .. } = flow else {
        let mut nowhere = [0; DISCARDED_BYTES];
        rustix::io::read(ends, &mut nowhere)?;
        return Ok(());
    };
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    let most = limits::STREAM_COPY_BYTES_MAX;
    let count = splice(ends, None, &source.file, None, most, flags)?;
    source.grow(count as u64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::io::{Read, Seek, Write};
    use std::task::{Context, Waker};

    use ciel_model::{AttemptNumber, TaskKey};

    use super::*;

    /// The output of an attempt, and the file in which it is stored.
    fn source() -> (Arc<Source>, File) {
        let attempt = AttemptKey {
            task: TaskKey(0),
            number: AttemptNumber(0),
        };
        let stored = tempfile::tempfile().unwrap();
        let files = (PathBuf::new(), stored.try_clone().unwrap());
        let source = Source::new((attempt, 0), files, Form::Bytes);
        (Arc::new(source), stored)
    }

    /// The ends of a pipe as the engine watches them, and that of the producer.
    fn pipe() -> (Ends, std::io::PipeWriter) {
        let (reading, writing) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&reading, true).unwrap();
        let ends = watched(reading.as_fd(), Interest::READABLE).unwrap();
        (Ends::Watched(ends), writing)
    }

    /// Whether this process waits for news of that pipe.
    fn is_watched(pipe: &impl AsFd) -> bool {
        let inode = format!("ino:{:x} ", rustix::fs::fstat(pipe).unwrap().st_ino);
        let descriptors = std::fs::read_dir("/proc/self/fdinfo").unwrap();
        let told = descriptors.map(|one| std::fs::read_to_string(one.unwrap().path()));
        told.flatten().any(|told| told.contains(&inode))
    }

    /// Every write into the empty pipe woke the engine: 1 GiB between `head` and `wc` woke it a
    /// hundred thousand times, on the cores that these two need.
    #[tokio::test]
    async fn pipe_of_a_direct_reader_wakes_nobody_until_the_reader_leaves() {
        let (source, _) = source();
        let (ends, mut writing) = pipe();
        let witness = writing.try_clone().unwrap();
        assert!(is_watched(&witness));
        let (ended, end) = oneshot::channel();
        let changes = source.flow.subscribe();
        let carrying = carry(source.clone(), (ends, None), changes, end);
        let mut carrying = std::pin::pin!(carrying);
        source.flow.send_replace(Flow::Direct);
        let looked = carrying
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(looked.is_pending());
        assert!(!is_watched(&witness));

        source.discard();
        let producer = std::thread::spawn(move || {
            writing.write_all(&vec![7; 4 << 20]).unwrap();
            ended.send(true).unwrap();
        });
        assert!(matches!(carrying.await.unwrap(), Flow::Discarded));
        producer.join().unwrap();
    }

    /// The pipe of a producer was left by the engine then, whose next start of a process waited for
    /// a reader of it.
    #[tokio::test]
    async fn output_of_whose_full_pipe_nobody_tells_is_stored() {
        let bytes = vec![7; 4 << 20];
        let (source, mut stored) = source();
        let (ends, mut writing) = pipe();
        let (ended, end) = oneshot::channel();
        let written = bytes.clone();
        let producer = std::thread::spawn(move || {
            writing.write_all(&written).unwrap();
            ended.send(true).unwrap();
            writing
        });
        let changes = source.flow.subscribe();
        let carried = tokio::task::LocalSet::new()
            .run_until(carry(source, (ends, None), changes, end))
            .await;
        producer.join().unwrap();
        assert!(matches!(carried.unwrap(), Flow::Stored { .. }));
        let mut found = Vec::new();
        stored.rewind().unwrap();
        stored.read_to_end(&mut found).unwrap();
        assert!(found == bytes);
    }
}
