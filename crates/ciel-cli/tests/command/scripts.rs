//! Files that cannot be run: missing, of another kind, or wrong before anything runs.

use crate::support::{Folder, shows};

#[test]
fn missing_script_is_told() {
    shows!("script_missing", Folder::new().ciel(&["run", "job.sw"]));
}

#[test]
fn misspelt_script_is_guessed() {
    let folder = Folder::with_job("return 1;");
    shows!("script_misspelt", folder.ciel(&["run", "jbo.sw"]));
    shows!("script_without_suffix", folder.ciel(&["run", "job"]));
}

#[test]
fn missing_folder_is_told() {
    shows!(
        "script_folder_missing",
        Folder::new().ciel(&["run", "jobs/job.sw"])
    );
}

#[test]
fn folder_is_no_script() {
    let folder = Folder::with_job("return 1;");
    shows!("script_is_folder", folder.ciel(&["run", "."]));
}

#[test]
fn unreadable_script_is_told() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("job.sw", folder.path("job.sw")).unwrap();
    shows!("script_unreadable", folder.ciel(&["run", "job.sw"]));
}

#[test]
fn empty_script_is_told() {
    shows!(
        "script_empty",
        Folder::with_job("").ciel(&["run", "job.sw"])
    );
}

#[test]
fn binary_script_is_told() {
    let folder = Folder::new();
    folder.write("job.sw", b"\x7fELF\0\0");
    shows!("script_binary", folder.ciel(&["run", "job.sw"]));
    folder.write("job", b"\x7fELF\0\0");
    shows!("program_binary", folder.ciel(&["run", "job"]));
}

#[test]
fn python_program_without_its_interpreter_is_told() {
    let folder = Folder::new();
    folder.write("job.py", "print(1)\n");
    let line = ["run", "--python", "nowhere/python3", "job.py"];
    shows!("python", folder.ciel(&line));
    folder.write("job", "#!/usr/bin/env python3\nprint(1)\n");
    let line = ["run", "--python", "nowhere/python3", "job"];
    assert_eq!(folder.ciel(&line).code, Some(2));
}

#[test]
fn program_of_no_kind_is_told() {
    let folder = Folder::new();
    folder.write("job.txt", "return 1;\n");
    shows!("no_kind", folder.ciel(&["run", "job.txt"]));
}

#[test]
fn first_line_makes_a_script() {
    let folder = Folder::new();
    folder.write("job", "#!/usr/bin/env ciel\nreturn argv(0);\n");
    let ended = folder.ciel(&["./job", "-k"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "\"-k\"\n"));
}

#[test]
fn syntax_error_shows_its_line() {
    let folder = Folder::with_job("function f(x { return x; }\n");
    shows!("syntax_error", folder.ciel(&["run", "job.sw"]));
}

#[test]
fn wrong_names_and_arguments_are_told_together() {
    let folder = Folder::with_job("function area(x) { return x; }\nreturn arae(1) + area(1, 2);\n");
    shows!("name_errors", folder.ciel(&["run", "job.sw"]));
}

#[test]
fn static_errors_are_told_as_json() {
    let folder = Folder::with_job("return arae(1);\n");
    shows!("name_error_json", folder.ciel(&["run", "--json", "job.sw"]));
    shows!(
        "script_missing_json",
        folder.ciel(&["run", "--json", "jbo.sw"])
    );
}

#[test]
fn missing_include_is_told_at_its_place() {
    let folder = Folder::with_job("include \"tools.sw\";\nreturn 1;\n");
    shows!("include_missing", folder.ciel(&["run", "job.sw"]));
}

#[test]
fn error_in_an_included_file_is_told_there() {
    let folder = Folder::with_job("include \"tools/one\";\nreturn one();\n");
    std::fs::create_dir(folder.path("tools")).unwrap();
    folder.write("tools/one.sw", "function one() { return oen; }\n");
    shows!("include_wrong", folder.ciel(&["run", "job.sw"]));
}

#[test]
fn included_file_is_read_once_whatever_it_is_called() {
    let folder = Folder::with_job("include \"a\"; include \"./a.sw\"; return one();\n");
    folder.write("a.sw", "include \"job.sw\"; function one() { return 1; }\n");
    assert_eq!(folder.ciel(&["run", "job.sw"]).stdout, "1\n");
}
