//! `ciel run --trace`: what the file holds, whatever becomes of the run.

use crate::support::{Folder, Running, shows, wait_until};
use crate::trace_check::{Shown, read};

/// Scripts, commands and waits.
const MIXED: &str = "function part(n) {\n\
    x = spawn_exec(\"shell\", {\"command\": \"echo \" + str(n)}, 1);\n\
    return len(text(x[0]));\n}\n\
    function sum(all) { total = 0; for (one in all) { total += *one; } return total; }\n\
    all = [];\nfor (i in range(4)) { all += spawn(part, [i]); }\nreturn *spawn(sum, [all]);\n";

fn count(shown: &Shown, group: &str) -> usize {
    let slices = shown.slices.iter();
    slices.filter(|(_, _, of)| of == group).count()
}

#[test]
fn trace_shows_scripts_commands_waits_and_arrows() {
    let folder = Folder::with_job(MIXED);
    let ended = folder.ciel(&["run", "-q", "-j2", "--trace", "run.json", "job.sw"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "8\n"),
        "{}",
        ended.stderr
    );
    let shown = read(&folder.read("run.json"));
    assert_eq!(count(&shown, "commands"), 4);
    // The job, four parts and the sum; those that waited have several slices.
    assert!(count(&shown, "scripts") >= 6, "{shown:?}");
    assert_eq!(shown.arrows, 9);
    assert!(shown.waits > 0, "{shown:?}");
    let rows: std::collections::BTreeSet<_> = shown.slices.iter().map(|slice| &slice.1).collect();
    assert!(rows.len() <= 2, "more rows than slots: {rows:?}");
}

#[test]
fn trace_of_a_failed_job_is_whole_and_replaces_an_earlier_one() {
    let folder = Folder::with_job("function no() { throw \"no\"; }\nreturn *spawn(no) + 1;\n");
    for options in [["--serial"], ["-j2"]] {
        let words = [
            &["run", "-q", "--trace", "run.json"][..],
            &options,
            &["job.sw"],
        ]
        .concat();
        assert_eq!(folder.ciel(&words).code, Some(1));
        let shown = read(&folder.read("run.json"));
        assert_eq!(shown.ends, ["failed", "failed"]);
    }
}

#[test]
fn trace_of_an_interrupted_run_is_whole() {
    let script = "x = spawn_exec(\"shell\", {\"command\": \"echo $$ > begun; sleep 600\"}, 1);\n\
        return text(x[0]);\n";
    let folder = Folder::with_job(script);
    let words = ["run", "-q", "--trace", "run.json", "job.sw"];
    let running = Running::start(folder.command(&words));
    folder.wait_for_line("begun");
    running.signal(rustix::process::Signal::INT);
    assert_eq!(folder.ended(running.take()).code, Some(130));
    let shown = read(&folder.read("run.json"));
    assert_eq!(count(&shown, "commands"), 1);
    assert!(shown.ends.contains(&"cancelled".to_string()), "{shown:?}");
}

/// The trace of a killed process can be opened: only the end of the array is missing.
#[test]
fn trace_of_a_killed_run_lacks_its_end_only() {
    let script = "x = spawn_exec(\"shell\", {\"command\": \"echo $$ > begun; sleep 600\"}, 1);\n\
        return text(x[0]);\n";
    let folder = Folder::with_job(script);
    let words = ["run", "-q", "--trace", "run.json", "job.sw"];
    let running = Running::start(folder.command(&words));
    let has_begun = || folder.path("run.json").exists() && folder.read("run.json").contains("slot");
    folder.wait_for_line("begun");
    wait_until("the trace tells of the command", has_begun);
    running.signal(rustix::process::Signal::KILL);
    assert_eq!(folder.ended(running.take()).code, None);
    let text = format!("{}\n]", folder.read("run.json"));
    let lines: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert!(lines.len() > 3, "{text}");
}

#[test]
fn file_that_is_no_trace_or_cannot_be_written_is_refused_before_anything_runs() {
    let folder = Folder::with_job("return 1;");
    folder.write("letter.txt", "Dear Sir");
    shows!(
        "trace_other",
        folder.ciel(&["run", "--trace", "letter.txt", "job.sw"])
    );
    assert_eq!(folder.read("letter.txt"), "Dear Sir");
    shows!(
        "trace_open",
        folder.ciel(&["run", "--trace", "no/such/folder.json", "job.sw"])
    );
    let ended = folder.ciel(&["run", "--trace", "job.sw", "job.sw"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(!folder.path(".ciel/runs").exists());
}

#[test]
fn resumed_run_is_traced_from_there() {
    let script = "x = spawn_exec(\"shell\", {\"command\": \"echo $$ > begun; cat pipe\"}, 1);\n\
        return text(x[0]);\n";
    let folder = Folder::with_job(script);
    folder.pipe("pipe");
    let running = Running::start(folder.command(&["run", "-q", "job.sw"]));
    folder.wait_for_line("begun");
    running.signal(rustix::process::Signal::KILL);
    assert_eq!(folder.ended(running.take()).code, None);
    std::fs::remove_file(folder.path("begun")).unwrap();
    let words = ["resume", "-q", "--trace", "run.json"];
    let running = Running::start(folder.command(&words));
    folder.wait_for_line("begun");
    folder.write("pipe", "fed");
    assert_eq!(folder.ended(running.take()).stdout, "\"fed\"\n");
    assert_eq!(count(&read(&folder.read("run.json")), "commands"), 1);
}
