//! The words that end a task's turn: exit, failure, tail-spawn, block.
//!
//! A worker that is used up retires from the node's pool before its task leaves its place, so that
//! nothing new is given to it. It does not know the socket. Read next: `conversation`.

use ciel_engine::{Action, Caller, Event, Kept, Reply};
use ciel_graph::{Output, Until, Wait};
use ciel_model::{Content, Failure, Form, Handle, Pool, Value};
use ciel_node::{AttemptKey, WorkerKey};
use ciel_protocol::wire::block_on::Continuation as Persistence;
use ciel_protocol::wire::{self as words, Keep, PoolPolicy, Reference, SavedContinuation};

use super::definitions::Received;
use super::features::Features;
use super::held::{Failed, Held, Purpose};
use super::requests::{Said, task, value};
use super::start::{pack, parked_max};
use super::{Workers, wire};
use crate::core::Core;
use crate::objects;
use crate::refused::Refused;

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Over {
    /// The worker keeps the strand.
    Parked,
    /// The worker is rid of the task.
    Gone,
    /// The worker thinks that it keeps the strand, and is to forget it.
    Unwanted,
}

/// Where a task runs.
pub(super) struct Seat<'a> {
    pub(super) workers: &'a Workers,
    pub(super) worker: WorkerKey,
    pub(super) serves: &'a Pool,
    pub(super) pool: &'a PoolPolicy,
    pub(super) features: Features,
    /// What the worker has declared.
    pub(super) definitions: &'a Received,
    /// Strands that are parked there.
    pub(super) parked: usize,
    /// The worker gets no new task.
    pub(super) used_up: bool,
    /// With what the worker goes on by itself.
    pub(super) next: Option<AttemptKey>,
}

impl Seat<'_> {
    fn retire_as(&mut self, keep: Keep) {
        self.used_up |= match keep {
            Keep::Unspecified => !self.pool.reuse,
            Keep::Process => false,
            Keep::End => true,
        };
    }

    /// The pool gives nothing new to a worker that is used up.
    fn retire(&self, core: &mut Core, now: u64) {
        if self.used_up {
            let worker = self.worker;
            core.tell(now, Event::WorkerRetired { worker });
        }
    }

    /// In whose name the worker speaks.
    fn caller(&self) -> Caller {
        Caller::Worker {
            worker: self.worker,
            follows: self.next,
        }
    }

    /// Tells the end of a task, which frees its place.
    fn end(&self, held: &mut Held, end: Action) -> Said {
        let event = held.attempt.act(end).event;
        Said::Over(Over::Gone, self.ask(event))
    }

    /// A task of whose end the graph knows already leaves, unless its worker has gone on.
    pub(super) fn leave(&self, held: &Held) -> Reply {
        match self.next {
            Some(_) => Reply::FollowerStopped,
            None => {
                let (attempt, end) = (held.seat(), None);
                self.ask(Event::TurnEnded { attempt, end })
            }
        }
    }

    fn ask(&self, event: Event) -> Reply {
        self.workers.engine.with(|core, now| {
            self.retire(core, now);
            core.ask(now, event, self.caller())
        })
    }
}

/// Tells the graph that a task failed; its place is freed with its last word.
pub(super) fn fail(workers: &Workers, held: &Held, failure: Failure) {
    let failed = held.attempt.failed(failure);
    workers.engine.with(|core, now| core.tell(now, failed));
}

/// What becomes of the process when a task's turn has ended with `kind`.
pub(super) fn used_up_by(seat: &mut Seat<'_>, kind: &words::worker_message::Kind) {
    use words::worker_message::Kind;
    match kind {
        Kind::Exit(word) => seat.retire_as(word.keep()),
        Kind::Error(_) | Kind::TailSpawn(_) | Kind::BlockOn(_) => {
            seat.retire_as(Keep::Unspecified);
        }
        _ => {}
    }
}

/// Whether a word ends a turn.
pub(super) fn is_last(kind: &words::worker_message::Kind) -> bool {
    use words::worker_message::Kind;
    matches!(
        kind,
        Kind::Exit(_) | Kind::Error(_) | Kind::TailSpawn(_) | Kind::BlockOn(_)
    )
}

/// Whether a word means that the worker keeps the strand.
pub(super) fn parks(kind: &words::worker_message::Kind) -> bool {
    match kind {
        words::worker_message::Kind::BlockOn(word) => {
            matches!(word.continuation, Some(Persistence::Parked(_)))
        }
        _ => false,
    }
}

/// The task ends well.
pub(super) fn exit(seat: &Seat<'_>, held: &mut Held, word: words::Exit) -> Failed<Said> {
    let count = held.assignment.descriptor.outputs;
    let mut outputs: Vec<Option<Output>> = (0..count).map(|_| None).collect();
    for given in word.outputs {
        let index = given.output;
        let once = held.attempt.give(index);
        once.map_err(|error| held.refuse(Refused::new(error.to_string())))?;
        outputs[index as usize] = Some(Output::Value(value(seat, held, given.value, false)?));
    }
    for (purpose, path) in std::mem::take(&mut held.files.opened).into_values() {
        if let Purpose::Output(index) = purpose
            && held.attempt.may_give(index).is_ok()
        {
            let name = held.files.fresh_name();
            let content = objects::adopt(&seat.workers.engine, name, &path);
            let content = content.map_err(|trouble| held.trouble(&seat.workers.engine, trouble))?;
            outputs[index as usize] = Some(whole_file(content));
        }
    }
    let published = |output: Option<Output>| output.unwrap_or(Output::Published);
    let outputs = outputs.into_iter().map(published).collect();
    seat.workers.task_ended_well(seat.serves);
    Ok(seat.end(held, Action::Finish(outputs)))
}

