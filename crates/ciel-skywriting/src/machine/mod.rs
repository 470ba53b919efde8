//! The virtual machine: a running script as a value.
//!
//! All its state is frames, operands, handlers and heap objects that name each other by index, so
//! it can be saved at every wait and resumed elsewhere, any number of times. It does not know who
//! runs its spawns or where the answers come from. Read next: the README beside this file, then
//! `step`.

mod builtins;
mod calls;
mod collector;
mod compare;
mod estimates;
mod failure;
mod finish;
mod force;
pub(crate) mod graph;
pub(crate) mod heap;
mod in_place;
mod joined;
pub(crate) mod json;
mod kept;
mod numbers;
mod parallel;
mod places;
mod promote;
mod reached;
mod references;
mod save;
mod seen;
mod step;
mod table;
mod trace;
mod tries;
mod variables;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::host::{Answer, Handle, Host, References, Thrown};
use crate::value::{Object, Value};
use crate::wire::{LoadError, damaged};
use estimates::Estimates;
use failure::{Failure, Pause};
use heap::Heap;
use in_place::Strand;
use kept::Kept;
use promote::Detached;
use table::Table;

pub use parallel::Parallel;
pub use promote::Promoted;
pub use references::Compacted;
pub use save::Saved;

/// The default heap budget: 256 MiB.
pub const HEAP_BYTES_MAX_DEFAULT: usize = 256 * 1024 * 1024;

/// Whose result it is that a machine ends with, which decides what may be left open in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// A spawned function's: it may delegate to another task, and contain unresolved references.
    #[default]
    Function,
    /// That of a whole script which another program called. It is waited for deeply, since its
    /// reader may know nothing of this language; references in it stay, functions are an error. A
    /// reference as a whole, or bytes that are not JSON, is handed over as it is.
    Script,
    /// The job's: resolved deeply and given as JSON.
    Job,
}

/// The environment of a script. Shared by all machines of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptEnvironment {
    /// `argv()`
    pub argv: Vec<String>,
    /// `env()`
    pub env: Arc<BTreeMap<String, String>>,
    /// Whose result the script's is.
    pub role: Role,
    /// Budget of the heap and the stack together.
    pub heap_bytes_max: usize,
}

impl Default for ScriptEnvironment {
    fn default() -> ScriptEnvironment {
        ScriptEnvironment {
            argv: Vec::new(),
            env: Arc::default(),
            role: Role::default(),
            heap_bytes_max: HEAP_BYTES_MAX_DEFAULT,
        }
    }
}

/// Why [`Machine::run`] came back.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// The script has ended; the machine is of no more use.
    Finished(Ended),
    /// It resumes when all of these have been answered. Never empty, without repetition.
    Blocked {
        /// The references it needs now.
        on: Vec<Handle>,
    },
    /// It cancels this reference. It resumes when [`Machine::cancelled`] says whether that has an
    /// effect.
    Cancels {
        /// The reference.
        on: Handle,
    },
    /// The fuel is used up, or somebody waits for what it keeps; call `run` again.
    Preempted,
    /// A child that runs in place comes to what only the host can do: see
    /// [`Machine::promote_running`].
    NeedsHost,
    /// It failed; the machine is of no more use.
    Failed {
        /// What outputs of the task become.
        thrown: Box<Thrown>,
        /// The location, for messages.
        place: Box<Diagnostic>,
    },
}

/// A script that ended well.
#[derive(Debug, PartialEq)]
pub struct Ended {
    /// What it returned.
    pub value: Returned,
}

/// What a script returned.
#[derive(Debug, PartialEq)]
pub enum Returned {
    /// Whatever that reference is: a tail call. Never from a root.
    Delegated(Handle),
    /// A value, for [`Answer::Value`]. Never from a root.
    Value {
        /// The encoded value.
        bytes: Vec<u8>,
        /// The references it names, by their numbers in the bytes.
        references: Vec<Handle>,
    },
    /// The job's result, free of references. Only from a root.
    Json(serde_json::Value),
}

