//! The coordinator: graph and ordered streams behind one door.
//!
//! The graph's decisions about the ordered output are applied here at once, before any other event;
//! all other actions are the caller's. The release of output, and the spilling of buffered output,
//! are not recorded: a fold releases what is final by then, which is the same bytes.

use std::fmt;

use ciel_graph::{Action, Entry, Event, Graph, Policy};
use ciel_model::{Micros, StrandKey, TaskKey};
use ciel_ordered::{OrderedError, OrderedStream, Piece, Sink};
use serde::{Deserialize, Serialize};

use crate::record::{Record, Spelled};
use crate::strands::{apply_change, told, write_to};

/// Recorded bytes that are not what a coordinator writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// A record cannot be read.
    #[error("a record cannot be read")]
    Record,
    /// The snapshot cannot be read.
    #[error("the snapshot cannot be read")]
    Snapshot,
    /// There are records, but not of the beginning of a run.
    #[error("the beginning is missing")]
    Beginning,
}

/// The recorder of a coordinator's inputs.
pub trait Recorder: fmt::Debug + Send {
    /// Takes one record; `spell` appends its bytes and is called once, at once.
    fn append(&mut self, spell: &mut dyn FnMut(&mut Vec<u8>));
}

/// The task graph and the ordered output of one run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Coordinator {
    graph: Graph,
    output: OrderedStream,
    errors: OrderedStream,
    /// Whether standard error goes through `errors` at all.
    ordered_errors: bool,
    /// Canonical paths of the ordered files: that of sink 1, of sink 2, and so on.
    files: Vec<String>,
    /// The time of its last event.
    now: Micros,
    /// Changes in the tree of strands so far.
    changes: u64,
    #[serde(skip)]
    recorder: Option<Box<dyn Recorder>>,
    #[serde(skip)]
    refusal: Option<OrderedError>,
}

impl Coordinator {
    /// That of a new run.
    pub fn new(policy: Policy, ordered_errors: bool) -> Coordinator {
        Coordinator {
            graph: Graph::new(policy),
            output: OrderedStream::new(),
            errors: OrderedStream::new(),
            ordered_errors,
            files: Vec::new(),
            now: 0,
            changes: 0,
            recorder: None,
            refusal: None,
        }
    }

    /// From now on everything is recorded there; a new run begins with a record of its own.
    pub fn record_to(&mut self, recorder: Box<dyn Recorder>) {
        self.recorder = Some(recorder);
        if self.graph.counts().spawned == 0 {
            let (policy, ordered_errors) = (self.graph.policy(), self.ordered_errors);
            self.record(&Spelled::Began {
                policy,
                ordered_errors,
            });
        }
    }

    /// What happens from now on is not to be remembered.
    pub fn stop_recording(&mut self) {
        self.recorder = None;
    }

    /// Whether each transition of a task gives an action from now on.
    pub fn watch(&mut self, is_watched: bool) {
        self.graph.watch(is_watched);
    }

    /// From now on an action says when few of a strand's children are left unfinished.
    pub fn count_children(&mut self, few: u32) {
        self.graph.count_children(few);
    }

    /// Whether inputs are recorded, so that strands must be replayable.
    pub fn is_recording(&self) -> bool {
        self.recorder.is_some()
    }

