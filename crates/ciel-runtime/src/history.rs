//! What the history of a run is to receive: a bounded ring between the machines, which append under
//! the lock, and the input/output thread, which spells it as records and writes them.
//!
//! Up to a number of tasks each one is passed on as it ends. After that only failures are: of all
//! other tasks the ring keeps the newest, which are passed on each time there are more by a share,
//! and at the end. So the history of a long run grows with the logarithm of its tasks, and not with
//! the time that it takes. It does not know files or JSON. Read next: `ciel_view::history`.

use std::collections::{BTreeMap, VecDeque};

use ciel_graph::TaskSummary;
use ciel_model::words::size;
use ciel_model::{AttemptNumber, FailureKind, Label, Name, limits};
use rustc_hash::FxHashMap;

/// Ended tasks after which the input/output thread is asked to write.
const GATHERED_TASKS: usize = 256;

/// Ended tasks that may wait to be written; beyond it the oldest gives way.
const WAITING_TASKS_MAX: usize = 4 << 10;

/// Bytes of the tasks' own output that may wait to be written; beyond it the oldest gives way.
const WAITING_LOG_BYTES_MAX: usize = 4 << 20;

/// The newest tasks are passed on when the tasks have become more by this part of what they were.
const SAMPLED_PART: usize = 16;

/// Streams of one task of which is known how it reads them.
const STREAMS_MAX: usize = 16;

/// A piece of a task's own output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Log {
    pub(crate) task: Label,
    pub(crate) stream: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// A task that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EndedTask {
    pub(crate) summary: Box<TaskSummary>,
    /// Bytes of memory that its process had at most, if it had one of its own.
    pub(crate) memory_bytes: Option<u64>,
    /// How it read its streams, a sentence for each.
    pub(crate) streams: Vec<String>,
}

/// What waits to be written, each oldest first.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Tasks that failed by themselves.
    pub(crate) failed: VecDeque<EndedTask>,
    /// All other tasks.
    pub(crate) tasks: VecDeque<EndedTask>,
    pub(crate) logs: VecDeque<Log>,
}

/// How one attempt reads its streams.
#[derive(Debug, Default)]
struct Reads {
    attempt: AttemptNumber,
    /// By input.
    inputs: BTreeMap<u32, String>,
    /// Bytes of outputs that their readers have had through shared memory.
    shared: BTreeMap<u32, u64>,
}

impl Reads {
    /// A sentence for each, if it is that attempt.
    fn sentences(&self, attempt: AttemptNumber) -> Vec<String> {
        match self.attempt == attempt {
            true => self
                .inputs
                .values()
                .cloned()
                .chain(self.written())
                .collect(),
            false => Vec::new(),
        }
    }

    fn written(&self) -> impl Iterator<Item = String> {
        self.shared.values().map(|bytes| {
            let size = size(*bytes);
            format!("its reader had {size} of its stream in shared memory (direct)")
        })
    }
}

/// What happened and is not written yet.
#[derive(Debug, Default)]
pub(crate) struct History {
    gathered: Gathered,
    log_bytes: usize,
    /// Bytes of memory of processes whose tasks have not ended.
    memory: FxHashMap<Name, u64>,
    /// How tasks that have not ended read their streams.
    streams: FxHashMap<Name, Reads>,
    /// Tasks handed on so far, but for failures.
    taken: usize,
    /// Tasks that have ended so far, but for failures.
    ended: usize,
    /// How many had ended when tasks were handed on the last time.
    ended_when_taken: usize,
}

impl History {
    /// The process of a task has ended, and had at most so many bytes of memory.
    pub(crate) fn process_ended(&mut self, task: &Label, memory_bytes: u64) {
        let most = self.memory.entry(task.name).or_default();
        *most = memory_bytes.max(*most);
    }

    /// An attempt of a task reads an input as a stream, as that sentence says.
    pub(crate) fn stream_read(
        &mut self,
        task: &Label,
        (attempt, input): (AttemptNumber, u32),
        how: String,
    ) {
        let known = self.known_of(task, attempt);
        if known.inputs.len() < STREAMS_MAX || known.inputs.contains_key(&input) {
            known.inputs.insert(input, how);
        }
    }

    /// The reader of an output of an attempt had so many bytes of it through shared memory.
    pub(crate) fn stream_shared(
        &mut self,
        task: &Label,
        (attempt, output): (AttemptNumber, u32),
        bytes: u64,
    ) {
        let known = self.known_of(task, attempt);
        if known.shared.len() < STREAMS_MAX || known.shared.contains_key(&output) {
            known.shared.insert(output, bytes);
        }
    }

