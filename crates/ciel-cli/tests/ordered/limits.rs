//! The limits that the page of the command states: privileges, shared descriptors, calls that look
//! different from within.

use std::process::{Command, Output};

use super::support::{Place, skipped};
use super::{fifos, may_intercept, ordered, plain, printed};

/// A program in C whose first word says what it does.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void say(const char *text) { write(1, text, strlen(text)); }

/* Returns when somebody has opened the other end. */
static void wait_at_gate(void) { close(open("gate", O_RDONLY)); }
static void open_gate(void) { close(open("gate", O_WRONLY)); }

static void on_child(int signal) { (void)signal; }

static int bare(long flags) {
    int gate = open("gate", O_RDWR);
    char byte;
    if (syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0) == 0) {
        syscall(SYS_read, gate, &byte, 1);
        syscall(SYS_write, 1, "child\n", 6);
        syscall(SYS_exit_group, 0);
    }
    say("parent\n");
    write(gate, "x", 1);
    wait(NULL);
    return 0;
}

static int spawned(void) {
    char *words[] = {"sh", "-c", "read x < gate; echo child", NULL};
    pid_t child;
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ) != 0) return 1;
    say("parent\n");
    open_gate();
    wait(NULL);
    return 0;
}

static int handled(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_child;
    sigaction(SIGCHLD, &action, NULL);
    sigaction(SIGCHLD, NULL, &action);
    say(action.sa_flags & SA_RESTART ? "child restarts\n" : "child interrupts\n");
    memset(&action, 0, sizeof action);
    action.sa_handler = on_child;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR1, NULL, &action);
    say(action.sa_flags & SA_RESTART ? "other restarts\n" : "other interrupts\n");
    return 0;
}

int main(int count, char **words) {
    (void)count;
    if (strcmp(words[1], "bare") == 0) return bare(0);
    if (strcmp(words[1], "sharing") == 0) return bare(CLONE_FILES);
    if (strcmp(words[1], "spawned") == 0) return spawned();
    if (strcmp(words[1], "handled") == 0) return handled();
    syscall(SYS_clone3, NULL, 0);
    say(errno == ENOSYS ? "missing\n" : "there\n");
    return 0;
}
"#;

/// A place with the program; none if the test is skipped.
fn place_with_program(test: &str) -> Option<Place> {
    if !may_intercept(test) {
        return None;
    }
    let place = Place::new();
    fifos(&place, &["gate".to_owned()]);
    place.file("limits.c", PROGRAM);
    let words = ["cc", "-w", "-o", "limits", "limits.c"];
    if Command::new("cc").arg("--version").output().is_err() {
        skipped(test, "there is no C compiler");
        return None;
    }
    let built = plain(&place, &words);
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    Some(place)
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn spawned_process_prints_where_it_was_started() {
    let test = "spawned_process_prints_where_it_was_started";
    let Some(place) = place_with_program(test) else {
        return;
    };
    let output = ordered(&place, &["--", "./limits", "spawned"]);
    assert_eq!(out(&output), "child\nparent\n");
}

#[test]
fn process_that_prints_before_any_other_call_or_shares_descriptors_is_part_of_its_parent() {
    let test =
        "process_that_prints_before_any_other_call_or_shares_descriptors_is_part_of_its_parent";
    let Some(place) = place_with_program(test) else {
        return;
    };
    for word in ["bare", "sharing"] {
        let output = ordered(&place, &["--", "./limits", word]);
        assert_eq!(out(&output), "parent\nchild\n", "{word}");
    }
}

#[test]
fn call_whose_flags_are_out_of_sight_is_missing() {
    let test = "call_whose_flags_are_out_of_sight_is_missing";
    let Some(place) = place_with_program(test) else {
        return;
    };
    let output = ordered(&place, &["--", "./limits", "clone3"]);
    assert_eq!(out(&output), "missing\n");
}

#[test]
fn handler_of_ended_children_restarts_calls_and_others_are_as_they_were() {
    let test = "handler_of_ended_children_restarts_calls_and_others_are_as_they_were";
    let Some(place) = place_with_program(test) else {
        return;
    };
    let output = ordered(&place, &["--", "./limits", "handled"]);
    assert_eq!(out(&output), "child restarts\nother interrupts\n");
    let output = plain(&place, &["./limits", "handled"]);
    assert_eq!(out(&output), "child interrupts\nother interrupts\n");
}

/// Runs a script as nobody, by way of a copy of the command that nobody may read.
fn as_nobody(place: &Place, script: &str, is_ordered: bool) -> Option<Output> {
    let copy = place.copy_of_command();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(copy.parent().unwrap(), open).unwrap();
    let mut command = place.program("setpriv".as_ref());
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    if is_ordered {
        command
            .arg(&copy)
            .args(["ordered", "--route=seccomp", "--"]);
    }
    let output = command.args(["sh", "-c", script]).output().ok()?;
    (output.status.code() != Some(127)).then_some(output)
}

#[test]
fn set_user_id_program_of_an_ordinary_user_runs_without_its_privileges() {
    let test = "set_user_id_program_of_an_ordinary_user_runs_without_its_privileges";
    if !may_intercept(test) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skipped(test, "only root can make a program that gains privileges");
    }
    let place = Place::new();
    let made = plain(
        &place,
        &["sh", "-c", "cp $(command -v id) id && chmod 4755 id"],
    );
    assert!(made.status.success());
    let script = format!("{} -u", place.path("id").display());
    match as_nobody(&place, &script, false) {
        Some(output) if out(&output) == "0\n" => {}
        _ => return skipped(test, "no setpriv, or no privileges to gain here"),
    }
    let output = as_nobody(&place, &script, true).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(out(&output), "65534\n", "{stderr}");
}

