//! What the graph's strands are to the ordered streams.
//!
//! It translates between the two machines, which do not know each other. Read next: `core`, which
//! calls it, and the stream itself, `ciel_ordered::OrderedStream`.

use ciel_graph::StrandChange;
use ciel_model::StrandKey;
use ciel_ordered::{After, OrderedError, OrderedStream};

/// Writes a piece of a strand's output.
///
/// # Errors
/// What to tell when a strand that is run again writes something else than before.
pub(crate) fn write(
    stream: &mut OrderedStream,
    strand: StrandKey,
    piece: ciel_ordered::Piece,
) -> Result<(), String> {
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

/// Applies a change to one ordered stream. A strand beneath one that was given up has no place;
/// what concerns it concerns nobody.
pub(crate) fn apply(stream: &mut OrderedStream, change: StrandChange) {
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
        StrandChange::Rewound(strand) => stream.rewind(key(strand)),
        StrandChange::RolledBack(strand) => stream.rollback(key(strand)),
    };
}
