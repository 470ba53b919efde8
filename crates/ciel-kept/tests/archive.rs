//! Archives: what is written is read, equal results give equal bytes, and nothing else is read.

use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::path::Path;

use bytes::Bytes;
use ciel_kept::archive::{ArchiveError, ArchiveWriter, FORMAT, MANIFEST, Manifest, Receiver, read};
use ciel_kept::{
    Destination, Entry, KeptContent, KeptError, KeptOutput, KeptResults, Parts, Printed, carry,
};
use ciel_model::{Digest, Form};
use tar::{Builder, EntryType, Header};

/// Bytes of a block of a tar file.
const BLOCK: usize = 512;

fn entry(number: u128, form: Form, objects: &[&[u8]]) -> Entry {
    let parts = Parts {
        executor: "shell".into(),
        surroundings: Digest(0),
        code: None,
        pieces: Default::default(),
        payload: Digest(number),
        arguments: Vec::new(),
        inputs: Vec::new(),
        outputs: 1,
    };
    let object = |bytes: &&[u8]| KeptOutput {
        form: form.clone(),
        content: KeptContent::Object {
            digest: Digest::of(bytes),
            length: bytes.len() as u64,
        },
    };
    let inline = KeptOutput {
        form: form.clone(),
        content: KeptContent::Inline(Bytes::from_static(b"inline")),
    };
    Entry {
        parts,
        place: Digest(number),
        task: "task".into(),
        outputs: objects.iter().map(object).chain([inline]).collect(),
        printed: Vec::new(),
        beneath: Vec::new(),
        read: Vec::new(),
        took_us: 0,
        run: "".into(),
        is_marked: false,
    }
}

const SHARED: &[u8] = b"an object of two entries";
const OWN: &[u8] = &[7; 3 * BLOCK];

/// Two entries that anybody may take and one that only a friend may take.
fn entries() -> Vec<Entry> {
    let mut harmless = [
        entry(1, Form::Bytes, &[SHARED, OWN, SHARED]),
        entry(2, Form::Json, &[SHARED, b""]),
    ];
    harmless.sort_by_key(|entry| entry.parts.key());
    let pickle = entry(3, Form::Pickle, &[OWN, b"a pickle"]);
    harmless.into_iter().chain([pickle]).collect()
}

fn bytes_of(digest: Digest) -> &'static [u8] {
    let all = [SHARED, OWN, b"", b"a pickle"];
    let found = all.into_iter().find(|bytes| Digest::of(bytes) == digest);
    found.unwrap()
}

fn manifest(entries: usize) -> Manifest {
    Manifest {
        format: FORMAT,
        owner: "alice".into(),
        entries: entries as u64,
    }
}

fn archive_of(entries: &[Entry]) -> Vec<u8> {
    let mut writer = ArchiveWriter::new(Vec::new(), &manifest(entries.len())).unwrap();
    for entry in entries {
        writer.add(entry, |digest| Ok(bytes_of(digest))).unwrap();
    }
    writer.finish().unwrap()
}

/// Gathers what it receives.
#[derive(Default)]
struct Gathered {
    owner: String,
    entries: Vec<Entry>,
    objects: Vec<Vec<u8>>,
    complete: usize,
}

impl Receiver for Gathered {
    fn on_manifest(&mut self, manifest: &Manifest) {
        self.owner.clone_from(&manifest.owner);
    }

    fn on_entry(&mut self, entry: Entry) -> Result<(), KeptError> {
        self.entries.push(entry);
        Ok(())
    }

    fn on_object(&mut self, _: Digest, bytes: &mut dyn Read) -> Result<(), KeptError> {
        let mut all = Vec::new();
        bytes.read_to_end(&mut all).unwrap();
        self.objects.push(all);
        Ok(())
    }

    fn on_entry_complete(&mut self) -> Result<(), KeptError> {
        self.complete += 1;
        Ok(())
    }
}

fn gathered(archive: &[u8]) -> Result<Gathered, ArchiveError> {
    let mut gathered = Gathered::default();
    read(archive, &mut gathered).map(|()| gathered)
}

