//! The one table of commands and options: parser, help, man page and completions come from it.
//!
//! Every text of the help is here. It does not know what the commands do.

mod results;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

pub use self::results::{CleanOptions, PackOptions, UnpackOptions};
use crate::amounts::{
    parse_disk_size, parse_duration, parse_jobs, parse_package, parse_resource, parse_retries,
    parse_size,
};
use crate::cli_error::CliError;
use crate::named_commands;
use crate::paint::Colour;

/// Run a program of many tasks on all cores, with the output of the serial program.
#[derive(Debug, Parser)]
#[command(
    name = "ciel",
    version,
    max_term_width = 100,
    after_help = "`ciel job.sw` is short for `ciel run job.sw`.\n\
                  Exit status: 0 success, 1 the job failed, 2 wrong usage or an error in the \
                  script, 130 interrupted, 141 the reader of the output closed it."
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
    /// Folder that holds the state of runs
    #[arg(
        long,
        value_name = "DIR",
        global = true,
        display_order = 900,
        default_value = named_commands::STATE,
        value_hint = ValueHint::DirPath
    )]
    pub state: PathBuf,
    /// When to use colours: auto, always or never (auto respects NO_COLOR)
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
    /// The notice about where the state folder is, printed before a run starts in it.
    #[arg(skip)]
    pub state_notice: Option<String>,
    /// The state folder as it was named, if it is not the default one.
    #[arg(skip)]
    pub state_named: Option<PathBuf>,
}

impl Shared {
    /// The same, right in whatever folder the process is.
    pub fn absolute(&self) -> Result<Shared, CliError> {
        let mut shared = self.clone();
        shared.state = absolute(&self.state)?;
        Ok(shared)
    }
}

/// A path that stays right in whatever folder the process is.
pub fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|error| {
        let message = format!("cannot find the current folder: {error}");
        CliError::usage("state.path", message)
    })
}

