//! Worker processes of executors: how they are started, connected and ended.
//!
//! What a worker's messages mean is decided by [`ciel_workers::Conversation`], a pure machine; this
//! module is its shell. The parts: `startup` (a process becomes a worker), `drive` (from hello to
//! its end, as one future), `connection` (its process, its socket, what it prints), `host` (the
//! engine and the store, as a conversation asks them), `streams` (what their tasks read and write
//! while it is written). All of it lives on the input/output thread.
//! It does not know why a task runs in which worker; that is the node's business. Read next:
//! `drive`.

mod connection;
mod drive;
mod host;
mod socket;
mod startup;
mod streams;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use ciel_engine::{Begun, Notice};
use ciel_graph::Assignment;
use ciel_model::{AttemptNumber, Failure, FailureKind, Keeping, Label, Name, Pool, TaskKey};
use ciel_node::{AttemptKey, WorkerKey};
use ciel_store::Written;
use ciel_workers::{Input, Overdrawn, Rules};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use self::host::WorkerHost;
use self::streams::TaskStreams;
use crate::engine::Engine;
use crate::for_tests::kill_grace_ms;
use crate::kept::{PRINTED_BYTES_MAX, Segment};
use crate::ordered_files;
use crate::room::{self, NoRoom};
use crate::spawning::Spawning;

/// Starts of an executor that may fail in a row before it is not started again in this run.
const FAILED_STARTS_MAX: u32 = 3;

/// The same if the last of them was killed: the first start, and three more.
const KILLED_STARTS_MAX: u32 = 4;

/// Why an executor cannot be started.
#[derive(Clone, Debug)]
pub(super) struct StartError {
    pub(super) kind: FailureKind,
    pub(super) message: String,
    pub(super) excerpt: String,
    pub(super) hint: Option<String>,
}

/// Starts of the workers of one pool that have failed in a row.
struct FailedStarts {
    count: u32,
    /// After as many no more are tried.
    max: u32,
    /// Why the last one failed.
    why: StartError,
}

impl StartError {
    /// The failure of a task that wanted it.
    pub(super) fn failure(&self, task: &Label) -> Failure {
        let mut failure = Failure::new(self.kind, task.clone(), &*self.message);
        failure.excerpt = self.excerpt.clone();
        failure.hint = self.hint.clone();
        failure
    }
}

impl Default for Printed {
    fn default() -> Printed {
        Printed {
            attempt: AttemptNumber::default(),
            segments: Some(Vec::new()),
            bytes: 0,
        }
    }
}

/// All workers of the run.
pub(crate) struct Workers {
    pub(super) engine: Arc<Engine>,
    pub(super) spawning: Rc<Spawning>,
    /// What is the same for all workers.
    pub(super) rules: Rules,
    connections: RefCell<FxHashMap<WorkerKey, UnboundedSender<Input>>>,
    /// Pools whose last starts have failed: how many, and why the last.
    failed_starts: RefCell<FxHashMap<Pool, FailedStarts>>,
    /// Bytes of standard error that tasks have shown, so that a replay does not show them again.
    shown: RefCell<FxHashMap<TaskKey, u64>>,
    /// What tasks have printed whose results may be kept; none of what is too much.
    printed: RefCell<FxHashMap<TaskKey, Printed>>,
    /// What tasks write and read while it is written.
    streams: TaskStreams,
    /// The last tag that was given to a start.
    tag: Cell<u32>,
    /// Conversations that have not ended.
    alive: Cell<usize>,
    ended: Notify,
}

/// What an attempt has printed.
struct Printed {
    attempt: AttemptNumber,
    /// None if it is too much.
    segments: Option<Vec<Segment>>,
    bytes: u64,
}

