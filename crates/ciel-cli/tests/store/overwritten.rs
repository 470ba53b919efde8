//! Tasks that try to change what others have made.

use crate::support::{Place, skipped};

/// A task overwrites its input in place, and others read the same input after it.
const JOB: &str = "make = {\"command\": \"yes as made | head -c 2000\"};\n\
    first = spawn_exec(\"shell\", make, 1)[0];\n\
    bad = spawn_exec(\"shell\", {\"command\": \"echo > {out.done}; chmod u+w {in.text}; \
    (echo changed > {in.text}) 2> refused || echo refused; rm -f {in.text} || echo kept\", \
    \"inputs\": {\"text\": first}, \"outputs\": [\"done\"]}, 1)[0];\n\
    x = text(bad);\n\
    again = spawn_exec(\"shell\", {\"command\": \"head -n1 {in.text}\", \
    \"inputs\": {\"text\": first}}, 1)[0];\nprint(text(again));\n";

#[test]
fn root_cannot_overwrite_the_input_of_a_task_in_place() {
    if !rustix::process::geteuid().is_root() {
        return skipped(
            "root_cannot_overwrite",
            "permissions protect the files of other users",
        );
    }
    let place = Place::new();
    let ended = place.script(&["-q", "-j1"], JOB);
    if !place.read("refused").contains("Read-only file system") {
        return skipped("root_cannot_overwrite", "no mounts may be made here");
    }
    assert_eq!(
        ended.stdout, "refused\nkept\nas made\n\n",
        "{}",
        ended.stderr
    );
}