    fn record(&mut self, record: &Spelled<'_>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.append(&mut |bytes| record.append_to(bytes));
        }
    }

    /// Passes an event to the graph, and appends the actions that the shell must do.
    pub fn tell(&mut self, now: Micros, event: Event, actions: &mut Vec<Action>) {
        self.record(&Spelled::Event { now, event: &event });
        let first = actions.len();
        self.now = now;
        self.pass(event, actions);
        self.roll_back_retries(first, actions);
    }

    fn pass(&mut self, event: Event, actions: &mut Vec<Action>) {
        let first = actions.len();
        self.graph.handle(self.now, event, actions);
        for action in actions.extract_if(first.., |action| matches!(action, Action::Strand(_))) {
            if let Action::Strand(change) = action {
                self.changes += 1;
                let applied = apply_change(&mut self.output, change);
                self.note_refusal(applied);
                if self.ordered_errors {
                    // Standard error may differ in a replay.
                    let _ = apply_change(&mut self.errors, change);
                }
            }
        }
        self.note_written(&mut actions[first..]);
    }

    /// Says to replayed strands after which action they had written.
    fn note_written(&self, actions: &mut [Action]) {
        for action in actions {
            if let Action::Begin(assignment) = action
                && let Entry::Replay { until, .. } = &mut assignment.entry
            {
                let strand = ciel_ordered::StrandKey(assignment.strand.0);
                let written = self.output.reached(strand).max(self.errors.reached(strand));
                *until = written.max(*until);
            }
        }
    }

    /// A retry spawns tasks that have failed again, if nothing was written since.
    fn roll_back_retries(&mut self, first: usize, actions: &mut Vec<Action>) {
        for index in first..actions.len() {
            let Action::AttemptFailed { key: task, .. } = actions[index] else {
                continue;
            };
            let least = self.rollback_min(task);
            let failed = least.and_then(|least| self.graph.failed_spawn(task, least));
            if let (Action::AttemptFailed { to, .. }, Some(spawn)) = (&mut actions[index], failed) {
                *to = failed;
                self.pass(Event::TaskRolledBack { task, to: spawn }, actions);
            }
        }
    }

    fn note_refusal(&mut self, done: Result<(), OrderedError>) {
        self.refusal = self.refusal.or(done.err());
    }

    /// The first action to which a strand can be rolled back now; none if it cannot be. What was
    /// written and is final stays.
    pub fn rollback_min(&self, task: TaskKey) -> Option<u64> {
        let least = self.graph.rollback_min(task)?;
        let strand = ciel_ordered::StrandKey(self.graph.strand_of(task)?.0);
        Some(least.max(self.output.rollback_min(strand)))
    }

    /// A strand writes to its ordered output, when it has done `after` actions.
    ///
    /// # Errors
    /// The failure of a strand whose replay writes different output.
    pub fn write(&mut self, strand: StrandKey, after: u64, piece: Piece) -> Result<(), String> {
        self.record(&Spelled::Wrote {
            strand,
            after,
            piece: &piece,
        });
        let written = write_to(&mut self.output, strand, after, (Sink::OUTPUT, piece));
        self.note_refusal(written);
        written.or_else(told)
    }

    /// The sink of the ordered file with that canonical path, which is numbered when it is named
    /// first. The order of numbers means nothing.
    pub fn open_file(&mut self, path: &str) -> Sink {
        let known = self.files.iter().position(|known| known == path);
        let index = known.unwrap_or_else(|| {
            self.record(&Spelled::Opened { path });
            self.files.push(path.to_string());
            self.files.len() - 1
        });
        Sink(u32::try_from(index + 1).expect("a job opens fewer than 2^32 files"))
    }

    /// Canonical paths of the ordered files: that of sink 1, of sink 2, and so on.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// A strand writes to an ordered file, as to its ordered output.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn write_file(
        &mut self,
        strand: StrandKey,
        after: u64,
        sink: Sink,
        piece: Piece,
    ) -> Result<(), String> {
        self.record(&Spelled::WroteFile {
            strand,
            after,
            sink,
            piece: &piece,
        });
        let written = write_to(&mut self.output, strand, after, (sink, piece));
        self.note_refusal(written);
        written.or_else(told)
    }

    /// A strand writes to its ordered standard error. One that differs in a replay is no failure.
    pub fn write_error(&mut self, strand: StrandKey, after: u64, piece: Piece) {
        self.record(&Spelled::WroteError {
            strand,
            after,
            piece: &piece,
        });
        let _ = write_to(&mut self.errors, strand, after, (Sink::OUTPUT, piece));
    }

    /// The task graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The ordered output.
    pub fn output(&self) -> &OrderedStream {
        &self.output
    }

    /// The ordered output, for the thread that writes it.
    pub fn output_mut(&mut self) -> &mut OrderedStream {
        &mut self.output
    }

    /// Whether a replayed strand has not yet repeated all of its output.
    pub fn is_behind(&self, strand: StrandKey) -> bool {
        self.output.is_behind(ciel_ordered::StrandKey(strand.0))
    }

    /// The ordered standard error.
    pub fn errors(&self) -> &OrderedStream {
        &self.errors
    }

    /// The ordered standard error, for the thread that writes it.
    pub fn errors_mut(&mut self) -> &mut OrderedStream {
        &mut self.errors
    }

    /// Whether standard error is ordered like standard output.
    pub fn has_ordered_errors(&self) -> bool {
        self.ordered_errors
    }

    /// The first thing that the ordered output refused, late acts of strands that were given up not
    /// counted. If all strands are deterministic, it is a bug.
    pub fn refusal(&self) -> Option<OrderedError> {
        self.refusal
    }

    /// The time of its last event.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// Changes in the tree of strands so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }
}

