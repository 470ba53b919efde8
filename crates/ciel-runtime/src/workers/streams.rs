//! Streams of tasks in workers: the pipes that they open by name.
//!
//! A worker writes an output into a named pipe, and reads an input from one; the engine has both
//! ends of each, and closes them with the task. It does not know what the bytes mean. Read next:
//! `crate::streams`, for the way that they take.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use ciel_graph::{Assignment, StreamInput};
use ciel_model::{Failure, FailureKind, Form, Handle, Label};
use ciel_node::AttemptKey;
use ciel_workers::{Failed, Found, Scratch};
use rustc_hash::FxHashMap;

use crate::core::Core;
use crate::engine::Engine;
use crate::looks::Removals;
use crate::memory;
use crate::objects::ObjectError;
use crate::sources::Source;
use crate::streams::{Attached, Carried, Inlet, Onlooker, Outlets, Place, attach_by_name};

/// The name of the form of a stream of bytes; another one is an executor's own.
const BYTES: &str = "bytes";

/// The streams of all tasks in workers, by the tags of their starts.
pub(super) struct TaskStreams {
    engine: Arc<Engine>,
    tasks: RefCell<FxHashMap<u32, Ends>>,
    /// Whether somebody waits for the end of memory that streams share.
    watches_memory: Cell<bool>,
}

/// The streams of one start of a task.
struct Ends {
    task: Label,
    outlets: Outlets,
    /// What has become of outputs whose task ends.
    carried: Failed<Vec<(u32, Carried)>>,
    /// Kept while the task reads.
    inlets: Vec<Inlet>,
    onlookers: Vec<Onlooker>,
}

impl Ends {
    /// The least number that no pipe of an onlooker has.
    fn free_place(&mut self) -> usize {
        self.onlookers.retain(|onlooker| !onlooker.is_over());
        let is_free = |place: &usize| self.onlookers.iter().all(|it| it.place != *place);
        (0..).find(is_free).expect("few of all numbers are taken")
    }
}

impl TaskStreams {
    pub(super) fn new(engine: &Arc<Engine>) -> TaskStreams {
        TaskStreams {
            engine: engine.clone(),
            tasks: RefCell::default(),
            watches_memory: Cell::new(false),
        }
    }

    /// From now on memory that streams share is freed when no process has it any more.
    pub(super) fn watch_memory(&self) {
        if !self.watches_memory.replace(true) {
            let closed = Removals::of_stream_memory(self.engine.folder.objects());
            tokio::task::spawn_local(memory::settle_when_told(self.engine.clone(), closed));
        }
    }

    fn with<R>(&self, task: &Assignment, tag: u32, act: impl FnOnce(&mut Ends) -> R) -> R {
        let mut tasks = self.tasks.borrow_mut();
        let ends = tasks.entry(tag).or_insert_with(|| Ends {
            task: task.label.clone(),
            outlets: Outlets::new(
                &self.engine,
                AttemptKey {
                    task: task.task,
                    number: task.attempt,
                },
            ),
            carried: Ok(Vec::new()),
            inlets: Vec::new(),
            onlookers: Vec::new(),
        });
        act(ends)
    }

    /// Opens an output, which others may read from now on; gives its pipe.
    ///
    /// # Errors
    /// The store's; inside, the failure of the task if the system refuses a pipe.
    pub(super) fn open(
        &self,
        task: &Assignment,
        scratch: Scratch,
        output: u32,
        form: Form,
    ) -> Result<Failed<PathBuf>, ObjectError> {
        let folders = self.engine.folder.scratch();
        let (name, tag) = (scratch.name.0, scratch.tag);
        let (pipe, ends) = folders.pipe(name, tag, &format!("output.{output}"))?;
        let (path, file) = folders.growing(name, tag, &format!("stream.{output}"))?;
        let place = Place {
            pipe: pipe.clone(),
            ends,
            path,
            file,
            form,
        };
        Ok(self.with(task, tag, |ends| {
            ends.outlets.open(&task.label, output, place)?;
            ends.outlets.tell_opened();
            Ok(pipe)
        }))
    }

    /// What a task that starts finds in place of an input that it takes as a stream.
    ///
    /// # Errors
    /// As for [`TaskStreams::open`].
    pub(super) fn find(
        &self,
        task: &Assignment,
        scratch: Scratch,
        input: StreamInput,
    ) -> Result<Failed<Found>, ObjectError> {
        let folders = self.engine.folder.scratch();
        let purpose = format!("input.{}", input.input.0);
        let (path, ends) = folders.pipe(scratch.name.0, scratch.tag, &purpose)?;
        let attached = attach_by_name(&self.engine, task, input, (&path, ends));
        Ok(attached.map(|attached| match attached {
            Attached::Stream(inlet) => {
                let form = inlet.form().clone();
                self.with(task, scratch.tag, |ends| ends.inlets.push(inlet));
                Found::Stream(path, form)
            }
            Attached::Value(value) => Found::Value(value),
            Attached::Gone => Found::Gone,
        }))
    }

