//! The programs of `examples/ordered` write the same for any number of threads.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Place, THREADS, can_compile, has, has_header, repository, run, skipped};

fn program(place: &Place, name: &str, arguments: &[&str]) -> Option<PathBuf> {
    can_compile().then(|| place.example(name, arguments))
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
    if !has_header("zlib.h", "zlib1g-dev") || !has("gzip", "gzip") {
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

/// What `fmt` of coreutils makes of a text.
fn filled(place: &Place, name: &str) -> Vec<u8> {
    let mut command = Command::new("fmt");
    command.env("LC_ALL", "C");
    run(command.arg(place.path(name))).stdout
}

/// A text of words, blanks and lines that a seed chooses.
fn odd_text(mut seed: u64, words: usize, blanks: &[&str]) -> String {
    const WORDS: [&str; 9] = [
        "a",
        "word.",
        "(see",
        "it)",
        "end!",
        "Mr.",
        "\"quoted.\"",
        "comma,",
        "longer-than-others",
    ];
    let mut pick = |count: usize| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) as usize % count
    };
    let mut text = String::new();
    for _ in 0..words {
        match pick(40) {
            0 => text += &"long".repeat(30),
            _ => text += WORDS[pick(WORDS.len())],
        }
        text += blanks[pick(blanks.len())];
    }
    text
}

#[test]
fn filled_paragraphs_are_those_of_fmt() {
    let place = Place::new();
    if !has("fmt", "coreutils") {
        return skipped("there is no fmt of coreutils");
    }
    let Some(program) = program(&place, "fill.cpp", &[]) else {
        return;
    };
    let page = fs::read_to_string(repository().join("CONTRIBUTING.md")).unwrap();
    let lines = [
        " ", " ", " ", "  ", "\n", "\n  ", "\n\n", "\t", " \n\t", "\n \t \n",
    ];
    let texts = [
        String::new(),
        "   ".into(),
        "x\n\n\n".into(),
        "a\n b\n\tc d\n   \n\n  e.  f. (g)\n  h".into(),
        format!("{} z\n{}", "y".repeat(12_000), "q ".repeat(3000)),
        odd_text(1, 5000, &[" "]),
        odd_text(2, 5000, &lines[..5]),
        odd_text(3, 8000, &lines),
        page,
    ];
    for text in texts {
        fs::write(place.path("text"), &text).unwrap();
        let output = same_for_any_threads(&place, &program, &["text"]);
        assert!(output == filled(&place, "text"), "{:.200}", text);
    }
}

#[test]
fn queries_in_local_mode_find_what_libgdbm_finds() {
    let place = Place::new();
    if !has_header("gdbm.h", "libgdbm-dev") {
        return skipped("there is no libgdbm-dev");
    }
    let Some(program) = program(&place, "query.cpp", &["-lgdbm"]) else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let fill = place.compile(&folder.join("database.c"), &["-lgdbm"]);
    for records in ["0", "1", "3000"] {
        place.run(&fill, &["table", records]);
        let keys: String = (0..3010)
            .map(|key| format!("key {}\n", key * 11 % 3010))
            .collect();
        fs::write(place.path("keys"), format!("{keys}\nno such key\n")).unwrap();
        let output = same_for_any_threads(&place, &program, &["table", "keys"]);
        let text = String::from_utf8(output).unwrap();
        let missing = text.lines().filter(|line| line.ends_with("\t-")).count();
        assert_eq!(missing, 3012 - records.parse::<usize>().unwrap());
    }
}
