//! A job that is run once undisturbed, and then killed and resumed any number of times.
//!
//! Tasks of such a job add their name to the file `marks` when they begin. Which of them had been
//! committed is read from a copy of the journal that the killed run has left. It does not know
//! when to kill. Read next: `records`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ciel_coordinator::{Coordinator, FoldError};
use ciel_journal::{Journal, Options};

use crate::support::{Ended, Live, Place};

/// The file to which tasks add their names.
const MARKS: &str = "marks";

/// The file that a trial with `-o` writes.
const OUTPUT: &str = "out";

/// Bytes shown of what differs.
const SHOWN_BYTES: usize = 400;

/// A job with what it needs.
pub struct Trial {
    /// The job's file and others, by their names.
    pub files: Vec<(&'static str, String)>,
    /// The job's file.
    pub job: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What its environment has beside the usual.
    pub environment: Vec<(&'static str, String)>,
}

/// What can be seen of a job that has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    /// Exit code, standard output.
    pub shown: (Option<i32>, String),
    /// The file of `-o`; empty without.
    pub output: String,
    /// The message of the failure, if the job has failed and is else quiet.
    pub failure: String,
}

impl Seen {
    /// It is the same; shows where it is not.
    pub fn expect(&self, expected: &Seen, about: &str) {
        let texts = |seen: &Seen| {
            [
                seen.shown.1.clone(),
                seen.output.clone(),
                seen.failure.clone(),
            ]
        };
        for (found, wanted) in texts(self).into_iter().zip(texts(expected)) {
            let equal = found
                .bytes()
                .zip(wanted.bytes())
                .take_while(|(a, b)| a == b);
            let at = equal.count();
            let rest = |text: &str| {
                let bytes = &text.as_bytes()[at..];
                String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned()
            };
            let (found_rest, wanted_rest) = (rest(&found), rest(&wanted));
            assert!(
                found == wanted,
                "{about}: byte {at}: {found_rest:?} is not {wanted_rest:?}"
            );
        }
        assert_eq!(self.shown.0, expected.shown.0, "{about}");
    }
}

impl Trial {
    /// A folder with the job in it.
    fn place(&self) -> Place {
        let place = Place::new();
        for (name, text) in &self.files {
            place.file(name, text);
        }
        place
    }

    /// `ciel run` with these options and the job.
    fn command(&self, place: &Place, options: &[&str]) -> Command {
        let mut command = place.command();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .arg("run")
            .args(options)
            .arg(self.job)
            .args(&self.arguments);
        command
    }

    /// Runs the job in peace in a place of its own.
    pub fn in_peace(&self, options: &[&str]) -> Seen {
        let place = self.place();
        let ended = self.attempt(&place, options, None);
        seen(&place, &ended)
    }

    /// Kills at these records, one after the other, and lets the run end. Gives what is seen in the
    /// end, and how many of the tasks that leave marks were committed before; none if the run has
    /// ended before the first of these records.
    pub fn killed_at(&self, moments: &[Moment], options: &[&str]) -> Option<(Seen, usize)> {
        let place = self.place();
        let about = format!("killed at {moments:?}, {options:?}");
        let mut shown: Vec<String> = Vec::new();
        for moment in moments.iter().map(Some).chain([None]) {
            let (before, done) = (marks(&place), committed(&place));
            let ended = self.attempt(&place, options, moment);
            let after = marks(&place);
            expect_no_work_twice(&before, &done, &after, &about);
            match (ended.signal, shown.is_empty()) {
                (Some(9), _) => shown.push(ended.stdout),
                (_, true) => return None,
                (_, false) => {
                    let is_beginning = |before: &String| ended.stdout.starts_with(before);
                    let about = format!("{about}: {shown:?}\n{}\n{}", ended.stdout, ended.stderr);
                    assert!(shown.iter().all(is_beginning), "{about}");
                    let saved = after.keys().filter(|name| done.contains(*name)).count();
                    return Some((seen(&place, &ended), saved));
                }
            }
        }
        unreachable!("nobody kills the last one")
    }

