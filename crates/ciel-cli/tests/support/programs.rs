//! The examples of this repository, and whether their requirements are installed.
//!
//! It does not know what they show.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use super::{repository, skipped};

/// The script of an example.
pub fn script(example: &str) -> PathBuf {
    repository().join(format!("examples/{example}/{example}.sw"))
}

/// The same job, or another one, as a Python program.
pub fn program(example: &str) -> PathBuf {
    repository().join(format!("examples/{example}/{example}.py"))
}

/// The interpreter that can import the module: the one that the test command names, or that of the
/// repository's virtual environment.
pub fn python() -> PathBuf {
    let named = std::env::var_os("CIEL_PYTHON").map(PathBuf::from);
    named.unwrap_or_else(|| repository().join(".venv/bin/python3"))
}

/// Whether Python programs can be run that import these modules; if not, the test is skipped.
pub fn runs_python(test: &str, modules: &str) -> bool {
    let line = format!("import ciel{modules}");
    let tried = Command::new(python()).args(["-c", &line]).output();
    let runs = tried.is_ok_and(|output| output.status.success());
    if !runs {
        skipped(test, &format!("no Python here can {line}"));
    }
    runs
}

/// The programs of the repository's virtual environment before all others.
pub fn search_path() -> OsString {
    let own = repository().join(".venv/bin");
    let usual = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&usual))).unwrap()
}

/// Whether a command ends well.
pub fn works(words: &[&str]) -> bool {
    let output = Command::new(words[0])
        .args(&words[1..])
        .env("PATH", search_path())
        .output();
    output.is_ok_and(|output| output.status.success())
}

/// Whether Python has these modules; if not, the test is skipped.
pub fn has_modules(test: &str, modules: &str) -> bool {
    let has = works(&["python3", "-c", &format!("import {modules}")]);
    if !has {
        skipped(test, &format!("python3 cannot import {modules}"));
    }
    has
}

/// A picture of 48 × 32 pixels with soft colours, as the plainest kind of file.
pub fn small_picture() -> Vec<u8> {
    let mut picture = b"P6 48 32 255\n".to_vec();
    for row in 0..32u32 {
        for column in 0..48u32 {
            let mixed = (row * 37 + column * 11) % 64;
            picture.extend([row * 8, column * 5, mixed * 4].map(|level| level as u8));
        }
    }
    picture
}
