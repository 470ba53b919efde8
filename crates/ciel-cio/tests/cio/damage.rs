//! Files that were cut or changed at any offset: the prefix that is committed and undamaged is
//! recovered, and nothing else.

use std::io::Read;

use ciel_cio::format::{FIRST_BLOCK_END, Found, HEADER_BYTES, ITEM_BYTES, record_at};
use ciel_cio::limits::RECORD_ITEMS_MAX;
use ciel_cio::{CioError, Data, Ending, Item, ROOT, Reader, Writer, recover};
use proptest::prelude::*;

use crate::support::{Written, bytes_of, config, frontier, program, records, write};

/// What the recovery of a file must give if its first so many records and these data are intact.
fn expected(written: &Written, records: usize, is_intact: impl Fn(&Data) -> bool) -> Vec<u8> {
    let (data, _) = frontier(&written.commits[..records], ROOT);
    let intact = data.iter().take_while(|piece| is_intact(piece)).count();
    bytes_of(&written.file, &data[..intact])
}

fn recovered(file: &[u8]) -> Result<(Vec<u8>, Ending), CioError> {
    let found = recover(&file)?;
    let data: Vec<Data> = found.extents.iter().map(|extent| extent.data).collect();
    Ok((bytes_of(file, &data), found.ending))
}

/// What is shown of a file, whether by its index or by its log.
fn shown(file: &[u8]) -> Result<Vec<u8>, CioError> {
    let reader = Reader::open(file)?;
    let mut shown = Vec::new();
    match reader.copy_checked(&mut shown) {
        Ok(()) | Err(CioError::DataDamaged { .. }) => Ok(shown),
        Err(error) => Err(error),
    }
}

/// The first bytes of every file are cut or changed one by one, then every seventh: what lies
/// between the log and the data is empty.
fn offsets(written: &Written) -> impl Iterator<Item = usize> + use<> {
    let log_end = records(&written.commits).last().map_or(0, |last| last.end);
    let length = written.file.len();
    let near = move |at: &usize| *at < log_end + 40 || *at >= FIRST_BLOCK_END as usize;
    (0..length).filter(move |at| near(at) || at.is_multiple_of(199))
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn file_that_is_cut_anywhere_gives_its_committed_prefix(
        (acts, seed) in program(), closes: bool,
    ) {
        let written = write(&acts, &seed, closes);
        let records = records(&written.commits);
        for cut in offsets(&written) {
            let file = &written.file[..cut];
            if cut < HEADER_BYTES {
                prop_assert!(recover(&file).is_err());
                continue;
            }
            let whole = records.iter().filter(|record| record.end <= cut).count();
            let wanted = expected(&written, whole, |data| {
                data.offset + u64::from(data.length) <= cut as u64
            });
            prop_assert_eq!(recovered(file).unwrap().0, wanted, "cut at {}", cut);
        }
    }

    #[test]
    fn file_that_is_changed_anywhere_gives_its_undamaged_prefix(
        (acts, seed) in program(), closes: bool, change in 1..=255_u8,
    ) {
        let mut written = write(&acts, &seed, closes);
        let records = records(&written.commits);
        for at in offsets(&written) {
            written.file[at] ^= change;
            let found = recovered(&written.file);
            let shown = shown(&written.file);
            written.file[at] ^= change;
            if at < HEADER_BYTES {
                prop_assert!(found.is_err() && shown.is_err());
                continue;
            }
            let whole = records.iter().take_while(|record| record.end <= at).count();
            let whole = match records.get(whole).is_some_and(|record| record.contains(&at)) {
                true => whole,
                false => records.len(),
            };
            let is_intact = |data: &Data| {
                !(data.offset..data.offset + u64::from(data.length)).contains(&(at as u64))
            };
            let wanted = expected(&written, whole, is_intact);
            prop_assert_eq!(&found.unwrap().0, &wanted, "changed at {}", at);
            prop_assert!(written.flat.starts_with(&shown.unwrap()), "changed at {}", at);
        }
    }

    #[test]
    fn data_behind_the_frontier_are_listed((acts, seed) in program()) {
        let written = write(&acts, &seed, false);
        let records = records(&written.commits);
        for kept in 0..=records.len() {
            let mut file = written.file.clone();
            let log = records.get(kept).map_or(file.len(), |next| next.start);
            let log_end = file.len().min(FIRST_BLOCK_END as usize);
            file[log.min(log_end)..log_end].fill(0);
            let found = recover(&&file[..]).unwrap();
            let committed = written.commits[..kept].iter().flat_map(|commit| &commit.items);
            let bytes = |item: &Item| match item {
                Item::Data(data) => u64::from(data.length),
                Item::Child(_) => 0,
            };
            let behind: u64 = found.rest.iter().map(|rest| rest.bytes).sum();
            prop_assert_eq!(found.extents.bytes() + behind, committed.map(bytes).sum::<u64>());
            prop_assert_eq!(found.ending == Ending::Complete, kept == records.len());
        }
    }
}

