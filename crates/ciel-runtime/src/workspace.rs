//! The files of one task attempt: inputs laid out, outputs to be written, scratch cleared.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ciel_graph::Assignment;
use ciel_model::{Content, Failure, Form, Handle, Keeping, Refused, Value, limits};
use ciel_store::StoreError;
use rustc_hash::FxHashMap;

use crate::engine::Engine;
use crate::executors::command::{Stdout, Workspace};
use crate::lost::Since;
use crate::objects::{self, ObjectError, PlainError};
use crate::output;
use crate::references::reference;

/// The value of an input that is read while it is written.
pub(crate) const A_STREAM: &str = "a stream";

/// Characters of an input in a message.
const INPUT_CHARACTERS_MAX: usize = 40;

/// The files of one attempt; they go when it is dropped.
pub(crate) struct TaskWorkspace<'a> {
    engine: &'a Engine,
    assignment: &'a Assignment,
    inputs: Vec<Value<Handle>>,
    /// Inputs that the process reads from descriptors of these numbers.
    descriptors: FxHashMap<usize, i32>,
    /// Outputs whose paths end in a name: what these paths end in.
    named_outputs: FxHashMap<u32, String>,
    /// Inputs that the command reads as folders: their archives, and these folders.
    unpacked: FxHashMap<usize, (PathBuf, PathBuf)>,
    /// Outputs that the command writes as folders.
    packed: FxHashMap<u32, PathBuf>,
    /// Outputs that are written through a pipe: the files that take what comes out of it.
    growing: FxHashMap<u32, PathBuf>,
    /// Pipes that the process appends to in place of files, with these files.
    appending: Vec<(OwnedFd, File)>,
    /// When its inputs were laid out.
    began: Since,
    /// Trouble that a refusal stands for, so that its kind is not lost.
    trouble: Option<Failure>,
}