    fn known_of(&mut self, task: &Label, attempt: AttemptNumber) -> &mut Reads {
        let known = self.streams.entry(task.name).or_default();
        if known.attempt != attempt {
            *known = Reads {
                attempt,
                ..Reads::default()
            };
        }
        known
    }

    /// How an attempt of a task that has not ended reads its streams.
    pub(crate) fn streams_of(&self, task: Name, attempt: AttemptNumber) -> Vec<String> {
        let known = self.streams.get(&task);
        known.map_or_else(Vec::new, |known| known.sentences(attempt))
    }

    /// A task has ended. True if the input/output thread has to be asked to write now.
    pub(crate) fn task_ended(&mut self, summary: Box<TaskSummary>) -> bool {
        let is_sampled = self.is_sampling() && !is_origin(&summary);
        let waiting_max = match is_sampled {
            true => GATHERED_TASKS,
            false => WAITING_TASKS_MAX,
        };
        let tasks = match is_origin(&summary) {
            true => &mut self.gathered.failed,
            false => {
                self.ended += 1;
                &mut self.gathered.tasks
            }
        };
        if tasks.len() >= waiting_max {
            tasks.pop_front();
        }
        let memory_bytes = self.memory.remove(&summary.label.name);
        let streams = self.streams.remove(&summary.label.name);
        let streams = streams.map(|known| known.sentences(summary.last));
        tasks.push_back(EndedTask {
            summary,
            memory_bytes,
            streams: streams.unwrap_or_default(),
        });
        tasks.len() == GATHERED_TASKS && !is_sampled
    }

    /// Keeps a task's own output until it is written.
    pub(crate) fn log(&mut self, task: &Label, stream: &'static str, bytes: &[u8]) {
        self.log_bytes += bytes.len();
        self.gathered.logs.push_back(Log {
            task: task.clone(),
            stream,
            bytes: bytes.to_vec(),
        });
        while self.log_bytes > WAITING_LOG_BYTES_MAX
            && let Some(oldest) = self.gathered.logs.pop_front()
        {
            self.log_bytes -= oldest.bytes.len();
        }
    }

    /// What has gathered since the last time; of a run with many tasks the newest stay until there
    /// are more.
    pub(crate) fn take(&mut self) -> Gathered {
        let more = self.ended - self.ended_when_taken;
        if self.is_sampling() && more < self.ended_when_taken / SAMPLED_PART {
            let newest = std::mem::take(&mut self.gathered.tasks);
            let rest = self.take_last();
            self.gathered.tasks = newest;
            return rest;
        }
        self.ended_when_taken = self.ended;
        self.take_last()
    }

    /// What has gathered since the last time, with the newest tasks.
    pub(crate) fn take_last(&mut self) -> Gathered {
        self.log_bytes = 0;
        let mut gathered = std::mem::take(&mut self.gathered);
        let first = limits::HISTORY_TASKS_MAX.saturating_sub(self.taken);
        let newest = gathered.tasks.len().saturating_sub(GATHERED_TASKS);
        gathered.tasks.drain(first.min(newest)..newest);
        self.taken += gathered.tasks.len();
        gathered
    }

    fn is_sampling(&self) -> bool {
        self.taken >= limits::HISTORY_TASKS_MAX
    }
}

