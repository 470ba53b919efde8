//! What every store of objects does, run over each of them: files of a run, and memory.
//!
//! `World` is how a test reaches behind the door: it damages, fills up and breaks off a store.

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use ciel_model::Digest;
use ciel_store::{
    FileObjects, LostObject, MemoryObjects, Object, ObjectName, ObjectStore, RunFolder,
    StateFolder, StoreError,
};
use tempfile::TempDir;

const NAME: ObjectName = ObjectName(0xabc);

/// Bytes that a store of a test may keep.
const LIMIT: u64 = 1000;

/// A store, and what can happen to it.
trait World {
    fn store(&self) -> &dyn ObjectStore;

    /// Bytes that count against its limit.
    fn used(&self) -> u64;

    /// A file that a task has written.
    fn written(&self, bytes: &[u8]) -> PathBuf;

    /// Another process changes the bytes of an object, or removes them.
    fn damage(&self, name: ObjectName, bytes: Option<&[u8]>);

    /// The process is killed, and the next one resumes the run with these objects.
    fn restart(&mut self, known: &[Object], verified_bytes_max: u64) -> Vec<LostObject>;

    /// Files that are left of objects, drafts and written files.
    fn files(&self) -> usize;
}

struct Files {
    home: TempDir,
    run: Option<RunFolder>,
}

impl Files {
    fn new() -> Files {
        let home = TempDir::new().unwrap();
        let state = StateFolder::open(&home.path().join(".ciel")).unwrap();
        let run = RunFolder::create(&state, "run", LIMIT).unwrap();
        run.describe(b"a run").unwrap();
        run.journal_folder().unwrap();
        run.record(false);
        let run = Some(run);
        Files { home, run }
    }

    fn run(&self) -> &RunFolder {
        self.run.as_ref().unwrap()
    }

    fn objects(&self) -> &FileObjects {
        self.run().objects()
    }
}

impl World for Files {
    fn store(&self) -> &dyn ObjectStore {
        self.objects()
    }

    fn used(&self) -> u64 {
        self.run().budget().used()
    }

    fn written(&self, bytes: &[u8]) -> PathBuf {
        self.run().scratch().write(1, 0, "out", bytes).unwrap()
    }

    fn damage(&self, name: ObjectName, bytes: Option<&[u8]>) {
        let path = self.run().path().join("objects").join(name.to_string());
        fs::remove_file(&path).unwrap();
        if let Some(bytes) = bytes {
            fs::write(&path, bytes).unwrap();
        }
    }

    fn restart(&mut self, known: &[Object], verified_bytes_max: u64) -> Vec<LostObject> {
        drop(self.run.take());
        let state = StateFolder::open(&self.home.path().join(".ciel")).unwrap();
        let run = RunFolder::reopen(&state, "run", LIMIT).unwrap();
        let lost = run.objects().retain(known, verified_bytes_max).unwrap();
        run.record(false);
        self.run = Some(run);
        lost
    }

    fn files(&self) -> usize {
        let count = |name| fs::read_dir(self.run().path().join(name)).unwrap().count();
        count("objects") + count("scratch")
    }
}

struct Memory {
    home: TempDir,
    objects: MemoryObjects,
}

impl Memory {
    fn new() -> Memory {
        Memory {
            home: TempDir::new().unwrap(),
            objects: MemoryObjects::new(LIMIT),
        }
    }
}

impl World for Memory {
    fn store(&self) -> &dyn ObjectStore {
        &self.objects
    }

    fn used(&self) -> u64 {
        self.objects.budget().used()
    }

    fn written(&self, bytes: &[u8]) -> PathBuf {
        let path = self.home.path().join("out");
        fs::write(&path, bytes).unwrap();
        path
    }

    fn damage(&self, name: ObjectName, bytes: Option<&[u8]>) {
        self.objects.damage(name, bytes.map(Bytes::copy_from_slice));
    }

    fn restart(&mut self, known: &[Object], verified_bytes_max: u64) -> Vec<LostObject> {
        *self = Memory::new();
        self.objects.retain(known, verified_bytes_max).unwrap()
    }

    fn files(&self) -> usize {
        fs::read_dir(self.home.path()).unwrap().count()
    }
}

