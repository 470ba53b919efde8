//! What a running job shows on this process's streams.
//!
//! Standard output is data, standard error is talk. Two forms of messages: text, and JSON lines for
//! programs. Read next: `talk`, `sink`, `failures`.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ciel_model::{Failure, FailureKind, Label};
use ciel_runtime::{Observer, Outcome, Progress, Report};
use ciel_view::records::StoreRecord;
use serde_json::{Value, json};

use crate::cli_error::CliError;
use crate::closed_streams;
use crate::display::{counted, duration, roughly};
use crate::failures;
use crate::named_commands::with_state;
use crate::options::RunOptions;
use crate::pace::Pace;
use crate::paint::Paint;
use crate::redirected::{self, Redirected};
use crate::sink::{Extent, Sink};
use crate::stored::amounts;
use crate::talk::Talk;

/// Microseconds after which a job is worth a progress line.
const PROGRESS_AFTER_US: u64 = 300_000;

/// Microseconds after which the number of used cores describes the job and not the start of this
/// process.
const CORES_AFTER_US: u64 = 100_000;

/// Bytes of objects that are worth a line at the end of a run.
const STORE_SHOWN_BYTES: u64 = 1 << 20;

/// The observer of a job on the command line.
pub struct CommandObserver {
    talk: Mutex<Talk>,
    pace: Mutex<Pace>,
    paint: Paint,
    json: bool,
    quiet: bool,
    verbose: bool,
    output: Mutex<Output>,
    terminal: bool,
    /// Output is lost without an error where standard output was closed.
    may_lose_output: bool,
    /// The state folder, if one was named.
    state: Option<PathBuf>,
}

/// Where the ordered output goes.
struct Output {
    file: Option<Sink>,
    /// Standard output, if it is a file to which a former process of this run has written.
    redirected: Option<Redirected>,
    /// Standard output has not ended its line.
    within_line: bool,
}

impl CommandObserver {
    /// Opens the file of `--output`, which must not be one of `sources`.
    pub fn new(options: &RunOptions, paint: Paint, sources: &[&Path]) -> Result<Self, CliError> {
        let opened = options.output.as_deref();
        let file = opened
            .map(|path| Sink::open(path, options.overwrite, sources))
            .transpose()?;
        Ok(CommandObserver {
            talk: Mutex::new(Talk::new(!options.quiet && !options.json)),
            pace: Mutex::default(),
            paint,
            json: options.json,
            quiet: options.quiet,
            verbose: options.verbose,
            output: Mutex::new(Output {
                file,
                redirected: None,
                within_line: false,
            }),
            terminal: io::stdout().is_terminal(),
            may_lose_output: false,
            state: None,
        })
    }

    /// For a run in this state folder, if one was named.
    pub fn of_state(self, state: Option<PathBuf>) -> Self {
        CommandObserver { state, ..self }
    }

    /// For a program that has closed its standard output: what is printed is lost, as what it
    /// prints itself.
    pub fn losing_output(self) -> Self {
        CommandObserver {
            may_lose_output: true,
            ..self
        }
    }

    /// Prints the end of the job, after all else: failures, the summary.
    pub fn conclude(&self, outcome: &Outcome) {
        self.clear();
        if outcome.output_closed {
            return;
        }
        let told = match self.json {
            true => self.ending_lines(outcome),
            false => self.ending_words(outcome),
        };
        locked(&self.talk).say(told.as_bytes());
    }

    /// Ends the file of `--output`; warns if standard output was not written, and why.
    pub fn finish_output(&self, extent: Extent) -> Result<(), CliError> {
        let mut output = locked(&self.output);
        if let Some(refusal) = output.redirected.as_ref().and_then(Redirected::refusal) {
            return Err(refusal);
        }
        let file = output.file.take();
        file.map_or(Ok(()), |sink| sink.finish(extent))
    }

    /// Takes the progress line away.
    pub fn clear(&self) {
        locked(&self.talk).clear();
    }

    /// Writes to standard output. Talk waits for it only where both are the same terminal.
    fn data(&self, bytes: &[u8]) -> io::Result<()> {
        if !self.may_lose_output {
            closed_streams::check_output()?;
        }
        if self.terminal {
            return locked(&self.talk).data(bytes);
        }
        if let Some(redirected) = &mut locked(&self.output).redirected {
            return redirected.write(bytes);
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush())
    }

