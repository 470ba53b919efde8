//! A host that runs nothing.

use ciel_skywriting::host::{Handle, Host, Keeping, SpawnRequest};

/// Keeps all that it may, and takes all that is promoted.
#[derive(Default)]
pub struct Takes {
    /// How many it has taken.
    pub spawned: usize,
    /// Whether somebody could run them.
    pub has_idle_thread: bool,
}

impl Host for Takes {
    fn keeping(&mut self, _action: u64) -> Keeping {
        Keeping::Kept
    }

    fn has_idle_thread(&self) -> bool {
        self.has_idle_thread
    }

    fn spawn(&mut self, _request: SpawnRequest) {
        self.spawned += 1;
    }

    fn construct(
        &mut self,
        _action: u64,
        _bytes: Vec<u8>,
        _references: Vec<Handle>,
    ) -> Result<(), String> {
        Ok(())
    }

    fn print(&mut self, _actions: u64, _line: &str) {}
}
