//! Results kept across runs: after a failure, a kill or an edit only what changed runs again, each
//! task that runs says why, and what is damaged is never used.
//!
//! Commands tell on standard error that they ran, which no result depends on. Read first:
//! `support`; then `appended`, `carrying`, `cleaning`, `compared`, `functions`, `known`, `random`,
//! `sharing`, `tools`, `twice`, `unkept`.

mod appended;
mod carrying;
mod cleaning;
mod compared;
mod functions;
mod known;
mod random;
mod sharing;
#[path = "../support/mod.rs"]
mod support;
mod tools;
mod twice;
mod unkept;

use std::fs;
use std::path::PathBuf;

use support::{Ended, Place};

/// A pipeline over three samples: each is sorted and counted, and all counts are joined.
const PIPELINE: &str = r#"
function lines(sample) {
    sorted = spawn_exec("shell", {
        "command": "echo ran sort {sample} >&2; echo sorting {sample}; sort {in.text} > {out.text}",
        "inputs": {"text": ref(sample), "sample": sample}, "outputs": ["text"]}, 1)[0];
    return spawn_exec("shell", {
        "command": "echo ran count {sample} >&2; wc -l < {in.text}",
        "inputs": {"text": sorted, "sample": sample}}, 1)[0];
}
counts = [];
for (sample in ["a", "b", "c"]) { counts += lines(sample); }
joined = spawn_exec("shell", {
    "command": "echo ran join >&2; test ! -e broken; cat {a} {b} {c} | tr -d '\\n'",
    "inputs": {"a": counts[0], "b": counts[1], "c": counts[2]}, "shell": "strict"}, 1)[0];
return text(joined);
"#;

const OUTPUT: &str = "sorting a\nsorting b\nsorting c\n\"323\"\n";

/// A place with the pipeline and its samples, all of which are longer than what stays in memory.
fn pipeline() -> Place {
    let place = Place::new();
    for (name, lines) in [("a", 3), ("b", 2), ("c", 3)] {
        place.file(name, sample(name, lines));
    }
    place.file("job.sw", format!("include \"grab\";\n{PIPELINE}"));
    place
}

fn sample(name: &str, lines: usize) -> String {
    format!("{}\n", name.repeat(900)).repeat(lines)
}

/// What ran, in order of its words.
fn ran(ended: &Ended) -> Vec<String> {
    let lines = ended.stderr.lines();
    let told = lines.filter_map(|line| line.split_once("] ran ").map(|(_, what)| what.to_string()));
    let mut ran: Vec<String> = told.collect();
    ran.sort();
    ran
}

const ALL: [&str; 7] = [
    "count a", "count b", "count c", "join", "sort a", "sort b", "sort c",
];

fn expect(ended: &Ended, code: i32, ran_now: &[&str]) {
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    assert_eq!(ran(ended), ran_now, "{}", ended.stderr);
}

/// The pipeline after a run of it that failed at its last step.
fn failed_pipeline() -> Place {
    let place = pipeline();
    place.file("broken", "");
    expect(&place.run(&["run", "job.sw"]), 1, &ALL);
    place
}

#[test]
fn failed_run_goes_on_with_all_that_had_ended() {
    let place = failed_pipeline();
    fs::remove_file(place.path("broken")).unwrap();
    let ended = place.run(&["run", "job.sw"]);
    expect(&ended, 0, &["join"]);
    assert_eq!(ended.stdout, OUTPUT);
    let summary = "6 of 7 kept; echo: never finished";
    assert!(ended.stderr.contains(summary), "{}", ended.stderr);
}

#[test]
fn edit_of_one_thing_reruns_what_depends_on_it_and_says_why() {
    type Edit = (
        &'static str,
        fn(&Place),
        &'static [&'static str],
        &'static str,
    );
    let edits: &[Edit] = &[
        ("nothing", |_| (), &[], "7 of 7 kept"),
        (
            "a comment",
            |place| edit(place, "counts = [];", "// All of them.\n\ncounts = [];"),
            &[],
            "7 of 7 kept",
        ),
        (
            "a name",
            |place| {
                let text = place.read("job.sw").replace("lines(", "lengths(");
                place.file("job.sw", text);
            },
            &[],
            "7 of 7 kept",
        ),
        (
            "a command",
            |place| edit(place, "tr -d '\\\\n'", "tr -d ' \\\\n'"),
            &["join"],
            "6 of 7 kept; echo: argument changed: command",
        ),
        (
            "a command whose result stays the same",
            |place| edit(place, "sort {in.text}", "sort < {in.text}"),
            &["sort a", "sort b", "sort c"],
            "4 of 7 kept; echo: argument changed: command (3 tasks)",
        ),
        (
            "a data file",
            |place| drop(place.file("b", sample("b", 4))),
            &["count b", "join", "sort b"],
            "4 of 7 kept",
        ),
        (
            "the time of a data file",
            |place| drop(place.file("b", sample("b", 2))),
            &[],
            "7 of 7 kept",
        ),
    ];
    let place = pipeline();
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    for (what, edit, reruns, summary) in edits {
        for name in ["a", "b", "c"] {
            place.file(name, sample(name, if name == "b" { 2 } else { 3 }));
        }
        place.file("job.sw", format!("include \"grab\";\n{PIPELINE}"));
        expect(&place.run(&["run", "--kept", "job.sw"]), 0, &[]);
        edit(&place);
        let ended = place.run(&["run", "--kept", "job.sw"]);
        assert_eq!(ran(&ended), *reruns, "{what}: {}", ended.stderr);
        assert!(ended.stderr.contains(summary), "{what}: {}", ended.stderr);
    }
}

