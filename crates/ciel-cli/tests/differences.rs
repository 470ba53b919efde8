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
        ("six.sw", "return 6;"),
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
            "mine = env; mine[\"A\"] = \"b\"; return mine[\"A\"];",
            Output("\"b\"\n"),
        ),
    ]);
}

#[test]
fn booleans_operators_and_calls() {
    expect(&[
        ("return true + 1;", Error("TypeError")),
        ("return int(true);", Error("TypeError")),
        ("return true == 1;", Output("false\n")),
        ("return 1 < \"a\";", Error("TypeError")),
        (
            "return has_key([1], 1);",
            Error("`has_key` takes a dictionary"),
        ),
        (
            "return get_key([1], 0, 5);",
            Error("`get_key` takes a dictionary"),
        ),
        ("return find([1], 1) != null;", Output("true\n")),
        (
            "return {true: 1};",
            Error("a key is a string or an integer"),
        ),
        (
            "d = {}; d[str(true)] = 1; return d;",
            Output("{\"true\":1}\n"),
        ),
        ("null = 1;", Error("error")),
        ("try = 1;", Error("error")),
        ("catch = 1;", Error("error")),
        ("throw = 1;", Error("error")),
        (
            "l = [1]; for (x in l) { if (len(l) < 5) { l += x; } } return len(l);",
            Output("5\n"),
        ),
        (
            "l = [1]; for (x in l[:]) { if (len(l) < 5) { l += x; } } return len(l);",
            Output("2\n"),
        ),
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
        ("print(\"a\", str(true), null);", Output("a true null\n")),
        ("spawn(len, [[1]]);", Error("spawn(lambda x: len(x), […])")),
        ("return *spawn(lambda x: len(x), [[1]]);", Output("1\n")),
    ]);
}

#[test]
fn tasks_that_nothing_waits_for() {
    expect(&[
        ("spawn(lambda: print(\"ran\"), []);", Output("ran\n")),
        (
            "spawn(lambda: 1 / 0, []); return 5;",
            Error("DivisionByZero"),
        ),
        (
            "spawn(lambda: 1 / 0, [], {\"lazy\": true}); return 5;",
            Output("5\n"),
        ),
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
        (
            "spawn_exec(\"swi\", {}, 1);",
            Error("unknown executor \"swi\""),
        ),
        (
            "return *spawn_exec(\"skywriting\", {\"file\": \"six.sw\"}, 1)[0];",
            Output("6\n"),
        ),
        (
            "spawn_other(\"grab\", {\"path\": \"a.txt\", \"n_outputs\": 1});",
            Error("`spawn_other` needs the key \"args\""),
        ),
        (
            "include \"http://a/b.sw\";",
            Error("download the file and include it by its path"),
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
        ("x = 5;", Output("")),
        (
            "d = {}; d[\"a\"] = [1]; d[\"a\"][0] += 1; return d;",
            Output("{\"a\":[2]}\n"),
        ),
        (hinted, Output("\"one\"\n")),
        (stream, Output("\"one\"\n")),
        (
            "try { x = *spawn(lambda: 1 / 0, []); } catch (e) { print(e.kind); }",
            Output("DivisionByZero\n"),
        ),
    ]);
}

/// Programs of the original include files by URLs; that was refused, with a hint to download them.
#[test]
fn include_of_a_file_url_is_that_of_its_path() {
    let place = place();
    let path = place.path("six.sw").canonicalize().unwrap();
    place.file("foo.sw", "foo = 42;");
    let folder = path.parent().unwrap().display();
    let script = format!("include \"file://{folder}/foo.sw\"; return foo;");
    let ended = place.script(&["-q"], &script);
    assert_eq!(ended.stdout, "42\n", "{}", ended.stderr);
}
