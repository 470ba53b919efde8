//! Tasks that differ when they are rerun after a kill: the job fails and names the difference, and
//! the command ends.

use std::fs;

use crate::broken_off::{only_run, run_folder};
use crate::expect_told;
use crate::support::{Place, held, task, until_true};

/// A killed script whose first task gives other bytes each time it runs, and whose second task was
/// spawned from them; the file of the first result is changed by `damage` before the resume.
fn resumed_after(damage: impl Fn(&std::path::Path)) -> crate::support::Ended {
    let place = Place::new();
    let gate = place.gate("gate");
    let random = task("head -c 3000 /dev/urandom | base64 -w 0", "{}");
    let second = format!("\": > started; {}; echo \" + text(a)", held("gate"));
    let live = place.start_script(
        &["-j2"],
        &format!(
            "a = {random};
             b = spawn_exec(\"shell\", {{\"command\": {second}}}, 1,
                            {{\"name\": \"second\"}})[0];
             print(len(text(b))); return \"end\";"
        ),
    );
    place.await_file("started");
    // A task may begin before the disk has the record of its spawn.
    until_true("the second spawn is recorded", || {
        let journal = place.start(&["journal"]).end();
        journal.stdout.contains(" spawned second@")
    });
    live.signal("KILL");
    live.end();
    place.await_nobody();
    let objects = run_folder(&place, ".ciel", &only_run(&place, ".ciel")).join("objects");
    for object in fs::read_dir(objects).unwrap() {
        damage(&object.unwrap().path());
    }
    gate.release(2);
    place.run(&["run", "job.sw"])
}

/// The graph had failed the script in the middle of its batch of events, and the script was
/// suspended all the same, as one that waits: it kept its slot, and the resumed job hung for ever.
#[test]
fn script_that_spawns_something_else_on_replay_ends_the_resumed_job() {
    let ended = resumed_after(|object| fs::remove_file(object).unwrap());
    let differs = "it spawned second at";
    let what = "with another \"command\" than before among its arguments";
    expect_told(&ended, 1, &["NonDeterministic", "job", differs, what]);
}
