//! A producer in a process of its own, killed at any moment.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use ciel_data_plane::{Ring, StreamFault};

use crate::bytes::{Numbers, read, write};

/// Tells the copy of this test in the child process where the ring is.
const RING: &str = "CIEL_TEST_RING";

/// The child: it writes until it is killed.
fn produce_without_end(path: &str) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut writer = Ring::from_file(file).unwrap().writer().unwrap();
    let mut numbers = Numbers(3);
    write(&mut writer, u64::MAX, || 1 + numbers.below(3_000)).unwrap();
}

#[test]
fn ring_of_a_killed_process_gives_a_prefix_and_then_a_fault() {
    if let Ok(path) = std::env::var(RING) {
        return produce_without_end(&path);
    }
    for seed in 0..4 {
        let ring = Ring::create(16 << 10).unwrap();
        let descriptor = ring.descriptor().as_raw_fd();
        let path = format!("/proc/{}/fd/{descriptor}", std::process::id());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "killed::ring_of_a_killed_process_gives_a_prefix_and_then_a_fault",
            ])
            .env(RING, path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut reader = ring.reader().unwrap();
        let before = 1 + Numbers(seed).below(100_000);
        let (bytes, end) = read(&mut reader, 0, before, 100);
        end.unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        ring.producer_lost();
        let (rest, end) = read(&mut reader, bytes, u64::MAX, 1_000);
        let error = end.expect_err("a false end");
        let read = bytes + rest;
        assert_eq!(
            StreamFault::of(&error),
            Some(&StreamFault::ProducerLost { read })
        );
    }
}
