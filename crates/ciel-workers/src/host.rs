//! What a conversation asks of the engine and of the store, and is answered at once.
//!
//! The shell implements it with the engine's lock and files, tests with an engine in memory. It
//! does not know what the worker sent. Read next: `conversation`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use ciel_engine::{Caller, Event, Reply};
use ciel_graph::{Assignment, Output, StreamInput};
use ciel_model::{Audit, Content, Digest, Failure, Form, Handle, Label, Name, TaskKey, Value};
use ciel_node::{AttemptKey, WorkerKey};

use crate::callee::Callee;

/// The outcome of what may fail a task.
pub type Failed<T> = Result<T, Box<Failure>>;

/// The scratch files of one start of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scratch {
    /// The task.
    pub name: Name,
    /// The tag of the start.
    pub tag: u32,
}

/// A value of a script as JSON, which every language reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// The text.
    Text(String),
    /// A file with the text, which stays as long as the value.
    File {
        /// Its path.
        path: PathBuf,
        /// Its length in bytes.
        length: u64,
    },
}

/// What a task that starts finds in place of an input that it takes as a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A pipe, and how its bytes are read.
    Stream(PathBuf, Form),
    /// Its producer has ended well by now.
    Value(Value<Handle>),
    /// Its producer is gone; the reader starts again.
    Gone,
}

/// The engine and the store, as a conversation needs them. `task` is whose failure an error of the
/// store is.
pub trait Host {
    /// Hands an event to the engine; gives what the caller has to do.
    fn ask(&mut self, event: Event, caller: Caller) -> Reply;

    /// Hands events to the engine, of which nobody wants a reply.
    fn tell(&mut self, events: Vec<Event>);

    /// Whether the graph has ended an attempt that has not left its slot.
    fn is_stopping(&mut self, attempt: AttemptKey) -> bool;

    /// A number that grows whenever an attempt in any worker is to stop: while it is the same,
    /// [`Host::is_stopping`] is, too.
    fn stops(&self) -> u64;

    /// Of each handle, whether its object is settled; none if the attempt does not have it.
    fn settled(&mut self, attempt: AttemptKey, handles: &[Handle]) -> Vec<Option<bool>>;

    /// Whether the object of a handle is settled and no failure.
    fn is_ready(&mut self, attempt: AttemptKey, handle: Handle) -> bool;

    /// Ordered output of a task, after so many actions.
    ///
    /// # Errors
    /// Its strand is replayed and writes something else than before.
    fn write(&mut self, task: &Assignment, after: u64, bytes: Vec<u8>) -> Failed<()>;

    /// The same for an ordered file, which is made if it is missing.
    ///
    /// # Errors
    /// As for [`Host::write`], and the file cannot be written or is another's.
    fn write_file(
        &mut self,
        task: &Assignment,
        file: &str,
        after: u64,
        bytes: Vec<u8>,
    ) -> Failed<()>;

    /// The same for standard error, if that is ordered.
    fn write_error(&mut self, task: &Assignment, after: u64, bytes: Vec<u8>);

    /// The tasks of that executor, as a spawn makes them.
    fn callee(&mut self, executor: &str) -> Arc<dyn Callee>;

    /// A task that is kept across runs ends well with these outputs; it has run here from its start
    /// and has asked nothing. `audit` is what it was seen to do, if it was watched.
    fn keep(&mut self, task: &Assignment, outputs: &[Output], audit: Option<&Audit>);

    /// A task that is kept across runs ends well, and its result cannot be kept: it has asked what
    /// may be answered otherwise, moved here, or read a stream.
    fn leave(&mut self, task: &Assignment);

    /// The digest of all that a pure task has printed, which ends now; none if that is compared
    /// with nothing, or too much.
    fn printed(&mut self, task: &Assignment) -> Option<Digest>;

    /// A tag that no other start of this process has; 0 is none.
    fn next_tag(&mut self) -> u32;

    /// Of `length` bytes of a task's standard error from `from` on, how many people have seen:
    /// those of an earlier attempt, or before a replay. They have seen all of them from now on.
    fn count_shown(&mut self, task: TaskKey, from: u64, length: u64) -> u64;

    /// Nothing more of a task is in this worker.
    fn forget(&mut self, task: TaskKey);

    /// So many tasks of a function have ended in place, as calls of others.
    fn count_in_place(&mut self, what: &str, count: u64);

    /// The object whose file has that path or had it, and its length in bytes; 0 if it is not there
    /// any more. None if that is the path of no object.
    fn object_at(&mut self, path: &Path) -> Option<(Name, u64)>;

