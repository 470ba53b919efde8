//! Results that are kept across runs: which tasks take part, and the talk with the thread that
//! looks up and keeps.
//!
//! That thread alone uses the store; who holds the machines only sends it requests. It does not
//! know what an entry looks like. Read next: `kept/keeper`, then `ciel-kept`.

mod keeper;
mod parts;

use std::path::PathBuf;
use std::sync::mpsc::Sender;

use bytes::Bytes;
use ciel_engine::ResultQuery;
use ciel_graph::{Assignment, Entry, Output};
use ciel_model::{Content, Digest, Form, Keeping, Resolution};
use ciel_node::AttemptKey;
use ciel_store::{ObjectName, RunEntry, RunState};
use ciel_view::{RunDescription, RunEndRecord};

pub(crate) use self::keeper::run_thread;
use crate::engine::Engine;
use crate::executors::Executor;

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
    /// The job has ended.
    Close,
}

/// What a task gave that ended well.
pub(crate) struct EndedTask {
    pub(crate) attempt: AttemptKey,
    pub(crate) outputs: Vec<StagedOutput>,
    pub(crate) printed: Bytes,
    pub(crate) took_us: u64,
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

/// Which tasks of a run take part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeepRule {
    /// Results are kept at all.
    pub(crate) keeps: bool,
    /// Tasks that do not say it themselves take what is kept.
    pub(crate) takes: bool,
}

impl KeepRule {
    /// For a task of that executor; `keep` and `pure` are what its program says about it.
    pub(crate) fn of_task(
        self,
        executor: &dyn Executor,
        outputs: u32,
        (keep, pure): (Option<bool>, Option<bool>),
    ) -> Keeping {
        let is_refused = keep == Some(false) || pure == Some(false);
        if !self.keeps || !executor.is_keepable() || outputs == 0 || is_refused {
            return Keeping::Never;
        }
        match self.takes || keep == Some(true) || pure == Some(true) {
            true => Keeping::Takes,
            false => Keeping::Keeps,
        }
    }
}

/// Whether the latest run of a job that has left a trace did not end well; `job` knows no code.
pub(crate) fn has_ended_badly(runs: &[RunEntry], job: &str) -> bool {
    let of_job = |run: &&RunEntry| {
        let description = RunDescription::read(run);
        description.is_some_and(|description| description.job == job)
    };
    let dead = runs.iter().rev().filter(|run| is_dead(run));
    dead.take(RUNS_LOOKED_AT).find(of_job).is_some_and(|run| {
        let ending = run.ending().ok().flatten();
        let ending = ending.and_then(|bytes| serde_json::from_slice::<RunEndRecord>(&bytes).ok());
        ending.is_none_or(|ending| ending.failure.is_some())
    })
}

/// Latest runs of a folder among which one of the job is looked for.
const RUNS_LOOKED_AT: usize = 100;

fn is_dead(run: &RunEntry) -> bool {
    match run.state {
        RunState::Alive { .. } => false,
        RunState::Unended | RunState::Ended => true,
    }
}

/// Says to the thread of kept results that a task begins, if it takes part.
pub(crate) fn tell_begun(engine: &Engine, assignment: &Assignment) {
    let Entry::Start(inputs) = &assignment.entry else {
        return;
    };
    if assignment.descriptor.keeping == Keeping::Never {
        return;
    }
    let plain = |resolution: &Resolution| match resolution {
        Resolution::Ready { value, .. } if value.references.is_empty() => {
            Some((value.form.clone(), value.content.clone()))
        }
        _ => None,
    };
    let inputs: Option<Vec<_>> = inputs.iter().map(|(_, given)| plain(given)).collect();
    if let Some(inputs) = inputs {
        send(
            &engine.kept,
            Request::Begun(Box::new(ResultQuery {
                attempt: AttemptKey {
                    task: assignment.task,
                    number: assignment.attempt,
                },
                strand: assignment.strand,
                label: assignment.label.clone(),
                after: assignment.next_action,
                descriptor: assignment.descriptor.clone(),
                inputs,
            })),
        );
    }
}

/// What a task gave, with names of its files that outlive their use in the run; none if a file
/// cannot have one, or an output contains references.
pub(crate) fn staged(
    engine: &Engine,
    assignment: &Assignment,
    outputs: &[Output],
) -> Option<Vec<StagedOutput>> {
    let outputs = outputs.iter().enumerate();
    outputs
        .map(|(index, output)| {
            let Output::Value(value) = output else {
                return None;
            };
            if !value.references.is_empty() {
                return None;
            }
            let content = match &value.content {
                Content::Inline(bytes) => StagedContent::Inline(bytes.clone()),
                Content::File {
                    name,
                    length,
                    digest,
                } => {
                    let from = engine.objects.share(ObjectName(name.0)).ok()?;
                    let path = spare_path(engine, assignment.label.name.0, index)?;
                    std::fs::hard_link(from, &path).ok()?;
                    StagedContent::File {
                        path,
                        length: *length,
                        digest: *digest,
                    }
                }
            };
            let form = value.form.clone();
            Some(StagedOutput { form, content })
        })
        .collect()
}

/// A path of the run's folder for an output of a task, apart from those of its attempts.
pub(super) fn spare_path(engine: &Engine, task: u128, output: usize) -> Option<PathBuf> {
    let scratch = engine.folder.scratch();
    let path = scratch.path(task, u32::MAX, &format!("kept.{output}"));
    path.ok()
}

/// The receiver is gone only when the run is over; then nothing is looked up or kept any more.
pub(crate) fn send(kept: &Sender<Request>, request: Request) {
    let _ = kept.send(request);
}
