//! The command line of Ciel: from words to a job, and from what happens to words.
//!
//! It decides nothing about tasks: the engine is `ciel-runtime`, the language `ciel-skywriting`.
//! Where to read next: `options` (every command and flag), `run` (a job), `observer` (what a
//! running job shows), `failures` (the text of a failed one), `look` (`ps`, `runs`, `journal`,
//! `why`, `logs`).

mod allocator;
mod amounts;
mod carry;
mod clean;
mod cli_error;
mod closed_streams;
mod code_now;
mod display;
mod doctor;
mod dry_run;
mod earlier_file;
mod failures;
mod generate;
mod given;
mod job_files;
mod job_settings;
mod lint;
mod look;
mod named_commands;
mod nearest;
mod observer;
mod options;
mod ordered;
mod owners;
mod pace;
mod pack;
mod paint;
mod python;
mod redirected;
mod resume;
mod run;
mod script;
mod session;
mod sink;
mod stored;
mod structured;
mod tail;
mod talk;
mod trace;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::cli_error::CliError;
use crate::options::{Command, Options};

/// What one thread makes of a task another one often lets go of.
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// The option of the allocator for how long freed memory is kept; its binding names no constant.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Milliseconds after which freed memory goes back to the system: a run that grows again soon takes
/// what it has.
const PURGE_DELAY_MS: std::ffi::c_long = 100;

/// The same for memory that is not given back.
const NO_PURGE: std::ffi::c_long = -1;

/// The first argument with which the engine starts this program as its spawner.
const SPAWNER: &str = "__spawner";

fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == SPAWNER)
    {
        return ciel_spawner::serve_inherited();
    }
    // SAFETY: the allocator may be set at any time, and ignores options that it does not know.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) };
    let options = Options::parse_from(with_command(std::env::args_os().collect()));
    if !matches!(options.command, Command::Ordered(_)) {
        heed_limit_on_files();
    }
    let paint = paint::paint_errors(options.shared.colour);
    let json = options.command.is_json();
    let state = named_commands::named(&options.shared.state);
    let ended = obey(options).map_err(|complaint| complaint.about_state(state.as_deref()));
    // SAFETY: as above. What the allocator has is given back with the process, not page by page.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, NO_PURGE) };
    match ended {
        Ok(code) => code,
        Err(complaint) => {
            complaint.tell(paint, json);
            complaint.exit_code()
        }
    }
}

/// Has a write beyond the limit on the size of files fail, as on a full disk, and not end this
/// process. The spawner gives its children the default; the command of `ordered` has what this
/// process began with.
fn heed_limit_on_files() {
    // SAFETY: a signal is ignored that nobody handles.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

fn obey(options: Options) -> Result<ExitCode, CliError> {
    let mut shared = options.shared;
    let place = ciel_runtime::state_location::of_state(&shared.state);
    shared.state_named = named_commands::named(&shared.state);
    shared.state_notice = place.notice(&shared.state);
    shared.state = place.path;
    match options.command {
        Command::Run(options) => run::run(&shared, *options),
        Command::Session(options) => session::serve(&shared, *options),
        Command::Resume(options) => resume::resume(&shared, options),
        Command::Runs(options) => look::runs::show(&shared, &options),
        Command::Journal(options) => look::journal::show(&shared, &options),
        Command::Ps(options) => look::ps::show(&shared, &options),
        Command::Why(options) => look::why::show(&shared, &options),
        Command::Diff(options) => look::diff::show(&shared, &options),
        Command::Logs(options) => look::logs::show(&shared, &options),
        Command::Report(options) => look::report::write(&shared, &options),
        Command::Tail(options) => tail::follow(&options),
        Command::Cancel(options) => look::cancel::cancel(&shared, &options),
        Command::Replay(options) => look::replay::start(&shared, &options),
        Command::Lint(options) => lint::start(&options),
        Command::Cat(options) => structured::cat(&options),
        Command::Flatten(options) => structured::flatten(&options),
        Command::Ordered(options) => ordered::run(options),
        Command::Clean(options) => clean::clean(&shared, &options),
        Command::Pack(options) => carry::pack(&shared, &options),
        Command::Unpack(options) => carry::unpack(&shared, &options),
        Command::Doctor(options) => doctor::examine(&shared, &options),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man => generate::man_page(),
    }
}

/// `ciel job.sw …` means `ciel run job.sw …`: the first word is a file and not a command. Scripts
/// whose first line names ciel are started this way by the kernel.
fn with_command(mut words: Vec<OsString>) -> Vec<OsString> {
    let Some(first) = words.get(1) else {
        return words;
    };
    let path = Path::new(first);
    let is_script = path
        .extension()
        .is_some_and(|suffix| suffix == "sw" || suffix == "py");
    let is_path = first.to_string_lossy().contains('/') && path.is_file();
    if is_script || is_path {
        words.insert(1, "run".into());
    }
    words
}
