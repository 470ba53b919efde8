//! Programs in Skywriting: the job's own, and those that tasks call by the names of their files.
//!
//! A called file is read, checked and compiled when its first task begins, on that task's thread,
//! and once for the whole run, so that a script and the functions that it spawns are of one text.
//! What a task of a called script has to know of its origin stands at the front of its payload;
//! nothing is kept for each call. It does not read files: the settings say who does. Read next:
//! `scripts`, which runs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ciel_model::Refused;
use ciel_skywriting::code::Code;
use ciel_skywriting::hir::{self, Source};
use ciel_skywriting::machine::{Role, ScriptEnvironment};
use serde::Deserialize;
use serde_json::Value;

use crate::references::reference;
use crate::settings::{ScriptError, Settings};

/// A script, ready to be run by its callers.
pub(crate) struct Program {
    pub(crate) code: Arc<Code>,
    pub(crate) sources: Vec<Source>,
}

impl Program {
    fn new(checked: &hir::Program) -> Program {
        Program {
            code: Arc::new(Code::compile(checked)),
            sources: checked.sources.clone(),
        }
    }
}

/// The content of the payload of a script's task.
pub(crate) struct Entry<'a> {
    pub(crate) program: Arc<Program>,
    pub(crate) surroundings: Arc<ScriptEnvironment>,
    /// What the payloads of functions that it spawns begin with.
    pub(crate) origin: Arc<[u8]>,
    /// The call of a function; the whole script if it is empty.
    pub(crate) call: &'a [u8],
}

/// Why a task of a script cannot begin.
pub(crate) enum ProgramError {
    /// Its arguments.
    Refused(Refused),
    /// Its file.
    Script(ScriptError),
}

impl From<Refused> for ProgramError {
    fn from(refused: Refused) -> ProgramError {
        ProgramError::Refused(refused)
    }
}

/// The file of a called program; empty until it was read successfully.
type Slot = Arc<Mutex<Option<Arc<Program>>>>;

/// All programs of a run.
pub(crate) struct Programs {
    own: Option<Arc<Program>>,
    /// For the job's own root.
    root: Arc<ScriptEnvironment>,
    /// For all that it spawns.
    inner: Arc<ScriptEnvironment>,
    /// Where relative names of files begin.
    folder: PathBuf,
    called: Mutex<BTreeMap<PathBuf, Slot>>,
}

impl Programs {
    /// The job's own script, if it is one, and no other yet. `env` is the environment of scripts.
    pub(crate) fn new(
        own: Option<&hir::Program>,
        settings: &Settings,
        env: BTreeMap<String, String>,
    ) -> Programs {
        let root = ScriptEnvironment {
            argv: settings.arguments.clone(),
            env: Arc::new(env),
            role: Role::Job,
            heap_bytes_max: settings.heap_bytes_max,
        };
        Programs {
            own: own.map(|checked| Arc::new(Program::new(checked))),
            inner: Arc::new(ScriptEnvironment {
                role: Role::Function,
                ..root.clone()
            }),
            root: Arc::new(root),
            folder: crate::layout::script_folder(&settings.script),
            called: Mutex::default(),
        }
    }

    /// What to run for a task with that payload and so many inputs and outputs.
    ///
    /// # Errors
    /// A called file that cannot be had, or arguments that are none.
    pub(crate) fn enter<'a>(
        &self,
        settings: &Settings,
        payload: &'a [u8],
        outputs: u32,
    ) -> Result<Entry<'a>, ProgramError> {
        let (origin, call) = parted(payload);
        if origin.is_empty() {
            return Ok(self.enter_own(call));
        }
        let (file, argv) = called(origin)?;
        if outputs != 1 {
            let message = format!("a script has one output, not {outputs}");
            return Err(Refused::new(message).into());
        }
        let role = match call {
            [] => Role::Script,
            _ => Role::Function,
        };
        let surroundings = ScriptEnvironment {
            argv,
            role,
            ..(*self.inner).clone()
        };
        Ok(Entry {
            program: self
                .program(settings, &file)
                .map_err(ProgramError::Script)?,
            surroundings: Arc::new(surroundings),
            origin: origin.into(),
            call,
        })
    }

    fn enter_own<'a>(&self, call: &'a [u8]) -> Entry<'a> {
        let own = self.own.clone();
        let surroundings = match call {
            [] => &self.root,
            _ => &self.inner,
        };
        Entry {
            program: own.expect("only the job's own script makes tasks without an origin"),
            surroundings: surroundings.clone(),
            origin: Arc::default(),
            call,
        }
    }

    /// The program in a file. A thread that needs it while another reads it waits. A file that
    /// cannot be read is read again by the next task: the user may have fixed it.
    fn program(&self, settings: &Settings, file: &str) -> Result<Arc<Program>, ScriptError> {
        let path = self.path(file);
        let slot = {
            let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
            called.entry(path.clone()).or_default().clone()
        };
        let mut program = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = &*program {
            return Ok(program.clone());
        }
        let checked = settings.scripts.read(&path)?;
        let compiled = Arc::new(Program::new(&checked));
        Ok(program.insert(compiled).clone())
    }

    /// The path of a file, shortened for messages.
    fn path(&self, file: &str) -> PathBuf {
        let path = self.folder.join(file);
        let here = std::env::current_dir().unwrap_or_default();
        match path.strip_prefix(here) {
            Ok(short) if short != Path::new("") => short.to_path_buf(),
            _ => path,
        }
    }
}

