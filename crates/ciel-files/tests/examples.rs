//! The programs of `bench/ordered` write the same bytes on any number of threads as serially.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An example, which cargo builds beside the tests; not if only some of these are built.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let program = folder.join("examples").join(name);
    if !program.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--example", name]);
        cargo.arg("--target-dir").arg(folder.parent().unwrap());
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
    }
    program
}

fn output_of(name: &str, options: &[&str], folder: &Path) -> Vec<u8> {
    let path = folder.join("output");
    let mut command = Command::new(example(name));
    command.args(options).arg("--output").arg(&path);
    let ended = command.stderr(Stdio::null()).output().unwrap();
    assert!(ended.status.success(), "{name} {options:?}");
    let seconds: f64 = String::from_utf8(ended.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(seconds >= 0.0);
    fs::read(&path).unwrap()
}

/// The bytes of the serial run, which those of 1, 2 and 4 threads equal.
fn equal_for_any_threads(name: &str, options: &[&str], folder: &Path) -> Vec<u8> {
    let serial = output_of(name, &[options, &["--serial"]].concat(), folder);
    for threads in ["1", "2", "4"] {
        let written = output_of(name, &[options, &["--threads", threads]].concat(), folder);
        assert!(written == serial, "{name} with {threads} threads");
    }
    serial
}

#[test]
fn dag_write_writes_its_leaves_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--depth", "10", "--steps", "1"];
    let written = equal_for_any_threads("dag_write", &options, folder.path());
    assert!(written.starts_with(b"leaf 000000001024 has the value "));
    assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), 1024);
}

#[test]
fn queens_are_logged_in_lexicographic_order() {
    let folder = tempfile::tempdir().unwrap();
    let written = equal_for_any_threads("queens", &["--size", "8"], folder.path());
    let text = String::from_utf8(written).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 92);
    assert!(lines.is_sorted());
}

#[test]
fn compressed_file_is_read_by_gzip() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..100_000).map(|number| format!("{number} ")).collect();
    let input = folder.path().join("input");
    fs::write(&input, &text).unwrap();
    let options = ["--input", input.to_str().unwrap()];
    equal_for_any_threads("compress", &options, folder.path());
    let packed = fs::File::open(folder.path().join("output")).unwrap();
    let unpacked = Command::new("gzip").arg("-dc").stdin(packed).output();
    match unpacked {
        Ok(unpacked) => assert!(unpacked.stdout == text.as_bytes()),
        Err(error) => println!("skipped: gzip does not run: {error}"),
    }
}

/// What `fmt` of coreutils makes of a text; none if it is not here.
fn filled_by_fmt(text: &Path) -> Option<Vec<u8>> {
    let mut command = Command::new("fmt");
    let ended = command.env("LC_ALL", "C").arg(text).output().ok()?;
    assert!(ended.status.success());
    Some(ended.stdout)
}

/// A text of words and blanks that a seed chooses.
fn odd_text(mut seed: u64, words: usize, blanks: &[&str]) -> String {
    const WORDS: [&str; 8] = [
        "a",
        "word.",
        "(see",
        "it)",
        "end!",
        "Mr.",
        "\"quoted.\"",
        "longer-than-others,",
    ];
    let mut pick = |count: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
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
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../CONTRIBUTING.md");
    let blanks = [
        " ", " ", " ", "  ", "\n", "\n  ", "\n\n", "\t", " \n\t", "\n \t \n",
    ];
    let texts = [
        String::new(),
        "   ".into(),
        "x\n\n\n".into(),
        "a\n b\n\tc d\n   \n\n  e.  f. (g)\n  h".into(),
        format!("{} z\n{}", "y".repeat(12_000), "q ".repeat(3000)),
        odd_text(1, 5000, &[" "]),
        odd_text(2, 5000, &blanks[..5]),
        odd_text(3, 8000, &blanks),
        fs::read_to_string(page).unwrap(),
    ];
    for text in texts {
        fs::write(&input, &text).unwrap();
        let options = ["--input", input.to_str().unwrap()];
        let written = equal_for_any_threads("fill", &options, folder.path());
        match filled_by_fmt(&input) {
            Some(wanted) => assert!(written == wanted, "{text:.200}"),
            None => return println!("skipped: there is no fmt of coreutils"),
        }
    }
}

#[test]
fn jobs_print_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let written = equal_for_any_threads("jobs", &["--count", "20"], folder.path());
    let wanted: String = (0..20).map(|number| format!("{number}\n")).collect();
    assert_eq!(String::from_utf8(written).unwrap(), wanted);
}
