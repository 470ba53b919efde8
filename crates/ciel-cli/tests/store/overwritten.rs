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

/// Where the file of an input can be written to in spite of what protects it: not through the
/// mounts that tasks see, but as the engine sees it, whose child is their parent.
const UNPROTECTED: &str = "/proc/$(sed -n 's/^PPid:.//p' /proc/$PPID/status)/root";

/// A command that does that to its input, and then says that it is done; a second one reads that.
fn job_that(does: &str) -> String {
    let does =
        format!("chmod u+w INPUT; {does}").replace("INPUT", &format!("{UNPROTECTED}{{in.text}}"));
    format!(
        "made = spawn_exec(\"shell\", {{\"command\": \"yes as made | head -c 2000\"}}, 1)[0];\n\
         before = spawn_exec(\"shell\", {{\"command\": \"wc -c < {{in.text}}\", \
         \"inputs\": {{\"text\": made}}}}, 1)[0];\nx = text(before);\n\
         bad = spawn_exec(\"shell\", {{\"command\": \"{does}; echo done\", \
         \"inputs\": {{\"text\": made}}}}, 1, {{\"name\": \"bad\"}})[0];\nx = text(bad);\n\
         after = spawn_exec(\"shell\", {{\"command\": \"wc -c < {{in.text}}\", \
         \"inputs\": {{\"text\": made}}}}, 1)[0];\nreturn int(text(after));\n"
    )
}

/// A task of root overwrote its input where no mount protected it, and every later reader got other
/// bytes than those that were made.
#[test]
fn command_that_overwrites_its_input_in_place_fails_by_name() {
    let place = Place::new();
    place.file("other", "not made ".repeat(300));
    for does in [
        "echo changed > INPUT",
        "head -c 2000 other > INPUT",
        "printf X | dd of=INPUT bs=1 seek=7 conv=notrunc",
        "rm -f INPUT",
    ] {
        for durable in ["process", "never"] {
            let ended = place.script(&["--new", "--durable", durable], &job_that(does));
            assert_eq!(ended.code, Some(1), "{does}: {}", ended.stdout);
            assert_eq!(ended.stdout, "", "{does}");
            for part in [
                "error: bad@",
                "its input \"text\" was overwritten or removed while it ran",
                "hint: the file of a result must stay as it is",
            ] {
                assert!(
                    ended.stderr.contains(part),
                    "{does}: {part}: {}",
                    ended.stderr
                );
            }
        }
    }
}

/// The first task that ended after the overwriting failed, and the object was not known any more;
/// others that had read other bytes meanwhile ended well, and their results were kept.
#[test]
fn every_command_that_read_an_overwritten_input_meanwhile_fails() {
    let job = format!(
        "made = spawn_exec(\"shell\", {{\"command\": \"yes as made | head -c 2000\"}}, 1)[0];\n\
         x = text(made);\n\
         bad = spawn_exec(\"shell\", {{\"command\": \"until test -e begun; do sleep 0.01; done; \
         F={UNPROTECTED}{{in.text}}; chmod u+w $F; printf X | dd of=$F bs=1 seek=7 conv=notrunc\", \
         \"inputs\": {{\"text\": made}}}}, 1, {{\"name\": \"bad\"}})[0];\n\
         reader = spawn_exec(\"shell\", {{\"command\": \"exec 3< {{in.text}}; echo > begun; \
         while test {{in.text}} -ef /dev/fd/3; do sleep 0.01; done; echo read\", \
         \"inputs\": {{\"text\": made}}}}, 1, {{\"name\": \"reader\"}})[0];\n\
         print(text(reader));\n"
    );
    for durable in ["process", "never"] {
        let place = Place::new();
        let ended = place.script(&["-k", "-j2", "--durable", durable], &job);
        assert_eq!(
            (ended.code, &*ended.stdout),
            (Some(1), ""),
            "{}",
            ended.stderr
        );
        let failed = |name: &str| {
            let lines = ended.stderr.lines().filter(|line| line.contains(name));
            lines
                .filter(|line| line.contains("its input \"text\" was overwritten"))
                .count()
        };
        assert_eq!(
            [failed("bad@"), failed("reader@")],
            [1, 1],
            "{}",
            ended.stderr
        );
    }
}

/// The bytes are what counts.
#[test]
fn command_that_writes_the_same_bytes_to_its_input_is_forgiven_in_a_recorded_run() {
    let place = Place::new();
    let ended = place.script(&[], &job_that("yes as made | head -c 2000 > INPUT"));
    assert_eq!(ended.stdout, "2000\n", "{}", ended.stderr);
}

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
