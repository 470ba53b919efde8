//! Records of a run: what `ps`, `why` and `logs` show is a fold over them.
//!
//! The run's history holds them, one JSON value a line, and the control socket answers with them
//! while the run lives. It does not know how they are shown. Read next: [`crate::history`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use ciel_graph::{FunctionCounts, Happening, Moment, TaskSummary};
use ciel_model::{FailureKind, Label};
use serde::{Deserialize, Serialize};

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// The first of a run.
    Run(RunRecord),
    /// How many tasks there were by now; a later one replaces it.
    Counts(CountsRecord),
    /// Output that waits behind the serial frontier; only in the answer of a live run.
    Waiting(WaitingRecord),
    /// The bytes of a run's objects; only in the answer of a live run.
    Store(Box<StoreRecord>),
    /// The state of a task when the record was made; a later one replaces it.
    Task(Box<TaskRecord>),
    /// Something happened to a task; only for those who follow a live run.
    Moment(MomentRecord),
    /// So many moments before the next one are missing: the reader was too slow.
    Missed {
        /// How many.
        moments: u64,
    },
    /// Output of a task that is not part of the ordered output.
    Log(LogRecord),
    /// The last of a run that ended.
    End(Box<EndRecord>),
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's id.
    pub run: String,
    /// Script and arguments.
    pub command: Vec<String>,
    /// Seconds since 1970 at its start.
    pub started_s: u64,
    /// The process that ran it.
    pub pid: u32,
    /// The folder it was started in.
    pub folder: String,
    /// It was resumed after a former process of it was lost.
    #[serde(default)]
    pub resumed: bool,
}

/// Output that is held until everything before it is final.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitingRecord {
    /// Bytes in memory and on disk, by file: `stdout`, or the path of an ordered file.
    pub bytes: BTreeMap<String, u64>,
    /// What is held because of it, if output that waits is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldRecord>,
}

/// Tasks that wait because more output than a bound does, or because the disk has too little room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldRecord {
    /// Bytes of output that may wait, if they are bounded.
    pub bound_bytes: Option<u64>,
    /// The files of the run take most of what they may.
    #[serde(default)]
    pub room_is_scarce: bool,
    /// Tasks that are held now.
    pub tasks: u64,
    /// Commands that run and are paused now.
    #[serde(default)]
    pub paused: u64,
    /// Times that a command was paused.
    #[serde(default)]
    pub ever_paused: u64,
    /// Tasks that went although more waited, because nothing else could have moved the frontier.
    pub gave_way: u64,
}

/// The bytes of a run's objects and of its waiting output, since its last start. What was made and
/// is not released is present.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoreRecord {
    /// Bytes that came.
    pub made_bytes: u64,
    /// Bytes of them that the engine copied; the others were written or renamed there by tasks.
    pub moved_bytes: u64,
    /// Bytes of output that went to the disk, for their turn was late.
    pub spilled_bytes: u64,
    /// Bytes that have gone.
    pub released_bytes: u64,
    /// Bytes that are on the disk or in memory.
    pub present_bytes: u64,
    /// The most bytes that were there at once.
    pub peak_bytes: u64,
    /// Bytes that `limit_bytes` is about: of those present without those in memory, and those of
    /// kept results, whose files are there in any case; and what failed tasks have written of
    /// streams that the program has begun to read, which is kept.
    #[serde(default)]
    pub disk_bytes: u64,
    /// Bytes that `disk_bytes` and `unfinished_bytes` may be together; none without a limit.
    pub limit_bytes: Option<u64>,
    /// Bytes that running tasks have written and that are no objects yet, as far as somebody has
    /// looked: where there is a limit, they count, too.
    #[serde(default)]
    pub unfinished_bytes: u64,
    /// Bytes of those present that are in memory instead of on the disk.
    #[serde(default)]
    pub memory_bytes: u64,
    /// The most bytes that were in memory at once, with those that streams shared.
    #[serde(default)]
    pub memory_peak_bytes: u64,
    /// Bytes that may be in memory.
    #[serde(default)]
    pub memory_limit_bytes: u64,
    /// Bytes that nothing can name any more in memory, since their objects were released or written
    /// back, and that somebody has mapped.
    #[serde(default)]
    pub mapped_bytes: u64,
    /// Bytes beside all of these, of dead objects in memory into whose files the next ones are
    /// written.
    #[serde(default)]
    pub recycled_bytes: u64,
    /// Bytes that were written from memory to the disk, because tasks needed the memory.
    #[serde(default)]
    pub written_back_bytes: u64,
    /// Bytes beside all of these that both ends of direct streams share in memory, or keep there
    /// for a moment for the next stream.
    #[serde(default)]
    pub streams_bytes: u64,
    /// The most of those at once.
    #[serde(default)]
    pub streams_peak_bytes: u64,
    /// The same by how the bytes came, of each kind of which there were any.
    pub kinds: Vec<TrafficRecord>,
    /// The largest objects that were made, the largest first.
    pub largest: Vec<LargeRecord>,
}

