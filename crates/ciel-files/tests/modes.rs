//! The three modes as their users meet them, and what is refused.

use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

use ciel_files::{File, FileError, Group, Mode, Options, fork, join, scope, spawn};
use tempfile::TempDir;

fn folder_with(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn line_of(mut file: &File) -> String {
    let mut bytes = [0; 5];
    let count = file.read(&mut bytes).unwrap();
    String::from_utf8(bytes[..count].to_vec()).unwrap()
}

#[test]
fn local_pointers_begin_at_the_fork_and_belong_to_their_strands() {
    let (_folder, path) = folder_with("1111\n2222\n3333\n4444\n");
    let file = File::open(&path, Mode::Local).unwrap();
    assert_eq!(line_of(&file), "1111\n");
    let (one, other) = join(|| (line_of(&file), line_of(&file)), || line_of(&file));
    assert_eq!(one, ("2222\n".into(), "3333\n".into()));
    assert_eq!(other, "2222\n");
    let strand = fork();
    assert_eq!(line_of(&file), "2222\n");
    strand.run(|| assert_eq!(line_of(&file), "2222\n"));
    assert_eq!(line_of(&file), "3333\n");
    (&file).seek(SeekFrom::End(-5)).unwrap();
    scope(|scope| {
        scope.spawn(|_| assert_eq!(line_of(&file), "4444\n"));
        (&file).rewind().unwrap();
    });
    assert_eq!(line_of(&file), "1111\n");
}

#[test]
fn local_writes_go_to_the_pointer() {
    let (_folder, path) = folder_with("----------");
    let file = File::open(&path, Mode::Local).unwrap();
    join(
        || (&file).write_all(b"ab").unwrap(),
        || {
            (&file).seek(SeekFrom::Current(5)).unwrap();
            (&file).write_all(b"cd").unwrap();
        },
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "ab---cd---");
}

#[test]
fn global_pointer_is_shared_and_calls_are_atomic() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::Global).unwrap();
    let line = |name: u8| [vec![name; 9_999], vec![b'\n']].concat();
    scope(|scope| {
        for name in b'a'..=b'z' {
            let file = &file;
            scope.spawn(move |_| (&*file).write_all(&line(name)).unwrap());
        }
    });
    let written = fs::read(&path).unwrap();
    let mut lines: Vec<&[u8]> = written.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    let wanted: Vec<Vec<u8>> = (b'a'..=b'z').map(line).collect();
    assert_eq!(lines, wanted);
}

#[test]
fn serial_append_keeps_what_the_file_has() {
    let (_folder, path) = folder_with("before\n");
    let file = File::open(&path, Mode::SerialAppend).unwrap();
    writeln!(&file, "after").unwrap();
    file.close().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "before\nafter\n");
}

#[test]
fn serial_append_can_be_neither_read_nor_moved() {
    let (_folder, path) = folder_with("text");
    let file = File::open(&path, Mode::SerialAppend).unwrap();
    let refused = (&file).read(&mut [0; 4]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("cannot be read"), "{refused}");
    let refused = (&file).rewind().unwrap_err();
    assert!(matches!(
        refused.downcast::<FileError>(),
        Ok(FileError::AppendOnly { .. })
    ));
}

#[test]
fn handles_share_the_file_and_one_close_ends_all() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let mut other = File::create(path.with_file_name("other"), Mode::Global).unwrap();
    file.dup2(&mut other);
    write!(&file, "one ").unwrap();
    write!(&other, "two").unwrap();
    file.close().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one two");
    let big = vec![0; 1 << 20];
    let refused = (&other).write_all(&big).unwrap_err();
    assert!(refused.to_string().contains("is closed"), "{refused}");
    assert!(other.close().unwrap_err().to_string().contains("is closed"));
}

#[test]
fn small_write_after_close_is_refused_at_once() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let other = file.dup();
    file.close().unwrap();
    assert!(write!(&other, "x").is_err());
}

#[test]
fn file_is_whole_when_its_last_handle_is_dropped() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let other = file.dup();
    writeln!(&file, "text").unwrap();
    drop(file);
    drop(other);
    assert_eq!(fs::read_to_string(&path).unwrap(), "text\n");
}

#[test]
fn file_whose_handles_go_before_its_strands_is_whole_when_these_have_ended() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let strand = fork();
    writeln!(&file, "second").unwrap();
    let last = file.dup();
    drop(file);
    strand.run(move || writeln!(&last, "first").unwrap());
    // The next join of this thread looks at what has ended.
    scope(|_| ());
    assert_eq!(fs::read_to_string(&path).unwrap(), "first\nsecond\n");
}

#[test]
fn second_serial_append_to_a_file_is_refused_and_changes_nothing() {
    let (_folder, path) = folder_with("text");
    let file = File::open(&path, Mode::SerialAppend).unwrap();
    let refused = File::create(&path, Mode::SerialAppend).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    file.close().unwrap();
    File::open(&path, Mode::SerialAppend).unwrap();
}