impl<'a> TaskWorkspace<'a> {
    pub(crate) fn new(engine: &'a Engine, assignment: &'a Assignment) -> TaskWorkspace<'a> {
        TaskWorkspace {
            engine,
            assignment,
            inputs: Vec::new(),
            descriptors: FxHashMap::default(),
            named_outputs: FxHashMap::default(),
            unpacked: FxHashMap::default(),
            packed: FxHashMap::default(),
            growing: FxHashMap::default(),
            appending: Vec::new(),
            began: engine.lost.now(),
            trouble: None,
        }
    }

    /// The inputs, by index.
    pub(crate) fn lay_out(&mut self, inputs: Vec<Value<Handle>>) {
        self.inputs = inputs;
    }

    /// The numbers of the descriptors by which the process reads some of its inputs.
    pub(crate) fn set_descriptors(&mut self, descriptors: FxHashMap<usize, i32>) {
        self.descriptors = descriptors;
    }

    fn scratch(&self, what: &str) -> Result<PathBuf, ObjectError> {
        let (name, attempt) = (self.assignment.label.name, self.assignment.attempt);
        Ok(self.engine.folder.scratch().path(name.0, attempt.0, what)?)
    }

    pub(crate) fn failed(&self, trouble: ObjectError) -> Box<Failure> {
        Box::new(trouble.failure(self.engine, &self.assignment.label))
    }

    /// Where an output is written.
    pub(crate) fn output_path(&self, index: u32) -> Result<PathBuf, Box<Failure>> {
        self.output_in_scratch(index)
            .map_err(|trouble| self.failed(trouble))
    }

    fn output_in_scratch(&self, index: u32) -> Result<PathBuf, ObjectError> {
        match self.named_outputs.get(&index) {
            Some(named) => self.scratch(named),
            None => self.scratch(&format!("output.{index}")),
        }
    }

    /// What a command calls an output: its name, or its number.
    pub(crate) fn output_name(&self, index: u32) -> String {
        match self.named_outputs.get(&index) {
            Some(named) => named.strip_prefix("out.").unwrap_or(named).to_string(),
            None => index.to_string(),
        }
    }

    /// Makes an output a pipe; gives that with both of its ends.
    pub(crate) fn output_pipe(&self, index: u32) -> Result<(PathBuf, OwnedFd), Box<Failure>> {
        let named = format!("output.{index}");
        let purpose = self.named_outputs.get(&index).unwrap_or(&named);
        let (name, attempt) = (self.assignment.label.name, self.assignment.attempt);
        let made = self
            .engine
            .folder
            .scratch()
            .pipe(name.0, attempt.0, purpose);
        made.map_err(|error| self.failed(error.into()))
    }

    /// Makes the file that takes what comes out of the pipe of an output.
    pub(crate) fn growing_output(&mut self, index: u32) -> Result<(PathBuf, File), Box<Failure>> {
        let (name, attempt) = (self.assignment.label.name, self.assignment.attempt);
        let scratch = self.engine.folder.scratch();
        let made = scratch.growing(name.0, attempt.0, &format!("stream.{index}"));
        let (path, file) = made.map_err(|error| self.failed(error.into()))?;
        self.growing.insert(index, path.clone());
        Ok((path, file))
    }

    /// Where what was written to an output is.
    fn written_path(&self, index: u32) -> Result<PathBuf, Box<Failure>> {
        match self.growing.get(&index) {
            Some(path) => Ok(path.clone()),
            None => self.output_path(index),
        }
    }

    /// The process is about to make a file at that path of this task.
    pub(crate) fn prepare(&self, path: &Path) {
        self.engine.folder.scratch().prepare(path);
    }

    /// Where standard output that is no output of the task is written.
    pub(crate) fn printed_path(&self) -> Result<PathBuf, Box<Failure>> {
        self.scratch("stdout")
            .map_err(|trouble| self.failed(trouble))
    }

    /// The file of standard output that is no output of the task, if a pipe leads to it.
    pub(crate) fn stored_output(&self) -> Result<Option<File>, Box<Failure>> {
        match self.engine.settings.output_bound() {
            Some(_) => self.stored("stdout").map(Some),
            None => Ok(None),
        }
        .map_err(|trouble| self.failed(trouble))
    }

    fn stored(&self, what: &str) -> Result<File, ObjectError> {
        let (name, attempt) = (self.assignment.label.name, self.assignment.attempt);
        let scratch = self.engine.folder.scratch();
        let (_, file) = scratch.growing(name.0, attempt.0, what)?;
        Ok(file)
    }

    /// The pipes that the process appends to, each with its file.
    pub(crate) fn take_appending(&mut self) -> Vec<(OwnedFd, File)> {
        std::mem::take(&mut self.appending)
    }

    /// Where the process writes what it appends to its ordered file `index`.
    fn open_appended(&mut self, index: usize) -> Result<PathBuf, ObjectError> {
        if self.engine.settings.output_bound().is_none() {
            return self.appended_path(index);
        }
        let (name, attempt) = (self.assignment.label.name, self.assignment.attempt);
        let scratch = self.engine.folder.scratch();
        let purpose = format!("append.{index}");
        let file = self.stored(&purpose)?;
        let (path, ends) = scratch.pipe(name.0, attempt.0, &format!("{purpose}.pipe"))?;
        self.appending.push((ends, file));
        Ok(path)
    }

    /// The first input whose file is not what it was when the process began; those that are lost
    /// are recomputed for others.
    pub(crate) fn changed_input(&self) -> Option<usize> {
        let is_changed = |value: &Value<Handle>| {
            objects::has_changed_since(self.engine, &value.content, self.began)
        };
        self.inputs.iter().position(is_changed)
    }

    /// What was printed, of a task whose result may be kept or is checked; none if that is
    /// `bytes_max` or more.
    pub(crate) fn printed_bytes(&self, bytes_max: u64) -> Option<Bytes> {
        let is_checked = self.engine.settings.check && self.assignment.descriptor.purity.is_pure();
        if self.assignment.descriptor.keeping == Keeping::Never && !is_checked {
            return None;
        }
        let path = self.printed_path().ok()?;
        let scratch = self.engine.folder.scratch();
        match scratch.length(&path) {
            None | Some(0) => Some(Bytes::new()),
            Some(_) => scratch.short(&path, bytes_max),
        }
    }

    /// What was printed, as a piece of the ordered output; none if nothing was.
    pub(crate) fn take_printed(&self) -> Result<Option<ciel_ordered::Piece>, Box<Failure>> {
        self.take_written(&self.printed_path()?)
    }

    /// What the process appended to its ordered file `index`, likewise.
    pub(crate) fn take_appended(
        &self,
        index: usize,
    ) -> Result<Option<ciel_ordered::Piece>, Box<Failure>> {
        let path = self.appended_path(index);
        self.take_written(&path.map_err(|trouble| self.failed(trouble))?)
    }

    fn appended_path(&self, index: usize) -> Result<PathBuf, ObjectError> {
        self.scratch(&format!("append.{index}"))
    }

    fn take_written(&self, path: &Path) -> Result<Option<ciel_ordered::Piece>, Box<Failure>> {
        let scratch = self.engine.folder.scratch();
        if scratch.length(path).unwrap_or(0) == 0 {
            return Ok(None);
        }
        if let Some(bytes) = scratch.short(path, limits::INLINE_BYTES_MAX as u64) {
            return Ok(Some(Vec::from(bytes).into()));
        }
        output::adopt(self.engine, path)
            .map(Some)
            .map_err(|trouble| self.failed(trouble))
    }

    /// Keeps the end of what an attempt wrote to standard output for `ciel logs`, and returns the
    /// end of that as text, at most [`limits::ERROR_TAIL_BYTES_MAX`].
    pub(crate) fn keep_printed(&self, stdout: &Stdout) -> String {
        let (path, bytes_max) = match stdout {
            Stdout::Printed => (self.printed_path(), limits::LOG_BYTES_MAX),
            Stdout::Output(index) => (self.written_path(*index), limits::OUTPUT_LOG_BYTES_MAX),
        };
        let scratch = self.engine.folder.scratch();
        let end = path.ok();
        let end = end.and_then(|path| scratch.end(&path, bytes_max));
        let Some(end) = end.filter(|end| !end.is_empty()) else {
            return String::new();
        };
        let label = &self.assignment.label;
        self.engine.lock().log(label, "stdout", &end);
        let last = end.len().saturating_sub(limits::ERROR_TAIL_BYTES_MAX);
        String::from_utf8_lossy(&end[last..]).into_owned()
    }

    /// An input in a few words, for messages: the beginning of its text, or its length.
    pub(crate) fn described(&self, input: &serde_json::Value) -> String {
        let Some(index) = reference(input) else {
            return shortened(&input.to_string(), INPUT_CHARACTERS_MAX);
        };
        let Some(value) = self.inputs.get(index) else {
            return "nothing".to_string();
        };
        if self.descriptors.contains_key(&index) {
            return A_STREAM.to_string();
        }
        let length = match &value.content {
            Content::File { length, .. } => *length,
            Content::Inline(bytes) => bytes.len() as u64,
        };
        let text = match (&value.content, &value.form) {
            (Content::File { .. }, _) | (_, Form::Pickle) => None,
            (Content::Inline(_), _) => objects::plain_bytes(self.engine, value).ok(),
        };
        match text.as_deref().map(std::str::from_utf8) {
            Some(Ok(text)) if value.form == Form::Bytes || value.form == Form::Text => {
                shortened(&format!("{text:?}"), INPUT_CHARACTERS_MAX)
            }
            Some(Ok(text)) => shortened(text, INPUT_CHARACTERS_MAX),
            _ => format!("{length} bytes"),
        }
    }

    /// The file that standard input comes from: an input, or several joined.
    pub(crate) async fn standard_input(
        &mut self,
        indexes: &[usize],
    ) -> Result<Option<PathBuf>, Box<Failure>> {
        if let [index] = indexes {
            let path = self.input(*index);
            return path.map(Some).map_err(|refused| self.refused(refused));
        }
        let mut parts = Vec::with_capacity(indexes.len());
        for index in indexes {
            let bytes = self.input_bytes(*index);
            parts.push(bytes.map_err(|refused| self.refused(refused))?);
        }
        if parts.is_empty() {
            return Ok(None);
        }
        let scratch = self.engine.folder.scratch().clone();
        let (name, attempt) = (self.assignment.label.name, self.assignment.attempt);
        let join = move || scratch.join(name.0, attempt.0, "stdin", &parts);
        let joined = tokio::task::spawn_blocking(join).await;
        let joined = joined.expect("writing a file does not panic");
        joined.map(Some).map_err(|error| self.failed(error.into()))
    }

    /// The bytes of an input, as a command would read them from its file.
    pub(crate) fn taken(&mut self, index: usize) -> Result<Bytes, Box<Failure>> {
        let bytes = self.input_bytes(index);
        bytes.map_err(|refused| self.refused(refused))
    }

    /// Unpacks the inputs that the command reads as folders.
    ///
    /// # Errors
    /// Which input cannot be unpacked, and the store's.
    pub(crate) async fn unpack(&self) -> Result<(), (usize, StoreError)> {
        for (index, (archive, folder)) in &self.unpacked {
            let scratch = self.engine.folder.scratch().clone();
            let (archive, folder) = (archive.clone(), folder.clone());
            let unpacked = tokio::task::spawn_blocking(move || scratch.unpack(&archive, &folder));
            let unpacked = unpacked.await.expect("unpacking does not panic");
            unpacked.map_err(|error| (*index, error))?;
        }
        Ok(())
    }

    /// Packs the outputs that the command wrote as folders.
    pub(crate) async fn pack(&self) -> Result<(), Box<Failure>> {
        for (index, folder) in &self.packed {
            let scratch = self.engine.folder.scratch().clone();
            let (folder, archive) = (folder.clone(), self.output_path(*index)?);
            let packed = tokio::task::spawn_blocking(move || scratch.pack(&folder, &archive));
            let packed = packed.await.expect("packing does not panic");
            packed.map_err(|error| self.failed(error.into()))?;
        }
        Ok(())
    }

    /// The failure of a task that was refused something: the trouble behind that, if there was any.
    pub(crate) fn refused(&mut self, refused: Refused) -> Box<Failure> {
        let label = &self.assignment.label;
        let plain = || refused.failure(label);
        Box::new(self.trouble.take().unwrap_or_else(plain))
    }

    fn remember(&mut self, failure: Failure) -> Refused {
        let refused = Refused {
            message: failure.message.clone(),
            hint: failure.hint.clone(),
        };
        self.trouble = Some(failure);
        refused
    }

    fn value(&self, index: usize) -> Result<&Value<Handle>, Refused> {
        let count = self.inputs.len();
        self.inputs.get(index).ok_or_else(|| {
            Refused::new(format!(
                "its arguments name reference {index}, but it has {count}"
            ))
        })
    }

    /// The bytes of an input that a command reads.
    fn input_bytes(&mut self, index: usize) -> Result<Bytes, Refused> {
        match self.value(index)?.form {
            Form::Pickle => Err(not_a_file(index)),
            Form::Bytes
            | Form::Text
            | Form::Json
            | Form::TypedJson(_)
            | Form::Skywriting
            | Form::Other(_) => self.bytes(index),
        }
    }

    fn bytes(&mut self, index: usize) -> Result<Bytes, Refused> {
        let value = self.value(index)?.clone();
        objects::plain_bytes(self.engine, &value).map_err(|trouble: PlainError| {
            let failure = trouble.failure(self.engine, &self.assignment.label);
            self.remember(failure)
        })
    }
}

