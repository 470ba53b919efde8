//! Named scenarios: each file in `scenarios/` is run and must agree with the serial program and
//! with what it says it expects.

#![allow(missing_docs)]

use std::path::PathBuf;

use ciel_sim::Scenario;

#[test]
fn named_scenarios_agree_with_the_serial_program() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let mut told = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        let scenario: Scenario = text
            .parse()
            .unwrap_or_else(|misread| panic!("{}: {misread}", path.display()));
        if let Err(disagreement) = ciel_sim::run(&scenario) {
            told.push(format!("{}: {}", path.display(), disagreement.0));
        }
    }
    assert!(paths.len() >= 10, "the scenarios are there");
    assert!(told.is_empty(), "{}", told.join("\n\n"));
}
