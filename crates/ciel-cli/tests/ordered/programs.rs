//! Other ways of starting processes than a shell's `&`: each prints what it prints serially.

use std::process::Command;

use super::support::{Place, skipped};
use super::{fifos, may_intercept, ordered, plain, printed};

/// A process of a group waits until its successor has printed: the last one prints first.
const REVERSED: &str = "n=$1; [ $n = 6 ] || read x < gate$n; echo item $n; \
                        [ $n = 1 ] || echo > gate$((n - 1))";

fn place_with_gates() -> Place {
    let place = Place::new();
    let gates: Vec<String> = (1..6).map(|number| format!("gate{number}")).collect();
    fifos(&place, &gates);
    place
}

const ITEMS: &str = "item 1\nitem 2\nitem 3\nitem 4\nitem 5\nitem 6\n";

#[test]
fn parallel_xargs_prints_as_its_serial_run() {
    if !may_intercept("parallel_xargs_prints_as_its_serial_run") {
        return;
    }
    let place = place_with_gates();
    place.file("item", REVERSED);
    let script = "printf '%s\\n' 1 2 3 4 5 6 | xargs -P6 -n1 sh item";
    assert_eq!(printed(&place, &[], script), ITEMS);
}

#[test]
fn parallel_make_prints_its_recipe_lines_whole_and_in_order_of_their_starts() {
    let test = "parallel_make_prints_its_recipe_lines_whole_and_in_order_of_their_starts";
    if !may_intercept(test) {
        return;
    }
    if Command::new("make").arg("--version").output().is_err() {
        skipped(test, "there is no make");
        return;
    }
    let place = Place::new();
    super::fifos(&place, &["gate".to_owned()]);
    place.file(
        "Makefile",
        "all: one two\n\
         one:\n\t@echo one begins; read x < gate; echo one ends\n\
         two:\n\t@echo two begins; echo two ends; echo > gate\n",
    );
    let output = ordered(&place, &["--", "make", "-s", "-j2"]);
    let expected = "one begins\none ends\ntwo begins\ntwo ends\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn parallel_make_echoes_each_command_in_front_of_its_output() {
    let test = "parallel_make_echoes_each_command_in_front_of_its_output";
    if !may_intercept(test) {
        return;
    }
    if Command::new("make").arg("--version").output().is_err() {
        return skipped(test, "there is no make");
    }
    let place = Place::new();
    place.file(
        "Makefile",
        "three: two\n\techo the third\ntwo: one\n\techo the second\none:\n\techo the first\n",
    );
    // Targets that depend on each other in a chain.
    let expected = plain(&place, &["make", "--no-print-directory", "-j1"]);
    let output = ordered(&place, &["--", "make", "--no-print-directory", "-j4"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with("echo the first\nthe first\necho the second\n"),
        "{text}"
    );
    assert_eq!(text, String::from_utf8_lossy(&expected.stdout));
    place.file("Makefile", "all: a b\na b:\n\techo of $@\n");
    // Targets that depend on nothing.
    let output = ordered(&place, &["--", "make", "--no-print-directory", "-j4"]);
    let expected = plain(&place, &["make", "--no-print-directory", "-j1"]);
    let lines = |output: &std::process::Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.retain(|line| line.starts_with("of "));
        lines
    };
    assert_eq!(lines(&output), lines(&expected));
}

#[test]
fn commands_that_find_starts_print_in_their_order() {
    if !may_intercept("commands_that_find_starts_print_in_their_order") {
        return;
    }
    let place = place_with_gates();
    place.file("item", REVERSED);
    // Each leaves a process behind, which prints when its successor has.
    let script = "find 1 2 3 4 5 6 -exec sh -c 'sh item \"$1\" &' starts {} \\;";
    for name in ["1", "2", "3", "4", "5", "6"] {
        place.file(name, "");
    }
    assert_eq!(printed(&place, &[], script), ITEMS);
}

