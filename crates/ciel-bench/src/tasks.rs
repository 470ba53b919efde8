//! What a Skywriting task costs from its spawn to its value, in four shapes of graph.
//!
//! A figure is the time of the whole process divided by its tasks, so starting and ending are in
//! it.

use std::time::Duration;

use anyhow::Result;

use crate::Effort;
use crate::figure::{Figure, Goal};
use crate::job::{Ciel, Job};

/// Microseconds that a task may take.
const GOAL_US: f64 = 15.0;

/// Many tasks that know nothing of each other, then the sum of their values.
pub const WIDE: &str = "
function one(i) { return i % 7; }
n = int(argv(0));
values = [];
for (i in range(n)) { values += spawn(one, [i]); }
total = 0;
for (value in values) { total += *value; }
return total;
";

/// Each task needs the two before it.
pub const CHAIN: &str = "
function seed(n) { return n; }
function add(a, b) { return (*a + *b) % 1000003; }
n = int(argv(0));
before = spawn(seed, [0]);
last = spawn(seed, [1]);
for (i in range(n - 2)) {
    next = spawn(add, [before, last]);
    before = last;
    last = next;
}
return *last;
";

/// A loop: each task hands its result over to the next.
pub const LOOP: &str = "
function count(i, n) {
    if (i >= n) { return i; }
    return spawn(count, [i + 1, n]);
}
return spawn(count, [1, int(argv(0))]);
";

/// A tree: each task spawns two and waits for them.
pub const TREE: &str = "
function fib(n) {
    if (n < 2) { return n; }
    before = spawn(fib, [n - 1]);
    before_that = spawn(fib, [n - 2]);
    return *before + *before_that;
}
return *spawn(fib, [int(argv(0))]);
";

struct Shape {
    name: &'static str,
    job: Job,
    tasks: u64,
    expected: String,
    round_us: Vec<f64>,
    processor_us: Vec<f64>,
}

/// Microseconds a task, and those of processor time on all cores: wide, chain, loop and tree.
///
/// # Errors
/// If a job fails.
pub fn measure(ciel: &Ciel, effort: Effort) -> Result<Vec<Figure>> {
    let mut shapes = shapes(ciel, effort)?;
    for _ in 0..effort.rounds {
        for shape in &mut shapes {
            let spent = shape.job.run(&shape.expected)?;
            let each = |time: Duration| time.as_secs_f64() * 1e6 / shape.tasks as f64;
            shape.round_us.push(each(spent.elapsed));
            shape.processor_us.push(each(spent.processor));
        }
    }
    Ok(shapes.into_iter().flat_map(figures).collect())
}

fn figures(shape: Shape) -> [Figure; 2] {
    let processor = format!("{}, processor time", shape.name);
    [
        Figure::of_rounds(shape.name, "µs/task", Goal::AtMost(GOAL_US), shape.round_us),
        Figure::of_rounds(&processor, "µs/task", Goal::None, shape.processor_us),
    ]
}

fn shapes(ciel: &Ciel, effort: Effort) -> Result<Vec<Shape>> {
    let (many, loops) = (100_000 / effort.divisor, 1_000_000 / effort.divisor);
    let depth = if effort.divisor > 1 { 17 } else { 22 };
    let shape = |name, word: &str, script, size: u64, tasks, expected: u64| {
        let job = ciel.job(word, script, &["-q"], &[&size.to_string()])?;
        anyhow::Ok(Shape {
            name,
            job,
            tasks,
            expected: expected.to_string(),
            round_us: Vec::new(),
            processor_us: Vec::new(),
        })
    };
    let sum = wide_sum(many);
    let calls = 2 * fibonacci(depth + 1, u64::MAX) - 1;
    Ok(vec![
        shape("wide", "wide", WIDE, many, many, sum)?,
        shape(
            "chain, each needs two",
            "chain",
            CHAIN,
            many,
            many,
            fibonacci(many - 1, 1_000_003),
        )?,
        shape("loop of tail calls", "loop", LOOP, loops, loops, loops)?,
        shape(
            "fib tree",
            "tree",
            TREE,
            depth,
            calls,
            fibonacci(depth, u64::MAX),
        )?,
    ])
}

/// What [`WIDE`] gives for `n` tasks.
pub fn wide_sum(n: u64) -> u64 {
    (0..n).map(|i| i % 7).sum()
}

/// The Fibonacci number `n`, modulo `modulus`.
fn fibonacci(n: u64, modulus: u64) -> u64 {
    let step = |(a, b): (u64, u64)| (b, (a + b) % modulus);
    (0..n).fold((0, 1), |pair, _| step(pair)).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fibonacci_numbers_are_right() {
        assert_eq!(fibonacci(22, u64::MAX), 17711);
        assert_eq!(fibonacci(30, 1000), 40);
    }
}
