//! Examples whose processes are killed at random moments, and resumed until they have ended.
//!
//! `CIEL_KILLS` says how often to kill, `CIEL_KILL_SEED` with which seed to begin; each seed is one
//! job from its beginning to its end and is printed when it fails. Read first: `support`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::random::{Random, first_seed, kills};
use crate::support::programs::{
    has_modules, program, python, runs_python, script, search_path, small_picture,
};
use crate::support::{Ended, Live, Place, kill, parent_of, until_true};

/// Kills in the usual run of the tests.
const KILLS: u64 = 50;

/// How often one job is killed at most; after that it may end.
const KILLS_OF_ONE_MAX: u64 = 4;

/// Jobs at once: each waits for processes most of the time.
const THREADS: u64 = 2;

/// An example with arguments that make it short.
struct Example {
    file: PathBuf,
    arguments: &'static [&'static str],
    /// Files that it makes.
    makes: &'static [&'static str],
}

/// What is to be seen of it.
#[derive(PartialEq)]
struct Seen {
    stdout: String,
    files: Vec<Option<Vec<u8>>>,
}

/// An example without disturbance.
struct Known {
    example: Example,
    seen: Seen,
    lasts: Duration,
}

/// Who is killed.
#[derive(Clone, Copy, Debug)]
enum Victims {
    Engine,
    EngineAndSpawner,
    Everybody,
}

/// Examples whose programs can be run here; the others are skipped, which is said.
fn examples() -> Vec<Example> {
    let test = "examples that are killed";
    let is_there = |modules: &str| has_modules(test, modules);
    let example = |file, arguments, makes| Example {
        file,
        arguments,
        makes,
    };
    let mut examples = vec![
        example(script("fib"), &["8"], &[]),
        example(script("search"), &[], &[]),
        example(script("wordcount"), &[], &[]),
    ];
    if is_there("numpy") {
        examples.push(example(script("smith-waterman"), &["200", "2"], &[]));
    }
    if is_there("numpy, PIL") {
        let arguments = &["small.ppm", "4", "drawn"];
        let makes = &["drawn/reduced.png", "drawn/error.png"];
        examples.push(example(script("palette"), arguments, makes));
    }
    if runs_python(test, "") {
        examples.push(example(program("knapsack"), &["26"], &[]));
        examples.push(example(program("nested"), &["8", "3", "1"], &[]));
    }
    examples
}

impl Example {
    fn place(&self) -> Place {
        let place = Place::new();
        place.file("small.ppm", small_picture());
        place
    }

    fn start(&self, place: &Place) -> Live {
        let mut command: Command = place.command();
        command
            .env("PATH", search_path())
            .env("CIEL_PYTHON", python());
        command
            .args(["run", "-j2"])
            .arg(&self.file)
            .args(self.arguments);
        Live::start(command)
    }

    fn seen(&self, place: &Place, ended: Ended) -> Seen {
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let files = self
            .makes
            .iter()
            .map(|name| fs::read(place.path(name)).ok());
        Seen {
            stdout: ended.stdout,
            files: files.collect(),
        }
    }

    /// Runs it once in peace.
    fn known(self) -> Known {
        let place = self.place();
        let begin = Instant::now();
        let ended = self.start(&place).end();
        let lasts = begin.elapsed();
        place.expect_nobody(&ended.stderr);
        let seen = self.seen(&place, ended);
        assert!(seen.files.iter().all(Option::is_some));
        Known {
            example: self,
            seen,
            lasts,
        }
    }
}

impl Known {
    /// Kills it at random and takes it up until it has ended; how often it was killed.
    fn killed_at_random(&self, seed: u64) -> u64 {
        let mut random = Random::new(seed);
        let place = self.example.place();
        let most = 1 + random.below(KILLS_OF_ONE_MAX);
        let mut killed = Vec::new();
        loop {
            let live = self.example.start(&place);
            if (killed.len() as u64) < most {
                let moment = random.below(self.lasts.as_micros() as u64);
                let victims = [
                    Victims::Engine,
                    Victims::EngineAndSpawner,
                    Victims::Everybody,
                ][random.below(3) as usize];
                std::thread::park_timeout(Duration::from_micros(moment));
                victims.kill(&place, &live);
                killed.push((victims, moment));
            }
            let ended = live.end();
            let job = self.example.file.display();
            let about = format!("{job}, seed {seed}, {killed:?}: {}", ended.stderr);
            let shown = &ended.stdout;
            if ended.signal == Some(9) {
                assert!(self.seen.stdout.starts_with(shown), "{about}\n{shown}");
                continue;
            }
            assert_eq!(ended.code, Some(0), "{about}");
            assert_eq!(shown, &self.seen.stdout, "{about}");
            place.expect_nobody(&about);
            let seen = self.example.seen(&place, ended);
            assert!(seen == self.seen, "other files: {about}");
            return killed.len() as u64;
        }
    }
}

impl Victims {
    /// Kills the engine first: a task that dies while the engine lives is a failure of its own.
    fn kill(self, place: &Place, live: &Live) {
        let others: Vec<u32> = match self {
            Victims::Engine => Vec::new(),
            Victims::EngineAndSpawner => {
                let of_engine = |pid: &u32| parent_of(*pid) == Some(live.pid());
                place.processes().into_iter().filter(of_engine).collect()
            }
            Victims::Everybody => place.processes(),
        };
        live.signal("KILL");
        for pid in others {
            kill(pid, "KILL");
        }
        if matches!(self, Victims::Everybody) {
            until_true("nobody is left", || {
                let left = place.processes();
                left.iter().for_each(|pid| kill(*pid, "KILL"));
                left.is_empty()
            });
        }
    }
}

#[test]
fn examples_killed_at_random_moments_end_as_if_undisturbed() {
    let known: Vec<Known> = examples().into_iter().map(Example::known).collect();
    let (kills, first) = (kills(KILLS), first_seed());
    eprintln!("{kills} kills from seed {first} on");
    let (next, done) = (AtomicU64::new(first), AtomicU64::new(0));
    let by_job = Mutex::new(BTreeMap::<String, u64>::new());
    let work = || {
        while done.load(Ordering::Relaxed) < kills {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let known = &known[(seed % known.len() as u64) as usize];
            let killed = known.killed_at_random(seed);
            done.fetch_add(killed, Ordering::Relaxed);
            let job = known.example.file.file_name().unwrap().to_string_lossy();
            *by_job.lock().unwrap().entry(job.into_owned()).or_default() += killed;
        }
    };
    std::thread::scope(|scope| {
        for thread in [(); THREADS as usize].map(|()| scope.spawn(work)) {
            thread.join().unwrap();
        }
    });
    eprintln!("killed: {:?}", by_job.into_inner().unwrap());
    assert!(done.into_inner() >= kills);
}
