//! Looking at runs from outside: live ones are asked, ended ones have left their history.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ciel_store::{RunEntry, RunState, StateFolder};

use crate::error::ViewError;
use crate::records::{EndRecord, LogRecord, Record, RunRecord, TaskRecord};
use crate::socket;

/// The folder of a run in which failed Python tasks are kept, so that they can be run again.
pub const FAILED: &str = "failed";

/// A run as it can be seen from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct RunView {
    /// What was run.
    pub run: RunRecord,
    /// It has not ended.
    pub live: bool,
    /// It was broken off and can be resumed.
    pub resumable: bool,
    /// Its tasks: the ended ones as far as the history tells, then the live ones in serial order.
    pub tasks: Vec<TaskRecord>,
    /// Output that is not part of the ordered output.
    pub logs: Vec<LogRecord>,
    /// How it ended; absent while it lives, and when it was killed.
    pub end: Option<EndRecord>,
}

/// All runs of a state folder, oldest first; none if there is no such folder.
///
/// # Errors
/// Those of a state folder that cannot be read.
pub fn runs(state: &Path) -> Result<Vec<RunView>, ViewError> {
    let Some(folder) = StateFolder::open_existing(state)? else {
        return Ok(Vec::new());
    };
    Ok(folder.runs()?.iter().filter_map(view).collect())
}

/// Where a Python task that failed is kept, by its printed name, if it is kept.
pub fn failed_task(state: &Path, run: &str, label: &str) -> Option<PathBuf> {
    let folder = state.join("runs").join(run).join(FAILED);
    let file = folder.join(label.replace('/', "_"));
    file.is_file().then_some(file)
}

/// A run whose history has no beginning is one that is just being made.
fn view(entry: &RunEntry) -> Option<RunView> {
    let live = matches!(entry.state, RunState::Alive { .. });
    let mut records = parse(&std::fs::read(entry.path.join("history")).unwrap_or_default());
    if live {
        records.extend(parse(&socket::ask(&entry.id)));
    }
    let resumable = entry.state == RunState::Unended;
    let view = fold(records, live);
    view.map(|view| RunView { resumable, ..view })
}

/// The records of whole lines; a torn last one, or one of another version, is passed over.
fn parse(bytes: &[u8]) -> Vec<Record> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

fn fold(records: Vec<Record>, live: bool) -> Option<RunView> {
    let mut view: Option<RunView> = None;
    let mut places: HashMap<String, usize> = HashMap::new();
    for record in records {
        match (record, &mut view) {
            // The run goes on: what was known of its tasks still holds.
            (Record::Run(run), Some(view)) if view.run.run == run.run => {
                view.run = run;
                view.end = None;
            }
            (Record::Run(run), _) => {
                let (tasks, logs) = (Vec::new(), Vec::new());
                view = Some(RunView {
                    run,
                    live,
                    resumable: false,
                    tasks,
                    logs,
                    end: None,
                });
            }
            (Record::Task(task), Some(view)) => match places.get(&task.name) {
                Some(place) => view.tasks[*place] = *task,
                None => {
                    places.insert(task.name.clone(), view.tasks.len());
                    view.tasks.push(*task);
                }
            },
            (Record::Log(log), Some(view)) => view.logs.push(log),
            (Record::End(end), Some(view)) => view.end = Some(end),
            (_, None) => {}
        }
    }
    view
}
