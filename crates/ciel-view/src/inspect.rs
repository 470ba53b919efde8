//! Looking at runs: live ones are asked, ended ones have left their history.
//!
//! A query costs as much as it shows: it reads the first failures and the counts, and asks a live
//! run for as many tasks as fit on a page. Read next: [`crate::history`], [`crate::socket`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ciel_store::{RunEntry, RunState, StateFolder};

use crate::error::ViewError;
use crate::history::Reader;
use crate::limits::LIVE_TASKS_MAX;
use crate::records::{
    CountsRecord, EndRecord, HeldRecord, LogRecord, Record, RunRecord, StoreRecord, TaskRecord,
};
use crate::socket::{self, Request};

/// The folder of a run in which failed Python tasks are kept, for `ciel replay`.
pub const FAILED: &str = "failed";

/// A run as another process sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunView {
    /// What was run.
    pub run: RunRecord,
    /// It has not ended.
    pub live: bool,
    /// It was broken off and can be resumed.
    pub resumable: bool,
    /// How many tasks there were; absent if its process was lost at once.
    pub counts: Option<CountsRecord>,
    /// Tasks: the ended ones in the order of their ends, then the live ones in serial order.
    pub tasks: Vec<TaskRecord>,
    /// The number of further tasks that are not listed: not requested, or not known one by one.
    pub left_out: u64,
    /// Bytes of output that wait behind the serial frontier of a live run, by file.
    pub waiting: BTreeMap<String, u64>,
    /// The bytes of its objects; absent if the run was killed.
    pub store: Option<StoreRecord>,
    /// What is held because too much output waits, if that is bounded.
    pub held: Option<HeldRecord>,
    /// How it ended; absent while it lives, and when it was killed.
    pub end: Option<EndRecord>,
}

/// Which tasks of a run are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tasks {
    /// Those that failed by themselves, and live ones: at most so many of each.
    First(usize),
    /// All that are known.
    All,
}

/// All runs of a state folder, live ones first, of each kind the newest first; none if there is no
/// such folder.
///
/// # Errors
/// Those of a state folder that cannot be read.
pub fn runs(state: &Path, tasks: Tasks) -> Result<Vec<RunView>, ViewError> {
    let entries = entries(state)?;
    Ok(entries.iter().filter_map(|run| view(run, tasks)).collect())
}

/// One run with all tasks that are known of it; none if there is no such run.
///
/// # Errors
/// Those of a state folder that cannot be read.
pub fn run(state: &Path, id: &str) -> Result<Option<RunView>, ViewError> {
    let entries = entries(state)?;
    let entry = entries.iter().find(|entry| entry.id == id);
    Ok(entry.and_then(|entry| view(entry, Tasks::All)))
}

/// What was found of tasks that a person named.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The first run that has any such, with those tasks only.
    Run(Box<RunView>),
    /// No run has any: what the tasks of all runs are called, each name once. None if there are no
    /// runs.
    Nothing(Option<BTreeSet<String>>),
}

/// The tasks that `text`, as typed by a person, may mean, of the first run that has any such: those
/// of a function that is called so, or else those whose names begin so.
///
/// # Errors
/// Those of a state folder that cannot be read.
pub fn find(state: &Path, text: &str) -> Result<Found, ViewError> {
    let entries = entries(state)?;
    let mut names = None;
    for run in &entries {
        let Some(mut view) = view(run, Tasks::First(0)) else {
            continue;
        };
        let reader = Reader::new(&run.path.join(HISTORY));
        let mut tasks = reader.tasks(|task| task.answers_to(text));
        if view.live {
            let request = Request::Find(text.to_string());
            add_live(&mut tasks, socket::ask(&run.id, &request));
        }
        if tasks.iter().any(|task| task.what == text) {
            tasks.retain(|task| task.what == text);
        }
        if !tasks.is_empty() {
            view.tasks = tasks;
            return Ok(Found::Run(Box::new(view)));
        }
        let functions = view.counts.unwrap_or_default().functions;
        let names: &mut BTreeSet<String> = names.get_or_insert_default();
        names.extend(functions.into_iter().map(|function| function.what));
    }
    Ok(Found::Nothing(names))
}

/// Cancels a task of a live run, by its whole name. Whether it was live.
pub fn cancel(run: &str, name: &str) -> bool {
    let answer = socket::ask(run, &Request::Cancel(name.to_string()));
    let is_task = |record: &Record| matches!(record, Record::Task(_));
    answer.iter().any(is_task)
}

