//! Executors: who runs what, found by name.
//!
//! Executors of one-shot processes say how a call becomes a command line ([`ProcessExecutor`]);
//! internal ones and scripts run on a thread of the engine; all others are plug-ins, executables
//! named `ciel-executor-NAME` that speak the executor protocol. Nothing else in the engine lists
//! executors by hand.

mod environ;
mod names;
pub(crate) mod python;
mod shell;
pub(crate) mod skywriting;
mod stdinout;
pub(crate) mod words;

pub(crate) use names::{GRAB, SKYWRITING, SYNC};

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ciel_model::{Class, Needs, Options, Resources};
use serde_json::Value;

use crate::job::Job;
use crate::layout::script_folder;
use crate::refused::Refused;
use crate::settings::Settings;

/// What an executable of a plug-in is called, before its name.
pub(crate) const PLUGIN_PREFIX: &str = "ciel-executor-";

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
    /// Inputs that follow each other on standard input.
    pub(crate) stdin: Vec<usize>,
    pub(crate) stdout: Stdout,
    /// Added to the environment.
    pub(crate) environment: Vec<(String, OsString)>,
    /// The working folder; that of `ciel` if there is none.
    pub(crate) folder: Option<PathBuf>,
}

/// What an executor may ask for while it plans: files of the task.
pub(crate) trait Desk {
    /// A file that holds input `index`.
    fn input(&mut self, index: usize) -> Result<PathBuf, Refused>;
    /// Input `index` as text: a string's characters, anything else as it is spelt.
    fn text(&mut self, index: usize) -> Result<String, Refused>;
    /// The file to write output `index` to.
    fn output(&mut self, index: u32) -> PathBuf;
    /// A new file of the task with these bytes.
    fn note(&mut self, what: &str, bytes: &[u8]) -> Result<PathBuf, Refused>;
}

/// How calls of one executor become processes.
pub(crate) trait ProcessExecutor: Send + Sync {
    /// Its name in programs.
    fn name(&self) -> &'static str;
    /// Other names for it.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }
    /// What people would call such a task.
    fn what(&self, arguments: &Value) -> Option<String>;
    /// The process for a call with `outputs` outputs.
    fn plan(&self, arguments: &Value, outputs: u32, desk: &mut dyn Desk) -> Result<Plan, Refused>;
}

/// What runs a task.
#[derive(Clone)]
pub(crate) enum Kind {
    /// A process for each task.
    Process(Arc<dyn ProcessExecutor>),
    /// A thread of the engine.
    Internal(&'static str),
    /// A thread of the engine, by turns: whole scripts.
    Script,
    /// Worker processes of a plug-in.
    Plugin(Arc<str>),
    /// Worker processes that run Python.
    Python,
    /// Nobody: the task fails with a clear error.
    Unknown(Arc<str>),
}

impl Kind {
    pub(crate) fn name(&self) -> &str {
        match self {
            Kind::Process(executor) => executor.name(),
            Kind::Internal(name) => name,
            Kind::Script => SKYWRITING,
            Kind::Python => python::PYTHON,
            Kind::Plugin(name) | Kind::Unknown(name) => name,
        }
    }

    /// How its tasks are run that need `resources`.
    pub(crate) fn class(&self, resources: &Resources) -> Class {
        match self {
            Kind::Process(_) => Class::Process,
            Kind::Internal(_) | Kind::Script | Kind::Unknown(_) => Class::Coordination,
            Kind::Python => Class::Pooled(python::pool(resources.millicores)),
            Kind::Plugin(name) => Class::Pooled(name.clone()),
        }
    }

    pub(crate) fn needs(&self) -> Needs {
        match self {
            Kind::Process(_) | Kind::Internal(_) => Needs::Everything,
            Kind::Script | Kind::Plugin(_) | Kind::Python | Kind::Unknown(_) => Needs::Nothing,
        }
    }

    /// Whether equal calls share one result unless the program says otherwise.
    pub(crate) fn is_pure(&self) -> bool {
        match self {
            Kind::Process(_) | Kind::Internal(_) => true,
            Kind::Script | Kind::Plugin(_) | Kind::Python | Kind::Unknown(_) => false,
        }
    }

