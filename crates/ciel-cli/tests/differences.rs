//! The differences from the original interpreter, row by row as the reference of Skywriting has
//! them: what a program does here, and that what is to be written instead does the same.
//!
//! Read first: `support`.

mod support;

use support::Place;

/// What a script of a row gives: its standard output, or a part of its error.
enum Gives {
    Output(&'static str),
    Error(&'static str),
}

use Gives::{Error, Output};

fn place() -> Place {
    let place = Place::new();
    for (name, text) in [
        ("a.txt", "one"),
        ("b.txt", "two"),
        ("list.txt", "a.txt\nb.txt\n"),
    ] {
        place.file(name, text);
    }
    place
}

fn expect(rows: &[(&str, Gives)]) {
    for (script, gives) in rows {
        let place = place();
        place.file("job.sw", script);
        let words = ["run", "-q", "--package", "data=list.txt", "job.sw", "first"];
        let ended = place.run(&words);
        match gives {
            Output(output) => assert_eq!(ended.stdout, *output, "{script}: {}", ended.stderr),
            Error(part) => {
                assert_ne!(ended.code, Some(0), "{script}: {}", ended.stdout);
                assert!(ended.stderr.contains(part), "{script}: {}", ended.stderr);
            }
        }
    }
}

#[test]
fn arguments_and_environment() {
    expect(&[
        ("return argv[0];", Output("\"first\"\n")),
        ("argv[0] = 1;", Error("`argv` cannot be changed")),
        ("env[\"A\"] = 1;", Error("`env` cannot be changed")),
        (
            "mine = env(); mine[\"A\"] = \"b\"; return mine[\"A\"];",
            Output("\"b\"\n"),
        ),
    ]);
}

#[test]
fn booleans_operators_and_calls() {
    expect(&[
        ("return true + 1;", Error("TypeError")),
        ("n = 1; if (true) { n += 1; } return n;", Output("2\n")),
        ("return [!1 == 2, !(1 == 2)];", Output("[false,true]\n")),
        ("f = lambda x: x; return f(1, 2);", Error("but 2 are given")),
        (
            "f = lambda x: x; return f();",
            Error("`f` takes 1 argument, but"),
        ),
        ("function f(x, x) { return x; }", Error("is named twice")),
        (
            "function f() { return nowhere; }",
            Error("unknown name `nowhere`"),
        ),
        (
            "return [str(true), str(null)];",
            Output("[\"true\",\"null\"]\n"),
        ),
        ("spawn(len, [[1]]);", Error("spawn(lambda x: len(x), […])")),
        ("return *spawn(lambda x: len(x), [[1]]);", Output("1\n")),
    ]);
}

#[test]
fn files_and_packages() {
    let grab = "include \"grab\"; include \"mapreduce\"; ";
    let in_library = |rest: &str| format!("{grab}{rest}");
    let by_pattern = in_library("return map(text, map(grab, glob(\"?.txt\")));");
    let by_index = in_library("return map(text, grab_index(grab(\"list.txt\")));");
    let by_package = in_library("return map(text, grab_index(package(\"data\")));");
    let both = "[\"one\",\"two\"]\n";
    expect(&[
        (
            "return text(exec(\"grab\", {\"urls\": [\"a.txt\"]}, 1)[0]);",
            Output("\"one\"\n"),
        ),
        (
            &in_library("return text(grab(\"http://a/b\"));"),
            Error("download it first"),
        ),
        (&by_pattern, Output(both)),
        (&by_index, Output(both)),
        (&by_package, Output(both)),
        ("include \"java\";", Error("no Java executor")),
        (
            "spawn_exec(\"proc\", {}, 1);",
            Error("unknown executor \"proc\""),
        ),
        ("return select([]);", Error("unknown name `select`")),
        (
            "name = env(\"HOME\"); include name;",
            Error("known before the program runs"),
        ),
        (
            "name = \"gr\" + \"ab\"; include name; return text(grab(\"a.txt\"));",
            Output("\"one\"\n"),
        ),
    ]);
}

#[test]
fn what_needs_no_change() {
    let hinted = "return text(spawn_other(\"grab\", {\"args\": {\"path\": \"a.txt\", \
                  \"eager_fetch\": true}, \"n_outputs\": 1, \"small_task\": true})[0]);";
    let stream = "include \"stdinout\"; include \"grab\";
        return text(stdinout_stream([grab(\"a.txt\")], [\"cat\"]));";
    expect(&[
        (
            "return [false && 1 / 0, true || 1 / 0];",
            Output("[false,true]\n"),
        ),
        ("function f() { return; } return [f()];", Output("[null]\n")),
        (
            "d = {}; d[\"a\"] = [1]; d[\"a\"][0] += 1; return d;",
            Output("{\"a\":[2]}\n"),
        ),
        ("spawn(lambda: print(\"ran\"), []);", Output("ran\n")),
        (
            "spawn(lambda: print(\"ran\"), [], {\"lazy\": true});",
            Output(""),
        ),
        (hinted, Output("\"one\"\n")),
        (stream, Output("\"one\"\n")),
        (
            "try { x = *spawn(lambda: 1 / 0, []); } catch (e) { print(e.kind); }",
            Output("DivisionByZero\n"),
        ),
    ]);
}
