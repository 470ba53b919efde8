//! Short files that wait for their next task.
//!
//! Most commands print little, so their files come and go. Some file systems look long for the
//! inode of a new file when many were freed in the last minute: ext4 passes over each of these. A
//! file is used again only if nobody can write to it any more, not even a process that its command
//! has left behind. It does not know what the files are for. Read first: `scratch`.

use std::sync::Mutex;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::directory::Directory;
use crate::lease::is_alone;

/// Files that wait, at most.
const SPARES_MAX: usize = 64;

/// Bytes of a file that is kept, at most: more are freed better when it goes.
const BYTES_MAX: i64 = 16 << 10;

/// A mode that a program gives a file for its own user; whoever may read it does not matter.
const OWN: u32 = 0o600;
const OWN_OR_RUN: u32 = 0o7711;

/// The files of a folder that wait, by the names that they had.
#[derive(Debug, Default)]
pub(crate) struct Spares(Mutex<Vec<String>>);

impl Spares {
    /// Keeps a file instead of removing it. False if it is none that could be used again: then
    /// nothing was done.
    pub(crate) fn keep(&self, directory: &Directory, name: &str) -> bool {
        let mut names = self.0.lock().expect("nobody panics with the names");
        let found = || rustix::fs::statat(directory.handle(), name, AtFlags::SYMLINK_NOFOLLOW);
        let is_kept = names.len() < SPARES_MAX && found().is_ok_and(|found| is_usual(&found));
        if is_kept {
            names.push(name.to_owned());
        }
        is_kept
    }

    /// Removes a file that waits under that name, if there is one.
    pub(crate) fn forget(&self, directory: &Directory, name: &str) {
        let mut names = self.0.lock().expect("nobody panics with the names");
        if let Some(at) = names.iter().position(|spare| spare == name) {
            names.swap_remove(at);
            // What cannot be removed now goes with the run's folder.
            let _ = directory.remove_all(name);
        }
    }

    /// Puts a file that waits where nothing is; without one nothing is put there.
    pub(crate) fn put(&self, directory: &Directory, name: &str) {
        let mut names = self.0.lock().expect("nobody panics with the names");
        let Some(spare) = names.pop() else {
            return;
        };
        match moved(directory, &spare, name) {
            // Whoever was about to open the file by its former name has done so by now.
            Ok(()) if empty(directory, name).unwrap_or(false) => {}
            Err(Errno::EXIST) => names.push(spare),
            // What cannot be removed now goes with the run's folder.
            Ok(()) => drop(directory.remove_all(name)),
            Err(_) => drop(directory.remove_all(&spare)),
        }
    }
}

fn moved(directory: &Directory, from: &str, to: &str) -> rustix::io::Result<()> {
    let handle = directory.handle();
    rustix::fs::renameat_with(handle, from, handle, to, RenameFlags::NOREPLACE)
}

/// Empties a file that has one name, and that nobody else has open. False if it is no such file.
fn empty(directory: &Directory, name: &str) -> rustix::io::Result<bool> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory.handle(), name, flags, Mode::empty())?;
    let found = rustix::fs::fstat(&file)?;
    if !is_usual(&found) || !is_alone(&file) {
        return Ok(false);
    }
    if found.st_size > 0 {
        rustix::fs::ftruncate(&file, 0)?;
    }
    Ok(true)
}

