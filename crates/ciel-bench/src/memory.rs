//! Memory: of a job that waits, of tasks that have not started, and at the peak of large jobs.
//!
//! Proportional memory counts a page that several processes share in parts, so that sums over
//! processes are true.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::Effort;
use crate::figure::{Figure, Goal};
use crate::job::Ciel;
use crate::process::Process;
use crate::tasks;

const MEGABYTE: f64 = 1e6;

/// How long anything may take to come about.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks of which each finds as much memory as the one before, when it has stopped growing.
const STEADY_LOOKS: u32 = 60;

const WAITING: &str = "
return text(spawn_exec(\"shell\", {\"command\": \"sleep 600\"}, 1)[0]);
";

/// A command has the only core, the others wait for it.
const PENDING: &str = "
n = int(argv(0));
hold = spawn_exec(\"shell\", {\"command\": \"sleep 600\"}, 1)[0];
waiting = [];
for (i in range(n)) {
    waiting += spawn_exec(\"shell\", {\"command\": \"true {i}\", \"inputs\": {\"i\": i}}, 1)[0];
}
text(hold);
for (end in waiting) { text(end); }
";

const DEEP: &str = "
function down(n) {
    if (n == 0) { return 0; }
    return 1 + *spawn(down, [n - 1]);
}
return *spawn(down, [int(argv(0))]);
";

/// Megabytes while waiting, bytes of a task that waits, megabytes at the peak.
///
/// # Errors
/// If a process fails, or does not come to where it is to be measured.
pub fn measure(ciel: &Ciel, effort: Effort) -> Result<Vec<Figure>> {
    let mut figures = vec![idle(ciel, effort)?, pending(ciel, effort)?];
    let size = |full: u64| full / effort.divisor;
    let (deep, many, loops) = (size(10_000), size(100_000), size(1_000_000));
    for (name, word, script, size, expected) in [
        ("peak, recursion 10,000 deep", "deep", DEEP, deep, deep),
        ("peak, loop of 1,000,000", "long", tasks::LOOP, loops, loops),
        (
            "peak, 100,000 tasks at once",
            "broad",
            tasks::WIDE,
            many,
            tasks::wide_sum(many),
        ),
    ] {
        let job = ciel.job(word, script, &["-q"], &[&size.to_string()])?;
        let mut peaks = Vec::new();
        for _ in 0..effort.rounds {
            let spent = job.run(&expected.to_string())?;
            peaks.push(spent.resident_bytes_max as f64 / MEGABYTE);
        }
        figures.push(Figure::of_rounds(name, "MB", Goal::AtMost(300.0), peaks));
    }
    Ok(figures)
}

fn idle(ciel: &Ciel, effort: Effort) -> Result<Figure> {
    let job = ciel.job("idle", WAITING, &["-q"], &[])?;
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds {
        let process = job.start()?;
        let bytes = wait_for_command(&process).and_then(|()| settled_bytes(&process));
        end(process);
        rounds.push(bytes? as f64 / MEGABYTE);
    }
    let name = "ciel and its spawner, while a command runs";
    Ok(Figure::of_rounds(name, "MB", Goal::AtMost(30.0), rounds))
}

fn pending(ciel: &Ciel, effort: Effort) -> Result<Figure> {
    // A task pauses behind more children than that.
    let many = 10_000 / effort.divisor;
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds {
        let (none, all) = (with_pending(ciel, 0)?, with_pending(ciel, many)?);
        rounds.push(all.saturating_sub(none) as f64 / many as f64);
    }
    let name = "a task that has not started";
    Ok(Figure::of_rounds(
        name,
        "bytes",
        Goal::AtMost(2048.0),
        rounds,
    ))
}

/// Bytes of `ciel` and its spawner while so many tasks wait for a core.
fn with_pending(ciel: &Ciel, tasks: u64) -> Result<u64> {
    let process = ciel
        .job("pending", PENDING, &["-q", "-j1"], &[&tasks.to_string()])?
        .start()?;
    let bytes = wait_for_command(&process).and_then(|()| settled_bytes(&process));
    end(process);
    bytes
}

/// Ends a job at once; it ends what it started.
fn end(process: Process) {
    process.signal(libc::SIGINT);
    process.signal(libc::SIGINT);
    process.bury();
}

/// Waits until the spawner of a job has started a command.
fn wait_for_command(process: &Process) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if children(process.pid)
            .iter()
            .any(|spawner| !children(*spawner).is_empty())
        {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    bail!("the command did not start");
}

/// Proportional memory of a job and its spawner once it has stopped growing.
fn settled_bytes(process: &Process) -> Result<u64> {
    let deadline = Instant::now() + PATIENCE;
    let mut before = 0;
    let mut steady = 0;
    while Instant::now() < deadline {
        let now = proportional_bytes(process.pid)?;
        steady = if now == before { steady + 1 } else { 0 };
        if steady == STEADY_LOOKS {
            return Ok(now);
        }
        before = now;
        std::thread::sleep(PAUSE);
    }
    bail!("its memory does not settle");
}

fn proportional_bytes(pid: libc::pid_t) -> Result<u64> {
    let mut sum = 0;
    for process in std::iter::once(pid).chain(children(pid)) {
        let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup"))
            .with_context(|| format!("reading the memory of process {process}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next());
        let kilobytes: u64 = kilobytes.context("no Pss line")?.parse()?;
        sum += kilobytes * 1024;
    }
    Ok(sum)
}

/// The children of all threads of a process; none if it is gone.
fn children(pid: libc::pid_t) -> Vec<libc::pid_t> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let files = threads.into_iter().flatten().flatten().map(|thread| {
        let file: PathBuf = thread.path().join("children");
        std::fs::read_to_string(file).unwrap_or_default()
    });
    files
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}