/// What a store does: its name, and the test of it.
type Behaviour = (&'static str, fn(&mut dyn World));

const BEHAVIOURS: [Behaviour; 14] = [
    ("sealed bytes can be read in every way", read_in_every_way),
    ("adopted file is an object and its path free", adopted),
    ("bytes outlive the release of their object", released),
    ("draft is seen by nobody before it is sealed", unseen),
    ("draft that is dropped leaves nothing", dropped),
    ("name sealed twice keeps the first", sealed_twice),
    ("name of another length is refused", other_length),
    ("no bytes are an object", empty),
    ("unknown name is refused in every way", unknown),
    ("full store refuses whole and takes again", full),
    ("missing and cut bytes are told with lengths", missing),
    ("changed bytes are found and discarded", changed),
    ("what is not retained is removed", not_retained),
    ("no restart shows half an object or other bytes", restarted),
];

fn run_all(world: impl Fn() -> Box<dyn World>) {
    for (name, behaviour) in BEHAVIOURS {
        println!("{name}");
        behaviour(&mut *world());
    }
}

#[test]
fn files_behave_as_a_store() {
    run_all(|| Box::new(Files::new()));
}

#[test]
fn memory_behaves_as_a_store() {
    run_all(|| Box::new(Memory::new()));
}

fn length_of(store: &dyn ObjectStore, name: ObjectName) -> Option<u64> {
    store.location(name).map(|location| location.length)
}

fn read_in_every_way(world: &mut dyn World) {
    let store = world.store();
    let mut draft = store.open(NAME).unwrap();
    draft.append(b"one ").unwrap();
    draft.append(b"two").unwrap();
    let object = draft.seal().unwrap();
    let expected = Object {
        name: NAME,
        length: 7,
        digest: Some(Digest::of(b"one two")),
    };
    assert_eq!(object, expected);
    assert_eq!(store.map(NAME).unwrap(), "one two");
    assert_eq!(fs::read(store.share(NAME).unwrap()).unwrap(), b"one two");
    assert_eq!(length_of(store, NAME), Some(7));
    store.verify(NAME).unwrap();
    assert_eq!(world.used(), 7);
}

fn adopted(world: &mut dyn World) {
    let path = world.written(b"result");
    let object = world.store().adopt(NAME, &path).unwrap();
    assert_eq!(object.digest, Some(Digest::of(b"result")));
    assert!(!path.exists());
    assert_eq!(world.store().map(NAME).unwrap(), "result");
    assert_eq!(world.used(), 6);
    let error = world.store().adopt(ObjectName(1), &path).unwrap_err();
    assert_eq!(error.code(), "store.not-a-file");
}

fn released(world: &mut dyn World) {
    let store = world.store();
    store.put(NAME, b"bytes").unwrap();
    let bytes = store.map(NAME).unwrap();
    assert!(store.release(NAME).unwrap());
    assert!(!store.release(NAME).unwrap());
    assert_eq!((bytes.as_ref(), world.used()), (&b"bytes"[..], 0));
    assert_eq!(world.files(), 0);
}

fn unseen(world: &mut dyn World) {
    let store = world.store();
    let mut draft = store.open(NAME).unwrap();
    draft.append(b"half").unwrap();
    assert_eq!(store.location(NAME), None);
    assert_eq!(store.map(NAME).unwrap_err().code(), "store.unknown-object");
    draft.seal().unwrap();
    assert_eq!(store.map(NAME).unwrap(), "half");
}

fn dropped(world: &mut dyn World) {
    let mut draft = world.store().open(NAME).unwrap();
    draft.append(b"half").unwrap();
    assert_eq!(world.used(), 4);
    drop(draft);
    assert_eq!((world.used(), world.files()), (0, 0));
}

fn sealed_twice(world: &mut dyn World) {
    let store = world.store();
    let mut late = store.open(NAME).unwrap();
    late.append(b"same").unwrap();
    let first = store.put(NAME, b"some").unwrap();
    assert_eq!(late.seal().unwrap(), first);
    let path = world.written(b"same");
    assert_eq!(store.adopt(NAME, &path).unwrap(), first);
    assert_eq!(store.map(NAME).unwrap(), "some");
    assert_eq!(world.used(), 4);
    assert!(!path.exists());
}

fn other_length(world: &mut dyn World) {
    let store = world.store();
    store.put(NAME, b"first").unwrap();
    let path = world.written(b"second");
    let errors = [
        store.put(NAME, b"second").unwrap_err(),
        store.adopt(NAME, &path).unwrap_err(),
    ];
    for error in errors {
        let (held, offered) = match error {
            StoreError::ObjectDiffers { held, offered, .. } => (held, offered),
            other => panic!("{other}"),
        };
        assert_eq!((held, offered), (5, 6));
    }
    assert!(path.exists());
    assert_eq!(world.used(), 5);
}

fn empty(world: &mut dyn World) {
    let store = world.store();
    assert_eq!(store.put(NAME, b"").unwrap().length, 0);
    assert!(store.map(NAME).unwrap().is_empty());
    assert_eq!(fs::read(store.share(NAME).unwrap()).unwrap(), b"");
    store.verify(NAME).unwrap();
}

fn unknown(world: &mut dyn World) {
    let store = world.store();
    let errors = [
        store.map(NAME).unwrap_err(),
        store.share(NAME).unwrap_err(),
        store.verify(NAME).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code(), "store.unknown-object");
    }
    assert_eq!(store.location(NAME), None);
    assert!(!store.release(NAME).unwrap());
}

