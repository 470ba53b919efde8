//! From an assignment to the message that starts the task in a worker.
//!
//! It does not know the worker. Read next: `recording` (replays), `verbs` (what comes back).

use ciel_graph::{Assignment, Entry, Event, Step};
use ciel_model::{ActionKey, Fact, Handle, Resolution, limits};
use ciel_protocol::wire::{
    EngineMessage, Environment, Recording, Reference, SavedContinuation, Start, engine_message,
    start,
};
use ciel_protocol::{Decoder, EncodeError, Framing, encode};

use super::features::Features;
use super::handles::Handles;
use super::held::{Failed, Held};
use super::recording::{Input, end_of_wait, observation, observations};
use super::{Workers, attempt_of, wire};
use crate::core::Core;
use crate::engine::Engine;

type Known = Vec<(Handle, Resolution)>;

/// A task that is about to start, and what its worker is told.
///
/// # Errors
/// The store's, as the task's failure; nothing of it is left then.
pub(super) fn start(
    workers: &Workers,
    assignment: Box<Assignment>,
    features: Features,
) -> Failed<(Held, Start)> {
    let mut held = Held::new(&workers.engine, assignment, workers.next_epoch());
    match message(workers, &mut held, features) {
        Ok(message) => Ok((held, message)),
        Err(failure) => {
            held.close(workers);
            Err(failure)
        }
    }
}

fn message(workers: &Workers, held: &mut Held, features: Features) -> Failed<Start> {
    let engine = &workers.engine;
    let scratch = match features.no_scratch {
        true => String::new(),
        false => {
            let folder = held.files.folder(engine);
            let folder = folder.map_err(|trouble| held.trouble(engine, trouble))?;
            folder.to_string_lossy().into_owned()
        }
    };
    let entry = std::mem::replace(&mut held.assignment.entry, Entry::Start(Vec::new()));
    let (inputs, continuation) = match entry {
        Entry::Start(known) => (inputs(engine, held, known)?, None),
        Entry::Replay {
            inputs: known,
            facts,
        } => {
            let inputs = inputs(engine, held, known)?;
            let recording = recording(engine, held, &facts)?;
            (inputs, Some(start::Continuation::Replay(recording)))
        }
        Entry::Restore { bytes, answers, .. } => {
            let saved = restored(engine, held, &bytes, answers)?;
            (Vec::new(), Some(start::Continuation::Saved(saved)))
        }
        Entry::Resume(_) => unreachable!("a strand that is resumed is parked"),
    };
    let descriptor = &held.assignment.descriptor;
    let millicores = descriptor.options.resources.millicores;
    Ok(Start {
        payload: descriptor.payload.bytes().clone(),
        inputs,
        outputs: descriptor.outputs,
        options: Some(wire::options_told(&descriptor.options, descriptor.pure)),
        label: held.label().to_string(),
        seed: held.label().name.0 as u64,
        environment: Some(Environment {
            scratch,
            cores: millicores.div_ceil(1000).max(1),
            folder: workers.folder.clone(),
        }),
        continuation,
        position: held.assignment.position.0.to_be_bytes().to_vec().into(),
        ahead: None,
    })
}

/// What is known of each input.
fn inputs(engine: &Engine, held: &mut Held, known: Known) -> Failed<Vec<Reference>> {
    let count = held.assignment.descriptor.inputs.len() as u32;
    let mut known = known.into_iter().peekable();
    let mut told = Vec::with_capacity(count as usize);
    for number in 0..count {
        let next = known.next_if(|(handle, _)| handle.0 == number);
        let state = next.map_or(Resolution::Future, |(_, state)| state);
        told.push(held.reference(engine, number, state)?);
    }
    Ok(told)
}

