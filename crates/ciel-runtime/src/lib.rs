//! The shell around the machines: threads, sockets, processes, files.
//!
//! The one crate with tokio. It drives the pure machines (`ciel-graph`, `ciel-node`,
//! `ciel-ordered`) and decides nothing itself: what happened outside becomes an event, what a
//! machine wants becomes an act. The door is [`run`]; `ciel-view` looks at runs.
//! Where to read next: `core` (the machines under one lock), then `engine` (the threads),
//! `scripts`, `processes`, `output`, `shell`.

mod checkpoints;
mod choice;
mod cleanup;
mod control;
mod core;
mod desk;
mod engine;
mod error;
mod executors;
mod face;
mod failures;
mod followers;
mod guarded;
mod hindrance;
mod history;
mod history_file;
mod job;
mod keeping;
mod key;
mod layout;
mod moments;
mod objects;
mod options;
mod orders;
mod output;
mod pipes;
pub mod place;
mod processes;
mod programs;
mod recovery;
mod references;
mod refused;
mod released;
pub mod remains;
mod run;
mod script;
mod script_numbers;
mod scripts;
mod settings;
mod shell;
mod spawning;
mod tracing;
mod translate;
mod turns;
mod user_files;
mod workers;

pub use error::RunError;
pub use face::{Face, Progress, Report};
pub use hindrance::Hindrance;
pub use job::Job;
pub use run::{Outcome, run};
pub use settings::{Python, Resume, ScriptTrouble, Scripts, Settings};