#[test]
fn what_is_written_is_read_and_each_object_comes_once() {
    let archive = archive_of(&entries());
    let found = gathered(&archive).unwrap();
    assert_eq!(found.entries, entries());
    assert_eq!((found.complete, found.objects.len()), (3, 4));
    assert_eq!(found.owner, "alice");
    // Any program that knows tar files can list it.
    let mut listed = tar::Archive::new(Cursor::new(&archive));
    let names = listed.entries().unwrap();
    let names: Vec<String> = names
        .map(|member| member.unwrap().path().unwrap().display().to_string())
        .collect();
    assert_eq!(names.len(), 8);
    assert_eq!(names[0], MANIFEST);
    assert!(names[1].starts_with("entries/"), "{names:?}");
}

/// The encoding of an entry is part of the format: whoever changes it gives the format another
/// number, and this digest another value.
#[test]
fn bytes_of_the_format_are_those_that_earlier_versions_wrote() {
    let mut whole = entry(1, Form::TypedJson("Point".into()), &[SHARED]);
    whole.printed.push(Printed {
        file: None,
        bytes: Bytes::from_static(b"hello"),
    });
    let digest = Digest::of(&archive_of(&[whole])).to_string();
    assert_eq!((FORMAT, &*digest), (1, "8faf9f4fc44c1d2ad1ad1488e162b4fb"));
}

#[test]
fn archive_that_is_cut_anywhere_is_refused() {
    let archive = archive_of(&entries());
    for length in 0..archive.len() {
        let refused = gathered(&archive[..length]);
        let is_named = matches!(
            refused,
            Err(ArchiveError::Truncated | ArchiveError::Foreign)
        );
        assert!(is_named, "{length}");
    }
    let longer = [&archive[..], b"x"].concat();
    assert!(matches!(
        gathered(&longer),
        Err(ArchiveError::Unexpected(_))
    ));
}

#[test]
fn archive_in_which_any_byte_differs_is_refused_or_has_an_owner_of_another_name() {
    let archive = archive_of(&entries());
    for at in 0..archive.len() {
        let mut changed = archive.clone();
        changed[at] ^= 0x20;
        // That name is a claim in any case.
        if let Ok(found) = gathered(&changed) {
            assert_ne!(found.owner, "alice", "byte {at}");
            assert_eq!(found.entries, entries());
        }
    }
}

/// A tar file that holds the manifest and then this member.
fn with_member(header: &mut Header, name: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    let text = serde_json::to_vec(&manifest(1)).unwrap();
    let mut first = Header::new_ustar();
    first.set_path(MANIFEST).unwrap();
    first.set_mode(0o444);
    first.set_uid(0);
    first.set_gid(0);
    first.set_mtime(0);
    first.set_size(text.len() as u64);
    first.set_cksum();
    builder.append(&first, &text[..]).unwrap();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_cksum();
    builder.append(header, bytes).unwrap();
    builder.into_inner().unwrap()
}

#[test]
fn paths_links_devices_and_sizes_of_other_kinds_are_refused() {
    let names: [&[u8]; 6] = [
        b"../escape",
        b"/etc/passwd",
        b"entries/../../escape",
        b"entries/00/000000000000000000000000000000/../x",
        b"objects/00/000000000000000000000000000000",
        b"\x1b[2J",
    ];
    for name in names {
        let mut header = Header::new_ustar();
        header.set_size(0);
        let refused = gathered(&with_member(&mut header, name, b""));
        let Err(ArchiveError::Unexpected(shown)) = refused else {
            panic!("{} is not refused", name.escape_ascii());
        };
        assert!(!shown.contains('\x1b'), "{shown}");
    }
    let name = b"entries/00/000000000000000000000000000000";
    let kinds = [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Block,
        EntryType::Char,
        EntryType::Fifo,
        EntryType::Directory,
        EntryType::GNUSparse,
        EntryType::GNULongName,
        EntryType::XHeader,
    ];
    for kind in kinds {
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_link_name("/etc/passwd").unwrap();
        header.set_size(0);
        let refused = gathered(&with_member(&mut header, name, b""));
        assert!(
            matches!(refused, Err(ArchiveError::Unexpected(_))),
            "{kind:?}"
        );
    }
    for size in [1 << 40, u64::MAX] {
        let mut header = Header::new_ustar();
        header.set_size(size);
        let refused = gathered(&with_member(&mut header, name, b""));
        assert!(matches!(refused, Err(ArchiveError::Unexpected(_))));
    }
}

