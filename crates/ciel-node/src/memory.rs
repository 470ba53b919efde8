//! The memory of the machine, which tasks that declare some share with the store of objects.
//!
//! The store has a *loan*: bytes that its objects may take, and that no task is given. The loan
//! grows by a decision of the node and shrinks by one of the store, so what both have never
//! exceeds what there is, however late one hears of the other. While a task waits for memory that
//! is lent, the store is asked to give some back; it grows again when no such task is left.
//!
//! # Why nothing waits for ever
//!
//! The store answers each request. If it cannot give back enough, because somebody still uses what
//! it would free, it is asked again after each task that leaves. When nothing runs whose end could
//! help, workers that only keep caches are ended, the store is asked once more after
//! [`PATIENCE_US`], and what cannot fit then is refused.
//!
//! It does not know how a store gives memory back. Read next: `loan`, `computation`.

use ciel_model::words::size;
use ciel_model::{Micros, Resources};

use crate::event::{Action, AttemptKey};
use crate::loan::{Asked, Loan};
use crate::node::{Node, Ready, is_current};

/// Microseconds for which nothing has run when a task is refused that waits for memory which the
/// store cannot give back.
pub(crate) const PATIENCE_US: Micros = 1_000_000;

impl Node {
    /// A node whose memory is shared with a store that may take `bound` bytes, as long as no task
    /// needs them. It may take as many as are there; where the amount of memory is unknown, nothing
    /// is shared.
    pub fn share_with_store(mut self, bound: u64) -> Node {
        let Some(free) = &mut self.free.memory_bytes else {
            return self;
        };
        let bytes = bound.min(*free);
        *free -= bytes;
        self.loan = Loan {
            bound,
            bytes,
            ..Loan::default()
        };
        self
    }

    /// Bytes of memory that the store may take.
    pub fn lent_to_store(&self) -> u64 {
        self.loan.bytes
    }

    /// Whether the store was asked to give memory back, and has not answered.
    pub fn awaits_store(&self) -> bool {
        self.loan.asked.is_some()
    }

    /// Tasks in their slots that declare memory, and how many bytes each, the largest first.
    pub fn memory_holders(&self) -> Vec<(AttemptKey, u64)> {
        let holds = |(attempt, placed): (&AttemptKey, &crate::node::Placed)| {
            Some((*attempt, placed.resources.memory_bytes?))
        };
        let mut holders: Vec<(AttemptKey, u64)> = self.placed.iter().filter_map(holds).collect();
        holders.sort_unstable_by_key(|(attempt, bytes)| (std::cmp::Reverse(*bytes), *attempt));
        holders
    }

    pub(crate) fn on_store_shrank(&mut self, bytes: u64) {
        let asked = self.loan.asked.take();
        let back = self.loan.bytes.saturating_sub(bytes);
        if let Some(free) = &mut self.free.memory_bytes {
            *free += back;
            self.loan.bytes -= back;
        }
        if let Some(asked) = asked.filter(|asked| asked.bytes < self.loan.bytes) {
            self.loan.is_stuck = true;
            self.loan.gives_up = asked.is_last && self.is_at_rest();
        }
    }

    /// The end of a round, in which `passed` found no places, nor perhaps the root.
    pub(crate) fn share_memory(
        &mut self,
        now: Micros,
        passed: &[Box<Ready>],
        actions: &mut Vec<Action>,
    ) {
        let Some(free) = self.free.memory_bytes.filter(|_| self.loan.bound > 0) else {
            return;
        };
        if self.loan.gives_up {
            self.refuse_root(actions);
            self.loan.gives_up = false;
            (self.loan.is_stuck, self.loan.idle_since) = (false, None);
        }
        let root = self.apart.and_then(|root| self.queued.get(&root));
        let mut waiting = root.into_iter().chain(passed);
        let declares = waiting.clone().any(|ready| declares(&ready.need.resources));
        let first = waiting.find(|ready| self.lacks_only_memory(ready));
        let wanted = first.and_then(|ready| ready.need.resources.memory_bytes);
        match wanted {
            Some(wanted) => self.recall(now, wanted, actions),
            None => {
                (self.loan.is_stuck, self.loan.idle_since) = (false, None);
                if !declares {
                    self.grow(free, actions);
                }
            }
        }
    }

