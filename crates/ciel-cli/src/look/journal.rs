//! `ciel journal`: what a run has recorded, one record a line.
//!
//! The engine reads the records and knows what they mean; here they become words. Read next:
//! `ciel_view::journal`.

use std::process::ExitCode;

use ciel_view::journal::{self, Act, Entry};
use ciel_view::listing::{self, RunSummary, Standing};

use crate::cli_error::CliError;
use crate::display::{self, counted, duration, size};
use crate::options::{JournalOptions, Shared};
use crate::paint::{Paint, paint_output};
use crate::resume;

/// Bytes that are gathered before they are printed.
const GATHERED_BYTES_MAX: usize = 64 << 10;

/// Shows the records of one run.
pub fn show(shared: &Shared, options: &JournalOptions) -> Result<ExitCode, CliError> {
    let runs = listing::runs(&shared.state)?;
    let run = meant(&runs, options.run.as_deref())?;
    let paint = paint_output(shared.colour);
    let mut text = String::new();
    if !options.json {
        text.push_str(&heading(paint));
    }
    let has_journal = journal::entries(&shared.state, &run.id, |entry| {
        text.push_str(&match options.json {
            true => json(&entry),
            false => line(&entry),
        });
        match text.len() > GATHERED_BYTES_MAX {
            true => display::print(std::mem::take(&mut text).as_bytes()).map(drop),
            false => Ok(()),
        }
    })?;
    match has_journal {
        true => display::print(text.as_bytes()),
        false => Err(none(run)),
    }
}

/// The run whose id begins so, or the newest that has a journal.
fn meant<'a>(runs: &'a [RunSummary], beginning: Option<&str>) -> Result<&'a RunSummary, CliError> {
    if let Some(beginning) = beginning {
        return resume::called(runs, beginning);
    }
    let has_journal = |run: &&RunSummary| match run.standing {
        Standing::Running { .. } | Standing::Resumable => true,
        Standing::EndedWell | Standing::Failed { .. } | Standing::BrokenOff => false,
    };
    runs.iter().rev().find(has_journal).ok_or_else(|| {
        CliError::usage(
            "journal.none",
            "no run of this folder is live or can be resumed",
        )
        .with_hint("`ciel runs` lists the runs; --state names another folder")
    })
}

fn none(run: &RunSummary) -> CliError {
    let message = format!("run {} has no journal", run.id);
    let hint = "an ended run has none, nor has one with --serial or --durable never, or a Python \
                session; `ciel ps --all` and `ciel why` show its tasks";
    CliError::usage("journal.none", message).with_hint(hint)
}

fn json(entry: &Entry) -> String {
    let value = serde_json::to_value(entry).expect("an entry can be encoded");
    format!("{value}\n")
}

fn heading(paint: Paint) -> String {
    let heading = format!("{:>8}  {:>12}  {:>10}  WHAT", "RECORD", "TIME", "SIZE");
    format!("{}\n", paint.faint(&heading))
}

fn line(entry: &Entry) -> String {
    let number = entry
        .record
        .map_or(String::new(), |number| number.to_string());
    let time = entry
        .at_us
        .map_or(String::new(), |time| format!("{:.3} s", time as f64 / 1e6));
    let size = size(entry.bytes);
    format!(
        "{number:>8}  {time:>12}  {size:>10}  {}\n",
        words(&entry.act)
    )
}

