//! Promotion: what the machine kept becomes known to the host.
//!
//! The order of actions is that of their indexes, so the oldest child is promoted first, and all
//! that are pending before the strand does anything else of which the host learns. A child that
//! runs in place is promoted as it is: with a machine of its own, at the same instruction. Read
//! next: `in_place`.

use std::sync::Arc;

use super::failure::{Failure, Pause};
use super::graph::{self, Form};
use super::in_place::Strand;
use super::kept::{Child, Kept, Slot};
use super::{Answered, Frame, Handler, Machine, Role, ScriptEnvironment};
use crate::host::{Answer, Handle, Host, References, SpawnRequest, Work};
use crate::value::{Object, Value};

/// A child that ran in place, and continues as a task.
pub struct Promoted {
    /// The index of its spawn among the actions of the task that spawned it.
    pub action: u64,
    /// It is at the instruction at which the child was.
    pub machine: Box<Machine>,
}

/// A child that ran in place, and has a machine of its own before it is promoted.
pub(super) struct Detached {
    /// Its number.
    number: u32,
    machine: Box<Machine>,
}

impl Machine {
    /// Promotes the outermost child that runs in place. Nothing if there is none, or if it must not
    /// be.
    ///
    /// # Errors
    /// The text of what went wrong: its arguments or its state are too large.
    pub fn promote_running(&mut self, host: &mut dyn Host) -> Result<Option<Promoted>, String> {
        let outermost = self.strands.get(1).and_then(|strand| strand.child);
        let detached = self.detached.as_ref().map(|detached| detached.number);
        let Some(number) = outermost.or(detached) else {
            return Ok(None);
        };
        let Slot::Running(child) = self.kept.slot(number as usize) else {
            unreachable!("a child with a strand runs");
        };
        if child.is_sealed {
            return Ok(None);
        }
        if let Some(estimates) = &mut self.estimates {
            estimates.leave(self.fuel);
        }
        if self.is_stuck {
            self.detach(2)?;
        }
        let given = self
            .promote(host, number as usize, child)
            .map_err(|pause| format!("{pause:?}"))?;
        let machine = match self.strands.len() {
            1 => self.detached.take().map(|detached| detached.machine),
            _ => Some(Box::new(self.split_at(1, &given)?)),
        };
        let machine = machine.expect("it is on the stack, or detached");
        let passed = u32::try_from(machine.heap.object_bytes()).unwrap_or(u32::MAX);
        self.passed_bytes = self.passed_bytes.saturating_add(passed);
        let action = child.action;
        Ok(Some(Promoted { action, machine }))
    }

    /// Gives each strand from that number on a machine of its own, so that what all of them need is
    /// copied once, however many there are.
    fn detach(&mut self, first: usize) -> Result<(), String> {
        while self.strands.len() > first {
            let number = self.strand().child.expect("it runs in place");
            let frozen = self.frozen(number as usize);
            let encoded = graph::encode(&self.heap, frozen, Form::Value)
                .map_err(|_| "its arguments are too large".to_string())?;
            let machine = Box::new(self.split_at(self.strands.len() - 1, &encoded.references)?);
            self.detached = Some(Detached { number, machine });
        }
        Ok(())
    }

    /// Instructions that a promotion while a child runs may cost, roughly.
    pub fn promotion_fuel(&self) -> u64 {
        8 * (self.stack.len() + self.heap.objects().len()) as u64
    }

    /// Promotes at most so many pending children of the task's own strand, oldest first; none while
    /// a sealed one runs in place, before which none of them comes.
    ///
    /// # Errors
    /// See [`Machine::promote`].
    pub(super) fn promote_pending(
        &mut self,
        host: &mut dyn Host,
        most: usize,
    ) -> Result<(), Pause> {
        if self.is_in_place() {
            return Ok(());
        }
        let mut from = self.strands[0].oldest as usize;
        for _ in 0..most {
            let Some((number, child)) = self.kept.pending(from) else {
                return Ok(());
            };
            from = number + 1;
            if child.is_sealed {
                continue;
            }
            self.promote(host, number, child)?;
            self.strands[0].pending -= 1;
            if self.strands[0].oldest as usize == number {
                self.strands[0].oldest += 1;
            }
        }
        Ok(())
    }

