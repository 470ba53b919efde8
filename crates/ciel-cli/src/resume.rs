//! `ciel resume`: a run that was broken off goes on, started as it was before.
//!
//! Command, folder and options are those that the run has noted at its start. It does not know
//! what was done already. Read next: `run`.

use std::path::Path;
use std::process::ExitCode;

use ciel_runtime::Resume;
use ciel_store::StoreError;
use ciel_view::listing::{self, RunSummary, Standing};
use ciel_view::{Durable, GivenOptions, RunDescription};

use crate::complaint::Complaint;
use crate::options::{Durability, ErrorOrder, ResumeOptions, RunOptions, Shared};
use crate::run;

/// Runs listed when several may be meant.
const LISTED_MAX: usize = 20;

/// Goes on with the run that is meant.
pub fn resume(shared: &Shared, options: ResumeOptions) -> Result<ExitCode, Complaint> {
    let runs = listing::runs(&shared.state)?;
    let id = meant(&runs, options.run.as_deref())?;
    let description = listing::description(&shared.state, &id)?;
    let shared = shared.absolute()?;
    std::env::set_current_dir(&description.folder).map_err(|error| {
        let folder = description.folder.display();
        let message = format!("cannot go to {folder}, where run {id} was started: {error}");
        Complaint::usage("resume.folder", message)
    })?;
    run::start(&shared, run_options(description, &options), Resume::Run(id))
}

/// The id of the one run whose id begins so, or of the newest that can be resumed.
fn meant(runs: &[RunSummary], beginning: Option<&str>) -> Result<String, Complaint> {
    let Some(beginning) = beginning else {
        let resumable = |run: &&RunSummary| run.standing == Standing::Resumable;
        let newest = runs.iter().rev().find(resumable);
        return newest.map(|run| run.id.clone()).ok_or_else(|| {
            Complaint::usage("resume.none", "no run of this folder can be resumed")
                .with_hint("`ciel runs` lists the runs; --state names another folder")
        });
    };
    checked(called(runs, beginning)?)
}

/// The one run whose id begins so.
///
/// # Errors
/// There is none, or several.
pub fn called<'a>(runs: &'a [RunSummary], beginning: &str) -> Result<&'a RunSummary, Complaint> {
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

/// Says at once, in the folder where that is known, why a run cannot go on.
fn checked(run: &RunSummary) -> Result<String, Complaint> {
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

fn refused(error: StoreError) -> Complaint {
    error.into()
}

fn ambiguous(several: &[&RunSummary], beginning: &str) -> Complaint {
    let mut message = format!("{beginning} may be any of {} runs:", several.len());
    for run in several.iter().rev().take(LISTED_MAX) {
        message.push_str(&format!("\n  {}  {}", run.id, run.command.join(" ")));
    }
    if several.len() > LISTED_MAX {
        message.push_str(&format!("\n  … and {} more", several.len() - LISTED_MAX));
    }
    Complaint::usage("resume.several", message).with_hint("give more digits")
}

/// What `ciel run` was told, but for what `ciel resume` is told itself.
fn run_options(description: RunDescription, told: &ResumeOptions) -> RunOptions {
    let given = description.options;
    RunOptions {
        command: description.command.into_iter().map(Into::into).collect(),
        jobs: told.jobs.or(given.jobs),
        serial: false,
        resource: given.resources.into_iter().collect(),
        keep_going: given.keep_going,
        fail_fast: given.fail_fast,
        retries: given.retries,
        timeout: given.timeout_us,
        job_timeout: given.job_timeout_us,
        stderr: match given.ordered_errors {
            true => ErrorOrder::Ordered,
            false => ErrorOrder::Live,
        },
        output: given.output,
        overwrite: given.overwrite,
        package: given.packages.into_iter().collect(),
        heap: given.heap_bytes_max,
        python: given.python,
        durable: match given.durable {
            Durable::Process => Durability::Process,
            Durable::Never => Durability::Never,
            Durable::Power => Durability::Power,
        },
        keep: given.keep_bytes,
        new: false,
        json: told.json,
        quiet: told.quiet,
        verbose: told.verbose,
    }
}

/// What a run notes of its options, so that [`resume`] can give them again.
pub fn given(options: &RunOptions) -> GivenOptions {
    GivenOptions {
        jobs: options.jobs,
        resources: options.resource.iter().cloned().collect(),
        keep_going: options.keep_going,
        fail_fast: options.fail_fast,
        retries: options.retries,
        timeout_us: options.timeout,
        job_timeout_us: options.job_timeout,
        ordered_errors: options.stderr == ErrorOrder::Ordered,
        output: options.output.clone(),
        overwrite: options.overwrite,
        packages: options.package.iter().cloned().collect(),
        heap_bytes_max: options.heap,
        python: options.python.as_deref().map(Path::to_path_buf),
        durable: durable(options.durable),
        keep_bytes: options.keep,
    }
}

/// The option as the engine knows it.
pub fn durable(option: Durability) -> Durable {
    match option {
        Durability::Process => Durable::Process,
        Durability::Never => Durable::Never,
        Durability::Power => Durable::Power,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::{Command, Options};

    fn run_options_of(words: &[&str]) -> RunOptions {
        let words = ["ciel", "run"].into_iter().chain(words.iter().copied());
        match Options::parse_from(words).command {
            Command::Run(options) => *options,
            other => panic!("not a run: {other:?}"),
        }
    }

    #[test]
    fn options_of_a_run_come_back_when_it_is_resumed() {
        let words = [
            "-j3",
            "--resource",
            "gpu=2",
            "-k",
            "--retries",
            "4",
            "--timeout",
            "5s",
            "--job-timeout",
            "1h",
            "--stderr",
            "ordered",
            "-o",
            "out.txt",
            "--overwrite",
            "--package",
            "a=b.txt",
            "--heap",
            "1M",
            "--python",
            "/usr/bin/python3",
            "--durable",
            "power",
            "--keep",
            "2G",
            "job.sw",
            "-x",
            "1",
        ];
        let options = run_options_of(&words);
        let given = given(&options);
        let description = RunDescription {
            version: String::new(),
            key: String::new(),
            command: ["job.sw", "-x", "1"].map(str::to_string).to_vec(),
            folder: "/".into(),
            options: given.clone(),
            started_s: 0,
        };
        let told = ResumeOptions {
            run: None,
            jobs: None,
            json: false,
            quiet: false,
            verbose: false,
        };
        let again = run_options(description.clone(), &told);
        assert_eq!(format!("{again:?}"), format!("{options:?}"));
        let told = ResumeOptions {
            jobs: Some(8),
            json: true,
            ..told
        };
        let again = run_options(description, &told);
        assert_eq!((again.jobs, again.json), (Some(8), true));
    }
}
