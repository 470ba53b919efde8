//! Bad input of every kind: a clear error that names who is meant, nothing lost, the other tasks
//! unhurt, nothing left behind, and a folder that can be used at once.
//!
//! Scripts and files come first, then tasks, then the state folder. Read first: `support`.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use support::{Ended, Place, SmallDisk, done, held, shell, shell_printing, skipped, task};

/// Most memory of the command whatever a task does, in KiB.
const PEAK_KIB_MAX: u64 = 120 << 10;

/// Bytes that a task prints that prints too much.
const FLOOD_BYTES: u64 = 300 << 20;

/// A script that cannot be run: exit code 2, nothing on standard output, and these words.
fn expect_refused(place: &Place, ended: &Ended, words: &[&str]) {
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), ""),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
    for word in words {
        assert!(
            ended.stderr.contains(word),
            "no {word:?} in: {}",
            ended.stderr
        );
    }
    assert!(
        !place.has(".ciel"),
        "what is refused at once makes no state"
    );
}

/// The failure is reported for its task, with these words beside its name.
fn expect_told(ended: &Ended, name: &str, words: &[&str]) {
    let error = ended.stderr.split("error: ").nth(1).unwrap_or_default();
    assert!(error.starts_with(&format!("{name}@")), "{}", ended.stderr);
    for word in words {
        assert!(error.contains(word), "no {word:?} in: {}", ended.stderr);
    }
}

