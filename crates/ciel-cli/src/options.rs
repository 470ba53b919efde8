//! The one table of commands and options: parser, help, man page and completions come from it.
//!
//! Every text of the help stands here. It does not know what the commands do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ciel_model::limits::RETRIES_MAX;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

use crate::amounts::{parse_disk_size, parse_duration, parse_package, parse_resource, parse_size};
use crate::complaint::Complaint;
use crate::paint::Colour;

/// Run a program of many tasks on every core; its output is that of the serial program.
#[derive(Debug, Parser)]
#[command(
    name = "ciel",
    version,
    max_term_width = 100,
    after_help = "`ciel job.sw` is short for `ciel run job.sw`.\n\
                  Exit status: 0 well, 1 the job failed, 2 wrong usage or a mistake in the script, \
                  130 interrupted, 141 nobody reads the output any more."
)]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub shared: Shared,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub struct Shared {
    /// Folder for the state of runs
    #[arg(
        long,
        value_name = "DIR",
        global = true,
        display_order = 900,
        default_value = ".ciel",
        value_hint = ValueHint::DirPath
    )]
    pub state: PathBuf,
    /// Colours: on a terminal, always or never (NO_COLOR is heeded)
    #[arg(
        long,
        alias = "color",
        value_name = "WHEN",
        global = true,
        display_order = 900,
        default_value = "auto",
        hide_possible_values = true
    )]
    pub colour: Colour,
    /// What people are told of the place of the state folder before a run begins in it.
    #[arg(skip)]
    pub state_notice: Option<String>,
}

impl Shared {
    /// The same, right in whatever folder the process is.
    pub fn absolute(&self) -> Result<Shared, Complaint> {
        let mut shared = self.clone();
        shared.state = absolute(&self.state)?;
        Ok(shared)
    }
}

