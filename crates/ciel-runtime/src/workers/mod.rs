//! Worker processes of plug-in executors: who they are, and what each of them is told.
//!
//! The parts: `greeting` (a process becomes a worker), `conversation` (from hello to its end),
//! `ahead` (what it receives before its time), `leaving` (its end), `peer` (its process, its
//! socket, what it prints), `start` and `held` (a task that it runs or keeps parked), `requests`
//! and `look` (what a task asks for), `ending` (how its turn ends), and the pure ones:
//! `definitions`, `features`, `recording`, `lines`, `wire`, `failing`. All of it lives on the
//! input/output thread. It does not know why a task goes to which worker; that is the node's
//! business. The page that workers are written from is `protocol/PROTOCOL.md`.

mod ahead;
mod conversation;
mod definitions;
mod ending;
mod failing;
mod features;
mod greeting;
mod held;
mod leaving;
mod lines;
mod look;
mod peer;
mod recording;
mod requests;
mod start;
mod wire;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use ciel_engine::{Attempt, Begun};
use ciel_graph::Assignment;
use ciel_model::{Failure, FailureKind, Handle, Label, Pool, TaskKey};
use ciel_node::{AttemptKey, WorkerKey};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::engine::Engine;
use crate::spawning::Spawning;

/// Starts of an executor that may fail in a row before it is not tried again in this run.
const FAILED_STARTS_MAX: u32 = 3;

/// What one worker is to do.
pub(super) enum Word {
    /// Run a task, or go on with one that is parked.
    Begin(Box<Begun>),
    /// End a task that runs.
    Stop(AttemptKey),
    /// What a task that runs watched is there.
    Told(AttemptKey, Handle),
    /// Forget a parked strand.
    Drop(TaskKey),
    /// End the worker process.
    Dismiss,
}

/// Why an executor cannot be had.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) kind: FailureKind,
    pub(super) message: String,
    pub(super) excerpt: String,
    pub(super) hint: Option<String>,
}

impl Broken {
    /// The failure of a task that wanted it.
    pub(super) fn failure(&self, task: &Label) -> Failure {
        let mut failure = Failure::new(self.kind, task.clone(), &*self.message);
        failure.excerpt = self.excerpt.clone();
        failure.hint = self.hint.clone();
        failure
    }
}

/// All workers of the run.
pub(crate) struct Workers {
    pub(super) engine: Arc<Engine>,
    pub(super) spawning: Rc<Spawning>,
    /// Where the user's program is, as workers are told.
    pub(super) folder: String,
    connections: RefCell<FxHashMap<WorkerKey, UnboundedSender<Word>>>,
    /// Pools whose last starts have failed: how many, and why the last.
    failed_starts: RefCell<FxHashMap<Pool, (u32, Broken)>>,
    /// Bytes of standard error that tasks have shown, so that a replay does not show them again.
    shown: RefCell<FxHashMap<TaskKey, u64>>,
    /// The last tag that was given to a start.
    tag: Cell<u32>,
    /// Conversations that have not ended.
    alive: Cell<usize>,
    ended: Notify,
}

impl Workers {
    pub(crate) fn new(engine: Arc<Engine>, spawning: Rc<Spawning>) -> Rc<Workers> {
        let folder = crate::layout::script_folder(&engine.settings.script);
        Rc::new(Workers {
            folder: folder.to_string_lossy().into_owned(),
            engine,
            spawning,
            connections: RefCell::default(),
            failed_starts: RefCell::default(),
            shown: RefCell::default(),
            tag: Cell::new(0),
            alive: Cell::new(0),
            ended: Notify::new(),
        })
    }

    /// Starts a worker of `pool`.
    pub(crate) fn start(self: &Rc<Self>, worker: WorkerKey, pool: Pool) {
        let (words, receiver) = unbounded_channel();
        self.connections.borrow_mut().insert(worker, words);
        self.alive.set(self.alive.get() + 1);
        let workers = self.clone();
        tokio::task::spawn_local(async move {
            conversation::run(&workers, worker, &pool, receiver).await;
            workers.alive.set(workers.alive.get() - 1);
            workers.ended.notify_one();
        });
    }

