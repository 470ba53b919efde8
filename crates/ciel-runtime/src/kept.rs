//! Results that are kept across runs: requests to the thread that looks them up and keeps them.
//!
//! That thread alone uses the store; who holds the machines only sends it requests. It does not
//! know what an entry looks like. Read next: `keeper`, then `ciel-kept`.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use ciel_engine::ResultQuery;
use ciel_model::{Class, Content, Descriptor, Digest, FileRead, Form, Label, Name, TaskKey};
use ciel_node::AttemptKey;

/// Bytes of what a task prints that are kept; one that prints more runs in each run.
pub(crate) const PRINTED_BYTES_MAX: u64 = 1 << 20;

/// A request to the thread of kept results.
pub(crate) enum Request {
    /// Look a result up, and tell the graph.
    Find(Box<ResultQuery>),
    /// A task begins whose result may be kept: what it is given is still there.
    Begun(Box<ResultQuery>),
    /// That task has ended well.
    Ended(Box<EndedTask>),
    /// That attempt has not ended well.
    Left(AttemptKey),
    /// That attempt has ended well with a result that cannot be kept.
    Unkept(AttemptKey, Name),
    /// Such tasks have ended well, which were given no paths.
    EndedBelow(Vec<(TaskKey, Name)>),
    /// The run has read a file of the user's, whose content has that digest if it is known.
    Read(PathBuf, Option<Digest>),
    /// A task that takes part has spawned another.
    Spawned {
        parent: Name,
        /// Which action of the parent that was.
        action: u64,
        child: Name,
    },
    /// A task that was so spawned has spawned another, which is too deep to be followed.
    Deep(Name),
    /// A task that has spawned another, or was so spawned, has left the graph.
    Over { task: Name, has_failed: bool },
    /// Two runs of a task are to be compared.
    Compare(Box<TwoRuns>),
    /// The job has ended.
    Close,
}

/// One output of a run.
pub(crate) type RunOutput = (Form, Bytes);

/// What two runs of a task gave, as far as it is not known to be equal.
pub(crate) struct TwoRuns {
    pub(crate) task: Label,
    /// Where it was spawned.
    pub(crate) place: String,
    /// Numbers of outputs, and what each run gave.
    pub(crate) outputs: Vec<(u32, RunOutput, RunOutput)>,
    /// Digests of what the runs printed, if they differ.
    pub(crate) printed: Option<[Option<Digest>; 2]>,
    /// How the second run failed, if it did.
    pub(crate) failure: Option<String>,
}

/// What a task gave that ended well.
pub(crate) struct EndedTask {
    pub(crate) attempt: AttemptKey,
    /// What it was given, if that was not said when it began.
    pub(crate) begun: Option<Box<ResultQuery>>,
    pub(crate) label: Label,
    pub(crate) descriptor: Arc<Descriptor>,
    /// None if the result itself cannot be kept, only that of a task above it.
    pub(crate) outputs: Option<Vec<StagedOutput>>,
    /// The object that its only output is, if another task makes that.
    pub(crate) handed: Option<Name>,
    /// All that it has written, in order.
    pub(crate) written: Vec<Segment>,
    /// It was seen to do nothing that taking its result would not repeat.
    pub(crate) is_harmless: bool,
    /// Files that it has read beside its inputs.
    pub(crate) read: Vec<FileRead>,
    pub(crate) took_us: u64,
}

/// Bytes that a task has written to one place after so many actions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    pub(crate) after: u64,
    /// The canonical path of an ordered file; none for standard output.
    pub(crate) file: Option<Arc<str>>,
    pub(crate) bytes: Bytes,
}

/// One output of such a task.
pub(crate) struct StagedOutput {
    pub(crate) form: Form,
    pub(crate) content: StagedContent,
}

/// Its bytes, wherever they go in the run.
pub(crate) enum StagedContent {
    Inline(Bytes),
    /// In a file that nobody else removes.
    File {
        path: PathBuf,
        length: u64,
        digest: Option<Digest>,
    },
}

impl Request {
    /// Whether it only says what has happened, and no file is read because of it that may be
    /// another by the time: then it may wait until a batch is kept.
    pub(crate) fn is_deferrable(&self) -> bool {
        match self {
            Request::Find(_) | Request::Compare(_) | Request::Close => false,
            Request::Begun(query) => reads_no_file(query),
            Request::Ended(ended) => {
                let mut outputs = ended.outputs.iter().flatten();
                outputs.all(|output| matches!(output.content, StagedContent::Inline(_)))
                    && ended.begun.as_deref().is_none_or(reads_no_file)
            }
            Request::Read(_, digest) => digest.is_some(),
            Request::Left(_)
            | Request::Unkept(..)
            | Request::EndedBelow(_)
            | Request::Spawned { .. }
            | Request::Deep(_)
            | Request::Over { .. } => true,
        }
    }
}

/// Whether all that a task is given is known without a look at a file.
fn reads_no_file(query: &ResultQuery) -> bool {
    let is_known = |content: &Content| match content {
        Content::Inline(_) => true,
        Content::File { digest, .. } => digest.is_some(),
    };
    let mut inputs = query.inputs.iter();
    // A command names files that others may change.
    query.descriptor.class != Class::Process && inputs.all(|(_, content)| is_known(content))
}
