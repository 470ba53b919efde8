//! The history of a run: records in a folder of the run, one JSON value a line, bounded in bytes.
//!
//! | file | holds |
//! |---|---|
//! | `run` | what was run, and how it ended |
//! | `counts` | how many tasks there were of each function, exact |
//! | `failed` | the first tasks that failed by themselves |
//! | `tasks`, `tasks.old` | the newest other tasks that ended, and further failures |
//! | `logs`, `logs.old` | the newest output of tasks that is not part of the ordered output |
//!
//! So what a person looks at first costs little to read, however long the run was. It does not know
//! who watches a run. Read next: [`Writer`], then [`Reader`].

mod reader;
mod writer;

pub use reader::Reader;
pub use writer::Writer;

use crate::limits::HISTORY_BYTES_MAX;

const RUN: &str = "run";
const COUNTS: &str = "counts";
const FAILED: &str = "failed";
const TASKS: &str = "tasks";
const LOGS: &str = "logs";

/// The file that took the lines before those of the file of this name.
fn old(name: &str) -> String {
    format!("{name}.old")
}

/// Bytes of the parts of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of the first failures.
    pub failed: u64,
    /// Of the newest other tasks.
    pub tasks: u64,
    /// Of the tasks' own output.
    pub logs: u64,
}

impl Default for Bounds {
    /// Together less than the bound of a history: the rest is for the counts, and for what was run.
    fn default() -> Bounds {
        Bounds {
            failed: HISTORY_BYTES_MAX / 8,
            tasks: HISTORY_BYTES_MAX / 4,
            logs: HISTORY_BYTES_MAX / 4,
        }
    }
}