    /// Ends a worker that has nothing to do.
    pub(crate) fn dismiss(&self, worker: WorkerKey) {
        self.tell(worker, Word::Dismiss);
    }

    /// Runs a task in a worker that is free.
    pub(crate) fn begin(&self, worker: WorkerKey, begun: Box<Begun>) {
        self.tell(worker, Word::Begin(begun));
    }

    /// Ends a running task.
    pub(crate) fn stop(&self, worker: WorkerKey, attempt: AttemptKey) {
        self.tell(worker, Word::Stop(attempt));
    }

    /// What a running task watched is there.
    pub(crate) fn tell_watcher(&self, worker: WorkerKey, attempt: AttemptKey, handle: Handle) {
        self.tell(worker, Word::Told(attempt, handle));
    }

    /// Forgets a parked strand.
    pub(crate) fn drop_parked(&self, worker: WorkerKey, task: TaskKey) {
        self.tell(worker, Word::Drop(task));
    }

    /// Ends all workers and waits until they are gone.
    pub(crate) async fn dismiss_all(&self) {
        for words in self.connections.borrow().values() {
            // Who does not listen is ending already.
            let _ = words.send(Word::Dismiss);
        }
        while self.alive.get() > 0 {
            self.ended.notified().await;
        }
    }

    fn tell(&self, worker: WorkerKey, word: Word) {
        let connections = self.connections.borrow();
        let unheard = match connections.get(&worker) {
            Some(words) => words.send(word).map_err(|unheard| unheard.0),
            None => Err(word),
        };
        if let Err(Word::Begin(begun)) = unheard {
            self.lost(&begun.assignment);
        }
    }

    /// A task was given to a worker that is gone.
    pub(super) fn lost(&self, assignment: &Assignment) {
        let message = "the worker that was to run it is gone";
        let failure = Failure::new(FailureKind::WorkerLost, assignment.label.clone(), message);
        let attempt = Attempt::new(assignment);
        let lost = attempt.left_with(attempt.lost(failure));
        self.engine.with(|core, now| core.tell(now, lost));
    }

    /// Nothing more is to be told to that worker.
    pub(super) fn forget(&self, worker: WorkerKey) {
        self.connections.borrow_mut().remove(&worker);
    }

    /// Why `pool` is not to be tried again, if so.
    pub(super) fn given_up(&self, pool: &Pool) -> Option<Broken> {
        let failed = self.failed_starts.borrow();
        let (count, why) = failed.get(pool)?;
        (*count >= FAILED_STARTS_MAX).then(|| why.clone())
    }

    /// A worker of `pool` could not be started.
    pub(super) fn start_failed(&self, pool: &Pool, why: &Broken) {
        let mut failed = self.failed_starts.borrow_mut();
        let before = failed.get(pool).map_or(0, |(count, _)| *count);
        failed.insert(pool.clone(), (before + 1, why.clone()));
    }

    /// A task of `pool` ended well.
    pub(super) fn task_ended_well(&self, pool: &Pool) {
        self.failed_starts.borrow_mut().remove(pool);
    }

    /// A tag that no other start of this process has; 0 is none.
    pub(super) fn next_tag(&self) -> u32 {
        self.tag.set(self.tag.get().wrapping_add(1).max(1));
        self.tag.get()
    }

    /// Of `bytes` of a task's standard error that begin at `from`, those not shown before.
    pub(super) fn unshown<'a>(&self, task: TaskKey, from: u64, bytes: &'a [u8]) -> &'a [u8] {
        let mut shown = self.shown.borrow_mut();
        let before = shown.entry(task).or_default();
        let again = before.saturating_sub(from).min(bytes.len() as u64);
        *before = (*before).max(from + bytes.len() as u64);
        &bytes[again as usize..]
    }

    /// Nothing more comes of a task that is not in the graph any more.
    pub(super) fn forget_shown(&self, task: TaskKey) {
        if self.shown.borrow().contains_key(&task)
            && self.engine.lock().graph().view(task).is_none()
        {
            self.shown.borrow_mut().remove(&task);
        }
    }
}

/// The attempt that an assignment is for.
pub(super) fn attempt_of(assignment: &Assignment) -> AttemptKey {
    AttemptKey {
        task: assignment.task,
        number: assignment.attempt,
    }
}
