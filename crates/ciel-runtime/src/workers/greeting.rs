//! The beginning of a worker: its process is started and says hello, or it is no worker.
//!
//! An executor that cannot be had fails the tasks that want it, and is not tried for ever. Read
//! next: `conversation`, for what comes after hello.

use std::rc::Rc;
use std::time::Duration;

use ciel_engine::Attempt;
use ciel_model::{FailureKind, Pool, limits};
use ciel_node::WorkerKey;
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{EngineMessage, Hello, Refusal};
use ciel_protocol::{WireMessage, limits as protocol};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::peer::{Heard, Peer, ProcessEnd};
use super::{Broken, Word, Workers};
use crate::executors::worker::WorkerStart;
use crate::refused::Refused;

/// In place of a worker that cannot be had: fails the tasks that are given to it. If another start
/// may be tried, only the first, and that one is begun again if the process died.
pub(super) async fn refuse_tasks(
    workers: &Workers,
    worker: WorkerKey,
    why: &Broken,
    again: bool,
    mut words: UnboundedReceiver<Word>,
) {
    let engine = &workers.engine;
    let ready = ciel_engine::Event::WorkerReady {
        worker,
        prefetches: false,
    };
    engine.with(|core, now| core.tell(now, ready));
    while let Some(word) = words.recv().await {
        match word {
            Word::Begin(begun) => {
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
                        core.tell(now, ciel_engine::Event::WorkerGone { worker });
                    }
                    core.tell(now, attempt.left());
                });
                if again {
                    break;
                }
            }
            Word::Dismiss => break,
            Word::Stop(_) | Word::Told(..) | Word::Drop(_) => {}
        }
    }
    workers.forget(worker);
}

/// A worker that has said hello as it should.
pub(super) struct Greeted {
    pub(super) peer: Peer,
    pub(super) hello: Hello,
    /// It is the client of the session.
    pub(super) is_client: bool,
}

/// A worker of that pool, once it has said hello.
///
/// # Errors
/// Why it is no worker; none if the engine has no more use for one.
pub(super) async fn greeted(
    workers: &Rc<Workers>,
    worker: WorkerKey,
    pool: &Pool,
    words: &mut UnboundedReceiver<Word>,
) -> Result<Greeted, Option<Broken>> {
    let start = workers.engine.registry.worker(pool);
    let command = match start.map_err(refused)? {
        WorkerStart::Client => return client(workers, worker, pool, words).await,
        WorkerStart::Process(command) => command,
    };
    let name = &command.title;
    let mut peer = Peer::start(workers, worker, &command).map_err(|error| Broken {
        kind: FailureKind::WorkerLost,
        message: format!("the executor {name} could not be started: {error}"),
        excerpt: String::new(),
        hint: None,
    })?;
    match greet(&mut peer, &pool.executor, words).await {
        Ok(hello) => Ok(Greeted {
            peer,
            hello,
            is_client: false,
        }),
        Err(Ungreeted::Dismissed) => {
            peer.finish(0).await;
            Err(None)
        }
        Err(why) => {
            peer.finish(limits::KILL_GRACE_MS).await;
            let mut told = why_not(&peer, why);
            told.message = format!("the executor {name} {}", told.message);
            told.excerpt = peer.last_lines();
            Err(Some(told))
        }
    }
}

/// No worker of that pool can be had.
fn refused(why: Refused) -> Option<Broken> {
    Some(Broken {
        kind: FailureKind::Refused,
        message: why.message,
        excerpt: String::new(),
        hint: why.hint,
    })
}

/// The client of a session, who is there already.
async fn client(
    workers: &Rc<Workers>,
    worker: WorkerKey,
    pool: &Pool,
    words: &mut UnboundedReceiver<Word>,
) -> Result<Greeted, Option<Broken>> {
    let gone = |message: String| Broken {
        kind: FailureKind::WorkerLost,
        message: format!("the client of the session {message}"),
        excerpt: String::new(),
        hint: None,
    };
    let socket = workers.engine.take_session();
    let socket = socket.ok_or_else(|| gone("is gone".to_string()))?;
    let mut peer = Peer::connected(workers, worker, &pool.executor, socket)
        .map_err(|error| gone(format!("cannot be used: {error}")))?;
    match greet(&mut peer, &pool.executor, words).await {
        Ok(hello) => Ok(Greeted {
            peer,
            hello,
            is_client: true,
        }),
        Err(Ungreeted::Dismissed) => Err(None),
        Err(why) => Err(Some(gone(why_not(&peer, why).message))),
    }
}

