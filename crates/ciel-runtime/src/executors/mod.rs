//! Executors: who runs what, found by name.
//!
//! An [`Executor`] declares all that the engine has to know of its tasks, and by [`Launch`] how
//! they start: by a command line for each ([`command`]), in worker processes ([`worker`]), on a
//! thread of the engine ([`coroutine`]), or at their turns in serial order ([`release`]). No other
//! part of the engine knows the name of an executor. Read next: `request`, for how a call becomes a
//! task.

pub(crate) mod call;
pub(crate) mod command;
pub(crate) mod coroutine;
pub(crate) mod direct;
mod environ;
mod export;
mod first_step;
mod glob;
mod grab;
mod names;
mod openings;
pub(crate) mod python;
pub(crate) mod release;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod shell;
pub(crate) mod skywriting;
mod stdinout;
mod streaming;
mod surroundings;
mod sync;
mod template;
pub(crate) mod tools;
mod unknown;
pub(crate) mod words;
pub(crate) mod worker;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use ciel_model::{Class, Descriptor, InputMode, Options, Pool, Reached, Refused, Streams};
use rustc_hash::FxHashMap;
use serde_json::Value;

use self::call::Call;
use self::command::{Command, CommandLine};
use self::coroutine::Coroutine;
use self::release::Release;
use self::worker::{PLUGIN_PREFIX, Plugin, Worker, WorkerStart, plugins_in};
use crate::job::Job;
use crate::layout::script_folder;
use crate::programs::Programs;
use crate::settings::Settings;

/// What runs the tasks of one name.
pub(crate) trait Executor: Send + Sync {
    /// Its name in programs.
    fn name(&self) -> &Arc<str>;

    /// How its tasks take an input for which the caller requested the mode `asked`.
    fn input_mode(&self, asked: Option<InputMode>) -> InputMode;

    /// Whether equal calls share one result by default.
    fn is_pure(&self) -> bool {
        false
    }

    /// Whether results of its tasks that run this code with these arguments may be kept across
    /// runs: all that determines them is known.
    fn is_keepable(&self, _code: &Reached, _arguments: &Value) -> bool {
        false
    }

    /// What a task depends on beside the contents of its inputs; none if that is known only when it
    /// runs.
    fn call(
        &self,
        _programs: &Programs,
        _settings: &Settings,
        descriptor: &Descriptor,
    ) -> Option<Call> {
        Some(Call::plain(descriptor))
    }

    /// When its tasks record facts from which they can be replayed.
    fn replay(&self) -> Replay {
        Replay::Never
    }

    /// The label of a task with these arguments.
    fn label_of(&self, _arguments: &Value) -> Option<String> {
        None
    }

    /// Inputs of a task with these arguments that may be streams, by index.
    fn stream_inputs(&self, _arguments: &Value) -> Vec<usize> {
        Vec::new()
    }

    /// Outputs of a task with these arguments that others may read while it writes them.
    fn streams(&self, _arguments: &Value, _outputs: u32) -> Streams {
        Streams::default()
    }

    /// The arguments of a call that a program has written; `Null` if only the executor reads them.
    ///
    /// # Errors
    /// They are not JSON where the engine reads them.
    fn validate(&self, written: &[u8]) -> Result<Value, Refused> {
        serde_json::from_slice(written).map_err(|error| {
            let name = self.name();
            Refused::new(format!(
                "the arguments it gave to {name} are not JSON: {error}"
            ))
        })
    }

    /// The options of a task for which the caller requested `asked`.
    fn options(&self, asked: Arc<Options>) -> Arc<Options> {
        asked
    }

    /// The payload of a call whose arguments are `written`, and read as `arguments`.
    fn payload(&self, written: Bytes, _arguments: &Value) -> Bytes {
        written
    }

    /// How its tasks are begun.
    fn launch(&self) -> Launch<'_>;
}

/// When tasks record facts from which they can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replay {
    /// Another attempt begins from nothing.
    Never,
    /// If something may replay them: the task has retries, or the run is recorded.
    IfUseful,
    /// Each of them.
    Always,
}

