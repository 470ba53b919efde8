//! Children that run in place: as a call does, when the strand that spawned them needs them.
//!
//! A kept child begins when its parent would wait, the oldest first. It has handlers, children and
//! actions of its own, and copies of its arguments. What it cannot do here (print, spawn a command,
//! wait for somebody else, fail) stops the machine with [`Step::NeedsHost`] before it has happened:
//! then the child is promoted, and does it as a task. Read next: `promote`.

use super::collector::{OBJECT_BYTES, besides};
use super::estimates::Estimates;
use super::failure::Pause;
use super::graph::{self, copy};
use super::kept::{Child, Kept, Slot};
use super::reached::Reached;
use super::{Machine, Role, Step};
use crate::code::Code;
use crate::host::{Handle, Host, Keeping};
use crate::value::{Object, Thunk, Value};

/// Children of one strand that are pending at most; one more begins first.
const PENDING_MAX: u32 = 1024;

/// The same while the oldest waits for a task, and the strand need not.
const AWAITING_MAX: u32 = 8 * PENDING_MAX;

/// Bytes of arguments or of a result above which a child is a task: what is kept takes memory of
/// the strand that keeps it, and an object need not.
const KEPT_BYTES_MAX: usize = 4096;

/// Strands of a machine at which a child that has ended no longer runs what it spawned and did not
/// wait for: such a row of children can be as long as a program runs, and each adds a strand.
const LEAVING_MAX: usize = 64;

/// A strand in this machine: the task's own, or a child that runs in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strand {
    /// Number of the child that it is; none for the task's own.
    pub(super) child: Option<u32>,
    /// Number of its first frame.
    pub(super) frame: u32,
    /// Height of the stack below it.
    pub(super) height: u32,
    /// Number of its first handler.
    pub(super) handlers: u32,
    /// Its children have numbers from here on.
    pub(super) first_child: u32,
    /// None before this one is pending.
    pub(super) oldest: u32,
    /// How many are.
    pub(super) pending: u32,
    /// Its actions so far.
    pub(super) actions: u64,
    /// After a failure it waits for what its open `try`s dereferenced.
    pub(super) is_settling: bool,
    /// It, or one around it, is never promoted.
    pub(super) is_sealed: bool,
}

impl Strand {
    /// The task's own.
    pub(super) const TASK: Strand = Strand {
        child: None,
        frame: 0,
        height: 0,
        handlers: 0,
        first_child: 0,
        oldest: 0,
        pending: 0,
        actions: 0,
        is_settling: false,
        is_sealed: false,
    };
}

impl Machine {
    pub(super) fn strand(&self) -> &Strand {
        self.strands.last().expect("the task's own strand stays")
    }

    pub(super) fn strand_mut(&mut self) -> &mut Strand {
        let last = self.strands.last_mut();
        last.expect("the task's own strand stays")
    }

    /// Whether a child runs in place.
    pub fn is_in_place(&self) -> bool {
        self.strands.len() > 1
    }

    /// What only the host can do follows, and no child runs in place.
    pub(super) fn at_host(&self) -> Result<(), Pause> {
        match self.is_in_place() {
            true => Err(Pause::NeedsHost),
            false => Ok(()),
        }
    }

    /// What becomes of a spawn that comes next, of that function with these arguments.
    pub(super) fn keeping(&self, host: &mut dyn Host, function: u32, roots: &[Value]) -> Keeping {
        let code = &self.code.functions[function as usize];
        let needs_host = code.needs_host || self.is_large(roots);
        match self.is_in_place() {
            true if needs_host => Keeping::Promoted,
            true => Keeping::Kept,
            false => match host.keeping(self.strand().actions) {
                Keeping::Kept if needs_host => Keeping::Promoted,
                keeping => keeping,
            },
        }
    }

