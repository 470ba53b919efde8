//! The start of a worker: its process is started and sends hello, or it is no worker.
//!
//! An executor that cannot be started fails the tasks that want it, and is not tried for ever. Read
//! next: `drive`, for what comes after hello.

use std::rc::Rc;
use std::time::Duration;

use ciel_engine::{Attempt, Event};
use ciel_model::{FailureKind, Pool, Refused, limits};
use ciel_node::WorkerKey;
use ciel_protocol::wire::{EngineMessage, Hello};
use ciel_workers::{Input, Unfit, accept};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::connection::{Connection, ProcessEnd};
use super::{KILLED_STARTS_MAX, StartError, Workers};
use crate::error::hint_of_limit;
use crate::executors::worker::{WorkerCommand, WorkerStart};
use crate::for_tests::hello_ms_max;

/// In place of a worker that cannot be started: fails the tasks that are given to it. If another
/// start may be tried, only the first, and that one is retried if the process died.
pub(super) async fn refuse_tasks(
    workers: &Workers,
    worker: WorkerKey,
    why: &StartError,
    again: bool,
    mut commands: UnboundedReceiver<Input>,
) {
    let engine = &workers.engine;
    let ready = Event::WorkerReady {
        worker,
        prefetches: false,
        slots: 1,
    };
    engine.with(|core, now| core.tell(now, ready));
    while let Some(command) = commands.recv().await {
        match command {
            Input::Begin(begun) => {
                let assignment = begun.assignment;
                let attempt = Attempt::new(&assignment);
                let failure = why.failure(&assignment.label);
                // A process that died on its way may be none of the executor's fault.
                let lost = again && why.kind == FailureKind::WorkerLost;
                let event = match lost {
                    true => attempt.lost(failure),
                    false => attempt.failed(failure),
                };
                engine.with(|core, now| {
                    core.tell(now, event);
                    if again {
                        core.tell(now, Event::WorkerGone { worker });
                    }
                    core.tell(now, attempt.left());
                });
                if again {
                    break;
                }
            }
            Input::Dismiss => break,
            _ => {}
        }
    }
    workers.forget(worker);
}

/// A worker whose hello was accepted.
pub(super) struct Started {
    pub(super) connection: Connection,
    pub(super) hello: Hello,
    /// It is the client of the session.
    pub(super) is_client: bool,
}

/// A worker of that pool, once its hello was accepted.
///
/// # Errors
/// Why it is no worker; none if the engine has no more use for one.
pub(super) async fn started(
    workers: &Rc<Workers>,
    worker: WorkerKey,
    pool: &Pool,
    commands: &mut UnboundedReceiver<Input>,
) -> Result<Started, Option<StartError>> {
    let start = workers.engine.registry.worker(pool);
    let command = match start.map_err(refused)? {
        WorkerStart::Client => return client(workers, worker, pool, commands).await,
        WorkerStart::Process(command) => command,
    };
    loop {
        let before = workers.failed_starts(pool);
        match process(workers, worker, pool, &command, commands).await {
            Ok(started) => return Ok(started),
            Err(Unstarted::Dismissed) => return Err(None),
            Err(Unstarted::Failed(why)) => return Err(Some(why)),
            Err(Unstarted::Killed(why)) => {
                workers.start_failed(pool, before, KILLED_STARTS_MAX, &why);
                if let Some(why) = workers.given_up(pool) {
                    return Err(Some(why));
                }
            }
        }
    }
}

/// Why a process did not become a worker.
enum Unstarted {
    /// The engine has no more use for one.
    Dismissed,
    /// By its own fault.
    Failed(StartError),
    /// Something killed it, or it died with the spawner. No task has anything to do with that.
    Killed(StartError),
}