/// Bytes that came in one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrafficRecord {
    /// `values`, `files`, `kept`, `recovered` or `output`.
    pub kind: String,
    /// Bytes that came.
    pub made_bytes: u64,
    /// Bytes of them that have gone.
    pub released_bytes: u64,
    /// Bytes that are on the disk or in memory.
    pub present_bytes: u64,
}

/// A large object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LargeRecord {
    /// Its name, 32 hexadecimal digits: that of its file.
    pub object: String,
    /// The label of the task that made it, or the user's file that it is a copy of.
    pub task: String,
    /// Its length.
    pub bytes: u64,
    /// Whether it was not released.
    pub present: bool,
    /// Whether it is in memory; on the disk otherwise, while it is present.
    #[serde(default)]
    pub in_memory: bool,
}

/// How many tasks there were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CountsRecord {
    /// Each function, by name.
    pub functions: Vec<FunctionRecord>,
}

/// How many tasks there were of a function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionRecord {
    /// Its name.
    pub what: String,
    /// Of its tasks.
    #[serde(flatten)]
    pub counts: FunctionCounts,
    /// Those among them that ran in place, of which no record is kept.
    #[serde(default)]
    pub in_place: u64,
}

/// How many tasks of a function ran in place.
pub type InPlaceCount = (Arc<str>, u64);

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Its full name, 32 hexadecimal digits.
    pub name: String,
    /// Its function or command.
    pub what: String,
    /// Its executor.
    pub executor: String,
    /// `file:line` of its spawn.
    pub place: String,
    /// Who spawned it.
    pub parent: Option<String>,
    /// Its state.
    pub state: TaskState,
    /// The reasons for its state, one each.
    pub reasons: Vec<String>,
    /// What happened to it: microseconds since the run began, and what.
    pub story: Vec<(u64, Cow<'static, str>)>,
    /// How often it was begun.
    pub attempts: u32,
    /// Microseconds it ran, waiting not counted.
    pub ran_us: u64,
    /// Why it failed.
    pub failure: Option<String>,
    /// Bytes of memory that its process had at most, if it had one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Why no kept result was used for it, if one was looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun: Option<String>,
    /// How it read its streams, a sentence for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<String>,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Lazy, not demanded.
    Dormant,
    /// Some references that it needs are unresolved.
    #[default]
    Waiting,
    /// It waits for a place.
    Ready,
    /// It runs.
    Running,
    /// It waits for references and holds no place.
    Suspended,
    /// It ended well.
    Finished,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskState {
    /// The word that `ciel ps` shows.
    pub fn words(self) -> &'static str {
        match self {
            TaskState::Dormant => "dormant",
            TaskState::Waiting => "waiting",
            TaskState::Ready => "ready",
            TaskState::Running => "running",
            TaskState::Suspended => "suspended",
            TaskState::Finished => "finished",
            TaskState::Failed => "failed",
            TaskState::Cancelled => "cancelled",
        }
    }
}

/// Something that happened to a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MomentRecord {
    /// Its full name.
    pub name: String,
    /// Its function or command.
    pub what: String,
    /// The full name of the task that spawned it.
    pub parent: Option<String>,
    /// Its executor.
    pub executor: String,
    /// In which attempt, from 1.
    pub attempt: u32,
    /// Microseconds since the run began.
    pub at_us: u64,
    /// What happened to the attempt at that time.
    pub moment: Moment,
}

impl From<&Happening> for MomentRecord {
    fn from(happening: &Happening) -> MomentRecord {
        MomentRecord {
            name: happening.label.name.to_string(),
            what: happening.label.what.to_string(),
            parent: happening.parent.map(|parent| parent.to_string()),
            executor: happening.executor.to_string(),
            attempt: happening.attempt.0 + 1,
            at_us: happening.at,
            moment: happening.moment,
        }
    }
}