#[test]
fn spawned_python_processes_print_in_order_of_their_starts() {
    let test = "spawned_python_processes_print_in_order_of_their_starts";
    if !may_intercept(test) {
        return;
    }
    let place = place_with_gates();
    place.file(
        "spawns.py",
        "import multiprocessing\n\
         def item(number):\n    \
             if number < 3: open(f'gate{number}').read()\n    \
             print('item', number, flush=True)\n    \
             if number > 1: open(f'gate{number - 1}', 'w').close()\n\
         if __name__ == '__main__':\n    \
             context = multiprocessing.get_context('spawn')\n    \
             children = [context.Process(target=item, args=(n,)) for n in range(1, 4)]\n    \
             for child in children: child.start()\n    \
             print('all are started', flush=True)\n    \
             for child in children: child.join()\n",
    );
    let output = ordered(&place, &["--", "python3", "spawns.py"]);
    if output.status.code() == Some(127) {
        return skipped(test, "there is no python3");
    }
    let expected = "item 1\nitem 2\nitem 3\nall are started\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn forked_python_processes_print_in_order_of_their_starts() {
    if !may_intercept("forked_python_processes_print_in_order_of_their_starts") {
        return;
    }
    let place = place_with_gates();
    place.file(
        "forks.py",
        "import multiprocessing, os, subprocess, sys\n\
         def item(number):\n    \
             if number < 6: open(f'gate{number}').read()\n    \
             print('item', number, flush=True)\n    \
             if number > 1: open(f'gate{number - 1}', 'w').close()\n\
         context = multiprocessing.get_context('fork')\n\
         children = [context.Process(target=item, args=(n,)) for n in range(1, 7)]\n\
         for child in children: child.start()\n\
         print('all are started', flush=True)\n\
         for child in children: child.join()\n\
         one = subprocess.Popen(['sh', '-c', 'echo from a subprocess'])\n\
         os.write(1, b'beside it\\n')\n\
         sys.exit(one.wait())\n",
    );
    let output = ordered(&place, &["--", "python3", "forks.py"]);
    if output.status.code() == Some(127) {
        skipped(
            "forked_python_processes_print_in_order_of_their_starts",
            "there is no python3",
        );
        return;
    }
    let expected = format!("{ITEMS}all are started\nfrom a subprocess\nbeside it\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

/// A program without the C library's dynamic part, which forks, starts another one by `vfork`, and
/// has a thread that prints.
const STATIC_PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *print(void *unused) { puts("a thread"); fflush(stdout); return NULL; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, print, NULL);
    pthread_join(thread, NULL);
    int ends[2];
    pipe(ends);
    if (fork() == 0) {
        char byte;
        close(ends[1]);
        read(ends[0], &byte, 1);
        write(1, "first\n", 6);
        _exit(0);
    }
    if (vfork() == 0) {
        execl("/bin/echo", "echo", "second", NULL);
        _exit(1);
    }
    write(1, "parent\n", 7);
    int status;
    wait(&status);
    close(ends[1]);
    wait(&status);
    return 0;
}
"#;

#[test]
fn static_program_prints_in_order_of_its_starts() {
    let test = "static_program_prints_in_order_of_its_starts";
    if !may_intercept(test) {
        return;
    }
    let place = Place::new();
    place.file("static.c", STATIC_PROGRAM);
    let words = [
        "cc",
        "-static",
        "-w",
        "-o",
        "static",
        "static.c",
        "-lpthread",
    ];
    let built = plain(&place, &words);
    if !built.status.success() {
        skipped(test, "no static program can be built");
        return;
    }
    let output = ordered(&place, &["--", "./static"]);
    let expected = "a thread\nfirst\nsecond\nparent\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn detached_grandchild_prints_where_it_was_started() {
    if !may_intercept("detached_grandchild_prints_where_it_was_started") {
        return;
    }
    let place = Place::new();
    super::fifos(&place, &["gate".to_owned()]);
    // The process between ends at once; its child is an orphan when it first prints.
    let script = "(setsid sh -c 'read x < gate; echo orphan' & echo between)\n\
                  echo after\n\
                  echo > gate";
    assert_eq!(printed(&place, &[], script), "orphan\nbetween\nafter\n");
}

#[test]
fn descriptors_saved_elsewhere_follow_their_process() {
    if !may_intercept("descriptors_saved_elsewhere_follow_their_process") {
        return;
    }
    let place = Place::new();
    super::fifos(&place, &["gate".to_owned()]);
    let script = "exec 7>&1\n\
                  { read x < gate; echo seven >&7; echo out; } > hidden &\n\
                  echo beside; echo > gate; wait; cat hidden";
    assert_eq!(printed(&place, &[], script), "seven\nbeside\nout\n");
}

#[test]
fn ordinary_user_needs_no_privilege() {
    let test = "ordinary_user_needs_no_privilege";
    if !may_intercept(test) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        // All tests of this file have shown it.
        return;
    }
    let place = Place::new();
    // The folder of the build may be closed to others.
    let copy = place.copy_of_command();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(copy.parent().unwrap(), open).unwrap();
    let script = "(sh -c 'echo one; id -u') & echo two; wait";
    let mut command = place.program("setpriv".as_ref());
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command
        .arg(&copy)
        .args(["ordered", "--route=seccomp", "--", "sh", "-c", script]);
    match command.output() {
        Ok(output) if output.status.code() != Some(127) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                "one\n65534\ntwo\n",
                "{stderr}"
            );
        }
        _ => skipped(test, "there is no setpriv"),
    }
}