#[test]
fn log_of_many_blocks_is_recovered_up_to_any_cut() {
    let path = tempfile::NamedTempFile::new().unwrap();
    let writer = Writer::create(path.reopen().unwrap()).unwrap();
    let lines: Vec<String> = (0..6_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    for line in &lines {
        let item = Item::Data(writer.write(line.as_bytes()).unwrap());
        writer.commit(ROOT, &[item], false).unwrap();
    }
    let file = std::fs::read(path.path()).unwrap();
    let flat = lines.concat();
    let mut longest = 0;
    for cut in (FIRST_BLOCK_END as usize..file.len()).step_by(1_499) {
        let mut text = String::new();
        let mut reader = Reader::open(&file[..cut]).unwrap();
        reader.read_to_string(&mut text).unwrap();
        assert!(
            flat.starts_with(&text) && text.len() >= longest,
            "cut at {cut}"
        );
        longest = text.len();
    }
    writer.commit(ROOT, &[], true).unwrap();
    let found = recover(&path.reopen().unwrap()).unwrap();
    assert_eq!((found.ending, found.torn_record), (Ending::Complete, None));
    assert_eq!(found.extents.bytes(), flat.len() as u64);
    // Neighbours are one extent but where a block of the log lies between them.
    assert!(found.extents.len() < 6, "{} extents", found.extents.len());
}

/// A record of that kind with a checksum that is right; its items are all of zeros but for the
/// length in the first one.
fn record(kind: u8, flags: u8, items: usize, length: u32) -> Vec<u8> {
    let count = u16::try_from(items).unwrap().to_le_bytes();
    let segment = 7_u64.to_le_bytes();
    let mut bytes = [&[0; 4], &[kind, flags][..], &count, &segment].concat();
    let head = bytes.len();
    bytes.resize(head + items * ITEM_BYTES, 0);
    if items > 0 {
        bytes[head + 8..head + 12].copy_from_slice(&length.to_le_bytes());
    }
    let checksum = crc32fast::hash(&bytes[4..]);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// "A record is intact if it ends inside the block, has a kind and flags of this table, at most 128
/// items and the right checksum."
#[test]
fn record_is_intact_if_all_of_it_is_as_the_page_says() {
    let (commit, link) = (1, 2);
    let is_intact = |bytes: &[u8]| matches!(record_at(bytes, 0), Found::Record(..));
    for bytes in [
        record(commit, 0, 0, 0),
        record(commit, 1, RECORD_ITEMS_MAX, 5),
        record(link, 0, 1, 64),
    ] {
        assert!(is_intact(&bytes), "{bytes:?}");
        assert!(!is_intact(&bytes[..bytes.len() - 1]));
        let mut changed = bytes.clone();
        changed[8] ^= 1;
        assert!(!is_intact(&changed));
    }
    for (kind, flags, items) in [
        (commit, 2, 1),
        (commit, 3, 1),
        (commit, 0, RECORD_ITEMS_MAX + 1),
        (link, 1, 1),
        (link, 0, 0),
        (link, 0, 2),
        (0, 0, 1),
        (3, 0, 1),
    ] {
        let bytes = record(kind, flags, items, 64);
        assert!(
            !is_intact(&bytes),
            "kind {kind}, flags {flags}, {items} items"
        );
    }
}
