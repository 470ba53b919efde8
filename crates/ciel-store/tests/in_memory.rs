//! Objects in memory: what fits is there, and nothing stays of a run that is gone.

use std::fs;
use std::path::{Path, PathBuf};

use ciel_store::{
    Cleaning, LostObject, Object, ObjectName, ObjectStore, RunFolder, StateFolder, forget_memory,
};
use tempfile::TempDir;

const LIMIT: u64 = 100;

/// A state folder, whose runs have nothing in memory when the test ends.
struct Home {
    folder: TempDir,
    state: StateFolder,
}

impl Home {
    /// None, after a word about it, where there is no memory for files.
    fn new() -> Option<Home> {
        let folder = TempDir::new().unwrap();
        let state = StateFolder::open(&folder.path().join(".ciel")).unwrap();
        let home = Home { folder, state };
        let run = home.run("probe");
        let is_there = run.objects_paths().len() == 2;
        if !is_there {
            println!("skipped: /dev/shm is no file system in memory that can be written to");
        }
        is_there.then_some(home)
    }

    fn path_of(&self, run: &str) -> PathBuf {
        self.state.path().join("runs").join(run)
    }

    fn run(&self, id: &str) -> RunFolder {
        let run = RunFolder::create(&self.state, id, u64::MAX).unwrap();
        run.describe(b"{}").unwrap();
        run.journal_folder().unwrap();
        run.use_memory(LIMIT, 0).unwrap();
        run.record(false);
        run
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for run in self.state.runs().unwrap_or_default() {
            forget_memory(&run.path);
        }
        forget_memory(&self.path_of("gone"));
    }
}

/// An object of so many bytes, as a worker makes it.
fn make(run: &RunFolder, name: ObjectName, length: usize) -> Object {
    let path = file(run, name, length);
    fs::write(&path, vec![b'x'; length]).unwrap();
    run.objects().adopt(name, &path).unwrap()
}

fn file(run: &RunFolder, name: ObjectName, length: usize) -> PathBuf {
    let file = run
        .scratch()
        .file_of_length(name.0, 0, "out", (length as u64, false));
    file.unwrap()
}

fn is_in_memory(run: &RunFolder, name: ObjectName) -> bool {
    let path = run.objects().share(name).unwrap();
    assert_eq!(fs::read(&path).unwrap(), &*run.objects().map(name).unwrap());
    !path.starts_with(run.path())
}

fn memory_of(run: &RunFolder) -> PathBuf {
    run.objects_paths().remove(1)
}

#[test]
fn objects_are_in_memory_as_far_as_they_fit_and_else_on_the_disk() {
    let Some(home) = Home::new() else { return };
    let run = home.run("run");
    let [first, second, third] = [1, 2, 3].map(ObjectName);
    make(&run, first, 60);
    make(&run, second, 60);
    assert_eq!(
        [first, second].map(|name| is_in_memory(&run, name)),
        [true, false]
    );
    assert!(run.objects().release(first).unwrap());
    assert_eq!(run.objects().memory_use().present, 0);
    make(&run, third, 100);
    assert!(is_in_memory(&run, third));
    let used = run.objects().memory_use();
    assert_eq!((used.present, used.peak, used.limit), (100, 100, LIMIT));
    assert_eq!(run.budget().used(), 160);
}

#[test]
fn file_that_is_being_written_takes_its_room_until_it_is_cleared() {
    let Some(home) = Home::new() else { return };
    let run = home.run("run");
    let path = file(&run, ObjectName(1), 60);
    assert!(!path.starts_with(run.path()));
    make(&run, ObjectName(2), 60);
    assert!(!is_in_memory(&run, ObjectName(2)));
    run.scratch().clear(1, 0).unwrap();
    assert!(!path.exists());
    make(&run, ObjectName(3), 60);
    assert!(is_in_memory(&run, ObjectName(3)));
}

#[test]
fn file_in_memory_with_a_second_name_is_copied_to_the_disk() {
    let Some(home) = Home::new() else { return };
    let run = home.run("run");
    let path = file(&run, ObjectName(1), 6);
    fs::write(&path, "shared").unwrap();
    let other = path.with_file_name("other");
    fs::hard_link(&path, &other).unwrap();
    run.objects().adopt(ObjectName(1), &path).unwrap();
    fs::write(&other, "change").unwrap();
    assert_eq!(&*run.objects().map(ObjectName(1)).unwrap(), b"shared");
    assert!(!is_in_memory(&run, ObjectName(1)));
}

