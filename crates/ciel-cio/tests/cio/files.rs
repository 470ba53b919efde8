//! Files as they are: written by threads, read at any place, flattened.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use ciel_cio::format::FIRST_BLOCK_END;
use ciel_cio::limits::EXTENT_BYTES_MAX;
use ciel_cio::{CioError, Ending, Item, ROOT, Reader, Segment, Writer, flatten, is_structured};
use proptest::prelude::*;

use crate::support::{config, program, write};

fn flattened(reader: &Reader<File>, threads: usize) -> Vec<u8> {
    let out = tempfile::NamedTempFile::new().unwrap();
    flatten(reader, out.as_file(), threads).unwrap();
    std::fs::read(out.path()).unwrap()
}

fn file_with(bytes: &[u8]) -> File {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn any_order_of_commits_gives_the_serial_order((acts, seed) in program(), closes: bool) {
        let written = write(&acts, &seed, closes);
        let mut reader = Reader::open(&written.file[..]).unwrap();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        prop_assert_eq!(&read, &written.flat);
        let mut copied = Vec::new();
        reader.copy_checked(&mut copied).unwrap();
        prop_assert_eq!(&copied, &written.flat);
        let reader = Reader::open(file_with(&written.file)).unwrap();
        prop_assert_eq!(flattened(&reader, 1), written.flat);
    }

    #[test]
    fn read_at_any_place_is_that_of_the_flat_file(
        (acts, seed) in program(), places in prop::collection::vec((0..2_000_u64, 0..90_usize), 9),
    ) {
        let written = write(&acts, &seed, true);
        let mut reader = Reader::open(&written.file[..]).unwrap();
        for (at, length) in places {
            let mut buffer = vec![0; length];
            let count = reader.read_at(&mut buffer, at).unwrap();
            let rest = written.flat.get(at as usize..).unwrap_or_default();
            prop_assert_eq!(&buffer[..count], &rest[..rest.len().min(length)]);
            reader.seek(SeekFrom::Start(at)).unwrap();
            let mut again = vec![0; length];
            prop_assert_eq!(reader.read(&mut again).unwrap(), count);
            prop_assert_eq!(again, buffer);
        }
    }
}

#[test]
fn seek_counts_from_start_pointer_and_end() {
    let written = write(&[crate::support::Act::Write(30)], &[0], true);
    let mut reader = Reader::open(&written.file[..]).unwrap();
    assert_eq!(reader.seek(SeekFrom::End(-10)).unwrap(), 20);
    assert_eq!(reader.seek(SeekFrom::Current(4)).unwrap(), 24);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, &written.flat[24..]);
    assert!(reader.seek(SeekFrom::Current(-31)).is_err());
    assert_eq!(reader.seek(SeekFrom::Start(99)).unwrap(), 99);
    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
}

/// Data of many strands, some larger than what one thread copies at once, at odd places.
fn large(path: &std::path::Path) -> (Writer, Vec<u8>) {
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .unwrap();
    let writer = Writer::create(file).unwrap();
    let children: Vec<Segment> = (0..60).map(|_| writer.segment()).collect();
    let items: Vec<Item> = children.iter().map(|child| Item::Child(*child)).collect();
    writer.commit(ROOT, &items, true).unwrap();
    let bytes = |number: usize| vec![number as u8; (number * 13_577) % EXTENT_BYTES_MAX as usize];
    let bytes = |number: usize| [bytes(number), b"end".to_vec()].concat();
    std::thread::scope(|scope| {
        for threads in 0..3 {
            let (writer, children) = (&writer, &children);
            scope.spawn(move || {
                for number in (0..60).filter(|number| number % 3 == threads).rev() {
                    let data = Item::Data(writer.write(&bytes(number)).unwrap());
                    writer.commit(children[number], &[data], true).unwrap();
                }
            });
        }
    });
    (writer, (0..60).flat_map(bytes).collect())
}

#[test]
fn threads_write_side_by_side_and_flatten_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.cio");
    let (writer, flat) = large(&path);
    writer.close().unwrap();
    let reader = Reader::open(File::open(&path).unwrap()).unwrap();
    for threads in [1, 2, 5] {
        assert!(flattened(&reader, threads) == flat, "{threads} threads");
    }
}

/// On a file system that shares blocks this is where it does so.
#[test]
fn extents_that_begin_alike_in_their_blocks_are_copied_in_three_pieces() {
    let file = tempfile::tempfile().unwrap();
    let writer = Writer::create(file.try_clone().unwrap()).unwrap();
    let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
    let first = writer.write(&bytes[..100_000]).unwrap();
    assert_eq!(first.offset, FIRST_BLOCK_END);
    let second = writer.write(&bytes[100_000..]).unwrap();
    let items = [Item::Data(first), Item::Data(second)];
    writer.commit(ROOT, &items, true).unwrap();
    writer.close().unwrap();
    assert_eq!(flattened(&Reader::open(file).unwrap(), 2), bytes);
}