/// One activation of a function.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Frame {
    function: u32,
    /// The instruction to run next; in a caller, the call.
    pc: u32,
    /// Where its variables begin on the stack. The function itself lies right below.
    base: u32,
}

/// An open `try`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Handler {
    /// Number of the frame, from 0.
    frame: u32,
    /// Height of the stack at the `try`; the list of its thunks is there.
    height: u32,
    target: u32,
    /// Length of that list at which those that were forced meanwhile are dropped.
    searched_at: u32,
}

/// What became of a reference.
#[derive(Debug)]
struct Answered {
    answer: Answer,
    /// The references inside it.
    references: References,
}

impl Answered {
    fn bytes(&self) -> usize {
        match &self.answer {
            Answer::Value { bytes, .. } | Answer::Json { bytes, .. } => bytes.len(),
            Answer::Bytes { bytes, .. } => bytes.len(),
            Answer::Large { .. } | Answer::Error(_) => 0,
        }
    }
}

/// A running script. See the module.
pub struct Machine {
    code: Arc<Code>,
    surroundings: Arc<ScriptEnvironment>,
    frames: Vec<Frame>,
    stack: Vec<Value>,
    handlers: Vec<Handler>,
    /// The task's own strand, and the children that run in place, each in the one before it.
    strands: Vec<Strand>,
    kept: Kept,
    /// The child for which nothing can be done here before it is promoted.
    detached: Option<Detached>,
    /// Whether it stopped at what only the host can do.
    is_stuck: bool,
    /// None before it keeps a child.
    estimates: Option<Box<Estimates>>,
    /// Whether the reference that it asked to cancel is cancelled.
    cancelled: Option<bool>,
    heap: Heap,
    table: Table,
    /// Length of the table after the last renumbering.
    table_compacted: u32,
    /// Bytes of the state of children that were promoted since then.
    passed_bytes: u32,
    /// Bytes of the answers that are kept, and of those at the last search.
    answer_bytes: usize,
    answer_bytes_compacted: usize,
    fuel: u64,
}

impl Machine {
    /// A machine at the start of the script itself.
    pub fn for_script(code: Arc<Code>, surroundings: Arc<ScriptEnvironment>) -> Machine {
        let mut machine = Machine::empty(code, surroundings, 0);
        machine.stack.push(Value::Null);
        if let Err(pause) = machine.enter_function(&Arc::clone(&machine.code), 0, 0, None) {
            unreachable!("a script body has no parameters and a small stack: {pause:?}");
        }
        machine
    }

    /// A machine at the start of a spawned call. `references` counts the references the task was
    /// given: handles `0..references`. Fails when the bytes belong to another program, are
    /// damaged, or do not fit the heap.
    pub fn for_call(
        code: Arc<Code>,
        call_bytes: &[u8],
        references: u32,
        surroundings: Arc<ScriptEnvironment>,
    ) -> Result<Machine, LoadError> {
        let mut machine = Machine::empty(code, surroundings, references);
        machine.decode_onto_stack(call_bytes, references)?;
        let arguments = machine
            .stack
            .len()
            .checked_sub(1)
            .ok_or(damaged("no function"))?;
        let Value::Closure(index) = machine.stack[0] else {
            return Err(damaged("a call of something else than a function"));
        };
        let Object::Closure(closure) = machine.heap.object(index) else {
            return Err(damaged("a call of something else than a function"));
        };
        let function = closure.function;
        if machine.code.functions[function as usize].parameters as usize != arguments {
            return Err(damaged("a call with another number of arguments"));
        }
        let code = Arc::clone(&machine.code);
        match machine.enter_function(&code, function, arguments, Some(index)) {
            Ok(()) => Ok(machine),
            Err(_) => Err(LoadError::TooLarge {
                bytes_max: machine.heap.bytes_max(),
            }),
        }
    }