fn is_usual(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_mode & OWN_OR_RUN == OWN
        && found.st_nlink == 1
        && found.st_size <= BYTES_MAX
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::io::{Seek, SeekFrom};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    struct Place {
        folder: tempfile::TempDir,
        directory: Directory,
        spares: Spares,
    }

    impl Place {
        fn new() -> Place {
            let folder = tempfile::tempdir().unwrap();
            let directory = Directory::open(folder.path()).unwrap();
            Place {
                folder,
                directory,
                spares: Spares::default(),
            }
        }

        /// Writes a file; its inode.
        fn write(&self, name: &str, text: &str) -> u64 {
            let path = self.folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
            self.inode(name).unwrap()
        }

        fn inode(&self, name: &str) -> Option<u64> {
            let found = fs::metadata(self.folder.path().join(name));
            found.ok().map(|found| found.ino())
        }

        fn keeps(&self, name: &str) -> bool {
            self.spares.keep(&self.directory, name)
        }

        fn put(&self, name: &str) {
            self.spares.put(&self.directory, name);
        }
    }

    /// Whether this file system gives leases; without them nothing is kept.
    fn has_leases() -> bool {
        let place = Place::new();
        place.write("probe", "");
        let has = place.keeps("probe");
        place.put("next");
        let has = has && place.inode("next").is_some();
        if !has {
            eprintln!("skipped: the file system of temporary files gives no leases");
        }
        has
    }

    #[test]
    fn file_is_empty_when_it_is_used_again() {
        if !has_leases() {
            return;
        }
        let place = Place::new();
        let inode = place.write("first", "text");
        assert!(place.keeps("first"));
        place.put("second");
        assert_eq!(place.inode("first"), None);
        assert_eq!(place.inode("second"), Some(inode));
        assert_eq!(fs::read(place.folder.path().join("second")).unwrap(), b"");
        place.put("third");
        assert_eq!(place.inode("third"), None);
    }

    #[test]
    fn file_that_somebody_has_open_is_not_used_again() {
        let place = Place::new();
        let path = place.folder.path().join("written");
        for options in [File::options().read(true), File::options().append(true)] {
            place.write("written", "text");
            let mut open = options.open(&path).unwrap();
            assert!(place.keeps("written"));
            place.put("next");
            assert_eq!((place.inode("written"), place.inode("next")), (None, None));
            let length = open.seek(SeekFrom::End(0));
            assert_eq!(
                length.unwrap(),
                4,
                "a file that somebody has open was emptied"
            );
        }
    }

    #[test]
    fn file_that_is_made_under_the_name_of_a_waiting_one_stays() {
        let place = Place::new();
        place.write("again", "text");
        assert!(place.keeps("again"));
        place.spares.forget(&place.directory, "again");
        let inode = place.write("again", "more");
        place.put("next");
        assert_eq!(
            (place.inode("again"), place.inode("next")),
            (Some(inode), None)
        );
    }

    /// A process that opened the file while it was being kept had to wait for that, and wrote into
    /// the file of the next task then.
    #[test]
    fn file_that_somebody_has_opened_or_written_while_it_waited_is_not_seen_by_the_next_task() {
        if !has_leases() {
            return;
        }
        let place = Place::new();
        let path = |name: &str| place.folder.path().join(name);
        for name in ["first", "second"] {
            place.write(name, "text");
            assert!(place.keeps(name));
        }
        let late = File::options().append(true).open(path("second")).unwrap();
        fs::write(path("first"), "late").unwrap();
        place.put("next");
        assert_eq!(place.inode("next"), None);
        assert_eq!(place.inode("second"), None);
        drop(late);
        place.put("next");
        assert_eq!(fs::read(path("next")).unwrap(), b"");
    }

    #[test]
    fn file_that_is_mapped_is_not_used_again() {
        let place = Place::new();
        place.write("mapped", "text");
        let path = place.folder.path().join("mapped");
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let map = memmap2::MmapOptions::new().map_raw(&file).unwrap();
        drop(file);
        assert!(place.keeps("mapped"));
        place.put("next");
        assert_eq!(place.inode("next"), None);
        drop(map);
    }

    #[test]
    fn what_is_no_usual_file_is_not_used_again() {
        let place = Place::new();
        let path = |name: &str| place.folder.path().join(name);
        place.write("linked", "text");
        fs::hard_link(path("linked"), path("link")).unwrap();
        symlink(path("linked"), path("symbolic")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        place.write("program", "text");
        fs::set_permissions(path("program"), Permissions::from_mode(0o755)).unwrap();
        place.write("large", &"x".repeat(BYTES_MAX as usize + 1));
        let pipe = Mode::RUSR | Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), pipe).unwrap();
        let names = [
            "linked", "link", "symbolic", "folder", "program", "large", "pipe", "none",
        ];
        for name in names {
            assert!(!place.keeps(name), "{name}");
            assert_eq!(path(name).symlink_metadata().is_ok(), name != "none");
        }
    }

    #[test]
    fn nothing_is_put_in_the_place_of_something() {
        if !has_leases() {
            return;
        }
        let place = Place::new();
        place.write("first", "");
        assert!(place.keeps("first"));
        let there = place.write("there", "text");
        place.put("there");
        assert_eq!(place.inode("there"), Some(there));
        place.put("free");
        assert!(place.inode("free").is_some());
    }

    #[test]
    fn only_so_many_files_wait() {
        if !has_leases() {
            return;
        }
        let place = Place::new();
        for number in 0..=SPARES_MAX {
            let name = number.to_string();
            place.write(&name, "");
            assert_eq!(place.keeps(&name), number < SPARES_MAX);
        }
    }
}