/// What is kept of a task's own output, by the task's label.
pub fn logs(state: &Path, run: &str, task: &str) -> Vec<LogRecord> {
    Reader::new(&state.join("runs").join(run).join(HISTORY)).logs(task)
}

/// Where a Python task that failed is kept, by its printed name, if it is kept.
pub fn failed_task(state: &Path, run: &str, label: &str) -> Option<PathBuf> {
    let folder = state.join("runs").join(run).join(FAILED);
    let file = folder.join(label.replace('/', "_"));
    file.is_file().then_some(file)
}

/// The folder of a run's history in the run's folder.
pub(crate) const HISTORY: &str = "history";

fn entries(state: &Path) -> Result<Vec<RunEntry>, ViewError> {
    let Some(folder) = StateFolder::open_existing(state)? else {
        return Ok(Vec::new());
    };
    let mut entries = folder.runs()?;
    entries.reverse();
    entries.sort_by_key(|run| !is_live(run));
    Ok(entries)
}

fn is_live(entry: &RunEntry) -> bool {
    matches!(entry.state, RunState::Alive { .. })
}

/// A run whose history has no beginning is one that is just being made.
fn view(entry: &RunEntry, tasks: Tasks) -> Option<RunView> {
    let reader = Reader::new(&entry.path.join(HISTORY));
    let live = is_live(entry);
    let mut view = RunView {
        run: reader.run()?,
        live,
        resumable: entry.state == RunState::Unended,
        counts: reader.counts(),
        tasks: Vec::new(),
        left_out: 0,
        waiting: BTreeMap::new(),
        store: None,
        held: None,
        end: reader.end().filter(|_| !live),
    };
    view.store = view.end.as_ref().and_then(|end| end.store.clone());
    add_ended(&mut view, &reader, tasks);
    if live {
        let most = match tasks {
            Tasks::First(most) => most,
            Tasks::All => LIVE_TASKS_MAX,
        };
        let mut answer = socket::ask(&entry.id, &Request::Tasks(most));
        answer.retain_mut(|record| match record {
            Record::Waiting(waiting) => {
                view.waiting = std::mem::take(&mut waiting.bytes);
                view.held = waiting.held.take();
                false
            }
            Record::Store(store) => {
                view.store = Some(std::mem::take(store));
                false
            }
            _ => true,
        });
        let counts = answer
            .iter()
            .position(|one| matches!(one, Record::Counts(_)));
        if let Some(Record::Counts(counts)) = counts.map(|at| answer.remove(at)) {
            let told = answer.len() as u64;
            view.left_out += (counts.spawned() - counts.ended()).saturating_sub(told);
            view.counts = Some(counts);
        }
        add_live(&mut view.tasks, answer);
    }
    if tasks == Tasks::All {
        let known = view.tasks.len() as u64;
        let told = view.counts.as_ref().map_or(0, CountsRecord::described);
        view.left_out = told.saturating_sub(known);
    }
    Some(view)
}

fn add_ended(view: &mut RunView, reader: &Reader, tasks: Tasks) {
    match tasks {
        Tasks::All => view.tasks = reader.tasks(|_| true),
        Tasks::First(most) if view.run.resumed => {
            // A failure may have been followed by a success, in another process of the run.
            let mut failed = reader.tasks(|_| true);
            failed.retain(TaskRecord::is_origin);
            view.left_out = failed.len().saturating_sub(most) as u64;
            failed.truncate(most);
            view.tasks = failed;
        }
        Tasks::First(most) => {
            let (failed, count) = reader.failures(most);
            view.left_out = count - failed.len() as u64;
            view.tasks = failed;
        }
    }
}

/// Adds what a live run has answered; a task that the history knows as ended lives once more.
fn add_live(tasks: &mut Vec<TaskRecord>, answer: Vec<Record>) {
    let live: Vec<TaskRecord> = answer
        .into_iter()
        .filter_map(|record| match record {
            Record::Task(task) => Some(*task),
            Record::Run(_)
            | Record::Counts(_)
            | Record::Waiting(_)
            | Record::Store(_)
            | Record::Moment(_)
            | Record::Missed { .. }
            | Record::Log(_)
            | Record::End(_) => None,
        })
        .collect();
    let names: BTreeSet<&str> = live.iter().map(|task| task.name.as_str()).collect();
    tasks.retain(|task| !names.contains(task.name.as_str()));
    tasks.extend(live);
}
