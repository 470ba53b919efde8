//! What a run of a job would take and what it would run, told from the job's last run.
//!
//! It walks that run's tasks up to the first change: a task that would run may give something else,
//! so nothing is known of those that take what it gave. It runs no task and writes nothing. What
//! functions of a Python job are now is asked of whoever calls. Read next: `ciel_kept::identities`.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use ciel_kept::{Found, KeptError, KeptResults, Parts, SharedFound, SharedResults, TaskIdentity};
use ciel_model::{Digest, FileRead, FunctionCode, Label, Reached, RerunReason};
use ciel_store::{RunState, StateFolder};
use ciel_view::RunDescription;
use rustc_hash::FxHashMap;

use crate::error::RunError;
use crate::executors::skywriting;
use crate::job::Job;
use crate::keep_rule::has_ended_badly;
use crate::keeper::{anywhere, in_surroundings, writes_files};
use crate::layout::code_folder;
use crate::settings::{Resume, Settings};
use crate::{difference, kept_results, key, tools};

/// What would happen to the tasks of the last run.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    /// The id of the last run.
    pub run: String,
    /// The run would be resumed, with all that it has finished.
    pub is_resumed: bool,
    /// The code of the job is not that of the last run.
    pub is_edited: bool,
    /// The tasks, in the order in which the last run came to them.
    pub tasks: Vec<ForetoldTask>,
    /// Tasks may be missing, as there were too many to write all down.
    pub is_cut: bool,
}

/// What would happen to a task.
#[derive(Clone, Debug, PartialEq)]
pub struct ForetoldTask {
    /// The task.
    pub task: Label,
    /// What would happen to it.
    pub fate: Fate,
}

/// What would happen to a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// Its kept result would be taken.
    Taken,
    /// It would run, because of this.
    Runs(RerunReason),
    /// It would run although its result is kept: the last run ended well, and it is not marked.
    ComputesAgain,
    /// It would run: it has ended well, and its result was not kept or is gone.
    NotKept,
    /// That is not known: it takes what this task gives, which would run.
    Unknown(Label),
    /// That is not known: its function is not among those that can be looked at.
    CodeUnknown,
}

/// The code of the functions of a Python job as they are now: for each function that is a task, by
/// name, what it reaches, itself first. Several functions may have one name.
pub type CodeNow = FxHashMap<Arc<str>, Vec<Vec<FunctionCode>>>;

/// The folder in which a Python job finds its modules.
pub fn job_folder(settings: &Settings) -> PathBuf {
    code_folder(settings)
}

/// Tells what a run would do; none if no earlier run of the job has left a trace.
///
/// `code_now` is called at most once, for a job with tasks in Python.
///
/// # Errors
/// Those of the state folder and of the index of kept results.
pub fn foretell(
    settings: &Settings,
    job: &Job<'_>,
    code_now: impl FnOnce() -> Option<CodeNow>,
) -> Result<Option<DryRun>, DryRunError> {
    let Some(state) = StateFolder::open_existing(&settings.state).map_err(RunError::State)? else {
        return Ok(None);
    };
    let runs = state.runs().map_err(RunError::State)?;
    let job_key = key::job_key(settings);
    let described = |run| Some((run, RunDescription::read(run)?));
    let mut of_job = runs.iter().rev().filter_map(described);
    let last = of_job.find(|(run, description)| {
        description.job == job_key && !matches!(run.state, RunState::Alive { .. })
    });
    let Some((run, description)) = last else {
        return Ok(None);
    };
    let identities = kept_results::identities(&run.path).unwrap_or_default();
    let is_new = settings.resume == Resume::New;
    let is_edited = key::run_key(settings, job).is_none_or(|key| key != description.key);
    let is_python = matches!(job, Job::Python);
    let code_now = match is_python && identities.tasks.iter().any(has_code) {
        true => code_now(),
        false => None,
    };
    let script_now = match job {
        Job::Script(script) => Some(skywriting::functions(script)),
        Job::Python | Job::Session(_) => None,
    };
    let walk = Walk {
        store: kept_results::open(&settings.state)?,
        shared: shared_results(settings)?,
        anywhere: anywhere(settings.strict_shell),
        takes: settings.takes_kept() || !is_new && has_ended_badly(&runs, &job_key),
        code_now,
        script_now,
        is_edited,
        files: identities
            .files
            .iter()
            .map(|(path, digest)| (*digest, path.clone()))
            .collect(),
        givers: FxHashMap::default(),
        digests: RefCell::default(),
    };
    Ok(Some(DryRun {
        run: run.id.clone(),
        is_resumed: run.state == RunState::Unended && !is_edited && !is_new,
        is_edited,
        is_cut: identities.is_cut,
        tasks: walk.foretold(&identities.tasks)?,
    }))
}