/// What `tail` takes.
#[derive(Debug, Clone, Args)]
pub struct TailOptions {
    /// The file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job, or continue it where it was interrupted
    Run(Box<RunOptions>),
    /// Resume an interrupted run
    ///
    /// The run continues with its own command, options and working folder. A run that is live or
    /// has ended cannot be resumed.
    Resume(ResumeOptions),
    /// List runs with their state, whether they can be resumed, and their use of disk and memory
    Runs(JsonOption),
    /// Show the journal that an interrupted run resumes from
    ///
    /// There is no journal for runs that have ended, for runs with --serial or --durable never, and
    /// for Python sessions.
    Journal(JournalOptions),
    /// List runs and their tasks, live ones first
    Ps(PsOptions),
    /// Explain a task's state and show its history
    Why(TaskOptions),
    /// Show what differs between two runs of a job: what differed first, and what followed from it
    ///
    /// Tasks are compared by their code, arguments, inputs and results. Tasks that take no part in
    /// kept results are left out.
    Diff(DiffOptions),
    /// Show what a task wrote apart from the job's output, such as its standard error
    Logs(TaskOptions),
    /// Write a page about a run: where its time went, what failed, what would make it faster
    ///
    /// The page is one HTML file that needs no network. It can be written during a run, too.
    Report(ReportOptions),
    /// Print an ordered file, and what a run appends to it until that run has ended
    Tail(TailOptions),
    /// Cancel a task of a live run, with all tasks that it has spawned
    ///
    /// Tasks that wait for it get Cancelled, and may catch it; else the job fails with it. The run
    /// remembers it: a resumed run does not start the task.
    Cancel(TaskOptions),
    /// Rerun a failed Python task in this process, under the debugger
    ///
    /// Its child tasks run where they are spawned, as in the serial program. Without a terminal,
    /// only the traceback is printed.
    Replay(ReplayOptions),
    /// Find code in Python tasks that may behave differently when a task is rerun
    ///
    /// Runs nothing. Exits with 1 if there are findings, with 2 if a file cannot be read.
    Lint(LintOptions),
    /// Print files, structured ones (.cio) as the flat files they stand for
    ///
    /// A structured file that is still written, or whose writer was killed, is printed up to the
    /// frontier: the end of the longest prefix of the serial output that is complete. A note on
    /// standard error says so. Exits with 1 if data are damaged, after what precedes them, and with
    /// 2 if a file cannot be read.
    Cat(CatOptions),
    /// Write the flat file that a structured file (.cio) stands for
    ///
    /// The flat file appears as a whole or not at all. Exits with 1 if the structured file is not
    /// complete or its data are damaged, with 2 if a file cannot be read or written.
    Flatten(FlattenOptions),
    /// Run a command whose parallel processes print in serial order
    ///
    /// The output is what the command would print if each process were waited for as soon as it is
    /// started: for a shell script, as if every `&` were gone. Output is printed as soon as it is
    /// final. Exits with the status of the command; 125 if ciel fails, 126 or 127 if the command
    /// cannot be started.
    Ordered(OrderedOptions),
    /// Remove the state of runs that have ended, or kept results
    ///
    /// With --older, --run, --task or --keep-size only what all of these options mean is removed,
    /// kept results included; else all ended runs, and no kept results. Results that a live run
    /// has used or kept stay. Keeps live runs and runs that can be resumed. Converts a state folder
    /// of another version to this version if no run remains in it. Removes only files that ciel
    /// created.
    Clean(CleanOptions),
    /// Write the kept results of a run into one file, to take them to another folder or machine
    ///
    /// The file appears whole or not at all. Results of tasks that write to ordered files are left
    /// out. Equal results give equal files.
    Pack(PackOptions),
    /// Take the results that are in a file of `ciel pack`
    ///
    /// `ciel run --kept` uses them. The file is examined before anything is taken. Nobody can tell
    /// who made it: only bytes, text and JSON are taken unless --trust-owner names its owner. Exits
    /// with 1 if the file is damaged.
    Unpack(UnpackOptions),
    /// Check that this machine has everything that jobs need
    Doctor(JsonOption),
    /// Print shell completions
    Completions {
        /// The shell to print completions for
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
    /// Serve a client on the socket inherited as CIEL_FD
    #[command(hide = true, name = "__session")]
    Session(Box<RunOptions>),
}

impl Command {
    /// Whether errors are printed as JSON, too.
    pub fn is_json(&self) -> bool {
        match self {
            Command::Run(options) | Command::Session(options) => options.json,
            Command::Ps(options) => options.output.json,
            Command::Why(options) | Command::Logs(options) | Command::Cancel(options) => {
                options.output.json
            }
            Command::Diff(options) => options.output.json,
            Command::Doctor(options) | Command::Runs(options) => options.json,
            Command::Resume(options) => options.json,
            Command::Journal(options) => options.json,
            Command::Lint(options) => options.json,
            Command::Replay(_) | Command::Report(_) | Command::Ordered(_) => false,
            Command::Cat(_) | Command::Flatten(_) | Command::Tail(_) => false,
            Command::Clean(options) => options.json,
            Command::Pack(options) => options.json,
            Command::Unpack(options) => options.json,
            Command::Completions { .. } | Command::Man => false,
        }
    }
}

#[derive(Debug, Args)]
#[command(override_usage = "ciel run [OPTIONS] FILE [ARGUMENTS]...")]
pub struct RunOptions {
    /// The script, program or job package, followed by its arguments
    #[arg(
        value_name = "FILE",
        required = true,
        num_args = 1..,
        trailing_var_arg = true,
        value_hint = ValueHint::FilePath
    )]
    pub command: Vec<OsString>,
    /// FILE is the name of a Python module, looked for in this folder, as in `python -m`
    #[arg(short, long)]
    pub module: bool,
    /// Number of cores to use [default: all]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<u32>,
    /// Run one task at a time, in program order
    #[arg(long, conflicts_with = "jobs")]
    pub serial: bool,
    /// Declare an extra resource of this machine that tasks can require, e.g. gpu=1
    #[arg(long, value_name = "NAME=COUNT", value_parser = parse_resource)]
    pub resource: Vec<(String, u32)>,
    /// Show what would run and why, from the last run of the job, and run no task
    ///
    /// Python jobs are imported, as that tells what their functions are now. What tasks that run
    /// would spawn is not known.
    #[arg(short = 'n', long, conflicts_with_all = ["serial", "trace"])]
    pub dry_run: bool,
    /// Take results that earlier runs kept, even if the last run ended well
    #[arg(long, conflicts_with = "serial")]
    pub kept: bool,
    /// As --kept, also with results of a folder that several users share; yours are kept there, too
    #[arg(long, value_name = "DIR", conflicts_with = "serial", value_hint = ValueHint::DirPath)]
    pub kept_dir: Option<PathBuf>,
    /// Take shared results of this user (name or number) in any form, not only bytes, text and JSON
    #[arg(long, value_name = "NAME", requires = "kept_dir")]
    pub trust_owner: Vec<String>,
    /// How files that commands name are compared with those of kept results: by content, or by
    /// size and time (mtime)
    #[arg(
        long,
        value_name = "content|mtime",
        default_value = "content",
        hide_possible_values = true
    )]
    pub trust: Trust,
    /// Run each pure task twice, in different processes, and compare the results; exit with 1 if
    /// any differ
    #[arg(long, conflicts_with = "kept")]
    pub check: bool,
    /// Run commands that do not say whether they are pure a second time where nothing else is
    /// ready, if they take much longer than others of their function; tasks that are declared pure
    /// always do. The first to end gives the result
    #[arg(long)]
    pub duplicates: bool,
    /// Start no task, and pause those that write, while more than SIZE of output waits for output
    /// before it in serial order; bytes, or 64K, 256M, 1G
    #[arg(long, value_name = "SIZE", value_parser = parse_disk_size)]
    pub held_bytes: Option<u64>,
    /// Keep up to SIZE of large objects in memory instead of on the disk: a crash of the system
    /// takes them. Sessions and `--durable never` do so by default, with a quarter of what is
    /// available. What direct streams share in memory counts, too; by default these have a quarter
    /// in each run
    #[arg(long, value_name = "SIZE", value_parser = parse_disk_size)]
    pub store_memory: Option<u64>,
    /// Let objects and waiting output of the run take up to SIZE of the disk: start no task but the
    /// first in serial order while they take three quarters of it, and fail a task whose result
    /// does not fit [default: no bound]
    #[arg(long, value_name = "SIZE", value_parser = parse_disk_size)]
    pub store_bytes: Option<u64>,
    /// Run all spawned tasks to the end even if some fail
    #[arg(short, long)]
    pub keep_going: bool,
    /// Stop the job at the first failed task, even if the script would handle the failure
    #[arg(long, conflicts_with = "keep_going")]
    pub fail_fast: bool,
    /// Retry a failed task up to N times
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        value_parser = parse_retries
    )]
    pub retries: u32,
    /// Time limit for each task: seconds, or 300ms, 30s, 5m, 2h
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub timeout: Option<u64>,
    /// Time limit for the whole job
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub job_timeout: Option<u64>,
    /// Print the standard error of tasks immediately (live) or in program order (ordered)
    #[arg(
        long,
        value_name = "live|ordered",
        default_value = "live",
        hide_possible_values = true
    )]
    pub stderr: ErrorOrder,
    /// Shell that runs commands: sh, or bash -euo pipefail (strict)
    #[arg(
        long,
        value_name = "sh|strict",
        default_value = "sh",
        hide_possible_values = true
    )]
    pub shell: CommandShell,
    /// Write the job's output to FILE; a file that holds the start of the output is continued
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Overwrite the file given by --output and the job's ordered files, whatever they contain
    #[arg(long)]
    pub overwrite: bool,
    /// Make FILE available to the script as package(NAME)
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_package)]
    pub package: Vec<(String, PathBuf)>,
    /// Memory limit of a script: bytes, or 64K, 256M, 1G
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size)]
    pub heap: usize,
    /// Interpreter for Python tasks [default: the one beside this program, or on PATH]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::ExecutablePath)]
    pub python: Option<PathBuf>,
    /// Durability: process survives kill -9, power also a power failure, never keeps no journal
    #[arg(
        long,
        value_name = "process|power|never",
        default_value = "process",
        hide_possible_values = true
    )]
    pub durable: Durability,
    /// Disk space for earlier runs; beyond it, the oldest runs that have ended are removed
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_disk_size)]
    pub keep: u64,
    /// Write a trace of the run to a file, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Start from the beginning, even if an interrupted run of the same job (code, arguments and
    /// folder) can be resumed
    #[arg(long)]
    pub new: bool,
    /// Print progress, failures and the summary as JSON Lines on standard error
    #[arg(long)]
    pub json: bool,
    /// Print neither progress nor the summary
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Report each failed task and each retry as it happens
    #[arg(short, long)]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct ResumeOptions {
    /// Run id, or its first digits [default: the newest run that can be resumed]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Number of cores to use [default: as in the interrupted run]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<u32>,
    /// Write a trace of this part of the run to a file, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Print progress, failures and the summary as JSON Lines on standard error
    #[arg(long)]
    pub json: bool,
    /// Print neither progress nor the summary
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Report each failed task and each retry as it happens
    #[arg(short, long)]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct JournalOptions {
    /// Run id, or its first digits [default: the newest run that is live or can be resumed]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Print JSON Lines, one record per line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Run id, or its first digits [default: the newest run]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Write the page to FILE, or to standard output if FILE is - [default: report-RUN.html]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct LintOptions {
    /// Python files, or folders that contain them
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Print JSON Lines, one finding per line
    #[arg(long)]
    pub json: bool,
    /// Interpreter to use [default: the one beside this program, or on PATH]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::ExecutablePath)]
    pub python: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CatOptions {
    /// Files to print, one after the other
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct FlattenOptions {
    /// Structured file
    #[arg(value_name = "FILE.cio", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Write the flat file to FILE [default: the structured file's name without .cio]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Replace the flat file if it exists
    #[arg(long)]
    pub overwrite: bool,
    /// Remove the structured file when the flat file is in its place
    #[arg(long)]
    pub remove: bool,
}

#[derive(Debug, Args)]
#[command(override_usage = "ciel ordered [OPTIONS] [--] COMMAND [ARGUMENTS]...")]
pub struct OrderedOptions {
    /// The command, followed by its arguments
    #[arg(
        value_name = "COMMAND",
        required = true,
        num_args = 1..,
        trailing_var_arg = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    pub command: Vec<OsString>,
    /// Also order what is appended to this file, or to all files that match a pattern
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub file: Vec<String>,
    /// How processes are told apart: seccomp, pipes (not at all), or auto (seccomp if allowed)
    #[arg(
        long,
        value_name = "auto|seccomp|pipes",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub route: OrderedRoute,
}

/// How the processes of an ordered command are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderedRoute {
    Auto,
    Seccomp,
    Pipes,
}