/// A process as a worker, once its hello was accepted.
async fn process(
    workers: &Rc<Workers>,
    worker: WorkerKey,
    pool: &Pool,
    command: &WorkerCommand,
    commands: &mut UnboundedReceiver<Input>,
) -> Result<Started, Unstarted> {
    let name = &command.title;
    let mut connection = Connection::start(workers, worker, command).map_err(|error| {
        Unstarted::Failed(StartError {
            kind: FailureKind::WorkerLost,
            message: format!("the executor {name} could not be started: {error}"),
            excerpt: String::new(),
            hint: hint_of_limit(&error),
        })
    })?;
    match handshake(&mut connection, &pool.executor, commands).await {
        Ok(hello) => Ok(Started {
            connection,
            hello,
            is_client: false,
        }),
        Err(NoWorker::Dismissed) => {
            connection.finish(0).await;
            Err(Unstarted::Dismissed)
        }
        Err(why) => {
            connection.finish(limits::KILL_GRACE_MS).await;
            let was_killed = matches!(why, NoWorker::Ended) && connection.was_killed();
            let mut error = why_not(&connection, why);
            error.message = format!("the executor {name} {}", error.message);
            error.excerpt = connection.last_lines();
            error.hint = error.hint.or_else(|| command.hint.map(str::to_string));
            Err(match was_killed {
                true => Unstarted::Killed(error),
                false => Unstarted::Failed(error),
            })
        }
    }
}

/// No worker of that pool can be started.
fn refused(why: Refused) -> Option<StartError> {
    Some(StartError {
        kind: FailureKind::Refused,
        message: why.message,
        excerpt: String::new(),
        hint: why.hint,
    })
}

/// The client of a session, which is connected already.
async fn client(
    workers: &Rc<Workers>,
    worker: WorkerKey,
    pool: &Pool,
    commands: &mut UnboundedReceiver<Input>,
) -> Result<Started, Option<StartError>> {
    let gone = |message: String| StartError {
        kind: FailureKind::WorkerLost,
        message: format!("the client of the session {message}"),
        excerpt: String::new(),
        hint: None,
    };
    let socket = workers.engine.take_session();
    let socket = socket.ok_or_else(|| gone("is gone".to_string()))?;
    let mut connection = Connection::connected(workers, worker, &pool.executor, socket)
        .map_err(|error| gone(format!("cannot be used: {error}")))?;
    match handshake(&mut connection, &pool.executor, commands).await {
        Ok(hello) => Ok(Started {
            connection,
            hello,
            is_client: true,
        }),
        Err(NoWorker::Dismissed) => Err(None),
        Err(why) => Err(Some(gone(why_not(&connection, why).message))),
    }
}

/// Why a process that has ended was no worker, in words that follow its name.
fn why_not(connection: &Connection, why: NoWorker) -> StartError {
    let (kind, message, hint) = match (why, &connection.ended) {
        (NoWorker::Unfit(unfit), _) => (unfit.kind, unfit.message, unfit.hint),
        (_, Some(ProcessEnd::Refused(refusal))) => {
            let hint = refusal.hint().map(str::to_string);
            (FailureKind::Refused, connection.end_in_words(), hint)
        }
        _ => {
            let message = format!("{} before it sent hello", connection.end_in_words());
            (FailureKind::WorkerLost, message, None)
        }
    };
    StartError {
        kind,
        message,
        excerpt: String::new(),
        hint,
    }
}

/// Why a process is no worker.
enum NoWorker {
    /// The engine has no more use for one.
    Dismissed,
    /// It ended.
    Ended,
    /// It sent something else, or nothing.
    Unfit(Box<Unfit>),
}

async fn handshake(
    connection: &mut Connection,
    executor: &str,
    commands: &mut UnboundedReceiver<Input>,
) -> Result<Hello, NoWorker> {
    let limit_ms = hello_ms_max();
    let deadline = Instant::now() + Duration::from_millis(limit_ms);
    let accepted = loop {
        match connection.next(commands, Some(deadline)).await {
            Input::Message { message, .. } => break accept(executor, *message),
            Input::Invalid(error) => break Err(Unfit::invalid(&error)),
            Input::Ticked => break Err(Unfit::late(limit_ms)),
            Input::Closed => return Err(NoWorker::Ended),
            Input::Dismiss => return Err(NoWorker::Dismissed),
            Input::Begin(_)
            | Input::Stop(_)
            | Input::Notify(..)
            | Input::DropParked { .. }
            | Input::Overdrawn(_) => {}
        }
    };
    accepted.map_err(|mut unfit| {
        if let Some(refusal) = unfit.refusal.take() {
            // A short sentence is never too long for a message.
            let _ = connection.send(&EngineMessage::connection(refusal));
        }
        NoWorker::Unfit(Box::new(unfit))
    })
}
