//! `ciel run`: from options to a job, from its outcome to an exit code.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ciel_model::limits;
use ciel_runtime::{Job, Observer, Outcome, Report, Resume, RunError, Settings};

use crate::cli_error::{CliError, JOB_FAILED};
use crate::job_files::JobFiles;
use crate::observer::CommandObserver;
use crate::options::{CommandShell, ErrorOrder, RunOptions, Shared, Trust};
use crate::script::Opened;
use crate::sink::Extent;
use crate::{SPAWNER, dry_run, given, job_settings, owners, paint, python, script, trace};

/// Exit code of an interrupted job, as shells report it.
const INTERRUPTED: u8 = 130;

/// Exit code of a job whose output was closed by its reader, as shells report it.
const OUTPUT_CLOSED: u8 = 141;

/// This program's own file, even if another one has taken its place meanwhile.
const OWN_FILE: &str = "/proc/self/exe";

/// The environment variable that sets the bound of unfinished children of a strand.
const CHILDREN_MAX: &str = "CIEL_CHILDREN_MAX";

/// Runs a job, or resumes an interrupted run of it.
pub fn run(shared: &Shared, options: RunOptions) -> Result<ExitCode, CliError> {
    let resume = match options.new {
        true => Resume::New,
        false => Resume::Auto,
    };
    start(shared, options, resume)
}

/// Runs a job as these options say.
pub fn start(shared: &Shared, options: RunOptions, resume: Resume) -> Result<ExitCode, CliError> {
    let given = JobFiles::of(&options)?;
    let opened = script::open(&given.script)?;
    let options = job_settings::with_own(options, &given.script, &resume)?;
    if options.dry_run {
        return foretell(shared, &options, (given, &opened), resume);
    }
    let sources = given.sources();
    let paint = paint::paint_errors(shared.colour);
    let observer = CommandObserver::new(&options, paint, &sources)?;
    let observer = Arc::new(observer.of_state(shared.state_named.clone()));
    tell_of_place(shared, &*observer);
    let settings = settings(shared, &options, given, resume)?;
    let job = job(&opened, &settings)?;
    let ended = ciel_runtime::run(settings, job, observer.clone());
    observer.clear();
    conclude(&observer, ended)
}

/// Tells what a run would do, and does nothing.
fn foretell(
    shared: &Shared,
    options: &RunOptions,
    (given, opened): (JobFiles, &Opened),
    resume: Resume,
) -> Result<ExitCode, CliError> {
    let settings = settings(shared, options, given, resume)?;
    dry_run::show(&settings, &job(opened, &settings)?, options.json)
}

fn job<'a>(opened: &'a Opened, settings: &Settings) -> Result<Job<'a>, CliError> {
    match opened {
        Opened::Skywriting(program) => Ok(Job::Script(program)),
        Opened::Python if settings.python.is_none() => Err(python::missing()),
        Opened::Python => Ok(Job::Python),
    }
}

/// Prints where the state is, if it is not in the usual folder.
pub fn tell_of_place(shared: &Shared, observer: &dyn Observer) {
    if let Some(message) = &shared.state_notice {
        observer.report(Report::Warning {
            task: None,
            message,
        });
    }
}

fn conclude(
    observer: &CommandObserver,
    ended: Result<Outcome, RunError>,
) -> Result<ExitCode, CliError> {
    let extent = match &ended {
        Ok(outcome) if outcome.result.is_ok() => Extent::Whole,
        Ok(outcome) if !outcome.interrupted => Extent::Part,
        Ok(_) | Err(_) => Extent::Broken,
    };
    let finished = observer.finish_output(extent);
    let outcome = match ended {
        Ok(outcome) => outcome,
        // The file's own error is clearer than that of the engine.
        Err(error) => return Err(finished.err().unwrap_or_else(|| error.into())),
    };
    observer.conclude(&outcome);
    finished?;
    outcome.leaving.clone().leave();
    Ok(ExitCode::from(match &outcome {
        outcome if outcome.interrupted => INTERRUPTED,
        outcome if outcome.output_closed => OUTPUT_CLOSED,
        outcome => match &outcome.result {
            Err(failure) => failure.exit_status().unwrap_or(JOB_FAILED),
            Ok(_) if outcome.counts.checked > 0 && outcome.counts.differing > 0 => JOB_FAILED,
            Ok(_) => 0,
        },
    }))
}

/// The bound of unfinished children of a strand.
fn children_max() -> Result<u32, CliError> {
    let Some(given) = std::env::var_os(CHILDREN_MAX) else {
        return Ok(limits::CHILDREN_MAX);
    };
    let number = given.to_str().and_then(|text| text.parse().ok());
    number.filter(|number| *number > 0).ok_or_else(|| {
        let message = format!("{CHILDREN_MAX} is a number from 1 on, not {given:?}");
        CliError::usage("environment.children", message)
    })
}

/// The settings of the engine for a job.
pub fn settings(
    shared: &Shared,
    options: &RunOptions,
    given: JobFiles,
    resume: Resume,
) -> Result<Settings, CliError> {
    let cores = options.jobs.unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
    });
    Ok(Settings {
        key: key(&given.command),
        command: given.command,
        script: given.script,
        arguments: given.arguments,
        variables: given.variables,
        packages: given.packages,
        cores,
        resources: options.resource.iter().cloned().collect(),
        serial: options.serial,
        keep_going: options.keep_going,
        fail_fast: options.fail_fast,
        retries: options.retries,
        timeout_us: options.timeout,
        job_timeout_us: options.job_timeout,
        ordered_errors: options.stderr == ErrorOrder::Ordered,
        strict_shell: options.shell == CommandShell::Strict,
        state: shared.state.clone(),
        heap_bytes_max: options.heap,
        spawner: (PathBuf::from(OWN_FILE), vec![SPAWNER.into()]),
        python: python::find(options.python.as_deref())?,
        scripts: script::called(),
        resume,
        durable: given::durable(options.durable),
        keep_bytes: options.keep,
        kept: options.kept,
        kept_folder: options.kept_dir.clone(),
        trusted_users: owners::numbers(&options.trust_owner)?,
        trusts_times: options.trust == Trust::Mtime,
        check: options.check,
        duplicates: options.duplicates,
        held_bytes: options.held_bytes,
        children_max: children_max()?,
        memory_bytes: options.store_memory,
        store_bytes: options.store_bytes,
        trace: options.trace.as_deref().map(trace::open).transpose()?,
        given: given::given(options),
    })
}

/// What the names of the job's tasks and their random numbers come from: the job's file name and
/// the words after it, each after its length. The folder does not count: a job that is moved or
/// copied gives the same.
fn key((file, words): &(PathBuf, Vec<String>)) -> Vec<u8> {
    let name = file.file_name().unwrap_or_default();
    let words = std::iter::once(name.as_bytes()).chain(words.iter().map(String::as_bytes));
    let mut key = Vec::new();
    for word in words {
        key.extend_from_slice(&(word.len() as u64).to_be_bytes());
        key.extend_from_slice(word);
    }
    key
}
