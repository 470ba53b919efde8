//! What a started process gets, and what happens when it cannot be started.
//! It does not know what is done to running processes. Next: `ends`.

mod support;

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;

use ciel_spawner::{Environment, Input, Output, Request, Status, Step};
use support::{Lines, Run, c_string};

#[test]
fn exit_codes_are_reported() {
    let mut run = Run::new();
    for code in [0, 1, 42, 255] {
        let id = run.start(&["sh", "-c", &format!("exit {code}")]);
        assert_eq!(run.status(id), Status::Code(code));
    }
}

/// What a start with a template prints of its socket.
fn seen_socket(run: &mut Run, script: &str) -> (u64, Lines) {
    let (lines, writer) = Lines::new();
    let mut start = run.task(&["sh", "-c", script]);
    (start.template, start.stdout) = (Some(9), Output::Fd(0));
    (run.send(start, &[writer.as_fd()]), lines)
}

#[test]
fn one_of_several_like_processes_is_offered_a_template_until_it_is_gone() {
    let mut run = Run::new();
    let script = "echo number $CIEL_TEMPLATE_FD $(readlink /proc/$$/fd/9 | cut -c1-6); \
                  exec sleep 1000";
    let (first, mut lines) = seen_socket(&mut run, script);
    assert_eq!(lines.line(), "number 9 socket");
    let (second, mut lines) = seen_socket(&mut run, script);
    assert_eq!(lines.line(), "number");
    for id in [first, second] {
        run.spawner.send(&Request::KillTree { id }, &[]).unwrap();
        assert!(run.exited(id).left.is_empty());
    }
    let (_, mut lines) = seen_socket(&mut run, script);
    assert_eq!(lines.line(), "number 9 socket");
}

#[test]
fn process_that_is_to_be_a_template_outlives_its_task_and_is_no_leftover() {
    let mut run = Run::new();
    let byte = |shift: u32| format!("\\\\$(printf %03o $(($! >> {shift} & 255)))");
    let number: String = [0, 8, 16, 24].map(byte).concat();
    let script = format!("sleep 1000 <&- >&- & printf \"{number}\" >&9; echo $!");
    let (id, mut lines) = seen_socket(&mut run, &script);
    let template = lines.pid();
    assert!(run.exited(id).left.is_empty());
    assert!(support::is_running(template));
}

/// What is forked by a template that started before could write to the folder.
#[test]
fn no_template_from_before_a_folder_was_protected_is_used_after_that() {
    let mut run = Run::new();
    let script = "echo number $CIEL_TEMPLATE_FD; exec sleep 1000";
    let (_, mut lines) = seen_socket(&mut run, script);
    assert_eq!(lines.line(), "number 9");
    let folder = c_string(run.folder.path().to_str().unwrap());
    let protect = Request::Protect { folder };
    run.spawner.send(&protect, &[]).unwrap();
    let (_, mut lines) = seen_socket(&mut run, script);
    assert_eq!(lines.line(), "number 9");
}

#[test]
fn error_output_reaches_a_pipe() {
    let mut run = Run::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut start = run.task(&["sh", "-c", "echo out; echo err >&2"]);
    start.stderr = Output::Fd(0);
    let id = run.send(start, &[writer.as_fd()]);
    drop(writer);
    assert_eq!(run.status(id), Status::Code(0));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "err\n");
}

#[test]
fn files_are_read_and_emptied_before_they_are_written() {
    let mut run = Run::new();
    let (input, output) = (run.folder.path().join("in"), run.folder.path().join("out"));
    std::fs::write(&input, "short\n").unwrap();
    std::fs::write(&output, "something longer\n").unwrap();
    let mut start = run.task(&["cat"]);
    start.stdin = Input::Path(c_string(input.to_str().unwrap()));
    start.stdout = Output::Path(c_string(output.to_str().unwrap()));
    let id = run.send(start, &[]);
    assert_eq!(run.status(id), Status::Code(0));
    assert_eq!(std::fs::read_to_string(output).unwrap(), "short\n");
}

#[test]
fn given_descriptors_arrive_under_their_numbers_and_no_others() {
    let mut run = Run::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"from three\n").unwrap();
    drop(writer);
    let (other, _writer) = std::io::pipe().unwrap();
    let mut start = run.task(&["sh", "-c", "cat <&3; echo /proc/self/fd/*"]);
    start.descriptors = vec![(3, 0), (9, 1)];
    let text = run.output(start, &[reader.as_fd(), other.as_fd()]);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("from three"));
    let numbers: Vec<_> = lines.next().unwrap().split(' ').map(|p| &p[14..]).collect();
    let given = ["0", "1", "2", "3", "9"];
    // The shell itself holds one more, for the folder that it lists.
    let more = numbers
        .iter()
        .filter(|number| !given.contains(*number))
        .count();
    assert!(
        numbers.len() == given.len() + more && more <= 1,
        "{numbers:?}"
    );
}