/// Why a process that has ended was no worker, in words that follow its name.
fn why_not(peer: &Peer, why: Ungreeted) -> Broken {
    let (kind, message, hint) = match (why, &peer.ended) {
        (
            Ungreeted::Unfit {
                kind,
                message,
                hint,
            },
            _,
        ) => (kind, message, hint),
        (_, Some(ProcessEnd::Refused(refusal))) => {
            let hint = refusal.hint().map(str::to_string);
            (FailureKind::Refused, peer.end_in_words(), hint)
        }
        _ => {
            let message = format!("{} before it sent hello", peer.end_in_words());
            (FailureKind::WorkerLost, message, None)
        }
    };
    Broken {
        kind,
        message,
        excerpt: String::new(),
        hint,
    }
}

/// Why a process is no worker.
enum Ungreeted {
    /// The engine has no more use for one.
    Dismissed,
    /// It ended.
    Ended,
    /// It said something else, or nothing.
    Unfit {
        kind: FailureKind,
        message: String,
        hint: Option<String>,
    },
}

fn unfit(kind: FailureKind, message: impl Into<String>) -> Ungreeted {
    Ungreeted::Unfit {
        kind,
        message: message.into(),
        hint: None,
    }
}

async fn greet(
    peer: &mut Peer,
    executor: &str,
    words: &mut UnboundedReceiver<Word>,
) -> Result<Hello, Ungreeted> {
    let deadline = Instant::now() + Duration::from_millis(limits::HELLO_MS_MAX);
    let message = loop {
        match peer.hear(words, Some(deadline)).await {
            Heard::Message(message) => break message,
            Heard::Garbage(error) => {
                return Err(unfit(
                    FailureKind::Refused,
                    format!("sent invalid data: {error}"),
                ));
            }
            Heard::Closed => return Err(Ungreeted::Ended),
            Heard::Word(Word::Dismiss) => return Err(Ungreeted::Dismissed),
            Heard::Expired => {
                let seconds = limits::HELLO_MS_MAX / 1000;
                let message = format!("did not send hello within {seconds} s");
                return Err(unfit(FailureKind::WorkerLost, message));
            }
            Heard::Word(_) => {}
        }
    };
    let Some(Kind::Hello(hello)) = message.kind else {
        let kind = message.kind_name().unwrap_or_default();
        let message = format!("began with `{kind}` instead of `hello`");
        return Err(unfit(FailureKind::Refused, message));
    };
    match refusal(executor, &hello) {
        None => Ok(hello),
        Some(refusal) => {
            let why = Ungreeted::Unfit {
                kind: FailureKind::Refused,
                message: refusal.reason.clone(),
                hint: Some(refusal.hint.clone()),
            };
            // A short sentence is never too long for a message.
            let _ = peer.say(&EngineMessage::connection(refusal));
            Err(why)
        }
    }
}

/// Why that hello is not accepted, if so.
fn refusal(executor: &str, hello: &Hello) -> Option<Refusal> {
    let (own, theirs) = (protocol::PROTOCOL, hello.protocol);
    let (reason, hint) = if theirs != own {
        let reason = format!("speaks protocol {theirs}, this engine speaks {own}");
        (
            reason,
            "install the executor that came with this ciel".to_string(),
        )
    } else if hello.executor != executor {
        let reason = format!(
            "identifies itself as {:?} instead of {executor:?}",
            hello.executor
        );
        (reason, "the name in hello is that of the file".to_string())
    } else {
        return None;
    };
    let protocol = own;
    Some(Refusal {
        reason,
        hint,
        protocol,
    })
}
