//! The fold over the records of a run that explains each.
//!
//! It does not know where the records are stored. Read next: `ciel_coordinator`, which folds.

use std::collections::HashMap;

use ciel_coordinator::{Coordinator, FoldError, Record};
use ciel_graph::{Carriage, Checkpoint, Continuation, Event, Output, Policy, Step, Until, Wait};
use ciel_model::{Handle, Label, StrandKey, TaskKey};
use ciel_ordered::Piece;

use super::{Act, Entry};
use crate::error::ViewError;

/// Characters of what was written that an entry shows.
const SHOWN_CHARACTERS_MAX: usize = 40;

/// A fold that knows what the tasks are called.
pub(super) struct Reading {
    state: Coordinator,
    /// Tasks known so far, ended ones too: strands are called by their first tasks.
    labels: HashMap<TaskKey, Label>,
    /// How many tasks there were.
    spawned: u64,
}

impl Reading {
    /// That of the first record of a run.
    pub(super) fn new() -> Reading {
        Reading {
            state: Coordinator::new(Policy::default(), false),
            labels: HashMap::new(),
            spawned: 0,
        }
    }

    /// That of the first record after `until`, and the entry for the snapshot of all before it.
    pub(super) fn restored(snapshot: &[u8], until: u64) -> Result<(Reading, Entry), ViewError> {
        let mut reading = Reading::new();
        reading.state = Coordinator::restore(snapshot).map_err(corrupt)?;
        let graph = reading.state.graph();
        let live = graph.pending() as u64;
        let keys = graph.all();
        reading.learn(keys);
        reading.spawned = reading.state.graph().counts().spawned;
        let entry = Entry {
            record: None,
            at_us: Some(reading.state.now()),
            bytes: snapshot.len() as u64,
            act: Act::Snapshot {
                until,
                live,
                tasks: reading.spawned,
            },
        };
        Ok((reading, entry))
    }

