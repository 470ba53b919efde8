//! What this program is as a task: spin for a while, or put numbers together.
//!
//! As an environ task it reads the files named by `INPUT_FILES` and writes those named by
//! `OUTPUT_FILES`. It does not know who started it.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The first argument that makes this program spin.
pub const SPIN: &str = "__spin";

/// The first argument that makes this program put its inputs together.
pub const COMBINE: &str = "__combine";

/// What a process is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Helper {
    /// Read the inputs, keep a core busy for so many microseconds, write the outputs.
    Spin {
        /// By the clock on the wall.
        us: u64,
    },
    /// Read the inputs, write their sum, add the time to a log.
    Combine {
        /// One line of nanoseconds a process.
        log: PathBuf,
    },
}

/// The helper that the words of the command line request, if any.
pub fn asked(mut words: impl Iterator<Item = OsString>) -> Option<Helper> {
    let word = words.nth(1)?;
    let argument = words.next()?;
    match word.to_str()? {
        SPIN => Some(Helper::Spin {
            us: argument.to_str()?.parse().ok()?,
        }),
        COMBINE => Some(Helper::Combine {
            log: argument.into(),
        }),
        _ => None,
    }
}

impl Helper {
    /// Does it.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn run(self) -> Result<()> {
        match self {
            Helper::Spin { us } => {
                let end = clock_ns() + us * 1000;
                let sum = read_inputs()?;
                while clock_ns() < end {
                    std::hint::spin_loop();
                }
                write_outputs(sum)
            }
            Helper::Combine { log } => {
                write_outputs(read_inputs()?)?;
                let mut log = std::fs::OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(log)?;
                Ok(log.write_all(format!("{}\n", clock_ns()).as_bytes())?)
            }
        }
    }
}

/// Differences of the times in a log, in nanoseconds, and nothing of the log.
///
/// # Errors
/// If there is no such log.
pub fn take_intervals(log: &Path) -> Result<Vec<u64>> {
    let text = std::fs::read_to_string(log).context("reading the log of times")?;
    std::fs::remove_file(log)?;
    let times: Result<Vec<u64>, _> = text.lines().map(str::parse).collect();
    let times = times.context("a line of the log is no number")?;
    Ok(times.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

/// Nanoseconds of the monotonic clock that all processes share.
fn clock_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a value that outlives the call; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn read_inputs() -> Result<u64> {
    let mut sum = 0;
    for path in listed("INPUT_FILES")? {
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        sum += text.trim().parse::<u64>().unwrap_or(0);
    }
    Ok(sum % 1_000_003)
}

fn write_outputs(sum: u64) -> Result<()> {
    for path in listed("OUTPUT_FILES")? {
        std::fs::write(&path, format!("{}\n", sum + 1))
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn listed(variable: &str) -> Result<Vec<PathBuf>> {
    let Some(list) = std::env::var_os(variable) else {
        bail!("{variable} is not set");
    };
    let text = std::fs::read_to_string(OsStr::new(&list)).context("reading a list of files")?;
    Ok(text.lines().map(PathBuf::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_helper_are_told_from_those_of_a_user() {
        let asked = |words: &[&str]| super::asked(words.iter().map(OsString::from));
        assert_eq!(asked(&["bench", SPIN, "10"]), Some(Helper::Spin { us: 10 }));
        let log = "log".into();
        assert_eq!(
            asked(&["bench", COMBINE, "log"]),
            Some(Helper::Combine { log })
        );
        assert_eq!(asked(&["bench", "tasks", "--quick"]), None);
        assert_eq!(asked(&["bench"]), None);
    }
}
