//! One worker from its start to its end, as one straight-line future.
//!
//! It feeds the conversation with what comes from the worker and from the engine, and performs what
//! the conversation wants done. It decides nothing. Read next: [`ciel_workers::Conversation`].

use std::rc::Rc;

use ciel_model::{Label, Pool, limits};
use ciel_node::WorkerKey;
use ciel_protocol::EncodeError;
use ciel_protocol::wire::EngineMessage;
use ciel_protocol::wire::worker_message::Kind;
use ciel_workers::{Conversation, Effect, Gone, Input, Show, WorkerExitReason, shutdown};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::connection::Connection;
use super::host::WorkerHost;
use super::startup::{Started, refuse_tasks, started};
use super::{FAILED_STARTS_MAX, Workers};

/// The life of one worker.
pub(super) async fn run(
    workers: &Rc<Workers>,
    worker: WorkerKey,
    pool: &Pool,
    mut commands: UnboundedReceiver<Input>,
) {
    let start = match workers.given_up(pool) {
        Some(why) => Err(Some(why)),
        None => started(workers, worker, pool, &mut commands).await,
    };
    match start {
        Ok(started) => {
            let mut driver = Driver::new(workers, worker, pool, started);
            let reason = driver.talk(&mut commands).await;
            driver.end(&reason, commands).await;
        }
        Err(None) => workers.forget(worker),
        Err(Some(why)) => {
            let again = workers.given_up(pool).is_none();
            if again {
                let before = workers.failed_starts(pool);
                workers.start_failed(pool, before, FAILED_STARTS_MAX, &why);
            }
            refuse_tasks(workers, worker, &why, again, commands).await;
        }
    }
}

/// A worker whose hello was accepted.
struct Driver<'a> {
    workers: &'a Rc<Workers>,
    worker: WorkerKey,
    pool: &'a Pool,
    connection: Connection,
    conversation: Conversation,
    effects: Vec<Effect>,
}

impl<'a> Driver<'a> {
    fn new(
        workers: &'a Rc<Workers>,
        worker: WorkerKey,
        pool: &'a Pool,
        started: Started,
    ) -> Driver<'a> {
        let Started {
            connection,
            hello,
            is_client,
        } = started;
        Driver {
            workers,
            worker,
            pool,
            connection,
            conversation: Conversation::new(worker, hello, is_client, workers.rules.clone()),
            effects: Vec::new(),
        }
    }

    async fn talk(&mut self, commands: &mut UnboundedReceiver<Input>) -> WorkerExitReason {
        let engine = &self.workers.engine;
        if let Some(pid) = self.connection.pid {
            engine.lock().worker_pids.insert(self.worker, pid);
        }
        let mut host = WorkerHost::new(self.workers, self.connection.pid);
        self.conversation
            .greet(self.pool, &mut host, &mut self.effects);
        let (mut now, mut is_behind) = (engine.now(), false);
        loop {
            if let Some(reason) = self.perform() {
                return reason;
            }
            let deadline = self.conversation.next_deadline();
            let deadline = deadline.map(|at| Instant::from_std(engine.instant_of(at)));
            let input = self.connection.next(commands, deadline).await;
            if let Some((tag, is_well)) = ended(&input) {
                self.workers.streams.end(tag, is_well).await;
            }
            let mut host = WorkerHost::new(self.workers, self.connection.pid);
            // What has come together has come at one time.
            if !is_behind {
                now = engine.now();
            }
            is_behind = matches!(&input, Input::Message { is_last: false, .. });
            self.conversation
                .handle(now, input, &mut host, &mut self.effects);
        }
    }

    /// Performs what the conversation wants done; why it is over, if it is. A message that cannot
    /// be encoded ends it.
    fn perform(&mut self) -> Option<WorkerExitReason> {
        let mut over = None;
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Send(message) => {
                    if let (None, Err(error)) = (&over, self.connection.send(&message)) {
                        over = Some(unencodable(&error));
                    }
                }
                Effect::Interrupt => self.connection.interrupt(),
                Effect::Show(task, what) => show(self.workers, &task, what),
                Effect::TaskSucceeded => self.workers.task_succeeded(self.pool),
                Effect::End(reason) => over = over.or(Some(reason)),
            }
        }
        over
    }

    /// The worker goes, with what it ran and what it kept.
    async fn end(mut self, reason: &WorkerExitReason, mut commands: UnboundedReceiver<Input>) {
        if *reason == WorkerExitReason::Died {
            self.connection.finish(limits::KILL_GRACE_MS).await;
        }
        self.workers.forget(self.worker);
        let is_client = self.conversation.is_client();
        self.close(reason);
        commands.close();
        while let Some(command) = commands.recv().await {
            if let Input::Begin(begun) = command {
                self.workers.lose(&begun);
            }
        }
        let is_dismissed = *reason == WorkerExitReason::Dismissed;
        if is_dismissed {
            // A worker that cannot receive it is killed.
            let _ = self.connection.send(&last_message(self.workers, is_client));
        }
        let grace_ms = if is_dismissed {
            limits::KILL_GRACE_MS
        } else {
            0
        };
        self.connection.finish(grace_ms).await;
    }

    /// Tells the engine what becomes of the worker's tasks.
    fn close(&mut self, reason: &WorkerExitReason) {
        let gone = Gone {
            how: self.connection.end_in_words(),
            last_lines: self.connection.last_lines(),
        };
        let mut host = WorkerHost::new(self.workers, self.connection.pid);
        self.conversation
            .close(reason, &gone, &mut host, &mut self.effects);
        self.perform();
        let mut core = self.workers.engine.lock();
        core.worker_pids.remove(&self.worker);
    }
}

/// The tag of the task that ends with that, and whether it ends well.
fn ended(input: &Input) -> Option<(u32, bool)> {
    match input {
        Input::Message { message, .. } => match message.kind {
            Some(Kind::Exit(_)) => Some((message.tag, true)),
            Some(Kind::Error(_)) => Some((message.tag, false)),
            _ => None,
        },
        _ => None,
    }
}

/// Ends a worker; the client of a session receives the failures that nobody asked for.
fn last_message(workers: &Workers, is_client: bool) -> EngineMessage {
    let core = workers.engine.lock();
    let failures = match &core.ending {
        Some(ending) if is_client => shutdown(&ending.failures),
        _ => shutdown(&[]),
    };
    EngineMessage::connection(failures)
}

fn unencodable(error: &EncodeError) -> WorkerExitReason {
    WorkerExitReason::Breach(format!(
        "the message to send to it cannot be encoded: {error}"
    ))
}

/// People see something of a task.
fn show(workers: &Workers, task: &Label, what: Show) {
    let engine = &workers.engine;
    match what {
        Show::ErrorLines(lines) => engine.observer.error_output(Some(task), &lines),
        Show::Info(message) => {
            let line = format!("{message}\n");
            engine.observer.error_output(Some(task), line.as_bytes());
        }
        Show::Warning(message) => engine.warn(Some(task), &message),
        Show::Log(stream, bytes) => engine.lock().log(task, stream, &bytes),
    }
}