/// An ordered file used to be opened for every process by `ciel` and its user: one that had given
/// up its privileges could append to any file that `--file` named.
#[test]
fn process_of_another_user_opens_an_ordered_file_by_itself() {
    let test = "process_of_another_user_opens_an_ordered_file_by_itself";
    if !may_intercept(test) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skipped(test, "only root can become another user");
    }
    let place = Place::new();
    place.file("log", "old\n");
    place.file("free", "");
    let open = "chmod 755 .; chmod 644 log; chmod 666 free";
    assert!(plain(&place, &["sh", "-c", open]).status.success());
    if !plain(&place, &["setpriv", "--version"]).status.success() {
        return skipped(test, "there is no setpriv");
    }
    let nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups sh -c";
    let script = format!(
        "(echo first >> log; echo first >> free) &\n\
         {nobody} '(echo nobody >> log) 2> /dev/null || echo refused; echo nobody >> free'\n\
         echo last >> log; echo last >> free"
    );
    let files = ["--file", "log", "--file", "free"];
    assert_eq!(printed(&place, &files, &script), "refused\n");
    assert_eq!(place.read("log"), "old\nfirst\nlast\n");
    assert_eq!(place.read("free"), "first\nnobody\nlast\n");
}

#[test]
fn process_takes_three_descriptors_of_the_supervisor_at_most() {
    let test = "process_takes_three_descriptors_of_the_supervisor_at_most";
    if !may_intercept(test) {
        return;
    }
    let place = Place::new();
    fifos(&place, &["gate".to_owned(), "ready".to_owned()]);
    // The parent of the script is the supervisor. All processes live when it is looked at.
    let script = "exec 8<> ready 9<> gate\n\
                  set -- /proc/$PPID/fd/*; before=$#\n\
                  i=0; while [ $i -lt 50 ]; do i=$((i + 1)); (echo >&8; read x <&9) & done\n\
                  while [ $i -gt 0 ]; do i=$((i - 1)); read x <&8; done\n\
                  set -- /proc/$PPID/fd/*; echo $(($# - before))\n\
                  while [ $i -lt 50 ]; do i=$((i + 1)); echo >&9; done; wait";
    let more: u32 = printed(&place, &[], script).trim().parse().unwrap();
    assert!((50..=150).contains(&more), "{more} descriptors");
}