    /// The same, when it cannot wait or fail any more: what remains is dropped.
    pub fn promote_oldest(&mut self, host: &mut dyn Host, most: usize) {
        let _ = self.promote_pending(host, most);
    }

    /// Makes a kept child known to the host. Gives what was given to it, as this machine names it.
    fn promote(
        &mut self,
        host: &mut dyn Host,
        number: usize,
        child: Child,
    ) -> Result<Vec<Handle>, Pause> {
        let roots = self.frozen(number).to_vec();
        let encoded = graph::encode(&self.heap, &roots, Form::Value)
            .map_err(|_| Failure::new("OutOfMemory", "the arguments are too large"))?;
        let references = self.outer_all(host, child.action, &encoded.references)?;
        let label = self.label_of(roots[0]);
        let location = self.code.locate(self.span_at(child.function, child.pc));
        host.spawn(SpawnRequest {
            action: child.action,
            work: Work::Call(encoded.bytes),
            references,
            outputs: 1,
            options: serde_json::Value::Null,
            label,
            line: location.line,
            file: location.file,
        });
        let own = self.add_references(1);
        self.kept.promoted(number, own);
        Ok(encoded.references)
    }

    /// References as the host knows them. Results of kept children become objects, as parts of the
    /// action of that index.
    pub(super) fn outer_all(
        &mut self,
        host: &mut dyn Host,
        action: u64,
        handles: &[Handle],
    ) -> Result<Vec<Handle>, Pause> {
        for handle in handles {
            self.construct(host, action, *handle)?;
        }
        Ok(handles.iter().map(|handle| self.outer(*handle)).collect())
    }

    /// Makes an object of the result of a kept child, and of all results that it names.
    fn construct(&mut self, host: &mut dyn Host, action: u64, handle: Handle) -> Result<(), Pause> {
        let mut todo = vec![handle];
        while let Some(handle) = todo.last().copied() {
            let Some(value) = self.here(handle) else {
                let slot = Kept::number(handle).map(|number| self.kept.slot(number));
                if let Some(Slot::Pending(_)) = slot {
                    return Err(Pause::Blocked(vec![handle]));
                }
                todo.pop();
                continue;
            };
            let encoded = graph::encode(&self.heap, &[value], Form::Value)
                .map_err(|_| Failure::new("OutOfMemory", "the result is too large"))?;
            let unknown = |handle: &Handle| {
                self.outer(*handle).0 >= Handle::KEPT_MIN
                    && self.outer(*handle).0 < Handle::DELIVERED_MIN
            };
            let missing: Vec<Handle> = encoded.references.iter().copied().filter(unknown).collect();
            if !missing.is_empty() {
                todo.extend(missing);
                continue;
            }
            todo.pop();
            let references = encoded.references.iter().map(|handle| self.outer(*handle));
            let references: Vec<Handle> = references.collect();
            self.constructed(host, action, handle, encoded.bytes, references)?;
        }
        Ok(())
    }

    fn constructed(
        &mut self,
        host: &mut dyn Host,
        action: u64,
        handle: Handle,
        bytes: Vec<u8>,
        references: Vec<Handle>,
    ) -> Result<(), Pause> {
        let answer = references.is_empty().then(|| bytes.clone());
        host.construct(action, bytes, references)
            .map_err(|error| Failure::new("TaskError", error))?;
        let own = self.add_references(1);
        let number = Kept::number(handle).expect("it is kept");
        self.kept.promoted(number, own);
        if let Some(bytes) = answer {
            let (bytes, references) = (bytes.into(), References::NONE);
            self.answer(own, Answer::Value { bytes, references });
        }
        Ok(())
    }

