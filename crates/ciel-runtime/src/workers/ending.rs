//! The words that end a task's turn: exit, failure, tail-spawn, block.
//!
//! A worker that is used up retires from the node's pool before its task leaves its place, so that
//! nothing new is given to it. It does not know the socket. Read next: `conversation`.

use ciel_engine::{Caller, Event as Heard, Reply};
use ciel_graph::{Continuation, Event, Output, Until, Wait};
use ciel_model::{Content, Failure, Form, Handle, Pool, Value};
use ciel_node::{AttemptKey, WorkerKey};
use ciel_protocol::wire::block_on::Continuation as Persistence;
use ciel_protocol::wire::{self as words, Keep, PoolPolicy, Reference, SavedContinuation};

use super::definitions::Received;
use super::features::Features;
use super::held::{Failed, Held, Purpose};
use super::requests::{Said, task, value};
use super::start::{pack, parked_max};
use super::{Workers, attempt_of, wire};
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
            core.tell(now, Heard::WorkerRetired { worker });
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
    fn end(&self, held: &Held, event: Event) -> Said {
        let run = attempt_of(&held.assignment);
        Said::Over(Over::Gone, self.turn_ended(run, Some(event)))
    }

    /// A task of whose end the graph knows already leaves, unless its worker has gone on.
    pub(super) fn leave(&self, held: &Held) -> Reply {
        match self.next {
            Some(_) => Reply::FollowerStopped,
            None => self.turn_ended(held.seat(), None),
        }
    }

    fn turn_ended(&self, run: AttemptKey, end: Option<Event>) -> Reply {
        self.workers.engine.with(|core, now| {
            self.retire(core, now);
            core.ask(now, Heard::TurnEnded { run, end }, self.caller())
        })
    }
}

/// Tells the graph that a task failed; its place is freed with its last word.
pub(super) fn fail(workers: &Workers, held: &Held, failure: Failure) {
    let AttemptKey { task, attempt } = attempt_of(&held.assignment);
    workers.engine.with(|core, now| {
        core.tell(
            now,
            Event::TaskFailed {
                task,
                attempt,
                failure,
            },
        );
    });
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
        let twice =
            held.given.contains(&index) || outputs.get(index as usize).is_some_and(Option::is_some);
        if index >= count || twice {
            return Err(held.refuse(misgiven(index, count)));
        }
        outputs[index as usize] = Some(Output::Value(value(seat, held, given.value, false)?));
    }
    for (purpose, path) in std::mem::take(&mut held.files.opened).into_values() {
        if let Purpose::Output(index) = purpose
            && outputs[index as usize].is_none()
        {
            let name = held.files.fresh_name();
            let content = objects::adopt(&seat.workers.engine, name, &path);
            let content = content.map_err(|trouble| held.trouble(&seat.workers.engine, trouble))?;
            outputs[index as usize] = Some(whole_file(content));
        }
    }
    let published = |output: Option<Output>| output.unwrap_or(Output::Published);
    let run = attempt_of(&held.assignment);
    let event = Event::TaskFinished {
        task: run.task,
        attempt: run.attempt,
        outputs: outputs.into_iter().map(published).collect(),
        printed: held.printed,
    };
    seat.workers.task_ended_well(seat.serves);
    Ok(seat.end(held, event))
}

fn misgiven(index: u32, count: u32) -> Refused {
    match index >= count {
        true => Refused::new(format!("it gave output {index}, but has {count}")),
        false => Refused::new(format!("it gave output {index} twice")),
    }
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
    if !held.given.is_empty() {
        let message = "it handed its outputs on after it had published one of them";
        return Err(held.refuse(Refused::new(message)));
    }
    held.reach(word.after)?;
    let asked = word.task.unwrap_or_default();
    let descriptor = task(seat, &asked).map_err(|refused| held.refuse(refused))?;
    let run = attempt_of(&held.assignment);
    let event = Event::TaskTailSpawned {
        task: run.task,
        attempt: run.attempt,
        descriptor,
        after: word.after,
    };
    seat.workers.task_ended_well(seat.serves);
    Ok(seat.end(held, event))
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
            block(seat, held, None, on, wait, Continuation::Replay, Over::Gone)
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
    kept: Option<Vec<Handle>>,
    on: Vec<Handle>,
    wait: Wait,
    continuation: Continuation,
    over: Over,
) -> Failed<Said> {
    let AttemptKey { task, attempt } = attempt_of(&held.assignment);
    let engine = &seat.workers.engine;
    let reply = engine.with(|core, now| {
        seat.retire(core, now);
        let event = Event::TaskBlocked {
            task,
            attempt,
            kept,
            on,
            wait,
            continuation,
            checkpoint: None,
        };
        core.ask(now, event, seat.caller())
    });
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
        return block(seat, held, None, on, wait, Continuation::Replay, over);
    }
    block(seat, held, None, on, wait, Continuation::Live, Over::Parked)
}

/// The strand goes on from bytes; of its table it keeps what the bytes need and what it waits for.
fn save(
    seat: &Seat<'_>,
    held: &mut Held,
    on: Vec<Handle>,
    wait: Wait,
    saved: words::Saved,
) -> Failed<Said> {
    let mut kept: Vec<Handle> = saved.references.iter().copied().map(Handle).collect();
    let count = kept.len() as u32;
    let mut waits = Vec::with_capacity(on.len());
    for handle in on {
        let place = kept.iter().position(|other| *other == handle);
        let place_of = place.unwrap_or(kept.len()) as u32;
        waits.push(Handle(Handle::DELIVERED_MIN + place_of));
        if place.is_none() {
            kept.push(handle);
        }
    }
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
    let packed = pack(saved, held.printed);
    let bytes = packed.map_err(|error| {
        held.refuse(Refused::new(format!(
            "it saved more than can be kept: {error}"
        )))
    })?;
    let continuation = Continuation::Saved(bytes.into());
    let over = Over::Gone;
    block(seat, held, Some(kept), waits, wait, continuation, over)
}
