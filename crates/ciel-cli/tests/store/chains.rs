//! Intermediate objects go as soon as nothing can read them.

use crate::support::programs::{python, runs_python};
use crate::support::{Ended, Place};
use crate::{MIB, ending, expect_balance};

/// Bytes of each object of a chain.
const EACH: u64 = 10 * MIB;

/// Objects of a chain.
const LINKS: u64 = 12;

/// Objects that may be present at once: what a task reads, what it makes, and one that goes as soon
/// as that is recorded.
const AT_ONCE: u64 = 4;

/// All of the chain was made, and little of it was there at once.
fn expect_few(ended: &Ended) {
    expect_few_of(ended, EACH);
}

/// The same of objects of so many bytes.
fn expect_few_of(ended: &Ended, each: u64) {
    let end = ending(ended);
    assert_eq!(end["well"], true, "{}", ended.stderr);
    let store = &end["store"];
    expect_balance(store);
    let made = store["made_bytes"].as_u64().unwrap();
    let peak = store["peak_bytes"].as_u64().unwrap();
    assert!(made >= LINKS * each, "{store}");
    assert!(peak <= AT_ONCE * (each + MIB), "{store}");
}

#[test]
fn long_chain_of_commands_has_few_files_at_once() {
    let job = "function link(n, text) {\n\
        if (n == 0) { return text; }\n\
        next = spawn_exec(\"shell\", {\"command\": \"tr ab ba < {in.text}\", \
        \"inputs\": {\"text\": text}}, 1)[0];\n\
        return *spawn(link, [n - 1, next]);\n}\n\
        first = spawn_exec(\"shell\", {\"command\": \"yes ab | head -c 10M\"}, 1)[0];\n\
        last = *spawn(link, [11, first]);\n\
        size = spawn_exec(\"shell\", {\"command\": \"wc -c < {in.text}\", \
        \"inputs\": {\"text\": last}}, 1)[0];\n\
        return int(text(size));\n";
    for options in [&["--json"][..], &["--json", "--durable", "never"]] {
        let ended = Place::new().script(options, job);
        assert_eq!(ended.stdout, "10485760\n", "{}", ended.stderr);
        expect_few(&ended);
    }
}

#[test]
fn long_chain_of_python_tasks_has_few_objects_at_once() {
    if !runs_python("long_chain_of_python_tasks", "") {
        return;
    }
    let job = "import ciel\n\n\n\
        @ciel.task\ndef first() -> bytes:\n    return bytes(10 << 20)\n\n\n\
        @ciel.task\ndef link(data: bytes) -> bytes:\n    return data[1:] + data[:1]\n\n\n\
        def main() -> int:\n    data = first.spawn()\n    for _ in range(11):\n        \
        data = link.spawn(data)\n    return len(data.result())\n";
    let place = Place::new();
    place.file("job.py", job);
    let interpreter = python().display().to_string();
    let ended = place.run(&["run", "--json", "--python", &interpreter, "job.py"]);
    assert_eq!(ended.stdout, "10485760\n", "{}", ended.stderr);
    expect_few(&ended);
}

#[test]
fn long_chain_of_script_tasks_has_few_objects_at_once() {
    let job = "function first() {\n    s = \"0123456789\";\n    \
        for (i in range(20)) { s = s + s; }\n    return s;\n}\n\
        function link(s) { return \"\" + *s; }\n\
        s = spawn(first);\nfor (i in range(11)) { s = spawn(link, [s]); }\nreturn len(*s);\n";
    let ended = Place::new().script(&["--json"], job);
    assert_eq!(ended.stdout, "10485760\n", "{}", ended.stderr);
    expect_few(&ended);
}

/// The first function ran in place, with one slot always, until its result was too large for that.
/// What it left behind hid that the script named only the last one, for which it waited: it held
/// all of the results before, and with it some hundred values of its own did the same.
#[test]
fn script_that_waits_for_a_chain_begun_in_place_has_few_objects_at_once() {
    let job = "function first() {\n    s = \"0123456789\";\n    \
        for (i in range(18)) { s = s + s; }\n    return s;\n}\n\
        function link(s) { return \"\" + *s; }\n\
        some = [];\nfor (i in range(300)) { some += [[i]]; }\n\
        s = spawn(first);\nfor (i in range(11)) { s = spawn(link, [s]); }\n\
        return len(*s) + len(some);\n";
    for slots in ["-j1", "-j2"] {
        let ended = Place::new().script(&["--json", slots], job);
        assert_eq!(ended.stdout, "2621740\n", "{}", ended.stderr);
        expect_few_of(&ended, 10 << 18);
    }
}

/// A script that had spawned up to 64 tasks held all of their results until its end, however
/// large, although its variables named one of them.
#[test]
fn loop_of_a_script_holds_what_its_variables_name() {
    let job = "function again(text) {\n\
        return spawn_exec(\"shell\", {\"command\": \"tr ab ba < {in.text}\", \
        \"inputs\": {\"text\": text}}, 1)[0];\n}\n\
        function bytes(text) {\n\
        return int(text(spawn_exec(\"shell\", {\"command\": \"wc -c < {in.text}\", \
        \"inputs\": {\"text\": text}}, 1)[0]));\n}\n\
        last = spawn_exec(\"shell\", {\"command\": \"yes ab | head -c 10M\"}, 1)[0];\n\
        for (i in range(11)) { last = again(last); bytes(last); }\nreturn bytes(last);\n";
    let job = job
        .replace("bytes(text)", "bytes(of)")
        .replace("\"text\": text}}, 1)[0]));", "\"text\": of}}, 1)[0]));");
    let ended = Place::new().script(&["--json"], &job);
    assert_eq!(ended.stdout, "10485760\n", "{}", ended.stderr);
    expect_few(&ended);
}
