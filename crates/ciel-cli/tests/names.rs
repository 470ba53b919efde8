//! Files with names that shells, patterns and formats take for something else: as inputs, outputs,
//! exports, scripts, folders and targets of `-o`.
//!
//! None of them was ever tried, and four were found wanting; each test says how. Read first:
//! `support`.

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use support::programs::{python, runs_python};
use support::{Live, Place};

/// Names in UTF-8.
const NAMES: [&str; 14] = [
    "new\nline",
    "quo'te\"d",
    "-rf",
    "$HOME `id` $(id)",
    "back\\slash",
    "*",
    "~",
    "#c",
    "a;b|c&d",
    " spaced ",
    "{in.f}",
    "tab\there",
    "äß€",
    "--",
];

/// The longest name that a file may have.
fn longest() -> String {
    "x".repeat(255)
}

fn names() -> Vec<String> {
    let names = NAMES.iter().map(|name| name.to_string());
    names.chain([longest()]).collect()
}

#[test]
fn files_with_hostile_names_are_found_read_and_written() {
    let place = Place::new();
    for folder in ["in", "out"] {
        fs::create_dir(place.path(folder)).unwrap();
    }
    for name in names() {
        place.file(&format!("in/{name}"), format!("held by {name}"));
    }
    let script = r#"
        found = 0;
        for (path in glob("in/*")) {
            file = grab(path);
            copy = spawn_exec("shell", {"command": "cat < {f}", "inputs": {"f": file}}, 1)[0];
            same = spawn_exec("shell", {"command": "cat -- {p} | cmp - {f} && cat {f} > {out.r}",
                "inputs": {"f": copy, "p": path}, "outputs": ["r"]}, 1)[0];
            text(export(same, "out/" + path[3:]));
            found += 1;
        }
        return found;"#;
    for options in [&["-q", "-j2"][..], &["-q", "--serial"]] {
        let script = format!("include \"grab\";{script}");
        let ended = place.script(options, &script);
        let expected = format!("{}\n", names().len());
        assert_eq!(
            (ended.code, ended.stdout),
            (Some(0), expected),
            "{}",
            ended.stderr
        );
        for name in names() {
            let path = format!("out/{name}");
            assert_eq!(place.read(&path), format!("held by {name}"), "{name}");
            fs::remove_file(place.path(&path)).unwrap();
        }
    }
}

/// An output whose name fits no placeholder had nowhere to be written to, and the task failed after
/// its command had run: `it succeeded but did not write output 1 of 1`.
#[test]
fn output_that_no_placeholder_can_name_is_refused_before_its_command_runs() {
    let place = Place::new();
    for name in ["a b", "", "quo'te", "new\nline", "-rf", "a/b", "é"] {
        let arguments = format!("{{\"command\": \"touch ran\", \"outputs\": [{name:?}]}}");
        let script = format!("text(spawn_exec(\"shell\", {arguments}, 1)[0]);");
        let ended = place.script(&["-q"], &script);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let told = format!("no placeholder can name its output {name:?}");
        assert!(ended.stderr.contains(&told), "{}", ended.stderr);
        assert!(!place.has("ran"));
    }
}

/// The draft of a file has a longer name than the file, which the system refused.
#[test]
fn output_goes_to_a_file_with_the_longest_name() {
    let place = Place::new();
    place.file("job.sw", "print(\"shown\");");
    for options in [&[][..], &["--overwrite"]] {
        let name = longest();
        let words = [&["run", "-q", "-o", &name], options, &["job.sw"]].concat();
        let ended = place.run(&words);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(place.read(&name), "shown\n");
        place.file(&name, if options.is_empty() { "other" } else { "" });
    }
}

#[test]
fn job_runs_in_a_folder_whose_name_is_not_utf8_and_is_listed() {
    let place = Place::new();
    let name = OsStr::from_bytes(b"caf\xe9 \n\"x\"");
    let folder = place.path("").join(name);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("f.txt"), "seven").unwrap();
    let script = "include \"grab\"; print(glob(\"*.txt\")); return text(grab(\"f.txt\"));";
    fs::write(folder.join("job.sw"), script).unwrap();
    let run = |words: &[&str]| {
        let mut command = place.command();
        command.current_dir(&folder).args(words);
        Live::start(command).end()
    };
    let ended = run(&["run", "-q", "job.sw"]);
    let expected = "[\"f.txt\"]\n\"seven\"\n";
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), expected),
        "{}",
        ended.stderr
    );
    let listed = run(&["ps"]);
    assert!(
        listed.stdout.contains("job.sw"),
        "{} {}",
        listed.stdout,
        listed.stderr
    );
}

/// The path reached the worker with other bytes, and the job failed with `there is no Python file`.
#[test]
fn python_program_whose_path_is_not_utf8_is_refused_with_the_reason() {
    let place = Place::new();
    if !runs_python("Python program whose path is not UTF-8", "") {
        return;
    }
    let path = place.path("").join(OsStr::from_bytes(b"j\xffb.py"));
    fs::write(&path, "def main(): pass").unwrap();
    let mut command = place.command();
    command.arg("run").arg(&path).env("CIEL_PYTHON", python());
    let ended = Live::start(command).end();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for words in ["is not UTF-8", "hint: rename"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

/// The text failed the task that spawned the command, where no `except` could catch it.
#[test]
fn name_that_is_not_utf8_is_refused_where_python_passes_it() {
    let place = Place::new();
    if !runs_python("names from Python that are not UTF-8", "") {
        return;
    }
    let job = "import os\nimport ciel\n\ndef main():\n    name = os.fsdecode(b'caf\\xe9')\n    \
               try:\n        ciel.sh('cat {name}', name=name)\n    \
               except ciel.NotSerializable as error:\n        return str(error)\n";
    place.file("job.py", job);
    let mut command = place.command();
    command
        .args(["run", "-q", "job.py"])
        .env("CIEL_PYTHON", python());
    let ended = Live::start(command).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended
            .stdout
            .contains("the text 'caf\\\\udce9' is not UTF-8"),
        "{}",
        ended.stdout
    );
}