    /// Whether its tasks are run again from what they were told, if they have to be.
    pub(crate) fn is_replayable(&self, options: &Options) -> bool {
        match self {
            Kind::Plugin(_) | Kind::Python => true,
            Kind::Script => options.retries > 0,
            Kind::Process(_) | Kind::Internal(_) | Kind::Unknown(_) => false,
        }
    }

    pub(crate) fn what(&self, arguments: &Value) -> Option<String> {
        match self {
            Kind::Process(executor) => executor.what(arguments),
            Kind::Python => python::what(arguments),
            Kind::Script => skywriting::what(arguments),
            Kind::Internal(_) | Kind::Plugin(_) | Kind::Unknown(_) => None,
        }
    }
}

/// All executors of a run.
pub(crate) struct Registry {
    known: BTreeMap<String, Kind>,
    plugins: BTreeMap<String, PathBuf>,
    python: Option<WorkerCommand>,
}

/// How a worker process is started.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WorkerCommand {
    /// The program and its words.
    pub(crate) words: Vec<OsString>,
    /// Added to the environment.
    pub(crate) environment: Vec<(String, OsString)>,
}

impl Registry {
    /// The executors that come with the engine, and the plug-ins found in `executors/` of the
    /// script's folder and on `path` (a value of `PATH`); earlier ones win. `run` is the run's
    /// folder.
    pub(crate) fn discover(path: &str, settings: &Settings, job: &Job<'_>, run: &Path) -> Registry {
        let script_folder = &script_folder(&settings.script);
        let mut known = BTreeMap::new();
        let processes: [Arc<dyn ProcessExecutor>; 3] = [
            Arc::new(stdinout::Stdinout),
            Arc::new(environ::Environ),
            Arc::new(shell::Shell),
        ];
        for executor in processes {
            for name in executor.aliases().iter().chain([&executor.name()]) {
                known.insert(name.to_string(), Kind::Process(executor.clone()));
            }
        }
        for name in names::INTERNAL {
            known.insert(name.to_string(), Kind::Internal(name));
        }
        known.insert(SKYWRITING.to_string(), Kind::Script);
        if settings.python.is_some() {
            known.insert(python::PYTHON.to_string(), Kind::Python);
        }
        let folders =
            std::iter::once(script_folder.join("executors")).chain(std::env::split_paths(path));
        let mut plugins = BTreeMap::new();
        for folder in folders {
            for (name, file) in plugins_in(&folder) {
                plugins.entry(name).or_insert(file);
            }
        }
        let python = settings
            .python
            .as_ref()
            .map(|_| python::command(settings, matches!(job, Job::Python), run));
        Registry {
            known,
            plugins,
            python,
        }
    }

    /// What runs tasks of the executor `name`.
    pub(crate) fn kind_of(&self, name: &str) -> Kind {
        if let Some(kind) = self.known.get(name) {
            return kind.clone();
        }
        match self.plugins.contains_key(name) {
            true => Kind::Plugin(name.into()),
            false => Kind::Unknown(name.into()),
        }
    }

    /// How workers of that pool are started.
    pub(crate) fn worker(&self, pool: &str) -> WorkerCommand {
        if executor_of(pool) == python::PYTHON
            && let Some(command) = &self.python
        {
            return python::with_cores(command.clone(), pool);
        }
        let file = self.plugins.get(pool).map(|path| path.clone().into());
        WorkerCommand {
            words: file.into_iter().collect(),
            environment: Vec::new(),
        }
    }

    /// All names, for messages.
    pub(crate) fn names(&self) -> Vec<String> {
        self.known
            .keys()
            .chain(self.plugins.keys())
            .cloned()
            .collect()
    }

    /// What to say to who asks for an executor that is not there.
    pub(crate) fn unknown(&self, name: &str) -> Refused {
        let known = self.names().join(", ");
        Refused::new(format!("there is no executor {name:?}; there are {known}")).hint(format!(
            "an executor of your own is an executable {PLUGIN_PREFIX}{name} in the folder \
             executors beside the script, or on PATH"
        ))
    }
}

/// The executor that the workers of a pool are of: `python` for `python:4`.
pub(crate) fn executor_of(pool: &str) -> &str {
    pool.split_once(':').map_or(pool, |(executor, _)| executor)
}

fn plugins_in(folder: &Path) -> Vec<(String, PathBuf)> {
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
