//! How many programs a second the spawner starts and watches, beside a bare `posix_spawn` loop
//! with the same program, files and parallelism; both in turns in one run. Prints the rates,
//! the median of the ratios of adjacent turns, and the spawner's memory.
//!
//! Usage: `spawn_rate [ROUNDS [TASKS [PARALLEL [PROGRAM ARGUMENT...]]]]`. Build it optimised.

use std::ffi::{CString, OsStr, c_char};
use std::path::Path;
use std::ptr;
use std::time::Instant;

use ciel_spawner::{Cookie, Output, Report, Request, Spawner, Start, Status};
use rustix::event::{PollFd, PollFlags};

const SERVE: &str = "__spawner";

struct Work {
    tasks: u64,
    parallel: u64,
    program: Vec<CString>,
    files: Vec<CString>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == SERVE) {
        ciel_spawner::serve_inherited();
        return;
    }
    let number = |at: usize, default| arguments.get(at).map_or(default, |n| n.parse().unwrap());
    let (rounds, tasks, parallel) = (number(0, 20), number(1, 500), number(2, 2));
    let program = arguments
        .iter()
        .skip(3)
        .map(|argument| CString::new(&**argument).unwrap());
    let program: Vec<_> = program.collect();
    let program = if program.is_empty() {
        vec![c"/bin/true".to_owned()]
    } else {
        program
    };
    let folder = tempfile::tempdir().unwrap();
    let file = |n| CString::new(format!("{}/{n}", folder.path().display())).unwrap();
    let work = Work {
        tasks,
        parallel,
        program,
        files: (0..parallel).map(file).collect(),
    };
    compare(&work, rounds);
}

fn compare(work: &Work, rounds: u64) {
    let cookie = Cookie::new(&format!("rate-{}", std::process::id())).unwrap();
    let environment = ciel_spawner::current_environment();
    let own = Path::new("/proc/self/exe");
    let spawner = Spawner::start(own, &[OsStr::new(SERVE)], &cookie, &environment).unwrap();
    let rate = |seconds: f64| work.tasks as f64 / seconds;
    let (mut bare, mut served, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        bare.push(rate(bare_turn(work)));
        served.push(rate(spawner_turn(work, &spawner)));
        ratios.push(served.last().unwrap() / bare.last().unwrap());
    }
    for (name, values) in [("bare", &mut bare), ("spawner", &mut served)] {
        println!(
            "{name}: median {:.0}, best {:.0} a second",
            middle(values),
            best(values)
        );
    }
    println!(
        "ratio: median {:.3}, best {:.3}",
        middle(&mut ratios),
        best(&mut ratios)
    );
    let smaps = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", spawner.pid())).unwrap();
    println!(
        "{}",
        smaps.lines().find(|line| line.starts_with("Pss:")).unwrap()
    );
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn best(values: &mut [f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn spawner_turn(work: &Work, spawner: &Spawner) -> f64 {
    let began = Instant::now();
    let (mut sent, mut ended) = (0, 0);
    while ended < work.tasks {
        while sent < work.tasks && sent - ended < work.parallel {
            let mut start = Start::new(sent, &format!("task@{sent}"), work.program.clone());
            start.stdout = Output::Path(work.files[(sent % work.parallel) as usize].clone());
            spawner.send(&Request::Start(Box::new(start)), &[]).unwrap();
            sent += 1;
        }
        match spawner.receive().unwrap() {
            Some(Report::Exited { exit, .. }) => {
                assert_eq!(exit.status, Status::Code(0));
                ended += 1;
            }
            Some(Report::Started { .. }) => {}
            Some(report) => panic!("{report:?}"),
            None => {
                rustix::event::poll(&mut [PollFd::new(spawner, PollFlags::IN)], None).unwrap();
            }
        }
    }
    began.elapsed().as_secs_f64()
}

fn bare_turn(work: &Work) -> f64 {
    let environment = ciel_spawner::current_environment();
    let list = |strings: &[CString]| -> Vec<*mut c_char> {
        let pointers = strings.iter().map(|string| string.as_ptr().cast_mut());
        pointers.chain([ptr::null_mut()]).collect()
    };
    let (arguments, environment) = (list(&work.program), list(&environment));
    let began = Instant::now();
    let (mut started, mut ended) = (0, 0);
    while ended < work.tasks {
        while started < work.tasks && started - ended < work.parallel {
            let file = &work.files[(started % work.parallel) as usize];
            bare_start(&work.program[0], &arguments, &environment, file);
            started += 1;
        }
        let mut status = 0;
        // SAFETY: collects a child; the spawner's process ends only after the measurement.
        assert!(unsafe { libc::waitpid(-1, &mut status, 0) } > 0);
        assert_eq!(status, 0);
        ended += 1;
    }
    began.elapsed().as_secs_f64()
}

fn bare_start(
    program: &CString,
    arguments: &[*mut c_char],
    environment: &[*mut c_char],
    file: &CString,
) {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
    // SAFETY: the calls follow their order; the lists end with null and their strings live.
    unsafe {
        let mut actions = std::mem::zeroed();
        libc::posix_spawn_file_actions_init(&mut actions);
        let null = c"/dev/null".as_ptr();
        libc::posix_spawn_file_actions_addopen(&mut actions, 0, null, libc::O_RDONLY, 0);
        libc::posix_spawn_file_actions_addopen(&mut actions, 1, file.as_ptr(), flags, 0o666);
        libc::posix_spawn_file_actions_addopen(&mut actions, 2, null, libc::O_WRONLY, 0);
        let (mut pid, path, attributes) = (0, program.as_ptr(), ptr::null());
        let (arguments, environment) = (arguments.as_ptr(), environment.as_ptr());
        let failed =
            libc::posix_spawnp(&mut pid, path, &actions, attributes, arguments, environment);
        assert_eq!(failed, 0);
        libc::posix_spawn_file_actions_destroy(&mut actions);
    }
}
