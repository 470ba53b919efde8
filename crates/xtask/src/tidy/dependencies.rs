//! Rules about who may depend on whom, and on what from outside.
//!
//! The table of our own crates stands here; the table of outside packages, with the reason for
//! each, stands in CONTRIBUTING.md and must be complete. It reads manifests through
//! `cargo metadata` and does not look at code; [`super::purity`] does.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Finding;
use super::purity::PURE;
use super::tree::Source;
use crate::source_root;

/// Each of our crates, and those of ours that it may depend on.
const MAY_USE: &[(&str, &[&str])] = &[
    ("ciel-model", &[]),
    ("ciel-graph", &["ciel-model"]),
    (
        "ciel-coordinator",
        &["ciel-graph", "ciel-model", "ciel-ordered"],
    ),
    (
        "ciel-engine",
        &[
            "ciel-coordinator",
            "ciel-graph",
            "ciel-model",
            "ciel-node",
            "ciel-ordered",
        ],
    ),
    ("ciel-cio", &[]),
    ("ciel-data-plane", &[]),
    ("ciel-files", &["ciel-cio", "ciel-writer"]),
    ("ciel-files-c", &["ciel-files"]),
    ("ciel-writer", &[]),
    ("ciel-journal", &[]),
    ("ciel-kept", &["ciel-model"]),
    ("ciel-node", &["ciel-model"]),
    ("ciel-ordered", &["ciel-model"]),
    ("ciel-protocol", &[]),
    (
        "ciel-python",
        &["ciel-files", "ciel-model", "ciel-protocol", "ciel-streams"],
    ),
    ("ciel-skywriting", &[]),
    ("ciel-spawner", &[]),
    ("ciel-store", &["ciel-model", "ciel-streams"]),
    ("ciel-streams", &["ciel-model"]),
    ("ciel-unmodified", &["ciel-ordered"]),
    (
        "ciel-view",
        &[
            "ciel-coordinator",
            "ciel-graph",
            "ciel-journal",
            "ciel-model",
            "ciel-ordered",
            "ciel-store",
        ],
    ),
    (
        "ciel-workers",
        &[
            "ciel-engine",
            "ciel-graph",
            "ciel-model",
            "ciel-node",
            "ciel-protocol",
        ],
    ),
    ("ciel-report", &["ciel-graph", "ciel-view"]),
    ("ciel-bench", &[]),
    (
        "ciel-runtime",
        &[
            "ciel-coordinator",
            "ciel-data-plane",
            "ciel-engine",
            "ciel-graph",
            "ciel-journal",
            "ciel-kept",
            "ciel-model",
            "ciel-node",
            "ciel-ordered",
            "ciel-protocol",
            "ciel-skywriting",
            "ciel-spawner",
            "ciel-store",
            "ciel-view",
            "ciel-workers",
            "ciel-writer",
        ],
    ),
    (
        "ciel-sim",
        &[
            "ciel-coordinator",
            "ciel-engine",
            "ciel-graph",
            "ciel-model",
            "ciel-node",
            "ciel-ordered",
        ],
    ),
    (
        "ciel-fuzz",
        &[
            "ciel-cio",
            "ciel-journal",
            "ciel-kept",
            "ciel-model",
            "ciel-protocol",
            "ciel-skywriting",
        ],
    ),
    (
        "ciel-cli",
        &[
            "ciel-cio",
            "ciel-model",
            "ciel-report",
            "ciel-runtime",
            "ciel-skywriting",
            "ciel-spawner",
            "ciel-store",
            "ciel-unmodified",
            "ciel-view",
            "ciel-writer",
        ],
    ),
    ("xtask", &["ciel-protocol"]),
];

/// What the tests of a crate may use besides: those of the command read the journals that killed
/// runs have left, those of the workers drive a whole engine.
const TESTS_MAY_USE: &[(&str, &[&str])] = &[
    (
        "ciel-cli",
        &["ciel-coordinator", "ciel-journal", "ciel-kept"],
    ),
    ("ciel-data-plane", &["ciel-streams"]),
    ("ciel-workers", &["ciel-coordinator"]),
];

/// The one crate that may use an asynchronous runtime.
const ASYNCHRONOUS: &str = "ciel-runtime";

