//! Which files the processes of a task read, or could read, as the folder `/proc` says.
//!
//! It does not know what the files are. Read next: `processes`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Processes of a task that are looked at.
const PROCESSES_MAX: usize = 256;

/// What the processes of a task do with files that they are to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// None of them can read one.
    Nowhere,
    /// A process could read one that it also writes, and does not at this moment.
    Possible,
    /// A process has that one open for reading only, or waits for bytes of it.
    Of(usize),
}

/// What a process, and those that it has started, do with these files, which are pipes. The first
/// one that is read counts.
pub fn reading(process: u32, files: &[PathBuf]) -> Reading {
    let mut found = Reading::Nowhere;
    let mut processes = vec![process];
    let mut at = 0;
    while let Some(process) = processes.get(at).copied() {
        match reading_of(process, files) {
            Reading::Nowhere => {}
            Reading::Possible => found = Reading::Possible,
            of => return of,
        }
        if processes.len() < PROCESSES_MAX {
            processes.extend(children_of(process));
        }
        at += 1;
    }
    found
}

/// The same of one process.
fn reading_of(process: u32, files: &[PathBuf]) -> Reading {
    let process = Path::new("/proc").join(process.to_string());
    let Ok(entries) = fs::read_dir(process.join("fd")) else {
        return Reading::Nowhere;
    };
    let mut found = Reading::Nowhere;
    for entry in entries.flatten() {
        let opened = fs::read_link(entry.path()).ok();
        let file = opened.and_then(|opened| files.iter().position(|file| *file == opened));
        let info = process.join("fdinfo").join(entry.file_name());
        let (Some(file), Ok(info)) = (file, fs::read_to_string(info)) else {
            continue;
        };
        match access(&info) {
            Some(libc::O_RDONLY) => return Reading::Of(file),
            Some(libc::O_RDWR) if is_read_from(&process, &entry.file_name()) => {
                return Reading::Of(file);
            }
            Some(libc::O_RDWR) => found = Reading::Possible,
            _ => {}
        }
    }
    found
}

/// For what a descriptor was opened, by what the system says of it.
fn access(info: &str) -> Option<i32> {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
    Some(flags & libc::O_ACCMODE)
}

/// Whether a thread of a process waits for bytes of a descriptor. Where the system does not say
/// what threads wait for, none does.
fn is_read_from(process: &Path, descriptor: &OsStr) -> bool {
    let Some(descriptor) = descriptor.to_str().and_then(|number| number.parse().ok()) else {
        return false;
    };
    let threads = fs::read_dir(process.join("task")).into_iter().flatten();
    let calls = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("syscall")).ok());
    calls.into_iter().any(|call| reads(&call, descriptor))
}

/// Whether a call in which a thread waits is one that reads that descriptor: its number and its
/// arguments, as `/proc/PID/syscall` says.
fn reads(call: &str, descriptor: u64) -> bool {
    let mut words = call.split_whitespace();
    let number = words.next().and_then(|number| number.parse().ok());
    let first = words.next().and_then(|first| first.strip_prefix("0x"));
    let first = first.and_then(|first| u64::from_str_radix(first, 16).ok());
    let reading = [libc::SYS_read, libc::SYS_readv, libc::SYS_splice];
    number.is_some_and(|number| reading.contains(&number)) && first == Some(descriptor)
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
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn access_of_a_descriptor_is_what_it_was_opened_for() {
        let kinds = [libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR];
        for (flags, expected) in ["0100000", "0100001", "02100002"].into_iter().zip(kinds) {
            let info = format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t1\n");
            assert_eq!(access(&info), Some(expected), "{flags}");
        }
    }

    #[test]
    fn call_that_reads_a_descriptor_is_told_from_others() {
        let read = libc::SYS_read;
        let write = libc::SYS_write;
        for (call, expected) in [
            (
                format!("{read} 0x3 0x7ffe 0x1000 0x0 0x0 0x0 0x7ffe 0x7f00"),
                true,
            ),
            (
                format!("{read} 0x30 0x7ffe 0x1000 0x0 0x0 0x0 0x7ffe 0x7f00"),
                false,
            ),
            (
                format!("{write} 0x3 0x7ffe 0x1000 0x0 0x0 0x0 0x7ffe 0x7f00"),
                false,
            ),
            ("-1 0x7ffe 0x7f00".to_owned(), false),
            ("running".to_owned(), false),
        ] {
            assert_eq!(reads(&call, 3), expected, "{call}");
        }
    }

    #[test]
    fn file_that_a_process_reads_is_found_and_one_that_it_writes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["written", "both", "read"].map(|name| folder.path().join(name));
        let _written = File::create(&files[0]).unwrap();
        File::create(&files[1]).unwrap();
        File::create(&files[2]).unwrap();
        let own = std::process::id();
        assert_eq!(reading(own, &files), Reading::Nowhere);
        let _both = File::options().read(true).write(true).open(&files[1]);
        assert_eq!(reading(own, &files), Reading::Possible);
        let _read = File::open(&files[2]).unwrap();
        assert_eq!(reading(own, &files), Reading::Of(2));
    }

    /// A program that opened its output for both, as `tar -r` does, and read it before it wrote,
    /// waited for ever: the system says for what it waits.
    #[test]
    fn pipe_that_a_process_has_for_both_and_waits_to_read_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let path = pipe.to_str().unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        let script = "exec 3<> \"$0\"; echo; read line; read line <&3";
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", script, path]);
        let mut child = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut into, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        out.read_exact(&mut [0]).unwrap();
        let files = [pipe];
        assert_eq!(reading(child.id(), &files), Reading::Possible);
        into.write_all(b"\n").unwrap();
        let deadline = Instant::now() + Duration::from_secs(300);
        while reading(child.id(), &files) != Reading::Of(0) {
            assert!(child.try_wait().unwrap().is_none() && Instant::now() < deadline);
            std::thread::yield_now();
        }
        File::options()
            .write(true)
            .open(&files[0])
            .unwrap()
            .write_all(b"\n")
            .unwrap();
        assert!(child.wait().unwrap().success());
    }
}