#[test]
fn entries_that_come_twice_or_in_another_order_are_refused() {
    let archive = archive_of(&entries()[..1]);
    let first = BLOCK + BLOCK;
    let entry_end = first + 2 * BLOCK;
    let twice = [
        &archive_of_count(2)[..first],
        &archive[first..archive.len() - 2 * BLOCK],
        &archive[first..entry_end],
        &[0; 2 * BLOCK],
    ];
    let refused = gathered(&twice.concat());
    assert!(matches!(refused, Err(ArchiveError::Unexpected(_))));
}

/// An archive that promises so many entries, and holds none.
fn archive_of_count(count: usize) -> Vec<u8> {
    let writer = ArchiveWriter::new(Vec::new(), &manifest(count)).unwrap();
    writer.finish().unwrap()
}

#[test]
fn another_format_is_named() {
    let other = Manifest {
        format: 9,
        ..manifest(0)
    };
    let writer = ArchiveWriter::new(Vec::new(), &other).unwrap();
    let refused = gathered(&writer.finish().unwrap());
    assert!(matches!(refused, Err(ArchiveError::OtherFormat(9))));
}

/// The folder of results in `home`, and the file of an archive.
fn place(home: &Path, archive: &[u8]) -> (KeptResults, File) {
    let path = home.join("carried.tar");
    fs::write(&path, archive).unwrap();
    let kept = KeptResults::open(&home.join("kept")).unwrap();
    (kept, File::open(path).unwrap())
}

#[test]
fn forms_that_run_code_are_taken_only_from_who_is_trusted() {
    let archive = archive_of(&entries());
    for (trusted, taken, refused) in [(vec!["alice".to_string()], 3, 0), (Vec::new(), 2, 1)] {
        let home = tempfile::tempdir().unwrap();
        let (mut kept, file) = place(home.path(), &archive);
        let destination = Destination::Own(&mut kept, 100);
        let unpacked = carry::unpack(file, &trusted, destination).unwrap();
        assert_eq!((unpacked.taken, unpacked.refused), (taken, refused));
        assert_eq!(&*unpacked.owner, "alice");
        let kept = KeptResults::open(&home.path().join("kept")).unwrap();
        let pickle = kept.entry(entries()[2].parts.key()).unwrap();
        assert_eq!(pickle.is_some(), taken == 3);
        let first = kept.entry(entries()[0].parts.key()).unwrap().unwrap();
        assert!(kept.has_objects(&first));
    }
}

#[test]
fn damage_behind_good_entries_leaves_the_folder_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let mut archive = archive_of(&entries());
    let last = archive.len() - 3 * BLOCK;
    archive[last] ^= 1;
    let (mut kept, file) = place(home.path(), &archive);
    let refused = carry::unpack(file, &[], Destination::Own(&mut kept, 100));
    assert!(matches!(refused, Err(ArchiveError::Damaged(_))));
    assert_eq!(kept.usage().unwrap().entries, 0);
    assert!(!home.path().join("kept/carried").exists());
}

#[test]
fn result_that_is_damaged_is_replaced_by_that_of_the_archive() {
    let home = tempfile::tempdir().unwrap();
    let archive = archive_of(&entries());
    let (mut kept, file) = place(home.path(), &archive);
    carry::unpack(file, &[], Destination::Own(&mut kept, 100)).unwrap();
    let name = Digest::of(SHARED).to_string();
    let object = home
        .path()
        .join("kept/objects")
        .join(&name[..2])
        .join(&name[2..]);
    fs::remove_file(&object).unwrap();
    let file = File::open(home.path().join("carried.tar")).unwrap();
    let again = carry::unpack(file, &[], Destination::Own(&mut kept, 100)).unwrap();
    assert_eq!((again.taken, again.present), (2, 0));
    assert_eq!(fs::read(object).unwrap(), SHARED);
}

#[test]
fn what_a_killed_process_left_on_its_way_is_removed_unless_another_one_works_there() {
    let home = tempfile::tempdir().unwrap();
    let mut kept = KeptResults::open(&home.path().join("kept")).unwrap();
    let left = home.path().join("kept/carried");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("object"), "left").unwrap();
    let lock = File::create(home.path().join("kept/carried.lock")).unwrap();
    lock.lock().unwrap();
    kept.evict(u64::MAX).unwrap();
    assert!(left.exists());
    lock.unlock().unwrap();
    kept.evict(u64::MAX).unwrap();
    assert!(!left.exists());
}
