//! A task that a worker runs or keeps parked: its handles, its files, what the worker knows.
//!
//! It does not know what the task asks for; that is `requests`. Read next: `start`, which makes
//! one.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ciel_engine::{Attempt, Event};
use ciel_graph::{Assignment, Entry, StreamInput};
use ciel_model::{
    Content, Failure, Form, Handle, InputMode, Label, Micros, Refused, Resolution, WaitEnd,
};
use ciel_node::AttemptKey;
use ciel_protocol::wire::reference::State;
use ciel_protocol::wire::{Future, Reference, Resume};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::files::{Files, Opened, Purpose};
use crate::fitting::{self, Room, has_references, untold};
use crate::host::{Failed, Found, Host, Json};
use crate::io::{Effect, Overdrawn, Show};
use crate::lines::Lines;
use crate::objects::{self, concrete, data};
use crate::open_requests::OpenRequests;
use crate::{failures, limits};

/// A task in a worker.
pub(crate) struct WorkerTask {
    pub(crate) assignment: Box<Assignment>,
    /// By which both sides call this start.
    pub(crate) tag: u32,
    pub(crate) attempt: Attempt,
    pub(crate) files: Files,
    /// Handles whose objects the worker has received.
    pub(crate) resolved: FxHashSet<Handle>,
    /// Files that the worker has received, the first [`limits::MAPPED_MAX`] of them.
    mapped: Vec<(Handle, Content)>,
    /// Requests to be answered when what they are about is resolved.
    watches: FxHashMap<Handle, Vec<u32>>,
    /// Requests that are answered when few children of the task are unfinished.
    few_children: Vec<u32>,
    /// What the task reads while it is written, and has not waited for.
    shown: BTreeSet<Handle>,
    /// The numbers of these requests, and of those that opened files.
    requests: OpenRequests,
    errors: Lines,
    /// Bytes that it wrote to standard error.
    errors_bytes: u64,
    /// Its attempt has failed already; only its last message is waited for.
    pub(crate) is_over: bool,
    /// When its worker is killed because the task has not ended, if it was cancelled.
    pub(crate) killed_at: Option<Micros>,
    /// [`Host::stops`] when this attempt was last found not to stop.
    stops_seen: u64,
    /// It has spawned a task that has begun inside it, and has to park next.
    pub(crate) begun: bool,
    /// It may do something else when it runs again: it has asked, was answered by time, has
    /// published early, or does not run from its start here.
    pub(crate) has_observed: bool,
    /// The attempt whose slot it has, if that is another's: it began by itself and was not to.
    pub(crate) follows: Option<AttemptKey>,
}

impl WorkerTask {
    /// A task that is about to start.
    pub(crate) fn new(assignment: Box<Assignment>, tag: u32) -> WorkerTask {
        WorkerTask {
            attempt: Attempt::new(&assignment),
            files: Files::new(assignment.label.name, tag),
            has_observed: !matches!(assignment.entry, Entry::Start(_)),
            assignment,
            tag,
            resolved: FxHashSet::default(),
            mapped: Vec::new(),
            watches: FxHashMap::default(),
            few_children: Vec::new(),
            shown: BTreeSet::new(),
            requests: OpenRequests::default(),
            errors: Lines::default(),
            errors_bytes: 0,
            is_over: false,
            killed_at: None,
            stops_seen: 0,
            begun: false,
            follows: None,
        }
    }

    /// The attempt whose slot is free when this one has left.
    pub(crate) fn slot_owner(&self) -> AttemptKey {
        self.follows.unwrap_or(self.attempt.key())
    }

    /// Whether its attempt is over, so that what it sends concerns nobody.
    pub(crate) fn is_ignored(&mut self, host: &mut dyn Host) -> bool {
        let stops = host.stops();
        if self.is_over || self.stops_seen == stops {
            return self.is_over;
        }
        let is_stopping = host.is_stopping(self.attempt.key());
        if !is_stopping {
            self.stops_seen = stops;
        }
        is_stopping
    }