    /// Keeps a child: a function and its arguments.
    pub(super) fn keep(&mut self, mut roots: Vec<Value>, is_sealed: bool) -> Result<Value, Pause> {
        if self.is_full() {
            return Err(Pause::Blocked(Vec::new()));
        }
        copy(&mut self.heap, &mut roots)?;
        let bytes = self.kept.bytes_for(roots.len());
        self.heap.room(bytes)?;
        self.heap.charge(bytes);
        self.kept.reserve(roots.len());
        if !is_sealed && graph::is_constant(&self.heap, roots[0]) {
            self.heap.set_plain(roots[0]);
        }
        let pc = self.current_frame().pc;
        let child = self.next_child(roots.len() - 1, pc, (is_sealed, false));
        let number = self.kept.add_call(child, &roots);
        Ok(Value::Reference(Kept::handle(number)))
    }

    /// Whether a pending child is to begin before the strand spawns another one.
    #[inline]
    fn is_full(&self) -> bool {
        let pending = self.strand().pending;
        pending >= PENDING_MAX && (pending >= AWAITING_MAX || !self.oldest_awaits())
    }

    /// Keeps the call of the topmost operands, a function and so many arguments, if nothing of it
    /// has to be copied or looked through, and takes these operands. The spawn stands at `pc`.
    /// Nothing if it does not, and then nothing has changed.
    #[inline]
    pub(super) fn keep_plain(
        &mut self,
        arguments: usize,
        pc: u32,
        host: &mut dyn Host,
    ) -> Option<Handle> {
        let at = self.stack.len() - arguments - 1;
        let number = self.heap.plain_function(self.stack[at])?;
        let function = &self.code.functions[number as usize];
        let is_plain = |value: &Value| value.index().is_none();
        if function.parameters as usize != arguments
            || function.needs_host
            || self.is_full()
            || !self.kept.fits(arguments + 1)
            || !self.stack[at + 1..].iter().all(is_plain)
        {
            return None;
        }
        let is_sealed = match self.is_in_place() {
            true => false,
            false => match host.keeping(self.strand().actions) {
                Keeping::Promoted => return None,
                keeping => keeping == Keeping::Sealed,
            },
        };
        let child = self.next_child(arguments, pc, (is_sealed, true));
        let number = self.kept.add_call(child, &self.stack[at..]);
        self.stack.truncate(at);
        Some(Kept::handle(number))
    }

    /// The child that the strand spawns at that instruction.
    #[inline]
    fn next_child(
        &mut self,
        arguments: usize,
        pc: u32,
        (is_sealed, is_plain): (bool, bool),
    ) -> Child {
        let function = self.current_frame().function;
        let strand = self.strand_mut();
        let child = Child {
            action: strand.actions,
            function,
            pc,
            arguments: arguments as u32,
            is_sealed,
            is_plain,
        };
        strand.actions += 1;
        strand.pending += 1;
        child
    }

    /// Begins the oldest pending child of the strand that runs; says whether there is one. If it
    /// would wait for a task, and each of many others for one before it, the strand waits instead.
    /// If it is better promoted, the machine stops once. The strand waits for `awaited`, if that
    /// is known.
    pub(super) fn begin_oldest(
        &mut self,
        code: &Code,
        awaited: &[Handle],
        host: &dyn Host,
    ) -> Result<bool, Pause> {
        let Some((number, child)) = self.kept.pending(self.strand().oldest as usize) else {
            return Ok(false);
        };
        if self.strands.len() == 1 {
            if self.is_offered(number, child, host) {
                return Err(Pause::Offered);
            }
            self.begin_timed(number, awaited);
        }
        let on = self.awaited_by(number, child);
        if !on.is_empty() && self.awaits_as_a_row() {
            return Err(Pause::Blocked(on));
        }
        let height = self.stack.len();
        match child.is_plain {
            true => {
                for value in self.kept.call(number) {
                    self.stack.push(*value);
                }
            }
            false => self.thaw(number)?,
        }
        let arguments = child.arguments as usize;
        let parent = self.strand_mut();
        let is_sealed = parent.is_sealed || child.is_sealed;
        parent.oldest = number as u32;
        parent.pending -= 1;
        let strand = Strand {
            child: Some(number as u32),
            frame: self.frames.len() as u32,
            height: height as u32,
            handlers: self.handlers.len() as u32,
            first_child: self.kept.len() as u32,
            oldest: self.kept.len() as u32,
            is_sealed,
            ..Strand::TASK
        };
        self.strands.push(strand);
        self.kept.set(number, Slot::Running(child));
        if let Err(pause) = self.enter_top(code, arguments) {
            self.stack.truncate(height);
            self.strands.pop();
            self.strand_mut().pending += 1;
            self.kept.set(number, Slot::Pending(child));
            return Err(pause);
        }
        Ok(true)
    }