    fn empty(code: Arc<Code>, surroundings: Arc<ScriptEnvironment>, references: u32) -> Machine {
        let heap = Heap::new(Arc::clone(&code), surroundings.heap_bytes_max);
        Machine {
            code,
            surroundings,
            frames: Vec::new(),
            stack: Vec::new(),
            handlers: Vec::new(),
            strands: vec![Strand::TASK],
            kept: Kept::default(),
            detached: None,
            is_stuck: false,
            estimates: None,
            cancelled: None,
            heap,
            table: Table::of((0..references).map(|_| None).collect()),
            table_compacted: 0,
            passed_bytes: 0,
            answer_bytes: 0,
            answer_bytes_compacted: 0,
            fuel: 0,
        }
    }

    /// Decodes values onto an empty stack, collecting as often as they need.
    fn decode_onto_stack(&mut self, bytes: &[u8], references: u32) -> Result<(), LoadError> {
        let given = References::given(references);
        loop {
            match graph::decode(&mut self.heap, bytes, given, &mut self.stack) {
                Ok(()) => return Ok(()),
                Err(graph::Refusal::Load(error)) => return Err(error),
                Err(graph::Refusal::Room(need)) => {
                    self.stack.clear();
                    let bytes_max = self.heap.bytes_max();
                    self.collect(need)
                        .map_err(|_| LoadError::TooLarge { bytes_max })?;
                }
            }
        }
    }

    /// The program.
    pub fn code(&self) -> &Arc<Code> {
        &self.code
    }

    /// How many references the task knows.
    pub fn references(&self) -> usize {
        self.table.len()
    }

    /// Bytes of the heap budget in use, garbage included.
    pub fn heap_bytes(&self) -> usize {
        self.heap.used()
    }

    /// Passes the resolution of a reference; references inside it join the task's table. A second
    /// answer to the same reference takes the place of the first.
    ///
    /// # Panics
    /// If the task has no such reference.
    pub fn answer(&mut self, handle: Handle, answer: Answer) {
        let references = match &answer {
            Answer::Value { references, .. } | Answer::Json { references, .. } => *references,
            Answer::Bytes { .. } | Answer::Large { .. } | Answer::Error(_) => References::NONE,
        };
        let slot = self.table.slot(handle);
        let slot = slot.unwrap_or_else(|| panic!("an answer to {handle:?}, which does not exist"));
        let answered = Box::new(Answered { answer, references });
        self.answer_bytes += answered.bytes();
        *slot = Some(answered);
        let more = self.table.deliver(references);
        self.heap.charge(more * Table::SLOT_BYTES);
        self.forget_answers();
    }

    /// Whether the reference of [`Step::Cancels`] is cancelled by now.
    pub fn cancelled(&mut self, is_cancelled: bool) {
        self.cancelled = Some(is_cancelled);
        self.strand_mut().actions += 1;
    }

    /// Gives back memory that it needs only while it runs.
    pub fn shrink(&mut self) {
        self.frames.shrink_to_fit();
        self.stack.shrink_to_fit();
        self.strands.shrink_to_fit();
        self.heap.shrink();
        self.table.shrink();
    }

    /// How many children of each function have ended in place since this was asked last.
    pub fn take_ended(&mut self) -> Vec<(Arc<str>, u64)> {
        let ended = self.estimates.as_deref_mut().map(Estimates::take_ended);
        let functions = self.code.functions.iter().zip(ended.unwrap_or_default());
        functions
            .filter(|(_, count)| *count > 0)
            .map(|(function, count)| (function.shown_name(), count))
            .collect()
    }

    /// Whether it has children that somebody else could run.
    pub fn has_kept(&self) -> bool {
        self.is_in_place() || self.detached.is_some() || self.strand().pending > 0
    }

    /// The actions of the task so far, those of which its host does not know among them.
    pub fn actions(&self) -> u64 {
        self.strands[0].actions
    }

