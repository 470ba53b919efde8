//! What the graph decides about the tree of ordered output.
//!
//! It does not know what strands write. Read next: `event`.

use ciel_model::StrandKey;

/// A change in the tree of ordered output, in program order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrandChange {
    /// The strand of a root task starts.
    Root(StrandKey),
    /// The output of a child belongs at this point of its parent's output.
    Spawned {
        /// The strand of the parent.
        parent: StrandKey,
        /// The index of the spawn among the parent's actions.
        action: u64,
        /// The strand of the child.
        child: StrandKey,
        /// Whether its output may be released before it commits.
        live: bool,
    },
    /// The output of the strand's attempt so far is final.
    Committed(StrandKey),
    /// The strand writes no more.
    Closed(StrandKey),
    /// The strand will not finish: the serial output ends in it.
    Discarded(StrandKey),
    /// The strand is cancelled: what the serial frontier can reach of it stays, and the rest is
    /// dropped. Output after it is released as usual.
    Cut(StrandKey),
    /// The strand has no place in the output.
    Skipped(StrandKey),
    /// A replay of the strand would start here.
    Marked(StrandKey),
    /// The strand will be replayed from its start or its last mark. Output from its action `to` on
    /// is withdrawn unless it is released; the replay must repeat the output before that.
    RolledBack {
        /// The strand.
        strand: StrandKey,
        /// The first action that is undone; [`StrandChange::NOTHING`] for a mere replay.
        to: u64,
    },
    /// The uncommitted output of the strand's failed attempt is dropped.
    Withdrawn(StrandKey),
}

impl StrandChange {
    /// As `to` of a rollback: no action is undone.
    pub const NOTHING: u64 = u64::MAX;
}
