//! Help, version, completions, options that are wrong.

use std::process::{Command, Stdio};

use crate::support::{Folder, shows};

#[test]
fn help_lists_commands() {
    shows!("help", Folder::new().ciel(&["--help"]));
}

#[test]
fn help_of_run_lists_options() {
    shows!("help_run", Folder::new().ciel(&["run", "--help"]));
}

/// "cannot find .ciel: No such file or directory" was said of a state folder that need not exist.
#[test]
fn removed_current_folder_is_what_is_missing() {
    let folder = Folder::new();
    let shell = "mkdir gone; cd gone; rmdir ../gone; exec \"$0\" ps";
    let ciel = env!("CARGO_BIN_EXE_ciel");
    let mut command = Command::new("sh");
    command
        .current_dir(folder.path("."))
        .args(["-c", shell, ciel]);
    let ended = command.output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{told}");
    assert!(told.contains("cannot find the current folder"), "{told}");
}

#[test]
fn version_is_one_line() {
    shows!("version", Folder::new().ciel(&["--version"]));
}

#[test]
fn no_command_shows_help_and_is_wrong_usage() {
    let ended = Folder::new().ciel(&[]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("Commands:"));
}

#[test]
fn completions_know_every_command_and_option() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = Folder::new().ciel(&["completions", shell]);
        assert_eq!(ended.code, Some(0));
        for word in ["doctor", "keep-going", "job-timeout"] {
            assert!(ended.stdout.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn completions_are_accepted_by_their_shell() {
    let folder = Folder::new();
    folder.write("completions", folder.ciel(&["completions", "bash"]).stdout);
    let mut bash = std::process::Command::new("bash");
    let read = bash
        .arg("-n")
        .arg(folder.path("completions"))
        .status()
        .unwrap();
    assert!(read.success());
}

#[test]
fn manual_page_has_every_command() {
    let ended = Folder::new().ciel(&["man"]);
    assert_eq!(ended.code, Some(0));
    for word in ["ciel\\-run", "ciel\\-doctor", "keep\\-going"] {
        assert!(ended.stdout.contains(word), "{word}");
    }
}

#[test]
fn unknown_command_is_wrong_usage() {
    shows!("unknown_command", Folder::new().ciel(&["rnu", "job.sw"]));
}

#[test]
fn unknown_option_is_wrong_usage() {
    shows!(
        "unknown_option",
        Folder::new().ciel(&["run", "--keepgoing", "job.sw"])
    );
}

#[test]
fn options_that_exclude_each_other_are_wrong_usage() {
    let folder = Folder::with_job("return 1;");
    shows!(
        "excluded_options",
        folder.ciel(&["run", "-k", "--fail-fast", "job.sw"])
    );
}

#[test]
fn amounts_that_make_no_sense_are_wrong_usage() {
    let folder = Folder::with_job("return 1;");
    shows!(
        "wrong_time",
        folder.ciel(&["run", "--timeout", "1d", "job.sw"])
    );
    shows!(
        "wrong_size",
        folder.ciel(&["run", "--heap", "12", "job.sw"])
    );
    shows!("wrong_jobs", folder.ciel(&["run", "-j0", "job.sw"]));
    shows!(
        "wrong_package",
        folder.ciel(&["run", "--package", "a", "job.sw"])
    );
}

#[test]
fn package_that_is_missing_is_wrong_usage() {
    let folder = Folder::with_job("return 1;");
    shows!(
        "package_missing",
        folder.ciel(&["run", "--package", "data=nothing", "job.sw"])
    );
}

#[test]
fn package_given_twice_is_wrong_usage() {
    let folder = Folder::with_job("return 1;");
    let words = [
        "run",
        "--package",
        "a=job.sw",
        "--package",
        "a=job.sw",
        "job.sw",
    ];
    shows!("package_twice", folder.ciel(&words));
}

#[test]
fn limit_of_open_files_that_is_too_low_is_named_with_the_one_that_is_enough() {
    let folder = Folder::with_job("return 1;");
    for (files, code) in [("8", 2), ("20", 1)] {
        let command = folder.command(&["run", "job.sw"]);
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -n $0; exec \"$@\"", files]);
        limited.arg(command.get_program()).args(command.get_args());
        limited.current_dir(folder.path("."));
        limited.stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = folder.ended(limited.spawn().unwrap());
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let hint = format!(
            "Too many open files\nhint: this process may open {files} files; raise the limit: \
             ulimit -n 256\n"
        );
        assert!(ended.stderr.ends_with(&hint), "{}", ended.stderr);
    }
}
