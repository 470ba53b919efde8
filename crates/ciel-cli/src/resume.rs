//! `ciel resume`: resumes an interrupted run, with its former options.
//!
//! Command, folder and options are those that the run has noted at its start. It does not know
//! what was done already. Read next: `run`.

use std::process::ExitCode;

use ciel_runtime::Resume;
use ciel_store::StoreError;
use ciel_view::listing::{self, RunSummary, Standing};

use crate::cli_error::CliError;
use crate::given::run_options;
use crate::options::{ResumeOptions, Shared, absolute};
use crate::run;

/// Runs listed when several may be meant.
const LISTED_MAX: usize = 20;

/// Resumes the run that is meant.
pub fn resume(shared: &Shared, options: ResumeOptions) -> Result<ExitCode, CliError> {
    let runs = listing::runs(&shared.state)?;
    let id = meant(&runs, options.run.as_deref())?;
    let description = listing::description(&shared.state, &id)?;
    let shared = shared.absolute()?;
    let trace = options.trace.as_deref().map(absolute).transpose()?;
    let options = ResumeOptions { trace, ..options };
    std::env::set_current_dir(&description.folder).map_err(|error| {
        let folder = description.folder.display();
        let message = format!("cannot change to {folder}, where run {id} was started: {error}");
        CliError::usage("resume.folder", message)
    })?;
    run::start(&shared, run_options(description, &options), Resume::Run(id))
}

/// The id of the one run whose id begins so, or of the newest that can be resumed.
fn meant(runs: &[RunSummary], beginning: Option<&str>) -> Result<String, CliError> {
    let Some(beginning) = beginning else {
        let resumable = |run: &&RunSummary| run.standing == Standing::Resumable;
        let newest = runs.iter().rev().find(resumable);
        return newest.map(|run| run.id.clone()).ok_or_else(|| {
            CliError::usage("resume.none", "no run of this folder can be resumed")
                .with_hint("`ciel runs` lists the runs; --state names another folder")
        });
    };
    checked(called(runs, beginning)?)
}

/// The one run whose id begins so.
///
/// # Errors
/// There is none, or several.
pub fn called<'a>(runs: &'a [RunSummary], beginning: &str) -> Result<&'a RunSummary, CliError> {
    let matching: Vec<&RunSummary> = runs
        .iter()
        .filter(|run| run.id.starts_with(beginning))
        .collect();
    match matching.as_slice() {
        [] => Err(refused(StoreError::RunUnknown {
            run: beginning.to_string(),
        })),
        [run] => Ok(run),
        several => Err(ambiguous(several, beginning)),
    }
}

/// Reports at once why a run cannot be resumed.
fn checked(run: &RunSummary) -> Result<String, CliError> {
    let id = run.id.clone();
    match run.standing {
        Standing::Resumable => Ok(id),
        Standing::Running { process } => Err(refused(StoreError::RunAlive { run: id, process })),
        Standing::EndedWell | Standing::Failed { .. } => {
            Err(refused(StoreError::RunEnded { run: id }))
        }
        Standing::BrokenOff => Err(refused(StoreError::RunUnrecorded { run: id })),
    }
}

fn refused(error: StoreError) -> CliError {
    error.into()
}

fn ambiguous(several: &[&RunSummary], beginning: &str) -> CliError {
    let mut message = format!(
        "{beginning} is ambiguous; it matches {} runs:",
        several.len()
    );
    for run in several.iter().rev().take(LISTED_MAX) {
        message.push_str(&format!("\n  {}  {}", run.id, run.command.join(" ")));
    }
    if several.len() > LISTED_MAX {
        message.push_str(&format!("\n  … and {} more", several.len() - LISTED_MAX));
    }
    CliError::usage("resume.several", message).with_hint("give more digits")
}
