//! `ciel why`: the reasons for a task's state, and its story.

use std::process::ExitCode;

use ciel_view::inspect::RunView;
use ciel_view::records::{TaskRecord, TaskState};
use serde_json::json;

use super::{find, has_ended, own_failure};
use crate::cli_error::CliError;
use crate::display::{self, counted, duration};
use crate::options::{Shared, TaskOptions};
use crate::paint::{Paint, paint_output};

/// Explains a task.
pub fn show(shared: &Shared, options: &TaskOptions) -> Result<ExitCode, CliError> {
    let (run, task) = find(shared, &options.task)?;
    let reasons = reasons(&run, &task);
    if options.output.json {
        let value = json!({"run": run.run.run, "task": task, "reasons": reasons});
        return display::print_json(&[value]);
    }
    let text = told(&run, &task, &reasons, paint_output(shared.colour));
    display::print(text.as_bytes())
}

fn told(run: &RunView, task: &TaskRecord, reasons: &[String], paint: Paint) -> String {
    let label = paint.strong(&task.label());
    let mut text = String::new();
    for reason in reasons {
        text.push_str(&format!("{label}: {reason}\n"));
    }
    let mut facts = vec![format!("a {} task of run {}", task.executor, run.run.run)];
    if !task.place.is_empty() {
        facts.push(format!("spawned at {}", task.place));
    }
    if let Some(parent) = &task.parent {
        facts.push(format!("by {parent}"));
    }
    if task.attempts > 1 {
        facts.push(format!("started {} times", task.attempts));
    }
    text.push_str(&format!("{}\n", paint.faint(&facts.join(", "))));
    for how in &task.streams {
        text.push_str(&format!("  {how}\n"));
    }
    for (moment_us, words) in &task.story {
        text.push_str(&format!("{:>12.3} s  {words}\n", *moment_us as f64 / 1e6));
    }
    text
}

/// One sentence for each reason; at least one.
fn reasons(run: &RunView, task: &TaskRecord) -> Vec<String> {
    if !run.live && !has_ended(task) {
        return vec![format!(
            "was {} when its run was killed",
            task.state.words()
        )];
    }
    if let Some(failure) = own_failure(task) {
        return vec![format!("{}: {failure}", task.state.words())];
    }
    match (task.reasons.is_empty(), task.state) {
        (false, _) => task.reasons.clone(),
        (true, TaskState::Finished) => {
            let attempts = counted(u64::from(task.attempts.max(1)), "attempt");
            let rerun = task.rerun.as_ref();
            let because = rerun.map_or(String::new(), |reason| format!("; {reason}"));
            vec![format!(
                "finished: it ran for {} in {attempts}{because}",
                duration(task.ran_us)
            )]
        }
        (true, state) => vec![state.words().to_string()],
    }
}
