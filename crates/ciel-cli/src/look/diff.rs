//! `ciel diff`: what differs between two runs of a job, and what of it came first.
//!
//! Tasks that differ alike share a line. Read next: `ciel_runtime::difference`.

use std::process::ExitCode;

use ciel_runtime::difference::{self, Difference, DifferenceKind, TaskDifference};
use ciel_runtime::kept_results::{self, Identities};
use ciel_view::listing::{self, RunSummary};
use serde_json::{Value, json};

use crate::cli_error::CliError;
use crate::display::{self, counted};
use crate::options::{DiffOptions, Shared};
use crate::paint::{Paint, paint_output};
use crate::resume;

/// Compares two runs.
pub fn show(shared: &Shared, options: &DiffOptions) -> Result<ExitCode, CliError> {
    let runs = listing::runs(&shared.state)?;
    let before = resume::called(&runs, &options.before)?;
    let now = resume::called(&runs, &options.now)?;
    expect_same_job(before, now)?;
    let given = identities(shared, before)?;
    let given_now = identities(shared, now)?;
    let is_cut = given.is_cut || given_now.is_cut;
    let found = difference::between(&given, &given_now);
    if options.output.json {
        return display::print_json(&[value((before, now), &found, is_cut)]);
    }
    let mut text = text((before, now), &found, paint_output(shared.colour));
    if is_cut {
        text.push_str("the runs had more tasks than are written down\n");
    }
    display::print(text.as_bytes())
}

/// Positions have equal names only in runs of one job.
fn expect_same_job(before: &RunSummary, now: &RunSummary) -> Result<(), CliError> {
    if before.command == now.command {
        return Ok(());
    }
    let message = format!(
        "runs {} and {} are of different jobs: {} and {}",
        before.id,
        now.id,
        before.command.join(" "),
        now.command.join(" ")
    );
    let hint = "only runs with the same command can be compared: `ciel runs` lists them";
    Err(CliError::usage("diff.jobs", message).with_hint(hint))
}

fn identities(shared: &Shared, run: &RunSummary) -> Result<Identities, CliError> {
    let folder = shared.state.join("runs").join(&run.id);
    kept_results::identities(&folder).map_err(|error| {
        let message = format!(
            "cannot read what the tasks of run {} were given: {error}",
            run.id
        );
        CliError::usage("diff.unreadable", message)
    })
}

type Runs<'a> = (&'a RunSummary, &'a RunSummary);

fn text((before, now): Runs<'_>, found: &Difference, paint: Paint) -> String {
    let mut text = String::new();
    for (heading, is_first) in [("first", true), ("then", false)] {
        let those = found.tasks.iter();
        let those: Vec<&TaskDifference> = those
            .filter(|task| task.kind.is_first() == is_first)
            .collect();
        if those.is_empty() {
            continue;
        }
        text.push_str(&format!("{}\n", paint.strong(&format!("{heading}:"))));
        for (task, others) in folded(&those) {
            let others = match others {
                0 => String::new(),
                _ => format!(" (and {others} like it)"),
            };
            let how = words((before, now), &task.kind);
            text.push_str(&format!("  {}{others}: {how}\n", task.task));
        }
    }
    let differing = counted(found.tasks.len() as u64, "task");
    let verb = if found.tasks.len() == 1 {
        "differs"
    } else {
        "differ"
    };
    let sum = format!("{differing} {verb}, {} equal", found.equal);
    text.push_str(&format!("{}\n", paint.faint(&sum)));
    text
}

/// The first of those that are alike, with how many others there are.
fn folded<'a>(tasks: &[&'a TaskDifference]) -> Vec<(&'a TaskDifference, u64)> {
    let mut lines: Vec<(&TaskDifference, u64)> = Vec::new();
    for task in tasks {
        let alike = lines.iter_mut().find(|(first, _)| is_alike(first, task));
        match alike {
            Some((_, others)) => *others += 1,
            None => lines.push((task, 0)),
        }
    }
    lines
}

fn is_alike(first: &TaskDifference, other: &TaskDifference) -> bool {
    use DifferenceKind::Follows;
    let is_same_kind = match (&first.kind, &other.kind) {
        (
            Follows { input, from },
            Follows {
                input: other,
                from: by,
            },
        ) => input == other && from.what == by.what,
        (kind, other) => kind == other,
    };
    first.task.what == other.task.what && is_same_kind
}

fn words((before, now): Runs<'_>, kind: &DifferenceKind) -> String {
    match kind {
        DifferenceKind::Changed(reason) => display::from_here(&reason.to_string()),
        DifferenceKind::Follows { input, from } => format!("input changed: {input}, from {from}"),
        DifferenceKind::OtherResult => "same code and inputs, another result".to_string(),
        DifferenceKind::EndedBefore => format!("ended well in run {} only", before.id),
        DifferenceKind::EndedNow => format!("ended well in run {} only", now.id),
        DifferenceKind::Missing => format!("in run {} only", before.id),
        DifferenceKind::New => format!("in run {} only", now.id),
    }
}

fn value(runs: Runs<'_>, found: &Difference, is_cut: bool) -> Value {
    let task = |task: &TaskDifference| {
        let from = match &task.kind {
            DifferenceKind::Follows { from, .. } => Some(from.to_string()),
            _ => None,
        };
        json!({
            "task": task.task.to_string(),
            "kind": kind_word(&task.kind),
            "reason": words(runs, &task.kind),
            "first": task.kind.is_first(),
            "from": from,
        })
    };
    json!({
        "before": runs.0.id,
        "now": runs.1.id,
        "equal": found.equal,
        "complete": !is_cut,
        "tasks": found.tasks.iter().map(task).collect::<Vec<Value>>(),
    })
}

fn kind_word(kind: &DifferenceKind) -> &'static str {
    match kind {
        DifferenceKind::Changed(_) => "changed",
        DifferenceKind::Follows { .. } => "follows",
        DifferenceKind::OtherResult => "other-result",
        DifferenceKind::EndedBefore => "ended-before",
        DifferenceKind::EndedNow => "ended-now",
        DifferenceKind::Missing => "missing",
        DifferenceKind::New => "new",
    }
}