    fn ending_words(&self, outcome: &Outcome) -> String {
        let mut text = String::new();
        if let (Err(failure), false) = (&outcome.result, outcome.interrupted) {
            if failure.exit_status().is_none() {
                text.push_str(&failures::explain(failure, self.paint));
            }
            text.push_str(&failures::further(&outcome.failures, failure, self.paint));
        }
        if !self.quiet {
            text.push_str(&summary(outcome, self.paint));
            text.push_str(&way_on(outcome, self.state.as_deref(), self.paint));
        }
        text
    }

    fn ending_lines(&self, outcome: &Outcome) -> String {
        let mut lines = Vec::new();
        if let Err(failure) = &outcome.result {
            lines.push(json!({"event": "failed", "failure": failures::as_json(failure)}));
            let others = outcome
                .failures
                .iter()
                .filter(|other| other.origin != failure.origin);
            lines.extend(
                others.map(
                    |other| json!({"event": "also-failed", "failure": failures::as_json(other)}),
                ),
            );
        }
        lines.push(json!({
            "event": "ended",
            "run": outcome.run,
            "well": outcome.result.is_ok(),
            "interrupted": outcome.interrupted,
            "resumable": outcome.resumable,
            "tasks": outcome.counts,
            "reruns": outcome.reruns,
            "store": outcome.store,
            "elapsed_us": outcome.elapsed_us,
            "processor_us": outcome.processor_us,
        }));
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// How long the tasks that are known may still take. The root, which ends last, is not counted.
    fn remaining_us(&self, progress: &Progress) -> Option<u64> {
        let ended = progress.counts.spawned.saturating_sub(progress.pending);
        let rest = progress.pending.saturating_sub(1);
        locked(&self.pace).remaining_us(progress.elapsed_us, ended, rest)
    }

    fn say_line(&self, line: &str) {
        locked(&self.talk).say(format!("{line}\n").as_bytes());
    }

    fn report_line(&self, report: &Report<'_>) -> String {
        let remaining_us = match report {
            Report::Progress(progress) => self.remaining_us(progress),
            _ => None,
        };
        report_value(report, remaining_us).to_string()
    }

    fn report_words(&self, report: &Report<'_>) {
        match report {
            Report::Progress(progress) if progress.elapsed_us >= PROGRESS_AFTER_US => {
                let remaining_us = self.remaining_us(progress);
                locked(&self.talk).progress(&progress_words(progress, remaining_us));
            }
            Report::Started { .. } | Report::Progress(_) => {}
            Report::Resumed { run, committed } if !self.quiet => {
                let tasks = counted(*committed, "task");
                self.say_line(&format!("resuming run {run}: {tasks} already finished"));
            }
            Report::Resumed { .. } => {}
            Report::AttemptFailed {
                task,
                failure,
                left,
            } if self.verbose => {
                let cause = failures::in_short(failure);
                let tag = self.tag(task);
                self.say_line(&format!(
                    "{tag} attempt failed: {cause}; retries left: {left}"
                ));
            }
            Report::TaskFailed { task, failure }
                if self.verbose && failure.kind != FailureKind::Cancelled =>
            {
                self.say_line(&format!(
                    "{} failed: {}",
                    self.tag(task),
                    failures::in_short(failure)
                ));
            }
            Report::AttemptFailed { .. } | Report::TaskFailed { .. } => {}
            Report::Warning { task, message } => {
                let task = task.map_or(String::new(), |task| format!("{} ", self.tag(task)));
                self.say_line(&format!(
                    "{}: {task}{message}",
                    self.paint.warning("warning")
                ));
            }
        }
    }

    fn tag(&self, task: &Label) -> String {
        self.paint.tag(task)
    }
}

impl Observer for CommandObserver {
    fn shows_progress(&self) -> bool {
        self.json || locked(&self.talk).shows_progress()
    }

    fn sinks(&self, kept: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let mut output = locked(&self.output);
        let (redirected, sinks) = redirected::take_up(kept, output.file.is_none());
        output.redirected = redirected;
        sinks
    }

    fn output(&self, bytes: &[u8]) -> io::Result<()> {
        let mut output = locked(&self.output);
        if let Some(file) = &mut output.file {
            return file.write(bytes);
        }
        output.within_line = bytes.last().is_some_and(|byte| *byte != b'\n');
        drop(output);
        self.data(bytes)
    }

    /// The last line of standard output; nothing when it is null.
    fn result(&self, result: &Value) -> io::Result<()> {
        self.clear();
        if !result.is_null() {
            let open = locked(&self.output).within_line;
            let line = format!("{}{result}\n", if open { "\n" } else { "" });
            self.data(line.as_bytes())?;
        }
        let redirected = &mut locked(&self.output).redirected;
        redirected.as_mut().map_or(Ok(()), Redirected::end)
    }

