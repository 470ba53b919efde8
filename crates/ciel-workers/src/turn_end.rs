//! The messages that end a task's turn: exit, tail-spawn, block.
//!
//! It does not know what the engine makes of them. Read next: `start`, for strands that continue.

use std::sync::Arc;

use ciel_engine::{Action, Kept, Reply};
use ciel_graph::{Output, Until, Wait};
use ciel_model::{Audit, Digest, FileRead, Handle, Keeping, Refused, Value};
use ciel_protocol::wire::block_on::Continuation as Persistence;
use ciel_protocol::wire::{self, Reference, SavedContinuation};

use crate::begun;
use crate::files::{Opened, Purpose};
use crate::host::Failed;
use crate::io::Effect;
use crate::objects::action_key;
use crate::start::{pack, parked_max};
use crate::task::WorkerTask;
use crate::turn::{Outcome, Turn, TurnEnd};
use crate::values::value;

/// The task ends as it should.
pub(crate) fn exit(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    message: wire::Exit,
) -> Failed<Outcome> {
    begun::check_end(task)?;
    task.check_mapped(turn.host)?;
    let count = task.assignment.descriptor.outputs;
    let mut outputs: Vec<Option<Output>> = (0..count).map(|_| None).collect();
    for given in message.outputs {
        let index = given.output;
        let once = task.attempt.give(index);
        once.map_err(|error| task.refuse(Refused::new(error.to_string())))?;
        outputs[index as usize] = Some(Output::Value(value(turn, task, given.value, false)?));
    }
    for (index, value) in std::mem::take(&mut task.files.held) {
        outputs[index as usize] = Some(Output::Value(value));
    }
    for opened in std::mem::take(&mut task.files.opened).into_values() {
        if let Some((index, output)) = opened_output(turn, task, opened)? {
            outputs[index as usize] = Some(output);
        }
    }
    let published = |output: Option<Output>| output.unwrap_or(Output::Published);
    let outputs: Vec<Output> = outputs.into_iter().map(published).collect();
    let audit = audit(task, message.audit)?;
    let assignment = &task.assignment;
    if assignment.descriptor.keeping != Keeping::Never {
        // What it has asked may be answered otherwise.
        match !task.has_observed && assignment.streams.is_empty() {
            true => turn.host.keep(assignment, &outputs, audit.as_deref()),
            false => turn.host.leave(assignment),
        }
    }
    let audit = with_printed(turn, task, audit);
    turn.effects.push(Effect::TaskSucceeded);
    Ok(turn.end(task, Action::Finish(outputs), audit))
}

/// The same with the digest of what the task has printed, if that is compared.
fn with_printed(
    turn: &mut Turn<'_>,
    task: &WorkerTask,
    audit: Option<Arc<Audit>>,
) -> Option<Arc<Audit>> {
    let assignment = &task.assignment;
    let printed = match assignment.descriptor.purity.is_pure() {
        true => turn.host.printed(assignment),
        false => None,
    };
    if printed.is_none() {
        return audit;
    }
    let audit = audit.map_or_else(Audit::default, Arc::unwrap_or_clone);
    Some(Arc::new(Audit { printed, ..audit }))
}

/// What an output is that was opened and not committed; none if it is no output, or was given.
fn opened_output(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    opened: Opened,
) -> Failed<Option<(u32, Output)>> {
    let (index, path) = match opened.purpose {
        Purpose::Object => return Ok(None),
        Purpose::Output(index) | Purpose::Stream(index)
            if task.attempt.may_give(index).is_err() =>
        {
            return Ok(None);
        }
        Purpose::Output(index) => (index, opened.path),
        Purpose::Stream(index) => match task.files.end_stream(turn.host, task.label(), index)? {
            Some(path) => (index, path),
            None => return Ok(Some((index, Output::Passed))),
        },
    };
    let name = task.files.fresh_name();
    let content = turn.host.adopt(task.label(), name, &path, false)?;
    let value = Value {
        form: opened.form,
        content,
        references: Vec::new(),
    };
    Ok(Some((index, Output::Value(value))))
}

/// What the worker has seen the task do, if it watched it.
fn audit(task: &WorkerTask, audit: Option<wire::Audit>) -> Failed<Option<Arc<Audit>>> {
    let Some(audit) = audit else {
        return Ok(None);
    };
    if audit.effects.is_empty() && audit.read.is_empty() {
        return Ok(Some(Audit::shared_empty()));
    }
    let read = audit.read.into_iter().map(|file| {
        let digest = Digest::read(&file.digest).ok_or_else(|| {
            let path = &file.path;
            Refused::new(format!("it read {path}, and sent no digest of that"))
                .hint("the digest of a file is BLAKE3, in 32 bytes")
        })?;
        Ok(FileRead {
            path: file.path.into(),
            length: file.length,
            digest,
        })
    });
    let read: Result<Box<[FileRead]>, Refused> = read.collect();
    let audit = Audit {
        effects: audit.effects.into_iter().map(Into::into).collect(),
        read: read.map_err(|refused| task.refuse(refused))?,
        printed: None,
    };
    Ok(Some(Arc::new(audit)))
}

/// The task delegates its outputs to a new one.
pub(crate) fn tail_spawn(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    message: wire::TailSpawn,
) -> Failed<Outcome> {
    begun::check_end(task)?;
    if task.reads_streams() {
        let refused = Refused::new("it handed its outputs on while it took an input as a stream");
        return Err(task.refuse(refused.hint("return the value, or take the input whole")));
    }
    if task.attempt.has_given() {
        let message = "it handed its outputs on after it had published one of them";
        return Err(task.refuse(Refused::new(message)));
    }
    task.reach(message.after)?;
    let asked = message.task.unwrap_or_default();
    let successor = turn
        .descriptor(&asked)
        .map_err(|refused| task.refuse(refused))?;
    let audit = audit(task, message.audit)?;
    turn.effects.push(Effect::TaskSucceeded);
    Ok(turn.end(task, Action::TailSpawn(successor), audit))
}