    fn label_of(&self, function: Value) -> Arc<str> {
        let Value::Closure(index) = function else {
            unreachable!("a kept call begins with a function");
        };
        let Object::Closure(closure) = self.heap.object(index) else {
            unreachable!("a function is a closure");
        };
        self.code.functions[closure.function as usize].shown_name()
    }

    /// A machine of its own for the strands from that number on, of which the first was given
    /// `given`.
    fn split_at(&mut self, first: usize, given: &[Handle]) -> Result<Machine, String> {
        let strand = self.strands[first];
        let references = given.len() as u32;
        let surroundings = match self.surroundings.role {
            Role::Function => Arc::clone(&self.surroundings),
            Role::Script | Role::Job => Arc::new(ScriptEnvironment {
                role: Role::Function,
                ..(*self.surroundings).clone()
            }),
        };
        let mut child = Machine::empty(Arc::clone(&self.code), surroundings, references);
        let height = strand.height as usize;
        let mut kept = self.kept.split_off(strand.first_child as usize);
        let mut roots = self.stack.split_off(height);
        let count = roots.len();
        roots.extend_from_slice(kept.values());
        let encoded = graph::encode(&self.heap, &roots, Form::Machine)
            .map_err(|_| "its state is too large".to_string())?;
        let all = encoded.references.len() as u32;
        child
            .decode_onto_stack(&encoded.bytes, all)
            .map_err(|error| error.to_string())?;
        *kept.values_mut() = child.stack.split_off(count);
        child.kept = kept;
        let number = |handle: Handle| {
            let first = strand.first_child as usize;
            match Kept::number(handle).filter(|number| *number >= first) {
                Some(number) => Kept::handle(number - first),
                None => {
                    let at = given.iter().position(|one| *one == handle);
                    Handle(at.expect("a child names what was given to it") as u32)
                }
            }
        };
        let numbers: Vec<Handle> = encoded.references.into_iter().map(number).collect();
        child.each_handle(|handle| *handle = numbers[handle.0 as usize]);
        self.move_frames(first, &mut child);
        child.detached = self.detached.take().map(|inner| Detached {
            number: inner.number - strand.first_child,
            ..inner
        });
        self.pass_answers(given, &mut child);
        Ok(child)
    }

    /// Frames, handlers and strands from that strand on.
    fn move_frames(&mut self, first: usize, child: &mut Machine) {
        let strand = self.strands[first];
        let frames = self.frames.split_off(strand.frame as usize);
        child.frames = frames
            .into_iter()
            .map(|frame| Frame {
                base: frame.base - strand.height,
                ..frame
            })
            .collect();
        let handlers = self.handlers.split_off(strand.handlers as usize);
        child.handlers = handlers
            .into_iter()
            .map(|handler| Handler {
                frame: handler.frame - strand.frame,
                height: handler.height - strand.height,
                ..handler
            })
            .collect();
        let strands = self.strands.split_off(first);
        child.strands = strands
            .into_iter()
            .map(|inner| Strand {
                child: inner
                    .child
                    .and_then(|number| number.checked_sub(strand.first_child)),
                frame: inner.frame - strand.frame,
                height: inner.height - strand.height,
                handlers: inner.handlers - strand.handlers,
                first_child: inner.first_child - strand.first_child,
                oldest: inner.oldest - strand.first_child,
                ..inner
            })
            .collect();
    }

    /// What this machine knows of what was given to the child, the child knows.
    fn pass_answers(&self, given: &[Handle], child: &mut Machine) {
        for (number, handle) in (0..).zip(given) {
            let Some(Answered { answer, references }) = self.answered(*handle) else {
                continue;
            };
            if references.count == 0 {
                child.answer(Handle(number), answer.clone());
            }
        }
    }
}