#[test]
fn file_that_somebody_else_has_changed_is_named() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    writeln!(&file, "text").unwrap();
    (&file).flush().unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"foreign")
        .unwrap();
    let told = file.close().unwrap_err().downcast::<FileError>().unwrap();
    let expected = FileError::Changed {
        path,
        found: 12,
        expected: 5,
    };
    assert_eq!(told, expected);
}

#[test]
fn close_while_strands_run_is_refused_and_loses_nothing() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let strand = fork();
    let refused = file.dup().close().unwrap_err();
    assert!(
        refused.to_string().contains("while strands run"),
        "{refused}"
    );
    strand.run(|| writeln!(&file, "text").unwrap());
    file.close().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "text\n");
}

#[test]
fn spawned_closure_comes_before_what_follows_it() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let (told, hears) = std::sync::mpsc::channel();
    let other = file.dup();
    spawn(move || {
        writeln!(&other, "spawned").unwrap();
        drop(other);
        told.send(()).unwrap();
    });
    writeln!(&file, "after").unwrap();
    hears.recv().unwrap();
    let mut closed = file.dup().close();
    while closed.is_err() {
        // The closure has ended, and its strand is about to.
        std::thread::yield_now();
        closed = file.dup().close();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "spawned\nafter\n");
}

#[test]
fn thread_that_is_no_strand_is_refused() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let refused = std::thread::scope(|scope| {
        let thread = scope.spawn(|| write!(&file, "x").unwrap_err());
        thread.join().unwrap()
    });
    assert!(
        refused.to_string().contains("outside of the strands"),
        "{refused}"
    );
    let mut foreign = None;
    rayon::scope(|scope| scope.spawn(|_| foreign = Some(write!(&file, "x").is_err())));
    assert_eq!(foreign, Some(true));
    file.close().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
}

#[test]
fn full_disk_names_the_bytes_that_are_valid() {
    let file = Options::new()
        .open("/dev/full", Mode::SerialAppend)
        .unwrap();
    writeln!(&file, "text").unwrap();
    let told = (&file).flush().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::StorageFull);
    assert!(told.to_string().contains("from byte 0 on"), "{told}");
    let again = file.close().unwrap_err();
    assert_eq!(again.to_string(), told.to_string());
}

/// A small write after a failed one used to be gathered, and failed 64 KiB later.
#[test]
fn small_write_after_a_failed_one_fails_at_once_in_every_strand() {
    let file = File::open("/dev/full", Mode::SerialAppend).unwrap();
    let early = fork();
    (&file).write_all(b"gathered").unwrap();
    early.run(|| (&file).write_all(b"gathered").unwrap());
    let failed = (&file).write_all(&[b'x'; 100 << 10]).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::StorageFull);
    let again = (&file).write_all(b"y").unwrap_err();
    assert_eq!(again.to_string(), failed.to_string());
    let other = fork().run(|| (&file).write_all(b"y").unwrap_err());
    assert_eq!(other.to_string(), failed.to_string());
    assert_eq!(file.close().unwrap_err().kind(), ErrorKind::StorageFull);
}

#[test]
fn hundred_thousand_strands_of_one_scope_write_in_order() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    scope(|scope| {
        for number in 0..100_000 {
            let file = &file;
            scope.spawn(move |_| writeln!(&*file, "{number}").unwrap());
        }
    });
    file.close().unwrap();
    let written = fs::read_to_string(&path).unwrap();
    let wanted: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    assert!(written == wanted);
}

#[test]
fn closure_of_others_that_runs_while_a_strand_waits_is_refused() {
    // It became the root of strands of its own on that thread, and the waiting strand, when it
    // continued, took their place: what they had written was lost.
    let (_folder, path) = folder_with("");
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let (told, hears) = std::sync::mpsc::channel();
    pool.install(|| {
        let file = File::create(&path, Mode::SerialAppend).unwrap();
        let (foreign, other) = (file.dup(), path.with_file_name("other"));
        scope(|scope| {
            scope.spawn(|_| writeln!(&file, "child").unwrap());
            // The only thread begins with what came last.
            rayon::spawn(move || {
                let opened = File::create(other, Mode::SerialAppend);
                told.send((opened.is_err(), write!(&foreign, "x").is_err()))
                    .unwrap();
            });
        });
        file.close().unwrap();
    });
    assert_eq!(hears.recv().unwrap(), (true, true));
    assert_eq!(fs::read_to_string(&path).unwrap(), "child\n");
}

