//! The page about output.

use crate::support::{Place, done, held, shell};

/// "The standard error of tasks is shown as it comes, whole lines, each with the task it came
/// from": a line that one command writes in two parts, and a line of another one between them.
#[test]
fn line_of_standard_error_is_shown_whole_with_its_task() {
    let place = Place::new();
    let [before, after] = ["before", "after"].map(|name| place.gate(name));
    let parted = format!(
        "printf be >&2; {}; {}; echo gin >&2; echo 1",
        done("parted"),
        held("after")
    );
    let whole = format!(
        "{}; echo between >&2; {}; echo 2",
        held("before"),
        done("whole")
    );
    let script = format!(
        "first = {}; second = {}; return *first + *second;",
        shell(&parted),
        shell(&whole)
    );
    let live = place.start_script(&["-q", "-j2"], &script);
    place.await_file("parted");
    before.release(1);
    place.await_file("whole");
    after.release(1);
    let ended = live.end();
    assert_eq!(ended.stdout, "3\n", "{}", ended.stderr);
    let mut lines: Vec<&str> = ended.stderr.lines().collect();
    lines.sort_by_key(|line| line.contains("between"));
    let task_of = |line: &str, text: &str| {
        let tag = line.strip_suffix(text)?.strip_prefix('[')?;
        tag.strip_suffix("] ").map(str::to_string)
    };
    let [begin, between] = lines[..] else {
        panic!("{}", ended.stderr);
    };
    let (begin, between) = (task_of(begin, "begin"), task_of(between, "between"));
    assert!(begin.is_some() && between.is_some(), "{}", ended.stderr);
    assert_ne!(begin, between);
}