    /// Pushes a copy of the function and the arguments of a kept child.
    fn thaw(&mut self, number: usize) -> Result<(), Pause> {
        let height = self.stack.len();
        self.stack.extend_from_slice(self.kept.call(number));
        let copied = copy(&mut self.heap, &mut self.stack[height..]);
        if copied.is_err() {
            self.stack.truncate(height);
        }
        copied
    }

    /// The function and the arguments of a kept child.
    pub(super) fn frozen(&self, number: usize) -> &[Value] {
        self.kept.call(number)
    }

    /// Enters the function below the topmost operands, which are its arguments.
    #[inline]
    fn enter_top(&mut self, code: &Code, arguments: usize) -> Result<(), Pause> {
        let Value::Closure(index) = self.stack[self.stack.len() - arguments - 1] else {
            unreachable!("a kept call begins with a function");
        };
        let Object::Closure(closure) = self.heap.object(index) else {
            unreachable!("a function is a closure");
        };
        let function = closure.function;
        self.enter_function(code, function, arguments, Some(index))
    }

    /// The outermost function of a child that runs in place returns the topmost operand.
    pub(super) fn leave_child(&mut self, code: &Code) -> Result<(), Pause> {
        let mut value = self.top();
        if value.index().is_some() {
            if self.tail_call(code)? {
                return Ok(());
            }
            value = self.force(value, false)?;
            self.replace(1, value);
        }
        if self.strand().pending > 0 {
            return Err(
                match self.strands.len() < LEAVING_MAX || self.strand().is_sealed {
                    true => Pause::Blocked(Vec::new()),
                    false => Pause::NeedsHost,
                },
            );
        }
        let strand = *self.strand();
        if !strand.is_sealed && value.index().is_some() && self.is_large(&[value]) {
            return Err(Pause::NeedsHost);
        }
        self.count_ended(strand.frame);
        if self.strands.len() == 2
            && let Some(estimates) = &mut self.estimates
        {
            estimates.end(self.fuel);
        }
        let child = strand.child.expect("it runs in place") as usize;
        let is_own = |number| number >= strand.first_child as usize;
        if !self.names_kept(value, is_own) {
            self.kept.truncate(strand.first_child as usize);
        }
        self.kept.end(child, value);
        self.frames.truncate(strand.frame as usize);
        self.handlers.truncate(strand.handlers as usize);
        self.stack.truncate(strand.height as usize);
        self.strands.pop();
        Ok(())
    }

    /// If the function that returns gives what its only pending child will give, that takes its
    /// place in the strand. Says whether it did.
    pub(super) fn tail_call(&mut self, code: &Code) -> Result<bool, Pause> {
        let Value::Thunk(_) = self.top() else {
            return Ok(false);
        };
        let strand = *self.strand();
        let Some(number) = self.tail_child(&strand) else {
            return Ok(false);
        };
        let begin = self.stack.len();
        self.thaw(number)?;
        let call = self.stack.split_off(begin);
        let is_own = |number| number >= strand.first_child as usize;
        let names = call.iter().any(|value| self.names_kept(*value, is_own));
        self.count_ended(strand.frame);
        self.stack.truncate(strand.height as usize);
        self.frames.truncate(strand.frame as usize);
        self.handlers.truncate(strand.handlers as usize);
        if names {
            self.kept.free(number);
        } else {
            self.kept.truncate(strand.first_child as usize);
        }
        let after = self.kept.len() as u32;
        let strand = self.strand_mut();
        (strand.pending, strand.oldest) = (0, after);
        self.stack.extend_from_slice(&call);
        match self.enter_top(code, call.len() - 1) {
            Err(Pause::Collect(need)) => self.collect(need)?,
            entered => return entered.map(|()| true),
        }
        self.enter_top(code, call.len() - 1)?;
        Ok(true)
    }