/// Packages that bring an asynchronous runtime.
const ASYNCHRONOUS_PACKAGES: &[&str] = &["async-std", "mio", "smol", "tokio", "tokio-util"];

/// Packages that lead outside and so have no place in a pure crate.
const OUTSIDE_PACKAGES: &[&str] = &[
    "fastrand",
    "getrandom",
    "libc",
    "memmap2",
    "nix",
    "rand",
    "rustix",
    "signal-hook",
    "tempfile",
];

/// One line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The crate that depends.
    pub from: String,
    /// The package it depends on.
    pub to: String,
    /// Whether that package is ours.
    pub is_ours: bool,
    /// Whether tests alone need it.
    pub for_tests: bool,
}

/// The crates of the workspace and all dependencies that their manifests name.
///
/// # Errors
/// If `cargo metadata` fails.
pub fn manifests() -> Result<(Vec<String>, Vec<Dependency>)> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(source_root())
        .output()
        .context("running cargo")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata: {complaint}");
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let packages = answer["packages"].as_array().context("no packages")?;
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let mut dependencies = Vec::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            dependencies.push(Dependency {
                from: name(package),
                to: name(dependency),
                is_ours: dependency["path"].is_string(),
                for_tests: dependency["kind"] == "dev",
            });
        }
    }
    Ok((packages.iter().map(name).collect(), dependencies))
}

/// Crates and edges that the tables do not allow.
pub fn forbidden_edges(crates: &[String], dependencies: &[Dependency]) -> Vec<Finding> {
    let manifest = |name: &str| format!("crates/{name}/Cargo.toml");
    let unlisted = crates
        .iter()
        .filter(|name| MAY_USE.iter().all(|(listed, _)| listed != name))
        .map(|name| {
            Finding::new(
                &manifest(name),
                0,
                "the crate is not in the table of crates",
            )
        });
    let forbidden = dependencies
        .iter()
        .filter(|dependency| !is_allowed(dependency))
        .map(|Dependency { from, to, .. }| {
            Finding::new(&manifest(from), 0, format!("may not depend on `{to}`"))
        });
    unlisted.chain(forbidden).collect()
}

fn is_allowed(dependency: &Dependency) -> bool {
    let (from, to) = (dependency.from.as_str(), dependency.to.as_str());
    if dependency.is_ours {
        let allows = |table: &[(&str, &[&str])]| {
            let mut uses = table.iter().filter(|(name, _)| *name == from);
            uses.any(|(_, uses)| uses.contains(&to))
        };
        return allows(MAY_USE) || dependency.for_tests && allows(TESTS_MAY_USE);
    }
    if ASYNCHRONOUS_PACKAGES.contains(&to) {
        return from == ASYNCHRONOUS;
    }
    dependency.for_tests || !(PURE.contains(&from) && OUTSIDE_PACKAGES.contains(&to))
}

/// The heading of CONTRIBUTING.md under which the table stands; it is the last one.
const TABLE: &str = "## Outside packages";

/// Outside packages without a row in the table of CONTRIBUTING.md, and rows without a package.
pub fn undocumented_packages(dependencies: &[Dependency], sources: &[Source]) -> Vec<Finding> {
    const PAGE: &str = "CONTRIBUTING.md";
    let page = sources.iter().find(|source| source.path == PAGE);
    let text = page.map_or("", |source| source.text.as_str());
    let section = text.lines().skip_while(|line| *line != TABLE);
    let rows: BTreeSet<&str> = section.filter_map(row_name).collect();
    let outside = dependencies.iter().filter(|dependency| !dependency.is_ours);
    let mut packages: BTreeSet<&str> = outside.map(|dependency| dependency.to.as_str()).collect();
    packages.extend(
        sources
            .iter()
            .filter(|source| is_list(source))
            .flat_map(python_packages),
    );
    let without_row = packages
        .difference(&rows)
        .map(|name| Finding::new(PAGE, 0, format!("no row for the package `{name}`")));
    let without_package = rows
        .difference(&packages)
        .map(|name| Finding::new(PAGE, 0, format!("`{name}` is not a dependency")));
    without_row.chain(without_package).collect()
}

