//! The example `jitter`: every mode, with the producer and the consumer in processes of their own.

use std::process::Command;

/// The example's program, which is built beside the tests; not if only some of these are built.
fn program() -> Command {
    let tests = std::env::current_exe().unwrap();
    let folder = tests.parent().and_then(|deps| deps.parent()).unwrap();
    let program = folder.join("examples/jitter");
    if !program.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--example", "jitter"]);
        cargo.arg("--target-dir").arg(folder.parent().unwrap());
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
    }
    Command::new(program)
}

#[test]
fn jitter_counts_every_byte_in_each_mode_within_one_store_and_between_two() {
    let output = program().args(["0", "1000003"]).output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    let rows = String::from_utf8(output.stdout).unwrap();
    let mut lines = rows.lines();
    assert_eq!(lines.next(), Some("mode\tstores\tbytes\tseconds"));
    let modes = [
        "no_stream",
        "overlap",
        "indirect_file",
        "indirect_pipe",
        "indirect_tcp",
        "direct",
    ];
    for bytes in ["0", "1000003"] {
        for mode in modes {
            for stores in ["1", "2"] {
                let row = lines.next().expect("a row for each");
                assert!(
                    row.starts_with(&format!("{mode}\t{stores}\t{bytes}\t")),
                    "{row}"
                );
            }
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn jitter_of_a_size_that_is_none_fails_and_says_so() {
    let output = program().arg("many").output().unwrap();
    assert!(!output.status.success());
    let talk = String::from_utf8(output.stderr).unwrap();
    let expected = "jitter: \"many\" is not a number of bytes: invalid digit found in string\n";
    assert_eq!(talk, expected);
}