    /// The meaning of the next record, with its time if it has one.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<(Option<u64>, Act), ViewError> {
        let record = Record::read(bytes).ok_or_else(|| corrupt(FoldError::Record))?;
        self.state.apply(record.clone(), &mut Vec::new());
        let before = self.spawned;
        self.spawned = self.state.graph().counts().spawned;
        self.learn((before..self.spawned).map(TaskKey).collect());
        let born = (before < self.spawned).then_some(TaskKey(before));
        Ok(match record {
            Record::Began {
                policy,
                ordered_errors,
            } => (None, began(policy, ordered_errors)),
            Record::Event { now, event } => (Some(now), self.told(&event, born)),
            Record::Wrote { strand, piece, .. } => (None, self.wrote(strand, "stdout", &piece)),
            Record::WroteError { strand, piece, .. } => {
                (None, self.wrote(strand, "stderr", &piece))
            }
            Record::Opened { path } => (None, Act::Opened { path }),
            Record::WroteFile {
                strand,
                sink,
                piece,
                ..
            } => {
                let files = self.state.files();
                let path = files.get(sink.0 as usize - 1).cloned().unwrap_or_default();
                (None, self.wrote(strand, &path, &piece))
            }
        })
    }

    fn learn(&mut self, keys: Vec<TaskKey>) {
        let graph = self.state.graph();
        let view = |key: TaskKey| graph.view(key).map(|view| (key, view.label));
        self.labels.extend(keys.into_iter().filter_map(view));
    }

    fn name(&self, task: TaskKey) -> String {
        let label = self.labels.get(&task);
        label.map_or_else(|| format!("task {}", task.0), Label::to_string)
    }

    fn wrote(&self, strand: StrandKey, stream: &str, piece: &Piece) -> Act {
        let beginning = match piece {
            Piece::Bytes(bytes) => beginning(bytes),
            Piece::Extent(_) => String::new(),
        };
        Act::Wrote {
            task: self.name(TaskKey(strand.0)),
            stream: stream.to_string(),
            length: piece.length(),
            beginning,
        }
    }

    /// The event for the graph; `born` is the task that it made.
    fn told(&self, event: &Event, born: Option<TaskKey>) -> Act {
        let name = |task: &TaskKey| self.name(*task);
        match event {
            Event::RootSubmitted { descriptor, .. } => Act::Submitted {
                task: name(&born.unwrap_or(TaskKey(0))),
                executor: descriptor.executor.to_string(),
            },
            Event::TaskPlaced { task, attempt } => Act::Placed {
                task: name(task),
                attempt: attempt.0,
            },
            Event::TaskStepped { task, step, .. } => self.stepped(name(task), step, born),
            Event::TaskBlocked {
                task,
                on,
                wait,
                continuation,
                checkpoint,
                ..
            } => waited(name(task), on, *wait, continuation, checkpoint.as_deref()),
            Event::TaskWatched { task, .. } => Act::Watched { task: name(task) },
            Event::TaskFinished {
                task,
                attempt,
                outputs,
                ..
            } => finished(name(task), attempt.0, outputs),
            Event::TaskTailSpawned {
                task, descriptor, ..
            } => Act::TailSpawned {
                task: name(task),
                successor: descriptor.what.to_string(),
            },
            Event::TaskFailed {
                task,
                attempt,
                failure,
            } => Act::Failed {
                task: name(task),
                attempt: attempt.0,
                failure: failure.to_string(),
            },
            Event::TaskLost { task, attempt, .. } => Act::Lost {
                task: name(task),
                attempt: attempt.0,
            },
            Event::TaskRecalled { task, .. } => Act::Recalled { task: name(task) },
            Event::EngineLost { lost, .. } => taken_up(lost.len() as u64),
            Event::FilesLost { lost } => files_lost(lost.len() as u64),
            Event::ContinuationLost { task } => Act::CopyLost { task: name(task) },
            Event::CancelRequested { task } => Act::CancelRequested { task: name(task) },
            Event::JobCancelled { failure } => Act::JobCancelled {
                failure: failure.to_string(),
            },
            Event::Ticked => Act::Ticked,
            Event::TaskRefused { task, failure, .. } => Act::Refused {
                task: name(task),
                failure: failure.to_string(),
            },
            Event::TaskRolledBack { task, to } => Act::RolledBack {
                task: name(task),
                to: *to,
            },
            Event::ResultFound { .. } | Event::ResultKnown { .. } | Event::ResultMissing { .. } => {
                self.looked_up(event)
            }
        }
    }

    /// What came of a lookup.
    fn looked_up(&self, event: &Event) -> Act {
        let name = |task: &TaskKey| self.name(*task);
        match event {
            Event::ResultFound { task, outputs, .. } => Act::ResultFound {
                task: name(task),
                outputs: outputs.len() as u64,
            },
            Event::ResultKnown { task, outputs, .. } => Act::ResultKnown {
                task: name(task),
                outputs: outputs.len() as u64,
            },
            Event::ResultMissing { task, reason, .. } => Act::ResultMissing {
                task: name(task),
                reason: reason.to_string(),
            },
            other => unreachable!("{other:?} is no answer to a lookup"),
        }
    }

    /// What a task did that others can see.
    fn stepped(&self, task: String, step: &Step, born: Option<TaskKey>) -> Act {
        match step {
            Step::Spawn { descriptor, .. } => Act::Spawned {
                task,
                again: born.is_none(),
                child: born.map_or_else(|| descriptor.what.to_string(), |key| self.name(key)),
                executor: descriptor.executor.to_string(),
                place: descriptor.site.to_string(),
                inputs: descriptor.inputs.len() as u64,
                outputs: descriptor.outputs,
            },
            Step::Construct { value, .. } => Act::Made {
                task,
                length: value.content.length(),
            },
            Step::Publish { index, value, .. } => Act::Published {
                task,
                output: *index,
                length: value.content.length(),
            },
            Step::Input { kind, value, .. } => Act::Asked {
                task,
                question: kind.to_string(),
                length: value.len() as u64,
            },
            Step::OpenOutput { index, carriage } => Act::OpenedOutput {
                task,
                output: *index,
                direct: *carriage == Carriage::Direct,
            },
            Step::ReadWhole => Act::Reopened { task },
            Step::Release { handles } => Act::ReleasedReferences {
                task,
                references: handles.len() as u64,
            },
        }
    }
}

fn corrupt(corrupt: FoldError) -> ViewError {
    ViewError::Corrupt(corrupt)
}

fn began(policy: Policy, ordered_errors: bool) -> Act {
    Act::Began {
        keep_going: policy.keep_going,
        fail_fast: policy.fail_fast,
        ordered_errors,
    }
}

fn waited(
    task: String,
    on: &[Handle],
    wait: Wait,
    continuation: &Continuation,
    checkpoint: Option<&Checkpoint>,
) -> Act {
    let references = on.len() as u64;
    if wait.until == Until::Cancelled {
        return Act::Cancels { task, references };
    }
    Act::Waited {
        task,
        references,
        first: !wait.until.is_all(),
        limit_us: wait.limit_us,
        continuation: match continuation {
            Continuation::Live => "live",
            Continuation::Replay => "replay",
            Continuation::Saved(_) => "saved",
        },
        checkpoint: checkpoint.map(|kept| kept.state.len() as u64),
    }
}

fn taken_up(lost: u64) -> Act {
    Act::TakenUp { lost }
}

fn files_lost(lost: u64) -> Act {
    Act::FilesLost { lost }
}

fn finished(task: String, attempt: u32, outputs: &[Output]) -> Act {
    let length = |output: &Output| match output {
        Output::Value(value) => value.content.length(),
        Output::Delegate(_) | Output::Published | Output::Passed => 0,
    };
    Act::Finished {
        task,
        attempt,
        outputs: outputs.len() as u64,
        length: outputs.iter().map(length).sum(),
    }
}

/// The first characters, on one line.
fn beginning(bytes: &[u8]) -> String {
    let most = bytes.len().min(4 * SHOWN_CHARACTERS_MAX);
    let text = String::from_utf8_lossy(&bytes[..most]);
    text.chars().take(SHOWN_CHARACTERS_MAX).collect()
}