/// What a replay is told; the graph hears of the inputs that come before everything else.
fn recording(engine: &Engine, held: &mut Held, facts: &[Fact]) -> Failed<Recording> {
    let ended = held.assignment.ended.take();
    let end = ended.map(|ended| end_of_wait(&ended, &[]));
    let mut observations = observations(facts);
    observations.extend(end.iter().map(|(kind, value)| observation(kind, value)));
    held.cursor.rewind(facts, end);
    let run = attempt_of(&held.assignment);
    let recalled = engine.with(|core, now| core.recall(now, run));
    let mut references = Vec::with_capacity(recalled.len());
    for (handle, known) in recalled {
        references.push(held.reference(engine, handle.0, known)?);
    }
    engine.with(|core, now| record_end(core, now, held));
    Ok(Recording {
        references,
        observations,
    })
}

/// The task has observed something, or a wait of it has ended.
pub(super) fn observe_input(core: &mut Core, now: u64, held: &mut Held, input: Input) {
    let at = held.cursor.part();
    tell_input(core, now, held, (at, input));
}

/// Tells the graph how the last wait of a replayed task ended, as soon as all else is met.
pub(super) fn record_end(core: &mut Core, now: u64, held: &mut Held) {
    if let Some(due) = held.cursor.due() {
        tell_input(core, now, held, due);
    }
}

fn tell_input(core: &mut Core, now: u64, held: &Held, (at, input): (ActionKey, Input)) {
    let run = attempt_of(&held.assignment);
    let (kind, value) = input;
    core.tell(
        now,
        Event::TaskStepped {
            task: run.task,
            attempt: run.attempt,
            step: Step::Input { at, kind, value },
        },
    );
}

/// A saved strand on its way back.
fn restored(
    engine: &Engine,
    held: &mut Held,
    bytes: &[u8],
    answers: Known,
) -> Failed<SavedContinuation> {
    let (mut saved, printed) = unpack(bytes);
    if let Some(ended) = held.assignment.ended.take() {
        saved.timed_out = ended.timed_out;
        let input = end_of_wait(&ended, &[]);
        engine.with(|core, now| observe_input(core, now, held, input));
    }
    held.printed = printed;
    let count = saved.references.len() as u32;
    held.handles = Handles::restored(count, held.assignment.next_handle);
    for (handle, known) in answers {
        let told = held.reference(engine, handle.0, known)?;
        // What it waited for only to be there was not kept for it.
        let place = handle.0 - Handle::DELIVERED_MIN;
        if let Some(place) = saved.references.get_mut(place as usize) {
            *place = told;
        }
    }
    Ok(saved)
}

/// A saved strand as the graph keeps it: its bytes, and whether it has printed.
///
/// # Errors
/// Those of a message that is too long.
pub(super) fn pack(saved: SavedContinuation, printed: bool) -> Result<Vec<u8>, EncodeError> {
    let start = Start {
        continuation: Some(start::Continuation::Saved(saved)),
        ..Start::default()
    };
    let message = encode(&EngineMessage::connection(start), Framing::LengthPrefixed)?;
    let mut bytes = vec![u8::from(printed)];
    bytes.extend_from_slice(&message);
    Ok(bytes)
}

fn unpack(bytes: &[u8]) -> (SavedContinuation, bool) {
    let whole = "a saved strand comes back as it was packed";
    let (printed, message) = bytes.split_first().expect(whole);
    let mut decoder = Decoder::<EngineMessage>::with_framing(Framing::LengthPrefixed);
    decoder.push(message);
    let start = match decoder.take() {
        Ok(Some(EngineMessage {
            kind: Some(engine_message::Kind::Start(start)),
            ..
        })) => start,
        _ => unreachable!("{whole}"),
    };
    match start.continuation {
        Some(start::Continuation::Saved(saved)) => (saved, *printed == 1),
        _ => unreachable!("{whole}"),
    }
}

/// Strands that a worker may keep parked, of those that it offers to keep.
pub(super) fn parked_max(offered: u32) -> usize {
    (offered as usize).min(limits::PARKED_STRANDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_strand_comes_back_as_it_was_packed() {
        let saved = SavedContinuation {
            data: b"frames".to_vec().into(),
            runtime: "python".to_string(),
            code: b"code".to_vec().into(),
            references: vec![Reference::default()],
            timed_out: false,
        };
        let bytes = pack(saved.clone(), true).expect("short");
        assert_eq!(unpack(&bytes), (saved, true));
    }
}
