//! A machine as bytes.
//!
//! A checksum, the hash of the code, frames and handlers, then the stack and the results of kept
//! children with everything they reach. Answers are not saved: a loaded machine that still needs
//! one requests it again. Read next: `graph`, and `references` for their renumbering.

use std::sync::Arc;

use super::graph::{self, Form};
use super::kept::{Kept, Slot};
use super::{Frame, Handler, Machine, ScriptEnvironment};
use crate::code::{Code, CodeHash};
use crate::host::Handle;
use crate::value::Value;
use crate::wire::{self, LoadError, damaged};

/// A saved machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// For [`Machine::load`], any number of times.
    pub bytes: Vec<u8>,
    /// The references it holds on to; in the bytes they are numbered from 0 in this order.
    pub references: Vec<Handle>,
}

/// First byte of a saved machine.
const VERSION: u8 = 3;
const CHECKSUM_BYTES: usize = 8;

fn checksum(body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut checksum = [0; CHECKSUM_BYTES];
    checksum.copy_from_slice(&blake3::hash(body).as_bytes()[..CHECKSUM_BYTES]);
    checksum
}

impl Machine {
    /// The machine as bytes. Garbage is dropped on the way; the machine itself is unchanged, and
    /// keeps its numbers of references. None of its children is pending or runs in place.
    pub fn save(&mut self) -> Saved {
        // No new memory is requested, so the budget is no reason to refuse.
        let _ = self.collect(0);
        let mut body = Vec::new();
        wire::put(&mut body, &self.code.hash());
        wire::put(&mut body, &self.frames);
        wire::put(&mut body, &self.handlers);
        wire::put(&mut body, &self.strand().is_settling);
        wire::put(&mut body, &self.strand().actions);
        let roots = [&self.stack[..], self.kept.values()].concat();
        let encoded = graph::encode(&self.heap, &roots, Form::Machine)
            .expect("a machine is never too large to save: its stack fits 32 bits");
        let (places, references) = self.places(&encoded.references);
        wire::put(&mut body, &(self.kept.len() as u32));
        wire::put(&mut body, &places);
        body.extend_from_slice(&encoded.bytes);
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&checksum(&body));
        bytes.append(&mut body);
        Saved { bytes, references }
    }

    /// Where a loaded machine finds what it names, and the references that the host keeps for it.
    fn places(&self, named: &[Handle]) -> (Vec<Handle>, Vec<Handle>) {
        let mut references = Vec::new();
        let places = named.iter().map(|handle| {
            let handle = self.outer(*handle);
            if Kept::number(handle).is_some() {
                return handle;
            }
            let known = references.iter().position(|known| *known == handle);
            let place = known.unwrap_or_else(|| {
                references.push(handle);
                references.len() - 1
            });
            Handle(u32::try_from(place).expect("handles fit in 32 bits"))
        });
        let places = places.collect();
        (places, references)
    }

    /// A machine from saved bytes, at the point where it was. Fails when the bytes belong to
    /// another program, are damaged, or do not fit the heap.
    pub fn load(
        code: Arc<Code>,
        bytes: &[u8],
        surroundings: Arc<ScriptEnvironment>,
    ) -> Result<Machine, LoadError> {
        let [version, rest @ ..] = bytes else {
            return Err(damaged("they are too short"));
        };
        if *version != VERSION {
            return Err(LoadError::OtherVersion { found: *version });
        }
        let (sum, mut body) = rest
            .split_first_chunk::<CHECKSUM_BYTES>()
            .ok_or(damaged("they are too short"))?;
        if checksum(body) != *sum {
            return Err(damaged("the checksum differs"));
        }
        let found: CodeHash = wire::take(&mut body)?;
        if found != code.hash() {
            return Err(LoadError::OtherProgram {
                expected: code.hash(),
                found,
            });
        }
        let frames: Vec<Frame> = wire::take(&mut body)?;
        let handlers: Vec<Handler> = wire::take(&mut body)?;
        let is_settling: bool = wire::take(&mut body)?;
        let actions: u64 = wire::take(&mut body)?;
        let kept: u32 = wire::take(&mut body)?;
        let places: Vec<Handle> = wire::take(&mut body)?;
        let own = places
            .iter()
            .filter(|place| Kept::number(**place).is_none());
        let references = own
            .map(|place| place.0.saturating_add(1))
            .max()
            .unwrap_or(0);
        if references as usize > places.len() {
            return Err(damaged("a reference that was not given"));
        }
        let mut machine = Machine::empty(code, surroundings, references);
        machine.decode_onto_stack(body, places.len() as u32)?;
        machine.take_kept(kept as usize, &places)?;
        machine.frames = frames;
        machine.handlers = handlers;
        machine.strand_mut().is_settling = is_settling;
        machine.strand_mut().actions = actions;
        machine.check_loaded()?;
        machine.reserve_loaded()?;
        Ok(machine)
    }

    /// Takes the results of kept children from the stack, and names what it names by its places.
    fn take_kept(&mut self, kept: usize, places: &[Handle]) -> Result<(), LoadError> {
        let height = self.stack.len().checked_sub(kept);
        let height = height.ok_or(damaged("more results than values"))?;
        let known = |place: &Handle| Kept::number(*place).is_none_or(|number| number < kept);
        if !places.iter().all(known) {
            return Err(damaged("a result that was not saved"));
        }
        for value in self.stack.split_off(height) {
            self.kept.add(Slot::Here, value);
        }
        self.each_handle(|handle| *handle = places[handle.0 as usize]);
        Ok(())
    }

    /// Whether frames and handlers lie inside code and stack.
    fn check_loaded(&self) -> Result<(), LoadError> {
        let mut least = 1;
        for frame in &self.frames {
            let function = self.code.functions.get(frame.function as usize);
            let function = function.ok_or(damaged("a function that does not exist"))?;
            let variables_end = frame.base as usize + function.slots.len();
            let is_inside = (frame.pc as usize) < function.instructions.len()
                && frame.base as usize >= least
                && variables_end <= self.stack.len();
            if !is_inside {
                return Err(damaged("a frame outside the stack or the code"));
            }
            least = variables_end;
        }
        for handler in &self.handlers {
            let frame = self.frames.get(handler.frame as usize);
            let frame = frame.ok_or(damaged("a handler without a frame"))?;
            let function = &self.code.functions[frame.function as usize];
            let is_inside = (handler.target as usize) < function.instructions.len()
                && matches!(
                    self.stack.get(handler.height as usize),
                    Some(Value::List(_))
                );
            if !is_inside {
                return Err(damaged("a handler outside the stack or the code"));
            }
        }
        match self.frames.is_empty() {
            true => Err(damaged("a script that has ended")),
            false => Ok(()),
        }
    }

    /// The room that the innermost frame counts on.
    fn reserve_loaded(&mut self) -> Result<(), LoadError> {
        let operands = self.frames.last().map_or(0, |frame| {
            self.code.functions[frame.function as usize].operands_max as usize
        });
        self.stack.reserve_exact(operands);
        let bytes_max = self.heap.bytes_max();
        self.collect(0)
            .map_err(|_| LoadError::TooLarge { bytes_max })
    }
}
