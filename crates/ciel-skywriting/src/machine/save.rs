//! A machine as bytes.
//!
//! A checksum, the hash of the code, frames and handlers, then the stack with everything it
//! reaches. Answers are not saved: a loaded machine that still needs one requests it again. Read
//! next: `graph`, and `references` for their renumbering.

use std::sync::Arc;

use super::graph::{self, Form};
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
const VERSION: u8 = 2;
const CHECKSUM_BYTES: usize = 8;

fn checksum(body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut checksum = [0; CHECKSUM_BYTES];
    checksum.copy_from_slice(&blake3::hash(body).as_bytes()[..CHECKSUM_BYTES]);
    checksum
}

impl Machine {
    /// The machine as bytes. Garbage is dropped on the way; the machine itself is unchanged, and
    /// keeps its numbers of references.
    pub fn save(&mut self) -> Saved {
        // No new memory is requested, so the budget is no reason to refuse.
        let _ = self.collect(0);
        let mut body = Vec::new();
        wire::put(&mut body, &self.code.hash());
        wire::put(&mut body, &self.frames);
        wire::put(&mut body, &self.handlers);
        wire::put(&mut body, &self.is_settling);
        let encoded = graph::encode(&self.heap, &self.stack, Form::Machine)
            .expect("a machine is never too large to save: its stack fits 32 bits");
        let references = u32::try_from(encoded.references.len()).expect("handles fit in 32 bits");
        wire::put(&mut body, &references);
        body.extend_from_slice(&encoded.bytes);
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&checksum(&body));
        bytes.append(&mut body);
        Saved {
            bytes,
            references: encoded.references,
        }
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
        let references: u32 = wire::take(&mut body)?;
        if references as usize > body.len() {
            return Err(damaged("more references than bytes"));
        }
        let mut machine = Machine::empty(code, surroundings, references);
        machine.decode_onto_stack(body, references)?;
        machine.frames = frames;
        machine.handlers = handlers;
        machine.is_settling = is_settling;
        machine.check_loaded()?;
        machine.reserve_loaded()?;
        Ok(machine)
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