    /// Runs or resumes the job, to its end or to that moment.
    fn attempt(&self, place: &Place, options: &[&str], moment: Option<&Moment>) -> Ended {
        let mut command = self.command(place, options);
        if let Some(moment) = moment {
            command.env("CIEL_DIE_AT_RECORD", moment.told());
        }
        let ended = Live::start(command).end();
        let is_killed = ended.signal == Some(9);
        assert!(
            is_killed || matches!(ended.code, Some(0 | 1)),
            "{moment:?} {}",
            ended.stderr
        );
        match is_killed {
            // The spawner ends what the dead engine has left.
            true => place.await_nobody(),
            false => place.expect_nobody(&ended.stderr),
        }
        ended
    }
}

fn seen(place: &Place, ended: &Ended) -> Seen {
    let shown = (ended.code, ended.stdout.clone());
    let output = place.read(OUTPUT);
    let failure = match ended.code {
        Some(1) => told(ended),
        _ => String::new(),
    };
    Seen {
        shown,
        output,
        failure,
    }
}

/// What is said about the job's own failure, without what is said about others. The digits of names
/// depend on the folder, which is another one each time.
fn told(ended: &Ended) -> String {
    let lines = ended.stderr.lines();
    let own = lines.take_while(|line| !line.starts_with("also: "));
    let without_digits = |line: &str| {
        let is_digit = |letter: char| letter.is_ascii_hexdigit();
        let parts = line
            .split('@')
            .map(|part| part.trim_start_matches(is_digit));
        parts.collect::<Vec<_>>().join("@")
    };
    own.map(without_digits).collect::<Vec<_>>().join("\n")
}

/// When to be killed.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// At this record,
    pub at: u64,
    /// when it is in the journal, or when it is made and not yet written.
    pub written: bool,
}

impl Moment {
    fn told(&self) -> String {
        format!("{}{}", self.at, if self.written { "" } else { "-" })
    }
}

/// How often each task has begun.
fn marks(place: &Place) -> BTreeMap<String, usize> {
    let mut marks = BTreeMap::new();
    for name in place.read(MARKS).lines() {
        *marks.entry(name.to_string()).or_default() += 1;
    }
    marks
}

/// Names of the tasks whose end is in the journal of the one run of this place.
fn committed(place: &Place) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    let state = folded(place, |state| known.extend(pending(state)));
    let left = state.as_ref().map(pending).unwrap_or_default();
    // Without a state it died before the first record was written.
    known.retain(|name| state.is_some() && !left.contains(name));
    known
}

/// The state that a copy of the journal of the one run of this place gives, which is not running;
/// `look` sees it after each record. None if there is no record.
pub fn folded(place: &Place, mut look: impl FnMut(&Coordinator)) -> Option<Coordinator> {
    let copy = tempfile::tempdir().unwrap();
    copy_files(&journal(place)?, copy.path());
    let (_journal, recorded) = Journal::open(copy.path(), Options::default()).unwrap();
    let look = |state: &mut Coordinator, _: &[_]| {
        look(state);
        Ok::<(), FoldError>(())
    };
    let records = recorded.records.iter().map(|(_, record)| record);
    Coordinator::fold(recorded.snapshot.as_deref(), records, look).ok()
}

fn pending(state: &Coordinator) -> BTreeSet<String> {
    let graph = state.graph();
    let views = graph.all().into_iter().filter_map(|task| graph.view(task));
    views.map(|view| view.label.what.to_string()).collect()
}

/// The journal of the one run of this place.
fn journal(place: &Place) -> Option<PathBuf> {
    let runs = fs::read_dir(place.path(".ciel/runs")).ok()?;
    let mut runs: Vec<PathBuf> = runs.map(|run| run.unwrap().path()).collect();
    assert!(runs.len() < 2, "it was to be taken up: {runs:?}");
    let journal = runs.pop()?.join("journal");
    journal.is_dir().then_some(journal)
}

fn copy_files(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// A committed task was not rerun, and each other one once at most.
fn expect_no_work_twice(
    before: &BTreeMap<String, usize>,
    committed: &BTreeSet<String>,
    after: &BTreeMap<String, usize>,
    about: &str,
) {
    for (name, count) in after {
        let count_before = before.get(name).copied().unwrap_or(0);
        let most = match committed.contains(name) {
            true => count_before,
            false => count_before + 1,
        };
        assert!(
            (1..=most).contains(count),
            "{about}: {name} began {count} times, {count_before} of them before; \
             committed: {committed:?}"
        );
    }
}
