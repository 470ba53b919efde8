//! Files and references in the hands of scripts: `glob`, `grab`, `sync`, command lines and their
//! environment.
//!
//! Read first: `support`. What paths a pattern matches is tested beside the executor.

mod support;

use support::{Place, held, shell};

const MODES: [&[&str]; 3] = [&["-q", "-j1"], &["-q", "-j2"], &["-q", "--serial"]];

/// The same output in all modes.
#[track_caller]
fn expect(place: &Place, script: &str, stdout: &str) {
    for options in MODES {
        let ended = place.script(options, script);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), stdout),
            "{options:?} {script}\n{}",
            ended.stderr
        );
    }
}

#[test]
fn glob_gives_sorted_paths_and_looks_anew_each_time() {
    let place = Place::new();
    for name in ["b.csv", "a.csv", "c.txt"] {
        place.file(name, "x");
    }
    let script = r#"
        sizes = [];
        for (path in glob("*.csv")) {
            sizes += *spawn_exec("shell", {"command": "wc -c < {f}",
                "inputs": {"f": spawn_exec("grab", {"path": path}, 1)[0]}}, 1)[0];
        }
        made = spawn_exec("shell", {"command": "touch d.csv; : > {out.done}", "outputs": ["done"]},
            1, {"pure": false})[0];
        before = glob("*.csv");
        before = before[:2];
        text(made);
        after = glob("*.csv");
        text(spawn_exec("shell", {"command": "rm d.csv; : > {out.done}", "outputs": ["done"]},
            1, {"pure": false})[0]);
        return [sizes, before, after, glob("*.none"), type(glob)];"#;
    let expected = r#"[[1,1],["a.csv","b.csv"],["a.csv","b.csv","d.csv"],[],"function"]"#;
    expect(&place, script, &format!("{expected}\n"));
    let ended = place.script(&["-q"], "return glob([1]);");
    assert!(
        ended.stderr.contains("`glob` takes a string"),
        "{}",
        ended.stderr
    );
}

/// What a script saw of the folder is recorded: a resumed run continues with that, whatever the
/// folder holds by then. It is recorded for certain when something was printed after it.
#[test]
fn resumed_run_sees_the_files_that_it_saw_before() {
    let place = Place::new();
    let gate = place.gate("gate");
    place.file("a.csv", "x");
    let script = format!(
        "seen = glob(\"*.csv\"); print(seen); text({}); return seen;",
        shell(&held("gate"))
    );
    let live = place.start_script(&["-q", "-j2"], &script);
    assert_eq!(live.line(), "[\"a.csv\"]");
    live.signal("KILL");
    assert_eq!(live.end().signal, Some(9));
    place.file("b.csv", "x");
    let live = place.start_script(&["-q", "-j2"], &script);
    gate.release(1);
    let ended = live.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.ends_with("[\"a.csv\"]\n"), "{}", ended.stdout);
}

/// The usual end of a program of the original engine reads the first of the references that `sync`
/// gives. Here `sync` gave the first object itself: for a list its first element, silently, and for
/// a number a `TypeError`.
#[test]
fn sync_gives_the_list_of_references() {
    let place = Place::new();
    let script = r#"
        function f(x) { return x; }
        a = spawn(f, [[7, 8]]);
        b = spawn(f, [5]);
        all = *spawn_exec("sync", {"inputs": [a, b, a]}, 1)[0];
        none = *spawn_exec("sync", {"inputs": []}, 1)[0];
        many = []; for (i in range(300)) { many += spawn(f, [i]); }
        last = (*spawn_exec("sync", {"inputs": many}, 1)[0])[-1];
        return [len(all), *all[0], *all[1], *all[2], none, *last, all[0]];"#;
    expect(&place, script, "[3,[7,8],5,[7,8],[],299,[7,8]]\n");
    let script = r#"
        include "sync";
        function f(x) { return x; }
        return (*sync([spawn(f, ["first"]), spawn(f, ["second"])]))[0];"#;
    expect(&place, script, "\"first\"\n");
    let script = r#"
        function bad() { throw "no"; }
        try { print(*spawn_exec("sync", {"inputs": [spawn(bad)]}, 1)[0]); }
        catch (e) { return e.value; }"#;
    expect(&place, script, "\"no\"\n");
}

