//! Everything of a run that survives its process, and the fold that brings it back.
//!
//! A [`Coordinator`] is the task graph together with the ordered output. All that ever changes it
//! comes in as a [`Record`]: events for the graph, and output of tasks. So a caller that keeps the
//! records in order can make an equal coordinator later, by folding them from the beginning or from
//! a snapshot.
//!
//! Pure: it knows no file, socket, clock or thread, nor who keeps the records. It does not know
//! where tasks run: that is `ciel-node`'s, and nothing of that survives. Read next:
//! [`coordinator`].

pub mod coordinator;
mod record;
mod strands;

pub use coordinator::{Coordinator, FoldError, Recorder};
pub use record::{RECORD_FORMAT, Record};
