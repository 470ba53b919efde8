//! A task that a worker runs or keeps parked: its handles, its files, what it was told.
//!
//! It does not know what the task says; that is `requests`. Read next: `start`, which makes one.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ciel_engine::Attempt;
use ciel_graph::Assignment;
use ciel_model::{Content, Failure, Form, Handle, Label, Name, Resolution, WaitEnd, limits};
use ciel_node::AttemptKey;
use ciel_protocol::wire::reference::State;
use ciel_protocol::wire::{Answer, Concrete, Data, Future, Reference, Resume, answer};
use ciel_store::Scratch;
use rustc_hash::{FxHashMap, FxHashSet};

use super::lines::Lines;
use super::{Workers, failing};
use crate::engine::Engine;
use crate::objects::{self, Json, ObjectError, PlainError};
use crate::refused::Refused;

/// The outcome of what may fail the task.
pub(super) type Failed<T> = Result<T, Box<Failure>>;

/// A task in a worker.
pub(super) struct Held {
    pub(super) assignment: Box<Assignment>,
    /// By which both sides call this start.
    pub(super) tag: u32,
    pub(super) attempt: Attempt,
    pub(super) files: Files,
    /// Handles of which it was told that they are there.
    pub(super) told: FxHashSet<Handle>,
    /// Requests to be answered when what they are about is resolved.
    pub(super) watches: FxHashMap<Handle, Vec<u32>>,
    /// Numbers of its requests.
    pub(super) requests: FxHashSet<u32>,
    pub(super) errors: Lines,
    /// Bytes that it wrote to standard error.
    pub(super) errors_bytes: u64,
    /// Its attempt has failed already; only its last word is waited for.
    pub(super) over: bool,
    /// [`Engine::stops`] when this attempt was last found not to stop.
    pub(super) stops_seen: u64,
    /// The task whose place it has, if that is another's: it began by itself and was not to.
    pub(super) place_of: Option<AttemptKey>,
}

impl Held {
    /// A task that is about to start.
    pub(super) fn new(assignment: Box<Assignment>, tag: u32) -> Held {
        Held {
            attempt: Attempt::new(&assignment),
            files: Files::new(assignment.label.name, tag),
            assignment,
            tag,
            told: FxHashSet::default(),
            watches: FxHashMap::default(),
            requests: FxHashSet::default(),
            errors: Lines::default(),
            errors_bytes: 0,
            over: false,
            stops_seen: 0,
            place_of: None,
        }
    }

    /// The run whose place is free when this one is over.
    pub(super) fn seat(&self) -> AttemptKey {
        self.place_of.unwrap_or(self.attempt.key())
    }

    /// Whether its attempt is over, so that what it says concerns nobody.
    pub(super) fn is_idle(&mut self, engine: &Engine) -> bool {
        let stops = engine.stops();
        if self.over || self.stops_seen == stops {
            return self.over;
        }
        let is_stopping = engine.lock().is_stopping(self.attempt.key());
        if !is_stopping {
            self.stops_seen = stops;
        }
        is_stopping
    }

    pub(super) fn label(&self) -> &Label {
        &self.assignment.label
    }

    /// Something that is not allowed, as the task's failure.
    pub(super) fn refuse(&self, refused: Refused) -> Box<Failure> {
        Box::new(refused.failure(self.label()))
    }

    /// The store's trouble as the task's failure.
    pub(super) fn trouble(&self, engine: &Engine, trouble: ObjectError) -> Box<Failure> {
        Box::new(trouble.failure(engine, self.label()))
    }

    /// The task has come to that action; the index only grows.
    pub(super) fn reach(&mut self, actions: u64) -> Failed<()> {
        let reached = self.attempt.reach(actions);
        reached.map_err(|error| self.refuse(Refused::new(error.to_string())))
    }

    /// What is known behind a handle, as the worker receives it. References inside are delivered.
    pub(super) fn reference(
        &mut self,
        engine: &Engine,
        handle: Handle,
        known: Resolution,
    ) -> Failed<Reference> {
        self.attempt.receive(&known);
        let state = match known {
            Resolution::Future => State::Future(Future {}),
            Resolution::Failed(failure) => State::Error(failing::failure_told(&failure)),
            Resolution::Ready { value, .. } => {
                let references = value.references.iter().map(|handle| handle.0);
                let references = references.collect();
                self.object(engine, &value.form, value.content, references)?
            }
        };
        if !matches!(state, State::Future(_)) {
            self.told.insert(handle);
        }
        Ok(Reference {
            handle: handle.0,
            state: Some(state),
        })
    }

    /// Answers to a block; the core gives them in the order in which it was asked.
    pub(super) fn answers(
        &mut self,
        engine: &Engine,
        answers: Vec<(Handle, Resolution)>,
    ) -> Failed<Vec<Reference>> {
        let mut told = Vec::with_capacity(answers.len());
        for (handle, known) in answers {
            told.push(self.reference(engine, handle, known)?);
        }
        Ok(told)
    }

    /// The strand goes on: what it is told.
    pub(super) fn resume(
        &mut self,
        engine: &Engine,
        answers: Vec<(Handle, Resolution)>,
        ended: Option<WaitEnd>,
    ) -> Failed<Resume> {
        let answers = self.answers(engine, answers)?;
        let timed_out = ended.is_some_and(|ended| ended.timed_out);
        Ok(Resume { answers, timed_out })
    }