impl Workers {
    pub(crate) fn new(engine: Arc<Engine>, spawning: Rc<Spawning>) -> Rc<Workers> {
        let folder = crate::layout::script_folder(&engine.settings.script);
        // Each start is a record: no start of an earlier process of the run has had the tags after.
        let journal = engine.journal.as_ref();
        let tags_before = journal.map_or(0, |journal| journal.appended().0 as u32);
        let rules = Rules {
            build: format!("ciel {}", env!("CARGO_PKG_VERSION")),
            folder: folder.to_string_lossy().into_owned(),
            ordered_errors: engine.settings.ordered_errors,
            options: engine.settings.task_options(),
            kill_grace_ms: u32::try_from(kill_grace_ms()).unwrap_or(u32::MAX),
        };
        Rc::new(Workers {
            streams: TaskStreams::new(&engine),
            rules,
            engine,
            spawning,
            connections: RefCell::default(),
            failed_starts: RefCell::default(),
            shown: RefCell::default(),
            printed: RefCell::default(),
            tag: Cell::new(tags_before),
            alive: Cell::new(0),
            ended: Notify::new(),
        })
    }

    /// Starts a worker of `pool`.
    pub(crate) fn start(self: &Rc<Self>, worker: WorkerKey, pool: Pool) {
        let (commands, receiver) = unbounded_channel();
        self.connections.borrow_mut().insert(worker, commands);
        self.alive.set(self.alive.get() + 1);
        let workers = self.clone();
        tokio::task::spawn_local(async move {
            drive::run(&workers, worker, &pool, receiver).await;
            workers.alive.set(workers.alive.get() - 1);
            workers.ended.notify_one();
        });
    }

    /// Ends a worker that has nothing to do.
    pub(crate) fn dismiss(&self, worker: WorkerKey) {
        self.command(worker, Input::Dismiss);
    }

    /// Runs a task in a worker that has a free slot.
    pub(crate) fn begin(&self, worker: WorkerKey, begun: Box<Begun>) {
        self.command(worker, Input::Begin(begun));
    }

    /// Ends a running task.
    pub(crate) fn stop(&self, worker: WorkerKey, attempt: AttemptKey) {
        self.command(worker, Input::Stop(attempt));
    }

    /// A reference that a running task watches is resolved.
    pub(crate) fn notify(&self, worker: WorkerKey, attempt: AttemptKey, notice: Notice) {
        self.command(worker, Input::Notify(attempt, notice));
    }

    /// Forgets a parked strand, which moves elsewhere or was cancelled.
    pub(crate) fn drop_parked(&self, worker: WorkerKey, task: TaskKey, moves: bool) {
        self.command(worker, Input::DropParked { task, moves });
    }

    /// Ends a task that has written more than there is room for, if it runs in a worker.
    pub(crate) fn end_overdrawn(&self, overdrawn: &(Written, NoRoom)) {
        let (written, no_room) = overdrawn;
        for commands in self.connections.borrow().values() {
            // As in `dismiss_all`.
            let _ = commands.send(Input::Overdrawn(Box::new(Overdrawn {
                task: Name(written.task),
                tag: written.attempt,
                message: no_room.to_string(),
                hint: room::HINT.to_string(),
            })));
        }
    }

    /// Ends all workers and waits until they are gone.
    pub(crate) async fn dismiss_all(&self) {
        for commands in self.connections.borrow().values() {
            // One that receives nothing is ending already.
            let _ = commands.send(Input::Dismiss);
        }
        while self.alive.get() > 0 {
            self.ended.notified().await;
        }
    }

    fn command(&self, worker: WorkerKey, command: Input) {
        let connections = self.connections.borrow();
        let unsent = match connections.get(&worker) {
            Some(commands) => commands.send(command).map_err(|unsent| unsent.0),
            None => Err(command),
        };
        if let Err(Input::Begin(begun)) = unsent {
            self.lose(&begun);
        }
    }

    /// A task was given to a worker that is gone.
    pub(super) fn lose(&self, begun: &Begun) {
        let mut host = WorkerHost::new(self, None);
        ciel_workers::lose(&begun.assignment, &mut host);
    }

