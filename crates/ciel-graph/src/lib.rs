//! The pure machine of the coordinator: the dynamic task graph.
//!
//! One door: [`Graph::handle`] takes an event and appends actions. It decides what may run, what
//! waits for what, what a failure means and when the job is over. It knows no sockets, files,
//! clocks or languages, nor where tasks run: `ciel-node` places them, the runtime performs the
//! actions, the simulator performs them in virtual time. Read next: [`event`], then `graph`.

mod ahead;
mod cancel;
mod check;
mod checkpoint;
mod child_names;
mod children;
mod deduplicated;
mod duplicate;
pub mod event;
mod first;
mod first_of;
#[cfg(test)]
mod for_tests;
mod functions;
mod graph;
mod holders;
mod kept;
mod known;
mod known_output;
mod later;
mod lineage;
mod losses;
mod lost_files;
mod objects;
mod outcome;
mod pairs;
mod policy;
mod reconstruct;
mod recovery;
mod release;
mod replay;
mod replay_inputs;
mod rest;
mod rollback;
mod second_runs;
mod settle;
mod spawn;
mod story;
mod stragglers;
mod strand_change;
mod streams;
mod table;
mod task;
mod times;
mod turn;
mod verdict;
mod view;
mod wait;

pub use ahead::{Ahead, Awaited};
pub use event::{
    Action, Assignment, Carriage, Checkpoint, Continuation, Entry, Event, JobOutcome, Output,
    Policy, Step, StrandChange, StreamInput, TaskSummary, Until, Wait,
};
pub use first::First;
pub use functions::FunctionCounts;
pub use graph::Graph;
pub use second_runs::{Comparison, Given};
pub use story::{Happening, Moment};
pub use streams::NotDirect;
pub use view::{Counts, Situation, TaskView};
