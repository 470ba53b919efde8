//! Hosts in C and C++ write what their serial elision writes, and misuse is an error.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Place, THREADS, can_compile, skipped};

/// Compiles a program of `tests/programs`, which checks itself; none if there is no compiler.
fn checking(place: &Place, name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    can_compile().then(|| place.compile(&folder.join(name), &[]))
}

/// Compiles and runs such a program.
fn passes(name: &str) {
    let place = Place::new();
    if let Some(program) = checking(&place, name) {
        place.run(&program, &[]);
    }
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
fn strands_in_cxx_are_within_the_bound_of_the_header() {
    passes("bounds.cpp");
}

#[test]
fn messages_are_a_thread_s_own_and_strands_nest_and_move_on() {
    passes("threads.c");
}

#[test]
fn host_in_cxx_without_openmp_runs_in_serial_order() {
    if !can_compile() {
        return;
    }
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = place.compile(&folder.join("serial.cpp"), &["-fno-openmp"]);
    place.run(&program, &[]);
    assert_eq!(place.text("log"), "12345678");
}

/// Bytes of the long test: some, or as many as the environment says.
fn output_bytes() -> String {
    std::env::var("CIEL_OUTPUT_BYTES").unwrap_or("20000000".to_owned())
}

#[test]
fn million_strands_and_output_beyond_all_buffers_are_in_order() {
    let place = Place::new();
    if let Some(program) = checking(&place, "extremes.c") {
        place.run(&program, &["strands"]);
        place.run(&program, &["large", &output_bytes()]);
    }
}

/// Each descriptor used to be looked for among all that are open, so this took minutes.
#[test]
fn descriptors_end_at_their_bound_and_the_lowest_free_one_is_next() {
    let place = Place::new();
    if let Some(program) = checking(&place, "extremes.c") {
        place.run(&program, &["descriptors"]);
    }
}

/// A file system in memory that is soon full, until this is dropped.
struct SmallDisk<'a>(&'a Path);

impl SmallDisk<'_> {
    fn mounted(at: &Path) -> Option<SmallDisk<'_>> {
        std::fs::create_dir(at).unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(at);
        let ended = mount.output().ok()?;
        ended.status.success().then_some(SmallDisk(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0).status();
        assert!(unmounted.unwrap().success());
    }
}

#[test]
fn disk_that_becomes_full_leaves_a_prefix_and_all_later_calls_fail_alike() {
    let place = Place::new();
    let Some(program) = checking(&place, "extremes.c") else {
        return;
    };
    let folder = place.path("small");
    let Some(disk) = SmallDisk::mounted(&folder) else {
        return skipped("no file system can be mounted");
    };
    place.run(&program, &[disk.0.join("log").to_str().unwrap()]);
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
