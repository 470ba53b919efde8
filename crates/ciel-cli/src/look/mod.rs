//! Queries of runs: their list, the reasons for a task's state, its output.
//!
//! `ciel-view` brings the records, of live and of ended runs alike; here they are only shown.

pub mod cancel;
pub mod diff;
pub mod journal;
pub mod logs;
pub mod ps;
pub mod replay;
pub mod report;
pub mod runs;
mod store;
pub mod why;

use std::collections::BTreeSet;

use ciel_view::inspect::{self, Found, RunView};
use ciel_view::records::{TaskRecord, TaskState};

use crate::cli_error::CliError;
use crate::display::counted;
use crate::nearest::nearest;
use crate::options::Shared;

/// Tasks listed when several may be meant.
const LISTED_MAX: usize = 20;

/// The one task that `text` means, in the first run that has any such.
fn find(shared: &Shared, text: &str) -> Result<(RunView, TaskRecord), CliError> {
    only(find_all(shared, text)?, text)
}

/// The same; a task that has ended is meant only if no live one can be.
fn find_live(shared: &Shared, text: &str) -> Result<(RunView, TaskRecord), CliError> {
    let mut run = find_all(shared, text)?;
    if run.live && !run.tasks.iter().all(has_ended) {
        run.tasks.retain(|task| !has_ended(task));
    }
    only(run, text)
}

fn find_all(shared: &Shared, text: &str) -> Result<RunView, CliError> {
    match inspect::find(&shared.state, text)? {
        Found::Run(run) => Ok(*run),
        Found::Nothing(names) => Err(unknown(names.as_ref(), text)),
    }
}

fn only(run: RunView, text: &str) -> Result<(RunView, TaskRecord), CliError> {
    match run.tasks.as_slice() {
        [task] => {
            let task = task.clone();
            Ok((run, task))
        }
        _ => Err(several(&run, text)),
    }
}

fn several(run: &RunView, text: &str) -> CliError {
    let matching = &run.tasks;
    let line = |task: &TaskRecord| format!("\n  {}  {}", task.label(), task.state.words());
    let mut message = format!(
        "{text} is ambiguous; it matches {} in run {}:",
        counted(matching.len() as u64, "task"),
        run.run.run
    );
    message.extend(matching.iter().take(LISTED_MAX).map(line));
    if matching.len() > LISTED_MAX {
        message.push_str(&format!("\n  … and {} more", matching.len() - LISTED_MAX));
    }
    CliError::usage("task.several", message).with_hint("add the digits after the @")
}

fn unknown(names: Option<&BTreeSet<String>>, text: &str) -> CliError {
    let Some(names) = names else {
        return CliError::usage("run.none", "there are no runs in this folder's state").with_hint(
            "change to the folder where the job was started, or name its state with --state",
        );
    };
    let complaint = CliError::usage("task.unknown", format!("no run has a task {text}"));
    let what = text.split('@').next().unwrap_or(text);
    match nearest(what, names.iter().map(String::as_str)) {
        Some(name) if name != what => complaint.with_hint(format!("did you mean {name}?")),
        _ => complaint.with_hint("`ciel ps --all` lists the tasks"),
    }
}

/// Whether a task has come to its end.
fn has_ended(task: &TaskRecord) -> bool {
    match task.state {
        TaskState::Finished | TaskState::Failed | TaskState::Cancelled => true,
        TaskState::Dormant
        | TaskState::Waiting
        | TaskState::Ready
        | TaskState::Running
        | TaskState::Suspended => false,
    }
}

/// Why a task failed, without what is known: its label, and that it failed or was cancelled.
fn own_failure(task: &TaskRecord) -> Option<&str> {
    let failure = task.failure.as_deref()?;
    let own = failure
        .strip_prefix(&format!("{}: ", task.label()))
        .unwrap_or(failure);
    let known = ["TaskError: ", "Cancelled: "]
        .into_iter()
        .find(|kind| own.starts_with(kind));
    Some(&own[known.map_or(0, str::len)..])
}
