//! A run in which nothing can happen any more, because the engine has lost a task.

use crate::support::{Live, Place, task};
use crate::{expect_told, expect_well};

#[test]
fn run_that_lost_a_task_ends_with_a_report_and_can_be_resumed() {
    // After a failed replay a job stood for ever: nothing ran, nothing was ready, no signal ended
    // the process, and nothing said what it was waiting for.
    let place = Place::new();
    let named = |name: &str| {
        task(
            &format!("printf {name}"),
            &format!("{{\"name\": \"{name}\"}}"),
        )
    };
    place.file(
        "job.sw",
        format!(
            "print(\"begun\"); print(text({})); print(text({}));",
            named("first"),
            named("second")
        ),
    );
    let run = |loses: &str| {
        let mut command = place.command();
        command
            .args(["run", "-q", "job.sw"])
            .env("CIEL_LOSES", loses);
        Live::start(command).end()
    };
    let stalled = run("second");
    let words = [
        "the run has stalled",
        "nothing runs and nothing is ready, but 2 tasks have not ended",
        "job@",
        "waiting for second@",
        "running",
        "ciel resume",
    ];
    expect_told(&stalled, 1, &words);
    assert!(place.run(&["runs"]).stdout.contains("can be resumed"));
    expect_well(&run(""), "begun\nfirst\nsecond\n");
}
