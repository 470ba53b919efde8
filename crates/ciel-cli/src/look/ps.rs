//! `ciel ps`: runs and their tasks.

use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use ciel_view::inspect::{self, RunView, Tasks};
use ciel_view::records::{FunctionRecord, HeldRecord, TaskRecord};
use serde_json::{Value, json};

use super::{own_failure, store};
use crate::cli_error::CliError;
use crate::display::{self, columns, counted, duration, shortened, size};
use crate::named_commands::with_state;
use crate::options::{PsOptions, Shared};
use crate::paint::{Paint, paint_output};

/// Tasks of a run that are shown unless `--all` is given.
const TASKS_SHOWN_MAX: usize = 20;

/// Ended runs that are shown unless `--all` is given.
const ENDED_RUNS_SHOWN_MAX: usize = 10;

/// Characters of a command or reason in the table.
const CELL_CHARACTERS_MAX: usize = 60;

/// Shows all runs.
pub fn show(shared: &Shared, options: &PsOptions) -> Result<ExitCode, CliError> {
    let tasks = match options.all || options.output.json {
        true => Tasks::All,
        false => Tasks::First(TASKS_SHOWN_MAX),
    };
    let runs = inspect::runs(&shared.state, tasks)?;
    if options.output.json {
        return display::print_json(&runs.iter().map(run_value).collect::<Vec<Value>>());
    }
    if runs.is_empty() {
        return display::print(b"no runs\n");
    }
    let paint = paint_output(shared.colour);
    let live = runs.iter().filter(|run| run.live).count();
    let count_max = if options.all {
        runs.len()
    } else {
        live + ENDED_RUNS_SHOWN_MAX
    };
    let (shown, left_out) = runs.split_at(runs.len().min(count_max));
    let mut text = table(shown, options, shared.state_named.as_deref(), paint);
    if !left_out.is_empty() {
        let more = counted(left_out.len() as u64, "more run");
        text.push_str(&format!(
            "{}\n",
            paint.faint(&format!("… and {more} (--all)"))
        ));
    }
    display::print(text.as_bytes())
}

fn table(runs: &[RunView], options: &PsOptions, state: Option<&Path>, paint: Paint) -> String {
    let rows: Vec<Vec<String>> = std::iter::once(heading())
        .chain(runs.iter().map(run_row))
        .collect();
    let lines = columns(&rows, "");
    let mut text = format!("{}\n", paint.faint(&lines[0]));
    for (run, line) in runs.iter().zip(&lines[1..]) {
        let line = if run.live {
            paint.strong(line)
        } else {
            line.clone()
        };
        text.push_str(&format!("{line}\n"));
        if run.resumable {
            let way = format!("can be resumed: ciel resume {}", run.run.run);
            text.push_str(&format!("  {}\n", paint.hint(&with_state(&way, state))));
        }
        for (file, bytes) in &run.waiting {
            let waits = format!("{} wait for their turn in {file}", size(*bytes));
            text.push_str(&format!("  {}\n", paint.faint(&waits)));
        }
        if let Some(held) = &run.held {
            text.push_str(&format!("  {}\n", paint.faint(&held_words(held))));
        }
        text.push_str(&match options.store {
            true => store::lines(run, paint),
            false => task_lines(run, options.all, paint),
        });
    }
    text
}

/// What bounds of waiting output and of the disk do to a run.
fn held_words(held: &HeldRecord) -> String {
    let mut words = format!("{} held", counted(held.tasks, "task"));
    if held.paused > 0 {
        words += &format!(", {} paused", counted(held.paused, "command"));
    }
    if let Some(bound) = held.bound_bytes {
        words += &format!("; {} may wait", size(bound));
    }
    if held.room_is_scarce {
        words += "; little of --store-bytes is left";
    }
    if held.gave_way > 0 {
        words += &format!("; the bound gave way {}", counted(held.gave_way, "time"));
    }
    words
}

