//! Job packages of the original CIEL: from a file `NAME.pack` to a script and what it is given.
//!
//! The file is JSON: `package` names files, `start` the script among them and its variables. It
//! does not know how a job runs. Read next: `run`; for the format docs/reference/skywriting.md.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ciel_runtime::Package;
use serde_json::{Map, Value};

use crate::cli_error::CliError;

/// Bytes of a job package, or of a list of files that it names.
const PACK_BYTES_MAX: u64 = 4 << 20;

/// What a job package says.
#[derive(Debug, PartialEq)]
pub struct JobPack {
    /// The script that it starts.
    pub script: PathBuf,
    /// The arguments of the script.
    pub arguments: Vec<String>,
    /// Variables for its `env`.
    pub variables: BTreeMap<String, String>,
    /// The files that it names.
    pub packages: BTreeMap<String, Package>,
}

/// Whether a file is a job package, by its name.
pub fn is_pack(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "pack")
}

/// The job package in a file, for these words after its name.
///
/// # Errors
/// It cannot be read, or says what is not supported.
pub fn read(path: &Path, words: &[String]) -> Result<JobPack, CliError> {
    let reader = Reader { path, words };
    reader.job(&text(path)?)
}

/// The text of a file, if it is of a reasonable size.
fn text(path: &Path) -> Result<String, CliError> {
    let found = std::fs::metadata(path).and_then(|found| match found.len() > PACK_BYTES_MAX {
        true => Err(std::io::ErrorKind::FileTooLarge.into()),
        false => std::fs::read_to_string(path),
    });
    found.map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        CliError::usage("pack.unreadable", message)
    })
}

/// A job package that is being read.
struct Reader<'a> {
    path: &'a Path,
    words: &'a [String],
}

impl Reader<'_> {
    fn job(&self, text: &str) -> Result<JobPack, CliError> {
        let job: Value =
            serde_json::from_str(text).map_err(|error| self.wrong(format!("not JSON: {error}")))?;
        let start = self.entries(&job, "start")?;
        if let Some(handler) = start.get("handler").filter(|handler| **handler != "swi") {
            let hint = "here a job package starts a Skywriting script; \
                        docs/reference/skywriting.md has what to write instead of other executors";
            let message = format!("the handler {handler} is not supported");
            return Err(self.wrong(message).with_hint(hint));
        }
        let arguments = self.entries(&job["start"], "args")?;
        let mut packages = BTreeMap::new();
        for (name, entry) in &self.entries(&job, "package")? {
            packages.insert(name.clone(), self.package(name, &self.resolved(entry)?)?);
        }
        let script = arguments.get("sw_file_ref");
        let script = script.and_then(|script| packages.get(script["__package__"].as_str()?));
        let Some(Package::File(script)) = script else {
            let message = "start.args.sw_file_ref does not name a file of the package";
            return Err(self.wrong(message));
        };
        Ok(JobPack {
            script: script.clone(),
            arguments: self.start_arguments(arguments.get("start_args"))?,
            variables: self.variables(&arguments)?,
            packages,
        })
    }

    fn start_arguments(&self, given: Option<&Value>) -> Result<Vec<String>, CliError> {
        let given = given
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let words = given.iter().enumerate();
        words
            .map(|(at, word)| self.word(&format!("start_args[{at}]"), word))
            .collect()
    }

    fn variables(
        &self,
        arguments: &Map<String, Value>,
    ) -> Result<BTreeMap<String, String>, CliError> {
        let given = arguments.get("start_env").and_then(Value::as_object);
        let entries = given.into_iter().flatten();
        entries
            .map(|(name, value)| Ok((name.clone(), self.word(name, value)?)))
            .collect()
    }

    /// A value of the script's environment or an argument of it.
    fn word(&self, name: &str, value: &Value) -> Result<String, CliError> {
        match self.resolved(value)? {
            Value::String(word) => Ok(word),
            word @ (Value::Number(_) | Value::Bool(_)) => Ok(word.to_string()),
            other => Err(self.wrong(format!("{name} is not text or a number: {other}"))),
        }
    }

    /// The value with `{"__args__": n}` and `{"__env__": name}` replaced by what they stand for.
    fn resolved(&self, value: &Value) -> Result<Value, CliError> {
        match value {
            Value::Object(entries) if entries.contains_key("__args__") => {
                let at = entries["__args__"]
                    .as_u64()
                    .and_then(|at| usize::try_from(at).ok());
                let word = at.and_then(|at| self.words.get(at)).cloned();
                self.or_default(word, entries, &format!("argument {}", entries["__args__"]))
            }
            Value::Object(entries) if entries.contains_key("__env__") => {
                let name = entries["__env__"].as_str().unwrap_or_default();
                let value = std::env::var(name).ok();
                self.or_default(value, entries, &format!("the environment variable {name}"))
            }
            Value::Object(entries) => {
                let entries = entries.iter();
                let entries =
                    entries.map(|(name, value)| Ok((name.clone(), self.resolved(value)?)));
                entries.collect::<Result<_, _>>().map(Value::Object)
            }
            other => Ok(other.clone()),
        }
    }

    fn or_default(
        &self,
        found: Option<String>,
        entries: &Map<String, Value>,
        what: &str,
    ) -> Result<Value, CliError> {
        match (found, entries.get("default")) {
            (Some(word), _) => Ok(Value::String(word)),
            (None, Some(default)) => Ok(default.clone()),
            (None, None) => Err(self
                .wrong(format!("{what} is missing, and has no default"))
                .with_hint("arguments are counted from 0, after the name of the package")),
        }
    }

    /// What one entry of `package` names.
    fn package(&self, name: &str, entry: &Value) -> Result<Package, CliError> {
        let is_set = |key: &str| entry[key].as_bool().unwrap_or(false);
        if entry.get("urls").is_some() || is_set("urlindex") {
            let message = format!("the package {name} is read from URLs, which is not supported");
            let hint = "download the files, and name their list: {\"filenamelist\": FILE}";
            return Err(self.wrong(message).with_hint(hint));
        }
        if let Some(list) = entry["filenamelist"].as_str() {
            let lines = text(Path::new(list))?;
            let paths = lines.lines().map(str::trim).filter(|line| !line.is_empty());
            return Ok(Package::Index(paths.map(PathBuf::from).collect()));
        }
        let Some(file) = entry["filename"].as_str() else {
            return Err(self.wrong(format!("the package {name} has no filename")));
        };
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let file = match is_set("cwd") {
            true => PathBuf::from(file),
            false => folder.join(file),
        };
        Ok(match is_set("index") {
            true => Package::Index(vec![file]),
            false => Package::File(file),
        })
    }

    /// The dictionary under a key; empty if there is none.
    fn entries(&self, of: &Value, key: &str) -> Result<Map<String, Value>, CliError> {
        match &of[key] {
            Value::Null => Ok(Map::new()),
            Value::Object(entries) => Ok(entries.clone()),
            _ => Err(self.wrong(format!("{key} is not a dictionary"))),
        }
    }

    fn wrong(&self, what: impl std::fmt::Display) -> CliError {
        let message = format!("{}: {what}", self.path.display());
        CliError::usage("pack", message)
    }
}
