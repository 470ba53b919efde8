//! The words that end a task's turn: exit, failure, tail-spawn, block.
//!
//! A worker that is used up leaves the node's pool before its task leaves its place, so that
//! nothing else is given to it. It does not know the socket. Read next: `conversation`.

use ciel_graph::{Continuation, Event, Output, Step};
use ciel_model::{Content, Failure, Form, Handle, Value};
use ciel_node::{self as node, WorkerKey};
use ciel_protocol::wire::block_on::Continuation as Kept;
use ciel_protocol::wire::{
    self as words, Keep, PoolPolicy, Reference, Resume, SavedContinuation, Wait,
};

use super::held::{Failed, Held, Purpose};
use super::recording::{FIRST, First};
use super::start::{pack, parked_max};
use super::verbs::{Said, step, value};
use super::{Workers, run_of, wire};
use crate::core::{Answers, Core};
use crate::executors::Refused;
use crate::objects;

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
    pub(super) executor: &'a str,
    pub(super) pool: &'a PoolPolicy,
    /// Both sides know how to park.
    pub(super) parks: bool,
    /// Strands that are parked there.
    pub(super) parked: usize,
    /// The worker runs nothing more.
    pub(super) used_up: bool,
}

impl Seat<'_> {
    fn retire_as(&mut self, keep: Keep) {
        self.used_up |= match keep {
            Keep::Unspecified => !self.pool.reuse,
            Keep::Process | Keep::May => false,
            Keep::End => true,
        };
    }

    /// The pool forgets a worker that is used up.
    fn retire(&self, core: &mut Core, now: u64) {
        if self.used_up {
            let worker = self.worker;
            core.tell_node(now, node::Event::WorkerGone { worker });
        }
    }

    /// Tells the graph the end of a task, and frees its place.
    fn end(&self, held: &Held, event: Event) {
        self.workers.engine.with(|core, now| {
            core.tell(now, event);
            self.retire(core, now);
            core.leave(now, run_of(&held.assignment));
        });
    }

    /// A task of whose end the graph knows already leaves.
    pub(super) fn leave(&self, held: &Held) {
        self.workers.engine.with(|core, now| {
            self.retire(core, now);
            core.leave(now, run_of(&held.assignment));
        });
    }

    /// Tells the graph that a task failed; its place is freed with its last word.
    pub(super) fn fail(&self, held: &Held, failure: Box<Failure>) {
        let run = run_of(&held.assignment);
        self.workers.engine.with(|core, now| {
            core.tell(
                now,
                Event::TaskFailed {
                    task: run.task,
                    attempt: run.attempt,
                    failure: *failure,
                },
            );
        });
    }
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
            matches!(word.continuation, Some(Kept::Parked(_)))
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
        outputs[index as usize] = Some(Output::Value(value(seat, held, given.value)?));
    }
    for (purpose, path) in std::mem::take(&mut held.files.opened).into_values() {
        if let Purpose::Output(index) = purpose
            && outputs[index as usize].is_none()
        {
            let name = held.files.fresh_name();
            let content = objects::adopt(&seat.workers.engine, name, &path);
            let content = content.map_err(|trouble| held.trouble(trouble))?;
            outputs[index as usize] = Some(whole_file(content));
        }
    }
    let published = |output: Option<Output>| output.unwrap_or(Output::Published);
    let run = run_of(&held.assignment);
    let event = Event::TaskFinished {
        task: run.task,
        attempt: run.attempt,
        outputs: outputs.into_iter().map(published).collect(),
        printed: held.printed,
    };
    seat.end(held, event);
    seat.workers.task_ended_well(seat.executor);
    Ok(Said::Over(Over::Gone))
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
    let engine = &seat.workers.engine;
    if !held.given.is_empty() {
        let message = "it handed its outputs on after it had published one of them";
        return Err(held.refuse(Refused::new(message)));
    }
    let asked = word.task.unwrap_or_default();
    let made = wire::descriptor(&engine.registry, &engine.settings, &held.handles, &asked);
    let descriptor = made.map_err(|refused| held.refuse(refused))?;
    let run = run_of(&held.assignment);
    let event = Event::TaskTailSpawned {
        task: run.task,
        attempt: run.attempt,
        descriptor,
    };
    seat.end(held, event);
    seat.workers.task_ended_well(seat.executor);
    Ok(Said::Over(Over::Gone))
}