fn heading() -> Vec<String> {
    ["RUN", "STATE", "STARTED", "TIME", "TASKS", "JOB"]
        .map(str::to_string)
        .to_vec()
}

fn run_row(run: &RunView) -> Vec<String> {
    let time = run
        .end
        .as_ref()
        .map_or(String::new(), |end| duration(end.elapsed_us));
    let tasks = match (&run.end, &run.counts) {
        (Some(end), _) => end.counts.spawned.to_string(),
        (None, None) => String::new(),
        (None, Some(counts)) => format!("{}/{}", counts.ended(), counts.spawned()),
    };
    vec![
        run.run.run.clone(),
        state_words(run).to_string(),
        age(run.run.started_s),
        time,
        tasks,
        shortened(&run.run.command.join(" "), CELL_CHARACTERS_MAX),
    ]
}

fn state_words(run: &RunView) -> &'static str {
    match (&run.end, run.live) {
        _ if run.resumable => "interrupted",
        (Some(end), _) => match end.failure.as_deref() {
            None => "done",
            Some(failure) if failure.contains(": Cancelled: ") => "cancelled",
            Some(_) => "failed",
        },
        (None, true) => "live",
        (None, false) => "killed",
    }
}

/// How long ago a moment was, in its largest unit.
pub(super) fn age(started_s: u64) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let Some(seconds) = now.checked_sub(started_s) else {
        // The clock was set back since.
        return "in the future".to_string();
    };
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86400),
    }
}

/// The tasks that were looked at: what failed by itself and what lives, or all.
fn task_lines(run: &RunView, all: bool, paint: Paint) -> String {
    let rows: Vec<Vec<String>> = run.tasks.iter().map(task_row).collect();
    let mut text: String = columns(&rows, "  ")
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    if run.left_out > 0 {
        let more = counted(run.left_out, "more task");
        let more = match all {
            true => format!("… and {more}; all together:"),
            false => format!("… and {more} (--all)"),
        };
        text.push_str(&format!("  {}\n", paint.faint(&more)));
    }
    let functions = run.counts.iter().flat_map(|counts| &counts.functions);
    let is_in_place = functions.clone().any(|one| one.in_place > 0);
    if all && (run.left_out > 0 || is_in_place) {
        text.push_str(&function_lines(run));
    }
    text
}

/// How many tasks there were of each function, for a run that had more than are known one by one.
fn function_lines(run: &RunView) -> String {
    let functions = run.counts.iter().flat_map(|counts| &counts.functions);
    let rows: Vec<Vec<String>> = functions.map(function_row).collect();
    let lines = columns(&rows, "    ");
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn function_row(function: &FunctionRecord) -> Vec<String> {
    let counts = &function.counts;
    let parts = [
        (counts.finished, "finished"),
        (counts.failed, "failed"),
        (counts.cancelled, "cancelled"),
        (counts.unneeded, "not needed"),
        (counts.spawned - counts.ended(), "live"),
        (function.in_place, "of them in place"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    vec![
        function.what.clone(),
        counted(counts.spawned, "task"),
        parts.join(", "),
    ]
}

fn task_row(task: &TaskRecord) -> Vec<String> {
    let ran = if task.ran_us > 0 {
        duration(task.ran_us)
    } else {
        String::new()
    };
    let reason = task.reasons.first().map(String::as_str);
    let why = own_failure(task).or(reason).unwrap_or_default();
    vec![
        task.label(),
        task.state.words().to_string(),
        ran,
        task.place.clone(),
        shortened(why, CELL_CHARACTERS_MAX),
    ]
}

fn run_value(run: &RunView) -> Value {
    json!({
        "run": run.run,
        "state": state_words(run),
        "live": run.live,
        "resumable": run.resumable,
        "end": run.end,
        "waiting_bytes": run.waiting,
        "store": run.store,
        "held": run.held,
        "functions": run.counts.as_ref().map(|counts| &counts.functions),
        "tasks": run.tasks,
    })
}