    fn object(
        &mut self,
        engine: &Engine,
        form: &Form,
        content: Content,
        references: Vec<u32>,
    ) -> Failed<State> {
        if *form == Form::Skywriting
            && let Some(state) = self.plain(engine, &content, &references)?
        {
            return Ok(state);
        }
        Ok(match content {
            Content::Inline(bytes) => data(bytes, form, references),
            Content::File { length, .. } => {
                let path = objects::whole_path(engine, &content)
                    .map_err(|trouble| self.trouble(engine, trouble))?;
                concrete(&path, length, form, references)
            }
        })
    }

    /// A value of a script as JSON, which every language reads; none if it holds functions.
    /// References in it stand as `{"$ref": i}`.
    fn plain(
        &mut self,
        engine: &Engine,
        content: &Content,
        references: &[u32],
    ) -> Failed<Option<State>> {
        let (form, references) = (&Form::Json, references.to_vec());
        let found = match objects::json(engine, content) {
            Ok(Json::Text(text)) if text.len() < limits::INLINE_BYTES_MAX => {
                return Ok(Some(data(text.into(), form, references)));
            }
            Ok(Json::Text(text)) => {
                let path = self.files.write(engine, text.as_bytes());
                path.map(|path| (path, text.len() as u64))
            }
            Ok(Json::Object { name, length }) => {
                let path = engine.objects.share(name);
                path.map(|path| (path, length)).map_err(ObjectError)
            }
            Err(PlainError::NotPlain(_)) => return Ok(None),
            Err(PlainError::Store(trouble)) => Err(trouble),
        };
        let (path, length) = found.map_err(|trouble| self.trouble(engine, trouble))?;
        Ok(Some(concrete(&path, length, form, references)))
    }

    /// The answer to a request.
    pub(super) fn answer(request: u32, result: answer::Result) -> Answer {
        Answer {
            request,
            result: Some(result),
        }
    }

    /// Nothing more comes of it here: shows what it left unfinished, removes its files.
    pub(super) fn close(mut self, workers: &Workers) {
        let rest = self.errors.finish();
        if !rest.is_empty() {
            let label = Some(self.label());
            workers.engine.observer.error_output(label, &rest);
        }
        self.files.clear(&workers.engine);
        workers.forget_shown(self.assignment.task);
    }
}

fn data(data: Bytes, form: &Form, references: Vec<u32>) -> State {
    State::Value(Data {
        data,
        form: form.name().to_string(),
        references,
        r#type: form.type_hint().unwrap_or_default().to_string(),
    })
}

fn concrete(path: &Path, length: u64, form: &Form, references: Vec<u32>) -> State {
    State::Concrete(Concrete {
        path: path.to_string_lossy().into_owned(),
        length,
        form: form.name().to_string(),
        references,
        r#type: form.type_hint().unwrap_or_default().to_string(),
    })
}

/// What a file that a task asked for is to become.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Purpose {
    Output(u32),
    Object,
}

/// The files of one start of a task.
pub(super) struct Files {
    name: Name,
    epoch: u32,
    /// Asked for and not committed, by request.
    pub(super) opened: BTreeMap<u32, (Purpose, PathBuf)>,
    made: u32,
    /// Something of it may be on the disk.
    touched: Cell<bool>,
}

impl Files {
    fn new(name: Name, epoch: u32) -> Files {
        Files {
            name,
            epoch,
            opened: BTreeMap::new(),
            made: 0,
            touched: Cell::new(false),
        }
    }

    /// A name for a new object's file, unlike all others of the run.
    pub(super) fn fresh_name(&mut self) -> Name {
        self.made += 1;
        let index = u64::from(self.epoch) << 32 | u64::from(self.made);
        self.name.construct(index)
    }

    /// Makes the scratch folder.
    pub(super) fn folder(&self, engine: &Engine) -> Result<PathBuf, ObjectError> {
        let scratch = self.scratch(engine);
        Ok(scratch.folder(self.name.0, self.epoch, "work")?)
    }

    /// Makes an empty file for a request.
    pub(super) fn open(
        &mut self,
        engine: &Engine,
        request: u32,
        purpose: Purpose,
    ) -> Result<PathBuf, ObjectError> {
        let what = format!("file.{request}");
        let scratch = self.scratch(engine);
        let path = scratch.write(self.name.0, self.epoch, &what, b"")?;
        self.opened.insert(request, (purpose, path.clone()));
        Ok(path)
    }

    fn write(&mut self, engine: &Engine, bytes: &[u8]) -> Result<PathBuf, ObjectError> {
        self.made += 1;
        let what = format!("told.{}", self.made);
        let scratch = self.scratch(engine);
        Ok(scratch.write(self.name.0, self.epoch, &what, bytes)?)
    }

    fn scratch<'a>(&self, engine: &'a Engine) -> &'a Scratch {
        self.touched.set(true);
        engine.folder.scratch()
    }

    /// Removes all of them; costs nothing if none was made.
    pub(super) fn clear(&self, engine: &Engine) {
        if !self.touched.get() {
            return;
        }
        // What cannot be removed now goes with the run's folder.
        let _ = engine.folder.scratch().clear(self.name.0, self.epoch);
    }
}
