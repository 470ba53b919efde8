//! The command line ring: whole commands, with exit code, standard output and standard error as
//! snapshots in which what differs from run to run is filtered.

mod cancel;
mod jobs;
mod journal;
mod look;
mod output;
mod report;
mod runs;
mod scripts;
mod signals;
mod structured;
mod support;
#[path = "../../../ciel-view/tests/trace/check.rs"]
mod trace_check;
mod traces;
mod usage;
