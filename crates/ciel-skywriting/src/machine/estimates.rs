//! How long the functions take that a machine runs in place.
//!
//! A task costs more than most calls. Of a function whose calls took longer, the next child is
//! promoted before it begins, if somebody is there to run it and another one can run beside it. It
//! does not look at a clock: the same machine with the same answers and fuel has the same
//! estimates. Read next: `in_place`, which begins the children.

use super::Machine;
use super::kept::{Child, Kept};
use super::parallel::Parallel;
use crate::host::{Handle, Host};
use crate::value::{Object, Value};

/// Instructions of a call that cost more than a task does.
const TASK_FUEL: u64 = 5_000;

/// Waits of a task together with a child that runs in place, after which such a child is promoted.
const WAITS_IN_PLACE_MAX: u32 = 16;

/// A child of the task's own strand that runs in place.
#[derive(Debug, Clone, Copy)]
struct Timed {
    function: u32,
    /// When it began.
    since: u64,
}

/// What is known by now.
#[derive(Debug, Default)]
pub(super) struct Estimates {
    /// All fuel that the machine was ever given, without what it did not use.
    granted: u64,
    timed: Option<Timed>,
    /// Instructions of a call, by the function's number; zero if none has ended.
    by_function: Vec<u64>,
    /// How many children of each function have ended in place, by its number.
    ended: Vec<u64>,
    /// The child before which the machine stopped.
    offered: Option<u32>,
    /// It has just stopped there.
    is_offering: bool,
    /// The others were promoted before they began, and one child that needs them stays.
    has_left: bool,
    /// That child has begun, and is what the task's own strand waits for.
    is_awaited: bool,
    /// How often the task has waited together with one since one was promoted.
    waits: u32,
}

impl Estimates {
    /// Nothing is known when so much fuel is left.
    pub(super) fn from(fuel: u64) -> Box<Estimates> {
        Box::new(Estimates {
            granted: fuel,
            ..Estimates::default()
        })
    }

    /// The machine continues with so much fuel; `left` of what it had is not used.
    pub(super) fn grant(&mut self, fuel: u64, left: u64) {
        self.granted = self.granted - left + fuel;
        self.is_offering = false;
    }

    /// A child of the task's own strand begins while so much fuel is left; the last one is not
    /// looked at any more.
    fn begin(&mut self, function: u32, fuel: u64) {
        let since = self.granted - fuel;
        self.timed = Some(Timed { function, since });
        self.offered = None;
    }

    /// The machine stops before that child.
    fn offer(&mut self, number: usize) {
        self.offered = Some(number as u32);
        self.is_offering = true;
    }

    /// The child that began last has ended.
    pub(super) fn end(&mut self, fuel: u64) {
        let Some(Timed { function, since }) = self.timed.take() else {
            return;
        };
        let took = self.granted - fuel - since;
        let estimate = self.of(function);
        *estimate = match *estimate {
            0 => took,
            before => before.midpoint(took),
        };
    }

    /// That child continues elsewhere: it takes longer than until now.
    pub(super) fn leave(&mut self, fuel: u64) {
        let Some(Timed { function, since }) = self.timed.take() else {
            return;
        };
        let took = self.granted - fuel - since;
        let estimate = self.of(function);
        *estimate = took.max(*estimate);
    }

    /// A child of that function, of so many, has ended in place.
    #[inline]
    pub(super) fn count_ended(&mut self, function: usize, functions: usize) {
        if self.ended.is_empty() {
            self.ended = vec![0; functions];
        }
        self.ended[function] += 1;
    }

    /// How many children of each function have ended in place since this was asked last.
    pub(super) fn take_ended(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.ended)
    }

    fn of(&mut self, function: u32) -> &mut u64 {
        let number = function as usize;
        if number >= self.by_function.len() {
            self.by_function.resize(number + 1, 0);
        }
        &mut self.by_function[number]
    }
}

impl Machine {
    /// Whether it has stopped because its oldest pending child is better promoted.
    pub fn is_offering(&self) -> bool {
        let estimates = self.estimates.as_deref();
        estimates.is_some_and(|estimates| estimates.is_offering)
    }

    /// The function that a kept child is to run.
    fn function_of(&self, number: usize) -> u32 {
        let Value::Closure(index) = self.kept.call(number)[0] else {
            unreachable!("a kept call begins with a function");
        };
        let Object::Closure(closure) = self.heap.object(index) else {
            unreachable!("a function is a closure");
        };
        closure.function
    }

    /// Whether the pending child of the task's own strand that would begin is better promoted; only
    /// once for each, since the host may not be able to.
    pub(super) fn is_offered(&mut self, number: usize, child: Child, host: &dyn Host) -> bool {
        let function = self.function_of(number);
        let Some(estimates) = &mut self.estimates else {
            return false;
        };
        let takes_long = *estimates.of(function) >= TASK_FUEL && !child.is_sealed;
        let is_new = estimates.offered != Some(number as u32);
        let is_offered = takes_long
            && is_new
            && host.has_idle_thread()
            && self.parallel(false) == Parallel::Children;
        if let Some(estimates) = self.estimates.as_mut().filter(|_| is_offered) {
            estimates.offer(number);
        }
        is_offered
    }

    /// The pending child of that number begins in the task's own strand, which waits for `awaited`.
    pub(super) fn begin_timed(&mut self, number: usize, awaited: &[Handle]) {
        let (function, fuel) = (self.function_of(number), self.fuel);
        let estimates = self.estimates.get_or_insert_with(|| Estimates::from(fuel));
        estimates.begin(function, fuel);
        let has_left = std::mem::take(&mut estimates.has_left);
        estimates.is_awaited = has_left && *awaited == [Kept::handle(number)];
    }

    /// Whether the task waits together with the child that runs in place, for what that needs: it
    /// could do nothing else, and it keeps no other child. Now and then that becomes a task all the
    /// same: while it is here, the machine cannot be saved, nor what it names be renumbered.
    pub(super) fn waits_in_place(&mut self) -> bool {
        let is_last = self.strands.len() == 2 && self.strands.iter().all(|it| it.pending == 0);
        let Some(estimates) = &mut self.estimates else {
            return false;
        };
        let waits = is_last && estimates.is_awaited && estimates.waits < WAITS_IN_PLACE_MAX;
        estimates.waits = if waits { estimates.waits + 1 } else { 0 };
        waits
    }

    /// Promotes, of what the task's own strand keeps, what was offered: at most so many children,
    /// oldest first. One that needs them, and which nothing comes after, stays.
    pub fn promote_offered(&mut self, host: &mut dyn Host, most: usize) {
        let ready = self.ready_ones(most);
        let left = self.strands[0].pending as usize - ready;
        if let Some(estimates) = &mut self.estimates {
            estimates.has_left = left == 1;
        }
        self.promote_oldest(host, if left == 1 { ready } else { most });
    }
}