/// Coming back.
impl Coordinator {
    /// The state as bytes; `None` while output is being spilled.
    pub fn snapshot(&self) -> Option<Vec<u8>> {
        let settled = !self.output.is_spilling() && !self.errors.is_spilling();
        settled.then(|| postcard::to_stdvec(self).expect("a coordinator in memory can be encoded"))
    }

    /// The coordinator of a snapshot.
    ///
    /// # Errors
    /// `Snapshot`.
    pub fn restore(snapshot: &[u8]) -> Result<Coordinator, FoldError> {
        match postcard::take_from_bytes(snapshot) {
            Ok((coordinator, [])) => Ok(coordinator),
            Ok(_) | Err(_) => Err(FoldError::Snapshot),
        }
    }

    /// The coordinator that a row of records made, beginning with `snapshot` if there is one.
    ///
    /// `after` is called once with the beginning, and after each record behind that with what was
    /// done about it when it was made. It may take out output that is final: that of a snapshot
    /// may have been released before the record behind it was made.
    ///
    /// # Errors
    /// `Record`, `Snapshot`, `Beginning`, and those of `after`.
    pub fn fold<'a, E: From<FoldError>>(
        snapshot: Option<&[u8]>,
        records: impl IntoIterator<Item = &'a [u8]>,
        mut after: impl FnMut(&mut Coordinator, &[Action]) -> Result<(), E>,
    ) -> Result<Coordinator, E> {
        let mut records = records.into_iter();
        let mut coordinator = match snapshot {
            Some(snapshot) => Coordinator::restore(snapshot)?,
            None => Coordinator::begin(records.next().ok_or(FoldError::Beginning)?)?,
        };
        let mut actions = Vec::new();
        after(&mut coordinator, &actions)?;
        for bytes in records {
            let record = Record::read(bytes).ok_or(FoldError::Record)?;
            coordinator.apply(record, &mut actions);
            after(&mut coordinator, &actions)?;
            actions.clear();
        }
        Ok(coordinator)
    }

    fn begin(record: &[u8]) -> Result<Coordinator, FoldError> {
        match Record::read(record).ok_or(FoldError::Record)? {
            Record::Began {
                policy,
                ordered_errors,
            } => Ok(Coordinator::new(policy, ordered_errors)),
            Record::Event { .. }
            | Record::Wrote { .. }
            | Record::WroteError { .. }
            | Record::Opened { .. }
            | Record::WroteFile { .. } => Err(FoldError::Beginning),
        }
    }

    /// Does once more what was recorded, and appends what was done about it then.
    pub fn apply(&mut self, record: Record, actions: &mut Vec<Action>) {
        match record {
            // A former process may have been lost between this record and the next.
            Record::Began {
                policy,
                ordered_errors,
            } => *self = Coordinator::new(policy, ordered_errors),
            Record::Event { now, event } => self.tell(now, event, actions),
            // The strand has failed by then if its replay differs.
            Record::Wrote {
                strand,
                after,
                piece,
            } => drop(self.write(strand, after, piece)),
            Record::WroteError {
                strand,
                after,
                piece,
            } => self.write_error(strand, after, piece),
            Record::Opened { path } => drop(self.open_file(&path)),
            Record::WroteFile {
                strand,
                after,
                sink,
                piece,
            } => drop(self.write_file(strand, after, sink, piece)),
        }
    }
}
