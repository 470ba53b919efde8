//! Open `try` statements, and what was dereferenced in them.
//!
//! `*r` does not wait, so its failure would be thrown after the `try` around it has been left. Each
//! open `try` therefore keeps a list of its thunks, on the stack where the `try` began. They are
//! forced when it is left, and before a handler catches a failure that came later in serial order.
//! Read next: `force`.

use super::failure::{Failure, Pause};
use super::force::Missing;
use super::{Handler, Machine, Step};
use crate::code::Code;
use crate::host::Host;
use crate::value::{Index, Value};

/// A list of thunks up to this long is not worth a search for those that were forced meanwhile.
const THUNKS_KEPT_MAX: u32 = 16;

impl Machine {
    pub(super) fn open_handler(&mut self, target: u32) {
        let height = self.stack.len() as u32;
        let thunks = self.heap.new_list(Vec::new());
        self.stack.push(thunks);
        self.handlers.push(Handler {
            frame: self.frames.len() as u32 - 1,
            height,
            target,
            searched_at: THUNKS_KEPT_MAX,
        });
    }

    /// The innermost `try` is left; its list is the topmost operand.
    pub(super) fn close_handler(&mut self) -> Result<(), Pause> {
        self.force_tried(self.handlers.len() - 1)?;
        self.handlers.pop();
        self.stack.pop();
        Ok(())
    }

    /// All that were opened in this frame are left; the frame's result is the topmost operand.
    pub(super) fn close_handlers_of_frame(&mut self) -> Result<(), Pause> {
        let frame = self.frames.len() as u32 - 1;
        while self.handlers.last().is_some_and(|last| last.frame == frame) {
            self.force_tried(self.handlers.len() - 1)?;
            self.handlers.pop();
        }
        Ok(())
    }

    /// A thunk that was made now belongs to the innermost open `try`.
    #[inline]
    pub(super) fn keep_for_try(&mut self, thunk: Value) -> Result<(), Pause> {
        match self.is_trying() {
            true => self.keep_in(self.handlers.len() - 1, thunk),
            false => Ok(()),
        }
    }

    /// Whether the strand that runs is in a `try`.
    #[inline]
    pub(super) fn is_trying(&self) -> bool {
        self.handlers.len() > self.strand().handlers as usize
    }

    fn keep_in(&mut self, number: usize, thunk: Value) -> Result<(), Pause> {
        let list = self.thunks_of(number);
        if self.heap.list(list).len() as u32 >= self.handlers[number].searched_at {
            self.drop_forced(number, list);
        }
        self.heap.append(list, thunk)
    }

    /// Executes from where it stopped. If it waited for the lists of the open `try`s because of a
    /// failure, they come first: the failed instruction would else wait for its own operands again,
    /// and each wait may cost the answers of the other.
    pub(super) fn proceed(&mut self, code: &Code, host: &mut dyn Host) -> Result<Step, Pause> {
        if self.strand().is_settling {
            self.force_tried(self.strand().handlers as usize)?;
            self.strand_mut().is_settling = false;
        }
        self.execute(code, host)
    }

    /// What a handler is to catch in the place of `failure`: the first failure in serial order of
    /// what the open `try`s dereferenced. Only the handlers that surround it stay open.
    pub(super) fn first_failure(&mut self, failure: Failure) -> Result<Failure, Pause> {
        if std::mem::take(&mut self.strand_mut().is_settling) {
            return Ok(failure);
        }
        match self.force_tried(self.strand().handlers as usize) {
            Ok(()) => Ok(failure),
            Err(Pause::Failed(earlier)) => Ok(*earlier),
            Err(pause) => {
                self.strand_mut().is_settling = true;
                Err(pause)
            }
        }
    }

    /// Forces the thunks of the handlers from `first` on, outermost first. After a failure the
    /// innermost handler is the one to which it belongs.
    fn force_tried(&mut self, first: usize) -> Result<(), Pause> {
        let mut missing = Missing::default();
        for number in first..self.handlers.len() {
            let list = self.thunks_of(number);
            for at in 0..self.heap.list(list).len() {
                let forced = self.force(self.heap.list(list)[at], false);
                let is_resolved = missing.take(forced).inspect_err(|pause| {
                    if let Pause::Failed(_) = pause {
                        self.handlers.truncate(number + 1);
                    }
                })?;
                if is_resolved.is_none() && missing.is_final {
                    return missing.result();
                }
            }
        }
        missing.result()
    }

    /// Forgets those that were forced, so that a long loop in a `try` keeps only what it waits for.
    fn drop_forced(&mut self, number: usize, list: Index) {
        let mut thunks = std::mem::take(self.heap.items_mut(list));
        thunks.retain(|thunk| self.heap.waiting(self.heap.settled(*thunk)).is_some());
        self.burn(thunks.len() / 4);
        self.handlers[number].searched_at = (thunks.len() as u32 * 2).max(THUNKS_KEPT_MAX);
        *self.heap.items_mut(list) = thunks;
    }

    fn thunks_of(&self, number: usize) -> Index {
        let place = self.handlers[number].height as usize;
        match self.stack[place] {
            Value::List(index) => index,
            other => unreachable!("a `try` keeps a list on the stack, not {other:?}"),
        }
    }
}