/// How tasks are begun.
pub(crate) enum Launch<'a> {
    /// As a process for each.
    Command(&'a dyn CommandLine),
    /// In a worker of a pool.
    Worker(&'a dyn Worker),
    /// On a thread of the engine.
    Coroutine(&'a dyn Coroutine),
    /// On the input/output thread, when the serial order has reached it.
    Release(&'a dyn Release),
}

impl Launch<'_> {
    /// How a task with these options is run.
    pub(crate) fn class(&self, options: &Options) -> Class {
        match self {
            Launch::Command(_) | Launch::Release(_) => Class::Process,
            Launch::Worker(worker) => Class::Pooled(worker.pool(options)),
            Launch::Coroutine(_) => Class::Coordination,
        }
    }
}

/// Files that the engine shares with its workers.
pub(crate) struct Shared<'a> {
    /// The folder of the run.
    pub(crate) run: &'a Path,
    /// How many cores are idle.
    pub(crate) idle_cores: Option<PathBuf>,
}

/// All executors of a run.
pub(crate) struct Registry {
    known: FxHashMap<String, Arc<dyn Executor>>,
    /// Where plug-ins are looked for, once somebody asks for one: `PATH` has thousands of files.
    folders: Vec<PathBuf>,
    plugins: OnceLock<FxHashMap<String, Arc<dyn Executor>>>,
    scripts: Arc<dyn Executor>,
}

impl Registry {
    /// The executors that come with the engine, and the plug-ins in `executors/` of the script's
    /// folder and on `path` (a value of `PATH`); earlier ones win.
    pub(crate) fn new(
        path: &str,
        settings: &Settings,
        job: &Job<'_>,
        shared: Shared<'_>,
    ) -> Registry {
        let mut known = FxHashMap::default();
        add_command(&mut known, stdinout::Stdinout);
        add_command(&mut known, environ::Environ);
        let is_strict = settings.strict_shell;
        add_command(&mut known, shell::Shell { is_strict });
        add(&mut known, export::Export::new());
        add(&mut known, glob::executor());
        add(&mut known, grab::executor());
        add(&mut known, sync::executor());
        add(&mut known, skywriting::Skywriting::new());
        if settings.python.is_some() {
            let is_job = matches!(job, Job::Python);
            add(&mut known, python::Python::new(settings, is_job, shared));
        }
        let beside = script_folder(&settings.script).join("executors");
        let folders = std::iter::once(beside).chain(std::env::split_paths(path));
        Registry {
            scripts: known[names::SKYWRITING].clone(),
            known,
            folders: folders.collect(),
            plugins: OnceLock::new(),
        }
    }

    fn plugins(&self) -> &FxHashMap<String, Arc<dyn Executor>> {
        self.plugins.get_or_init(|| {
            let mut plugins: FxHashMap<String, Arc<dyn Executor>> = FxHashMap::default();
            for (name, file) in self.folders.iter().flat_map(|folder| plugins_in(folder)) {
                let plugin = || -> Arc<dyn Executor> { Arc::new(Plugin::new(&name, file)) };
                plugins.entry(name.clone()).or_insert_with(plugin);
            }
            plugins
        })
    }

    /// The executor of scripts and their functions.
    pub(crate) fn scripts(&self) -> &dyn Executor {
        &*self.scripts
    }

    /// The executor `name`; one that refuses all tasks if there is none.
    pub(crate) fn find(&self, name: &str) -> Arc<dyn Executor> {
        let found = self.known.get(name).or_else(|| self.plugins().get(name));
        match found {
            Some(executor) => executor.clone(),
            None => Arc::new(unknown::Unknown::new(name, self.unknown(name))),
        }
    }

    /// How workers of that pool are had.
    ///
    /// # Errors
    /// Nothing here keeps such a pool.
    pub(crate) fn worker(&self, pool: &Pool) -> Result<WorkerStart, Refused> {
        if session::is_session(pool) {
            return Ok(WorkerStart::Client);
        }
        match self.find(&pool.executor).launch() {
            Launch::Worker(worker) => Ok(WorkerStart::Process(worker.command(pool))),
            Launch::Command(_) | Launch::Coroutine(_) | Launch::Release(_) => {
                Err(self.unknown(&pool.executor))
            }
        }
    }

    /// All names in order, the engine's own first, for messages.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = [&self.known, self.plugins()].map(|executors| {
            let mut names: Vec<String> = executors.keys().cloned().collect();
            names.sort();
            names
        });
        names.concat()
    }

    /// The answer to a call of an executor that does not exist.
    pub(crate) fn unknown(&self, name: &str) -> Refused {
        let known = self.names().join(", ");
        Refused::new(format!("unknown executor {name:?}; available: {known}")).hint(format!(
            "an executor of your own is an executable {PLUGIN_PREFIX}{name} in the folder \
             executors beside the script, or on PATH"
        ))
    }
}

fn add(known: &mut FxHashMap<String, Arc<dyn Executor>>, executor: impl Executor + 'static) {
    known.insert(executor.name().to_string(), Arc::new(executor));
}

fn add_command<C: CommandLine + 'static>(
    known: &mut FxHashMap<String, Arc<dyn Executor>>,
    command: C,
) {
    let aliases = command.aliases();
    let executor: Arc<dyn Executor> = Arc::new(Command::new(command));
    let names = aliases.iter().map(|alias| alias.to_string());
    for name in names.chain([executor.name().to_string()]) {
        known.insert(name, executor.clone());
    }
}
