//! Files and lists of references in the hands of scripts: `glob`, `sync`.
//!
//! Read first: `support`. What paths a pattern matches is tested beside the executor.

mod support;

use support::{Place, done, held, shell};

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

/// What a script saw of the folder is recorded: a run that is resumed goes on from that, whatever
/// the folder holds by then.
#[test]
fn resumed_run_sees_the_files_that_it_saw_before() {
    let place = Place::new();
    let gate = place.gate("gate");
    place.file("a.csv", "x");
    let script = format!(
        "seen = glob(\"*.csv\"); print(seen); h = {}; text({}); return seen;",
        shell(&done("seen")),
        shell(&held("gate"))
    );
    let live = place.start_script(&["-q", "-j2"], &script);
    place.await_file("seen");
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