impl Drop for TaskWorkspace<'_> {
    fn drop(&mut self) {
        let (name, attempt) = (self.assignment.label.name, self.assignment.attempt);
        // What cannot be removed now goes with the run's folder.
        let _ = self.engine.folder.scratch().clear(name.0, attempt.0);
    }
}

impl Workspace for TaskWorkspace<'_> {
    fn input(&mut self, index: usize) -> Result<PathBuf, Refused> {
        if let Some(number) = self.descriptors.get(&index) {
            return Ok(format!("/dev/fd/{number}").into());
        }
        let value = self.value(index)?;
        if value.form == Form::Pickle {
            return Err(not_a_file(index));
        }
        match objects::plain_path(self.engine, value) {
            Ok(Some(path)) => Ok(path),
            Ok(None) => {
                let bytes = self.bytes(index)?;
                self.note(&format!("in.{index}"), &bytes)
            }
            Err(trouble) => {
                let failure = trouble.failure(self.engine, &self.assignment.label);
                Err(self.remember(failure))
            }
        }
    }

    fn program(&mut self, index: usize) -> Result<PathBuf, Refused> {
        let mut path = self.input(index)?;
        if !path.starts_with(self.engine.folder.path()) {
            // Nothing may run from where it is in memory.
            let bytes = self.bytes(index)?;
            path = self.note(&format!("in.{index}"), &bytes)?;
        }
        let allowed = self.engine.folder.scratch().allow_running(&path);
        allowed.map(|()| path).map_err(|error| {
            let failure = ObjectError::Store(error).failure(self.engine, &self.assignment.label);
            self.remember(failure)
        })
    }

    fn text(&mut self, index: usize) -> Result<String, Refused> {
        let form = self.value(index)?.form.clone();
        let bytes = self.bytes(index)?;
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return Err(Refused::new("an argument of its command line is not UTF-8"));
        };
        match form {
            Form::Bytes | Form::Pickle | Form::Other(_) => {
                Ok(text.strip_suffix('\n').unwrap_or(text).to_string())
            }
            Form::Text => Ok(text.to_string()),
            Form::Json | Form::TypedJson(_) | Form::Skywriting => {
                match serde_json::from_str(text) {
                    Ok(serde_json::Value::String(text)) => Ok(text),
                    _ => Ok(text.to_string()),
                }
            }
        }
    }

    fn output(&mut self, index: u32, name: Option<&str>) -> PathBuf {
        let named = name.map(|name| match name {
            "out" => name.to_string(),
            name => format!("out.{name}"),
        });
        if let Some(named) = named.filter(|named| self.scratch(named).is_ok()) {
            self.named_outputs.insert(index, named);
        }
        let path = self.output_in_scratch(index);
        path.expect("the names of outputs are short and plain")
    }

    fn appended(&mut self, index: usize) -> Result<PathBuf, Refused> {
        let path = self.open_appended(index);
        path.map_err(|trouble| {
            let failure = trouble.failure(self.engine, &self.assignment.label);
            self.remember(failure)
        })
    }

    fn input_folder(&mut self, index: usize) -> Result<PathBuf, Refused> {
        if let Some((_, folder)) = self.unpacked.get(&index) {
            return Ok(folder.clone());
        }
        let archive = self.input(index)?;
        let folder = self.scratch(&format!("in.{index}.folder"));
        let folder = folder.expect("the names of inputs are short and plain");
        self.unpacked.insert(index, (archive, folder.clone()));
        Ok(folder)
    }

    fn output_folder(&mut self, index: u32, name: &str) -> Result<PathBuf, Refused> {
        if let Some(folder) = self.packed.get(&index) {
            return Ok(folder.clone());
        }
        if self.assignment.descriptor.streams.outputs.contains(&index) {
            let why = format!("the output {name:?} is a folder, which cannot be a stream");
            let hint = "write an archive: tar -c . > {out}; or make a stream of the others only";
            return Err(Refused::new(why).hint(hint));
        }
        let (task, attempt) = (self.assignment.label.name, self.assignment.attempt);
        let scratch = self.engine.folder.scratch();
        let made = scratch.folder(task.0, attempt.0, &format!("folder.{name}"));
        let folder = made.map_err(|error| {
            let failure = ObjectError::Store(error).failure(self.engine, &self.assignment.label);
            self.remember(failure)
        })?;
        self.packed.insert(index, folder.clone());
        Ok(folder)
    }

    fn note(&mut self, what: &str, bytes: &[u8]) -> Result<PathBuf, Refused> {
        let (name, attempt) = (self.assignment.label.name, self.assignment.attempt);
        let scratch = self.engine.folder.scratch();
        let written = scratch.write(name.0, attempt.0, what, bytes);
        written.map_err(|error| {
            let failure = ObjectError::Store(error).failure(self.engine, &self.assignment.label);
            self.remember(failure)
        })
    }
}

fn not_a_file(index: usize) -> Refused {
    Refused::new(format!("its input {index} is a Python object, not a file"))
        .hint("return bytes or str from the task that produces it")
}

/// A word for the kernel; it holds no zero byte (executors refuse such words).
pub(crate) fn c_string(word: &OsStr) -> CString {
    let bytes: Vec<u8> = word
        .as_bytes()
        .iter()
        .copied()
        .filter(|byte| *byte != 0)
        .collect();
    CString::new(bytes).expect("zero bytes are filtered out")
}

/// On one line, at most so many characters.
pub(crate) fn shortened(text: &str, characters_max: usize) -> String {
    let flat = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = flat.take(characters_max).collect();
    if text.chars().nth(characters_max).is_some() {
        short.push('…');
    }
    short
}

/// `SIGSEGV` for 11.
pub(crate) fn signal_name(number: i32) -> String {
    let name = known_name(number);
    name.map_or_else(|| format!("signal {number}"), str::to_string)
}

/// The name of a signal that ends programs.
pub(crate) fn known_name(number: i32) -> Option<&'static str> {
    let known = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    let name = known.iter().find(|(known, _)| *known == number);
    name.map(|(_, name)| *name)
}
