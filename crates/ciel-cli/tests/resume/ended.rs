//! Runs that are killed when their job has ended and not all of that has been shown.
//!
//! A death between the end of a job and the exit of its process once made the next start run the
//! whole job again: it appended its output a second time, and repeated its effects. Read first:
//! `support`.

use std::fs::{File, OpenOptions};
use std::process::Stdio;

use crate::support::{Ended, Live, Place};

/// A job with an effect, that ends well.
const JOB: &str = "
x = *spawn_exec(\"shell\", {\"command\": \"echo effect >> effects; echo value\"}, 1)[0];
print(\"line\");
return {\"lines\": 1};
";

/// The same, but it fails.
const FAILING_JOB: &str = "
x = *spawn_exec(\"shell\", {\"command\": \"echo effect >> effects; echo value\"}, 1)[0];
print(\"line\");
return 1 / 0;
";

/// Steps of the end at least.
const STEPS_MIN: u64 = 12;

/// Where standard output goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Into {
    /// `>> out`.
    Appended,
    /// `| cat`.
    Pipe,
}

/// A job, and what it shows.
struct Case {
    job: &'static str,
    code: i32,
    stdout: &'static str,
    /// Words on standard error.
    stderr: &'static str,
    into: Into,
}

const CASES: [Case; 3] = [
    Case {
        job: JOB,
        code: 0,
        stdout: "line\n{\"lines\":1}\n",
        stderr: "done: 2 tasks",
        into: Into::Appended,
    },
    Case {
        job: JOB,
        code: 0,
        stdout: "line\n{\"lines\":1}\n",
        stderr: "done: 2 tasks",
        into: Into::Pipe,
    },
    Case {
        job: FAILING_JOB,
        code: 1,
        stdout: "line\n",
        stderr: "division by zero",
        into: Into::Appended,
    },
];

impl Case {
    fn start(&self, place: &Place, step: Option<u64>) -> Ended {
        let mut command = place.command();
        command.args(["run", "job.sw"]);
        if let Some(step) = step {
            command.env("CIEL_DIE_AT_END", step.to_string());
        }
        match self.into {
            Into::Pipe => Live::start(command).end(),
            Into::Appended => Live::start_into(command, Stdio::from(end_of(place))).end(),
        }
    }

    /// Kills at that step, and starts the job again. False if the run has ended before.
    fn is_killed_at(&self, step: u64) -> bool {
        let place = Place::new();
        place.file("job.sw", self.job);
        let about = format!("step {step}, {:?}, code {}", self.into, self.code);
        let killed = self.start(&place, Some(step));
        if killed.signal != Some(9) {
            self.expect_end(&place, &killed, &about);
            return false;
        }
        place.await_nobody();
        // What has been shown by then is not shown again by anybody.
        if !has_left(&place) {
            let ended = self.start(&place, None);
            self.expect_end(&place, &ended, &about);
            assert!(has_left(&place), "{about}");
            assert_eq!(left_to_remove(&place), NOTHING, "{about}");
        }
        assert_eq!(place.read("effects"), "effect\n", "{about}");
        true
    }

    fn expect_end(&self, place: &Place, ended: &Ended, about: &str) {
        assert_eq!(ended.code, Some(self.code), "{about}: {}", ended.stderr);
        let shown = match self.into {
            Into::Pipe => ended.stdout.clone(),
            Into::Appended => place.read("out"),
        };
        assert_eq!(shown, self.stdout, "{about}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(self.stderr),
            "{about}: {}",
            ended.stderr
        );
    }
}

/// The file as `>>` opens it.
fn end_of(place: &Place) -> File {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    options.open(place.path("out")).unwrap()
}

/// Whether the one run of this place has ended and has shown that.
fn has_left(place: &Place) -> bool {
    let mut runs = std::fs::read_dir(place.path(".ciel/runs")).unwrap();
    let run = runs.next().expect("it has begun").unwrap().path();
    assert!(runs.next().is_none(), "the job was run anew");
    run.join("ended").exists() && !run.join("outcome").exists()
}

/// Names in the folder of the one run that are of no use once its end was shown.
fn left_to_remove(place: &Place) -> Vec<&'static str> {
    let mut runs = std::fs::read_dir(place.path(".ciel/runs")).unwrap();
    let run = runs.next().expect("it has begun").unwrap().path();
    let names = [
        "journal", "objects", "spill", "digests", "stdout", "sinks", "scratch",
    ];
    let is_there = |name: &&str| run.join(name).exists();
    names.into_iter().filter(is_there).collect()
}

const NOTHING: [&str; 0] = [];

/// One that was killed when it was marked as ended, and before its records were removed, left all
/// of its files for ever: the run that showed its end took it for one to be resumed.
#[test]
fn job_that_was_killed_after_its_end_shows_it_once_and_repeats_no_effect() {
    for case in CASES {
        let last = (1..).find(|step| !case.is_killed_at(*step)).unwrap();
        assert!(last > STEPS_MIN, "it has ended before step {last}");
    }
}

/// The end of a job is shown from its file of output, which is verified as that of a run that is
/// resumed.
#[test]
fn changed_output_of_a_job_that_was_killed_after_its_end_is_not_shown() {
    let case = &CASES[1];
    let is_kept = |step: &u64| {
        let place = Place::new();
        place.file("job.sw", case.job);
        assert_eq!(case.start(&place, Some(*step)).signal, Some(9));
        place.await_nobody();
        let mut runs = std::fs::read_dir(place.path(".ciel/runs")).unwrap();
        let run = runs.next().expect("it has begun").unwrap().path();
        // As long as there are records, the output is restored from them.
        let is_kept = run.join("outcome").exists() && !run.join("journal").exists();
        if is_kept {
            std::fs::write(run.join("stdout"), "lime\n").unwrap();
            let ended = case.start(&place, None);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
            for words in ["has changed", "ciel run --new"] {
                assert!(ended.stderr.contains(words), "{}", ended.stderr);
            }
            assert_eq!(place.read("effects"), "effect\n");
        }
        is_kept
    };
    assert!((1..STEPS_MIN).any(|step| is_kept(&step)));
}
