//! The readers of foreign bytes.
//!
//! Each has a module with its corpus and its promises.

mod archives;
mod decoder;
mod journal;
mod saved;
mod scripts;
mod structured;

use std::path::{Path, PathBuf};

use crate::Target;

/// All of them.
pub const TARGETS: [Target; 7] = [
    archives::TARGET,
    decoder::TARGET,
    journal::TARGET,
    saved::TARGET,
    scripts::CHECKED,
    scripts::RUN,
    structured::TARGET,
];

/// A path in the repository.
fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// The files of a folder and of those in it, in the order of their paths.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let inner = |path: PathBuf| match path.is_dir() {
        true => files_below(&path),
        false => vec![path],
    };
    paths.into_iter().flat_map(inner).collect()
}
