//! Standard output and standard error: two streams, or one where both are the same.

use std::fs::File;
use std::io::Read;

use super::support::Place;
use super::{command, fifos, may_intercept, ordered};

/// A parent whose child writes last, to both, and belongs first.
const SCRIPT: &str = "(read x < gate; echo a; echo b >&2; echo c) & \
                      echo d; echo e >&2; echo f; echo > gate; wait";

fn place(test: &str) -> Option<Place> {
    let place = Place::new();
    fifos(&place, &["gate".to_string()]);
    may_intercept(test).then_some(place)
}

#[test]
fn output_and_errors_in_two_places_are_each_in_serial_order() {
    let Some(place) = place("output_and_errors_in_two_places") else {
        return;
    };
    let output = ordered(&place, &["--", "sh", "-c", SCRIPT]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\nc\nd\nf\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "b\ne\n");
}

/// "If both are the same file, pipe or terminal, they are one stream, and keep their order among
/// each other as well."
#[test]
fn output_and_errors_in_one_file_or_pipe_keep_their_order_among_each_other() {
    let Some(place) = place("output_and_errors_in_one_file_or_pipe") else {
        return;
    };
    let mut command = command(&place, &["--", "sh", "-c", SCRIPT]);
    let file = File::create(place.path("both")).unwrap();
    command.stdout(file.try_clone().unwrap()).stderr(file);
    assert!(command.status().unwrap().success());
    assert_eq!(place.read("both"), "a\nb\nc\nd\ne\nf\n");

    let (mut reader, writer) = std::io::pipe().unwrap();
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut both = String::new();
    reader.read_to_string(&mut both).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(both, "a\nb\nc\nd\ne\nf\n");
}
