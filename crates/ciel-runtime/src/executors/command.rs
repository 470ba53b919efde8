//! Executors that start a process for each task: how a call becomes a command line.
//!
//! It does not know how a process is started or watched. Read next: `shell`, then `processes`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use ciel_model::{InputMode, Reached, Refused, Streams};
use serde_json::Value;

use super::{Executor, Launch};

/// Where standard output of a process goes.
#[derive(Debug, PartialEq)]
pub(crate) enum Stdout {
    /// It is that output of the task.
    Output(u32),
    /// It is part of the job's ordered output.
    Printed,
}

/// A process to be started.
#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) program: Vec<OsString>,
    /// A program with its arguments that is the same to the user, if it can be run.
    pub(crate) direct: Option<Vec<OsString>>,
    /// Words that come before the program: those of its container or environment.
    pub(crate) outer: Vec<OsString>,
    /// The last word of the program as the user wrote it, if that differs.
    pub(crate) written: Option<String>,
    /// Inputs that follow each other on standard input.
    pub(crate) stdin: Vec<usize>,
    pub(crate) stdout: Stdout,
    /// Added to the environment.
    pub(crate) environment: Vec<(String, OsString)>,
    /// The working folder; that of `ciel` if there is none.
    pub(crate) folder: Option<PathBuf>,
    /// Paths of the ordered files that it appends to, in the order of [`Workspace::appended`].
    pub(crate) appends: Vec<String>,
}

/// What an executor may request while it plans: files of the task.
pub(crate) trait Workspace {
    /// A file that holds input `index`.
    fn input(&mut self, index: usize) -> Result<PathBuf, Refused>;
    /// A file that holds input `index` and may be run as a program.
    fn program(&mut self, index: usize) -> Result<PathBuf, Refused>;
    /// Input `index` as text: a string's characters, anything else as it is spelt.
    fn text(&mut self, index: usize) -> Result<String, Refused>;
    /// The file to write output `index` to. Its path ends in `out.` and the name, if that is short
    /// and plain.
    fn output(&mut self, index: u32, name: Option<&str>) -> PathBuf;
    /// The file that takes what the process appends to ordered file `index`.
    fn appended(&mut self, index: usize) -> Result<PathBuf, Refused>;
    /// A new folder with what is in the archive that is input `index`; it is there when the command
    /// starts.
    fn input_folder(&mut self, index: usize) -> Result<PathBuf, Refused>;
    /// A new, empty folder. The archive of what it holds in the end is output `index`.
    fn output_folder(&mut self, index: u32, name: &str) -> Result<PathBuf, Refused>;
    /// A new file of the task with these bytes.
    fn note(&mut self, what: &str, bytes: &[u8]) -> Result<PathBuf, Refused>;
}

/// How calls of one executor become processes.
pub(crate) trait CommandLine: Send + Sync {
    /// Its name in programs.
    fn name(&self) -> &'static str;
    /// Other names for it.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }
    /// The label of a task with these arguments.
    fn label_of(&self, arguments: &Value) -> Option<String>;
    /// Inputs of a call that its process reads once, from their beginnings to their ends, so that
    /// they may be streams.
    fn stream_inputs(&self, _arguments: &Value) -> Vec<usize> {
        Vec::new()
    }
    /// Outputs of a call that others may read while its process writes them.
    fn streams(&self, _arguments: &Value, _outputs: u32) -> Streams {
        Streams::default()
    }
    /// The process for a call with `outputs` outputs.
    fn plan(
        &self,
        arguments: &Value,
        outputs: u32,
        desk: &mut dyn Workspace,
    ) -> Result<Plan, Refused>;
}

/// An executor whose tasks are such processes.
pub(super) struct Command<C> {
    name: Arc<str>,
    line: C,
}

impl<C: CommandLine> Command<C> {
    pub(super) fn new(line: C) -> Command<C> {
        let name = line.name().into();
        Command { name, line }
    }
}

impl<C: CommandLine> Executor for Command<C> {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn input_mode(&self, _asked: Option<InputMode>) -> InputMode {
        InputMode::Value
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn is_keepable(&self, _code: &Reached, _arguments: &Value) -> bool {
        true
    }

    fn label_of(&self, arguments: &Value) -> Option<String> {
        self.line.label_of(arguments)
    }

    fn stream_inputs(&self, arguments: &Value) -> Vec<usize> {
        self.line.stream_inputs(arguments)
    }

    fn streams(&self, arguments: &Value, outputs: u32) -> Streams {
        self.line.streams(arguments, outputs)
    }

    fn launch(&self) -> Launch<'_> {
        Launch::Command(&self.line)
    }
}
