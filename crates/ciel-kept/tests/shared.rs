//! Results in a folder of several users: those of others are taken if they can do no harm, and
//! nothing is taken that differs from its digest.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ciel_kept::{Entry, KeptContent, KeptOutput, Parts, SharedFound, SharedResults};
use ciel_model::{Digest, Form};
use tempfile::TempDir;

/// A user who is not the one of the tests.
const STRANGER: u32 = 54_321;

const OBJECT: &[u8] = b"the bytes of an object";

fn entry(number: u128, form: Form) -> Entry {
    let parts = Parts {
        executor: "shell".into(),
        surroundings: Digest(0),
        code: None,
        pieces: Default::default(),
        payload: Digest(number),
        arguments: Vec::new(),
        inputs: Vec::new(),
        outputs: 2,
    };
    let output = |content| KeptOutput {
        form: form.clone(),
        content,
    };
    Entry {
        parts,
        place: Digest(number),
        task: "task".into(),
        outputs: vec![
            output(KeptContent::Inline(Bytes::from_static(b"inline"))),
            output(KeptContent::Object {
                digest: Digest::of(OBJECT),
                length: OBJECT.len() as u64,
            }),
        ],
        printed: Vec::new(),
        beneath: Vec::new(),
        read: Vec::new(),
        took_us: 1,
        run: "run".into(),
        is_marked: false,
    }
}

/// A folder with these entries of this user.
fn shared(entries: &[Entry]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("object");
    fs::write(&object, OBJECT).unwrap();
    let results = SharedResults::open(folder.path(), Vec::new()).unwrap();
    for entry in entries {
        results.keep(entry, std::slice::from_ref(&object)).unwrap();
    }
    fs::remove_file(object).unwrap();
    folder
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) =
        entries.partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| files_below(folder)));
    files
}

/// The folder after all files of this user have become those of a stranger; none, with the reason
/// printed, if this user may not do that.
fn of_stranger(test: &str, folder: TempDir) -> Option<TempDir> {
    let own = fs::metadata(folder.path()).unwrap().uid();
    let theirs = folder.path().join(STRANGER.to_string());
    fs::rename(folder.path().join(own.to_string()), &theirs).unwrap();
    for file in files_below(&theirs) {
        if let Err(error) = std::os::unix::fs::chown(&file, Some(STRANGER), None) {
            eprintln!("skipped: {test}: files cannot be given to another user: {error}");
            return None;
        }
    }
    Some(folder)
}

fn find(folder: &TempDir, trusted: &[u32], entry: &Entry) -> SharedFound {
    let results = SharedResults::open(folder.path(), trusted.to_vec()).unwrap();
    results.find(&entry.parts)
}

fn is_found(found: &SharedFound) -> bool {
    matches!(found, SharedFound::Entry { .. })
}

#[test]
fn own_result_is_found_in_any_form_and_its_object_is_copied() {
    let kept = entry(1, Form::Pickle);
    let folder = shared(std::slice::from_ref(&kept));
    let results = SharedResults::open(folder.path(), Vec::new()).unwrap();
    let SharedFound::Entry { entry, user } = results.find(&kept.parts) else {
        panic!("the entry is not found")
    };
    assert_eq!(*entry, kept);
    let target = folder.path().join("taken");
    let object = (Digest::of(OBJECT), OBJECT.len() as u64);
    assert!(results.take(&user, object, &target).unwrap());
    assert_eq!(fs::read(&target).unwrap(), OBJECT);
    assert_eq!(fs::metadata(&target).unwrap().nlink(), 1);
}

#[test]
fn of_a_stranger_only_bytes_text_and_json_are_taken_unless_trusted() {
    let forms = [
        (Form::Bytes, true),
        (Form::Text, true),
        (Form::Json, true),
        (Form::Pickle, false),
        (Form::Skywriting, false),
        (Form::TypedJson("os.system".into()), false),
        (Form::Other("own".into()), false),
    ];
    let entries = forms.iter().zip(1..);
    let entries: Vec<Entry> = entries
        .map(|((form, _), number)| entry(number, form.clone()))
        .collect();
    let Some(folder) = of_stranger("forms of a stranger", shared(&entries)) else {
        return;
    };
    for (entry, (form, is_taken)) in entries.iter().zip(&forms) {
        let found = find(&folder, &[], entry);
        assert_eq!(is_found(&found), *is_taken, "{form:?}");
        if !is_taken {
            assert_eq!(found, SharedFound::Untrusted(STRANGER));
        }
        assert!(is_found(&find(&folder, &[STRANGER], entry)), "{form:?}");
    }
}

#[test]
fn name_of_a_folder_makes_nobody_its_owner() {
    let kept = entry(1, Form::Pickle);
    let folder = shared(std::slice::from_ref(&kept));
    let Some(folder) = of_stranger("a stranger's folder with the own name", folder) else {
        return;
    };
    let own = fs::metadata(folder.path()).unwrap().uid();
    let theirs = folder.path().join(STRANGER.to_string());
    fs::rename(theirs, folder.path().join(own.to_string())).unwrap();
    assert_eq!(find(&folder, &[], &kept), SharedFound::Untrusted(STRANGER));
}

#[test]
fn entry_or_object_that_was_changed_is_not_taken() {
    let kept = entry(1, Form::Bytes);
    let folder = shared(std::slice::from_ref(&kept));
    for file in files_below(folder.path()) {
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&file, bytes).unwrap();
    }
    assert_eq!(find(&folder, &[], &kept), SharedFound::Nothing);
    let results = SharedResults::open(folder.path(), Vec::new()).unwrap();
    let own = folder
        .path()
        .join(fs::metadata(folder.path()).unwrap().uid().to_string());
    let object = (Digest::of(OBJECT), OBJECT.len() as u64);
    let target = folder.path().join("taken");
    assert!(!results.take(&own, object, &target).unwrap());
    assert!(!target.exists());
}

#[test]
fn entry_under_a_foreign_key_and_a_link_in_its_place_are_not_taken() {
    let (one, other) = (entry(1, Form::Bytes), entry(2, Form::Bytes));
    let folder = shared(std::slice::from_ref(&one));
    let own = folder
        .path()
        .join(fs::metadata(folder.path()).unwrap().uid().to_string());
    let place = |entry: &Entry| {
        let key = entry.parts.key().to_string();
        own.join("entries").join(&key[..2]).join(&key[2..])
    };
    fs::create_dir_all(place(&other).parent().unwrap()).unwrap();
    fs::copy(place(&one), place(&other)).unwrap();
    assert_eq!(find(&folder, &[], &other), SharedFound::Nothing);
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(place(&one), &elsewhere).unwrap();
    symlink(&elsewhere, place(&one)).unwrap();
    assert_eq!(find(&folder, &[], &one), SharedFound::Nothing);
}