fn full(world: &mut dyn World) {
    let store = world.store();
    store.put(NAME, &[1; 900]).unwrap();
    let path = world.written(&[2; 101]);
    let mut draft = store.open(ObjectName(1)).unwrap();
    draft.append(&[3; 100]).unwrap();
    let errors = [
        draft.append(&[3]).unwrap_err(),
        store.put(ObjectName(2), &[2; 101]).unwrap_err(),
        store.adopt(ObjectName(3), &path).unwrap_err(),
    ];
    drop(draft);
    for error in errors {
        assert!(error.code() == "store.full" && error.is_retryable());
    }
    assert_eq!(world.used(), 900);
    assert_eq!(store.location(ObjectName(2)), None);
    assert!(store.release(NAME).unwrap());
    store.adopt(ObjectName(3), &path).unwrap();
    assert_eq!(world.used(), 101);
}

fn missing(world: &mut dyn World) {
    let store = world.store();
    store.put(NAME, b"whole").unwrap();
    for (bytes, length) in [(Some(&b"cut"[..]), Some(3)), (None, None)] {
        world.damage(NAME, bytes);
        let errors = [
            store.map(NAME).unwrap_err(),
            store.share(NAME).unwrap_err(),
            store.verify(NAME).unwrap_err(),
        ];
        for error in errors {
            let (expected, found) = match error {
                StoreError::DamagedObject {
                    expected, found, ..
                } => (expected, found),
                other => panic!("{other}"),
            };
            assert_eq!((expected, found), (5, length));
        }
    }
}

fn changed(world: &mut dyn World) {
    let store = world.store();
    store.put(NAME, b"whole").unwrap();
    world.damage(NAME, Some(b"whale"));
    let error = store.verify(NAME).unwrap_err();
    assert_eq!(error.code(), "store.changed-object");
    assert_eq!(store.location(NAME), None);
    assert_eq!((world.used(), world.files()), (0, 0));
    store.put(NAME, b"whole").unwrap();
    store.verify(NAME).unwrap();
}

fn not_retained(world: &mut dyn World) {
    let kept = world.store().put(NAME, b"kept").unwrap();
    world.store().put(ObjectName(1), b"orphan").unwrap();
    world.restart(&[kept], u64::MAX);
    assert_eq!(world.store().location(ObjectName(1)), None);
    let kept = u64::from(world.store().location(NAME).is_some());
    assert_eq!((world.used(), world.files() as u64), (4 * kept, kept));
}

/// Whatever happens to the bytes between two processes of a run, and at whatever step the first
/// one is killed, the second finds an object as it was, or lost.
fn restarted(world: &mut dyn World) {
    for (number, verified_bytes_max) in [u64::MAX, 0].into_iter().enumerate() {
        let name = |index: u128| ObjectName(index + 10 * number as u128);
        let whole: [Object; 5] =
            std::array::from_fn(|index| world.store().put(name(index as u128), b"whole").unwrap());
        world.damage(name(1), Some(b"whale"));
        world.damage(name(2), Some(b"cut"));
        world.damage(name(3), None);
        let mut draft = world.store().open(name(5)).unwrap();
        draft.append(b"whole").unwrap();
        // A process that is killed drops nothing.
        std::mem::forget(draft);
        world.written(b"never adopted");
        let unsealed = Object {
            name: name(5),
            ..whole[0]
        };
        let known = [&whole[..], &[unsealed]].concat();
        let lost = world.restart(&known, verified_bytes_max);
        let is_lost = |name| lost.iter().any(|lost: &LostObject| lost.name == name);
        for object in &known {
            let is_there = world.store().location(object.name).is_some();
            assert_ne!(is_lost(object.name), is_there);
            match world.store().map(object.name) {
                Ok(bytes) => assert_eq!(bytes, "whole"),
                Err(StoreError::ChangedObject { .. }) => assert_eq!(verified_bytes_max, 0),
                Err(error) => assert!(is_lost(object.name), "{error}"),
            }
        }
        let there = |object: &&Object| world.store().location(object.name).is_some();
        let there = known.iter().filter(there).count();
        assert_eq!(world.files(), there);
        assert_eq!(world.used(), 5 * there as u64);
        assert!(is_lost(name(2)) && is_lost(name(3)) && is_lost(name(5)));
    }
}

#[test]
fn many_threads_sealing_one_name_agree() {
    let world = Files::new();
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                for name in 0..100 {
                    world.store().put(ObjectName(name), b"equal").unwrap();
                }
            });
        }
    });
    assert_eq!((world.files(), world.used()), (100, 500));
}

/// Two tasks found at the same time that their inputs had changed: the search of the first one did
/// not find the input of the second, which had been discarded and was told a little later. So what
/// was being recomputed for the first was started once more.
#[test]
fn search_finds_what_another_reader_has_found_changed_just_now() {
    let world = Files::new();
    let [first, second] = [1, 2].map(ObjectName);
    for name in [first, second] {
        world.store().put(name, b"whole").unwrap();
        world.damage(name, Some(b"whale"));
    }
    assert!(world.store().share(second).is_err());
    assert_eq!(world.store().find_lost(), [first, second]);
    assert_eq!(world.store().find_lost(), []);
    world.store().put(second, b"whole").unwrap();
    world.damage(second, Some(b"whale"));
    assert!(world.store().share(second).is_err());
    world.store().put(second, b"whole").unwrap();
    assert_eq!(world.store().find_lost(), [], "it is there again");
}
