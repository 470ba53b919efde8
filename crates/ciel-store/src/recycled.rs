//! Files of dead objects in memory, into which the next ones are written.
//!
//! A write into fresh pages takes several times as long as one into pages that are there. So the
//! file of a long object that was released waits for a while, if nobody has it open or mapped, and
//! becomes the file of a value that is about as long, whose writer overwrites all of its bytes. It
//! does not know how much may wait. Read next: `memory_folder`.

use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use crate::directory::Directory;
use crate::error::StoreError;
use crate::lease::is_alone;
use crate::limits::{RECYCLED_BYTES_MIN, RECYCLED_FILES_MAX};

/// The files that wait, in a folder of their own.
#[derive(Debug)]
pub(crate) struct Recycled(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: Directory,
    /// How long a file waits at most.
    patience: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The oldest first.
    files: Vec<Waiting>,
    /// Names given so far.
    names: u64,
    /// Whether a thread removes those that have waited for long.
    is_watched: bool,
}

/// A file that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    name: String,
    pub(crate) length: u64,
    since: Instant,
}

impl Recycled {
    /// None wait in that folder yet; each will wait for so long at most.
    pub(crate) fn new(folder: Directory, patience: Duration) -> Recycled {
        Recycled(Arc::new(Shared {
            folder,
            patience,
            state: Mutex::default(),
        }))
    }

    /// Bytes of all that wait.
    pub(crate) fn bytes(&self) -> u64 {
        let state = self.0.state();
        state.files.iter().map(|file| file.length).sum()
    }

    /// Keeps the file of a dead object, which is open, instead of removing it. False if it is none
    /// that could be written to again: then it is where it was.
    pub(crate) fn keep(&self, (from, name): (&Directory, &str), file: &File, length: u64) -> bool {
        let mut state = self.0.state();
        if length < RECYCLED_BYTES_MIN
            || state.files.len() >= RECYCLED_FILES_MAX
            || !is_alone(file)
            || !make_writable(file, length)
            || !self.watch(&mut state)
        {
            return false;
        }
        state.names += 1;
        let waiting = Waiting {
            name: state.names.to_string(),
            length,
            since: Instant::now(),
        };
        let is_kept = from.move_to(name, &self.0.folder, &waiting.name);
        let is_kept = is_kept.is_ok_and(|is_kept| is_kept);
        if is_kept {
            state.files.push(waiting);
        }
        is_kept
    }

    /// Takes the file that is best for so many bytes: the shortest of those that hold them, else
    /// the longest; none that is less than half as long or more than twice.
    pub(crate) fn take(&self, length: u64) -> Option<Waiting> {
        let mut state = self.0.state();
        let fits = |file: &&Waiting| {
            file.length <= length.saturating_mul(2) && length <= file.length.saturating_mul(2)
        };
        let distance = |file: &Waiting| (file.length < length, file.length.abs_diff(length));
        let best = state.files.iter().filter(fits).min_by_key(|f| distance(f));
        let name = best?.name.clone();
        let at = state.files.iter().position(|file| file.name == name)?;
        Some(state.files.remove(at))
    }

    /// Makes the file of so many bytes, at most, of one that was taken; false if that is removed
    /// instead.
    pub(crate) fn put(
        &self,
        waiting: &Waiting,
        (folder, name): (&Directory, &str),
        length: u64,
    ) -> bool {
        let is_put = self.try_to_put(waiting, (folder, name), length);
        let is_put = is_put.unwrap_or(false);
        if !is_put {
            self.discard(waiting);
        }
        is_put
    }

    fn try_to_put(
        &self,
        waiting: &Waiting,
        (folder, name): (&Directory, &str),
        length: u64,
    ) -> Result<bool, StoreError> {
        // Whoever was about to open the file by its former name has done so by now.
        let file = self.0.folder.open_to_write(&waiting.name)?;
        let Some(file) = file.filter(|file| is_alone(file)) else {
            return Ok(false);
        };
        if waiting.length > length {
            let cut = file.set_len(length);
            cut.map_err(|source| self.0.folder.system("shorten", &waiting.name, source))?;
        }
        self.0.folder.move_to(&waiting.name, folder, name)
    }