    /// The function of that frame has ended as a task of its own would have.
    #[inline]
    fn count_ended(&mut self, frame: u32) {
        let function = self.frames[frame as usize].function;
        let (functions, fuel) = (self.code.functions.len(), self.fuel);
        let estimates = self.estimates.get_or_insert_with(|| Estimates::from(fuel));
        estimates.count_ended(function as usize, functions);
    }

    /// The pending child whose value is the topmost operand, if it is the only one.
    fn tail_child(&self, strand: &Strand) -> Option<usize> {
        if strand.child.is_none() && self.surroundings.role != Role::Function {
            return None;
        }
        let handle = self.heap.waiting(self.heap.settled(self.top()))?;
        let number = Kept::number(handle).filter(|_| strand.pending == 1)?;
        matches!(self.kept.slot(number), Slot::Pending(_)).then_some(number)
    }

    /// Whether these values take more than [`KEPT_BYTES_MAX`].
    fn is_large(&self, roots: &[Value]) -> bool {
        if roots.iter().all(|root| root.index().is_none()) {
            return false;
        }
        let mut reached = Reached::default();
        let mut is_large = !roots.iter().all(|root| reached.add(*root));
        let (mut bytes, mut next) = (0, 0);
        while let Some(index) = reached.get(next).filter(|_| !is_large) {
            next += 1;
            let object = self.heap.object(index);
            bytes += OBJECT_BYTES + besides(object);
            is_large = bytes > KEPT_BYTES_MAX;
            object.each_value(|value| is_large = is_large || !reached.add(value));
        }
        is_large
    }

    /// Whether a value reaches a kept child whose number is one of these.
    pub(super) fn names_kept(&self, value: Value, are: impl Fn(usize) -> bool) -> bool {
        if value.index().is_none() && !matches!(value, Value::Reference(_)) {
            return false;
        }
        let mut seen = rustc_hash::FxHashSet::default();
        let mut todo = vec![value];
        let names = |handle: Handle| Kept::number(handle).is_some_and(&are);
        while let Some(value) = todo.pop() {
            if let Value::Reference(handle) = value
                && names(handle)
            {
                return true;
            }
            let Some(index) = value.index().filter(|index| seen.insert(*index)) else {
                continue;
            };
            let object = self.heap.object(index);
            if matches!(object, Object::Thunk(Thunk::Waiting(handle)) if names(*handle)) {
                return true;
            }
            object.each_value(|value| todo.push(value));
        }
        false
    }

    /// The machine waits for what it cannot run itself.
    pub(super) fn blocked(&mut self, on: Vec<Handle>) -> Step {
        if self.is_in_place() && !self.strand().is_sealed && !self.waits_in_place() {
            return Step::NeedsHost;
        }
        let mut outer = Vec::with_capacity(on.len());
        for handle in on {
            let handle = self.outer(handle);
            if !outer.contains(&handle) {
                outer.push(handle);
            }
        }
        Step::Blocked { on: outer }
    }

    /// A handle as the host knows it, if it does.
    pub(super) fn outer(&self, handle: Handle) -> Handle {
        match Kept::number(handle).map(|number| self.kept.slot(number)) {
            Some(Slot::Promoted(own)) => own,
            _ => handle,
        }
    }

    /// The result of a kept child that has ended.
    pub(super) fn here(&self, handle: Handle) -> Option<Value> {
        let number = Kept::number(handle)?;
        matches!(self.kept.slot(number), Slot::Here).then(|| self.kept.value(number))
    }
}