    fn settle(&self) -> io::Result<()> {
        let file = &mut locked(&self.output).file;
        file.as_mut().map_or(Ok(()), Sink::settle)
    }

    fn error_output(&self, task: Option<&Label>, bytes: &[u8]) {
        if self.json {
            let text = String::from_utf8_lossy(bytes);
            let task = task.map(Label::to_string);
            self.say_line(&json!({"event": "stderr", "task": task, "text": text}).to_string());
            return;
        }
        match task {
            None => locked(&self.talk).say(bytes),
            Some(task) => locked(&self.talk).say(&tagged(&self.paint.tag(task), bytes)),
        }
    }

    fn report(&self, report: Report<'_>) {
        match self.json {
            true => self.say_line(&self.report_line(&report)),
            false => self.report_words(&report),
        }
    }
}

/// Each line behind the tag; the last one is ended if it is not.
fn tagged(tag: &str, bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len() + tag.len() + 2);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(tag.as_bytes());
        text.push(b' ');
        text.extend_from_slice(line);
    }
    if text.last().is_some_and(|byte| *byte != b'\n') {
        text.push(b'\n');
    }
    text
}

/// The fields of a line. `remaining_us` is the estimate of the rest that progress has, if any.
fn report_value(report: &Report<'_>, remaining_us: Option<u64>) -> Value {
    let failed = |event: &str, task: &Label, failure: &Arc<Failure>| {
        let task = task.to_string();
        json!({"event": event, "task": task, "failure": failures::as_json(failure)})
    };
    match report {
        Report::Started { run } => json!({"event": "started", "run": run}),
        Report::Resumed { run, committed } => {
            json!({"event": "resumed", "run": run, "committed": committed})
        }
        Report::Progress(progress) => json!({
            "event": "progress",
            "tasks": progress.counts,
            "pending": progress.pending,
            "running": progress.running,
            "oldest": progress.oldest,
            "elapsed_us": progress.elapsed_us,
            "remaining_us": remaining_us,
        }),
        Report::AttemptFailed {
            task,
            failure,
            left,
        } => {
            let mut value = failed("attempt-failed", task, failure);
            value["left"] = json!(left);
            value
        }
        Report::TaskFailed { task, failure } if failure.kind == FailureKind::Cancelled => {
            json!({"event": "task-cancelled", "task": task.to_string(), "message": failure.message})
        }
        Report::TaskFailed { task, failure } => failed("task-failed", task, failure),
        Report::Warning { task, message } => {
            let task = task.map(Label::to_string);
            json!({"event": "warning", "task": task, "message": message})
        }
    }
}

/// `12/40 tasks · 1 failed · 2 running · 3.4 s · about 8 s left · oldest sort@3f9c12ab`: the second
/// number is what is known so far, so the line is right while tasks spawn tasks.
fn progress_words(progress: &Progress, remaining_us: Option<u64>) -> String {
    let known = progress.counts.spawned;
    let ended = known.saturating_sub(progress.pending);
    let mut words = vec![
        format!("{ended}/{}", counted(known, "task")),
        format!("{} running", progress.running),
        duration(progress.elapsed_us),
    ];
    if progress.counts.failed > 0 {
        words.insert(1, format!("{} failed", progress.counts.failed));
    }
    words.extend(remaining_us.map(|rest| format!("about {} left", roughly(rest))));
    if let Some(oldest) = &progress.oldest {
        words.push(format!("oldest {oldest}"));
    }
    words.join(" · ")
}

/// `done: 12 tasks in 3.4 s, 1.8 cores used`.
fn summary(outcome: &Outcome, paint: Paint) -> String {
    let word = match (&outcome.result, outcome.interrupted) {
        (_, true) => paint.warning("interrupted"),
        (Ok(_), false) => paint.good("done"),
        (Err(_), false) => paint.error("failed"),
    };
    let counts = &outcome.counts;
    let tasks = counted(counts.spawned, "task");
    let mut parts = vec![format!("{tasks} in {}", duration(outcome.elapsed_us))];
    if outcome.elapsed_us >= CORES_AFTER_US {
        let cores = outcome.processor_us as f64 / outcome.elapsed_us as f64;
        parts.push(format!("{cores:.1} cores used"));
    }
    let unlike = match counts.checked {
        0 => counts.differing,
        _ => 0,
    };
    let some = [
        (counts.failed, "failed"),
        (counts.cancelled, "cancelled"),
        (counts.retried, "retried"),
        (counts.lost, "lost and restarted"),
        (counts.shared, "shared"),
        (counts.duplicated, "duplicated"),
        (counts.overtaken, "overtaken by their duplicates"),
        (unlike, "unlike their duplicates"),
    ];
    let told = some.iter().filter(|(count, _)| *count > 0);
    parts.extend(told.map(|(count, what)| format!("{count} {what}")));
    format!(
        "{word}: {}\n{}{}{}",
        parts.join(", "),
        checked(outcome),
        kept(outcome),
        stored(&outcome.store)
    )
}

