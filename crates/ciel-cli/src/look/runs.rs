//! `ciel runs`: the runs of the folder, each in one line, with what they take of disk and memory.

use std::collections::BTreeMap;
use std::process::ExitCode;

use ciel_runtime::kept_results::{self, Usage};
use ciel_view::listing::{self, RunSummary, Standing};
use serde_json::{Value, json};

use super::ps::age;
use crate::cli_error::CliError;
use crate::display::{self, columns, counted, duration, shortened, size};
use crate::options::{JsonOption, Shared};
use crate::paint::{Paint, paint_output};

/// Characters of a command in the table.
const COMMAND_CHARACTERS_MAX: usize = 60;

/// The column of kept results, which is there if there are any.
const KEPT_COLUMN: usize = 6;

/// Shows all runs, live ones first, of each kind the newest first.
pub fn show(shared: &Shared, options: &JsonOption) -> Result<ExitCode, CliError> {
    let mut runs = listing::runs(&shared.state)?;
    runs.reverse();
    runs.sort_by_key(|run| !matches!(run.standing, Standing::Running { .. }));
    // What cannot be read now is shown as nothing: the runs are what was asked for.
    let kept = kept_results::usage_by_run(&shared.state).unwrap_or_default();
    if options.json {
        let values = runs.iter().map(|run| run_value(run, usage_of(&kept, run)));
        return display::print_json(&values.collect::<Vec<Value>>());
    }
    if runs.is_empty() && kept.is_empty() {
        return display::print(b"no runs\n");
    }
    display::print(table(&runs, &kept, paint_output(shared.colour)).as_bytes())
}

/// What runs have kept, by their ids.
type Kept = BTreeMap<String, Usage>;

fn usage_of(kept: &Kept, run: &RunSummary) -> Usage {
    kept.get(&run.id).copied().unwrap_or_default()
}

fn table(runs: &[RunSummary], kept: &Kept, paint: Paint) -> String {
    let heading = [
        "RUN", "STATE", "STARTED", "TIME", "TASKS", "SIZE", "KEPT", "JOB",
    ];
    let mut rows: Vec<Vec<String>> = std::iter::once(heading.map(str::to_string).to_vec())
        .chain(runs.iter().map(|run| run_row(run, usage_of(kept, run))))
        .collect();
    if kept.is_empty() {
        rows.iter_mut()
            .for_each(|row| drop(row.remove(KEPT_COLUMN)));
    }
    let lines = columns(&rows, "");
    let mut text = format!("{}\n", paint.faint(&lines[0]));
    for line in &lines[1..] {
        text.push_str(&format!("{line}\n"));
    }
    let count = counted(runs.len() as u64, "run");
    let bytes = runs.iter().map(|run| run.bytes).sum();
    let mut last = format!("{count}, {} on disk", size(bytes));
    let memory_bytes: u64 = runs.iter().map(|run| run.memory_bytes).sum();
    if memory_bytes > 0 {
        last.push_str(&format!(", {} in memory", size(memory_bytes)));
    }
    if !kept.is_empty() {
        let results = counted(
            kept.values().map(|usage| usage.entries).sum(),
            "kept result",
        );
        let bytes = kept.values().map(|usage| usage.bytes).sum();
        last.push_str(&format!("; {results}, {}", size(bytes)));
    }
    text.push_str(&format!("{}\n", paint.faint(&last)));
    text
}

fn run_row(run: &RunSummary, kept: Usage) -> Vec<String> {
    vec![
        run.id.clone(),
        standing_words(&run.standing),
        age(run.started_s),
        run.elapsed_us.map_or(String::new(), duration),
        run.tasks.map_or(String::new(), |tasks| tasks.to_string()),
        size_of(run),
        match kept.entries {
            0 => String::new(),
            entries => format!("{entries}, {}", size(kept.bytes)),
        },
        shortened(&run.command.join(" "), COMMAND_CHARACTERS_MAX),
    ]
}

fn size_of(run: &RunSummary) -> String {
    match run.memory_bytes {
        0 => size(run.bytes),
        bytes => format!("{}, {} in memory", size(run.bytes), size(bytes)),
    }
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

fn run_value(run: &RunSummary, kept: Usage) -> Value {
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
        "memory_bytes": run.memory_bytes,
        "kept_results": kept.entries,
        "kept_bytes": kept.bytes,
    })
}
