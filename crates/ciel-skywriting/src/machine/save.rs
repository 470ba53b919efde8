//! A machine as bytes, and the renumbering of its references.
//!
//! A checksum, the hash of the code, frames and handlers, then the stack with everything it
//! reaches. Answers are not saved: a loaded machine that still needs one waits for it again. Read
//! next: `graph`.

use std::sync::Arc;

use super::graph::{self, Form};
use super::{Frame, Handler, Machine, Surroundings};
use crate::code::{Code, CodeHash};
use crate::host::Handle;
use crate::value::{Object, Thunk, Value};
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
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 8;
/// A table up to this long is not worth renumbering.
const REFERENCES_KEPT_MAX: usize = 64;

fn checksum(body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut checksum = [0; CHECKSUM_BYTES];
    checksum.copy_from_slice(&blake3::hash(body).as_bytes()[..CHECKSUM_BYTES]);
    checksum
}

impl Machine {
    /// The machine as bytes. Garbage is dropped on the way; the machine itself goes on as before,
    /// with its own numbers of references.
    pub fn save(&mut self) -> Saved {
        // Nothing is asked for, so the budget is not a reason to refuse.
        let _ = self.collect(0);
        let mut body = Vec::new();
        wire::put(&mut body, &self.code.hash());
        wire::put(&mut body, &self.frames);
        wire::put(&mut body, &self.handlers);
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
        surroundings: Arc<Surroundings>,
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
        let references: u32 = wire::take(&mut body)?;
        if references as usize > body.len() {
            return Err(damaged("more references than bytes"));
        }
        let mut machine = Machine::empty(code, surroundings, references);
        machine.decode_onto_stack(body, references)?;
        machine.frames = frames;
        machine.handlers = handlers;
        machine.check_loaded()?;
        machine.reserve_loaded()?;
        Ok(machine)
    }

    /// Whether frames and handlers lie inside code and stack.
    fn check_loaded(&self) -> Result<(), LoadError> {
        let mut least = 1;
        for frame in &self.frames {
            let function = self.code.functions.get(frame.function as usize);
            let function = function.ok_or(damaged("a function that is not there"))?;
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
                && handler.height as usize <= self.stack.len();
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

    /// Renumbers the references when most have become garbage, so that a loop that spawns and
    /// forgets stays small. Gives the old handles in their new order, from 0; nothing when it was
    /// not worth it and nothing has changed.
    pub fn compact(&mut self) -> Option<Vec<Handle>> {
        let worth = REFERENCES_KEPT_MAX.max(self.table_compacted * 2);
        if self.table.len() <= worth {
            return None;
        }
        let _ = self.collect(0);
        let live = self.live_references();
        let kept: Vec<Handle> = (0..self.references())
            .map(Handle)
            .filter(|handle| live[handle.0 as usize])
            .collect();
        self.table_compacted = kept.len();
        if kept.len() == self.table.len() {
            return None;
        }
        self.renumber(&kept);
        Some(kept)
    }

    /// Which handles the stack and the heap name, and the answers of those.
    fn live_references(&self) -> Vec<bool> {
        let mut live = vec![false; self.table.len()];
        let mut todo: Vec<Handle> = Vec::new();
        self.stack
            .iter()
            .for_each(|value| todo.extend(reference(*value)));
        for object in self.heap.objects() {
            match object {
                Object::List(items) => todo.extend(items.iter().filter_map(|v| reference(*v))),
                Object::Dictionary(dictionary) => {
                    todo.extend(
                        dictionary
                            .entries()
                            .iter()
                            .filter_map(|(_, v)| reference(*v)),
                    );
                }
                Object::Closure(closure) => {
                    todo.extend(closure.captures.iter().filter_map(|v| reference(*v)));
                }
                Object::Cell(value) => todo.extend(reference(*value)),
                Object::Thunk(Thunk::Waiting(handle)) => todo.push(*handle),
                Object::Thunk(Thunk::Forced(value)) => todo.extend(reference(*value)),
                Object::Gone | Object::Text(_) | Object::Integer(_) => {}
            }
        }
        while let Some(handle) = todo.pop() {
            if !std::mem::replace(&mut live[handle.0 as usize], true)
                && let Some(answered) = self.answered(handle)
            {
                let inside = answered.numbering;
                todo.extend((inside.first..inside.first + inside.count).map(Handle));
            }
        }
        live
    }

    /// Gives handle `kept[i]` the number `i` everywhere. The order of the old numbers is kept, so
    /// the references inside an answer stay side by side.
    fn renumber(&mut self, kept: &[Handle]) {
        let mut numbers = vec![u32::MAX; self.table.len()];
        for (number, handle) in (0..).zip(kept) {
            numbers[handle.0 as usize] = number;
        }
        let mut old = std::mem::take(&mut self.table);
        self.table = kept
            .iter()
            .map(|handle| old[handle.0 as usize].take())
            .collect();
        for answered in self.table.iter_mut().flatten() {
            let inside = &mut answered.numbering;
            if inside.count > 0 {
                inside.first = numbers[inside.first as usize];
            }
        }
        let moved = |value: &mut Value| {
            if let Value::Reference(handle) = value {
                *handle = Handle(numbers[handle.0 as usize]);
            }
        };
        self.stack.iter_mut().for_each(moved);
        for object in self.heap.objects_mut() {
            match object {
                Object::List(items) => items.iter_mut().for_each(moved),
                Object::Dictionary(dictionary) => dictionary.values_mut().for_each(moved),
                Object::Closure(closure) => closure.captures.iter_mut().for_each(moved),
                Object::Cell(value) | Object::Thunk(Thunk::Forced(value)) => moved(value),
                Object::Thunk(Thunk::Waiting(handle)) => {
                    *handle = Handle(numbers[handle.0 as usize]);
                }
                Object::Gone | Object::Text(_) | Object::Integer(_) => {}
            }
        }
    }
}

fn reference(value: Value) -> Option<Handle> {
    match value {
        Value::Reference(handle) => Some(handle),
        _ => None,
    }
}