    /// Memory of the worker's process, in bytes.
    fn resident_bytes(&mut self) -> u64;

    /// A task has failed by itself, and the graph does not know its failure yet.
    fn heed(&mut self, failure: &Failure);

    /// Stores bytes under a name.
    ///
    /// # Errors
    /// The store's.
    fn put(&mut self, task: &Label, name: Name, bytes: &Bytes) -> Failed<Content>;

    /// Takes over a scratch file under a name, or its bytes if they are few. What is `repeated` was
    /// taken over before, and is only described.
    ///
    /// # Errors
    /// The store's.
    fn adopt(&mut self, task: &Label, name: Name, path: &Path, repeated: bool) -> Failed<Content>;

    /// Whether somebody has written to the file of an object, which is recomputed for others then.
    fn is_overwritten(&mut self, content: &Content) -> bool;

    /// Where a process reads an object of the store.
    ///
    /// # Errors
    /// The store's.
    fn share(&mut self, task: &Label, content: &Content) -> Failed<PathBuf>;

    /// A value of a script as JSON; none if it holds functions.
    ///
    /// # Errors
    /// The store's.
    fn json(&mut self, task: &Label, content: &Content) -> Failed<Option<Json>>;

    /// Makes the folder of a start.
    ///
    /// # Errors
    /// The store's.
    fn make_folder(&mut self, task: &Label, scratch: Scratch) -> Failed<PathBuf>;

    /// Makes a scratch file with these bytes.
    ///
    /// # Errors
    /// The store's.
    fn make_file(
        &mut self,
        task: &Label,
        scratch: Scratch,
        what: &str,
        bytes: &[u8],
    ) -> Failed<PathBuf>;

    /// Makes a scratch file, into which so many bytes will be written; 0 if that is not known, or
    /// if what is made of it has to outlive the run. For a writer that overwrites all of them the
    /// file may hold others, at most as many; else it is empty.
    ///
    /// # Errors
    /// The store's.
    fn make_file_of_length(
        &mut self,
        task: &Label,
        scratch: Scratch,
        what: &str,
        length: (u64, bool),
    ) -> Failed<PathBuf>;

    /// Opens an output as a stream, from which others may read at once; gives its pipe.
    ///
    /// # Errors
    /// The store's.
    fn open_stream(
        &mut self,
        task: &Assignment,
        scratch: Scratch,
        output: u32,
        form: Form,
    ) -> Failed<PathBuf>;

    /// Memory that a task shares with the reader of its stream, in which four values of `length`
    /// bytes have room: the path of a memory file, which counts until no process has it. None if
    /// there is none to give now.
    fn share_memory(&mut self, _: &Assignment, _: Scratch, _length: u64) -> Option<PathBuf> {
        None
    }

    /// The reader of an output of a task had so many bytes of it through such memory.
    fn note_shared(&mut self, _: &Assignment, _output: u32, _bytes: u64) {}

    /// What has become of the bytes of an open stream, whose task ends well: the file with them, or
    /// none if its one reader has them.
    ///
    /// # Errors
    /// The store's.
    fn end_stream(
        &mut self,
        task: &Label,
        scratch: Scratch,
        output: u32,
    ) -> Failed<Option<PathBuf>>;

    /// Makes a task that starts the reader of one of its inputs.
    ///
    /// # Errors
    /// The store's.
    fn find_stream(
        &mut self,
        task: &Assignment,
        scratch: Scratch,
        input: StreamInput,
    ) -> Failed<Found>;

    /// Whether the root runs in that worker, and takes no core.
    fn has_root_apart(&mut self, worker: WorkerKey) -> bool;

    /// Gives a running task the pipe from which it reads what is written of an unresolved object
    /// meanwhile, in blocks.
    ///
    /// # Errors
    /// The store's.
    fn show_stream(
        &mut self,
        task: &Assignment,
        scratch: Scratch,
        handle: Handle,
    ) -> Failed<PathBuf>;

    /// As [`show_stream`](Self::show_stream), of an object whose task has failed: what that had
    /// written before.
    ///
    /// # Errors
    /// The store's.
    fn show_failed_stream(
        &mut self,
        task: &Assignment,
        scratch: Scratch,
        handle: Handle,
    ) -> Failed<Option<PathBuf>>;

    /// The object behind a handle is settled: what a task reads of it meanwhile comes to its end.
    fn settle_stream(&mut self, scratch: Scratch, handle: Handle);

    /// Removes all scratch files of a start; its streams are closed, and memory that it was granted
    /// for them is its readers' only.
    fn clear(&mut self, scratch: Scratch);
}