    /// Removes a file that was taken.
    pub(crate) fn discard(&self, waiting: &Waiting) {
        self.0.remove(waiting);
    }

    /// Removes the file that has waited longest; false if none waits.
    pub(crate) fn drop_oldest(&self) -> bool {
        let oldest = {
            let mut state = self.0.state();
            (!state.files.is_empty()).then(|| state.files.remove(0))
        };
        if let Some(oldest) = &oldest {
            self.0.remove(oldest);
        }
        oldest.is_some()
    }

    /// Removes what earlier processes of the run have left here.
    pub(crate) fn clear(&self) -> Result<(), StoreError> {
        let folder = &self.0.folder;
        let mut names = folder.names()?.into_iter();
        names.try_for_each(|name| folder.remove_all(&name))
    }

    /// Has a thread remove what waits for long, as long as anything waits; false if there is none.
    fn watch(&self, state: &mut State) -> bool {
        if !state.is_watched {
            let (shared, patience) = (Arc::downgrade(&self.0), self.0.patience);
            let thread = std::thread::Builder::new().name("recycled".to_string());
            let watched = thread.spawn(move || remove_old(&shared, patience));
            state.is_watched = watched.is_ok();
        }
        state.is_watched
    }
}

impl Shared {
    fn remove(&self, waiting: &Waiting) {
        // What cannot be removed now goes with the folder.
        let _ = self.folder.remove_file(&waiting.name);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the files")
    }

    /// Removes what has waited for long; how long the next one may still wait, if there is any.
    fn remove_old(&self) -> Option<Duration> {
        let (old, rest) = {
            let mut state = self.state();
            let files = std::mem::take(&mut state.files).into_iter();
            let (old, kept): (Vec<_>, Vec<_>) =
                files.partition(|file| file.since.elapsed() >= self.patience);
            state.files = kept;
            let next = state.files.first();
            let rest = next.map(|file| self.patience.saturating_sub(file.since.elapsed()));
            state.is_watched = rest.is_some();
            (old, rest)
        };
        old.iter().for_each(|waiting| self.remove(waiting));
        rest
    }
}

/// Gives the owner the right to write to a file that has one name and that length.
fn make_writable(file: &File, length: u64) -> bool {
    const FOR_THE_OWNER: rustix::fs::Mode = rustix::fs::Mode::from_raw_mode(0o600);
    let is_whole = rustix::fs::fstat(file)
        .is_ok_and(|found| found.st_nlink == 1 && u64::try_from(found.st_size) == Ok(length));
    is_whole && rustix::fs::fchmod(file, FOR_THE_OWNER).is_ok()
}

