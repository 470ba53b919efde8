//! Shell tasks beside a bare loop that starts the same commands with the same parallelism.

use std::time::Instant;

use anyhow::Result;

use crate::Effort;
use crate::figure::{Figure, Goal};
use crate::job::Ciel;
use crate::process::{Launch, wait_any};

/// Tasks in a round.
const TASKS: u64 = 2000;

/// Processes at a time.
const PARALLEL: usize = 2;

const SCRIPT: &str = "
n = int(argv(0));
ended = [];
for (i in range(n)) {
    ended += spawn_exec(\"shell\", {\"command\": \"true\"}, 1, {\"pure\": false})[0];
}
for (end in ended) { text(end); }
return n;
";

/// Milliseconds a command, bare and as tasks, and the quotient of the two rates.
///
/// # Errors
/// If a process fails.
pub fn measure(ciel: &Ciel, effort: Effort) -> Result<Vec<Figure>> {
    let tasks = TASKS / effort.divisor;
    let count = tasks.to_string();
    let job = ciel.job("shells", SCRIPT, &["-q", "-j2"], &[&count])?;
    let (mut bare_ms, mut ciel_ms) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        bare_ms.push(bare_seconds(ciel, tasks)? * 1e3 / tasks as f64);
        let seconds = job.run(&count)?.elapsed.as_secs_f64();
        ciel_ms.push(seconds * 1e3 / tasks as f64);
    }
    let bare = Figure::of_rounds(
        "sh -c true, bare posix_spawn",
        "ms each",
        Goal::None,
        bare_ms,
    );
    let tasks = Figure::of_rounds("sh -c true, shell tasks", "ms each", Goal::None, ciel_ms);
    let ratio = bare.ratio("rate of shell tasks to bare", Goal::AtLeast(0.5), &tasks);
    Ok(vec![bare, tasks, ratio])
}

/// Seconds for `count` commands, two at a time, with standard output to a file for each.
fn bare_seconds(ciel: &Ciel, count: u64) -> Result<f64> {
    let folder = ciel.folder().join("bare");
    std::fs::create_dir_all(&folder)?;
    let command = Launch::new(["sh", "-c", "true"])?;
    let begun = Instant::now();
    let mut running = 0;
    for number in 0..count {
        if running == PARALLEL {
            wait_any()?;
            running -= 1;
        }
        let output = folder.join(number.to_string());
        command.clone().stdout_to(&output)?.start()?;
        running += 1;
    }
    for _ in 0..running {
        wait_any()?;
    }
    let elapsed = begun.elapsed().as_secs_f64();
    std::fs::remove_dir_all(&folder)?;
    Ok(elapsed)
}