    /// Makes a running task an onlooker of an unresolved object; gives its pipe.
    ///
    /// # Errors
    /// The store's; inside, the failure of the task if the system refuses a pipe.
    pub(super) fn show(
        &self,
        task: &Assignment,
        scratch: Scratch,
        handle: Handle,
    ) -> Result<Failed<PathBuf>, ObjectError> {
        let graph_name = |core: &Core| core.graph().name_of(task.task, task.attempt, handle);
        let Some(name) = graph_name(&self.engine.lock()) else {
            let why = "a stream is not its own";
            let failure = Failure::new(FailureKind::Refused, task.label.clone(), why);
            return Ok(Err(Box::new(failure)));
        };
        self.look(task, scratch, handle, |shown, pipe| {
            Onlooker::begin(&self.engine, name, shown, pipe)
        })
    }

    /// As [`show`](Self::show), of an object whose task has failed, if what that had written is
    /// kept.
    ///
    /// # Errors
    /// As those of `show`.
    pub(super) fn show_failed(
        &self,
        task: &Assignment,
        scratch: Scratch,
        handle: Handle,
    ) -> Result<Failed<Option<PathBuf>>, ObjectError> {
        let (key, number) = (task.task, task.attempt);
        let name = self.engine.lock().graph().name_of(key, number, handle);
        let partial = self.engine.folder.partial();
        // What cannot be read is not there: the task has the failure only.
        let kept = name.and_then(|name| partial.open(name.0).ok().flatten());
        let Some((file, form)) = kept else {
            return Ok(Ok(None));
        };
        let shown = self.look(task, scratch, handle, |shown, pipe| {
            let form = match &*form {
                BYTES => Form::Bytes,
                form => Form::Other(form.into()),
            };
            let source = Source::failed((AttemptKey { task: key, number }, 0), file, form)?;
            Onlooker::begin_failed(&self.engine, source, shown, pipe)
        })?;
        Ok(shown.map(Some))
    }

    /// Makes a pipe from which a task reads meanwhile, by `begin`.
    fn look(
        &self,
        task: &Assignment,
        scratch: Scratch,
        handle: Handle,
        begin: impl FnOnce((Handle, usize), (PathBuf, OwnedFd)) -> io::Result<Onlooker>,
    ) -> Result<Failed<PathBuf>, ObjectError> {
        let place = self.with(task, scratch.tag, |ends| ends.free_place());
        let purpose = format!("shown.{place}");
        let folders = self.engine.folder.scratch();
        let (path, pipe) = folders.pipe(scratch.name.0, scratch.tag, &purpose)?;
        let begun = begin((handle, place), (path.clone(), pipe));
        let begun = begun.map_err(|error| {
            let message = format!("cannot read a stream: {error}");
            Box::new(Failure::new(
                FailureKind::TaskError,
                task.label.clone(),
                message,
            ))
        });
        Ok(begun.map(|onlooker| {
            self.with(task, scratch.tag, |ends| ends.onlookers.push(onlooker));
            path
        }))
    }

    /// The object behind a handle is settled.
    pub(super) fn settle(&self, tag: u32, handle: Handle) {
        let tasks = self.tasks.borrow();
        let onlookers = tasks.get(&tag).map(|ends| &ends.onlookers);
        let onlookers = onlookers.into_iter().flatten();
        onlookers
            .filter(|onlooker| onlooker.handle == handle)
            .for_each(Onlooker::settle);
    }

    /// The task of that start is about to end, well or not: takes what is left in its pipes.
    pub(super) async fn end(&self, tag: u32, is_well: bool) {
        let Some(mut ends) = self.tasks.borrow_mut().remove(&tag) else {
            return;
        };
        ends.carried = ends.outlets.end(&ends.task, is_well).await;
        self.tasks.borrow_mut().insert(tag, ends);
    }

    /// What has become of an output of a task that ends: the file with its bytes, or none if its
    /// one reader has them.
    ///
    /// # Errors
    /// The failure of the task if its bytes could not be stored.
    pub(super) fn take(&self, tag: u32, output: u32) -> Failed<Option<PathBuf>> {
        let tasks = self.tasks.borrow();
        let ends = tasks.get(&tag).expect("its output is open");
        let carried = ends.carried.as_ref().map_err(Clone::clone)?;
        let found = carried.iter().find(|(index, _)| *index == output);
        Ok(match found.expect("it was carried to its end") {
            (_, Carried::Stored(path)) => Some(path.clone()),
            (_, Carried::Passed) => None,
        })
    }

    /// Nothing more of that start comes: its streams are closed.
    pub(super) fn close(&self, tag: u32) {
        let ends = self.tasks.borrow_mut().remove(&tag);
        drop(ends);
    }
}
