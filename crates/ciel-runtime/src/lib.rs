//! The shell around the machines: threads, sockets, processes, files.
//!
//! The one crate with tokio. It drives the pure machines (`ciel-graph`, `ciel-node`,
//! `ciel-ordered`) and decides nothing itself: what happened outside becomes an event, what a
//! machine wants becomes an act. The door is [`run`]; `ciel-view` looks at runs.
//! Where to read next: `core` (the machines under one lock), then `engine` (the threads),
//! `scripts`, `processes`, `output`, `io_thread`.

mod blocked;
pub mod carried_results;
mod catch_panic;
mod choice;
mod cleanup;
mod command_failure;
mod control;
mod core;
mod data_plane;
mod death;
pub mod difference;
pub mod dry_run;
mod engine;
mod error;
mod executors;
mod export_file;
mod exports;
mod failures;
mod file_stamp;
mod flat_file;
mod followers;
mod for_tests;
mod gate;
mod given_up;
mod history;
mod history_file;
mod in_place;
mod interrupts;
mod io_thread;
mod job;
mod keep_rule;
mod keeper;
mod kept;
mod kept_queue;
pub mod kept_results;
mod key;
mod largest;
mod layout;
mod looks;
mod lost;
mod memory;
mod moments;
mod objects;
mod observer;
mod open_files;
mod options;
mod ordered_files;
mod orders;
pub mod orphans;
mod output;
mod pipes;
mod plain_shell;
mod processes;
mod programs;
mod promotion;
mod recovery;
mod references;
mod released;
mod reruns;
mod retention;
mod room;
mod room_watch;
mod run;
mod script;
mod script_host;
mod scripts;
mod second_runs;
mod settings;
mod sources;
mod spawning;
pub mod state_location;
mod stopped_commands;
mod store_view;
mod streams;
mod tools;
mod tracing;
mod translate;
mod turns;
mod user_files;
mod watchdog;
mod workers;
mod workspace;

pub use blocked::Blocked;
pub use error::RunError;
pub use job::Job;
pub use observer::{Observer, Progress, Report};
pub use run::{Leaving, Outcome, run};
pub use settings::{Package, Python, Resume, ScriptError, Scripts, Settings};
