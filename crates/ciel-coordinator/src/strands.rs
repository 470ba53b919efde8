//! What the graph and running tasks do to an ordered stream.
//!
//! A strand beneath a discarded one has no place, and refusals of its acts are ignored. All others
//! are returned. It does not know which stream it works on. Read next: `coordinator`, which has two
//! of them.

use ciel_graph::StrandChange;
use ciel_model::StrandKey;
use ciel_ordered::{After, OrderedError, OrderedStream, Piece, Sink};

/// Writes a piece of a strand's output, behind so many actions of it.
pub(crate) fn write_to(
    stream: &mut OrderedStream,
    strand: StrandKey,
    after: u64,
    (sink, piece): (Sink, Piece),
) -> Result<(), OrderedError> {
    let strand = ciel_ordered::StrandKey(strand.0);
    let reached = stream.reach(strand, after);
    unless_given_up(reached.and_then(|()| stream.write_to(strand, sink, piece)))
}

/// A discarded strand has no place for further output.
fn unless_given_up(done: Result<(), OrderedError>) -> Result<(), OrderedError> {
    match done {
        Err(OrderedError::Unknown { .. } | OrderedError::Closed { .. }) => Ok(()),
        done => done,
    }
}

/// The failure of a task whose output was refused.
pub(crate) fn told(refusal: OrderedError) -> Result<(), String> {
    match refusal {
        OrderedError::Mismatch { offset, .. } => Err(format!(
            "in its replay it wrote different output, from byte {offset} on"
        )),
        OrderedError::Diverged { .. } => {
            Err("in its replay it spawned before it had repeated all of its earlier output".into())
        }
        _ => Ok(()),
    }
}

/// Applies a change in the tree of strands.
pub(crate) fn apply_change(
    stream: &mut OrderedStream,
    change: StrandChange,
) -> Result<(), OrderedError> {
    let key = |strand: StrandKey| ciel_ordered::StrandKey(strand.0);
    unless_given_up(match change {
        StrandChange::Root(strand) => stream.open_root(key(strand)),
        StrandChange::Spawned {
            parent,
            action,
            child,
            live,
        } => {
            let reached = stream.reach(key(parent), action);
            let spawned = reached.and_then(|()| stream.spawn(key(parent), key(child)));
            if live {
                spawned
            } else {
                spawned.and_then(|()| stream.hold(key(child)))
            }
        }
        StrandChange::Committed(strand) => stream.commit(key(strand)),
        // A replay that failed before it came as far as before ends short; what it had written
        // stays, and the second call closes it as it is.
        StrandChange::Closed(strand) => match stream.close(key(strand)) {
            Err(OrderedError::Mismatch { .. }) => stream.close(key(strand)),
            closed => closed,
        },
        StrandChange::Discarded(strand) => stream.discard(key(strand), After::Stop),
        StrandChange::Cut(strand) => stream.cut(key(strand)),
        StrandChange::Skipped(strand) => stream.discard(key(strand), After::Skip),
        StrandChange::Marked(strand) => stream.mark(key(strand)),
        StrandChange::RolledBack { strand, to } => stream.roll_back(key(strand), to),
        StrandChange::Withdrawn(strand) => stream.withdraw(key(strand)),
    })
}
