//! Job packages of the original CIEL: what a script gets, in each mode and when it is resumed.
//!
//! Read first: `support`.

mod support;

use support::{Ended, Place, done, held, shell};

const MODES: [&str; 3] = ["-j1", "-j2", "--serial"];

/// The package of the page, in a folder of its own.
const COUNT: &str = r#"{
    "package": {"main": {"filename": "count.sw"}, "texts": {"filenamelist": {"__args__": 0}}},
    "start": {"handler": "swi", "args": {
        "sw_file_ref": {"__package__": "main"},
        "start_env": {"WORD": {"__args__": 1, "default": "the"}}
    }}
}"#;

const COUNT_SCRIPT: &str = r#"
    count = lambda text: *spawn_exec("shell",
        {"command": "grep -c {word} {text} || :",
            "inputs": {"word": env["WORD"], "text": text}}, 1)[0];
    include "mapreduce";
    return map(count, *package("texts"));"#;

fn count_place() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("job")).unwrap();
    place.file("job/count.pack", COUNT);
    place.file("job/count.sw", COUNT_SCRIPT);
    place.file("a.txt", "the\nthe and\n");
    place.file("b c.txt", "and\nand\nand\n");
    place.file("list.txt", "a.txt\n\nb c.txt\n");
    place
}

#[track_caller]
fn expect(ended: &Ended, stdout: &str) {
    assert_eq!(ended.stdout, stdout, "{}", ended.stderr);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn package_of_the_page_counts_words_of_the_files_of_a_list() {
    let place = count_place();
    for mode in MODES {
        let words = ["run", "-q", mode, "job/count.pack", "list.txt"];
        expect(&place.run(&words), "[2,0]\n");
        let with_word = [&words[..], &["and"]].concat();
        expect(&place.run(&with_word), "[1,3]\n");
    }
}

#[test]
fn package_gives_arguments_variables_files_and_an_index_of_one() {
    let place = Place::new();
    place.file("one.txt", "one");
    let pack = r#"{
        "package": {"main": {"filename": "main.sw"},
            "here": {"filename": {"__args__": 0}, "cwd": true},
            "index": {"filename": "one.txt", "index": true}},
        "start": {"handler": "swi", "args": {"sw_file_ref": {"__package__": "main"},
            "start_args": [7, {"__args__": 0}],
            "start_env": {"A": 1, "HOME": "elsewhere", "B": {"__env__": "NOT_SET", "default": true},
                "P": {"__env__": "PATH"}}}},
        "options": {"scheduler": "tworandom"}, "result": [{"__decode_ref__": "json"}]
    }"#;
    place.file("main.pack", pack);
    let script = r#"list = *package("index");
        return [argv(), env["A"], env["B"], env["HOME"], len(env["P"]) > 0,
            text(package("here")), len(list), text(list[0])];"#;
    place.file("main.sw", script);
    let expected = "[[\"7\",\"one.txt\"],\"1\",\"true\",\"elsewhere\",true,\"one\",1,\"one\"]\n";
    for mode in MODES {
        expect(
            &place.run(&["run", "-q", mode, "main.pack", "one.txt"]),
            expected,
        );
    }
}

/// A long index is a file of the run, and what a resumed run brings in again must be the same.
#[test]
fn index_of_many_files_is_the_same_when_the_run_is_resumed() {
    let place = count_place();
    let names = (0..300).map(|n| format!("file {n}.txt"));
    let names: Vec<String> = names.collect();
    for name in &names {
        place.file(name, format!("{name}\n"));
    }
    place.file("list.txt", names.join("\n"));
    let gate = place.gate("gate");
    let script = format!(
        "first = *package(\"texts\"); before = len(first); begun = {}; text({});
        again = *package(\"texts\");
        return [text(first[7]), before, len(again), text(again[299])];",
        shell(&done("begun")),
        shell(&held("gate"))
    );
    place.file("job/count.sw", script);
    let live = place.start(&["run", "-q", "-j2", "job/count.pack", "list.txt"]);
    place.await_file("begun");
    live.signal("KILL");
    assert_eq!(live.end().signal, Some(9));
    let live = place.start(&["resume", "-q"]);
    gate.release(1);
    let ended = live.end();
    expect(&ended, "[\"file 7.txt\\n\",300,300,\"file 299.txt\\n\"]\n");
}

#[test]
fn what_is_not_supported_is_said_before_anything_runs() {
    let start = r#""start": {"handler": "swi", "args": {"sw_file_ref": {"__package__": "m"}}}"#;
    let main = r#""m": {"filename": "m.sw"}"#;
    let cases = [
        ("{".to_string(), "not JSON"),
        ("{}".to_string(), "sw_file_ref does not name a file"),
        (
            r#"{"start": {"handler": "java2", "args": {}}}"#.to_string(),
            "the handler \"java2\" is not supported",
        ),
        (
            format!(r#"{{"package": {{{main}, "u": {{"urls": ["http://a/b"]}}}}, {start}}}"#),
            "the package u is read from URLs",
        ),
        (
            format!(
                r#"{{"package": {{{main}, "f": {{"filename": {{"__args__": 0}}}}}}, {start}}}"#
            ),
            "argument 0 is missing",
        ),
        (
            format!(r#"{{"package": {{{main}, "f": {{"filename": "none.txt"}}}}, {start}}}"#),
            "cannot read the package f, none.txt",
        ),
        (
            format!(r#"{{"package": {{{main}, "f": 5}}, {start}}}"#),
            "the package f has no filename",
        ),
        (
            format!(r#"{{"package": {{{main}, "f": {{"filenamelist": "none.txt"}}}}, {start}}}"#),
            "cannot read none.txt",
        ),
    ];
    for (pack, message) in cases {
        let place = Place::new();
        place.file("m.sw", "print(\"ran\");");
        place.file("job.pack", &pack);
        let ended = place.run(&["run", "job.pack"]);
        assert_eq!(ended.code, Some(2), "{pack}: {}", ended.stderr);
        assert!(ended.stderr.contains(message), "{pack}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{pack}");
    }
}

/// Whether a package can be read was found out by reading a byte of it; a pipe with no writer kept
/// the command there.
#[test]
fn package_that_is_a_pipe_is_refused() {
    let place = Place::new();
    let _gate = place.gate("pipe");
    place.file("job.sw", "return 1;");
    let ended = place.run(&["run", "--package", "p=pipe", "job.sw"]);
    assert_eq!(ended.code, Some(2));
    let said = "cannot read the package p, pipe: it is not a regular file";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}
