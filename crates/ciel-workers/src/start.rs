//! From an assignment to the message that starts the task in a worker.
//!
//! It does not know the worker. Read next: `recording` (replays), `requests` (what comes back).

use bytes::Bytes;
use ciel_engine::saved_state;
use ciel_graph::{Assignment, Entry};
use ciel_model::{Fact, Handle, Name, Refused, Resolution, limits};
use ciel_protocol::limits::MESSAGE_BYTES_MAX;
use ciel_protocol::wire::{
    EngineMessage, Observation, Recording, Reference, SavedContinuation, Start, engine_message,
    start,
};
use ciel_protocol::{Decoder, EncodeError, Framing, encode};

use crate::features::Features;
use crate::fitting::{Room, untold};
use crate::host::{Failed, Host};
use crate::io::Effect;
use crate::look::{look_ready, recall};
use crate::recording::{observations, spawned};
use crate::task::WorkerTask;

type Known = Vec<(Handle, Resolution)>;

/// A task that is about to start, and what its worker receives, but for the definition.
///
/// # Errors
/// The store's, as the task's failure; nothing of it is left then.
pub(crate) fn start(
    host: &mut dyn Host,
    effects: &mut Vec<Effect>,
    assignment: Box<Assignment>,
    features: Features,
) -> Failed<(Box<WorkerTask>, Start)> {
    let mut task = Box::new(WorkerTask::new(assignment, host.next_tag()));
    match message(host, &mut task, features) {
        Ok(message) => Ok((task, message)),
        Err(failure) => {
            task.close(host, effects);
            Err(failure)
        }
    }
}

fn message(host: &mut dyn Host, task: &mut WorkerTask, features: Features) -> Failed<Start> {
    let scratch = match features.no_scratch {
        true => String::new(),
        false => {
            let folder = task.files.folder(host, &task.assignment.label)?;
            folder.to_string_lossy().into_owned()
        }
    };
    let state = saved_state(&task.assignment.entry);
    let entry = std::mem::replace(&mut task.assignment.entry, Entry::Start(Vec::new()));
    let mut room = Room::of_a_message();
    let (inputs, continuation) = match entry {
        Entry::Start(known) => (inputs(host, task, known, &mut room)?, None),
        Entry::Replay {
            inputs: known,
            facts,
            until,
        } => {
            let inputs = inputs(host, task, known, &mut room)?;
            let mut recording = recording(host, task, &facts, &mut room)?;
            if features.begun {
                recording.spawned = spawned(&facts);
                recording.until = until;
            }
            (inputs, Some(start::Continuation::Replay(recording)))
        }
        Entry::Restore { answers, .. } => {
            let state = state.expect("a strand is restored from a state");
            let saved = restored(host, task, &state, answers)?;
            (Vec::new(), Some(start::Continuation::Saved(saved)))
        }
        Entry::Resume(_) => unreachable!("a strand that is resumed is parked"),
    };
    let assignment = &task.assignment;
    let (position, name) = (assignment.position, assignment.label.name);
    let name = (name != position).then(|| bytes_of(name));
    let start = Start {
        definition: 0,
        payload: assignment.descriptor.payload.bytes(),
        inputs,
        position: bytes_of(position),
        name: name.unwrap_or_default(),
        action: assignment.next_action,
        handle: assignment.next_handle.0,
        scratch,
        continuation,
        ahead: None,
    };
    match &start.continuation {
        Some(start::Continuation::Replay(_)) if start.bytes() > START_BYTES_MAX => {
            Err(task.refuse(too_much_observed(start.bytes())))
        }
        _ => Ok(start),
    }
}

/// Bytes of a start that fits into a message with its tag.
const START_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 64;

/// Of a replay everything can be left out but what the task has observed.
fn too_much_observed(bytes: usize) -> Refused {
    let (bytes, most) = (bytes >> 20, MESSAGE_BYTES_MAX >> 20);
    let message =
        format!("what it has observed takes {bytes} MiB, and a replay receives {most} MiB at most");
    let hint = "pass large inputs as values, or observe them in tasks of their own";
    Refused::new(message).hint(hint)
}

fn bytes_of(name: Name) -> Bytes {
    Bytes::copy_from_slice(&name.0.to_be_bytes())
}

/// What is known of each input. One that the task takes by value is always told.
fn inputs(
    host: &mut dyn Host,
    task: &mut WorkerTask,
    known: Known,
    room: &mut Room,
) -> Failed<Vec<Reference>> {
    let count = task.assignment.descriptor.inputs.len() as u32;
    let mut known = known.into_iter().peekable();
    let mut references = Vec::with_capacity(count as usize);
    for input in (0..count).map(Handle) {
        let next = known.next_if(|(handle, _)| *handle == input);
        let state = next.map_or(Resolution::Future, |(_, state)| state);
        references.push(match task.stream_of(input) {
            Some(stream) => task.find_stream(host, stream)?,
            None if room.is_used_up() && task.takes_value(input) => {
                task.in_file(host, input, state)?
            }
            None => {
                let fitting = task.fitting(host, input, state, room)?;
                fitting.unwrap_or_else(|| untold(input))
            }
        });
    }
    Ok(references)
}

/// What a replay receives. It blocks on what is left out of very much.
fn recording(
    host: &mut dyn Host,
    task: &mut WorkerTask,
    facts: &[Fact],
    room: &mut Room,
) -> Failed<Recording> {
    task.attempt.rewind(facts);
    let observations = observations(facts);
    room.take(observations.iter().map(Observation::bytes).sum());
    let known = recall(host, task.attempt.key());
    let mut references = Vec::with_capacity(known.len());
    for (handle, known) in known {
        references.extend(task.fitting(host, handle, known, room)?);
    }
    Ok(Recording {
        references,
        observations,
        spawned: Vec::new(),
        until: 0,
    })
}

/// A saved strand that continues, with what is known of all that was kept for it.
fn restored(
    host: &mut dyn Host,
    task: &mut WorkerTask,
    bytes: &[u8],
    answers: Known,
) -> Failed<SavedContinuation> {
    let mut saved = unpack(bytes);
    let ended = task.assignment.ended.take();
    saved.timed_out = ended.is_some_and(|ended| ended.timed_out);
    for (handle, known) in answers {
        let reference = task.reference(host, handle, known)?;
        // What it only waited for was not kept for it.
        let place = handle.0 - Handle::DELIVERED_MIN;
        if let Some(place) = saved.references.get_mut(place as usize) {
            *place = reference;
        }
    }
    for place in &mut saved.references {
        let handle = Handle(place.handle);
        if !task.resolved.contains(&handle) {
            let known = look_ready(host, task, handle);
            *place = task.reference(host, handle, known)?;
        }
    }
    Ok(saved)
}

/// A saved strand as a state.
///
/// # Errors
/// Those of a message that is too long.
pub(crate) fn pack(saved: SavedContinuation) -> Result<Vec<u8>, EncodeError> {
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
pub(crate) fn parked_max(offered: u32) -> usize {
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