#[test]
fn file_that_is_not_complete_is_not_flattened() {
    let file = tempfile::tempfile().unwrap();
    let writer = Writer::create(file.try_clone().unwrap()).unwrap();
    let item = Item::Data(writer.write(b"start").unwrap());
    writer.commit(ROOT, &[item], false).unwrap();
    assert!(matches!(
        writer.close(),
        Err(CioError::Open { segment: ROOT })
    ));
    let reader = Reader::open(file).unwrap();
    assert_eq!(reader.ending(), Ending::Open(ROOT));
    let out = tempfile::tempfile().unwrap();
    let refused = flatten(&reader, &out, 2);
    assert!(matches!(refused, Err(CioError::Open { segment: ROOT })));
}

#[test]
fn damaged_data_are_not_flattened_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.cio");
    let (writer, flat) = large(&path);
    let extents = writer.close().unwrap();
    let extent = extents.get(extents.find(flat.len() as u64 / 2).unwrap());
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let changed = flat[extent.at as usize] ^ 1;
    file.write_all_at(&[changed], extent.data.offset).unwrap();
    let refused = flatten(
        &Reader::open(file).unwrap(),
        &tempfile::tempfile().unwrap(),
        2,
    );
    let Err(CioError::DataDamaged { at, offset, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((at, offset), (extent.at, extent.data.offset));
}

#[test]
fn damaged_index_is_replaced_by_the_log() {
    let mut written = write(&[crate::support::Act::Write(30)], &[0], true);
    let length = written.file.len();
    for back in 1..60 {
        written.file[length - back] ^= 1;
        let read = std::io::read_to_string(Reader::open(&written.file[..]).unwrap());
        assert_eq!(read.unwrap().as_bytes(), written.flat);
        written.file[length - back] ^= 1;
    }
}

#[test]
fn file_that_holds_another_one_is_not_mistaken_for_it() {
    let inner = write(&[crate::support::Act::Write(30)], &[0], true).file;
    let file = tempfile::tempfile().unwrap();
    let writer = Writer::create(file.try_clone().unwrap()).unwrap();
    let item = Item::Data(writer.write(&inner).unwrap());
    writer.commit(ROOT, &[item], true).unwrap();
    let mut read = Vec::new();
    Reader::open(file).unwrap().read_to_end(&mut read).unwrap();
    assert_eq!(read, inner);
}

/// A read of many bytes failed as a whole although smaller ones gave what precedes the missing
/// bytes; the fuzz test of structured files found it.
#[test]
fn read_before_bytes_that_are_missing_gives_what_precedes_them() {
    let file = tempfile::tempfile().unwrap();
    let writer = Writer::create(file.try_clone().unwrap()).unwrap();
    let late = Item::Data(writer.write(b"late").unwrap());
    let early = Item::Data(writer.write(b"early").unwrap());
    writer.commit(ROOT, &[early, late], true).unwrap();
    writer.close().unwrap();
    let reader = Reader::open(file.try_clone().unwrap()).unwrap();
    let mut buffer = [0; 9];
    assert_eq!(reader.read_at(&mut buffer, 0).unwrap(), 9);
    file.set_len(FIRST_BLOCK_END + 6).unwrap();
    assert_eq!(reader.read_at(&mut buffer, 0).unwrap(), 2);
    assert_eq!(&buffer[..2], b"ea");
    let told = reader.read_at(&mut buffer, 2).unwrap_err();
    assert_eq!(told.kind(), std::io::ErrorKind::UnexpectedEof);
}

#[test]
fn use_behind_the_end_is_refused() {
    let file = tempfile::tempfile().unwrap();
    let writer = Writer::create(file.try_clone().unwrap()).unwrap();
    writer.commit(ROOT, &[], true).unwrap();
    let again = writer.commit(ROOT, &[], false);
    assert!(matches!(again, Err(CioError::Ended { segment: ROOT })));
    assert!(writer.close().unwrap().is_empty());
    assert!(matches!(writer.close(), Err(CioError::Closed)));
    assert!(matches!(
        writer.commit(ROOT, &[], false),
        Err(CioError::Closed)
    ));
    assert!(matches!(
        Writer::create(file),
        Err(CioError::NotEmpty { bytes: 4136 })
    ));
}

#[test]
fn other_files_are_told_apart() {
    for (bytes, is_ours) in [
        (&b""[..], false),
        (b"plain text", false),
        (b"\x8fcielcio", true),
    ] {
        assert_eq!(is_structured(&bytes).unwrap(), is_ours);
        let error = Reader::open(bytes).unwrap_err();
        assert_eq!(matches!(error, CioError::Foreign), !is_ours, "{error}");
    }
    let mut other = ciel_cio::format::header();
    other[8] = 2;
    let checksum = crc32fast::hash(&other[..12]);
    other[12..].copy_from_slice(&checksum.to_le_bytes());
    let error = Reader::open(&other[..]).unwrap_err();
    assert!(
        matches!(error, CioError::OtherFormat { found: 2 }),
        "{error}"
    );
}
