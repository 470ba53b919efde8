//! The reader of archives of kept results: files that somebody has forged.
//!
//! What is read is exactly what a writer would have written: whoever writes it again gets the same
//! bytes.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use ciel_kept::archive::{ArchiveWriter, FORMAT, Manifest, Receiver, read as read_archive};
use ciel_kept::{Entry, Input, KeptContent, KeptError, KeptOutput, Parts, Printed};
use ciel_model::{Digest, FileRead, Form, FunctionCode, Site};

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "archive of results",
    corpus,
    read,
    answers_min: 20,
};

/// An input with this first byte, or one of its multiples, keeps the checksums that it has.
const UNREPAIRED: u8 = 3;

/// Bytes of a block of a tar file.
const BLOCK: usize = 512;

/// Where the length of a member stands in its header, in octal digits.
const LENGTH: std::ops::Range<usize> = 124..135;

/// Where the checksum of a header stands in it.
const CHECKSUM: std::ops::Range<usize> = 148..156;

fn corpus() -> Vec<Vec<u8>> {
    let archives = [
        archive(vec![]),
        archive(vec![entry(1, Form::Bytes, false)]),
        archive(vec![entry(2, Form::Json, true)]),
        archive(vec![
            entry(1, Form::Text, true),
            entry(3, Form::Pickle, true),
        ]),
    ];
    let input = |archive: Vec<u8>| [&[1], &archive[..]].concat();
    archives.into_iter().map(input).collect()
}

const OBJECT: &[u8] = b"an object";

/// An entry that uses every part that an entry may have.
fn entry(number: u128, form: Form, has_object: bool) -> Entry {
    let name: Arc<str> = "name".into();
    let file = FileRead {
        path: name.clone(),
        length: 3,
        digest: Digest(3),
    };
    let content = match has_object {
        false => KeptContent::Inline((&b"inline"[..]).into()),
        true => KeptContent::Object {
            digest: Digest::of(OBJECT),
            length: OBJECT.len() as u64,
        },
    };
    Entry {
        parts: Parts {
            executor: name.clone(),
            surroundings: Digest(0),
            code: Some(Digest(1)),
            pieces: [FunctionCode {
                name: name.clone(),
                place: Site {
                    file: name.clone(),
                    line: 1,
                },
                digest: Digest(2),
            }]
            .into(),
            payload: Digest(number),
            arguments: vec![(name.clone(), Digest(4))],
            inputs: vec![Input {
                name: name.clone(),
                digest: Digest(5),
                form: form.clone(),
            }],
            outputs: 1,
        },
        place: Digest(number),
        task: name.clone(),
        outputs: vec![KeptOutput { form, content }],
        printed: vec![Printed {
            file: None,
            bytes: (&b"printed"[..]).into(),
        }],
        beneath: vec![file.clone()],
        read: vec![file],
        took_us: 0,
        run: "".into(),
        is_marked: true,
    }
}

fn archive(entries: Vec<Entry>) -> Vec<u8> {
    let manifest = Manifest {
        format: FORMAT,
        owner: "alice".to_string(),
        entries: entries.len() as u64,
    };
    let mut writer = ArchiveWriter::new(Vec::new(), &manifest).expect("memory takes all");
    for entry in &entries {
        let added = writer.add(entry, |_| Ok(OBJECT));
        added.expect("the object is as its digest");
    }
    writer.finish().expect("memory takes all")
}

fn read(input: &[u8]) -> String {
    let [flags, rest @ ..] = input else {
        return "nothing".to_string();
    };
    let mut bytes = rest.to_vec();
    if flags % UNREPAIRED != 0 {
        repair(&mut bytes);
    }
    let mut found = Found::default();
    if let Err(error) = read_archive(&bytes[..], &mut found) {
        return error.to_string();
    }
    let manifest = found.manifest.expect("an archive has a manifest");
    let mut writer = ArchiveWriter::new(Vec::new(), &manifest).expect("memory takes all");
    for entry in &found.entries {
        let added = writer.add(entry, |digest| Ok(&found.objects[&digest][..]));
        added.expect("what was read can be written");
    }
    let again = writer.finish().expect("memory takes all");
    assert!(again == bytes, "what is read is not what is written");
    let (entries, objects) = (found.entries.len(), found.objects.len());
    format!("{entries} entries, {objects} objects")
}

/// What an archive holds.
#[derive(Default)]
struct Found {
    manifest: Option<Manifest>,
    entries: Vec<Entry>,
    objects: BTreeMap<Digest, Vec<u8>>,
}

impl Receiver for Found {
    fn on_manifest(&mut self, manifest: &Manifest) {
        self.manifest = Some(manifest.clone());
    }

    fn on_entry(&mut self, entry: Entry) -> Result<(), KeptError> {
        self.entries.push(entry);
        Ok(())
    }

    fn on_object(&mut self, digest: Digest, bytes: &mut dyn Read) -> Result<(), KeptError> {
        let object = self.objects.entry(digest).or_default();
        bytes.read_to_end(object).expect("memory can be read");
        Ok(())
    }

    fn on_entry_complete(&mut self) -> Result<(), KeptError> {
        Ok(())
    }
}

/// Makes digests of entries and checksums of headers right, so that what is behind them is read.
fn repair(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(header) = bytes.get_mut(at..at + BLOCK).filter(|block| block[0] != 0) {
        header[CHECKSUM].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let length = String::from_utf8_lossy(&header[LENGTH]);
        let length = usize::from_str_radix(&length, 8).unwrap_or(0);
        let is_entry = header.starts_with(b"entries/");
        at += BLOCK;
        let body = bytes.get_mut(at..at + length).filter(|_| is_entry);
        if let Some((digest, rest)) = body.and_then(|body| body.split_first_chunk_mut::<16>()) {
            *digest = Digest::of(rest).0.to_be_bytes();
        }
        at += length.next_multiple_of(BLOCK);
    }
}
