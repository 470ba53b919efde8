//! `ciel logs`: what a task wrote beside the job's ordered output.

use std::process::ExitCode;

use ciel_view::inspect;
use ciel_view::records::LogRecord;
use serde_json::{Value, json};

use super::find;
use crate::cli_error::CliError;
use crate::display;
use crate::options::{Shared, TaskOptions};

/// Prints the kept output of a task.
pub fn show(shared: &Shared, options: &TaskOptions) -> Result<ExitCode, CliError> {
    let (run, task) = find(shared, &options.task)?;
    let label = task.label();
    let logs = inspect::logs(&shared.state, &run.run.run, &label);
    if options.output.json {
        let value = |log: &LogRecord| json!({"run": run.run.run, "log": log});
        return display::print_json(&logs.iter().map(value).collect::<Vec<Value>>());
    }
    if logs.is_empty() {
        eprintln!(
            "{label} has no log: it is {}, and none of its output is kept",
            task.state.words()
        );
    }
    let mut text = String::new();
    for log in logs {
        text.push_str(&log.text);
        if !log.text.ends_with('\n') {
            text.push('\n');
        }
    }
    display::print(text.as_bytes())
}
