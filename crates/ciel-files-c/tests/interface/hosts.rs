//! Hosts in C and C++ write what their serial elision writes, and misuse is an error.

use std::path::Path;
use std::process::Command;

use crate::support::{Place, THREADS, can_compile};

/// Compiles and runs a program of `tests/programs`, which checks itself.
fn passes(name: &str) {
    if !can_compile() {
        return;
    }
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = place.compile(&folder.join(name), &[]);
    place.run(&program, &[]);
}

#[test]
fn misused_calls_fail_with_an_errno_and_a_message() {
    passes("misuse.c");
}

/// Threads keep the descriptors that they have used, and have to notice that these have changed.
#[test]
fn descriptors_that_become_other_files_are_so_for_all_threads_at_once() {
    passes("descriptors.c");
}

#[test]
fn views_reduced_in_any_order_append_from_left_to_right() {
    passes("views.c");
}

#[test]
fn modes_of_c_are_those_of_posix() {
    passes("modes.c");
}

#[test]
fn random_fork_join_programs_in_cxx_equal_their_serial_elision() {
    passes("random.cpp");
}

#[test]
fn exceptions_in_cxx_leave_what_precedes_them() {
    passes("exceptions.cpp");
}

#[test]
fn host_of_threads_equals_its_serial_elision() {
    if !can_compile() {
        return;
    }
    let place = Place::new();
    let program = place.example("pthreads.c", &[]);
    for threads in THREADS {
        place.run(&program, &[threads, "log", "300"]);
        let mut expected = String::new();
        for thread in 0..threads.parse().unwrap() {
            for line in 0..300 {
                expected += &format!("thread {thread} line {line}\n");
            }
        }
        assert_eq!(place.text("log"), expected + "end\n", "{threads} threads");
    }
}

#[test]
fn tasks_of_openmp_equal_their_serial_elision() {
    if !can_compile() {
        return;
    }
    let place = Place::new();
    let program = place.example("openmp.c", &[]);
    let expected: String = (0..2000).map(|leaf| format!("leaf {leaf}\n")).collect();
    for threads in THREADS {
        place.run(&program, &[threads, "log", "2000"]);
        assert_eq!(place.text("log"), expected, "{threads} threads");
    }
}

#[test]
fn full_disk_is_reported_with_its_errno() {
    if !can_compile() {
        return;
    }
    let place = Place::new();
    let program = place.example("pthreads.c", &[]);
    let output = Command::new(program)
        .args(["2", "/dev/full", "9000"])
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("from byte 0 on"), "{stderr}");
}