/// Runs a job in which `bad`, an expression for a task called `bad`, stands between two others:
/// both print, the failure names it, nothing is left, and the next run works.
fn expect_only_it_fails(place: &Place, bad: &str, words: &[&str]) -> Ended {
    let script = format!(
        "a = {};
         bad = {bad};
         print(\"between\");
         b = {};
         try {{ x = *bad + 1; }} catch (e) {{ print(\"caught\", e.message != \"\"); }}
         print(\"end\");
         y = text(bad);",
        shell_printing("echo before", ""),
        shell_printing("echo after", ""),
    );
    let ended = place.script(&["-j2"], &script);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(
        ended.stdout, "before\nbetween\nafter\ncaught true\nend\n",
        "{}",
        ended.stderr
    );
    expect_told(&ended, "bad", words);
    place.expect_usable();
    ended
}

/// A shell task called `bad`.
fn bad_shell(command: &str, options: &str) -> String {
    task(
        command,
        &format!("{{\"pure\": false, \"name\": \"bad\"{options}}}"),
    )
}

#[test]
fn missing_script_is_named() {
    let place = Place::new();
    expect_refused(
        &place,
        &place.run(&["run", "nothing.sw"]),
        &["the file nothing.sw does not exist"],
    );
}

#[test]
fn folder_as_script_is_named() {
    let place = Place::new();
    fs::create_dir(place.path("folder.sw")).unwrap();
    expect_refused(
        &place,
        &place.run(&["run", "folder.sw"]),
        &["folder.sw is a folder"],
    );
}

#[test]
fn unreadable_script_is_named() {
    let place = Place::new();
    let path = place.file("secret.sw", "return 1;");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        return skipped("unreadable script", "this user may read everything");
    }
    expect_refused(
        &place,
        &place.run(&["run", "secret.sw"]),
        &["secret.sw may not be read"],
    );
}

#[test]
fn binary_script_is_named() {
    let place = Place::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    place.file("noise.sw", &bytes);
    expect_refused(&place, &place.run(&["run", "noise.sw"]), &["noise.sw"]);
    place.file("noise", &bytes);
    expect_refused(
        &place,
        &place.run(&["run", "noise"]),
        &["noise is a binary file"],
    );
}

#[test]
fn empty_script_is_named() {
    let place = Place::new();
    for name in ["empty.sw", "empty"] {
        place.file(name, "");
        let words = [&format!("{name} contains no program"), "hint: "];
        expect_refused(&place, &place.run(&["run", name]), &words);
    }
}

#[test]
fn missing_file_fails_the_task_that_wants_it() {
    let place = Place::new();
    let grab = "spawn_exec(\"grab\", {\"path\": \"nothing.txt\"}, 1, {\"name\": \"bad\"})[0]";
    expect_only_it_fails(&place, grab, &["nothing.txt"]);
}

#[test]
fn missing_program_fails_the_task_that_wants_it() {
    let place = Place::new();
    let bad = "spawn_exec(\"stdinout\", {\"inputs\": [], \"command_line\": [\"no-such-program\"]}, \
               1, {\"name\": \"bad\"})[0]";
    expect_only_it_fails(&place, bad, &["no-such-program"]);
}

#[test]
fn unknown_executor_fails_the_task_and_lists_those_there_are() {
    let place = Place::new();
    let bad = "spawn_exec(\"shel\", {\"command\": \"true\"}, 1, {\"name\": \"bad\"})[0]";
    expect_only_it_fails(
        &place,
        bad,
        &["unknown executor \"shel\"", "environ", "hint: "],
    );
}

#[test]
fn exit_status_and_last_words_of_a_task_are_told() {
    let place = Place::new();
    let bad = bad_shell("echo wasted; echo last words >&2; exit 42", "");
    expect_only_it_fails(&place, &bad, &["exit status 42", "last words"]);
}

#[test]
fn signal_that_killed_a_task_is_told() {
    let place = Place::new();
    expect_only_it_fails(&place, &bad_shell("kill -SEGV $$", ""), &["SIGSEGV"]);
}

#[test]
fn task_over_its_declared_memory_is_ended_and_told() {
    let place = Place::new();
    // The shell itself holds what it reads, so the one process of the task grows.
    let command = "x=$(head -c 100000000 /dev/zero | tr '\\0' x); read y < gate; echo $x";
    let _gate = place.gate("gate");
    let ended = expect_only_it_fails(
        &place,
        &bad_shell(command, ", \"memory\": 20000000"),
        &["memory", "hint: "],
    );
    assert!(ended.peak_kib < PEAK_KIB_MAX, "{} KiB", ended.peak_kib);
}

/// The failure of a command over its time or memory named neither the command nor its inputs, as
/// other failures of commands do; nor did it show the last words of the command.
#[test]
fn command_over_a_limit_is_shown_with_its_inputs_and_its_last_words() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let grows = "x=$(head -c 100000000 /dev/zero | tr '\\0' x); read y < gate; echo $x";
    for (command, options, kind) in [
        ("read y < gate", "{\"timeout\": 5}", "Timeout"),
        (grows, "{\"memory\": \"20M\"}", "OutOfMemory"),
    ] {
        let command = format!("echo oops >&2; : {{n}}; {command}");
        let arguments = format!("{{\"command\": {command:?}, \"inputs\": {{\"n\": 7}}}}");
        let script = format!("return *spawn_exec(\"shell\", {arguments}, 1, {options})[0];");
        let ended = place.script(&["-q"], &script);
        assert_eq!(ended.code, Some(1));
        let told = &ended.stderr;
        assert!(told.contains(&format!(" failed: {kind}: ")), "{told}");
        assert!(told.contains("  │ `sh -c echo oops >&2; : {n};"), "{told}");
        assert!(told.contains("`, with n = 7\n  │ oops\nhint: "), "{told}");
    }
}

#[test]
fn memory_declared_in_words_counts_too() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let command = "x=$(head -c 100000000 /dev/zero | tr '\\0' x); read y < gate; echo $x";
    expect_only_it_fails(
        &place,
        &bad_shell(command, ", \"memory\": \"20M\""),
        &["memory"],
    );
}

#[test]
fn task_that_prints_without_end_in_sight_does_not_swell_the_command() {
    let place = Place::new();
    let script = format!(
        "a = {}; b = {}; print(\"end\");",
        shell_printing(
            &format!("head -c {FLOOD_BYTES} /dev/zero | tr '\\0' x; echo"),
            ""
        ),
        shell_printing("echo after", ""),
    );
    let ended = place.script(&["-j2"], &script);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        ended.stdout_bytes,
        FLOOD_BYTES + "\nafter\nend\n".len() as u64
    );
    assert!(ended.stdout_end.ends_with("xxx\nafter\nend\n"));
    assert!(ended.peak_kib < PEAK_KIB_MAX, "{} KiB", ended.peak_kib);
}

#[test]
fn task_that_complains_without_end_in_sight_does_not_swell_the_command() {
    let place = Place::new();
    let flood = format!(
        "head -c {} /dev/zero | tr '\\0' x >&2; exit 3",
        FLOOD_BYTES / 6
    );
    let ended = expect_only_it_fails(&place, &bad_shell(&flood, ""), &["exit status 3"]);
    assert!(ended.peak_kib < PEAK_KIB_MAX, "{} KiB", ended.peak_kib);
}

#[test]
fn children_that_a_task_leaves_are_named_and_gone() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let flees = "(setsid sh -c 'read x < gate; : left behind' > /dev/null 2>&1 &)";
    let script = format!(
        "x = {}; print(\"got\", *x);",
        task(
            &format!("{flees}; (read y < gate) & {}; echo 5", done("left")),
            "{\"pure\": false, \"name\": \"careless\"}"
        )
    );
    let ended = place.script(&["-j2"], &script);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "got 5\n"),
        "{}",
        ended.stderr
    );
    let warning = ended
        .stderr
        .lines()
        .find(|line| line.starts_with("warning: "));
    let warning = warning.unwrap_or_else(|| panic!("no warning: {}", ended.stderr));
    assert!(
        warning.contains("careless@") && warning.contains(" sh "),
        "{warning}"
    );
}