/// A piece of a task's own output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogRecord {
    /// The label of the task.
    pub task: String,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// The text; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndRecord {
    /// Why the job failed; absent when it ended well.
    pub failure: Option<String>,
    /// How many tasks there were.
    pub counts: ciel_graph::Counts,
    /// Microseconds from start to end.
    pub elapsed_us: u64,
    /// The bytes of its objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreRecord>,
}

impl Record {
    /// Appends the record as a line of JSON.
    pub fn append_to(&self, lines: &mut Vec<u8>) {
        let written = serde_json::to_writer(&mut *lines, self);
        written.expect("records have only string keys and finite numbers");
        lines.push(b'\n');
    }
}

impl From<&TaskSummary> for TaskRecord {
    /// The record of a task that ended.
    fn from(summary: &TaskSummary) -> TaskRecord {
        let state = match &summary.failure {
            None => TaskState::Finished,
            Some(failure) if failure.kind == FailureKind::Cancelled => TaskState::Cancelled,
            Some(_) => TaskState::Failed,
        };
        let mut moments = summary.story.iter();
        let taken = |moment: &Moment| matches!(moment, Moment::Kept | Moment::Known);
        let taken = moments.find(|(_, moment)| taken(moment));
        TaskRecord {
            name: summary.label.name.to_string(),
            what: String::from(&*summary.label.what),
            executor: String::from(&*summary.executor),
            place: summary.site.to_string(),
            parent: summary.parent.as_ref().map(Label::to_string),
            state,
            reasons: taken
                .map(|(_, moment)| moment.words().to_string())
                .into_iter()
                .collect(),
            story: words_of(&summary.story),
            attempts: summary.attempts,
            ran_us: summary.ran_us,
            failure: summary.failure.as_ref().map(|failure| failure.to_string()),
            memory_bytes: None,
            rerun: summary.rerun.as_ref().map(|reason| reason.to_string()),
            streams: Vec::new(),
        }
    }
}

/// A story as records have it.
pub fn words_of(story: &[(u64, Moment)]) -> Vec<(u64, Cow<'static, str>)> {
    let words = |(at, moment): &(u64, Moment)| (*at, moment.words().into());
    story.iter().map(words).collect()
}

impl CountsRecord {
    /// The counts of functions in any order; those of tasks that ran in place are added.
    pub fn new(
        functions: Vec<(Arc<str>, FunctionCounts)>,
        in_place: &[InPlaceCount],
    ) -> CountsRecord {
        let mut all: BTreeMap<Arc<str>, (FunctionCounts, u64)> = BTreeMap::new();
        for (what, counts) in functions {
            all.insert(what, (counts, 0));
        }
        for (what, count) in in_place {
            let (counts, in_place) = all.entry(what.clone()).or_default();
            counts.spawned += count;
            counts.finished += count;
            *in_place += count;
        }
        let record = |(what, (counts, in_place)): (Arc<str>, (FunctionCounts, u64))| {
            let what = what.to_string();
            FunctionRecord {
                what,
                counts,
                in_place,
            }
        };
        let functions = all.into_iter().map(record).collect();
        CountsRecord { functions }
    }

    /// Tasks spawned.
    pub fn spawned(&self) -> u64 {
        self.functions.iter().map(|one| one.counts.spawned).sum()
    }

    /// Tasks that have a record of their own as long as there is room for it.
    pub fn described(&self) -> u64 {
        let functions = self.functions.iter();
        let without: u64 = functions
            .map(|one| one.counts.unneeded + one.in_place)
            .sum();
        self.spawned() - without
    }

    /// Tasks that have ended.
    pub fn ended(&self) -> u64 {
        self.functions.iter().map(|one| one.counts.ended()).sum()
    }
}

impl TaskRecord {
    /// Whether it failed by itself, and not because of another one.
    pub fn is_origin(&self) -> bool {
        let failure = self.failure.as_deref().unwrap_or_default();
        self.state == TaskState::Failed && failure.starts_with(&self.label())
    }

    /// When the last thing happened to it that is known, in microseconds since the run began.
    pub fn ended_us(&self) -> u64 {
        self.story.last().map_or(0, |(at, _)| *at)
    }

    /// `fib@3f9c12ab`.
    pub fn label(&self) -> String {
        let short = self.name.get(..8).unwrap_or(&self.name);
        [&self.what, "@", short].concat()
    }

    /// Whether `text`, as typed by a person, may mean this task.
    pub fn answers_to(&self, text: &str) -> bool {
        let name = self.name.parse().unwrap_or_default();
        ciel_model::Label {
            what: self.what.as_str().into(),
            name,
        }
        .answers_to(text)
    }
}