/// A reference in a command line was replaced by the text of its object: a program that was given
/// as an object could not be run, and `wc -c` of an object got the object itself for a name, which
/// then filled the error message. In the original language it is the path of a file.
#[test]
fn reference_in_a_command_line_is_a_path_and_its_text_only_on_request() {
    let place = Place::new();
    place.file("long.txt", "word ".repeat(50_000));
    let script = r#"
        include "grab";
        long = grab("long.txt");
        count = spawn_exec("stdinout", {"command_line": ["wc", "-c", long]}, 1)[0];
        words = text(count);
        short = spawn_exec("shell", {"command": "printf '%s' '#!/bin/sh\necho run $*'"}, 1)[0];
        program = spawn_exec("shell", {"command": "cat {p}; echo; yes '#' | head -n 1500",
            "inputs": {"p": short}}, 1)[0];
        ran = [];
        for (p in [short, program]) {
            ran += trim(text(spawn_exec("stdinout", {"command_line": [p, 1, "a b"]}, 1)[0]));
        }
        option = spawn_exec("shell", {"command": "echo -w"}, 1)[0];
        counted = *spawn_exec("stdinout", {"inputs": [long],
            "command_line": ["wc", {"text": option}]}, 1)[0];
        return [split(words)[0], ran, counted];"#;
    expect(
        &place,
        script,
        "[\"250000\",[\"run 1 a b\",\"run 1 a b\"],50000]\n",
    );
    let script = r#"
        include "grab";
        return text(spawn_exec("stdinout",
            {"command_line": ["echo", {"text": grab("long.txt")}]}, 1)[0]);"#;
    let ended = place.script(&["-q"], script);
    let told = "an argument of its command line has 250000 bytes";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    assert!(ended.stderr.len() < 2_000, "{}", ended.stderr);
}

/// The `env` argument of `environ` was dropped without a word, and its command ran without the
/// variables.
#[test]
fn commands_get_the_variables_that_they_are_given() {
    let place = Place::new();
    let script = r#"
        program = ["sh", "-c", "echo $FOO $LEVEL; [ -z \"$OUTPUT_FILES\" ] || \
            echo $FOO > $(cat $OUTPUT_FILES)"];
        a = spawn_exec("environ", {"command_line": program, "env": {"FOO": "bar", "LEVEL": 3}}, 1);
        b = spawn_exec("stdinout", {"command_line": program, "env": {"FOO": "baz"},
            "environment": {"LEVEL": true}}, 1);
        return [text(a[0]), text(b[0])];"#;
    let script = script.replace("\\\n", " ");
    expect(&place, &script, "bar 3\n[\"bar\\n\",\"baz true\\n\"]\n");
    let wrong =
        "return text(spawn_exec(\"environ\", {\"command_line\": [\"true\"], \"env\": [1]}, 1)[0]);";
    let ended = place.script(&["-q"], wrong);
    let told = "its argument \"env\" must be a dictionary with names as keys";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}

#[test]
fn placeholders_in_a_here_document_are_replaced_by_their_text_alone() {
    let place = Place::new();
    let script = r#"
        return text(spawn_exec("shell", {
            "command": "cat <<EOF\nname: {n}, \"{n}\" 'it'\nEOF\nprintf '[%s]' {n}",
            "inputs": {"n": "Ann $HOME `id` B"}}, 1)[0]);"#;
    let name = "Ann $HOME `id` B";
    let expected = format!("\"name: {name}, \\\"{name}\\\" 'it'\\n[{name}]\"\n");
    expect(&place, script, &expected);
}