    fn add_references(&mut self, count: u32) -> Handle {
        let first = self.table.next();
        self.heap.charge(count as usize * Table::SLOT_BYTES);
        self.table.add(count);
        first
    }

    /// Runs until the script ends, waits, fails, or has used `fuel` instructions; long builtins
    /// count as several. The same machine with the same answers and fuel always stops at the same
    /// point, and besides before a child that is better promoted, if the host has an idle thread:
    /// see [`Machine::is_offering`].
    ///
    /// # Panics
    /// If the script has ended.
    pub fn run(&mut self, host: &mut dyn Host, fuel: u64) -> Step {
        assert!(
            !self.frames.is_empty(),
            "a script that has ended cannot run"
        );
        if let Some(estimates) = &mut self.estimates {
            estimates.grant(fuel, self.fuel);
        }
        self.fuel = fuel;
        let step = match self.detached {
            None => self.run_here(host),
            Some(_) => Step::NeedsHost,
        };
        self.is_stuck = step == Step::NeedsHost;
        step
    }

    fn run_here(&mut self, host: &mut dyn Host) -> Step {
        let code = Arc::clone(&self.code);
        loop {
            let paused = match self.proceed(&code, host) {
                Ok(step) => return step,
                Err(Pause::Failed(failure)) => self.first_failure(*failure),
                Err(pause) => Err(pause),
            };
            let failure = match paused {
                Ok(failure) => failure,
                Err(Pause::Blocked(on)) => match self.begin_oldest(&code, &on, host) {
                    Ok(true) => continue,
                    Ok(false) => return self.blocked(on),
                    Err(Pause::Blocked(on)) => return self.blocked(on),
                    Err(Pause::Offered) => return Step::Preempted,
                    Err(pause) => match self.relieved(pause) {
                        Ok(()) => continue,
                        Err(failure) => *failure,
                    },
                },
                Err(Pause::Cancels(on)) => return Step::Cancels { on },
                Err(Pause::NeedsHost) => return Step::NeedsHost,
                Err(Pause::Offered) => return Step::Preempted,
                Err(Pause::Collect(need)) => match self.collect(need) {
                    Ok(()) => continue,
                    Err(failure) => *failure,
                },
                Err(Pause::Failed(failure)) => *failure,
            };
            if let Some(step) = self.unwind(failure.with_maker(host), host) {
                return step;
            }
        }
    }

    /// Makes the room for which a child could not begin.
    fn relieved(&mut self, pause: Pause) -> Result<(), Box<Failure>> {
        match pause {
            Pause::Collect(need) => self.collect(need),
            Pause::Failed(failure) => Err(failure),
            other => unreachable!("a call only needs room, not {other:?}"),
        }
    }

    /// Drops garbage and makes room for `need` bytes.
    fn collect(&mut self, need: usize) -> Result<(), Box<Failure>> {
        const STACK_SPARE_MIN: usize = 1024;
        if self.stack.capacity() > STACK_SPARE_MIN.max(self.stack.len() * 4) {
            self.stack.shrink_to(self.stack.len() * 2);
        }
        let other = self.stack.capacity() * size_of::<Value>()
            + self.frames.capacity() * size_of::<Frame>()
            + self.table.capacity() * Table::SLOT_BYTES
            + self.kept.capacity() * Kept::SLOT_BYTES;
        let mut named = self.kept.roots();
        let kept = (&mut self.kept.values_mut()[..], &mut named[..]);
        let live = self.heap.collect(&mut self.stack, kept, other, need);
        self.forget_kept(&named);
        if let Ok(live) = live {
            self.burn(live / 8);
        }
        live.map(|_| ())
    }

    /// Uses fuel for work inside one instruction.
    fn burn(&mut self, steps: usize) {
        self.fuel = self.fuel.saturating_sub(steps as u64);
    }
}
