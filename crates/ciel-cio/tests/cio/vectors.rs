//! Golden files: what was written once must stay readable, and is still written so.
//!
//! A vector is a text: the bytes of a file in hexadecimal, each line with its meaning, and what the
//! flat view is. They are never changed or deleted; another format gets others beside them.

use std::path::{Path, PathBuf};

use ciel_cio::{Item, ROOT, Reader, Writer};

/// A file and what it means.
pub struct Vector {
    pub name: String,
    pub file: Vec<u8>,
    pub flat: String,
    pub is_complete: bool,
}

/// The folder of the vectors.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// All vectors.
pub fn vectors() -> Vec<Vector> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| vector(path)).collect()
}

fn vector(path: &Path) -> Vector {
    let text = std::fs::read_to_string(path).unwrap();
    let (mut file, mut flat, mut is_complete) = (Vec::new(), String::new(), None);
    for line in text.lines() {
        match line.split_once(' ').expect("two words at least") {
            ("#", _) => {}
            ("flat", shown) => flat = shown.replace("\\n", "\n"),
            ("is", state) => is_complete = Some(state == "complete"),
            ("zeros", count) => {
                let count: usize = count.split_whitespace().next().unwrap().parse().unwrap();
                file.resize(file.len() + count, 0);
            }
            _ => file.extend(hexadecimal(line.split_once("  ").expect("a meaning").0)),
        }
    }
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    Vector {
        name,
        file,
        flat,
        is_complete: is_complete.expect("complete or partial"),
    }
}

fn hexadecimal(text: &str) -> Vec<u8> {
    let words = text.split_whitespace();
    words
        .map(|word| u8::from_str_radix(word, 16).unwrap())
        .collect()
}

/// The file that a writer makes whose root spawns a child which is slower than itself.
fn written(closes: bool) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let writer = Writer::create(file.reopen().unwrap()).unwrap();
    let child = writer.segment();
    let before = Item::Data(writer.write(b"before\n").unwrap());
    writer
        .commit(ROOT, &[before, Item::Child(child)], false)
        .unwrap();
    let after = Item::Data(writer.write(b"after\n").unwrap());
    writer.commit(ROOT, &[after], true).unwrap();
    let own = Item::Data(writer.write(b"child\n").unwrap());
    if closes {
        writer.commit(child, &[own], true).unwrap();
        writer.close().unwrap();
    }
    std::fs::read(file.path()).unwrap()
}

#[test]
fn golden_files_are_read_as_what_was_written() {
    let vectors = vectors();
    assert!(vectors.len() >= 4, "{} vectors", vectors.len());
    for vector in vectors {
        let reader = Reader::open(&vector.file[..]).unwrap();
        let is_complete = reader.ending() == ciel_cio::Ending::Complete;
        assert_eq!(is_complete, vector.is_complete, "{}", vector.name);
        let flat = std::io::read_to_string(reader).unwrap();
        assert_eq!(flat, vector.flat, "{}", vector.name);
    }
}

#[test]
fn writer_of_today_makes_the_golden_files() {
    for (name, closes) in [("complete", true), ("partial", false)] {
        let vector = vectors()
            .into_iter()
            .find(|vector| vector.name == name)
            .unwrap();
        assert!(
            written(closes) == vector.file,
            "{name}: {:02x?}",
            written(closes)
        );
    }
}

/// By sums of bytes, as a machine of any word and byte order would have to read them.
#[test]
fn numbers_of_golden_files_do_not_depend_on_the_machine() {
    let number = |bytes: &[u8]| {
        let digits = bytes.iter().rev();
        digits.fold(0_u128, |sum, byte| sum * 256 + u128::from(*byte))
    };
    for name in ["complete", "link"] {
        let vector = vectors().into_iter().find(|vector| vector.name == name);
        let file = vector.unwrap().file;
        let reader = Reader::open(&file[..]).unwrap();
        let trailer = &file[file.len() - 40..];
        let index = &file[number(&trailer[..8]) as usize..file.len() - 40];
        assert_eq!(number(&trailer[8..16]), reader.extents().len() as u128);
        assert_eq!(
            number(&trailer[16..24]),
            u128::from(reader.extents().bytes())
        );
        for (entry, extent) in index.chunks(20).zip(reader.extents().iter()) {
            assert_eq!(number(&entry[..8]), u128::from(extent.at));
            assert_eq!(number(&entry[8..16]), u128::from(extent.data.offset));
            assert_eq!(number(&entry[16..]), u128::from(extent.data.checksum));
        }
    }
}