/// The results of several users, if the settings name a folder of them that is there.
fn shared_results(settings: &Settings) -> Result<Option<SharedResults>, KeptError> {
    let folder = settings.kept_folder.as_deref();
    let folder = folder.filter(|folder| folder.is_dir());
    let trusted = settings.trusted_users.clone();
    let looked_at = folder.map(|folder| SharedResults::look_at(folder, trusted));
    looked_at.transpose()
}

/// Why nothing can be told.
#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    /// The state folder.
    #[error(transparent)]
    State(#[from] RunError),
    /// The index of kept results.
    #[error(transparent)]
    Kept(#[from] KeptError),
}

struct Walk {
    store: Option<KeptResults>,
    /// Results of several users, if such a folder was named.
    shared: Option<SharedResults>,
    /// The surroundings of these, and of results that were unpacked.
    anywhere: Digest,
    /// Tasks that are not marked take what is kept.
    takes: bool,
    /// None if that is not known.
    code_now: Option<CodeNow>,
    /// The functions of the job's script, if it is one.
    script_now: Option<Vec<FunctionCode>>,
    is_edited: bool,
    /// Files of the user's by the digests that they had.
    files: FxHashMap<Digest, Arc<str>>,
    /// Which tasks gave what, and whether they would be taken.
    givers: FxHashMap<Digest, (Label, bool)>,
    /// Of files that were read for this walk; none if there is no such file.
    digests: RefCell<FxHashMap<Arc<str>, Option<Digest>>>,
}

impl Walk {
    fn foretold(mut self, tasks: &[TaskIdentity]) -> Result<Vec<ForetoldTask>, KeptError> {
        let mut foretold = Vec::with_capacity(tasks.len());
        for task in tasks {
            let label = difference::label(task);
            let fate = self.fate(task)?;
            for output in task.gave.iter().flat_map(|gave| &gave.outputs) {
                let giver = (label.clone(), fate == Fate::Taken);
                self.givers.insert(*output, giver);
            }
            foretold.push(ForetoldTask { task: label, fate });
        }
        Ok(foretold)
    }

    fn fate(&self, task: &TaskIdentity) -> Result<Fate, KeptError> {
        if let Some(fate) = self.code_fate(task) {
            return Ok(fate);
        }
        if let Some(input) = self.changed_file(task) {
            return Ok(Fate::Runs(RerunReason::InputChanged(input)));
        }
        if let Some(tool) = self.changed_tool(task) {
            return Ok(Fate::Runs(RerunReason::ToolChanged(tool)));
        }
        let inputs = task.given.parts.inputs.iter();
        let mut givers = inputs.filter_map(|input| self.givers.get(&input.digest));
        if let Some((giver, _)) = givers.find(|(_, is_taken)| !is_taken) {
            return Ok(Fate::Unknown(giver.clone()));
        }
        self.kept_fate(task)
    }

    /// What would happen to a task that is given what it was given before.
    fn kept_fate(&self, task: &TaskIdentity) -> Result<Fate, KeptError> {
        let place = Digest(task.given.name);
        let found = match &self.store {
            Some(store) => {
                let parts = &task.given.parts;
                store.peek(
                    &[parts.clone(), in_surroundings(parts, self.anywhere)],
                    place,
                )?
            }
            None => Found::Nothing(RerunReason::New),
        };
        Ok(match found {
            Found::Nothing(_) if self.is_shared(&task.given.parts) => Fate::Taken,
            Found::Entry(entry) => match entry.read.iter().find(|file| self.has_changed(file)) {
                Some(file) => Fate::Runs(tools::reason(&file.path)),
                None if self.takes || task.given.is_marked => Fate::Taken,
                None => Fate::ComputesAgain,
            },
            Found::Nothing(reason @ (RerunReason::Impure | RerunReason::NotKept)) => {
                Fate::Runs(reason)
            }
            Found::Nothing(_) if task.gave.is_none() => Fate::Runs(RerunReason::NeverFinished),
            Found::Nothing(RerunReason::Evicted) => Fate::Runs(RerunReason::Evicted),
            Found::Nothing(RerunReason::Damaged) => Fate::Runs(RerunReason::Damaged),
            Found::Nothing(_) => Fate::NotKept,
        })
    }

    /// Whether the shared folder has a result that may be taken.
    fn is_shared(&self, parts: &Parts) -> bool {
        let parts = in_surroundings(parts, self.anywhere);
        let shared = self.shared.as_ref().map(|shared| shared.find(&parts));
        let Some(SharedFound::Entry { entry, .. }) = shared else {
            return false;
        };
        let mut files = entry.read.iter().chain(&entry.beneath);
        !writes_files(&entry) && !files.any(|file| self.has_changed(file))
    }

    /// What follows from the code of a task alone: that it runs if a piece of it is another
    /// now.
    fn code_fate(&self, task: &TaskIdentity) -> Option<Fate> {
        let before = &task.given.parts;
        let function = before.pieces.first().filter(|_| has_code(task))?;
        if let Some(now) = &self.script_now {
            return self.script_fate(&before.pieces, now);
        }
        let known = self
            .code_now
            .as_ref()
            .and_then(|now| now.get(&function.name));
        let Some(known) = known else {
            return Some(Fate::CodeUnknown);
        };
        let now: Vec<Reached> = known.iter().cloned().map(Reached::of).collect();
        if now.iter().any(|now| now.digest() == before.code) {
            return None;
        }
        let before = Reached::of(before.pieces.to_vec());
        let changed = now.first().and_then(|now| before.diff(now));
        let piece = changed.unwrap_or(function).clone();
        Some(Fate::Runs(RerunReason::CodeChanged(piece)))
    }

    /// The same for a function of a script. What variables are that it captures is known only if
    /// nothing was edited.
    fn script_fate(&self, before: &[FunctionCode], now: &[FunctionCode]) -> Option<Fate> {
        let is_in_now = |piece: &&FunctionCode| {
            let mut same = now.iter();
            same.any(|now| now.name == piece.name && now.digest == piece.digest)
        };
        let others: Vec<&FunctionCode> = before.iter().filter(|piece| !is_in_now(piece)).collect();
        let changed = others
            .iter()
            .find_map(|piece| now.iter().find(|now| now.name == piece.name));
        if let Some(changed) = changed {
            return Some(Fate::Runs(RerunReason::CodeChanged(changed.clone())));
        }
        let mut unknown = others.iter();
        let is_unknown = unknown.any(|piece| self.is_edited || piece.name.starts_with("env "));
        is_unknown.then_some(Fate::CodeUnknown)
    }

    /// The name of an input that is a file of the user's whose content is another now.
    fn changed_file(&self, task: &TaskIdentity) -> Option<Arc<str>> {
        let inputs = task.given.parts.inputs.iter();
        let mut inputs = inputs.filter(|input| !input.is_tool());
        let changed = inputs.find(|input| {
            let known = self.files.get(&input.digest);
            match known {
                _ if self.givers.contains_key(&input.digest) => false,
                Some(path) => self.digest_now(path) != Some(input.digest),
                None => self
                    .digest_now(&input.name)
                    .is_some_and(|now| now != input.digest),
            }
        });
        changed.map(|input| input.name.clone())
    }

    /// The name of a program whose content is another now, or that is found elsewhere.
    fn changed_tool(&self, task: &TaskIdentity) -> Option<Arc<str>> {
        let inputs = task.given.parts.inputs.iter();
        let mut programs = inputs.filter(|input| input.is_tool());
        let changed = programs.find(|program| {
            let place = tools::place_of_tool(&program.name);
            let now = place.and_then(|path| self.digest_now(&path.to_str()?.into()));
            now.unwrap_or(Digest(0)) != program.digest
        });
        changed.map(|program| program.name.clone())
    }

    fn has_changed(&self, file: &FileRead) -> bool {
        self.digest_now(&file.path) != Some(file.digest)
    }

    /// The digest of a file of the user's; none if there is none.
    fn digest_now(&self, path: &Arc<str>) -> Option<Digest> {
        let mut digests = self.digests.borrow_mut();
        let read = || {
            let path = tools::place_of(path)?;
            path.is_file().then(|| KeptResults::digest_of(&path).ok())?
        };
        *digests.entry(path.clone()).or_insert_with(read)
    }
}

/// Whether it is known which functions the task reached.
fn has_code(task: &TaskIdentity) -> bool {
    !task.given.parts.pieces.is_empty()
}
