//! Rings, growing objects, followers and arenas by themselves.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use ciel_data_plane::{
    Arenas, Follower, GrowingReader, GrowingWriter, Kept, Progress, Ring, State, StreamFault,
};

use crate::bytes::{Numbers, read, write};

fn fault(error: &std::io::Error) -> &StreamFault {
    StreamFault::of(error).expect("a fault of the stream")
}

/// The same ring, as another process would map it.
fn mapped_elsewhere(ring: &Ring) -> Ring {
    let file = ring.descriptor().try_clone_to_owned().unwrap();
    Ring::from_file(File::from(file)).unwrap()
}

#[test]
fn ring_passes_every_byte_between_two_mappings_for_any_pieces() {
    for seed in 0..6 {
        let ring = Ring::create(4096).unwrap();
        let elsewhere = mapped_elsewhere(&ring);
        let mut writer = ring.writer().unwrap();
        let producer = std::thread::spawn(move || {
            let mut numbers = Numbers(seed);
            write(&mut writer, 500_000, || 1 + numbers.below(9_000)).unwrap();
            writer.end()
        });
        let mut reader = elsewhere.reader().unwrap();
        let (bytes, end) = read(&mut reader, 0, u64::MAX, 1 + 997 * seed as usize);
        end.unwrap();
        assert_eq!((bytes, producer.join().unwrap()), (500_000, 500_000));
    }
}

#[test]
fn ring_has_one_producer_and_one_consumer() {
    let ring = Ring::create(1).unwrap();
    assert_eq!(ring.capacity_bytes(), 4096);
    let (writer, reader) = (ring.writer(), ring.reader());
    assert!(writer.is_some() && reader.is_some());
    assert!(mapped_elsewhere(&ring).writer().is_none());
    assert!(mapped_elsewhere(&ring).reader().is_none());
}

#[test]
fn full_ring_holds_its_producer_until_there_is_room_or_nobody_reads() {
    let ring = Ring::create(4096).unwrap();
    let mut writer = ring.writer().unwrap();
    assert_eq!(writer.put(&[7; 4096]).unwrap(), Kept::Taken);
    let producer = std::thread::spawn(move || writer.put(&[8; 10_000]).unwrap());
    ring.consumer_left();
    assert_eq!(producer.join().unwrap(), Kept::Discarded);
}

#[test]
fn ring_whose_producer_was_killed_gives_what_is_there_and_then_a_fault() {
    let ring = Ring::create(4096).unwrap();
    let mut writer = ring.writer().unwrap();
    writer.put(b"some").unwrap();
    std::mem::forget(writer);
    let mut reader = ring.reader().unwrap();
    assert_eq!(reader.peek().unwrap(), b"some");
    reader.consume(4);
    let blocked = std::thread::spawn(move || reader.peek().map(<[u8]>::len));
    ring.producer_lost();
    let error = blocked.join().unwrap().unwrap_err();
    assert_eq!(fault(&error), &StreamFault::ProducerLost { read: 4 });
}

#[test]
fn file_that_is_no_ring_is_refused() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(8192).unwrap();
    let error = Ring::from_file(file).unwrap_err();
    assert_eq!(error.to_string(), "the file is not a ring");
}

#[test]
fn reader_with_a_granularity_sleeps_until_it_is_new_or_the_end_has_come() {
    let progress = Arc::new(Progress::in_memory().unwrap());
    let mut writer = GrowingWriter::new(tempfile::tempfile().unwrap(), progress.clone());
    let mut reader = writer.reader().unwrap().with_granularity(1_000);
    let sleeper = std::thread::spawn(move || {
        let first = reader.wait().unwrap();
        reader.read_exact(&mut [0; 1_000]).unwrap();
        (first, reader.wait().unwrap())
    });
    for _ in 0..10 {
        writer.write_all(&[0; 100]).unwrap();
    }
    while !sleeper.is_finished() && progress.look().length < 1_010 {
        writer.write_all(&[0; 1]).unwrap();
    }
    writer.commit();
    let (first, last) = sleeper.join().unwrap();
    assert!(first >= 1_000 && last > 0, "{first}, {last}");
    let look = progress.wait(u64::MAX, None).unwrap();
    assert_eq!((look.length, look.state), (1_010, State::Committed));
}

#[test]
fn wait_for_progress_is_over_when_its_time_is() {
    let progress = Progress::in_memory().unwrap();
    let look = progress.wait(1, Some(Duration::from_millis(1))).unwrap();
    assert_eq!((look.length, look.state), (0, State::Writing));
}

#[test]
fn progress_in_a_file_is_seen_by_whoever_opens_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("progress");
    let progress = Progress::create(&path).unwrap();
    let elsewhere = Progress::open(&path).unwrap();
    let sleeper = std::thread::spawn(move || elsewhere.wait(5, None).unwrap());
    progress.publish(5);
    assert_eq!(sleeper.join().unwrap().length, 5);
    assert!(Progress::create(&path).is_err(), "it is there already");
}

#[test]
fn file_of_another_program_is_followed_while_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut file = File::create(&path).unwrap();
    let progress = Arc::new(Progress::in_memory().unwrap());
    let follower = Follower::start(&path, progress.clone()).unwrap();
    let mut reader = GrowingReader::new(File::open(&path).unwrap(), progress.clone());
    let mut seen = [0; 5];
    for piece in [b"first", b"again"] {
        file.write_all(piece).unwrap();
        reader.read_exact(&mut seen).unwrap();
        assert_eq!(&seen, piece);
    }
    assert_eq!(follower.commit().unwrap(), 10);
    assert_eq!(reader.read(&mut seen).unwrap(), 0);
}

#[test]
fn follower_that_is_dropped_loses_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .unwrap();
    let progress = Arc::new(Progress::in_memory().unwrap());
    drop(Follower::start(&path, progress.clone()).unwrap());
    let mut reader = GrowingReader::new(File::open(&path).unwrap(), progress);
    let error = reader.read(&mut [0; 1]).unwrap_err();
    assert_eq!(fault(&error), &StreamFault::ProducerLost { read: 0 });
}

#[test]
fn arena_is_recycled_with_its_pages_and_the_pool_is_bounded() {
    let arenas = Arenas::new(100_000);
    let mut first = arenas.take(50_000).unwrap();
    // SAFETY: no other mapping of it exists.
    let bytes = unsafe { first.bytes_mut() };
    bytes[..3].copy_from_slice(b"old");
    let second = arenas.take(50_000).unwrap();
    drop(first);
    drop(second);
    assert_eq!(
        arenas.free_bytes(),
        64 << 10,
        "the second is over the bound"
    );
    let mut recycled = arenas.take(60_000).unwrap();
    // SAFETY: no other mapping of it exists.
    assert_eq!(&unsafe { recycled.bytes_mut() }[..3], b"old");
    assert_eq!(arenas.free_bytes(), 0);
}
