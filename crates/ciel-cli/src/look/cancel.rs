//! `ciel cancel`: ends one task of a live run, and what it has spawned.

use std::process::ExitCode;

use ciel_view::inspect::{self, RunView};
use ciel_view::records::TaskRecord;
use serde_json::json;

use super::{find_live, has_ended};
use crate::cli_error::CliError;
use crate::display;
use crate::options::{Shared, TaskOptions};

/// Cancels a task.
pub fn cancel(shared: &Shared, options: &TaskOptions) -> Result<ExitCode, CliError> {
    let (run, task) = find_live(shared, &options.task)?;
    if has_ended(&task) || !run.live || !inspect::cancel(&run.run.run, &task.name) {
        return Err(not_live(&run, &task));
    }
    if options.output.json {
        return display::print_json(&[json!({"run": run.run.run, "cancelled": task})]);
    }
    let text = format!(
        "cancelled {}, with all tasks that it has spawned\n",
        task.label()
    );
    display::print(text.as_bytes())
}

fn not_live(run: &RunView, task: &TaskRecord) -> CliError {
    let label = task.label();
    let message = match (has_ended(task), run.live) {
        (true, _) => format!("{label} has ended: it is {}", task.state.words()),
        (false, true) => format!("{label} has ended meanwhile"),
        (false, false) => format!("{label} does not run: run {} was killed", run.run.run),
    };
    CliError::usage("task.ended", message).with_hint("`ciel ps` lists the live tasks")
}
