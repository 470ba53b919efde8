//! Executors whose tasks run in worker processes, among them the plug-ins: executables named
//! `ciel-executor-NAME` that speak the executor protocol.
//!
//! It does not know how a worker is spoken to. Read next: `python`, then `workers`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ciel_model::{InputMode, Options, Pool, Refused};
use serde_json::Value;

use super::{Executor, Launch, Replay};

/// What an executable of a plug-in is called, before its name.
pub(crate) const PLUGIN_PREFIX: &str = "ciel-executor-";

/// How a worker process is started.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WorkerCommand {
    /// What messages call it.
    pub(crate) title: String,
    /// The program and its words.
    pub(crate) words: Vec<OsString>,
    /// Added to the environment.
    pub(crate) environment: Vec<(String, OsString)>,
    /// What may help when the process ends before it is a worker.
    pub(crate) hint: Option<&'static str>,
    /// One of the first processes leaves a template behind, from which later ones are forked.
    pub(crate) has_template: bool,
}

/// How a worker is had.
pub(crate) enum WorkerStart {
    /// A process is started.
    Process(WorkerCommand),
    /// The client of the session is one, and is connected already.
    Client,
}

/// How workers of one executor are started.
pub(crate) trait Worker {
    /// The pool that runs a task with these options.
    fn pool(&self, options: &Options) -> Pool;

    /// The command of a worker of that pool.
    fn command(&self, pool: &Pool) -> WorkerCommand;
}

/// How tasks in workers take an input: as the caller requested, else they wait for it themselves.
pub(super) fn input_mode(asked: Option<InputMode>) -> InputMode {
    asked.unwrap_or(InputMode::Reference)
}

/// An executor that is an executable.
pub(super) struct Plugin {
    name: Arc<str>,
    file: PathBuf,
}

impl Plugin {
    pub(super) fn new(name: &str, file: PathBuf) -> Plugin {
        let name = name.into();
        Plugin { name, file }
    }
}

impl Executor for Plugin {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn input_mode(&self, asked: Option<InputMode>) -> InputMode {
        input_mode(asked)
    }

    fn replay(&self) -> Replay {
        Replay::Always
    }

    fn validate(&self, _written: &[u8]) -> Result<Value, Refused> {
        Ok(Value::Null)
    }

    fn launch(&self) -> Launch<'_> {
        Launch::Worker(self)
    }
}

impl Worker for Plugin {
    fn pool(&self, _options: &Options) -> Pool {
        Pool::new(self.name.clone(), 1)
    }

    fn command(&self, _pool: &Pool) -> WorkerCommand {
        WorkerCommand {
            title: self.file.to_string_lossy().into_owned(),
            words: vec![self.file.clone().into()],
            environment: Vec::new(),
            hint: None,
            has_template: false,
        }
    }
}

/// The plug-ins in a folder, by name.
pub(super) fn plugins_in(folder: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let plugin = |entry: std::fs::DirEntry| {
        let name = entry
            .file_name()
            .to_str()?
            .strip_prefix(PLUGIN_PREFIX)?
            .to_string();
        Some((name, entry.path()))
    };
    entries.flatten().filter_map(plugin).collect()
}
