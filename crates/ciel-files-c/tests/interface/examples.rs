//! The programs of `examples/ordered` write the same for any number of threads.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Place, THREADS, has, has_header, skipped};

fn program(place: &Place, name: &str, arguments: &[&str]) -> Option<std::path::PathBuf> {
    if !has("c++") {
        skipped("there is no C++ compiler");
        return None;
    }
    Some(place.example(name, arguments))
}

/// Runs a program serially and with each number of threads; returns the output, which is the same.
fn same_for_any_threads(place: &Place, program: &Path, arguments: &[&str]) -> Vec<u8> {
    place.run(program, &[&["--serial", "serial"], arguments].concat());
    let expected = place.bytes("serial");
    for threads in THREADS {
        let options = ["--threads", threads, "parallel"];
        place.run(program, &[&options, arguments].concat());
        assert!(place.bytes("parallel") == expected, "{threads} threads");
    }
    expected
}

#[test]
fn dag_write_is_the_same_for_any_threads() {
    let place = Place::new();
    if let Some(program) = program(&place, "dag_write.cpp", &[]) {
        let output = same_for_any_threads(&place, &program, &["20000", "8"]);
        assert_eq!(output.len(), 20_000 * 42);
    }
}

#[test]
fn queens_log_is_in_lexicographic_order_for_any_threads() {
    let place = Place::new();
    let Some(program) = program(&place, "queens.cpp", &[]) else {
        return;
    };
    let output = same_for_any_threads(&place, &program, &["8"]);
    let text = String::from_utf8(output).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 92);
    assert!(lines.is_sorted());
}

#[test]
fn compressed_file_is_what_gzip_reads() {
    let place = Place::new();
    if !has_header("zlib.h", "zlib1g-dev") || !has("gzip") {
        return skipped("there is no zlib1g-dev or no gzip");
    }
    let Some(program) = program(&place, "compress.cpp", &["-lz"]) else {
        return;
    };
    let text: String = (0..60_000_u64)
        .map(|line| format!("{} line\n", line * line))
        .collect();
    for input in ["", "x", &text[..128 << 10], &text] {
        fs::write(place.path("input"), input).unwrap();
        let packed = same_for_any_threads(&place, &program, &["input", "6"]);
        assert_eq!(unpacked(&packed), input.as_bytes());
    }
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut command = Command::new("gzip");
    command
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let packed = packed.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&packed).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    output.stdout
}