#[test]
fn environment_is_the_base_with_additions_or_a_full_one_and_carries_the_cookie() {
    let mut run = Run::new();
    let mut start = run.task(&["sh", "-c", "echo $HOME $ADDED $CIEL_COOKIE"]);
    start.environment =
        Environment::Additions(vec![c_string("ADDED=yes"), c_string("HOME=/nowhere")]);
    let text = run.output(start, &[]);
    assert!(text.starts_with("/nowhere yes "), "{text}");
    assert!(
        text.ends_with(&format!("{}:task@1\n", run.cookie)),
        "{text}"
    );
    let mut start = run.task(&["/usr/bin/env"]);
    start.environment = Environment::Full(vec![c_string("ONLY=this")]);
    let text = run.output(start, &[]);
    let names: Vec<_> = text
        .lines()
        .map(|line| line.split('=').next().unwrap())
        .collect();
    assert_eq!(names, ["CIEL_COOKIE", "ONLY"]);
}

#[test]
fn program_is_searched_in_the_tasks_own_path() {
    let mut run = Run::new();
    let bin = run.folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let program = bin.join("greet");
    std::fs::write(&program, "echo hello $1\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let mut start = run.task(&["greet", "you"]);
    let path = format!("PATH=/nowhere:{}:/bin", bin.display());
    start.environment = Environment::Additions(vec![c_string(&path)]);
    assert_eq!(run.output(start, &[]), "hello you\n");
}

#[test]
fn direct_program_runs_in_place_of_the_other_if_it_can_be_run() {
    let mut run = Run::new();
    let folder = run.folder.path().to_owned();
    let bare = folder.join("bare");
    std::fs::write(&bare, "exit 5").unwrap();
    std::fs::set_permissions(&bare, PermissionsExt::from_mode(0o755)).unwrap();
    let bare = bare.to_str().unwrap().to_owned();
    for (direct, code) in [
        (&["false"][..], 1),
        (&["there-is-no-such-program"], 3),
        (&[&bare], 3),
        (&["/"], 3),
        (&[], 3),
    ] {
        let mut start = run.task(&["sh", "-c", "exit 3"]);
        start.direct = Some(direct.iter().map(|word| c_string(word)).collect());
        let id = run.send(start, &[]);
        assert_eq!(run.status(id), Status::Code(code), "{direct:?}");
    }
}

#[test]
fn signals_are_at_their_defaults_and_the_group_is_its_own() {
    let mut run = Run::new();
    let id = run.start(&["sh", "-c", "kill -PIPE $$"]);
    assert_eq!(run.status(id), Status::Signal(13, false));
    let start = run.task(&[
        "sh",
        "-c",
        "grep SigBlk /proc/self/status; cat /proc/$$/stat",
    ]);
    let id = start.id;
    let text = run.output(start, &[]);
    let pid = run.started(id).to_string();
    let fields: Vec<_> = text.split_whitespace().collect();
    assert_eq!(fields[..2], ["SigBlk:", "0000000000000000"]);
    assert_eq!((fields[2], fields[6]), (&*pid, &*pid));
}

#[test]
fn limits_are_set_before_the_program_runs() {
    let mut run = Run::new();
    let mut start = run.task(&["sh", "-c", "ulimit -v; ulimit -f"]);
    start.limits.address_space_bytes_max = Some(1 << 30);
    start.limits.file_bytes_max = Some(1 << 20);
    assert_eq!(run.output(start, &[]), "1048576\n2048\n");
}

#[test]
fn arguments_of_a_megabyte_arrive() {
    let mut run = Run::new();
    let long = "x".repeat(100_000);
    let mut program = vec!["sh", "-c", "echo $# ${#10}", "sh"];
    program.extend([&*long; 10]);
    let start = run.task(&program);
    assert_eq!(run.output(start, &[]), "10 100000\n");
}

#[test]
fn argument_beyond_the_kernels_bound_is_refused_with_a_hint() {
    let mut run = Run::new();
    let id = run.start(&["true", &"x".repeat(1 << 20)]);
    let refusal = run.refused(id);
    assert_eq!((refusal.step, refusal.errno), (Step::Program, libc::E2BIG));
    assert!(refusal.hint().is_some() && refusal.to_string().contains("too long"));
}

#[test]
fn missing_program_is_refused() {
    let mut run = Run::new();
    let id = run.start(&["no-such-program"]);
    let refusal = run.refused(id);
    assert_eq!((refusal.step, refusal.errno), (Step::Program, libc::ENOENT));
    assert_eq!(refusal.subject, "no-such-program");
    assert_eq!(run.children(), "");
}

#[test]
fn missing_folder_is_refused_by_its_name() {
    let mut run = Run::new();
    let mut start = run.task(&["true"]);
    start.folder = Some(c_string("/no/such/folder"));
    let id = run.send(start, &[]);
    let refusal = run.refused(id);
    assert_eq!(
        refusal.to_string(),
        "cannot enter folder `/no/such/folder`: it does not exist"
    );
}

#[test]
fn file_that_is_not_executable_is_refused() {
    let mut run = Run::new();
    let path = run.folder.path().join("plain");
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    let id = run.start(&[path.to_str().unwrap()]);
    let refusal = run.refused(id);
    assert_eq!((refusal.step, refusal.errno), (Step::Program, libc::EACCES));
    assert_eq!(refusal.hint(), Some("make it executable with `chmod +x`"));
}

#[test]
fn script_without_its_interpreter_is_told_from_a_missing_program() {
    let mut run = Run::new();
    let path = run.folder.path().join("script");
    std::fs::write(&path, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let mut start = run.task(&["./script"]);
    start.folder = Some(c_string(run.folder.path().to_str().unwrap()));
    let id = run.send(start, &[]);
    assert_eq!(run.refused(id).step, Step::Interpreter);
}

#[test]
fn unopenable_files_and_unsent_descriptors_are_refused() {
    let mut run = Run::new();
    let mut start = run.task(&["true"]);
    start.stdin = Input::Path(c_string("/no/such/input"));
    let id = run.send(start, &[]);
    assert_eq!(run.refused(id).step, Step::Input);
    let mut start = run.task(&["true"]);
    start.stderr = Output::Path(c_string("/no/such/folder/error"));
    let id = run.send(start, &[]);
    assert_eq!(run.refused(id).step, Step::ErrorOutput);
    let mut start = run.task(&["true"]);
    start.stdout = Output::Fd(0);
    let id = run.send(start, &[]);
    assert_eq!(run.refused(id).step, Step::Descriptor);
}

#[test]
fn two_thousand_tasks_in_a_burst_all_end_and_leave_nothing_in_the_spawner() {
    let mut run = Run::new();
    let id = run.start(&["true"]);
    run.exited(id);
    let before = run.descriptors();
    let (reader, _writer) = std::io::pipe().unwrap();
    let ids: Vec<_> = (0..2_000)
        .map(|_| {
            let mut start = run.task(&["true"]);
            start.descriptors = vec![(3, 0)];
            run.send(start, &[reader.as_fd()])
        })
        .collect();
    for id in ids {
        assert_eq!(run.status(id), Status::Code(0));
    }
    assert_eq!((run.descriptors(), run.children()), (before, String::new()));
    assert!(!run.spawner.want_write());
}

/// Permissions do not bind root: a task of root could overwrite the results of others in place.
#[test]
fn protected_folder_can_be_read_and_not_written_by_what_starts_later() {
    let mut run = Run::new();
    let folder = run.folder.path().join("results");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("one"), "as it was").unwrap();
    let folder = c_string(folder.to_str().unwrap());
    run.spawner.send(&Request::Protect { folder }, &[]).unwrap();
    let file = run.folder.path().join("results/one");
    let file = file.to_str().unwrap();
    let script = format!("cat {file}; echo other > {file} && rm {file}; exit 0");
    let start = run.task(&["sh", "-c", &script]);
    assert_eq!(run.output(start, &[]), "as it was");
    let mounts = run.task(&["cat", "/proc/self/mountinfo"]);
    if !run.output(mounts, &[]).contains("/results ") {
        eprintln!("skipped: protected_folder: no mounts may be made here");
        return;
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "as it was");
    let own = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!own.contains("/results "), "it is seen outside: {own}");
    // What is outside writes there as before, and tasks see it.
    std::fs::write(file, "later").unwrap();
    let start = run.task(&["cat", file]);
    assert_eq!(run.output(start, &[]), "later");
}