/// The status of a process has its name, and one that is no UTF-8 was not read: the children of
/// such a program were taken for a part of it.
#[test]
fn program_whose_name_is_no_text_is_told_apart_from_its_children() {
    if !may_intercept("program_whose_name_is_no_text_is_told_apart_from_its_children") {
        return;
    }
    let place = Place::new();
    super::fifos(&place, &["gate".to_owned()]);
    place.file(
        "inner",
        "(read x < gate; echo one) & echo two; echo > gate; wait\n",
    );
    let script = "name=$(printf '\\377'); cp $(command -v sh) ./$name; ./$name inner";
    assert_eq!(printed(&place, &[], script), "one\ntwo\n");
}

#[test]
fn outputs_that_are_one_file_keep_their_order_among_each_other() {
    if !may_intercept("outputs_that_are_one_file_keep_their_order_among_each_other") {
        return;
    }
    let place = Place::new();
    super::fifos(&place, &["gate".to_owned()]);
    let script = "(read x < gate; echo one; echo two >&2; echo three) &\n\
                  echo four >&2; echo five; echo > gate; wait";
    let file = std::fs::File::create(place.path("both")).unwrap();
    let mut command = super::command(&place, &["--", "sh", "-c", script]);
    command.stdout(file.try_clone().unwrap()).stderr(file);
    assert!(command.status().unwrap().success());
    assert_eq!(place.read("both"), "one\ntwo\nthree\nfour\nfive\n");
}

#[test]
fn output_opened_by_its_name_is_ordered() {
    if !may_intercept("output_opened_by_its_name_is_ordered") {
        return;
    }
    let place = Place::new();
    super::fifos(&place, &["gate".to_owned()]);
    let script = "(read x < gate; echo one > /dev/stdout; echo two | tee /dev/fd/1) &\n\
                  echo three | dd of=/dev/stdout 2> /dev/null; echo > gate; wait";
    assert_eq!(printed(&place, &[], script), "one\ntwo\ntwo\nthree\n");
    let script = "(read x < gate; echo one > /dev/stderr) &\n\
                  echo two > /dev/stderr; echo > gate; wait";
    let output = ordered(&place, &["--", "sh", "-c", script]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "one\ntwo\n");
}

#[test]
fn command_on_a_terminal_has_pipes_and_prints_there() {
    let test = "command_on_a_terminal_has_pipes_and_prints_there";
    if !may_intercept(test) {
        return;
    }
    let place = Place::new();
    let script = "(test -t 1 || echo no terminal) & echo beside; wait";
    let command = super::command(&place, &["--", "sh", "-c", script]);
    let ended = super::support::Live::start_on_terminal(command).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout.replace('\r', ""), "no terminal\nbeside\n");
}

#[test]
fn first_example_of_the_page_prints_as_it_says() {
    let test = "first_example_of_the_page_prints_as_it_says";
    if !may_intercept(test) {
        return;
    }
    let page = super::support::repository().join("docs/reference/ordered-command.md");
    let page = std::fs::read_to_string(page).unwrap();
    let example = page
        .split("```sh\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let place = Place::new();
    let on_path = format!("ciel() {{ {} \"$@\"; }}\n{example}", super::support::CIEL);
    let output = plain(&place, &["sh", "-c", &on_path]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "first\nsecond\n");
}

#[test]
fn what_is_written_to_the_terminal_by_its_name_appears_at_once() {
    let test = "what_is_written_to_the_terminal_by_its_name_appears_at_once";
    if !may_intercept(test) {
        return;
    }
    let place = Place::new();
    fifos(&place, &["gate".to_owned()]);
    let script = "(read go < gate; echo first) & echo second; echo at once > /dev/tty; \
                  echo > gate; wait";
    // The terminal becomes the one of the command's session, so that it has that name.
    let mut command = place.program("sh".as_ref());
    command.args(["-c", "exec setsid --ctty --wait \"$0\" \"$@\" <&1"]);
    command.args([super::support::CIEL, "ordered", "--", "sh", "-c", script]);
    let ended = super::support::Live::start_on_terminal(command).end();
    if ended.code == Some(127) {
        return skipped(test, "setsid of util-linux is missing");
    }
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout.replace('\r', ""), "at once\nfirst\nsecond\n");
}

#[test]
fn files_and_pipes_that_are_not_named_are_untouched() {
    if !may_intercept("files_and_pipes_that_are_not_named_are_untouched") {
        return;
    }
    let place = Place::new();
    fifos(&place, &["gate".to_owned(), "end".to_owned()]);
    let script = "{ read go < gate; echo first >> log; echo > end; } & echo second >> log; \
                  echo > gate; read end < end; cat log; \
                  { { read go < gate; echo first; } & echo second; echo > gate; wait; } | cat";
    assert_eq!(
        printed(&place, &[], script),
        "second\nfirst\nsecond\nfirst\n"
    );
}