#[test]
fn garbage_from_an_executor_fails_its_task_and_names_it() {
    let says = |what: &str| {
        format!(
            "#!/usr/bin/env python3\nimport os, socket\n\
             s = socket.socket(fileno=int(os.environ['CIEL_FD']))\n\
             s.sendall({what})\ns.recv(1)\n"
        )
    };
    // Only the first one waits for the time limit, which any other may exceed on a busy machine.
    for (name, what, hello_ms, told) in [
        (
            "noise",
            "bytes(range(256)) * 100",
            "2000",
            "did not send hello within 2 s",
        ),
        (
            "promise",
            "b'\\xff\\xff\\xff\\xff\\x7f'",
            "600000",
            "sent invalid data",
        ),
        (
            "sentence",
            "b'{\"hello\": 1\\n'",
            "600000",
            "sent invalid data",
        ),
    ] {
        let place = Place::new().with_variable("CIEL_HELLO_MS", hello_ms);
        fs::create_dir(place.path("executors")).unwrap();
        let path = place.file(&format!("executors/ciel-executor-{name}"), says(what));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let bad = format!("spawn_exec(\"{name}\", {{}}, 1, {{\"name\": \"bad\"}})[0]");
        expect_only_it_fails(&place, &bad, &[told]);
    }
}