#[test]
fn panic_in_a_group_cuts_what_follows_in_it_and_nothing_behind_it() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let group = Group::new();
    let (first, second) = (group.fork(), group.fork());
    second.run(|| (&file).write_all(b"second").unwrap());
    let other = file.dup();
    let thread = std::thread::spawn(move || {
        first.run(|| {
            (&other).write_all(b"first").unwrap();
            resume_unwind(Box::new("on purpose"));
        })
    });
    assert!(thread.join().is_err());
    drop(group);
    (&file).write_all(b" behind").unwrap();
    file.close().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "first behind");
}

#[test]
fn strands_that_outlive_a_group_are_cut_by_its_panic_and_cut_nothing_behind_it() {
    // What the calling strand wrote after the group was cut with what the panic cuts, for ever, if
    // a strand that was forked in the group still ran; and the file could not be closed.
    for late_in in ["first", "second", "both"] {
        for panics_in in ["first", "second", "neither"] {
            assert_eq!(
                outlived(late_in, panics_in),
                expected(late_in, panics_in),
                "late in {late_in}, panic in {panics_in}"
            );
        }
    }
}

/// What two strands of a group write of which some leave strands that run when it has ended.
fn outlived(late_in: &str, panics_in: &str) -> String {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let mut late = Vec::new();
    let group = Group::new();
    for (name, strand) in [("first", group.fork()), ("second", group.fork())] {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            strand.run(|| {
                write!(&file, "{name} ").unwrap();
                if [name, "both"].contains(&late_in) {
                    late.push((name, fork()));
                }
                write!(&file, "ends ").unwrap();
                if name == panics_in {
                    resume_unwind(Box::new("on purpose"));
                }
            });
        }));
        assert_eq!(ended.is_err(), name == panics_in);
    }
    drop(group);
    write!(&file, "behind").unwrap();
    assert!(file.dup().close().is_err(), "strands run");
    for (name, strand) in late.into_iter().rev() {
        strand.run(|| write!(&file, "late {name} ").unwrap());
    }
    file.close().unwrap();
    fs::read_to_string(&path).unwrap()
}

/// The same of the serial elision.
fn expected(late_in: &str, panics_in: &str) -> String {
    let mut text = String::new();
    for name in ["first", "second"] {
        text += &format!("{name} ");
        if [name, "both"].contains(&late_in) {
            text += &format!("late {name} ");
        }
        text += "ends ";
        if name == panics_in {
            break;
        }
    }
    text + "behind"
}

#[test]
fn groups_that_follow_one_another_are_told_apart_though_strands_outlive_all_of_them() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let mut late = Vec::new();
    for number in 0..4 {
        let group = Group::new();
        let (first, second) = (group.fork(), group.fork());
        let panic = || first.run(|| resume_unwind(Box::new("on purpose")));
        assert!(catch_unwind(AssertUnwindSafe(panic)).is_err());
        second.run(|| late.extend([fork(), fork()]));
        drop(group);
        write!(&file, "{number} ").unwrap();
        late.push(fork());
    }
    // They end in another order than they have begun in.
    for number in [1, 4, 3, 0, 2, 5, 11, 6, 7, 9, 10, 8] {
        let strand = std::mem::replace(&mut late[number], fork());
        strand.run(|| write!(&file, "late {number} ").unwrap());
    }
    drop(late);
    file.close().unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "0 late 2 1 late 5 2 late 8 3 late 11 "
    );
}

#[test]
fn thread_that_outlives_a_scope_in_which_a_strand_panics_keeps_its_place() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let kept = std::sync::Mutex::new(None);
    let whole = catch_unwind(AssertUnwindSafe(|| {
        scope(|scope| {
            *kept.lock().unwrap() = Some(fork());
            scope.spawn(|_| {
                write!(&file, "first ").unwrap();
                resume_unwind(Box::new("on purpose"));
            });
            scope.spawn(|_| write!(&file, "cut ").unwrap());
        });
    }));
    assert!(whole.is_err());
    write!(&file, "behind").unwrap();
    let strand = kept.into_inner().unwrap().unwrap();
    strand.run(|| write!(&file, "late ").unwrap());
    file.close().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "late first behind");
}

#[test]
fn panic_that_a_thread_keeps_cuts_nothing() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let (strand, other) = (fork(), file.dup());
    let thread = std::thread::spawn(move || {
        strand.run(|| {
            write!(&other, "first ").unwrap();
            resume_unwind(Box::new("on purpose"));
        })
    });
    write!(&file, "behind").unwrap();
    assert!(thread.join().is_err());
    file.close().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "first behind");
}

#[test]
fn bytes_are_gathered_while_they_fit_the_buffer_of_a_strand() {
    let (_folder, path) = folder_with("");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    assert!(file.gather(b"few"));
    assert!(!file.gather(&[0; 1 << 20]));
    std::thread::scope(|threads| {
        let stranger = threads.spawn(|| file.gather(b"of no strand"));
        assert!(!stranger.join().unwrap());
    });
    file.close().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "few");
    assert!(!File::open(&path, Mode::Global).unwrap().gather(b"few"));
}
