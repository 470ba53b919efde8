//! `ciel runs`: the runs of the folder, each in one line, with what they take of the disk.

use std::process::ExitCode;

use ciel_view::listing::{self, RunSummary, Standing};
use serde_json::{Value, json};

use super::ps::age;
use crate::cli_error::CliError;
use crate::display::{self, columns, counted, duration, shortened, size};
use crate::options::{JsonOption, Shared};
use crate::paint::{Paint, paint_output};

/// Characters of a command in the table.
const COMMAND_CHARACTERS_MAX: usize = 60;

/// Shows all runs, live ones first, of each kind the newest first.
pub fn show(shared: &Shared, options: &JsonOption) -> Result<ExitCode, CliError> {
    let mut runs = listing::runs(&shared.state)?;
    runs.reverse();
    runs.sort_by_key(|run| !matches!(run.standing, Standing::Running { .. }));
    if options.json {
        return display::print_json(&runs.iter().map(run_value).collect::<Vec<Value>>());
    }
    if runs.is_empty() {
        return display::print(b"no runs\n");
    }
    display::print(table(&runs, paint_output(shared.colour)).as_bytes())
}

fn table(runs: &[RunSummary], paint: Paint) -> String {
    let heading = ["RUN", "STATE", "STARTED", "TIME", "TASKS", "SIZE", "JOB"];
    let rows: Vec<Vec<String>> = std::iter::once(heading.map(str::to_string).to_vec())
        .chain(runs.iter().map(run_row))
        .collect();
    let lines = columns(&rows, "");
    let mut text = format!("{}\n", paint.faint(&lines[0]));
    for line in &lines[1..] {
        text.push_str(&format!("{line}\n"));
    }
    let count = counted(runs.len() as u64, "run");
    let bytes = runs.iter().map(|run| run.bytes).sum();
    text.push_str(&format!(
        "{}\n",
        paint.faint(&format!("{count}, {} on disk", size(bytes)))
    ));
    text
}

fn run_row(run: &RunSummary) -> Vec<String> {
    vec![
        run.id.clone(),
        standing_words(&run.standing),
        age(run.started_s),
        run.elapsed_us.map_or(String::new(), duration),
        run.tasks.map_or(String::new(), |tasks| tasks.to_string()),
        size(run.bytes),
        shortened(&run.command.join(" "), COMMAND_CHARACTERS_MAX),
    ]
}

fn standing_words(standing: &Standing) -> String {
    match standing {
        Standing::Running { process: None } => "running".to_string(),
        Standing::Running {
            process: Some(process),
        } => format!("running in process {process}"),
        Standing::EndedWell => "ended well".to_string(),
        Standing::Failed { .. } => "failed".to_string(),
        Standing::Resumable => "interrupted, can be resumed".to_string(),
        Standing::BrokenOff => "interrupted".to_string(),
    }
}

fn run_value(run: &RunSummary) -> Value {
    let (state, process, failure) = match &run.standing {
        Standing::Running { process } => ("running", *process, None),
        Standing::EndedWell => ("ended-well", None, None),
        Standing::Failed { failure } => ("failed", None, Some(failure)),
        Standing::Resumable | Standing::BrokenOff => ("interrupted", None, None),
    };
    json!({
        "run": run.id,
        "state": state,
        "process": process,
        "failure": failure,
        "resumable": run.standing == Standing::Resumable,
        "command": run.command,
        "folder": run.folder,
        "started_s": run.started_s,
        "elapsed_us": run.elapsed_us,
        "tasks": run.tasks,
        "bytes": run.bytes,
    })
}