    /// Whether it takes inputs as streams: then it gives its outputs at its end only.
    pub(crate) fn reads_streams(&self) -> bool {
        let mut inputs = self.assignment.descriptor.inputs.iter();
        inputs.any(|input| input.mode == InputMode::Stream)
    }

    /// Whether that is said of its attempt.
    pub(crate) fn is(&self, overdrawn: &Overdrawn) -> bool {
        (self.label().name, self.tag) == (overdrawn.task, overdrawn.tag)
    }

    pub(crate) fn label(&self) -> &Label {
        &self.assignment.label
    }

    /// Something that is not allowed, as the task's failure.
    pub(crate) fn refuse(&self, refused: Refused) -> Box<Failure> {
        Box::new(refused.failure(self.label()))
    }

    /// The task has come to that action; the index only grows.
    pub(crate) fn reach(&mut self, actions: u64) -> Failed<()> {
        let reached = self.attempt.reach(actions);
        reached.map_err(|error| self.refuse(Refused::new(error.to_string())))
    }

    /// Whether a request may have that number.
    ///
    /// # Errors
    /// Another request that is open has it, or too many are open.
    pub(crate) fn check_request(&self, request: u32) -> Result<(), &'static str> {
        self.requests.check(request)
    }

    /// A request that may have its number opens a file.
    pub(crate) fn open_file(
        &mut self,
        host: &mut dyn Host,
        request: u32,
        what: (Purpose, Form),
        length: (u64, bool),
    ) -> Failed<PathBuf> {
        let files = &mut self.files;
        let path = files.open(host, &self.assignment, request, what, length)?;
        self.requests.open(request);
        Ok(path)
    }

    /// Memory that the task shares with the reader of its stream.
    pub(crate) fn share_memory(&mut self, host: &mut dyn Host, length: u64) -> Option<PathBuf> {
        self.files.share_memory(host, &self.assignment, length)
    }

    /// The file that a request has opened; the request is over.
    pub(crate) fn take_file(&mut self, request: u32) -> Option<Opened> {
        let file = self.files.opened.remove(&request)?;
        self.requests.close(request);
        Some(file)
    }

    /// A request that may have its number is to be answered when that is resolved.
    pub(crate) fn watch(&mut self, handle: Handle, request: u32) {
        self.watches.entry(handle).or_default().push(request);
        self.requests.open(request);
    }

    /// The requests that wait for that.
    pub(crate) fn take_watches(&mut self, handle: Handle) -> Vec<u32> {
        let requests = self.watches.remove(&handle).unwrap_or_default();
        for request in &requests {
            self.requests.close(*request);
        }
        requests
    }

    /// Whether the task reads what others still write.
    pub(crate) fn reads_shown(&self) -> bool {
        !self.shown.is_empty()
    }

    /// A request that may have its number is to be answered when few children are unfinished.
    pub(crate) fn await_few_children(&mut self, request: u32) {
        self.few_children.push(request);
        self.requests.open(request);
    }

    /// The requests that wait for that.
    pub(crate) fn take_few_children(&mut self) -> Vec<u32> {
        let requests = std::mem::take(&mut self.few_children);
        for request in &requests {
            self.requests.close(*request);
        }
        requests
    }

    /// Nothing that the task watches is answered any more.
    pub(crate) fn forget_watches(&mut self) {
        self.take_few_children();
        for request in self.watches.drain().flat_map(|(_, requests)| requests) {
            self.requests.close(request);
        }
    }

    /// What is known behind a handle, as the worker receives it. References inside are delivered.
    pub(crate) fn reference(
        &mut self,
        host: &mut dyn Host,
        handle: Handle,
        known: Resolution,
    ) -> Failed<Reference> {
        self.attempt.receive(&known);
        let state = match known {
            Resolution::Future => State::Future(Future {}),
            Resolution::Failed(failure) => State::Error(failures::to_wire(&failure)),
            Resolution::Ready { value, .. } => {
                let references = value.references.iter().map(|handle| handle.0);
                let references = references.collect();
                self.note_mapped(handle, &value.content);
                self.object(host, &value.form, value.content, references)?
            }
        };
        if !matches!(state, State::Future(_)) {
            self.resolved.insert(handle);
        }
        Ok(Reference {
            handle: handle.0,
            state: Some(state),
        })
    }

    /// As [`reference`](Self::reference), while there is room; none of what is left out. References
    /// inside a value are delivered with it, so such a value is never left out.
    pub(crate) fn fitting(
        &mut self,
        host: &mut dyn Host,
        handle: Handle,
        known: Resolution,
        room: &mut Room,
    ) -> Failed<Option<Reference>> {
        let has_room = !room.is_used_up();
        if !has_room && !has_references(&known) {
            return Ok(None);
        }
        let reference = match has_room {
            true => self.reference(host, handle, known)?,
            false => self.in_file(host, handle, known)?,
        };
        room.take(reference.bytes());
        Ok(Some(reference))
    }

    /// Whether the task cannot start without the object behind that input.
    pub(crate) fn takes_value(&self, input: Handle) -> bool {
        let input = self.assignment.descriptor.inputs.get(input.0 as usize);
        input.is_some_and(|input| input.mode == InputMode::Value)
    }

    /// As [`reference`](Self::reference), with a value in a file.
    pub(crate) fn in_file(
        &mut self,
        host: &mut dyn Host,
        handle: Handle,
        known: Resolution,
    ) -> Failed<Reference> {
        let reference = self.reference(host, handle, known)?;
        let Some(State::Value(value)) = reference.state else {
            return Ok(reference);
        };
        let path = self
            .files
            .write(host, &self.assignment.label, &value.data)?;
        Ok(Reference {
            state: Some(fitting::concrete(&path, value)),
            ..reference
        })
    }

    fn note_mapped(&mut self, handle: Handle, content: &Content) {
        if matches!(content, Content::File { .. }) && self.mapped.len() < limits::MAPPED_MAX {
            self.mapped.push((handle, content.clone()));
        }
    }

    /// What the worker maps must stay as it is: others read it, too.
    ///
    /// # Errors
    /// It was written to while the task ran.
    pub(crate) fn check_mapped(&self, host: &mut dyn Host) -> Failed<()> {
        let mut mapped = self.mapped.iter();
        let Some((handle, _)) = mapped.find(|(_, content)| host.is_overwritten(content)) else {
            return Ok(());
        };
        let inputs = self.assignment.descriptor.inputs.len();
        let what = match (handle.0 as usize) < inputs {
            true => format!("its input {}", handle.0 + 1),
            false => "a value that it read".to_string(),
        };
        let message =
            format!("{what} was overwritten while it ran, by it or by another task that reads it");
        let hint = "the file of a result must stay as it is: change a copy";
        Err(self.refuse(Refused::new(message).hint(hint)))
    }

    /// The unresolved stream that an input is.
    pub(crate) fn stream_of(&self, input: Handle) -> Option<StreamInput> {
        let mut streams = self.assignment.streams.iter().copied();
        streams.find(|stream| stream.input == input)
    }

    /// What the task finds in place of a stream when it starts. If the one who writes it is gone,
    /// the task is to be stopped, and finds something that is not there yet.
    pub(crate) fn find_stream(
        &mut self,
        host: &mut dyn Host,
        stream: StreamInput,
    ) -> Failed<Reference> {
        let state = match self.files.find_stream(host, &self.assignment, stream)? {
            Found::Stream(path, form) => objects::stream(&path, &form),
            Found::Value(value) => self.object(host, &value.form, value.content, Vec::new())?,
            Found::Gone => State::Future(Future {}),
        };
        Ok(Reference {
            handle: stream.input.0,
            state: Some(state),
        })
    }

    /// Lets the task read what is written of an unresolved object meanwhile.
    pub(crate) fn show_stream(&mut self, host: &mut dyn Host, handle: Handle) -> Failed<Reference> {
        let path = self.files.show_stream(host, &self.assignment, handle)?;
        self.shown.insert(handle);
        Ok(Reference {
            handle: handle.0,
            state: Some(objects::blocks(&path)),
        })
    }

    /// Lets the task read what the failed task behind a handle has written, if that is kept.
    pub(crate) fn show_failed_stream(
        &mut self,
        host: &mut dyn Host,
        handle: Handle,
    ) -> Failed<Option<Reference>> {
        let path = self
            .files
            .show_failed_stream(host, &self.assignment, handle)?;
        Ok(path.map(|path| Reference {
            handle: handle.0,
            state: Some(objects::blocks(&path)),
        }))
    }

    /// An object is settled that the task may read while it is written.
    pub(crate) fn settle_stream(&mut self, host: &mut dyn Host, handle: Handle) {
        if self.shown.remove(&handle) {
            self.files.settle_stream(host, handle);
        }
    }

    /// Watches what the task reads while it is written: the end of a turn has ended all watches.
    pub(crate) fn watch_shown(&self) -> Vec<Event> {
        let shown = self.shown.iter();
        shown.map(|it| self.attempt.watch(*it).into()).collect()
    }

    /// The strand continues: what its worker receives. Of very many answers it asks again for the
    /// last ones, so that they are one message each time.
    pub(crate) fn resume(
        &mut self,
        host: &mut dyn Host,
        answers: Vec<(Handle, Resolution)>,
        ended: Option<WaitEnd>,
    ) -> Failed<Resume> {
        let mut references = Vec::with_capacity(answers.len());
        let mut room = Room::of_a_message();
        for (handle, known) in answers {
            // What is resolved by the end of such a wait is an observation: it is named at least.
            let observed = || ended.is_some().then(|| untold(handle));
            let fitting = self.fitting(host, handle, known, &mut room)?;
            references.extend(fitting.or_else(observed));
        }
        let timed_out = ended.is_some_and(|ended| ended.timed_out);
        Ok(Resume {
            answers: references,
            timed_out,
        })
    }

    fn object(
        &mut self,
        host: &mut dyn Host,
        form: &Form,
        content: Content,
        references: Vec<u32>,
    ) -> Failed<State> {
        if *form == Form::Skywriting
            && let Some(json) = host.json(&self.assignment.label, &content)?
        {
            return self.json(host, json, references);
        }
        Ok(match content {
            Content::Inline(bytes) => data(bytes, form, references),
            Content::File { length, .. } => {
                let path = host.share(self.label(), &content)?;
                concrete(&path, length, form, references)
            }
        })
    }

    /// A value of a script. References in it stand as `{"$ref": i}`.
    fn json(&mut self, host: &mut dyn Host, json: Json, references: Vec<u32>) -> Failed<State> {
        let (path, length) = match json {
            Json::Text(text) if text.len() < ciel_model::limits::INLINE_BYTES_MAX => {
                return Ok(data(text.into(), &Form::Json, references));
            }
            Json::Text(text) => {
                let label = &self.assignment.label;
                let path = self.files.write(host, label, text.as_bytes())?;
                (path, text.len() as u64)
            }
            Json::File { path, length } => (path, length),
        };
        Ok(concrete(&path, length, &Form::Json, references))
    }

    /// It wrote to its standard error, which is shown live, and each byte once.
    pub(crate) fn write_error(
        &mut self,
        host: &mut dyn Host,
        bytes: &[u8],
        effects: &mut Vec<Effect>,
    ) {
        let (task, length) = (self.assignment.task, bytes.len() as u64);
        let shown = host.count_shown(task, self.errors_bytes, length);
        self.errors_bytes += length;
        let fresh = &bytes[shown.min(length) as usize..];
        if fresh.is_empty() {
            return;
        }
        let mut show = |what| effects.push(Effect::Show(self.assignment.label.clone(), what));
        show(Show::Log("stderr", fresh.to_vec()));
        let lines = self.errors.push(fresh);
        if !lines.is_empty() {
            show(Show::ErrorLines(lines));
        }
    }

    /// Nothing more of it comes here: shows the line that it left unfinished, removes its files.
    pub(crate) fn close(mut self: Box<WorkerTask>, host: &mut dyn Host, effects: &mut Vec<Effect>) {
        let rest = self.errors.finish();
        if !rest.is_empty() {
            let label = self.label().clone();
            effects.push(Effect::Show(label, Show::ErrorLines(rest)));
        }
        self.files.clear(host);
        host.forget(self.assignment.task);
    }
}