/// The task waits.
pub(crate) fn block_on(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    message: wire::BlockOn,
) -> Failed<Outcome> {
    if !matches!(message.continuation, Some(Persistence::Parked(_))) {
        begun::check_end(task)?;
    }
    let wait = wait_of(turn, task, &message)?;
    task.has_observed |= wait.is_timely();
    task.reach(message.after)?;
    let on: Vec<Handle> = message.references.into_iter().map(Handle).collect();
    let released = message.released.into_iter().map(Handle);
    turn.host
        .tell(Vec::from_iter(task.attempt.release(released.collect())));
    task.forget_watches();
    match message.continuation {
        Some(Persistence::Parked(_)) => park(turn, task, on, wait),
        Some(Persistence::Saved(saved)) => save(turn, task, on, wait, saved),
        Some(Persistence::Replay(_)) => {
            let is_resolved = |handle: &Handle| task.resolved.contains(handle);
            if !wait.is_timely() && on.iter().all(is_resolved) {
                let refused = Refused::new("it blocked on references that are already resolved")
                    .hint("use the results in `start.replay` instead of blocking");
                return Err(task.refuse(refused));
            }
            block(turn, task, (on, wait), Kept::Facts, TurnEnd::Gone)
        }
        None => Err(task.refuse(Refused::new("it blocked without a continuation"))),
    }
}

fn wait_of(turn: &Turn<'_>, task: &WorkerTask, message: &wire::BlockOn) -> Failed<Wait> {
    if message.timeout_ms.is_some() && !turn.features.timeouts {
        let refused =
            Refused::new("it set a timeout, but its worker and this engine did not agree to")
                .hint("a worker that sets timeouts names the feature \"timeouts\" in its hello");
        return Err(task.refuse(refused));
    }
    let until = match message.wait() {
        wire::Wait::All => Until::All,
        wire::Wait::First => Until::First,
        wire::Wait::Rest => Until::Rest,
        wire::Wait::AllAndLater => Until::AllAndLater,
    };
    if until == Until::AllAndLater && !turn.features.later {
        let refused = Refused::new(
            "it asked for values of later handles, but its worker and this engine did not agree to",
        );
        let hint = "a worker that does so names the feature \"later\" in its hello";
        return Err(task.refuse(refused.hint(hint)));
    }
    if until == Until::Rest && !message.references.is_empty() {
        let message = "it waited for the rest of a list, and listed references again";
        return Err(task.refuse(Refused::new(message)));
    }
    Ok(Wait {
        until,
        at: action_key(message.after, message.part),
        limit_us: message.timeout_ms.map(|limit| limit.saturating_mul(1000)),
    })
}

/// The task waits for that. If its turn is over thereby, it ends as `end`.
fn block(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    (on, wait): (Vec<Handle>, Wait),
    kept: Kept,
    end: TurnEnd,
) -> Failed<Outcome> {
    let blocked = task.attempt.block(on, wait, kept);
    let reply = turn.ask(blocked.event(None));
    // If it was cancelled, nothing has taken over its slot.
    task.begun &= reply == Reply::Stopped;
    Ok(match reply {
        Reply::Continue { answers, ended } => {
            Outcome::Resumed(task.resume(turn.host, answers, ended)?)
        }
        Reply::Stopped if end == TurnEnd::Parked => {
            Outcome::Over(TurnEnd::Unwanted, Reply::Stopped)
        }
        reply => Outcome::Over(end, reply),
    })
}

/// A worker that cannot keep the strand after all lets it be replayed.
fn park(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    on: Vec<Handle>,
    wait: Wait,
) -> Failed<Outcome> {
    if !turn.features.parked {
        let refused = Refused::new("it parked, but its worker and this engine did not agree to")
            .hint("a worker that parks names the feature \"parked\" in its hello");
        return Err(task.refuse(refused));
    }
    let most = turn.pool.parked_strands_max;
    if turn.parked >= most as usize {
        let message = format!("it parked where its worker keeps {most} strands at most");
        return Err(task.refuse(Refused::new(message)));
    }
    if turn.parked >= parked_max(most) {
        return block(turn, task, (on, wait), Kept::Facts, TurnEnd::Unwanted);
    }
    block(turn, task, (on, wait), Kept::All, TurnEnd::Parked)
}

/// The strand continues from bytes; of its table it keeps what the bytes need and what it waits
/// for.
fn save(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    on: Vec<Handle>,
    wait: Wait,
    saved: wire::Saved,
) -> Failed<Outcome> {
    let kept: Vec<Handle> = saved.references.iter().copied().map(Handle).collect();
    let count = kept.len() as u32;
    let future = |index: u32| Reference {
        handle: ciel_protocol::limits::DELIVERED_HANDLE_MIN + index,
        state: Some(wire::reference::State::Future(wire::Future {})),
    };
    let saved = SavedContinuation {
        data: saved.data,
        runtime: saved.runtime,
        code: saved.code,
        references: (0..count).map(future).collect(),
        timed_out: false,
    };
    let state = pack(saved).map_err(|error| {
        let message = format!("it saved more than can be kept: {error}");
        task.refuse(Refused::new(message))
    })?;
    let kept = Kept::State(state, kept);
    block(turn, task, (on, wait), kept, TurnEnd::Gone)
}
