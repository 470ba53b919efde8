//! The header: it compiles as it says, and declares exactly what the library exports.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Place, can_compile, has, library, run, skipped};

fn include() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

fn compile(compiler: &str, standard: &str, name: &str) {
    if !can_compile() {
        return;
    }
    let place = Place::new();
    let source = place.path(name);
    fs::write(
        &source,
        "#include <ciel_ordered.h>\n#include <ciel_ordered.h>\n",
    )
    .unwrap();
    let mut command = Command::new(compiler);
    command.args([standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-c"]);
    command.arg("-I").arg(include());
    run(command.arg("-o").arg(place.path("object")).arg(source));
}

#[test]
fn header_is_strict_c_of_1999() {
    compile("cc", "-std=c99", "header.c");
}

#[test]
fn header_is_strict_cxx_of_2011() {
    compile("c++", "-std=c++11", "header.cpp");
}

/// The names that are followed by a parenthesis outside of comments.
fn declared() -> BTreeSet<String> {
    let text = fs::read_to_string(include().join("ciel_ordered.h")).unwrap();
    let code = text
        .split("/*")
        .map(|part| part.split_once("*/").map_or(part, |(_, code)| code))
        .collect::<String>();
    let calls = code.split('(').filter_map(|before| {
        let begin = before.rfind(|c: char| !c.is_alphanumeric() && c != '_');
        let name = &before[begin.map_or(0, |at| at + 1)..];
        name.starts_with("ciel_ordered_").then(|| name.to_owned())
    });
    calls.collect()
}

#[test]
fn library_exports_what_the_header_declares_and_nothing_else() {
    if !has("nm", "binutils") {
        return skipped("there is no nm, of the package binutils");
    }
    let mut command = Command::new("nm");
    command.args(["-D", "--defined-only"]);
    let output = run(command.arg(library().join("libciel_ordered.so")));
    let text = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .map(str::to_owned)
        .collect();
    assert_eq!(exported, declared());
    assert!(exported.len() > 20, "{exported:?}");
}