/// The task waits.
pub(super) fn block_on(seat: &Seat<'_>, held: &mut Held, word: words::BlockOn) -> Failed<Said> {
    if word.timeout_ms.is_some() {
        let refused = Refused::new("it set a timeout for its waiting, which this engine cannot")
            .hint("use only features that the engine names in its hello");
        return Err(held.refuse(refused));
    }
    let found = wire::handles(&held.handles, &word.references);
    let mut on = found.map_err(|refused| held.refuse(refused))?;
    if word.wait() == Wait::First {
        on = first(seat, held, &word.references, &on);
    }
    match word.continuation {
        Some(Kept::Parked(_)) => park(seat, held, on),
        Some(Kept::Saved(saved)) => save(seat, held, on, saved),
        Some(Kept::Replay(_)) => {
            let is_told = |number: &u32| held.told.contains(number);
            if word.wait() == Wait::All && word.references.iter().all(is_told) {
                let refused = Refused::new("it waits for nothing but what it was told is there")
                    .hint("look in the recording of the start before you block");
                return Err(held.refuse(refused));
            }
            block(seat, held, None, on, Continuation::Replay);
            Ok(Said::Over(Over::Gone))
        }
        None => {
            let message = "it blocked without saying how it goes on";
            Err(held.refuse(Refused::new(message)))
        }
    }
}

/// Of several references those that are there; if none is, all of them. What was decided is an
/// input from outside, and recorded.
fn first(seat: &Seat<'_>, held: &Held, numbers: &[u32], on: &[Handle]) -> Vec<Handle> {
    let run = run_of(&held.assignment);
    seat.workers.engine.with(|core, now| {
        let there =
            |handle: &Handle| core.graph.is_settled(run.task, run.attempt, *handle) == Some(true);
        let mut places: Vec<usize> = (0..on.len()).filter(|place| there(&on[*place])).collect();
        if places.is_empty() {
            places = (0..on.len()).collect();
        }
        let record = First {
            places: places.iter().map(|place| *place as u32).collect(),
            numbers: places.iter().map(|place| numbers[*place]).collect(),
        };
        let value = serde_json::to_vec(&record).expect("numbers are JSON");
        let (kind, value) = (FIRST.into(), value.into());
        step(core, now, held, Step::Input { kind, value });
        places.into_iter().map(|place| on[place]).collect()
    })
}

/// Tells the graph that a task waits; gives the answers if it goes on at once.
fn block(
    seat: &Seat<'_>,
    held: &Held,
    kept: Option<Vec<Handle>>,
    on: Vec<Handle>,
    continuation: Continuation,
) -> Option<Answers> {
    let run = run_of(&held.assignment);
    seat.workers.engine.with(|core, now| {
        seat.retire(core, now);
        core.tell(
            now,
            Event::TaskBlocked {
                task: run.task,
                attempt: run.attempt,
                kept,
                on,
                continuation,
            },
        );
        if core.is_stopping(run) {
            core.leave(now, run);
        }
        core.continued.take().map(|(_, answers)| answers)
    })
}

/// A worker that cannot keep the strand after all lets it be replayed.
fn park(seat: &Seat<'_>, held: &mut Held, on: Vec<Handle>) -> Failed<Said> {
    if !seat.parks {
        let refused = Refused::new("it parked, but its worker and this engine did not agree to")
            .hint("a worker that parks names the feature \"parked\" in its hello");
        return Err(held.refuse(refused));
    }
    if seat.parked >= seat.pool.parked_strands_max as usize {
        let most = seat.pool.parked_strands_max;
        let message = format!("it parked where its worker keeps {most} strands at most");
        return Err(held.refuse(Refused::new(message)));
    }
    if seat.used_up || seat.parked >= parked_max(seat.pool.parked_strands_max) {
        block(seat, held, None, on, Continuation::Replay);
        return Ok(Said::Over(Over::Unwanted));
    }
    match block(seat, held, None, on, Continuation::Live) {
        None => Ok(Said::Over(Over::Parked)),
        Some(answers) => {
            let answers = held.answers(&seat.workers.engine, answers)?;
            let timed_out = false;
            Ok(Said::Resumed(Resume { answers, timed_out }))
        }
    }
}

/// The strand goes on from bytes; of its table it keeps what the bytes need and what it waits for.
fn save(seat: &Seat<'_>, held: &mut Held, on: Vec<Handle>, saved: words::Saved) -> Failed<Said> {
    let found = wire::handles(&held.handles, &saved.references);
    let mut kept = found.map_err(|refused| held.refuse(refused))?;
    let count = kept.len() as u32;
    let mut waits = Vec::with_capacity(on.len());
    for handle in on {
        let place = kept.iter().position(|other| *other == handle);
        waits.push(Handle(place.unwrap_or(kept.len()) as u32));
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
    };
    let packed = pack(saved, kept.len() as u32, held.printed);
    let bytes = packed.map_err(|error| {
        held.refuse(Refused::new(format!(
            "it saved more than can be kept: {error}"
        )))
    })?;
    let continuation = Continuation::Saved(bytes.into());
    block(seat, held, Some(kept), waits, continuation);
    Ok(Said::Over(Over::Gone))
}