    /// That worker receives nothing more.
    pub(super) fn forget(&self, worker: WorkerKey) {
        self.connections.borrow_mut().remove(&worker);
    }

    /// Why no worker of `pool` is started any more, if so.
    pub(super) fn given_up(&self, pool: &Pool) -> Option<StartError> {
        let failed = self.failed_starts.borrow();
        let failed = failed.get(pool)?;
        (failed.count >= failed.max).then(|| failed.why.clone())
    }

    /// How many starts of workers of `pool` have failed in a row.
    pub(super) fn failed_starts(&self, pool: &Pool) -> u32 {
        let failed = self.failed_starts.borrow();
        failed.get(pool).map_or(0, |failed| failed.count)
    }

    /// A worker of `pool` could not be started; `before` starts are known to have failed
    /// before it, so those with one cause can count once. After `max` no more are tried.
    pub(super) fn start_failed(&self, pool: &Pool, before: u32, max: u32, why: &StartError) {
        let count = self.failed_starts(pool).max(before + 1);
        let why = why.clone();
        let failed = FailedStarts { count, max, why };
        self.failed_starts.borrow_mut().insert(pool.clone(), failed);
    }

    /// A task of `pool` succeeded.
    pub(super) fn task_succeeded(&self, pool: &Pool) {
        self.failed_starts.borrow_mut().remove(pool);
    }

    /// A tag that no other start of the run has; 0 is none.
    pub(super) fn next_tag(&self) -> u32 {
        self.tag.set(self.tag.get().wrapping_add(1).max(1));
        self.tag.get()
    }

    /// Of `length` bytes of a task's standard error that begin at `from`, how many were shown
    /// before.
    pub(super) fn count_shown(&self, task: TaskKey, from: u64, length: u64) -> u64 {
        let mut shown = self.shown.borrow_mut();
        let before = shown.entry(task).or_default();
        let again = before.saturating_sub(from).min(length);
        *before = (*before).max(from + length);
        again
    }

    /// A task has written more, if its result may be kept.
    pub(super) fn note_written(
        &self,
        task: &Assignment,
        file: Option<&str>,
        (after, bytes): (u64, &[u8]),
    ) {
        let is_checked = self.engine.settings.check && task.descriptor.purity.is_pure();
        if task.descriptor.keeping == Keeping::Never && !is_checked {
            return;
        }
        let mut printed = self.printed.borrow_mut();
        let known = printed.entry(task.task).or_default();
        if known.attempt != task.attempt {
            *known = Printed::default();
            known.attempt = task.attempt;
        }
        known.bytes += bytes.len() as u64;
        match &mut known.segments {
            Some(segments) if known.bytes <= PRINTED_BYTES_MAX => segments.push(Segment {
                after,
                file: file.map(|file| self.canonical(file)),
                bytes: Bytes::copy_from_slice(bytes),
            }),
            segments => *segments = None,
        }
    }

    /// The canonical path of an ordered file; one that cannot be used fails the task anyway.
    fn canonical(&self, file: &str) -> Arc<str> {
        let sink = ordered_files::sink_of(&self.engine, file).ok();
        let path = sink.and_then(|sink| self.engine.files.path_of(sink));
        path.map_or_else(|| file.into(), Into::into)
    }

    /// All that an attempt has written; none if that is too much.
    pub(super) fn take_written(&self, task: &Assignment) -> Option<Vec<Segment>> {
        match self.printed.borrow_mut().remove(&task.task) {
            Some(printed) if printed.attempt == task.attempt => printed.segments,
            Some(_) | None => Some(Vec::new()),
        }
    }

    /// Nothing more comes of a task that is not in the graph any more.
    pub(super) fn forget_shown(&self, task: TaskKey) {
        self.printed.borrow_mut().remove(&task);
        if self.shown.borrow().contains_key(&task)
            && self.engine.lock().graph().view(task).is_none()
        {
            self.shown.borrow_mut().remove(&task);
        }
    }
}
