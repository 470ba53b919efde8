//! The jobs that are killed: the short examples, random trees of tasks, and programs that ask what
//! depends on time, cancel, spawn in loops, and mix languages.
//!
//! It does not know who is killed. Read first: `support`. Read next: `round`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::sinks::Sink;
use crate::support::programs::{
    has_modules, program, python, runs_python, script, search_path, small_picture,
};
use crate::support::{Place, Tree};

/// Random trees among the jobs.
const TREES: u64 = 3;

/// The folder for temporary files of everything that runs.
const TEMPORARY: &str = "temporary";

/// Attempts that a job grants beyond the first where its commands are killed.
const RETRIES: &str = "4";

const APPENDS: &str = include_str!("programs/appends.py");
const COMMANDS: &str = include_str!("programs/commands.sw");
const KEPT: &str = include_str!("programs/kept.sw");
const LOOPS: &str = include_str!("programs/loops.py");
const MIXED: &str = include_str!("programs/mixed.py");
const RACES: &str = include_str!("programs/races.py");
const SQUARES: &str = include_str!("programs/squares.sw");

/// A job with arguments that make it short.
#[derive(Default)]
pub struct Job {
    /// Its name in messages.
    pub name: String,
    /// The job's file and its arguments.
    words: Vec<OsString>,
    /// Files that it needs, by their names.
    needs: Vec<(&'static str, Vec<u8>)>,
    /// Files that it makes.
    makes: &'static [&'static str],
    /// What it shows, if that is known before it is run.
    shows: Option<String>,
    /// Whether its output depends on time: only the last line is the same in each run.
    pub varies: bool,
    /// Whether a command whose process is killed fails, so that it can be retried.
    pub has_commands: bool,
}

/// A job without disturbance.
pub struct Known {
    /// The job.
    pub job: Job,
    /// How long it takes.
    pub lasts: Duration,
    stdout: String,
    files: Vec<Option<Vec<u8>>>,
    left: Vec<PathBuf>,
}

/// The jobs whose programs can be run here; the others are skipped, which is said.
pub fn jobs(seed: u64) -> Vec<Job> {
    let mut jobs = examples();
    jobs.extend((0..TREES).map(|number| tree(seed.wrapping_add(number))));
    jobs.push(Job {
        has_commands: true,
        ..written("commands.sw", &[("commands.sw", COMMANDS)])
    });
    jobs.push(Job {
        has_commands: true,
        ..written("kept.sw", &[("kept.sw", KEPT)])
    });
    if runs_python("programs in Python that are killed", "") {
        jobs.push(Job {
            makes: &["first", "second"],
            ..written("appends.py", &[("appends.py", APPENDS)])
        });
        jobs.push(written("loops.py", &[("loops.py", LOOPS)]));
        jobs.push(Job {
            varies: true,
            ..written("races.py", &[("races.py", RACES)])
        });
        jobs.push(Job {
            has_commands: true,
            ..written("mixed.py", &[("mixed.py", MIXED), ("squares.sw", SQUARES)])
        });
    }
    jobs
}

fn examples() -> Vec<Job> {
    let test = "examples that are killed";
    let mut jobs = vec![
        example(script("fib"), &["8"]),
        example(script("search"), &[]),
        example(script("wordcount"), &[]),
    ];
    if has_modules(test, "numpy") {
        jobs.push(example(script("smith-waterman"), &["200", "2"]));
    }
    if has_modules(test, "numpy, PIL") {
        jobs.push(Job {
            needs: vec![("small.ppm", small_picture())],
            makes: &["drawn/reduced.png", "drawn/error.png"],
            ..example(script("palette"), &["small.ppm", "4", "drawn"])
        });
    }
    if runs_python(test, "") {
        jobs.push(example(program("knapsack"), &["26"]));
        jobs.push(example(program("nested"), &["8", "3", "1"]));
    }
    jobs
}

fn example(file: PathBuf, arguments: &[&str]) -> Job {
    let words = std::iter::once(file.clone().into_os_string());
    Job {
        name: file.file_name().unwrap().to_string_lossy().into_owned(),
        words: words.chain(arguments.iter().map(OsString::from)).collect(),
        ..Job::default()
    }
}