/// One line about what happened.
fn words(act: &Act) -> String {
    match act {
        Act::Snapshot { until, live, tasks } => snapshot(*until, *live, *tasks),
        Act::Began {
            keep_going,
            fail_fast,
            ordered_errors,
        } => began([*keep_going, *fail_fast, *ordered_errors]),
        Act::TakenUp { lost } => taken_up(*lost),
        Act::FilesLost { lost } => files_lost(*lost),
        Act::Submitted { task, executor } => format!("{task} submitted, for {executor}"),
        Act::Placed { task, attempt: 0 } => format!("{task} got a slot"),
        Act::Placed { task, attempt } => format!("{task} got a slot, attempt {}", attempt + 1),
        Act::Spawned {
            task,
            child,
            place,
            again,
            ..
        } => spawned(task, child, place, *again),
        Act::Made { task, length } => format!("{task} constructed an object of {}", size(*length)),
        Act::Published { task, length, .. } => format!("{task} published {}", size(*length)),
        Act::Asked {
            task,
            question,
            length,
        } => format!("{task} observed {question}: {}", size(*length)),
        Act::Waited {
            task,
            references,
            first,
            limit_us,
            checkpoint,
            ..
        } => waits(task, &awaited(*references, *first), *limit_us, *checkpoint),
        Act::Cancels { task, references } => with_references(task, "cancels", *references),
        Act::OpenedOutput { .. } | Act::Reopened { .. } => opened(act),
        Act::ReleasedReferences {
            task,
            references: n,
        } => with_references(task, "released", *n),
        Act::Watched { task } => format!("{task} watches a reference"),
        Act::Finished {
            task, length: 0, ..
        } => format!("{task} finished"),
        Act::Finished { task, length, .. } => format!("{task} finished with {}", size(*length)),
        Act::TailSpawned { task, successor } => format!("{task} continues as {successor}"),
        Act::Failed { failure, .. } => format!("failed: {}", first_line(failure)),
        Act::Lost { task, .. } => format!("{task} lost with its process"),
        Act::Recalled { task } => format!("{task} fetched the inputs of its replay"),
        Act::ResultFound { .. } | Act::ResultKnown { .. } | Act::ResultMissing { .. } => {
            looked_up(act)
        }
        Act::RolledBack { task, to } => format!("{task} rolled back to action {to}"),
        Act::CopyLost { task } => format!("{task} lost the process that kept its state"),
        Act::CancelRequested { task } => format!("{task} is to be cancelled"),
        Act::JobCancelled { failure } => format!("job cancelled: {}", first_line(failure)),
        Act::Ticked => "time limits were checked".to_string(),
        Act::Refused { task, failure } => format!("{task} refused: {}", first_line(failure)),
        Act::Opened { path } => format!("{path} is an ordered file from here on"),
        Act::Wrote {
            task,
            stream,
            length,
            beginning,
        } => wrote(task, stream, *length, beginning),
        Act::Unfinished => "bytes at the end are not a complete record".to_string(),
    }
}

fn snapshot(until: u64, live: u64, tasks: u64) -> String {
    let tasks = counted(tasks, "task");
    format!("snapshot of the state up to record {until}: {tasks}, {live} of them live")
}

fn opened(act: &Act) -> String {
    match act {
        Act::OpenedOutput {
            task,
            output,
            direct: false,
        } => format!("{task} opened output {output} as a stream"),
        Act::OpenedOutput { task, output, .. } => {
            format!("{task} passes output {output} directly to its reader")
        }
        Act::Reopened { task } => {
            format!("{task} opened a stream again, restarted to read it whole")
        }
        _ => unreachable!("the caller has seen what it is"),
    }
}

fn taken_up(lost: u64) -> String {
    let resumed = "the run was resumed by another process";
    match lost {
        0 => resumed.to_string(),
        _ => format!("{resumed}; {} lost", counted(lost, "object")),
    }
}

fn files_lost(lost: u64) -> String {
    format!("{} lost, to be recomputed", counted(lost, "file"))
}

fn with_references(task: &str, does: &str, count: u64) -> String {
    format!("{task} {does} {}", counted(count, "reference"))
}

fn began(options: [bool; 3]) -> String {
    let names = ["keep going", "fail fast", "ordered standard error"];
    let given = names.iter().zip(options).filter(|(_, given)| *given);
    let given: Vec<&str> = given.map(|(name, _)| *name).collect();
    match given.is_empty() {
        true => "the run started".to_string(),
        false => format!("the run started: {}", given.join(", ")),
    }
}

fn spawned(task: &str, child: &str, place: &str, again: bool) -> String {
    let place = match place {
        "" => String::new(),
        place => format!(" at {place}"),
    };
    let again = if again { ", replayed" } else { "" };
    format!("{task} spawned {child}{place}{again}")
}

fn waits(task: &str, awaited: &str, limit_us: Option<u64>, checkpoint: Option<u64>) -> String {
    let limit = limit_us.map_or(String::new(), |limit| {
        format!(", {} at most", duration(limit))
    });
    let kept = checkpoint.map_or(String::new(), |bytes| {
        format!("; its state of {} is kept", size(bytes))
    });
    format!("{task} waits for {awaited}{limit}{kept}")
}

/// What came of a lookup among kept results.
fn looked_up(act: &Act) -> String {
    match act {
        Act::ResultMissing { task, reason } => format!("{task} has no kept result: {reason}"),
        Act::ResultFound { task, .. } => format!("{task} took its kept result"),
        Act::ResultKnown { task, .. } => format!("{task} is known by its digest"),
        _ => unreachable!("the caller has seen that it is a lookup"),
    }
}

fn awaited(references: u64, first: bool) -> String {
    match first {
        true => format!("the first of {}", counted(references, "reference")),
        false => counted(references, "reference"),
    }
}

fn wrote(task: &str, stream: &str, length: u64, beginning: &str) -> String {
    let shown = match beginning {
        "" => String::new(),
        text => format!(": {text:?}"),
    };
    format!("{task} wrote {} to {stream}{shown}", size(length))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
