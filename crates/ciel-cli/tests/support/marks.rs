//! Processes as the kernel reports them: by a variable of their environment, their parent, their
//! memory.
//!
//! It does not know how they were started.

use std::fs;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

/// Processes whose environment has this entry. Ended ones have none.
pub fn marked(variable: &str, value: &str) -> Vec<u32> {
    let entry = format!("{variable}={value}");
    let carries = |pid: &u32| {
        let environment = fs::read(of(*pid, "environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|found| found == entry.as_bytes())
    };
    all().into_iter().filter(carries).collect()
}

/// The command line of a process, for messages.
pub fn command_of(pid: u32) -> String {
    let words = fs::read(of(pid, "cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words)
        .replace('\0', " ")
        .trim()
        .to_string()
}

/// The parent of a process; none if there is no such process.
pub fn parent_of(pid: u32) -> Option<u32> {
    field(pid, "PPid:")
}

/// Most memory that a process had in its life, in KiB; 0 if it has ended.
pub fn peak_kib(pid: u32) -> u64 {
    field(pid, "VmHWM:").unwrap_or(0)
}

/// How often the threads of a process have waited so far: each time, something has woken them.
pub fn waits(pid: u32) -> u64 {
    let threads = fs::read_dir(of(pid, "task")).into_iter().flatten();
    let status = threads
        .flatten()
        .map(|thread| fs::read_to_string(thread.path().join("status")));
    let count = |status: &str| {
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    status.flatten().filter_map(|status| count(&status)).sum()
}

/// Sends a signal, by its name without SIG. A process that is gone already is as good.
pub fn kill(pid: u32, name: &str) {
    let signal = match name {
        "ALRM" => Signal::ALARM,
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "TERM" => Signal::TERM,
        "KILL" => Signal::KILL,
        "STOP" => Signal::STOP,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        "WINCH" => Signal::WINCH,
        "CONT" => Signal::CONT,
        other => panic!("no such signal here: {other}"),
    };
    let pid = Pid::from_raw(pid as i32).unwrap();
    let _ = kill_process(pid, signal);
}

fn field<T: std::str::FromStr>(pid: u32, name: &str) -> Option<T> {
    let status = fs::read_to_string(of(pid, "status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn of(pid: u32, what: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{what}"))
}
