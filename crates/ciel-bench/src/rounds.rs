//! One process for each core that computes for ten milliseconds, then one that combines: rounds of
//! that as environ tasks, beside the same processes started bare.
//!
//! Both sides take turns of a few rounds. A round is the time between the ends of two combining
//! processes, which these note themselves.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::Effort;
use crate::figure::{Figure, Goal};
use crate::helper::{self, COMBINE, SPIN};
use crate::job::{Ciel, Job};
use crate::machine;
use crate::process::Launch;

/// Rounds of each side, all in all.
const ROUNDS: u64 = 200;

/// Rounds of one side before the other has its turn.
const BLOCK: u64 = 20;

/// How long a process computes.
const SPIN_US: &str = "10000";

const SCRIPT: &str = "
program = argv(0);
log = argv(1);
rounds = int(argv(2));
cores = int(argv(3));
state = [];
for (round in range(rounds)) {
    parts = [];
    for (core in range(cores)) {
        parts += spawn_exec(\"environ\", {
            \"inputs\": state,
            \"command_line\": [program, \"__spin\", argv(4), str(round), str(core)]
        }, 1)[0];
    }
    combined = spawn_exec(\"environ\", {
        \"inputs\": parts,
        \"command_line\": [program, \"__combine\", log, str(round)]
    }, 1)[0];
    state = [combined];
    last = *combined;
}
return rounds;
";

/// Milliseconds of a round, bare and as tasks, and the quotient of the medians.
///
/// # Errors
/// If a process fails.
pub fn measure(ciel: &Ciel, effort: Effort) -> Result<Vec<Figure>> {
    let program = std::env::current_exe()?;
    let log = ciel.folder().join("rounds.log");
    let job = job(ciel, &program, &log)?;
    let bare = Bare::new(ciel, &program, &log)?;
    let (mut bare_ms, mut ciel_ms) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS / effort.divisor / BLOCK {
        bare.run()?;
        bare_ms.extend(milliseconds(&log)?);
        job.run(&(BLOCK + 1).to_string())?;
        ciel_ms.extend(milliseconds(&log)?);
    }
    let bare = Figure::of_rounds("round of 10 ms, bare processes", "ms", Goal::None, bare_ms);
    let tasks = Figure::of_rounds("round of 10 ms, environ tasks", "ms", Goal::None, ciel_ms);
    let ratio = tasks.ratio("round of tasks to bare one", Goal::AtMost(1.05), &bare);
    Ok(vec![bare, tasks, ratio])
}

fn milliseconds(log: &Path) -> Result<Vec<f64>> {
    let intervals = helper::take_intervals(log)?;
    ensure!(intervals.len() as u64 == BLOCK, "a round is missing");
    Ok(intervals.into_iter().map(|ns| ns as f64 / 1e6).collect())
}

fn job(ciel: &Ciel, program: &Path, log: &Path) -> Result<Job> {
    let (program, log) = (program.to_string_lossy(), log.to_string_lossy());
    let (rounds, cores) = ((BLOCK + 1).to_string(), machine::cores().to_string());
    let arguments = [&program, &log, rounds.as_str(), &cores, SPIN_US];
    ciel.job("rounds", SCRIPT, &["-q"], &arguments)
}

/// The same processes without an engine; their files stay the same in all rounds.
struct Bare {
    parts: Vec<Launch>,
    combine: Launch,
}

impl Bare {
    fn new(ciel: &Ciel, program: &Path, log: &Path) -> Result<Bare> {
        let folder = ciel.folder().join("bare-rounds");
        std::fs::create_dir_all(&folder)?;
        let state = folder.join("state");
        std::fs::write(&state, "0\n")?;
        let files: Vec<PathBuf> = (0..machine::cores())
            .map(|core| folder.join(format!("part.{core}")))
            .collect();
        let mut parts = Vec::new();
        for (core, file) in files.iter().enumerate() {
            let words = [program.as_os_str(), SPIN.as_ref(), SPIN_US.as_ref()];
            let name = folder.join(format!("lists-{core}"));
            parts.push(with_lists(
                Launch::new(words)?,
                &name,
                std::slice::from_ref(&state),
                file,
            )?);
        }
        let words = [program.as_os_str(), COMBINE.as_ref(), log.as_os_str()];
        let combine = with_lists(Launch::new(words)?, &folder.join("lists"), &files, &state)?;
        Ok(Bare { parts, combine })
    }

    /// One round more than is counted.
    fn run(&self) -> Result<()> {
        for _ in 0..=BLOCK {
            let started: Result<Vec<_>> = self.parts.iter().map(Launch::start).collect();
            for process in started? {
                process.wait()?;
            }
            self.combine.run()?;
        }
        Ok(())
    }
}

/// The variables of an environ task.
fn with_lists(launch: Launch, name: &Path, inputs: &[PathBuf], output: &Path) -> Result<Launch> {
    let (read, written) = (name.with_extension("in"), name.with_extension("out"));
    let lines = |paths: &[PathBuf]| {
        let lines: Vec<String> = paths
            .iter()
            .map(|path| format!("{}\n", path.display()))
            .collect();
        lines.concat()
    };
    std::fs::write(&read, lines(inputs))?;
    std::fs::write(&written, lines(&[output.to_path_buf()]))?;
    launch
        .with("INPUT_FILES".as_ref(), read.as_os_str())?
        .with("OUTPUT_FILES".as_ref(), written.as_os_str())
}
