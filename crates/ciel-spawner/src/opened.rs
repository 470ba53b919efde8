//! Which files the processes of a task have open for reading, as the folder `/proc` says.
//!
//! It does not know what the files are. Read next: `processes`.

use std::fs;
use std::path::{Path, PathBuf};

/// Processes of a task that are looked at.
const PROCESSES_MAX: usize = 256;

/// The first of these files that a process, or one that it has started, has open for reading only.
pub fn opened_for_reading(process: u32, files: &[PathBuf]) -> Option<usize> {
    let mut processes = vec![process];
    let mut at = 0;
    while let Some(process) = processes.get(at).copied() {
        if let Some(file) = read_by(process, files) {
            return Some(file);
        }
        if processes.len() < PROCESSES_MAX {
            processes.extend(children_of(process));
        }
        at += 1;
    }
    None
}

fn read_by(process: u32, files: &[PathBuf]) -> Option<usize> {
    let process = Path::new("/proc").join(process.to_string());
    let entries = fs::read_dir(process.join("fd")).ok()?;
    entries.flatten().find_map(|entry| {
        let opened = fs::read_link(entry.path()).ok()?;
        let file = files.iter().position(|file| *file == opened)?;
        let info = process.join("fdinfo").join(entry.file_name());
        is_for_reading(&fs::read_to_string(info).ok()?).then_some(file)
    })
}

/// Whether a descriptor is for reading only, by what the system says of it.
fn is_for_reading(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE == libc::O_RDONLY)
}

/// The processes that the threads of a process have started.
fn children_of(process: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let children = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    let mut found = Vec::new();
    for children in threads.flatten().filter_map(children) {
        let pids = children.split_whitespace();
        found.extend(pids.filter_map(|pid| pid.parse::<u32>().ok()));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn only_descriptors_that_are_for_reading_alone_count() {
        for (flags, expected) in [("0100000", true), ("0100001", false), ("02100002", false)] {
            let info = format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t1\n");
            assert_eq!(is_for_reading(&info), expected, "{flags}");
        }
    }

    #[test]
    fn file_that_a_process_reads_is_found_and_one_that_it_writes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["written", "read"].map(|name| folder.path().join(name));
        let _written = File::create(&files[0]).unwrap();
        File::create(&files[1]).unwrap();
        let own = std::process::id();
        assert_eq!(opened_for_reading(own, &files), None);
        let _read = File::open(&files[1]).unwrap();
        assert_eq!(opened_for_reading(own, &files), Some(1));
    }
}
