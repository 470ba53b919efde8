//! The work of the comparison on rayon: what the threads of one process can do without an engine.
//!
//! Usage: `limits PROGRAM CORES [NUMBER...]`; ends with status 2 if it has no such program. Prints
//! what `bench/peers/compare.py` reads: the answer, the seconds of the work, the number of tasks.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rayon::prelude::*;

const MODULUS: u64 = 1_000_003;

fn report(answer: u64, began: Instant, tasks: u64) {
    let seconds = began.elapsed().as_secs_f64();
    println!("{{\"answer\": {answer}, \"seconds\": {seconds}, \"tasks\": {tasks}}}");
}

/// One task for each number.
fn wide(count: u64) {
    let began = Instant::now();
    let mut results = vec![0; usize::try_from(count).expect("fits the memory")];
    rayon::scope(|scope| {
        for (number, result) in (0..count).zip(&mut results) {
            scope.spawn(move |_| *result = number);
        }
    });
    report(results.iter().sum(), began, count);
}

/// Each step needs the two before it, so one side of each join is empty.
fn chain(count: u64) {
    let began = Instant::now();
    let (mut before, mut last) = (0, 1);
    for _ in 0..count {
        let (next, ()) = rayon::join(|| (before + last) % MODULUS, || ());
        (before, last) = (last, next);
    }
    report(last, began, count);
}

fn fib(number: u64) -> u64 {
    if number < 2 {
        return number;
    }
    let (first, second) = rayon::join(|| fib(number - 1), || fib(number - 2));
    first + second
}

/// The number of calls of `fib`.
fn calls(number: u64) -> u64 {
    if number < 2 {
        1
    } else {
        1 + calls(number - 1) + calls(number - 2)
    }
}

fn tree(number: u64) {
    let tasks = calls(number);
    let began = Instant::now();
    report(fib(number), began, tasks);
}

fn spin(seconds: f64) -> u64 {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs_f64(seconds) {}
    1
}

/// One task for each core, then the sum.
fn rounds(cores: u64, count: u64, seconds: f64) {
    let began = Instant::now();
    let mut answer = 0;
    for _ in 0..count {
        answer = (0..cores).into_par_iter().map(|_| spin(seconds)).sum();
    }
    report(answer, began, count);
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse::<u64>().ok());
    let (Some(cores), Some(count)) = (number(1), number(2)) else {
        return ExitCode::from(2);
    };
    let threads = usize::try_from(cores).expect("a number of cores");
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads start");
    let seconds = words.get(3).and_then(|word| word.parse().ok());
    let is_known = pool.install(|| {
        match (words[0].as_str(), seconds) {
            ("wide", _) => wide(count),
            ("chain", _) => chain(count),
            ("tree", _) => tree(count),
            ("rounds", Some(seconds)) => rounds(cores, count, seconds),
            _ => return false,
        }
        true
    });
    if is_known {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    }
}