    fn lacks_only_memory(&self, ready: &Ready) -> bool {
        let need = &ready.need.resources;
        let mut enough = self.free.clone();
        enough.memory_bytes = None;
        need.memory_bytes > self.free.memory_bytes && enough.holds(need)
    }

    /// Asks the store for what a task lacks, or for what it would lack if nothing else ran.
    fn recall(&mut self, now: Micros, wanted: u64, actions: &mut Vec<Action>) {
        let (all, free) = (self.capacity.resources.memory_bytes, self.free.memory_bytes);
        let (all, lent) = (all.unwrap_or_default(), self.loan.bytes);
        let lacking = wanted.saturating_sub(free.unwrap_or_default());
        let bytes = match lent.checked_sub(lacking) {
            Some(rest) => rest,
            None => lent.min(all.saturating_sub(wanted)),
        };
        let since = self.loan.idle_since.unwrap_or(now);
        let since = self.is_at_rest().then_some(since);
        self.loan.idle_since = since;
        if bytes == lent || self.loan.asked.is_some() {
            return;
        }
        let until = since.map(|since| since + PATIENCE_US);
        let is_last = until.is_some_and(|until| until <= now);
        if self.loan.is_stuck && !is_last {
            if let Some(until) = until {
                self.pools.send_idle_away(actions);
                self.set_deadline(until);
            }
            return;
        }
        self.loan.asked = Some(Asked { bytes, is_last });
        actions.push(Action::ShrinkStore { bytes });
    }

    /// Nothing runs, and no worker is on its way.
    fn is_at_rest(&self) -> bool {
        !self.is_busy() && !self.awaits_worker()
    }

    /// The root waits apart from the others.
    fn refuse_root(&mut self, actions: &mut Vec<Action>) {
        let root = self.apart.and_then(|root| self.queued.remove(&root));
        match root {
            Some(root) if self.refuses(&root, actions) => self.apart = None,
            root => root.into_iter().for_each(|root| self.enqueue(root)),
        }
    }

    /// Refuses a task that found no place, if the store keeps what it would need.
    pub(crate) fn refuses(&self, ready: &Ready, actions: &mut Vec<Action>) -> bool {
        let wanted = ready.need.resources.memory_bytes.unwrap_or_default();
        let all = self.capacity.resources.memory_bytes.unwrap_or(u64::MAX);
        let lent = self.loan.bytes;
        if !self.loan.gives_up || wanted <= all.saturating_sub(lent) {
            return false;
        }
        let [wanted, all, lent] = [wanted, all, lent].map(size);
        let lacking = format!(
            "needs {wanted} of memory, this machine offers {all}, of which {lent} are results in \
             memory that others still use or the disk has no room for"
        );
        let attempt = ready.attempt();
        actions.push(Action::Refuse { attempt, lacking });
        true
    }

    /// The store has all that is free, unless a task that declares memory runs or comes next.
    fn grow(&mut self, free: u64, actions: &mut Vec<Action>) {
        let bytes = self.loan.bound.min(self.loan.bytes.saturating_add(free));
        if bytes == self.loan.bytes
            || self.loan.asked.is_some()
            || self
                .placed
                .values()
                .any(|placed| declares(&placed.resources))
        {
            return;
        }
        let next = self.computation.first();
        let next = next.filter(|entry| is_current(&self.queued, entry));
        if next.is_some_and(|(_, next)| declares(&self.queued[&next].need.resources)) {
            return;
        }
        self.free.memory_bytes = Some(free - (bytes - self.loan.bytes));
        self.loan.bytes = bytes;
        actions.push(Action::GrowStore { bytes });
    }
}

fn declares(need: &Resources) -> bool {
    need.memory_bytes.is_some()
}