fn remove_old(shared: &Weak<Shared>, patience: Duration) {
    let mut rest = patience;
    loop {
        std::thread::sleep(rest);
        let Some(shared) = shared.upgrade() else {
            return;
        };
        match shared.remove_old() {
            Some(next) => rest = next,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    const MIB: u64 = 1 << 20;
    const LONG: Duration = Duration::from_secs(100_000);

    /// A hang is found by it, and nothing else.
    const DEADLINE: Duration = Duration::from_secs(120);

    struct Place {
        folder: tempfile::TempDir,
        directory: Directory,
        recycled: Recycled,
    }

    impl Place {
        /// None, after a word about it, where nobody tells who has a file open.
        fn new(patience: Duration) -> Option<Place> {
            let folder = tempfile::tempdir().unwrap();
            let directory = Directory::open(folder.path()).unwrap();
            let inner = directory.inner_or_new("recycled").unwrap();
            fs::write(folder.path().join("probe"), "").unwrap();
            if !is_alone(directory.open_file("probe").unwrap()) {
                eprintln!("skipped: the file system of temporary files gives no leases");
                return None;
            }
            Some(Place {
                folder,
                directory,
                recycled: Recycled::new(inner, patience),
            })
        }

        /// A file that nobody may write to.
        fn make(&self, name: &str, length: u64) {
            let path = self.folder.path().join(name);
            fs::write(&path, vec![7; length as usize]).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        }

        fn try_to_keep(&self, name: &str, length: u64) -> bool {
            let file = self.directory.open_file(name).unwrap();
            self.recycled.keep((&self.directory, name), &file, length)
        }

        /// A process that another test starts has all files open for an instant.
        fn keep(&self, name: &str, length: u64) {
            let begun = Instant::now();
            while !self.try_to_keep(name, length) {
                assert!(begun.elapsed() < DEADLINE, "{name} is never alone");
                std::thread::yield_now();
            }
        }

        fn take(&self, length: u64) -> Option<u64> {
            let taken = self.recycled.take(length)?;
            let length = taken.length;
            self.recycled.discard(&taken);
            Some(length)
        }
    }

    #[test]
    fn file_about_as_long_is_taken_and_is_writable_and_no_longer_than_wanted() {
        let Some(place) = Place::new(LONG) else {
            return;
        };
        place.make("a", 3 * MIB);
        place.keep("a", 3 * MIB);
        assert!(!place.folder.path().join("a").exists());
        let begun = Instant::now();
        let path = place.folder.path().join("b");
        loop {
            let taken = place.recycled.take(2 * MIB).expect("it waits");
            if (place.recycled).put(&taken, (&place.directory, "b"), 2 * MIB) {
                break;
            }
            assert!(begun.elapsed() < DEADLINE, "it is never alone");
            place.make("a", 3 * MIB);
            place.keep("a", 3 * MIB);
        }
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.len(), found.mode() & 0o777), (2 * MIB, 0o600));
        assert_eq!(place.recycled.bytes(), 0);
    }

    #[test]
    fn best_of_those_that_wait_is_taken() {
        let Some(place) = Place::new(LONG) else {
            return;
        };
        for length in [2, 4, 3, 8] {
            place.make("a", length * MIB);
            place.keep("a", length * MIB);
        }
        assert_eq!(place.recycled.bytes(), 17 * MIB);
        assert_eq!(place.take(17 * MIB), None);
        assert_eq!(place.take(MIB - 1), None);
        assert_eq!(place.take(3 * MIB - 1), Some(3 * MIB));
        assert_eq!(place.take(3 * MIB), Some(4 * MIB));
        assert_eq!(place.take(9 * MIB), Some(8 * MIB));
        assert_eq!(place.take(2 * MIB), Some(2 * MIB));
        assert_eq!(place.take(2 * MIB), None);
    }

    #[test]
    fn short_file_and_one_that_is_open_or_has_another_name_or_length_stay() {
        let Some(place) = Place::new(LONG) else {
            return;
        };
        place.make("short", MIB - 1);
        assert!(!place.try_to_keep("short", MIB - 1));
        place.make("open", MIB);
        let reader = place.directory.open_file("open").unwrap();
        assert!(!place.try_to_keep("open", MIB));
        drop(reader);
        place.keep("open", MIB);
        place.make("linked", MIB);
        let path = |name| place.folder.path().join(name);
        fs::hard_link(path("linked"), path("other")).unwrap();
        assert!(!place.try_to_keep("linked", MIB));
        place.make("cut", MIB);
        assert!(!place.try_to_keep("cut", MIB + 1));
        assert!(path("cut").exists());
    }

    #[test]
    fn oldest_goes_first_and_all_go_after_a_while() {
        let Some(place) = Place::new(LONG) else {
            return;
        };
        for length in [2, 1] {
            place.make("a", length * MIB);
            place.keep("a", length * MIB);
        }
        assert!(place.recycled.drop_oldest());
        assert_eq!(place.recycled.bytes(), MIB);
        assert!(place.recycled.drop_oldest());
        assert!(!place.recycled.drop_oldest());
        let Some(place) = Place::new(Duration::from_millis(1)) else {
            return;
        };
        for _ in 0..2 {
            place.make("a", MIB);
            place.keep("a", MIB);
            let begun = Instant::now();
            let inside = || fs::read_dir(place.folder.path().join("recycled")).unwrap();
            while place.recycled.bytes() > 0 || inside().count() > 0 {
                assert!(begun.elapsed() < DEADLINE, "it waits for ever");
                std::thread::yield_now();
            }
        }
    }
}
