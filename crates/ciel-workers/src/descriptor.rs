//! From a spawn, as a worker sends it, to the task that the graph takes.
//!
//! What cannot be spawned comes back as a [`Refused`]. It knows of an executor what
//! `callee` has. Read next: `definitions`, for what several spawns have in common.

use std::sync::Arc;

use bytes::Bytes;
use ciel_model::{
    ConsumerFlags, Descriptor, Handle, InputMode, Options, Refused, Site, Streams, Weights, Wish,
    limits,
};
use ciel_protocol::wire;

use crate::callee::SpawnCall;
use crate::definitions::{Definition, mode_of};

/// A task that a worker spawns.
///
/// # Errors
/// Too many outputs, a stream that was not agreed on, or what the executor refuses.
pub(crate) fn descriptor(
    definition: &Definition,
    asked: &wire::Descriptor,
    has_streams: bool,
) -> Result<Arc<Descriptor>, Refused> {
    let inputs = inputs(&asked.inputs);
    let takes = inputs.iter().any(|(_, mode)| *mode == InputMode::Stream);
    if (takes || !definition.streams.outputs.is_empty()) && !has_streams {
        return Err(Refused::new(
            "it spawned a task with a stream, but its worker and this engine did not agree to",
        )
        .hint("a worker that does so names the feature \"streams\" in its hello"));
    }
    check_outputs(definition.outputs)?;
    definition.callee.task(SpawnCall {
        label: definition.label.clone(),
        payload: kept(&asked.payload),
        code: definition.code.clone(),
        reached: definition.reached.clone(),
        inputs,
        outputs: definition.outputs,
        streams: Streams {
            wishes: wishes(&asked.inputs),
            ..definition.streams.clone()
        },
        options: options(definition, &asked.inputs),
        pure: definition.pure,
        site: Site {
            file: definition.file.clone(),
            line: asked.line,
        },
    })
}

fn inputs(asked: &[wire::Input]) -> Vec<(Handle, InputMode)> {
    let input = |input: &wire::Input| {
        let mode = match input.mode() {
            wire::InputMode::Value => InputMode::Value,
            wire::InputMode::Reference => InputMode::Reference,
            wire::InputMode::Stream => InputMode::Stream,
        };
        (Handle(input.handle), mode)
    };
    asked.iter().map(input).collect()
}

/// The options of the definition, and the locality weights of the inputs.
fn options(definition: &Definition, asked: &[wire::Input]) -> Arc<Options> {
    let weights = Weights::new(asked.iter().map(|input| input.locality_percent));
    match weights == Weights::default() {
        true => definition.options.clone(),
        false => Arc::new(Options {
            weights: weights.into(),
            ..(*definition.options).clone()
        }),
    }
}

/// What the task wishes for as a reader of streams; of inputs that say nothing, nothing.
fn wishes(asked: &[wire::Input]) -> Vec<(u32, Wish)> {
    let wishes = (0..)
        .zip(asked)
        .flat_map(|(index, input): (u32, &wire::Input)| {
            let wish = input.wish.iter();
            wish.flat_map(wishes_in).map(move |wish| (index, wish))
        });
    wishes.collect()
}

fn wishes_in(wish: &wire::StreamWish) -> impl Iterator<Item = Wish> {
    let flags = ConsumerFlags {
        may_stream: wish.may_stream,
        must_block: wish.must_block,
        no_store: wish.no_store,
    };
    let bytes = wish.granularity_bytes;
    // Whoever says nothing but a granularity leaves the mode to the producer.
    let says_flags = flags != ConsumerFlags::default() || bytes == 0;
    let flags = says_flags.then_some(Wish::Flags(flags));
    let way = mode_of(wish.mode()).map(Wish::Named).or(flags);
    let most = limits::STREAM_GRANULARITY_BYTES_MAX;
    let granularity = (bytes > 0).then_some(Wish::Granularity(bytes.min(most)));
    way.into_iter().chain(granularity)
}

fn check_outputs(outputs: u32) -> Result<(), Refused> {
    let most = limits::OUTPUTS_MAX;
    match outputs <= most {
        true => Ok(()),
        false => Err(Refused::new(format!(
            "it spawned a task with {outputs} outputs; the maximum is {most}"
        ))),
    }
}

/// Bytes: a payload from this size on stays in the buffer in which it was received; a smaller one
/// would keep more memory than it is worth.
const SHARED_BYTES_MIN: usize = 16 << 10;

fn kept(payload: &Bytes) -> Bytes {
    match payload.len() < SHARED_BYTES_MIN {
        true => Bytes::copy_from_slice(payload),
        false => payload.clone(),
    }
}
