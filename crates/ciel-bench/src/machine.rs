//! The machine that figures come from: cores, kernel, load, date and commit.

use std::fmt;
use std::process::Command;

use serde_json::{Value, json};

/// The description of the machine beside figures.
#[derive(Clone, Debug)]
pub struct Machine {
    cores: usize,
    model: String,
    kernel: String,
    date: String,
    commit: String,
    load: String,
}

impl Machine {
    /// This machine, now. What cannot be found out is left empty.
    pub fn look() -> Machine {
        Machine {
            cores: cores(),
            model: model(),
            kernel: read("/proc/sys/kernel/osrelease"),
            date: told("date", &["-u", "+%Y-%m-%d"]),
            commit: told("git", &["describe", "--always", "--dirty"]),
            load: load(),
        }
    }

    /// The same, for programs.
    pub fn json(&self) -> Value {
        json!({
            "cores": self.cores,
            "model": self.model,
            "kernel": self.kernel,
            "date": self.date,
            "commit": self.commit,
            "load": self.load,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cores ({}), Linux {}, {}, commit {}, load {}",
            self.cores, self.model, self.kernel, self.date, self.commit, self.load
        )
    }
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The load of the last minute, of five and of fifteen.
pub fn load() -> String {
    let text = read("/proc/loadavg");
    text.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

fn model() -> String {
    let text = read("/proc/cpuinfo");
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(": "));
    name.map_or(String::new(), |(_, name)| name.to_string())
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).map_or(String::new(), |text| text.trim().to_string())
}

fn told(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output();
    output.map_or(String::new(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    })
}
