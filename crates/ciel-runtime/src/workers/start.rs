//! From an assignment to the message that starts the task in a worker.
//!
//! It does not know the worker. Read next: `recording` (replays), `requests` (what comes back).

use bytes::Bytes;
use ciel_engine::saved_state;
use ciel_graph::{Assignment, Entry};
use ciel_model::{Fact, Handle, Name, Resolution, limits};
use ciel_protocol::wire::{
    EngineMessage, Recording, Reference, SavedContinuation, Start, engine_message, start,
};
use ciel_protocol::{Decoder, EncodeError, Framing, encode};

use super::Workers;
use super::features::Features;
use super::held::{Failed, Held};
use super::look::look_ready;
use super::recording::observations;
use crate::engine::Engine;

type Known = Vec<(Handle, Resolution)>;

/// A task that is about to start, and what its worker receives, but for the definition.
///
/// # Errors
/// The store's, as the task's failure; nothing of it is left then.
pub(super) fn start(
    workers: &Workers,
    assignment: Box<Assignment>,
    features: Features,
) -> Failed<(Held, Start)> {
    let mut held = Held::new(assignment, workers.next_tag());
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
    let state = saved_state(&held.assignment.entry);
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
        Entry::Restore { answers, .. } => {
            let state = state.expect("a strand is restored from a state");
            let saved = restored(engine, held, &state, answers)?;
            (Vec::new(), Some(start::Continuation::Saved(saved)))
        }
        Entry::Resume(_) => unreachable!("a strand that is resumed is parked"),
    };
    let assignment = &held.assignment;
    let (position, name) = (assignment.position, assignment.label.name);
    let name = (name != position).then(|| bytes_of(name));
    Ok(Start {
        definition: 0,
        payload: assignment.descriptor.payload.bytes().clone(),
        inputs,
        position: bytes_of(position),
        name: name.unwrap_or_default(),
        action: assignment.next_action,
        handle: assignment.next_handle.0,
        scratch,
        continuation,
        ahead: None,
    })
}

fn bytes_of(name: Name) -> Bytes {
    Bytes::copy_from_slice(&name.0.to_be_bytes())
}

/// What is known of each input.
fn inputs(engine: &Engine, held: &mut Held, known: Known) -> Failed<Vec<Reference>> {
    let count = held.assignment.descriptor.inputs.len() as u32;
    let mut known = known.into_iter().peekable();
    let mut told = Vec::with_capacity(count as usize);
    for input in (0..count).map(Handle) {
        let next = known.next_if(|(handle, _)| *handle == input);
        let state = next.map_or(Resolution::Future, |(_, state)| state);
        told.push(held.reference(engine, input, state)?);
    }
    Ok(told)
}

/// What a replay receives.
fn recording(engine: &Engine, held: &mut Held, facts: &[Fact]) -> Failed<Recording> {
    held.attempt.rewind(facts);
    let attempt = held.attempt.key();
    let recalled = engine.with(|core, now| core.recall(now, attempt));
    let mut references = Vec::with_capacity(recalled.len());
    for (handle, known) in recalled {
        references.push(held.reference(engine, handle, known)?);
    }
    Ok(Recording {
        references,
        observations: observations(facts),
    })
}

/// A saved strand on its way back, with what is known of all that was kept for it.
fn restored(
    engine: &Engine,
    held: &mut Held,
    bytes: &[u8],
    answers: Known,
) -> Failed<SavedContinuation> {
    let mut saved = unpack(bytes);
    let ended = held.assignment.ended.take();
    saved.timed_out = ended.is_some_and(|ended| ended.timed_out);
    for (handle, known) in answers {
        let told = held.reference(engine, handle, known)?;
        // What it waited for only to be there was not kept for it.
        let place = handle.0 - Handle::DELIVERED_MIN;
        if let Some(place) = saved.references.get_mut(place as usize) {
            *place = told;
        }
    }
    for place in &mut saved.references {
        let handle = Handle(place.handle);
        if !held.told.contains(&handle) {
            let known = engine.with(|core, now| look_ready(core, now, held, handle));
            *place = held.reference(engine, handle, known)?;
        }
    }
    Ok(saved)
}

/// A saved strand as a state.
///
/// # Errors
/// Those of a message that is too long.
pub(super) fn pack(saved: SavedContinuation) -> Result<Vec<u8>, EncodeError> {
    let start = Start {
        continuation: Some(start::Continuation::Saved(saved)),
        ..Start::default()
    };
    encode(&EngineMessage::connection(start), Framing::LengthPrefixed).map(Vec::from)
}

fn unpack(message: &[u8]) -> SavedContinuation {
    let whole = "a saved strand comes back as it was packed";
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
        Some(start::Continuation::Saved(saved)) => saved,
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
        let bytes = pack(saved.clone()).expect("short");
        assert_eq!(unpack(&bytes), saved);
    }
}
