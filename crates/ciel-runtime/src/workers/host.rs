//! The engine and the store, as a conversation asks them.
//!
//! It does not know what workers send. Read next: [`ciel_workers::Host`], which says what each
//! answer is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use ciel_engine::{Caller, Event, Reply};
use ciel_graph::{Assignment, Output, StreamInput};
use ciel_model::{Audit, Content, Digest, Failure, Form, Handle, Hasher, Label, Name, TaskKey};
use ciel_node::{AttemptKey, WorkerKey};
use ciel_store::ObjectName;
use ciel_workers::{Callee, Failed, Found, Host, Json, Scratch};

use super::Workers;
use crate::engine::Engine;
use crate::executors::request::Called;
use crate::largest::Maker;
use crate::objects::{self, ObjectError, PlainError};
use crate::{failures, keeper, ordered_files, output};

/// The engine and the store, for a worker with that process.
pub(super) struct WorkerHost<'a> {
    workers: &'a Workers,
    pid: Option<u32>,
}

impl<'a> WorkerHost<'a> {
    pub(super) fn new(workers: &'a Workers, pid: Option<u32>) -> WorkerHost<'a> {
        WorkerHost { workers, pid }
    }

    fn engine(&self) -> &Engine {
        &self.workers.engine
    }

    /// An error of the store as the task's failure.
    fn stored<T>(&self, task: &Label, result: Result<T, ObjectError>) -> Failed<T> {
        result.map_err(|error| Box::new(error.failure(self.engine(), task)))
    }
}

impl Host for WorkerHost<'_> {
    fn ask(&mut self, event: Event, caller: Caller) -> Reply {
        self.engine().with(|core, now| core.ask(now, event, caller))
    }

    fn tell(&mut self, events: Vec<Event>) {
        self.engine().with(|core, now| {
            for event in events {
                core.tell(now, event);
            }
        });
    }

    fn is_stopping(&mut self, attempt: AttemptKey) -> bool {
        self.engine().lock().is_stopping(attempt)
    }

    fn stops(&self) -> u64 {
        self.engine().stops()
    }

    fn settled(&mut self, attempt: AttemptKey, handles: &[Handle]) -> Vec<Option<bool>> {
        let AttemptKey { task, number } = attempt;
        let core = self.engine().lock();
        let settled = |handle: &Handle| core.graph().is_settled(task, number, *handle);
        handles.iter().map(settled).collect()
    }

    fn is_ready(&mut self, attempt: AttemptKey, handle: Handle) -> bool {
        let AttemptKey { task, number } = attempt;
        self.engine().lock().graph().is_ready(task, number, handle)
    }

    fn write(&mut self, task: &Assignment, after: u64, bytes: Vec<u8>) -> Failed<()> {
        self.workers.note_written(task, None, (after, &bytes));
        let (strand, label) = (task.strand, &task.label);
        let write = |core: &mut crate::core::Core, _| core.write(strand, label, after, bytes);
        let written = self.engine().with(write);
        written.map_err(|how| Box::new(failures::differs(task, how)))?;
        output::spill_excess(self.engine());
        Ok(())
    }

    fn write_file(
        &mut self,
        task: &Assignment,
        file: &str,
        after: u64,
        bytes: Vec<u8>,
    ) -> Failed<()> {
        self.workers.note_written(task, Some(file), (after, &bytes));
        ordered_files::write(self.engine(), task, file, after, bytes.into())
    }

    fn write_error(&mut self, task: &Assignment, after: u64, bytes: Vec<u8>) {
        let strand = task.strand;
        self.engine()
            .with(|core, _| core.write_error(strand, after, bytes));
        output::spill_excess(self.engine());
    }

    fn callee(&mut self, executor: &str) -> Arc<dyn Callee> {
        let engine = self.engine();
        Arc::new(Called {
            executor: engine.registry.find(executor),
            recorded: engine.is_recorded(),
            keep_rule: engine.keep_rule,
        })
    }

    fn keep(&mut self, task: &Assignment, outputs: &[Output], audit: Option<&Audit>) {
        let written = self.workers.take_written(task);
        keeper::keep_watched(self.engine(), task, outputs, (written, audit));
    }

    fn leave(&mut self, task: &Assignment) {
        keeper::leave_watched(self.engine(), task);
    }

    fn printed(&mut self, task: &Assignment) -> Option<Digest> {
        if !self.engine().settings.check {
            return None;
        }
        let mut hasher = Hasher::default();
        let mut file = None;
        for segment in self.workers.take_written(task)? {
            // How the text was cut into pieces does not count.
            if segment.file != file {
                hasher.update(segment.file.as_deref().unwrap_or_default().as_bytes());
                hasher.update(&[0]);
            }
            hasher.update(&segment.bytes);
            file = segment.file;
        }
        Some(hasher.finish())
    }

    fn next_tag(&mut self) -> u32 {
        self.workers.next_tag()
    }

    fn count_shown(&mut self, task: TaskKey, from: u64, length: u64) -> u64 {
        self.workers.count_shown(task, from, length)
    }

    fn forget(&mut self, task: TaskKey) {
        self.workers.forget_shown(task);
    }

    fn count_in_place(&mut self, what: &str, count: u64) {
        self.engine().lock().count_in_place(what, count);
    }

    fn object_at(&mut self, path: &Path) -> Option<(Name, u64)> {
        let name = ObjectName::of_path(path)?;
        let location = self.engine().objects.location(name);
        Some((Name(name.0), location.map_or(0, |it| it.length)))
    }

