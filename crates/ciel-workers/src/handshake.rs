//! The first message of a worker: a hello that fits, or the engine refuses it.
//!
//! It does not know what happens to a worker that is refused. Read next: `conversation`, which
//! begins with an accepted hello.

use ciel_model::FailureKind;
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{Hello, Refusal, WorkerMessage};
use ciel_protocol::{WireMessage, limits as protocol};

/// Why a process is no worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfit {
    /// The kind of failure of tasks that wanted it.
    pub kind: FailureKind,
    /// What it did, in words that follow its name.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What to send to it, if it speaks the protocol.
    pub refusal: Option<Refusal>,
}

impl Unfit {
    fn new(kind: FailureKind, message: impl Into<String>) -> Unfit {
        Unfit {
            kind,
            message: message.into(),
            hint: None,
            refusal: None,
        }
    }

    /// It sent bytes that are no message.
    pub fn invalid(error: &str) -> Unfit {
        Unfit::new(FailureKind::Refused, format!("sent invalid data: {error}"))
    }

    /// It did not send all of its hello within that many milliseconds.
    pub fn late(limit_ms: u64) -> Unfit {
        let seconds = limit_ms as f64 / 1000.0;
        let message = format!("did not send hello within {seconds} s");
        Unfit::new(FailureKind::WorkerLost, message)
    }
}

/// The hello with which a worker of that executor begins.
///
/// # Errors
/// Why the process is no worker.
pub fn accept(executor: &str, message: WorkerMessage) -> Result<Hello, Unfit> {
    let name = message.kind_name().unwrap_or_default();
    let Some(Kind::Hello(hello)) = message.kind else {
        let message = format!("began with `{name}` instead of `hello`");
        return Err(Unfit::new(FailureKind::Refused, message));
    };
    match refusal(executor, &hello) {
        None => Ok(hello),
        Some(refusal) => Err(Unfit {
            hint: Some(refusal.hint.clone()),
            refusal: Some(refusal.clone()),
            ..Unfit::new(FailureKind::Refused, refusal.reason)
        }),
    }
}

/// Why that hello is not accepted, if so.
fn refusal(executor: &str, hello: &Hello) -> Option<Refusal> {
    let (own, theirs) = (protocol::PROTOCOL, hello.protocol);
    let (reason, hint) = if theirs != own {
        let reason = format!("speaks protocol {theirs}, this engine speaks {own}");
        let hint = "install the executor that came with this ciel".to_string();
        (reason, hint)
    } else if hello.executor != executor {
        let named = &hello.executor;
        let reason = format!("identifies itself as {named:?} instead of {executor:?}");
        (reason, "the name in hello is that of the file".to_string())
    } else {
        return None;
    };
    Some(Refusal {
        reason,
        hint,
        protocol: own,
    })
}
