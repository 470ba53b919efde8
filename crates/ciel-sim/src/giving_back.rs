//! How the store of a scenario gives memory back: late, and sometimes not enough until somebody
//! lets something go.
//!
//! It does not know why. Read next: `driver`.

use ciel_engine::Event;

use crate::world::{Happening, World};

impl World<'_> {
    pub(crate) fn shrink_store(&mut self, bytes: u64) {
        assert_eq!(self.store.asked, None, "one request at a time");
        assert!(bytes < self.engine.node().lent_to_store());
        self.store.asked = Some(bytes);
        self.store.requests += 1;
        self.schedule_soon(Happening::StoreShrank);
    }

    pub(crate) fn grow_store(&mut self, bytes: u64) {
        assert_eq!(self.store.asked, None, "it is to shrink");
        assert!(bytes <= self.engine.node().lent_to_store());
    }

    /// Every third time it gives back less, and has freed something a little later.
    pub(crate) fn give_memory_back(&mut self) {
        let Some(asked) = self.store.asked.take() else {
            return;
        };
        let lent = self.engine.node().lent_to_store();
        let is_kept = self.store.chance.one_in(3);
        let kept = self.store.chance.below((lent - asked) as usize + 1) as u64;
        let bytes = asked + if is_kept { kept } else { 0 };
        if bytes > asked {
            self.store.refusals += 1;
            self.schedule_soon(Happening::StoreFreed);
        }
        self.submit(Event::StoreShrank { bytes });
    }
}