/// Whether a task with that payload may have a file to read first. It may be a wrong guess for the
/// call of a function whose encoding ends like an origin; that does no harm.
pub(crate) fn may_read(payload: &[u8]) -> bool {
    payload.first().is_some_and(|first| *first >= b' ') && payload.last() == Some(&b'}')
}

/// Origin and call. A call begins with its version, which is no character of JSON.
fn parted(payload: &[u8]) -> (&[u8], &[u8]) {
    match payload.first() {
        Some(first) if *first >= b' ' => {
            let mut values = serde_json::Deserializer::from_slice(payload).into_iter::<Value>();
            values.next();
            payload.split_at(values.byte_offset())
        }
        _ => (&[], payload),
    }
}

/// `{"file": …, "args": […]}` as `spawn_exec` takes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    file: String,
    #[serde(default)]
    args: Vec<Value>,
}

/// The file and `argv()` of a called script.
fn called(origin: &[u8]) -> Result<(String, Vec<String>), Refused> {
    let asked: Called = serde_json::from_slice(origin).map_err(|error| {
        Refused::new(format!("invalid arguments for skywriting: {error}"))
            .hint("give the file and its arguments: {\"file\": \"report.sw\", \"args\": [\"a\"]}")
    })?;
    let argv: Result<Vec<String>, Refused> = asked.args.iter().map(argument).collect();
    Ok((asked.file, argv?))
}

fn argument(value: &Value) -> Result<String, Refused> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        other if reference(other).is_some() => Err(Refused::new(
            "a script cannot take a reference as an argument",
        )
        .hint("pass the value of the reference, or call a function instead of a script")),
        other => Err(Refused::new(format!(
            "arguments of a script are text, numbers and booleans, not {other}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_of_a_called_script_comes_apart_again() {
        let origin = br#"{"args":["}"],"file":"a.sw"}"#;
        let payload = [&origin[..], b"\x01call"].concat();
        assert_eq!(parted(&payload), (&origin[..], &b"\x01call"[..]));
        assert_eq!(parted(origin), (&origin[..], &b""[..]));
        assert!(may_read(origin) && !may_read(&payload) && !may_read(b"\x01}"));
        assert_eq!(parted(b"\x01{}"), (&b""[..], &b"\x01{}"[..]));
        assert_eq!(parted(b""), (&b""[..], &b""[..]));
    }

    #[test]
    fn arguments_are_told_as_text() {
        let origin = br#"{"file": "a.sw", "args": ["b c", 3, 2.5, true]}"#;
        let (file, argv) = called(origin).expect("these are arguments");
        assert_eq!(file, "a.sw");
        assert_eq!(argv, ["b c", "3", "2.5", "true"]);
    }

    #[test]
    fn arguments_that_are_none_are_refused_with_the_reason() {
        for (origin, reason) in [
            (r#"{"args": []}"#, "missing field `file`"),
            (r#"{"file": 3}"#, "invalid type"),
            (r#"{"file": "a.sw", "arguments": []}"#, "unknown field"),
            (r#"{"file": "a.sw", "args": [{"$ref": 0}]}"#, "a reference"),
            (r#"{"file": "a.sw", "args": [null]}"#, "not null"),
            ("5", "invalid arguments"),
        ] {
            let refused = called(origin.as_bytes()).expect_err(origin);
            assert!(refused.message.contains(reason), "{}", refused.message);
        }
    }
}