/// A path that stays right in whatever folder the process is.
pub fn absolute(path: &Path) -> Result<PathBuf, Complaint> {
    std::path::absolute(path).map_err(|error| {
        let message = format!("cannot find {}: {error}", path.display());
        Complaint::usage("state.path", message)
    })
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job; one that was interrupted goes on from where it was
    Run(Box<RunOptions>),
    /// Go on with a run that was interrupted
    ///
    /// It is started with its own command and options, in its own folder. A run that lives or has
    /// ended cannot be resumed.
    Resume(ResumeOptions),
    /// List runs: where they stand, what can be resumed, what they take of the disk
    Runs(JsonOption),
    /// Show what a run has recorded: that from which it goes on if it is interrupted
    ///
    /// A run that has ended keeps no journal, nor does one with --serial or --durable never, or a
    /// session of Python.
    Journal(JournalOptions),
    /// List runs and their tasks, live ones first
    Ps(PsOptions),
    /// Say why a task stands where it stands, and what happened to it
    Why(TaskOptions),
    /// Show what a task wrote beside the job's output
    Logs(TaskOptions),
    /// Run a failed Python task once more, here, under the debugger
    ///
    /// Its tasks are run at their spawns, as in the serial program. Without a terminal only the
    /// traceback is shown.
    Replay(ReplayOptions),
    /// Find in the code of Python tasks what may differ when a task is run again
    ///
    /// Nothing is run. Exits with 1 if something is found, with 2 if a file cannot be read.
    Lint(LintOptions),
    /// Remove the state of runs that have ended
    ///
    /// Live runs stay, and so do those that can be resumed. A state folder of another version
    /// becomes one of this version, unless a run stays in it. Nothing but what ciel made is
    /// removed.
    Clean(CleanOptions),
    /// Check whether everything is there that jobs need
    Doctor(JsonOption),
    /// Print the completions for a shell
    Completions {
        /// For which shell
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
    /// Serve a program that submits tasks on the socket that it has left in CIEL_FD
    #[command(hide = true, name = "__session")]
    Session(Box<RunOptions>),
}

impl Command {
    /// Whether errors are to be told as JSON too.
    pub fn is_json(&self) -> bool {
        match self {
            Command::Run(options) | Command::Session(options) => options.json,
            Command::Ps(options) => options.output.json,
            Command::Why(options) | Command::Logs(options) => options.output.json,
            Command::Doctor(options) | Command::Runs(options) => options.json,
            Command::Resume(options) => options.json,
            Command::Journal(options) => options.json,
            Command::Lint(options) => options.json,
            Command::Replay(_) => false,
            Command::Clean(_) | Command::Completions { .. } | Command::Man => false,
        }
    }
}

#[derive(Debug, Args)]
#[command(override_usage = "ciel run [OPTIONS] FILE [ARGUMENTS]...")]
pub struct RunOptions {
    /// The script, and after it its own arguments
    #[arg(
        value_name = "FILE",
        required = true,
        num_args = 1..,
        trailing_var_arg = true,
        value_hint = ValueHint::FilePath
    )]
    pub command: Vec<OsString>,
    /// Cores to use [default: all]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
    /// Run one task at a time, in the order of the program
    #[arg(long, conflicts_with = "jobs")]
    pub serial: bool,
    /// What the machine has beside cores and memory, for tasks that ask for it: gpu=1
    #[arg(long, value_name = "NAME=COUNT", value_parser = parse_resource)]
    pub resource: Vec<(String, u32)>,
    /// Finish all work that was spawned, whatever fails
    #[arg(short, long)]
    pub keep_going: bool,
    /// End the job at the first task that fails, even if the script would handle it
    #[arg(long, conflicts_with = "keep_going")]
    pub fail_fast: bool,
    /// Try a failed task again so often
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(RETRIES_MAX))
    )]
    pub retries: u32,
    /// Time each task may run: seconds, or 300ms, 30s, 5m, 2h
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub timeout: Option<u64>,
    /// Time the whole job may take
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub job_timeout: Option<u64>,
    /// Standard error of tasks: as it comes, or in the order of the program
    #[arg(
        long,
        value_name = "live|ordered",
        default_value = "live",
        hide_possible_values = true
    )]
    pub stderr: ErrorOrder,
    /// Write the job's output to a file; one that holds its beginning is continued
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Replace the file of --output, whatever it holds
    #[arg(long, requires = "output")]
    pub overwrite: bool,
    /// Give a file to the script as package(NAME)
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_package)]
    pub package: Vec<(String, PathBuf)>,
    /// Memory a script may use: bytes, or 64K, 256M, 1G
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size)]
    pub heap: usize,
    /// The interpreter for tasks in Python [default: the one beside this program, or on PATH]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::ExecutablePath)]
    pub python: Option<PathBuf>,
    /// What the run is to survive: the death of all its processes, a power failure too, or nothing
    #[arg(
        long,
        value_name = "process|power|never",
        default_value = "process",
        hide_possible_values = true
    )]
    pub durable: Durability,
    /// Disk that former runs may take before the oldest that have ended are removed
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_disk_size)]
    pub keep: u64,
    /// Write a trace of the run to a file, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Start afresh, even if the job (same code, arguments and folder) was interrupted before and
    /// could go on
    #[arg(long)]
    pub new: bool,
    /// Tell progress, failures and the summary as JSON, one value a line, on standard error
    #[arg(long)]
    pub json: bool,
    /// Show neither progress nor summary
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Tell of every failed task and every retry at once
    #[arg(short, long)]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct ResumeOptions {
    /// The run's id, or its first digits [default: the newest that can be resumed]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Cores to use [default: as before]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
    /// Write a trace of this part of the run to a file, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Tell progress, failures and the summary as JSON, one value a line, on standard error
    #[arg(long)]
    pub json: bool,
    /// Show neither progress nor summary
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Tell of every failed task and every retry at once
    #[arg(short, long)]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct JournalOptions {
    /// The run's id, or its first digits [default: the newest that lives or can be resumed]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Print JSON, one record a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct LintOptions {
    /// Files of Python, or folders of such
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Print JSON, one finding a line
    #[arg(long)]
    pub json: bool,
    /// The interpreter [default: the one beside this program, or on PATH]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::ExecutablePath)]
    pub python: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CleanOptions {
    /// Remove the runs too that were interrupted and can be resumed
    #[arg(long)]
    pub all: bool,
}

/// What a run is to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    Process,
    Power,
    Never,
}

/// Shells that there are completions for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// How the standard error of tasks is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ErrorOrder {
    Live,
    Ordered,
}

#[derive(Debug, Args)]
pub struct JsonOption {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct PsOptions {
    /// Show all tasks, those that ended too
    #[arg(short, long)]
    pub all: bool,
    #[command(flatten)]
    pub output: JsonOption,
}

#[derive(Debug, Args)]
pub struct TaskOptions {
    /// The task as it is shown (fib@3f9c12ab), or its function or command, or first digits
    #[arg(value_name = "TASK")]
    pub task: String,
    #[command(flatten)]
    pub output: JsonOption,
}

#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// The task as it is shown (fib@3f9c12ab), or its function, or first digits
    #[arg(value_name = "TASK")]
    pub task: String,
    /// The interpreter [default: the one beside this program, or on PATH]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::ExecutablePath)]
    pub python: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn table_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn words_after_the_file_belong_to_the_script() {
        let words = ["ciel", "run", "-j2", "job.sw", "-k", "--json", "--", "x"];
        let options = Options::try_parse_from(words).unwrap();
        let Command::Run(run) = options.command else {
            panic!("not a run")
        };
        assert_eq!(run.command, ["job.sw", "-k", "--json", "--", "x"]);
        assert_eq!(
            (run.jobs, run.keep_going, run.json),
            (Some(2), false, false)
        );
    }
}
