//! What must not go wrong silently: full disks, panics, strands without number, empty writes,
//! readers that follow. The others are in `modes`.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use ciel_files::{File, FileError, Mode, fork, join, scope};

fn pool(threads: usize) -> rayon::ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap()
}

/// Text of which each byte tells its place, more or less.
fn numbers(from: u32, to: u32) -> String {
    (from..to).map(|number| format!("{number:09}\n")).collect()
}

fn write_tree(file: &File, from: u32, to: u32) -> std::io::Result<()> {
    if to - from <= 100 {
        return (&*file).write_all(numbers(from, to).as_bytes());
    }
    let middle = from.midpoint(to);
    let (first, second) = join(
        || write_tree(file, from, middle),
        || write_tree(file, middle, to),
    );
    first.and(second)
}

/// A file system of its own, in memory, that is full after so many bytes.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mounted(bytes: u64) -> Result<SmallDisk, String> {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(folder.path())
            .output();
        match mount {
            Ok(ended) if ended.status.success() => Ok(SmallDisk(folder)),
            Ok(ended) => Err(String::from_utf8_lossy(&ended.stderr).into_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0.path()).status();
        assert!(unmounted.unwrap().success());
    }
}

#[test]
fn disk_that_becomes_full_leaves_a_valid_prefix_whose_length_is_told() {
    let disk = match SmallDisk::mounted(1 << 20) {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: no file system can be mounted: {reason}"),
    };
    for threads in [1, 2, 4] {
        let path = disk.0.path().join("file");
        let told = pool(threads).install(|| {
            let file = File::create(&path, Mode::SerialAppend).unwrap();
            let written = write_tree(&file, 0, 400_000);
            let closed = file.close().unwrap_err();
            if let Err(written) = written {
                assert_eq!(written.kind(), ErrorKind::StorageFull);
            }
            closed
        });
        assert_eq!(told.kind(), ErrorKind::StorageFull);
        assert!(told.to_string().contains("file"), "{told}");
        let Ok(FileError::Write { valid, .. }) = told.downcast::<FileError>() else {
            panic!("another kind of error")
        };
        let written = fs::read(&path).unwrap();
        assert_eq!(written.len() as u64, valid);
        assert!(numbers(0, 400_000).as_bytes().starts_with(&written));
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn panic_in_one_branch_keeps_what_the_elision_has_written_and_continues() {
    let folder = tempfile::tempdir().unwrap();
    for threads in [1, 2, 4] {
        let path = folder.path().join("file");
        pool(threads).install(|| {
            let file = File::create(&path, Mode::SerialAppend).unwrap();
            write!(&file, "before ").unwrap();
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                join(
                    || {
                        write!(&file, "first ").unwrap();
                        std::panic::resume_unwind(Box::new(()));
                    },
                    || write!(&file, "second ").unwrap(),
                )
            }));
            assert!(panicked.is_err());
            write!(&file, "after").unwrap();
            file.close().unwrap();
        });
        assert_eq!(fs::read_to_string(&path).unwrap(), "before first after");
    }
}

#[test]
fn million_strands_write_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    scope(|scope| {
        for number in 0..1_000_000u32 {
            let file = &file;
            scope.spawn(move |_| (&*file).write_all(&number.to_le_bytes()).unwrap());
        }
    });
    file.close().unwrap();
    let written = fs::read(&path).unwrap();
    assert_eq!(written.len(), 4_000_000);
    let numbers = written
        .chunks_exact(4)
        .map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()));
    assert!(numbers.eq(0..1_000_000));
}

#[test]
fn empty_writes_of_strands_leave_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let strand = fork();
    assert_eq!((&file).write(&[]).unwrap(), 0);
    strand.run(|| {
        write!(&file, "").unwrap();
        (&file).write_all(&[]).unwrap();
    });
    file.close().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
}

/// Reads what is there, again and again, until the writer has ended and all is read.
fn follow(path: &Path, has_ended: &AtomicBool) -> (Vec<u8>, usize) {
    let mut file = fs::File::open(path).unwrap();
    let (mut seen, mut looks) = (Vec::new(), 0);
    loop {
        let is_last = has_ended.load(Ordering::Acquire);
        looks += usize::from(file.read_to_end(&mut seen).unwrap() > 0);
        if is_last {
            return (seen, looks);
        }
        std::thread::yield_now();
    }
}

#[test]
fn follower_sees_bytes_before_the_end_and_never_others_than_the_final_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "").unwrap();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let follower = threads.spawn(|| follow(&path, &has_ended));
        pool(2).install(|| {
            let file = File::open(&path, Mode::SerialAppend).unwrap();
            write_tree(&file, 0, 500_000).unwrap();
            file.close().unwrap();
        });
        has_ended.store(true, Ordering::Release);
        let (seen, looks) = follower.join().unwrap();
        // Bytes that were read once are not read again: had one been another, this would differ.
        assert!(seen == numbers(0, 500_000).as_bytes());
        assert!(looks >= 1);
    });
}

/// Bytes of the long test: a few, or as many as the environment says.
fn output_bytes() -> u64 {
    let text = std::env::var("CIEL_OUTPUT_BYTES");
    text.map_or(20_000_000, |text| text.parse().unwrap())
}

#[test]
fn output_larger_than_all_buffers_is_whole_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let count = (output_bytes() / 10) as u32;
    pool(2).install(|| {
        let file = File::create(&path, Mode::SerialAppend).unwrap();
        write_tree(&file, 0, count).unwrap();
        file.close().unwrap();
    });
    let mut reader = std::io::BufReader::new(fs::File::open(&path).unwrap());
    let mut line = [0; 10];
    for number in 0..count {
        reader.read_exact(&mut line).unwrap();
        assert_eq!(&line[..9], format!("{number:09}").as_bytes());
    }
    assert_eq!(reader.read(&mut line).unwrap(), 0);
}