#[test]
fn object_in_memory_can_be_linked_into_scratch_as_a_copy() {
    let Some(home) = Home::new() else { return };
    let run = home.run("run");
    make(&run, ObjectName(1), 60);
    let from = run.objects().share(ObjectName(1)).unwrap();
    let path = run.scratch().link(&from, 1, 0, "again").unwrap();
    assert_eq!(fs::read(path).unwrap(), vec![b'x'; 60]);
}

/// The process of the run is killed, and the next one may have another budget.
#[test]
fn next_process_of_the_run_finds_what_is_in_memory_and_removes_the_rest() {
    let Some(home) = Home::new() else { return };
    let run = home.run("run");
    let objects = [1, 2, 3].map(|name| make(&run, ObjectName(name), 30));
    let (half, unknown) = (file(&run, ObjectName(4), 5), objects[2].name);
    let paths = objects.map(|object| run.objects().share(object.name).unwrap());
    drop(run);
    fs::remove_file(&paths[1]).unwrap();
    fs::write(&paths[1], vec![b'y'; 30]).unwrap();
    let run = RunFolder::reopen(&home.state, "run", u64::MAX).unwrap();
    run.use_memory(0, 0).unwrap();
    let lost = run.objects().retain(&objects[..2], u64::MAX).unwrap();
    let changed = LostObject {
        name: objects[1].name,
        expected: 30,
        found: Some(30),
    };
    assert_eq!(lost, [changed]);
    assert!(is_in_memory(&run, objects[0].name));
    assert_eq!(run.objects().memory_use().present, 30);
    assert!(run.objects().location(unknown).is_none());
    assert!(!half.exists() && !paths[2].exists());
    make(&run, ObjectName(5), 1);
    assert!(
        !is_in_memory(&run, ObjectName(5)),
        "there is no room any more"
    );
}

#[test]
fn removed_run_leaves_nothing_in_memory() {
    let Some(home) = Home::new() else { return };
    let run = home.run("run");
    make(&run, ObjectName(1), 60);
    let memory = memory_of(&run);
    home.state.clean(Cleaning::All).unwrap();
    assert!(memory.exists(), "it lives");
    drop(run);
    home.state.clean(Cleaning::Ended).unwrap();
    assert!(memory.exists(), "it can be resumed");
    home.state.clean(Cleaning::All).unwrap();
    assert!(!memory.exists());
}

#[test]
fn next_run_removes_from_memory_what_runs_have_whose_folders_are_gone() {
    let Some(home) = Home::new() else { return };
    let [gone, dead] = ["gone", "dead"].map(|id| home.run(id));
    make(&gone, ObjectName(1), 60);
    let [memory, of_dead] = [&gone, &dead].map(memory_of);
    drop((gone, dead));
    fs::remove_dir_all(home.path_of("gone")).unwrap();
    let next = home.run("next");
    assert!(!memory.exists());
    assert!(of_dead.exists(), "it can be resumed");
    assert!(memory_of(&next).exists());
    assert!(home.folder.path().exists());
}

/// Of runs that begin at the same moment one removed the folder that another one had just made,
/// with nothing in it yet: that run had all of its values on the disk, and nobody was told.
#[test]
fn runs_that_begin_at_the_same_time_all_have_their_memory() {
    let Some(home) = Home::new() else { return };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let home = &home;
            scope.spawn(move || {
                for round in 0..30 {
                    let run = home.run(&format!("{thread}-{round}"));
                    assert_eq!(run.objects_paths().len(), 2, "run {thread}-{round}");
                    forget_memory(run.path());
                }
            });
        }
    });
}

#[test]
fn folder_in_memory_is_for_its_user_alone_and_says_whose_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let Some(home) = Home::new() else { return };
    let run = home.run("run");
    let objects = memory_of(&run);
    let folder = objects.parent().unwrap();
    for path in [folder, &objects] {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", path.display());
    }
    assert_eq!(fs::read_link(folder.join("run")).unwrap(), run.path());
    assert_eq!(folder.parent(), Some(Path::new("/dev/shm")));
}
