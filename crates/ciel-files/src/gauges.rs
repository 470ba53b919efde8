//! Counts by which tests and benchmarks see what forks and writes have cost.
//!
//! Each thread has its own, and they are increased only where a closure has migrated or a buffer is
//! full. It does not know files.

use std::cell::Cell;

/// What one thread has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Nodes of the chain of strands: one for each closure that migrated, two for each closure of a
    /// scope and each fork by hand.
    pub nodes: u64,
    /// Pieces that were written to spill files, since their turn had not come.
    pub spilled_pieces: u64,
    /// Bytes of these.
    pub spilled_bytes: u64,
}

thread_local! {
    static GAUGES: Cell<Gauges> = const {
        Cell::new(Gauges { nodes: 0, spilled_pieces: 0, spilled_bytes: 0 })
    };
}

impl Gauges {
    /// What this thread has done so far.
    pub fn of_this_thread() -> Gauges {
        GAUGES.get()
    }
}

pub(crate) fn node_created() {
    let gauges = GAUGES.get();
    GAUGES.set(Gauges {
        nodes: gauges.nodes + 1,
        ..gauges
    });
}

pub(crate) fn spilled(bytes: u64) {
    let gauges = GAUGES.get();
    GAUGES.set(Gauges {
        spilled_pieces: gauges.spilled_pieces + 1,
        spilled_bytes: gauges.spilled_bytes + bytes,
        ..gauges
    });
}