/// Whether a task failed by itself, and not because of another one.
fn is_origin(summary: &TaskSummary) -> bool {
    let failure = summary.failure.as_ref();
    failure.is_some_and(|failure| {
        failure.kind != FailureKind::Cancelled && failure.origin == summary.label
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ciel_model::{Failure, Name, Site};

    use super::*;

    fn summary(number: u128, fails: bool) -> Box<TaskSummary> {
        let label = Label {
            what: "work".into(),
            name: Name(number),
        };
        let failure = || Arc::new(Failure::new(FailureKind::TaskError, label.clone(), "no"));
        Box::new(TaskSummary {
            failure: fails.then(failure),
            label: label.clone(),
            executor: "python".into(),
            site: Site::default(),
            parent: None,
            attempts: 1,
            last: AttemptNumber(0),
            story: Vec::new(),
            ran_us: 0,
            rerun: None,
        })
    }

    /// Ends so many tasks, of which each thousandth fails, and writes when that is requested.
    fn end(history: &mut History, numbers: std::ops::Range<u128>) -> Vec<Gathered> {
        let mut written = Vec::new();
        for number in numbers {
            if history.task_ended(summary(number, number % 1000 == 7)) {
                written.push(history.take());
            }
        }
        written
    }

    #[test]
    fn first_tasks_are_all_handed_on_and_later_ones_as_failures_and_newest() {
        let mut history = History::default();
        let handed = end(&mut history, 0..100_000);
        let tasks: usize = handed.iter().map(|one| one.tasks.len()).sum();
        let most = limits::HISTORY_TASKS_MAX + GATHERED_TASKS;
        assert!(
            (limits::HISTORY_TASKS_MAX..=most).contains(&tasks),
            "{tasks}"
        );
        let rest = history.take_last();
        let failed: usize = handed.iter().map(|one| one.failed.len()).sum();
        assert_eq!(failed + rest.failed.len(), 100);
        assert_eq!(rest.tasks.len(), GATHERED_TASKS);
        assert_eq!(
            rest.tasks[GATHERED_TASKS - 1].summary.label.name,
            Name(99_999)
        );
    }

    /// Each look at a run passed on as many as 256 tasks, ten times a second, so that the history
    /// of a long run grew with its time.
    #[test]
    fn later_tasks_are_handed_on_each_time_there_are_more_by_a_share_however_often_one_looks() {
        let mut history = History::default();
        let mut handed = 0;
        for number in 0..1_000_000 {
            history.task_ended(summary(number, false));
            if number % 100 == 0 {
                handed += history.take().tasks.len();
            }
        }
        // The growth from the first ones to a million, in steps of a sixteenth.
        let steps = (100_f64.ln() / (1.0 + 1.0 / SAMPLED_PART as f64).ln()).ceil() as usize;
        let most = limits::HISTORY_TASKS_MAX + (steps + 1) * GATHERED_TASKS;
        assert!(
            (limits::HISTORY_TASKS_MAX..=most).contains(&handed),
            "{handed} of {most}"
        );
        let last = history.take_last().tasks;
        let newest = last.back().map(|task| task.summary.label.name);
        assert_eq!(newest, Some(Name(999_999)));
    }

    #[test]
    fn writer_that_comes_late_gets_the_first_tasks_up_to_the_bound_and_the_newest() {
        let mut history = History::default();
        let tasks_of = |gathered: Gathered| gathered.tasks.len();
        let before = limits::HISTORY_TASKS_MAX as u128 - 100;
        let mut taken: usize = end(&mut history, 0..before).into_iter().map(tasks_of).sum();
        taken += tasks_of(history.take());
        for number in 0..WAITING_TASKS_MAX as u128 {
            history.task_ended(summary(before + number, false));
        }
        let first = limits::HISTORY_TASKS_MAX - taken;
        assert_eq!(tasks_of(history.take()), first + GATHERED_TASKS);
    }

    #[test]
    fn nobody_writes_and_the_newest_stay() {
        let mut history = History::default();
        for number in 0..100_000 {
            history.task_ended(summary(number, number % 2 == 0));
        }
        let Gathered { failed, tasks, .. } = history.take();
        assert_eq!(
            (failed.len(), tasks.len()),
            (WAITING_TASKS_MAX, WAITING_TASKS_MAX)
        );
        assert_eq!(
            tasks.back().map(|last| last.summary.label.name),
            Some(Name(99_999))
        );
    }

    #[test]
    fn task_has_the_most_memory_of_its_processes() {
        let mut history = History::default();
        let label = summary(1, false).label.clone();
        history.process_ended(&label, 30);
        history.process_ended(&label, 20);
        history.task_ended(summary(1, false));
        history.task_ended(summary(2, false));
        let memory: Vec<Option<u64>> = history
            .take()
            .tasks
            .iter()
            .map(|task| task.memory_bytes)
            .collect();
        assert_eq!(memory, [Some(30), None]);
    }

    #[test]
    fn task_has_what_its_last_attempt_said_of_each_stream() {
        let mut history = History::default();
        let label = summary(1, false).label.clone();
        let first = AttemptNumber(0);
        for (input, how) in [(1, "b"), (0, "a"), (1, "c")] {
            history.stream_read(&label, (first, input), how.to_string());
        }
        assert_eq!(history.streams_of(label.name, first), ["a", "c"]);
        let second = AttemptNumber(1);
        for input in 2..100 {
            history.stream_read(&label, (second, input), input.to_string());
        }
        let known = history.streams_of(label.name, second);
        assert!(history.streams_of(label.name, first).is_empty());
        assert_eq!((&*known[0], known.len()), ("2", STREAMS_MAX));
        let mut ended = summary(1, false);
        ended.last = second;
        history.task_ended(ended);
        assert_eq!(history.take().tasks[0].streams, known);
        assert!(history.streams_of(label.name, second).is_empty());
    }

    #[test]
    fn output_of_tasks_that_waits_is_bounded_in_bytes() {
        let mut history = History::default();
        let label = summary(1, false).label.clone();
        for _ in 0..100 {
            history.log(&label, "stderr", &[b'x'; 1 << 20]);
        }
        let logs = history.take().logs;
        let bytes: usize = logs.iter().map(|log| log.bytes.len()).sum();
        assert_eq!(bytes, WAITING_LOG_BYTES_MAX);
    }
}
