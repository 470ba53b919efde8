//! Hands the given number of changed inputs to each reader, or to one.
//!
//! `fuzz CASES [SEED] [TARGET]`; a finding is printed with its input, and the status is 1.

use std::time::Instant;

use ciel_fuzz::{TARGETS, fuzz};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| words.get(at).map_or(Ok(default), |word| word.parse());
    let (Ok(cases), Ok(seed)) = (number(0, 100_000), number(1, 0)) else {
        eprintln!("usage: fuzz CASES [SEED] [TARGET]");
        std::process::exit(2);
    };
    std::panic::set_hook(Box::new(|_| {}));
    let named = |name: &str| words.get(2).is_none_or(|only| only == name);
    let mut findings = 0;
    for target in TARGETS.iter().filter(|target| named(target.name)) {
        let began = Instant::now();
        match fuzz(target, seed, cases) {
            Ok(answers) => println!(
                "{}: {cases} inputs from seed {seed}, {} different answers, {:.1} s",
                target.name,
                answers.len(),
                began.elapsed().as_secs_f64()
            ),
            Err(finding) => {
                findings += 1;
                println!("{}: {finding}", target.name);
            }
        }
    }
    std::process::exit(i32::from(findings > 0));
}
