//! Commands that a shell would only start, which start without it: what they show is the same.
//! Beside each such command runs the same one with a `;` behind it, which is left to the shell.
//!
//! Which commands these are is tested where that is decided. Read first: `commands`.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use support::{Place, expect_well, skipped};

/// Whether the first `sh` of the path is none whose ways are known; then the test is skipped.
fn lacks_known_shell(test: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut shells = std::env::split_paths(&path).map(|folder| folder.join("sh"));
    let real = shells.find_map(|shell| fs::canonicalize(shell).ok());
    let is_known = real.is_some_and(|real| real.ends_with("dash"));
    if !is_known {
        skipped(test, "another shell");
    }
    !is_known
}

fn program(place: &Place, name: &str, text: &str) {
    let path = place.file(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A script that prints what comes of each command, by itself and with a `;` behind it. `entries`
/// are further arguments of the calls.
fn pairs(commands: &[&str], entries: &str) -> String {
    let calls = commands.iter().flat_map(|command| {
        let call = |behind| {
            let arguments = format!("{{\"command\": \"{command}{behind}\"{entries}}}");
            format!("show(spawn_exec(\"shell\", {arguments}, 1)[0]);\n")
        };
        [call(""), call(";")]
    });
    let show = "show = function(one) {
        try { print(\"result\"); print(text(one)); }
        catch (e) { print(\"failed\", e.value.exit_status, e.value.signal, e.value.stderr); }
        print(\"|\");
    };\n";
    format!("{show}{}", calls.collect::<String>())
}

/// Checks that each of the commands shows the same with a shell and without.
fn expect_alike(place: &Place, commands: &[&str], entries: &str) {
    let ended = place.script(&[], &pairs(commands, entries));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let of_the_task =
        |line: &&str| !line.starts_with("CIEL_TASK=") && !line.starts_with("CIEL_COOKIE=");
    let shown = ended.stdout.split("|\n").map(|shown| {
        let mut lines: Vec<&str> = shown.lines().filter(of_the_task).collect();
        lines.sort_unstable();
        lines
    });
    let shown: Vec<_> = shown.collect();
    assert_eq!(shown.len(), 2 * commands.len() + 1, "{}", ended.stdout);
    for (command, pair) in commands.iter().zip(shown.chunks(2)) {
        assert_eq!(pair[0], pair[1], "{command}");
    }
}

#[test]
fn command_shows_the_same_with_a_shell_and_without() {
    let place = Place::new();
    fs::create_dir(place.path("first")).unwrap();
    fs::create_dir(place.path("sub")).unwrap();
    // What cannot be run is passed over.
    place.file("first/sort", "not a program");
    fs::create_dir(place.path("first/wc")).unwrap();
    place.file("a.txt", "b\na\n");
    place.file("sub/a.txt", "d\nc\n");
    place.file("plain", "no program");
    for folder in ["", "sub/"] {
        program(&place, &format!("{folder}bare"), "echo bare $0 $#");
        program(
            &place,
            &format!("{folder}words"),
            "#!/bin/sh\nfor w in \"$@\"; do echo \"<$w>\"; done\n",
        );
        program(
            &place,
            &format!("{folder}ends"),
            "#!/bin/sh\necho no >&2\nexit $1\n",
        );
    }
    program(&place, "lost", "#!/there/is/no/such/program\n");
    let path = std::env::var("PATH").unwrap();
    let first = place.path("first");
    let place = place.with_variable("PATH", &format!("{}:first::{path}", first.display()));
    let commands = [
        "true",
        "false",
        "sort a.txt",
        "wc -l a.txt",
        "./words a  b\tx=1 --y=%d,e:f@g",
        "words 1",
        "bare 1 2",
        "./bare 1",
        "./ends 0",
        "./ends 3",
        "ends 127",
        "./lost",
        "./plain",
        "./sub",
        "./there-is-none",
        "there-is-none a",
        "first/sort",
        "env",
        "pwd",
        "/bin/pwd",
        "/bin/echo if",
        "sort there-is-none",
    ];
    expect_alike(&place, &commands, "");
    let entries = ", \"folder\": \"sub\", \"environment\": {\"A\": \"b c\"}";
    expect_alike(
        &place,
        &["env", "./words 1", "/bin/pwd", "sort a.txt", "../ends 4"],
        entries,
    );
    for variables in [
        "\"PATH\": \"sub:/bin:/usr/bin\"",
        "\"PWD\": \"/\"",
        "\"IFS\": \"x\"",
    ] {
        let entries = format!(", \"environment\": {{{variables}}}");
        expect_alike(&place, &["env", "words ax b", "bare"], &entries);
    }
}

#[test]
fn inputs_and_outputs_of_a_command_are_the_same_without_a_shell() {
    let place = Place::new();
    program(
        &place,
        "words",
        "#!/bin/sh\nfor w in \"$@\"; do echo \"<$w>\"; done; cat\n",
    );
    let script = "
        data = spawn_exec(\"shell\", {\"command\": \"seq 3\"}, 1)[0];
        for (behind in [\"\", \";\"]) {
            one = spawn_exec(\"shell\", {
                \"command\": \"./words {x} -{x}- {none} {l} z\" + behind,
                \"inputs\": {\"x\": \"a  b\", \"none\": \"\", \"l\": [\"1 2\", 3]},
                \"stdin\": [data]}, 1)[0];
            print(text(one));
            copy = spawn_exec(\"shell\", {
                \"command\": \"cp {d} {out.copy}\" + behind, \"inputs\": {\"d\": data},
                \"outputs\": [\"copy\"]}, 1)[0];
            print(text(copy));
        }";
    let shown = "<a  b>\n<-a  b->\n<>\n<1 2>\n<3>\n<z>\n1\n2\n3\n\n1\n2\n3\n\n";
    expect_well(&place.script(&[], script), &shown.repeat(2));
}

#[test]
fn program_that_a_signal_kills_ends_as_behind_its_shell() {
    if lacks_known_shell("program_that_a_signal_kills_ends_as_behind_its_shell") {
        return;
    }
    let place = Place::new();
    program(
        &place,
        "killed",
        "#!/bin/sh\nprintf half >&2\nkill -$1 $$\n",
    );
    let call = |signal| {
        format!("show(spawn_exec(\"shell\", {{\"command\": \"./killed {signal}\"}}, 1)[0]);")
    };
    let calls = ["SEGV", "KILL", "PIPE"].map(call).concat();
    let ended = place.script(&[], &format!("{}{calls}", pairs(&[], "")));
    let shown = [
        ("SIGSEGV", "Segmentation fault\n"),
        ("SIGKILL", "Killed\n"),
        ("SIGPIPE", ""),
    ];
    let shown = shown.map(|(name, said)| format!("result\nfailed null {name} half{said}\n|\n"));
    expect_well(&ended, &shown.concat());
}

#[test]
fn command_that_a_shell_would_only_start_has_no_shell() {
    if lacks_known_shell("command_that_a_shell_would_only_start_has_no_shell") {
        return;
    }
    let place = Place::new();
    program(&place, "parent", "#!/bin/sh\nreadlink /proc/$PPID/exe\n");
    let script = "print(text(spawn_exec(\"shell\", {\"command\": \"./parent\"}, 1)[0]));";
    let ended = place.script(&[], script);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let parent = Path::new(ended.stdout.trim_end());
    assert_eq!(
        parent.file_name(),
        Path::new(support::CIEL).file_name(),
        "{}",
        ended.stdout
    );
}

/// A command that a signal had killed had 128 + n as its exit status where a shell had waited for
/// it, and none, but the name of the signal, where the shell had become the command.
#[test]
fn command_that_a_signal_killed_names_it_whoever_waited_for_the_command() {
    let place = Place::new();
    program(&place, "killed", "#!/bin/sh\nkill -TERM $$\n");
    let commands = [
        "./killed",
        "./killed;",
        "./killed x > out",
        "exec ./killed",
        "kill -TERM $$",
        "exit 129",
    ];
    let call =
        |command| format!("show(spawn_exec(\"shell\", {{\"command\": \"{command}\"}}, 1)[0]);");
    let script = format!("{}{}", pairs(&[], ""), commands.map(call).concat());
    let ended = place.script(&[], &script);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = ended
        .stdout
        .lines()
        .filter(|line| line.starts_with("failed"));
    let lines: Vec<&str> = lines.map(str::trim_end).collect();
    let (last, killed) = lines.split_last().unwrap();
    assert!(
        killed
            .iter()
            .all(|line| line.starts_with("failed null SIGTERM")),
        "{lines:?}"
    );
    assert_eq!((*last, lines.len()), ("failed 129 null", commands.len()));
}
