//! Counts by which tests and benchmarks see what forks and writes have cost.
//!
//! Each thread has its own, and they are increased only where a closure has migrated or a buffer is
//! full. It does not know files.

use std::cell::Cell;
use std::ops::Add;

/// What one thread has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Nodes of the chain of strands that were allocated. A closure that migrated and wrote, and a
    /// strand that was forked, use one each; a strand that writes between two forks uses another.
    pub nodes: u64,
    /// Nodes of these that were freed; not always by the thread that allocated them.
    pub nodes_freed: u64,
    /// Strands of which what they wrote was appended to that of the strand before.
    pub strands_joined: u64,
    /// Pieces that were written to spill files, since their turn had not come.
    pub spilled_pieces: u64,
    /// Bytes of these.
    pub spilled_bytes: u64,
    /// Pieces that were listed, where neighbours are one.
    pub extents_kept: u64,
    /// Listed pieces that went to their file. Nothing else is done to each piece.
    pub extents_appended: u64,
}

const NONE: Gauges = Gauges {
    nodes: 0,
    nodes_freed: 0,
    strands_joined: 0,
    spilled_pieces: 0,
    spilled_bytes: 0,
    extents_kept: 0,
    extents_appended: 0,
};

thread_local! {
    static GAUGES: Cell<Gauges> = const { Cell::new(NONE) };
}

impl Gauges {
    /// What this thread has done so far.
    pub fn of_this_thread() -> Gauges {
        GAUGES.get()
    }
}

impl Add for Gauges {
    type Output = Gauges;

    /// What two threads have done.
    fn add(self, other: Gauges) -> Gauges {
        Gauges {
            nodes: self.nodes + other.nodes,
            nodes_freed: self.nodes_freed + other.nodes_freed,
            strands_joined: self.strands_joined + other.strands_joined,
            spilled_pieces: self.spilled_pieces + other.spilled_pieces,
            spilled_bytes: self.spilled_bytes + other.spilled_bytes,
            extents_kept: self.extents_kept + other.extents_kept,
            extents_appended: self.extents_appended + other.extents_appended,
        }
    }
}

fn count(act: impl FnOnce(&mut Gauges)) {
    let mut gauges = GAUGES.get();
    act(&mut gauges);
    GAUGES.set(gauges);
}

pub(crate) fn node_created() {
    count(|gauges| gauges.nodes += 1);
}

pub(crate) fn node_freed() {
    count(|gauges| gauges.nodes_freed += 1);
}

pub(crate) fn strands_joined() {
    count(|gauges| gauges.strands_joined += 1);
}

pub(crate) fn spilled(bytes: u64) {
    count(|gauges| {
        gauges.spilled_pieces += 1;
        gauges.spilled_bytes += bytes;
    });
}

pub(crate) fn extent_kept() {
    count(|gauges| gauges.extents_kept += 1);
}

pub(crate) fn extent_appended() {
    count(|gauges| gauges.extents_appended += 1);
}
