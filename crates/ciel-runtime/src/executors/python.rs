//! `python`: tasks that are functions of Python modules, run by pooled workers.
//!
//! A worker runs the module `ciel.worker` and speaks the executor protocol. Tasks that need more
//! than one core have pools of their own, because numeric libraries read their number of threads
//! once, when they are loaded. It does not know what a payload means unless it is JSON.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ciel_model::{Class, Descriptor, InputMode, Options, Pool, Reached, Refused};
use ciel_view::inspect::FAILED;
use serde_json::{Value, json};

use super::names::PYTHON;
use super::worker::{self, Worker, WorkerCommand};
use super::{Executor, Launch, Replay, Shared};
use crate::layout::{SCRIPT_FOLDER, THREAD_VARIABLES, code_folder, script_folder};
use crate::settings::{self, Settings};

const HINT: &str =
    "Python tasks need CPython 3.11 or newer with the module ciel; --python FILE names one";

pub(super) struct Python {
    name: Arc<str>,
    command: WorkerCommand,
}

impl Python {
    /// Workers of the settings' interpreter. `is_job` is whether the script itself is a Python
    /// program.
    pub(super) fn new(settings: &Settings, is_job: bool, shared: Shared<'_>) -> Python {
        Python {
            name: PYTHON.into(),
            command: command(settings, is_job, shared),
        }
    }
}

impl Executor for Python {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn input_mode(&self, asked: Option<InputMode>) -> InputMode {
        worker::input_mode(asked)
    }

    fn replay(&self) -> Replay {
        Replay::Always
    }

    fn label_of(&self, arguments: &Value) -> Option<String> {
        label_of(arguments)
    }

    fn validate(&self, _written: &[u8]) -> Result<Value, Refused> {
        Ok(Value::Null)
    }

    fn is_keepable(&self, code: &Reached, _arguments: &Value) -> bool {
        code.digest().is_some()
    }

    fn launch(&self) -> Launch<'_> {
        Launch::Worker(self)
    }
}

impl Worker for Python {
    fn pool(&self, options: &Options) -> Pool {
        pool(&self.name, options.resources.millicores)
    }

    fn command(&self, pool: &Pool) -> WorkerCommand {
        with_cores(self.command.clone(), pool)
    }
}

/// The pool of tasks that need so many thousandths of a core.
fn pool(name: &Arc<str>, millicores: u32) -> Pool {
    Pool::new(name.clone(), millicores.div_ceil(1000).max(1))
}

/// The label of a task whose arguments are JSON: its function.
fn label_of(arguments: &Value) -> Option<String> {
    let function = arguments.get("function")?.as_str()?;
    let name = function.rsplit([':', '.']).next()?;
    (!name.is_empty()).then(|| name.to_string())
}

/// How workers are started whatever their pool.
fn command(settings: &Settings, is_job: bool, shared: Shared<'_>) -> WorkerCommand {
    let python = settings.python.as_ref();
    let settings::Python {
        interpreter,
        module_path,
    } = python.expect("the caller has an interpreter");
    let module = ["-P", "-m", "ciel.worker"].map(OsString::from);
    let words = std::iter::once(interpreter.clone().into_os_string());
    let words = words.chain(module).collect();
    let variable = |name: &str, value: OsString| (name.to_string(), value);
    let mut environment = vec![
        variable(SCRIPT_FOLDER, script_folder(&settings.script).into()),
        variable("CIEL_FAILED", absolute(&shared.run.join(FAILED)).into()),
    ];
    if is_job {
        let file = absolute(&settings.script).into_os_string();
        environment.push(variable("CIEL_JOB", file));
        let folder = code_folder(settings).into_os_string();
        environment.push(variable("CIEL_JOB_FOLDER", folder));
    }
    if settings.serial {
        environment.push(variable("CIEL_SERIAL", "1".into()));
    } else if let Some(path) = shared.idle_cores.filter(|_| may_keep_children(settings)) {
        environment.push(variable("CIEL_IDLE_CORES", path.into()));
    }
    if settings.output_bound().is_some() {
        environment.push(variable("CIEL_ASKS", "1".into()));
    }
    if let Some(children_max) = settings.children_bound() {
        environment.push(variable(
            "CIEL_CHILDREN_MAX",
            children_max.to_string().into(),
        ));
    }
    if let Some(module_path) = module_path {
        environment.push(variable("CIEL_PYTHON_PATH", module_path.into()));
    }
    let title = format!("{PYTHON} {}", interpreter.display());
    WorkerCommand {
        title,
        words,
        environment,
        hint: Some(HINT),
        has_template: true,
    }
}

/// Whether children may run as calls: those have no time limit, and cannot run a second time.
fn may_keep_children(settings: &Settings) -> bool {
    settings.timeout_us.is_none() && !settings.check
}

/// Workers may be in another folder when they need it.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The command with the variables for the cores of its pool.
fn with_cores(mut command: WorkerCommand, pool: &Pool) -> WorkerCommand {
    let cores = pool.cores.to_string();
    let set = |name: &&str| std::env::var_os(name).is_some();
    let threads = THREAD_VARIABLES.iter().filter(|name| !set(name)).copied();
    let variables = threads.chain(["CIEL_CORES"]);
    let variable = |name: &str| (name.to_string(), OsString::from(&cores));
    command.environment.extend(variables.map(variable));
    command
}

/// The task that a Python file begins with: its function `main`, with these arguments.
pub(crate) fn root_descriptor(what: &str, settings: &Settings) -> Descriptor {
    let (script, arguments) = (&settings.script, &settings.arguments);
    let path = std::fs::canonicalize(script).unwrap_or_else(|_| script.clone());
    let mut payload = json!({"main": path.to_string_lossy(), "args": arguments});
    if let Some(module) = &settings.given.module {
        payload["module"] = json!(module);
    }
    let class = Class::Pooled(Pool::new(PYTHON, 1));
    let mut descriptor = Descriptor::plain(PYTHON, class, what, payload.to_string().into_bytes());
    descriptor.replayable = true;
    descriptor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_several_cores_have_a_pool_of_their_own() {
        let name = PYTHON.into();
        let pools = [0, 500, 1000, 1001, 4000];
        let pools = pools.map(|millicores| pool(&name, millicores).to_string());
        assert_eq!(
            pools,
            ["python", "python", "python", "python:2", "python:4"]
        );
    }

    #[test]
    fn worker_is_told_the_cores_of_its_pool() {
        let told = with_cores(WorkerCommand::default(), &Pool::new(PYTHON, 3)).environment;
        assert!(told.contains(&("CIEL_CORES".to_string(), "3".into())));
        let one = with_cores(WorkerCommand::default(), &Pool::new(PYTHON, 1)).environment;
        assert!(one.contains(&("CIEL_CORES".to_string(), "1".into())));
    }

    #[test]
    fn call_by_json_is_named_by_its_function() {
        for (function, name) in [("jobs:Grid.step", "step"), ("tools.py:main", "main")] {
            assert_eq!(
                label_of(&json!({ "function": function })).as_deref(),
                Some(name)
            );
        }
        assert_eq!(label_of(&json!({})), None);
    }
}
