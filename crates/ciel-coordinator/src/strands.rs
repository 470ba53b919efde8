//! What the graph and running tasks do to an ordered stream.
//!
//! A strand beneath one that was given up has no place; what concerns it concerns nobody. It does
//! not know which stream it works on. Read next: `coordinator`, which has two of them.

use ciel_graph::StrandChange;
use ciel_model::StrandKey;
use ciel_ordered::{After, OrderedStream};

/// Writes a piece of a strand's output; what to tell when a replay writes something else.
pub(crate) fn write_to(
    stream: &mut OrderedStream,
    strand: StrandKey,
    piece: ciel_ordered::Piece,
) -> Result<(), String> {
    use ciel_ordered::OrderedError;
    match stream.write(ciel_ordered::StrandKey(strand.0), piece) {
        Ok(()) => Ok(()),
        Err(OrderedError::Mismatch { offset, .. }) => Err(format!(
            "run again, it wrote something else, from byte {offset} of its output on"
        )),
        Err(OrderedError::Diverged { .. }) => {
            Err("run again, it spawned before it had written all it had written before".into())
        }
        // A strand that was given up has no place for what still comes.
        Err(_) => Ok(()),
    }
}

/// Applies a change in the tree of strands.
pub(crate) fn apply_change(stream: &mut OrderedStream, change: StrandChange) {
    let key = |strand: StrandKey| ciel_ordered::StrandKey(strand.0);
    let _ = match change {
        StrandChange::Root(strand) => stream.open_root(key(strand)),
        StrandChange::Spawned {
            parent,
            child,
            live,
        } => {
            let spawned = stream.spawn(key(parent), key(child));
            if live {
                spawned
            } else {
                spawned.and_then(|()| stream.hold(key(child)))
            }
        }
        StrandChange::Committed(strand) => stream.commit(key(strand)),
        // A replay that was cut short is told of at the first closing; the second one closes.
        StrandChange::Closed(strand) => stream
            .close(key(strand))
            .or_else(|_| stream.close(key(strand))),
        StrandChange::Discarded(strand) => stream.discard(key(strand), After::Stop),
        StrandChange::Skipped(strand) => stream.discard(key(strand), After::Skip),
        StrandChange::Marked(strand) => stream.mark(key(strand)),
        StrandChange::Rewound(strand) => stream.rewind(key(strand)),
        StrandChange::RolledBack(strand) => stream.rollback(key(strand)),
    };
}