fn edit(place: &Place, before: &str, after: &str) {
    let text = place.read("job.sw");
    assert!(text.contains(before), "{text}");
    place.file("job.sw", text.replace(before, after));
}

#[test]
fn input_that_changed_is_named_by_the_task_that_takes_it() {
    let place = pipeline();
    place.run(&["run", "job.sw"]);
    place.file("b", sample("b", 4));
    let ended = place.run(&["run", "--kept", "job.sw"]);
    for reason in [
        "echo: input changed: b",
        "echo: input changed: text (2 tasks)",
    ] {
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    }
    let told = place.run(&["ps", "--json", "--all"]);
    assert!(told.stdout.contains("input changed: b"), "{}", told.stdout);
}

#[test]
fn run_that_ended_well_computes_again_unless_it_is_told_not_to() {
    let place = pipeline();
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    let kept = place.run(&["run", "--kept", "job.sw"]);
    expect(&kept, 0, &[]);
    assert_eq!(kept.stdout, OUTPUT);
    expect(&place.run(&["run", "--new", "job.sw"]), 0, &ALL);
}

#[test]
fn job_that_asks_for_kept_results_takes_them_unless_the_run_is_a_new_one() {
    let place = pipeline();
    let script = place.read("job.sw");
    place.file("job.sw", format!("// Samples.\n// ciel: kept\n\n{script}"));
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    let foretold = place.run(&["run", "-n", "job.sw"]).stdout;
    assert!(foretold.contains("7 of 7 tasks taken"), "{foretold}");
    expect(&place.run(&["run", "job.sw"]), 0, &[]);
    expect(&place.run(&["run", "--new", "job.sw"]), 0, &ALL);
    expect(&place.run(&["run", "--serial", "job.sw"]), 0, &ALL);
    place.file("job.sw", format!("// ciel: kpet\n{script}"));
    let refused = place.run(&["run", "job.sw"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let told = "line 1 of the job asks for the setting \"kpet\"";
    assert!(refused.stderr.contains(told), "{}", refused.stderr);
}

#[test]
fn task_that_is_marked_is_kept_in_each_run_and_one_that_refuses_in_none() {
    let place = Place::new();
    let task = |word: &str, options: &str| {
        format!(
            "spawn_exec(\"shell\", {{\"command\": \"echo ran {word} >&2; echo {word}\"}}, 1, \
             {{{options}}})[0]"
        )
    };
    let script = format!(
        "print(text({}), text({}), text({}), text({}));",
        task("marked", "\"keep\": true"),
        task("pure", "\"pure\": true"),
        task("refused", "\"keep\": false"),
        task("impure", "\"pure\": false"),
    );
    let first = place.script(&[], &script);
    expect(&first, 0, &["impure", "marked", "pure", "refused"]);
    let second = place.script(&[], &script);
    expect(&second, 0, &["impure", "refused"]);
    assert_eq!(second.stdout, first.stdout);
    expect(
        &place.script(&["--kept"], &script),
        0,
        &["impure", "refused"],
    );
}

#[test]
fn file_that_a_command_names_counts_by_its_content() {
    let place = Place::new();
    let script = "print(text(spawn_exec(\"shell\", {\"command\": \"echo ran it >&2; \
                  wc -l < data; ./tool\"}, 1)[0]));";
    let tool = place.file("tool", "#!/bin/sh\necho one\n");
    fs::set_permissions(tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    place.file("data", "1\n");
    expect(&place.script(&[], script), 0, &["it"]);
    expect(&place.script(&["--kept"], script), 0, &[]);
    place.file("data", "1\n2\n");
    let changed = place.script(&["--kept"], script);
    expect(&changed, 0, &["it"]);
    assert!(
        changed.stderr.contains("input changed: data"),
        "{}",
        changed.stderr
    );
    place.file("tool", "#!/bin/sh\necho two\n");
    let changed = place.script(&["--kept"], script);
    expect(&changed, 0, &["it"]);
    assert_eq!(changed.stdout, "2\ntwo\n\n");
    assert!(
        changed.stderr.contains("input changed: ./tool"),
        "{}",
        changed.stderr
    );
}

#[test]
fn run_killed_and_edited_goes_on_with_all_that_had_ended() {
    let place = pipeline();
    let gate = place.gate("gate");
    let script = place.read("job.sw");
    let held = script.replace("test ! -e broken", "read x < gate");
    place.file("job.sw", &held);
    let live = place.start(&["run", "job.sw"]);
    live.await_error("ran join");
    // The results of all others were due to be kept before the last task could begin to wait long.
    support::until_true("the results are kept", || kept_entries(&place) >= 6);
    live.signal("KILL");
    live.end_of("the killed run");
    gate.release(1);
    place.await_nobody();
    place.file("job.sw", &script);
    let ended = place.run(&["run", "job.sw"]);
    expect(&ended, 0, &["join"]);
    assert_eq!(ended.stdout, OUTPUT);
}

/// How many results are kept, by the index.
fn kept_entries(place: &Place) -> u64 {
    let index = place.path(".ciel/kept");
    let kept = ciel_kept::KeptResults::open(&index);
    kept.and_then(|kept| kept.usage())
        .map_or(0, |usage| usage.entries)
}

#[test]
fn damaged_result_is_not_used_and_recomputed() {
    let place = pipeline();
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    for object in objects(&place) {
        let mut permissions = fs::metadata(&object).unwrap().permissions();
        #[allow(clippy::permissions_set_readonly_false, reason = "a file of this test")]
        permissions.set_readonly(false);
        fs::set_permissions(&object, permissions).unwrap();
        let length = fs::metadata(&object).unwrap().len() as usize;
        fs::write(&object, vec![b'?'; length]).unwrap();
    }
    let ended = place.run(&["run", "--kept", "job.sw"]);
    expect(&ended, 0, &["sort a", "sort b", "sort c"]);
    assert_eq!(ended.stdout, OUTPUT);
    let reason = "echo: kept result damaged (3 tasks)";
    assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    expect(&place.run(&["run", "--kept", "job.sw"]), 0, &[]);
}

#[test]
fn index_that_is_no_index_is_reported_and_the_run_is_whole() {
    let place = pipeline();
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    fs::write(place.path(".ciel/kept/index"), vec![b'x'; 8192]).unwrap();
    let ended = place.run(&["run", "--kept", "job.sw"]);
    expect(&ended, 0, &ALL);
    assert_eq!(ended.stdout, OUTPUT);
    let warning = "no results are kept or taken from now on";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);
}

/// The result of a quick task that is given a large file was often not kept: when the thread of
/// kept results had read what the first task gave, the file was gone, and its digest was not
/// remembered.
#[test]
fn result_of_a_quick_task_with_a_large_input_is_kept() {
    let place = Place::new();
    let script = "large = spawn_exec(\"shell\", {\"command\": \"echo ran large >&2; \
                  head -c 50000000 /dev/zero > {out.x}\", \"outputs\": [\"x\"]}, 1)[0];
                  return text(spawn_exec(\"shell\", {\"command\": \"echo ran quick >&2; \
                  head -c 1 {in.x} | wc -c\", \"inputs\": {\"x\": large}}, 1)[0]);";
    expect(&place.script(&[], script), 0, &["large", "quick"]);
    let ended = place.script(&["--kept"], script);
    expect(&ended, 0, &[]);
    assert_eq!(ended.stdout, "\"1\\n\"\n");
}

#[test]
fn two_runs_share_the_results_while_a_third_evicts() {
    let place = pipeline();
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    place.file(
        "other.sw",
        "return text(spawn_exec(\"shell\", {\"command\": \"echo 1\"}, 1)[0]);",
    );
    for _ in 0..3 {
        let sharing = [
            place.start(&["run", "--kept", "job.sw"]),
            place.start(&["run", "--kept", "job.sw"]),
        ];
        let evicting = place.start(&["run", "--kept", "--keep", "1", "other.sw"]);
        assert_eq!(evicting.end().code, Some(0));
        for live in sharing {
            let ended = live.end();
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            assert_eq!(ended.stdout, OUTPUT);
        }
    }
    place.run(&["run", "--kept", "--keep", "1", "other.sw"]);
    let ended = place.run(&["run", "--kept", "job.sw"]);
    expect(&ended, 0, &ALL);
    assert!(ended.stderr.contains("evicted"), "{}", ended.stderr);
}

/// The files of the objects that are kept.
fn objects(place: &Place) -> Vec<PathBuf> {
    let folders = fs::read_dir(place.path(".ciel/kept/objects")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}
