//! What is installed is found by pkg-config, and linked statically and dynamically.

use std::path::Path;
use std::process::Command;

use crate::support::{Place, can_compile, has, library, repository, run, skipped};

fn words_of_pkg_config(prefix: &Path, options: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let output = run(command.args(options).arg("ciel_ordered"));
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

fn build(place: &Place, prefix: &Path, program: &Path, libraries: &[String]) {
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-D_XOPEN_SOURCE=700", "-pthread"]);
    command.args(words_of_pkg_config(prefix, &["--cflags"]));
    command.arg(repository().join("examples/ordered/pthreads.c"));
    run(command.arg("-o").arg(program).args(libraries));
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", prefix.join("lib"));
    run(command.args(["2", "log", "1"]).current_dir(place.path("")));
    assert_eq!(place.text("log"), "thread 0 line 0\nthread 1 line 0\nend\n");
}

#[test]
fn installed_library_links_statically_and_dynamically() {
    if !can_compile() {
        return;
    }
    if !has("pkg-config", "pkg-config") {
        return skipped("there is no pkg-config");
    }
    let place = Place::new();
    let prefix = place.path("prefix");
    let mut command = Command::new(repository().join("scripts/install_c"));
    run(command.arg(library()).arg(&prefix));
    let shared = words_of_pkg_config(&prefix, &["--libs"]);
    build(&place, &prefix, &place.path("shared"), &shared);
    let whole = words_of_pkg_config(&prefix, &["--libs", "--static"]);
    let archive = prefix.join("lib/libciel_ordered.a");
    let archive = || archive.to_str().unwrap().to_owned();
    let is_own = |word: &str| word == "-lciel_ordered";
    let whole = whole
        .into_iter()
        .map(|word| if is_own(&word) { archive() } else { word });
    let program = place.path("static");
    build(&place, &prefix, &program, &whole.collect::<Vec<_>>());
    let output = run(Command::new("ldd").arg(&program));
    let needed = String::from_utf8(output.stdout).unwrap();
    assert!(!needed.contains("ciel_ordered"), "{needed}");
}