/// `12 tasks ran twice, 1 with another result`; nothing if none did.
fn checked(outcome: &Outcome) -> String {
    let tasks = match outcome.counts.checked {
        0 => return String::new(),
        count => counted(count, "task"),
    };
    match outcome.counts.differing {
        0 => format!("{tasks} ran twice, with equal results\n"),
        differing => format!("{tasks} ran twice, {differing} with another result\n"),
    }
}

/// `objects: 120.0 MiB made, 8.0 MiB moved, 20.0 MiB on disk at the peak`; nothing if they were
/// small.
fn stored(store: &StoreRecord) -> String {
    if store.made_bytes.max(store.streams_peak_bytes) < STORE_SHOWN_BYTES {
        return String::new();
    }
    format!("objects: {}\n", amounts(store))
}

/// Reasons that the end of a run names.
const REASONS_SHOWN: usize = 3;

/// `57 of 60 kept; bwa: code changed: pipeline.py:41`; nothing if no result was looked up.
fn kept(outcome: &Outcome) -> String {
    let kept = outcome.counts.kept;
    let ran: u64 = outcome.reruns.iter().map(|(_, count)| count).sum();
    if kept + ran == 0 {
        return String::new();
    }
    let mut parts = vec![format!("{kept} of {} kept", kept + ran)];
    if outcome.counts.known > 0 {
        parts[0].push_str(&format!(", {} known by digest", outcome.counts.known));
    }
    // Files of the job are named as from its folder.
    let here = std::env::current_dir().map(|folder| format!("{}/", folder.display()));
    let here = here.unwrap_or_default();
    for (reason, count) in outcome.reruns.iter().take(REASONS_SHOWN) {
        let reason = match here.is_empty() {
            true => reason.clone(),
            false => reason.replace(&here, ""),
        };
        parts.push(match count {
            1 => reason,
            count => format!("{reason} ({count} tasks)"),
        });
    }
    if outcome.reruns.len() > REASONS_SHOWN {
        parts.push("and other reasons".to_string());
    }
    format!("{}\n", parts.join("; "))
}

/// How an interrupted run can be resumed.
fn way_on(outcome: &Outcome, state: Option<&Path>, paint: Paint) -> String {
    if !outcome.resumable {
        return String::new();
    }
    let hint = paint.hint("hint");
    let run = &outcome.run;
    let way = format!("continue with the same `ciel run`, or with `ciel resume {run}`");
    format!("{hint}: {}\n", with_state(&way, state))
}

/// What is catch_panic is whole after every step, so a panic elsewhere spoils nothing.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_tagged_and_the_last_one_ended() {
        assert_eq!(tagged("[a]", b"x\ny\n"), b"[a] x\n[a] y\n");
        assert_eq!(tagged("[a]", b"x\ny"), b"[a] x\n[a] y\n");
    }

    #[test]
    fn progress_counts_what_is_known_so_far() {
        let mut progress = Progress {
            pending: 3,
            running: 1,
            ..Progress::default()
        };
        progress.counts.spawned = 10;
        progress.oldest = Some("sort@3f9c12ab".to_string());
        assert_eq!(
            progress_words(&progress, None),
            "7/10 tasks · 1 running · 0 ms · oldest sort@3f9c12ab"
        );
        progress.counts.failed = 2;
        assert_eq!(
            progress_words(&progress, Some(7_200_000)),
            "7/10 tasks · 2 failed · 1 running · 0 ms · about 8 s left · oldest sort@3f9c12ab"
        );
    }

    /// The terminal showed "about 8 s left", and the lines of `--json` had no such field, so
    /// its readers had to keep samples and estimate again.
    #[test]
    fn progress_as_json_has_the_estimate_of_the_terminal() {
        let progress = Progress {
            pending: 3,
            ..Progress::default()
        };
        let line = |remaining_us| report_value(&Report::Progress(&progress), remaining_us);
        assert_eq!(line(Some(7_200_000))["remaining_us"], json!(7_200_000));
        assert_eq!(line(None)["remaining_us"], Value::Null);
        assert_eq!(line(None)["pending"], json!(3));
    }
}