#[test]
fn script_that_does_not_end_lets_others_go_on_and_its_time_ends_it() {
    let place = Place::new();
    let bad = "spawn(for_ever, [], {\"name\": \"bad\", \"timeout\": 1})";
    let script = format!(
        "function for_ever() {{ n = 0; while (true) {{ n = n + 1; }} return n; }}
         bad = {bad};
         print(\"between\");
         b = {};
         print(\"got\", *b);
         x = *bad + 1;",
        shell("echo 5")
    );
    let ended = place.script(&["-j1"], &script);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(ended.stdout, "between\ngot 5\n", "{}", ended.stderr);
    expect_told(&ended, "bad", &["time limit of 1 s"]);
    let script = "print(\"begin\"); n = 0; while (true) { n = n + 1; }";
    let live = place.start_script(&["-j1"], script);
    assert_eq!(live.line(), "begin");
    live.signal("INT");
    assert_eq!(live.end().code, Some(130));
    place.expect_usable();
}

#[test]
fn doubling_string_in_a_script_ends_at_its_heap() {
    let place = Place::new();
    let script = "function swell() { s = \"x\"; while (true) { s = s + s; } return s; }
         bad = spawn(swell, [], {\"name\": \"bad\"});
         print(\"between\");
         try { x = *bad + \"\"; } catch (e) { print(\"caught\", e.kind); }
         print(\"end\");
         y = *bad + \"\";";
    let ended = place.script(&["-j2", "--heap", "32M"], script);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(
        ended.stdout, "between\ncaught OutOfMemory\nend\n",
        "{}",
        ended.stderr
    );
    expect_told(&ended, "bad", &["memory"]);
    assert!(ended.peak_kib < PEAK_KIB_MAX, "{} KiB", ended.peak_kib);
    place.expect_usable();
}

#[test]
fn full_disk_of_an_unrecorded_run_fails_the_task_that_filled_it_and_no_other() {
    let place = Place::new();
    let Some(_disk) = SmallDisk::new(&place.path("disk")) else {
        return skipped("full disk", "this user may not mount a file system");
    };
    let state = ["--serial", "--state", "disk/state"];
    let script = |bad: &str| {
        format!(
            "print(\"before\", *{});
             bad = {bad};
             print(\"between\");
             try {{ x = text(bad); y = x + \"\"; }} catch (e) {{ print(\"caught\", e.kind); }}
             b = {};
             print(\"end\", *b);",
            shell("echo 4"),
            shell("echo 5"),
        )
    };
    let expected = "before 4\nbetween\ncaught DiskFull\nend 5\n";
    // A program sees the full disk itself; the engine sees it when it lays a file out for one.
    let filled = bad_shell("head -c 10000000 /dev/zero", "");
    let ended = place.script(&state, &script(&filled));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.starts_with("before 4\nbetween\ncaught "),
        "{}",
        ended.stdout
    );
    place.file("large.txt", vec![b'x'; 10_000_000]);
    let grabbed = "spawn_exec(\"grab\", {\"path\": \"large.txt\"}, 1, {\"name\": \"bad\"})[0]";
    let ended = place.script(&state, &script(grabbed));
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), expected),
        "{}",
        ended.stderr
    );
    let ended = place.script(&state, &format!("bad = {grabbed}; return text(bad);"));
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), ""),
        "{}",
        ended.stderr
    );
    expect_told(&ended, "bad", &["no space is left on the disk", "hint: "]);
    let well = place.script(&state, &format!("return *{};", shell("echo 41")));
    assert_eq!(
        (well.code, well.stdout.as_str()),
        (Some(0), "41\n"),
        "{}",
        well.stderr
    );
}

#[test]
fn disk_that_is_full_from_the_start_is_told_before_anything_runs() {
    let place = Place::new();
    let Some(_disk) = SmallDisk::new(&place.path("disk")) else {
        return skipped(
            "full disk from the start",
            "this user may not mount a file system",
        );
    };
    let filled = Command::new("sh")
        .args(["-c", "head -c 10000000 /dev/zero > disk/filler"])
        .current_dir(place.path("."))
        .output()
        .unwrap();
    assert!(!filled.status.success());
    let script = "print(\"never shown\");";
    let ended = place.script(&["--state", "disk/state"], script);
    assert_ne!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("no space is left on the disk"),
        "{}",
        ended.stderr
    );
    fs::remove_file(place.path("disk/filler")).unwrap();
    let ended = place.script(&["--state", "disk/state"], "return 1;");
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "1\n"),
        "{}",
        ended.stderr
    );
}

#[test]
fn deep_path_works_or_says_how_long_it_may_be() {
    let place = Place::new();
    let folder = |depth: usize| vec!["a-folder-with-a-long-name"; depth].join("/");
    let script = format!("return *{};", shell("echo 41"));
    place.file("job.sw", script);
    let deep = folder(100);
    let ended = place.run(&["run", "--state", &deep, "job.sw"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "41\n"),
        "{}",
        ended.stderr
    );
    let ended = place.run(&["run", "--state", &folder(155), "job.sw"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), ""),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("bytes long"), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: "), "{}", ended.stderr);
}

#[test]
fn two_runs_in_one_folder_do_not_see_each_other() {
    let place = Place::new();
    let gate = place.gate("gate");
    let first = format!(
        "print(\"first\"); x = {}; big = {}; print(\"first got\", *x, len(text(big)));",
        shell(&format!("{}; {}; echo 1", done("started"), held("gate"))),
        shell("head -c 100000 /dev/zero | tr '\\0' x"),
    );
    place.file("first.sw", first);
    let live = place.start(&["run", "-j2", "first.sw"]);
    place.await_file("started");
    let big = shell("head -c 200000 /dev/zero | tr '\\0' y");
    place.file("second.sw", format!("return len(text({big}));"));
    let mut others: Vec<_> = (0..3).map(|_| place.start(&["run", "second.sw"])).collect();
    for other in others.drain(..) {
        let ended = other.end();
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), "200000\n"),
            "{}",
            ended.stderr
        );
    }
    let cleaned = place.start(&["clean"]).end();
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.stderr);
    gate.release(1);
    let ended = live.end();
    let expected = "first\nfirst got 1 100000\n";
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), expected),
        "{}",
        ended.stderr
    );
    place.expect_nobody(&ended.stderr);
}

#[test]
fn state_of_another_version_is_left_alone_until_it_is_cleaned() {
    let place = Place::new();
    fs::create_dir(place.path(".ciel")).unwrap();
    place.file(".ciel/format", "ciel-state 999\n");
    place.file("job.sw", "return 41;");
    let ended = place.run(&["run", "job.sw"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), ""),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("another version"), "{}", ended.stderr);
    assert!(ended.stderr.contains("ciel clean"), "{}", ended.stderr);
    assert_eq!(place.read(".ciel/format"), "ciel-state 999\n");
    assert_eq!(place.run(&["clean"]).code, Some(0));
    place.expect_usable();
}

#[test]
fn folder_of_something_else_is_not_touched() {
    let place = Place::new();
    fs::create_dir(place.path(".ciel")).unwrap();
    place.file(".ciel/diary.txt", "dear diary");
    place.file("job.sw", "return 41;");
    let ended = place.run(&["run", "job.sw"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), ""),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("not a state folder"),
        "{}",
        ended.stderr
    );
    assert_eq!(place.read(".ciel/diary.txt"), "dear diary");
    place.run(&["clean"]);
    assert_eq!(place.read(".ciel/diary.txt"), "dear diary");
}