/// The events after which a run can be resumed.
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

/// What tells that a file is the same as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Trust {
    Content,
    Mtime,
}

/// What runs the commands of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CommandShell {
    Sh,
    Strict,
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
    /// Also show tasks that have ended
    #[arg(short, long)]
    pub all: bool,
    /// Show the bytes of objects instead of tasks: made, on disk, at the peak, and the largest
    #[arg(long)]
    pub store: bool,
    #[command(flatten)]
    pub output: JsonOption,
}

#[derive(Debug, Args)]
pub struct TaskOptions {
    /// Task label (fib@3f9c12ab), function or command, or the first digits of its id
    #[arg(value_name = "TASK")]
    pub task: String,
    #[command(flatten)]
    pub output: JsonOption,
}

#[derive(Debug, Args)]
pub struct DiffOptions {
    /// Id of the earlier run, or its first digits
    #[arg(value_name = "RUN")]
    pub before: String,
    /// Id of the later run, or its first digits
    #[arg(value_name = "RUN")]
    pub now: String,
    #[command(flatten)]
    pub output: JsonOption,
}

#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// Task label (fib@3f9c12ab), function, or the first digits of its id
    #[arg(value_name = "TASK")]
    pub task: String,
    /// Interpreter to use [default: the one beside this program, or on PATH]
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
