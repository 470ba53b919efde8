//! `ciel run -n`: what a run would take and what it would run, and where knowledge ends.
//!
//! It prints on standard output: here that is the data. It does not know how it is told. Read next:
//! `ciel_runtime::dry_run`.

use std::process::ExitCode;

use ciel_runtime::dry_run::{self, DryRun, DryRunError, Fate, ForetoldTask};
use ciel_runtime::{Job, Settings};
use serde_json::{Value, json};

use crate::cli_error::CliError;
use crate::code_now;
use crate::display::{self, counted};

/// Tells what a run of the job would do.
pub fn show(settings: &Settings, job: &Job<'_>, is_json: bool) -> Result<ExitCode, CliError> {
    let mut trouble = None;
    let code_now = || {
        code_now::of_job(settings)
            .map_err(|why| trouble = Some(why))
            .ok()
    };
    let told = dry_run::foretell(settings, job, code_now).map_err(refused)?;
    let Some(told) = told else {
        let words = "no earlier run of this job has left a trace: all of its tasks would run\n";
        return match is_json {
            true => display::print_json(&[json!({"run": null, "tasks": []})]),
            false => display::print(words.as_bytes()),
        };
    };
    if is_json {
        return display::print_json(&[value(&told, trouble.as_deref())]);
    }
    display::print(text(&told, trouble.as_deref()).as_bytes())
}

fn refused(error: DryRunError) -> CliError {
    match error {
        DryRunError::State(error) => error.into(),
        DryRunError::Kept(error) => CliError::usage("kept.unusable", error.to_string()),
    }
}

fn value(told: &DryRun, trouble: Option<&str>) -> Value {
    let task = |one: &ForetoldTask| {
        let (fate, reason) = words(&one.fate);
        json!({"task": one.task.to_string(), "fate": fate, "reason": reason})
    };
    json!({
        "run": told.run,
        "resumed": told.is_resumed,
        "edited": told.is_edited,
        "complete": !told.is_cut,
        "code_unknown": trouble,
        "tasks": told.tasks.iter().map(task).collect::<Vec<Value>>(),
    })
}

/// What would happen, and why.
fn words(fate: &Fate) -> (&'static str, String) {
    match fate {
        Fate::Taken => ("taken", String::new()),
        Fate::Runs(reason) => ("runs", display::from_here(&reason.to_string())),
        Fate::ComputesAgain => (
            "runs",
            "kept, but the last run ended well: see --kept".to_string(),
        ),
        Fate::NotKept => ("runs", "not kept".to_string()),
        Fate::Unknown(giver) => ("unknown", format!("it takes what {giver} gives")),
        Fate::CodeUnknown => ("unknown", "its code cannot be looked at".to_string()),
    }
}

/// A line for each function and fate, in the order of the tasks, then the sum.
fn text(told: &DryRun, trouble: Option<&str>) -> String {
    let mut lines: Vec<(&ForetoldTask, u64)> = Vec::new();
    for one in &told.tasks {
        let is_alike = |(first, _): &&mut (&ForetoldTask, u64)| is_alike(first, one);
        match lines.iter_mut().find(is_alike) {
            Some((_, count)) => *count += 1,
            None => lines.push((one, 1)),
        }
    }
    let mut text = String::new();
    for (first, count) in &lines {
        let (fate, reason) = words(&first.fate);
        let reason = match reason.is_empty() {
            true => reason,
            false => format!(": {reason}"),
        };
        let others = match count {
            1 => String::new(),
            _ => format!(" (and {} like it)", count - 1),
        };
        text.push_str(&format!("{fate:<8} {}{others}{reason}\n", first.task));
    }
    text.push_str(&end(told, trouble));
    text
}

/// Whether two tasks share a line.
fn is_alike(first: &ForetoldTask, other: &ForetoldTask) -> bool {
    let is_same_fate = match (&first.fate, &other.fate) {
        (Fate::Unknown(one), Fate::Unknown(other)) => one.what == other.what,
        (one, other) => one == other,
    };
    first.task.what == other.task.what && is_same_fate
}

/// How many there are of each, and what nothing is known of.
fn end(told: &DryRun, trouble: Option<&str>) -> String {
    let count = |fate: &str| {
        let tasks = told.tasks.iter();
        tasks.filter(|one| words(&one.fate).0 == fate).count() as u64
    };
    let mut text = format!(
        "{} of {} taken, {} would run, {} unknown; told from run {}\n",
        count("taken"),
        counted(told.tasks.len() as u64, "task"),
        count("runs"),
        count("unknown"),
        told.run
    );
    if told.is_resumed {
        text.push_str("that run was interrupted: it would be resumed, with all that it finished\n");
    }
    if told.is_edited {
        text.push_str("the code has changed since: what else it would spawn is not known\n");
    }
    if let Some(why) = trouble {
        text.push_str(&format!("code of Python tasks: {why}\n"));
    }
    if told.is_cut {
        text.push_str("that run had more tasks than are written down\n");
    }
    text
}
