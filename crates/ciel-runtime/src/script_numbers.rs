//! How a script numbers its handles and actions, and how the graph does.
//!
//! The machine has one table: what it spawns and what it is told take the next numbers there, as
//! they come. The graph numbers what is delivered apart. So a script's own handles have the
//! machine's numbers, with gaps where something was delivered. Read next: `scripts`.

use ciel_model::{ActionKey, Handle};
use ciel_skywriting::host::Handle as ScriptHandle;

/// Both numberings of one script.
#[derive(Debug)]
pub(crate) struct ScriptNumbers {
    /// The next number of the machine.
    next: u32,
    /// Those of the machine's numbers that were delivered, in order.
    delivered: Vec<u32>,
    /// The index of the next action.
    action: u64,
    /// Parts of that action so far.
    parts: u32,
}

impl ScriptNumbers {
    /// A machine with so many references at 0, 1, ….
    pub(crate) fn starting(references: u32, action: u64) -> ScriptNumbers {
        ScriptNumbers {
            next: references,
            delivered: Vec::new(),
            action,
            parts: 0,
        }
    }

    /// Actions so far.
    pub(crate) fn actions(&self) -> u64 {
        self.action
    }

    /// The script does something: which action it is.
    pub(crate) fn act(&mut self) -> u64 {
        self.parts = 0;
        self.action += 1;
        self.action - 1
    }

    /// The script makes an object without an action of its own.
    pub(crate) fn make_part(&mut self) -> (ActionKey, Handle) {
        self.parts += 1;
        let at = ActionKey::part(self.action, self.parts - 1);
        (at, self.make(1))
    }

    /// The script makes `count` objects; the handle of the first.
    pub(crate) fn make(&mut self, count: u32) -> Handle {
        self.next += count;
        Handle(self.next - count)
    }

    /// References are delivered, and take the machine's next numbers.
    pub(crate) fn deliver(&mut self, count: u32) {
        self.delivered.extend(self.next..self.next + count);
        self.next += count;
    }

    /// The machine has numbered anew what it keeps.
    pub(crate) fn renumber(&mut self, kept: u32) {
        self.delivered.clear();
        self.next = kept;
    }

    /// The graph's handle.
    pub(crate) fn of_script(&self, handle: ScriptHandle) -> Handle {
        match self.delivered.binary_search(&handle.0) {
            Ok(index) => Handle(Handle::DELIVERED_MIN + index as u32),
            Err(_) => Handle(handle.0),
        }
    }

    /// The machine's handle.
    pub(crate) fn of_graph(&self, handle: Handle) -> ScriptHandle {
        let delivered = handle.0.checked_sub(Handle::DELIVERED_MIN);
        ScriptHandle(delivered.map_or(handle.0, |index| self.delivered[index as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_numbers_in_one_row_what_the_graph_numbers_apart() {
        let mut numbers = ScriptNumbers::starting(1, 4);
        assert_eq!((numbers.act(), numbers.make(2)), (4, Handle(1)));
        numbers.deliver(2);
        assert_eq!((numbers.act(), numbers.make(1)), (5, Handle(5)));
        for (script, graph) in [(0, 0), (2, 2), (3, 1 << 31), (4, (1 << 31) + 1), (5, 5)] {
            assert_eq!(numbers.of_script(ScriptHandle(script)), Handle(graph));
            assert_eq!(numbers.of_graph(Handle(graph)), ScriptHandle(script));
        }
        numbers.renumber(3);
        assert_eq!(numbers.of_script(ScriptHandle(2)), Handle(2));
        assert_eq!(numbers.make(1), Handle(3));
    }

    #[test]
    fn parts_are_counted_anew_with_each_action() {
        let mut numbers = ScriptNumbers::starting(0, 0);
        assert_eq!(numbers.make_part().0, ActionKey::part(0, 0));
        assert_eq!(numbers.make_part().0, ActionKey::part(0, 1));
        numbers.act();
        assert_eq!(numbers.make_part(), (ActionKey::part(1, 0), Handle(2)));
        assert_eq!(numbers.actions(), 1);
    }
}
