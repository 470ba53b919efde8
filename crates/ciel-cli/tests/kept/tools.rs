//! Programs whose identity a command asks to count: which change reruns it, and what it says.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::compared::foretold;
use super::{expect, ran};
use crate::support::Place;

/// A command with these arguments beside its text, and three programs of which it runs one that is
/// a script for another.
fn job(arguments: &str) -> Place {
    let place = Place::new();
    fs::create_dir(place.path("bin")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", place.path("bin").display());
    let place = place.with_variable("PATH", &path);
    place.file(
        "job.sw",
        format!(
            "include \"grab\";\nreturn text(spawn_exec(\"shell\", {{\"command\": \"echo ran tool \
             >&2; LEVEL=1 tool {{in.text}} | cat\", \"inputs\": {{\"text\": \"x\"}}{arguments}}}, \
             1)[0]);\n"
        ),
    );
    program(&place, "tool", "#!/usr/bin/env runner\necho $1 one\n");
    program(&place, "runner", "#!/bin/sh\nexec sh \"$@\"\n");
    program(&place, "other", "#!/bin/sh\n");
    place
}

fn program(place: &Place, name: &str, text: &str) {
    let path = place.file(&format!("bin/{name}"), text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs it again, and expects that it ran for that reason, as foretold; or that it did not.
fn again(place: &Place, reason: Option<&str>) {
    let told = foretold(place, &["--kept"]).to_string();
    let ended = place.run(&["run", "--kept", "job.sw"]);
    match reason {
        None => expect(&ended, 0, &[]),
        Some(reason) => {
            assert_eq!(ran(&ended), ["tool"], "{}", ended.stderr);
            assert!(ended.stderr.contains(reason), "{}", ended.stderr);
            assert!(told.contains(reason), "{told}");
        }
    }
}

#[test]
fn edit_of_a_tool_reruns_commands_that_ask_for_it_and_is_named() {
    let place = job(", \"tools\": true");
    expect(&place.run(&["run", "job.sw"]), 0, &["tool"]);
    again(&place, None);
    program(&place, "tool", "#!/usr/bin/env runner\necho $1 two\n");
    again(&place, Some("tool changed: tool"));
    program(&place, "tool", "#!/usr/bin/env runner\necho $1 two\n");
    again(&place, None);
    program(&place, "runner", "#!/bin/sh\nexec sh -e \"$@\"\n");
    again(&place, Some("tool changed: runner"));
    program(&place, "other", "#!/bin/sh\ntrue\n");
    again(&place, None);
}

#[test]
fn tool_that_is_found_elsewhere_in_the_path_is_another() {
    let place = job(", \"tools\": true");
    expect(&place.run(&["run", "job.sw"]), 0, &["tool"]);
    fs::create_dir(place.path("new")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let folder = |name: &str| place.path(name).display().to_string();
    let path = format!("{}:{}:{path}", folder("new"), folder("bin"));
    let place = place.with_variable("PATH", &path);
    again(&place, None);
    program(&place, "../new/tool", "#!/bin/sh\necho $1 three\n");
    again(&place, Some("tool changed: "));
}

#[test]
fn tools_of_a_list_count_alone_also_when_they_come() {
    let place = job(", \"tools\": [\"other\", \"missing\"]");
    expect(&place.run(&["run", "job.sw"]), 0, &["tool"]);
    program(&place, "tool", "#!/usr/bin/env runner\necho $1 two\n");
    again(&place, None);
    program(&place, "other", "#!/bin/sh\ntrue\n");
    again(&place, Some("tool changed: other"));
    program(&place, "missing", "#!/bin/sh\n");
    again(&place, Some("tool changed: missing"));
}

#[test]
fn tools_do_not_count_unless_a_command_asks_for_it() {
    let place = job("");
    expect(&place.run(&["run", "job.sw"]), 0, &["tool"]);
    program(&place, "tool", "#!/usr/bin/env runner\necho $1 two\n");
    again(&place, None);
}

#[test]
fn tools_that_are_neither_true_nor_names_or_are_in_a_container_are_refused() {
    let place = job(", \"tools\": \"tool\"");
    let ended = place.run(&["run", "job.sw"]);
    let told = "its argument \"tools\" must be true or a list of programs, not \"tool\"";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    let place = job(", \"tools\": true, \"container\": \"run image\"");
    let ended = place.run(&["run", "job.sw"]);
    let told = "it has both \"tools\" and \"container\"";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}