/// A job that is one of these files.
fn written(name: &str, files: &[(&'static str, &str)]) -> Job {
    let bytes = |(name, text): &(&'static str, &str)| (*name, text.as_bytes().to_vec());
    Job {
        needs: files.iter().map(bytes).collect(),
        ..example(PathBuf::from(name), &[])
    }
}

fn tree(seed: u64) -> Job {
    let tree = Tree::new(seed, false);
    Job {
        name: format!("tree {seed}"),
        shows: Some(tree.shown()),
        ..written("tree.sw", &[("tree.sw", &tree.script)])
    }
}

impl Job {
    /// A place with what it needs.
    pub fn place(&self) -> Place {
        let place = Place::new();
        for (name, bytes) in &self.needs {
            place.file(name, bytes);
        }
        fs::create_dir(place.path(TEMPORARY)).unwrap();
        place
    }

    /// The command that runs or resumes it.
    pub fn command(&self, place: &Place, sink: Sink) -> Command {
        let mut command = place.command();
        command
            .env("PATH", search_path())
            .env("CIEL_PYTHON", python())
            .env("TMPDIR", place.path(TEMPORARY))
            .args(["run", "-j2"])
            .args(sink.options());
        if self.has_commands {
            command.args(["--retries", RETRIES]);
        }
        command.args(&self.words);
        command
    }

    fn files(&self, place: &Place) -> Vec<Option<Vec<u8>>> {
        let read = |name: &&str| fs::read(place.path(name)).ok();
        self.makes.iter().map(read).collect()
    }
}

impl Known {
    /// Runs a job once in peace.
    pub fn new(job: Job) -> Known {
        let place = job.place();
        let begin = Instant::now();
        let ended = Sink::Pipe
            .start(job.command(&place, Sink::Pipe), &place, true)
            .end();
        let lasts = begin.elapsed();
        assert_eq!(ended.code, Some(0), "{}: {}", job.name, ended.stderr);
        place.expect_nobody(&ended.stderr);
        if let Some(shows) = &job.shows {
            assert_eq!(&ended.stdout, shows, "{}", job.name);
        }
        let files = job.files(&place);
        assert!(files.iter().all(Option::is_some), "{}", job.name);
        let left = left_of_runs(&place);
        Known {
            job,
            lasts,
            stdout: ended.stdout,
            files,
            left,
        }
    }

    /// A run that was killed has shown and made the same.
    pub fn expect_same(&self, place: &Place, shown: &str, about: &str) {
        if self.job.varies {
            let last = last_line(&self.stdout);
            assert_eq!(last_line(shown), last, "{about}\n{shown}");
        } else {
            assert_eq!(shown, self.stdout, "{about}");
        }
        assert!(self.job.files(place) == self.files, "other files: {about}");
    }

    /// A run that has ended by itself has left the same files, and no process.
    pub fn expect_nothing_left(&self, place: &Place, about: &str) {
        place.expect_nobody(about);
        assert_eq!(left_of_runs(place), self.left, "{about}");
    }
}

fn last_line(text: &str) -> Option<&str> {
    text.lines().last()
}

/// The paths in state folder, runtime folder and folder for temporary files, without the names of
/// runs. What is kept of results depends on which children became tasks before the kill, and the
/// files of its index on who was killed while it was open. The identities of tasks are history,
/// which is written late: a kill may take those of all tasks that had ended.
fn left_of_runs(place: &Place) -> Vec<PathBuf> {
    let mut left = Vec::new();
    for folder in [".ciel", "runtime", TEMPORARY] {
        list(&place.path(folder), Path::new(folder), &mut left);
    }
    left.retain(|path| {
        !path.starts_with(".ciel/kept") && path != Path::new(".ciel/runs/RUN/history/identities")
    });
    left.sort();
    left
}

fn list(folder: &Path, shown: &Path, left: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = match shown.ends_with(".ciel/runs") {
            true => "RUN".into(),
            false => entry.file_name(),
        };
        let shown = shown.join(name);
        left.push(shown.clone());
        if entry.file_type().unwrap().is_dir() {
            list(&entry.path(), &shown, left);
        }
    }
}