/// Of the programs that were written for the original engine, 17 stopped at the name `ref`, which
/// its "grab" defines, and others at `file://`.
#[test]
fn grab_takes_urls_of_files_and_brings_ref() {
    let place = Place::new();
    place.file("a b.txt", "text");
    let url = format!("file://{}", place.path("a%20b.txt").display());
    let script = format!(
        "include \"grab\"; include \"ref\"; return [text(grab(\"{url}\")), text(ref(\"{url}\")),
             text(exec(\"grab\", {{\"urls\": [\"{url}\"], \"version\": 0}}, 1)[0])];"
    );
    expect(&place, &script, "[\"text\",\"text\",\"text\"]\n");
    let script = "include \"grab\"; return text(grab(\"http://example.org/a\"));";
    let ended = place.script(&["-q"], script);
    assert!(
        ended.stderr.contains("download it first"),
        "{}",
        ended.stderr
    );
}

/// Job packages of the original engine could name many files in one; here a package is one file.
#[test]
fn package_that_lists_files_is_a_list_of_references() {
    let place = Place::new();
    place.file("a.txt", "one");
    place.file("b c.txt", "two");
    place.file("list.txt", "a.txt\n\nb c.txt\n");
    let script = "include \"grab\"; include \"mapreduce\";
        return map(text, grab_index(package(\"data\")));";
    let ended = place.script(&["-q", "--package", "data=list.txt"], script);
    assert_eq!(ended.stdout, "[\"one\",\"two\"]\n", "{}", ended.stderr);
}

/// Rows made with `{"lines": *n}` went through a function into a command, which refused them since
/// they "contain references", with the hint to dereference what had been dereferenced.
#[test]
fn list_of_dereferenced_values_is_written_for_a_command_when_all_of_it_is_forced() {
    let place = Place::new();
    let script = |list: &str| {
        format!(
            "n = spawn(lambda: 5); rows = [{{\"lines\": *n}}]; file = spawn(lambda x: x, [{list}]);
            return text(spawn_exec(\"shell\", {{\"command\": \"cat\", \"stdin\": [file]}}, 1)[0]);"
        )
    };
    let forced = script("from_json(to_json(rows))");
    expect(&place, &forced, "\"[{\\\"lines\\\":5}]\"\n");
    let refused = place.script(&["-q"], &script("rows"));
    assert!(
        refused.stderr.contains("from_json(to_json(value))"),
        "{}",
        refused.stderr
    );
}

/// Whoever forgot the `[0]` of `spawn_exec` saw `[{"$ref":0}]` in the error, and no way out.
#[test]
fn list_of_references_in_the_place_of_one_is_refused_with_a_hint() {
    let place = Place::new();
    let made = "m = spawn_exec(\"shell\", {\"command\": \"true\"}, 1);";
    for (rest, shown) in [
        ("return *m;", "cannot dereference a list: [\"<reference>\"]"),
        ("export(m, \"x\");", "not a list: [\"<reference>\"]"),
        ("cancel(m);", "not a list: [\"<reference>\"]"),
        (
            "spawn_exec(\"shell\", {\"command\": \"cat {x}\", \"inputs\": {\"x\": [m]}}, 1);",
            "not [\"<reference>\"]",
        ),
        (
            "spawn_exec(\"stdinout\", {\"command_line\": [\"cat\", m]}, 1);",
            "not [\"<reference>\"]",
        ),
    ] {
        let ended = place.script(&["-q"], &format!("{made} {rest}"));
        assert!(ended.stderr.contains(shown), "{rest}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("hint: spawn_exec gives a list"),
            "{}",
            ended.stderr
        );
    }
}

/// A function that asked for a package later than another one got what its file held by then: one
/// job worked on two contents of one package. A third one failed with `the job has no package`.
#[test]
fn package_whose_file_changes_during_the_run_is_the_first_content_or_an_error() {
    let place = Place::new();
    for (old, new) in [("short", "other"), (&*"long ".repeat(1000), "x")] {
        place.file("data", old);
        let script = format!(
            "function look(n) {{ return text(package(\"d\")); }}
             print(len(look(1)));
             text(spawn_exec(\"shell\", {{\"command\": \"printf {new} > data\"}}, 1,
                 {{\"pure\": false}})[0]);
             for (n in range(3)) {{
                 try {{ print(len(*spawn(look, [n]))); }} catch (e) {{ print(e.message); }}
             }}"
        );
        for mode in [&["-j2"][..], &["--serial"]] {
            place.file("data", old);
            let options = [&["-q", "--package", "d=data"], mode].concat();
            let ended = place.script(&options, &script);
            let refused = "the package \"d\" cannot be used: \"data\": it has changed since the \
                           run began\n";
            let expected = format!("{}\n{}", old.len(), refused.repeat(3));
            assert_eq!(
                (ended.code, ended.stdout),
                (Some(0), expected),
                "{mode:?} {}",
                ended.stderr
            );
        }
    }
}

/// A run that was resumed gave a changed package to the functions that asked for it from then on,
/// and for a lost copy also to those before.
#[test]
fn run_whose_package_has_changed_is_not_resumed() {
    let place = Place::new();
    let gate = place.gate("gate");
    place.file("data", "old ".repeat(1000));
    let script = format!(
        "d = package(\"d\"); print(len(text(d))); text({}); return len(text(package(\"d\")));",
        shell(&held("gate"))
    );
    let options = ["-q", "--package", "d=data"];
    let live = place.start_script(&options, &script);
    assert_eq!(live.line(), "4000");
    live.signal("KILL");
    assert_eq!(live.end().signal, Some(9));
    place.file("data", "new, and of another length");
    gate.release(1);
    let ended = place.script(&options, &script);
    let found = (ended.code, ended.stdout.as_str());
    assert_eq!(found, (Some(0), "26\n26\n"), "{}", ended.stderr);
}

/// The file was copied as it came: a table that was written meanwhile was half old and half new.
/// And what has no end, or no writer, took the engine's memory, or a thread of it for ever.
#[test]
fn grab_takes_a_regular_file_only() {
    let place = Place::new();
    let _gate = place.gate("pipe");
    for path in ["/dev/zero", "pipe", "."] {
        let script = format!("include \"grab\"; return text(grab(\"{path}\"));");
        let ended = place.script(&["-q"], &script);
        assert_eq!(ended.code, Some(1), "{path} {}", ended.stderr);
        let told = match path {
            "." => "is a directory",
            _ => "it is not a regular file",
        };
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
    }
}