    fn resident_bytes(&mut self) -> u64 {
        let pids: Vec<u32> = self.pid.into_iter().collect();
        ciel_spawner::resident_anonymous(&pids).into_iter().sum()
    }

    fn heed(&mut self, failure: &Failure) {
        self.engine().heed_surroundings(failure);
    }

    fn put(&mut self, task: &Label, name: Name, bytes: &Bytes) -> Failed<Content> {
        let content = objects::keep(self.engine(), &Maker::Task(task), || name, bytes.clone());
        self.stored(task, content)
    }

    fn adopt(&mut self, task: &Label, name: Name, path: &Path, repeated: bool) -> Failed<Content> {
        let engine = self.engine();
        let content = match repeated {
            true => Ok(objects::as_if_adopted(engine, name, path)),
            false => objects::adopt(engine, &Maker::Task(task), name, path),
        };
        self.stored(task, content)
    }

    fn is_overwritten(&mut self, content: &Content) -> bool {
        objects::is_overwritten(self.engine(), content)
    }

    fn share(&mut self, task: &Label, content: &Content) -> Failed<PathBuf> {
        let path = objects::whole_path(self.engine(), content);
        self.stored(task, path)
    }

    fn json(&mut self, task: &Label, content: &Content) -> Failed<Option<Json>> {
        let json = match objects::json(self.engine(), content) {
            Ok(objects::Json::Text(text)) => Ok(Some(Json::Text(text))),
            Ok(objects::Json::Object { name, length }) => {
                let path = self.engine().objects.share(name);
                let file = path.map(|path| Some(Json::File { path, length }));
                file.map_err(ObjectError::Store)
            }
            Err(PlainError::NotPlain(_)) => Ok(None),
            Err(PlainError::Store(error)) => Err(error),
        };
        self.stored(task, json)
    }

    fn make_folder(&mut self, task: &Label, scratch: Scratch) -> Failed<PathBuf> {
        let folders = self.engine().folder.scratch();
        let path = folders.folder(scratch.name.0, scratch.tag, "work");
        self.stored(task, path.map_err(ObjectError::from))
    }

    fn make_file(
        &mut self,
        task: &Label,
        scratch: Scratch,
        what: &str,
        bytes: &[u8],
    ) -> Failed<PathBuf> {
        let folders = self.engine().folder.scratch();
        let path = folders.write(scratch.name.0, scratch.tag, what, bytes);
        self.stored(task, path.map_err(ObjectError::from))
    }

    fn make_file_of_length(
        &mut self,
        task: &Label,
        scratch: Scratch,
        what: &str,
        length: (u64, bool),
    ) -> Failed<PathBuf> {
        let folders = self.engine().folder.scratch();
        let (name, tag) = (scratch.name.0, scratch.tag);
        let path = match length.0 {
            0 => folders.write(name, tag, what, b""),
            _ => folders.file_of_length(name, tag, what, length),
        };
        self.stored(task, path.map_err(ObjectError::from))
    }

    fn open_stream(
        &mut self,
        task: &Assignment,
        scratch: Scratch,
        output: u32,
        form: Form,
    ) -> Failed<PathBuf> {
        let opened = self.workers.streams.open(task, scratch, output, form);
        self.stored(&task.label, opened)?
    }

    fn share_memory(&mut self, _: &Assignment, scratch: Scratch, length: u64) -> Option<PathBuf> {
        self.workers.streams.watch_memory();
        let objects = self.engine().folder.objects();
        objects.grant_stream_memory((scratch.name.0, scratch.tag), length)
    }

    fn note_shared(&mut self, task: &Assignment, output: u32, bytes: u64) {
        let mut core = self.engine().lock();
        core.history
            .stream_shared(&task.label, (task.attempt, output), bytes);
    }

    fn end_stream(
        &mut self,
        _task: &Label,
        scratch: Scratch,
        output: u32,
    ) -> Failed<Option<PathBuf>> {
        self.workers.streams.take(scratch.tag, output)
    }

    fn find_stream(
        &mut self,
        task: &Assignment,
        scratch: Scratch,
        input: StreamInput,
    ) -> Failed<Found> {
        let found = self.workers.streams.find(task, scratch, input);
        self.stored(&task.label, found)?
    }

    fn has_root_apart(&mut self, worker: WorkerKey) -> bool {
        let core = self.engine().lock();
        core.engine().node().has_root_apart(worker)
    }

    fn show_stream(
        &mut self,
        task: &Assignment,
        scratch: Scratch,
        handle: Handle,
    ) -> Failed<PathBuf> {
        let shown = self.workers.streams.show(task, scratch, handle);
        self.stored(&task.label, shown)?
    }

    fn show_failed_stream(
        &mut self,
        task: &Assignment,
        scratch: Scratch,
        handle: Handle,
    ) -> Failed<Option<PathBuf>> {
        let shown = self.workers.streams.show_failed(task, scratch, handle);
        self.stored(&task.label, shown)?
    }

    fn settle_stream(&mut self, scratch: Scratch, handle: Handle) {
        self.workers.streams.settle(scratch.tag, handle);
    }

    fn clear(&mut self, scratch: Scratch) {
        self.workers.streams.close(scratch.tag);
        let objects = self.engine().folder.objects();
        objects.end_stream_memory((scratch.name.0, scratch.tag));
        let folders = self.engine().folder.scratch();
        // What cannot be removed now goes with the run's folder.
        let _ = folders.clear(scratch.name.0, scratch.tag);
    }
}