/// Packages that the workspace offers to its crates and none of them takes.
pub fn unused_packages(dependencies: &[Dependency], sources: &[Source]) -> Vec<Finding> {
    const MANIFEST: &str = "Cargo.toml";
    let manifest = sources.iter().find(|source| source.path == MANIFEST);
    let text = manifest.map_or("", |source| source.text.as_str());
    text.lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.contains("path = "))
        .filter_map(|line| line.split_once(" = ").map(|(name, _)| name))
        .filter(|name| dependencies.iter().all(|dependency| dependency.to != *name))
        .map(|name| Finding::new(MANIFEST, 0, format!("no crate depends on `{name}`")))
        .collect()
}

/// Lists of Python packages with a line that does not say the exact version.
pub fn unpinned_packages(sources: &[Source]) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| is_list(source)) {
        for (index, line) in source.text.lines().enumerate() {
            let needs_version = !line.trim().is_empty() && !line.starts_with('#');
            if needs_version && !line.contains("==") {
                found.push(Finding::new(
                    &source.path,
                    index + 1,
                    "without an exact version",
                ));
            }
        }
    }
    found
}

/// The name in the first cell of a row of the table, which stands between backquotes.
fn row_name(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split('`').next()
}

fn is_list(source: &Source) -> bool {
    let name = source.path.rsplit('/').next().unwrap_or_default();
    name.starts_with("requirements") && name.ends_with(".txt")
}

fn python_packages(source: &Source) -> impl Iterator<Item = &str> {
    let lines = source.text.lines();
    lines.filter_map(|line| line.split_once("==").map(|(name, _)| name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str, is_ours: bool, for_tests: bool) -> Dependency {
        let (from, to) = (from.to_owned(), to.to_owned());
        Dependency {
            from,
            to,
            is_ours,
            for_tests,
        }
    }

    fn source(path: &str, text: &str) -> Source {
        let (path, text) = (path.to_owned(), text.to_owned());
        Source { path, text }
    }

    #[test]
    fn forbidden_edges_are_found_one_by_one() {
        for bad in [
            edge("ciel-graph", "ciel-runtime", true, false),
            edge("ciel-graph", "ciel-node", true, true),
            edge("ciel-cli", "ciel-journal", true, false),
            edge("ciel-view", "ciel-runtime", true, false),
            edge("ciel-store", "tokio", false, true),
            edge("ciel-skywriting", "rustix", false, false),
        ] {
            assert_eq!(forbidden_edges(&[], &[bad]).len(), 1);
        }
        let good = [
            edge("ciel-runtime", "tokio", false, false),
            edge("ciel-protocol", "rustix", false, true),
            edge("ciel-graph", "ciel-model", true, false),
            edge("ciel-cli", "ciel-journal", true, true),
        ];
        assert!(forbidden_edges(&["ciel-graph".to_owned()], &good).is_empty());
        assert_eq!(forbidden_edges(&["ciel-new".to_owned()], &[]).len(), 1);
    }

    #[test]
    fn packages_and_rows_must_agree() {
        let edges = [
            edge("a", "serde", false, false),
            edge("a", "libc", false, true),
        ];
        let sources = [
            source(
                "CONTRIBUTING.md",
                "| `make` | x |\n## Outside packages\n| `serde` | x |\n| `gone` | x |\n",
            ),
            source("b/requirements.txt", "numpy==1\n"),
        ];
        let found: Vec<_> = undocumented_packages(&edges, &sources)
            .into_iter()
            .map(|one| one.message)
            .collect();
        let missing = ["libc", "numpy"].map(|name| format!("no row for the package `{name}`"));
        assert_eq!(found[..2], missing);
        assert_eq!(found[2..], ["`gone` is not a dependency"]);
    }

    #[test]
    fn package_that_no_crate_takes_is_found() {
        let text =
            "[workspace.dependencies]\nserde = \"1\"\nidle = \"1\"\n\n[profile.dev]\na = 1\n";
        let found = unused_packages(
            &[edge("a", "serde", false, true)],
            &[source("Cargo.toml", text)],
        );
        let message = "no crate depends on `idle`";
        assert_eq!(found, [Finding::new("Cargo.toml", 0, message)]);
    }

    #[test]
    fn package_without_exact_version_is_found() {
        let list = source("requirements.txt", "# numbers\n\nnumpy==1\nPillow>=2\n");
        assert_eq!(unpinned_packages(&[list])[0].line, 4);
    }
}
