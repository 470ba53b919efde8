//! What a kept command appended to ordered files is appended again at its place.

use std::fs;

use crate::support::Place;
use crate::{expect, sample};

/// Two commands that append to two files, with a line of the script between them.
const SCRIPT: &str = r#"
include "grab";
function logged(name) {
    return spawn_exec("shell", {
        "command": "echo ran log {name} >&2; cat {in} >&{log}; echo {name} >&{names}; date > {out}",
        "inputs": {"in": ref(name), "name": name}, "outputs": ["out"],
        "appends": {"log": "log", "names": "names"}}, 1)[0];
}
one = logged("a");
append("log", "between\n");
two = logged("b");
return [text(one), text(two)];
"#;

/// A command that appends to files was rerun in each run: these passed for inputs, which had
/// changed, and of what it appended only a kibibyte could be kept.
#[test]
fn lines_that_a_kept_command_appended_are_in_its_files_again() {
    let place = Place::new();
    for (name, lines) in [("a", 3), ("b", 1)] {
        place.file(name, sample(name, lines));
    }
    place.file("job.sw", SCRIPT);
    let first = place.run(&["run", "--kept", "job.sw"]);
    expect(&first, 0, &["log a", "log b"]);
    let files = ["log", "names"].map(|name| place.read(name));
    assert_eq!(files[0], sample("a", 3) + "between\n" + &sample("b", 1));
    assert_eq!(files[1], "a\nb\n");
    for again in [true, false] {
        // Files that are gone are rewritten; those that are there are compared.
        if again {
            for name in ["log", "names"] {
                fs::remove_file(place.path(name)).unwrap();
            }
        }
        let taken = place.run(&["run", "--kept", "job.sw"]);
        expect(&taken, 0, &[]);
        assert_eq!(taken.stdout, first.stdout);
        assert_eq!(["log", "names"].map(|name| place.read(name)), files);
    }
}