fn whole_file(content: Content) -> Output {
    Output::Value(Value {
        form: Form::Bytes,
        content,
        references: Vec::new(),
    })
}

/// The task hands its outputs on.
pub(super) fn tail_spawn(seat: &Seat<'_>, held: &mut Held, word: words::TailSpawn) -> Failed<Said> {
    if held.attempt.has_given() {
        let message = "it handed its outputs on after it had published one of them";
        return Err(held.refuse(Refused::new(message)));
    }
    held.reach(word.after)?;
    let asked = word.task.unwrap_or_default();
    let descriptor = task(seat, &asked).map_err(|refused| held.refuse(refused))?;
    seat.workers.task_ended_well(seat.serves);
    Ok(seat.end(held, Action::TailSpawn(descriptor)))
}

/// The task waits.
pub(super) fn block_on(seat: &Seat<'_>, held: &mut Held, word: words::BlockOn) -> Failed<Said> {
    let wait = wait_of(seat, held, &word)?;
    held.reach(word.after)?;
    let on: Vec<Handle> = word.references.into_iter().map(Handle).collect();
    held.watches.clear();
    match word.continuation {
        Some(Persistence::Parked(_)) => park(seat, held, on, wait),
        Some(Persistence::Saved(saved)) => save(seat, held, on, wait, saved),
        Some(Persistence::Replay(_)) => {
            let is_told = |handle: &Handle| held.told.contains(handle);
            if !wait.is_timely() && on.iter().all(is_told) {
                let refused = Refused::new("it blocked on references that are already resolved")
                    .hint("use the results in `start.replay` instead of blocking");
                return Err(held.refuse(refused));
            }
            block(seat, held, on, wait, Kept::Facts, Over::Gone)
        }
        None => {
            let message = "it blocked without a continuation";
            Err(held.refuse(Refused::new(message)))
        }
    }
}

fn wait_of(seat: &Seat<'_>, held: &Held, word: &words::BlockOn) -> Failed<Wait> {
    if word.timeout_ms.is_some() && !seat.features.timeouts {
        let refused =
            Refused::new("it set a timeout, but its worker and this engine did not agree to")
                .hint("a worker that sets timeouts names the feature \"timeouts\" in its hello");
        return Err(held.refuse(refused));
    }
    let until = match word.wait() {
        words::Wait::All => Until::All,
        words::Wait::First => Until::First,
        words::Wait::Rest => Until::Rest,
    };
    if until == Until::Rest && !word.references.is_empty() {
        let message = "it waited for the rest of a list, and listed references again";
        return Err(held.refuse(Refused::new(message)));
    }
    Ok(Wait {
        until,
        at: wire::action_key(word.after, word.part),
        limit_us: word.timeout_ms.map(|limit| limit.saturating_mul(1000)),
    })
}

/// Tells that a task waits. If its turn is thereby over, it is so as `over` says.
fn block(
    seat: &Seat<'_>,
    held: &mut Held,
    on: Vec<Handle>,
    wait: Wait,
    kept: Kept,
    over: Over,
) -> Failed<Said> {
    let engine = &seat.workers.engine;
    let blocked = held.attempt.block(on, wait, kept);
    let reply = seat.ask(blocked.event(None));
    Ok(match reply {
        Reply::Continue { answers, ended } => Said::Resumed(held.resume(engine, answers, ended)?),
        Reply::Stopped if over == Over::Parked => Said::Over(Over::Unwanted, reply),
        reply => Said::Over(over, reply),
    })
}

/// A worker that cannot keep the strand after all lets it be replayed.
fn park(seat: &Seat<'_>, held: &mut Held, on: Vec<Handle>, wait: Wait) -> Failed<Said> {
    if !seat.features.parked {
        let refused = Refused::new("it parked, but its worker and this engine did not agree to")
            .hint("a worker that parks names the feature \"parked\" in its hello");
        return Err(held.refuse(refused));
    }
    if seat.parked >= seat.pool.parked_strands_max as usize {
        let most = seat.pool.parked_strands_max;
        let message = format!("it parked where its worker keeps {most} strands at most");
        return Err(held.refuse(Refused::new(message)));
    }
    if seat.parked >= parked_max(seat.pool.parked_strands_max) {
        let over = Over::Unwanted;
        return block(seat, held, on, wait, Kept::Facts, over);
    }
    block(seat, held, on, wait, Kept::All, Over::Parked)
}

/// The strand goes on from bytes; of its table it keeps what the bytes need and what it waits for.
fn save(
    seat: &Seat<'_>,
    held: &mut Held,
    on: Vec<Handle>,
    wait: Wait,
    saved: words::Saved,
) -> Failed<Said> {
    let kept: Vec<Handle> = saved.references.iter().copied().map(Handle).collect();
    let count = kept.len() as u32;
    let future = |index: u32| Reference {
        handle: ciel_protocol::limits::DELIVERED_HANDLE_MIN + index,
        state: Some(words::reference::State::Future(words::Future {})),
    };
    let saved = SavedContinuation {
        data: saved.data,
        runtime: saved.runtime,
        code: saved.code,
        references: (0..count).map(future).collect(),
        timed_out: false,
    };
    let packed = pack(saved);
    let state = packed.map_err(|error| {
        held.refuse(Refused::new(format!(
            "it saved more than can be kept: {error}"
        )))
    })?;
    block(seat, held, on, wait, Kept::State(state, kept), Over::Gone)
}
