//! A directory held open: every act inside it takes one short name, so that a deep path costs
//! nothing and no link is followed on the way.
//!
//! The one place where the kernel's answers become typed errors. It does not know what the files
//! are for. Read next: `folder`.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::content::Stamp;
use crate::error::{StoreError, failure};
use crate::owner::Owner;

const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::RDONLY)
    .union(OFlags::CLOEXEC);
const FOR_ALL_TO_READ: Mode = Mode::from_raw_mode(0o444);
const FOR_THE_OWNER: Mode = Mode::from_raw_mode(0o600);
const FOLDER_FOR_THE_OWNER: Mode = Mode::from_raw_mode(0o700);

/// An open directory and its absolute path.
#[derive(Debug)]
pub(crate) struct Directory {
    handle: OwnedFd,
    path: PathBuf,
}

/// What a name in a directory refers to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) kind: FileType,
    pub(crate) length: u64,
    pub(crate) has_other_names: bool,
    pub(crate) owner: Owner,
    pub(crate) stamp: Stamp,
}

impl Directory {
    /// Opens the directory at a path of the user's; links on the way are the user's wish.
    pub(crate) fn open(path: &Path) -> Result<Directory, StoreError> {
        let handle = fs::open(path, DIRECTORY, Mode::empty())
            .map_err(|errno| failure("open", path.to_path_buf(), errno))?;
        Ok(Directory {
            handle,
            path: path.to_path_buf(),
        })
    }

    /// Who owns it.
    pub(crate) fn owner(&self) -> Result<Owner, StoreError> {
        Owner::of(&self.handle, &self.path)
    }

    /// Takes all permissions of others from it.
    pub(crate) fn close_to_others(&self) -> Result<(), StoreError> {
        self.owner()?.close_to_others(&self.handle, &self.path)
    }

    /// Opens a directory inside this one; none if there is none. A link is not followed, and one
    /// that others own or could write to is refused.
    pub(crate) fn inner(&self, name: &str) -> Result<Option<Directory>, StoreError> {
        match fs::openat(
            &self.handle,
            name,
            DIRECTORY | OFlags::NOFOLLOW,
            Mode::empty(),
        ) {
            Ok(handle) => {
                let path = self.path.join(name);
                Owner::of(&handle, &path)?.expect_private(&path)?;
                Ok(Some(Directory { handle, path }))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(StoreError::ForeignFolder {
                path: self.path.clone(),
            }),
            Err(errno) => Err(self.failure("open", name, errno)),
        }
    }

    /// Opens a directory inside this one, made if need be.
    pub(crate) fn inner_or_new(&self, name: &str) -> Result<Directory, StoreError> {
        if let Some(directory) = self.inner(name)? {
            return Ok(directory);
        }
        self.make_inner(name)?;
        let made = self.inner(name)?;
        made.ok_or_else(|| self.failure("open", name, Errno::NOENT))
    }

    /// Creates a directory; returns whether it was missing.
    pub(crate) fn make_inner(&self, name: &str) -> Result<bool, StoreError> {
        match fs::mkdirat(&self.handle, name, FOLDER_FOR_THE_OWNER) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(self.failure("make", name, errno)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes a file that did not exist, for reading and writing.
    pub(crate) fn make_file(&self, name: &str) -> Result<File, StoreError> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let handle = fs::openat(&self.handle, name, flags, FOR_THE_OWNER)
            .map_err(|errno| self.failure("make", name, errno))?;
        Ok(File::from(handle))
    }

    /// Opens a regular file for reading. A link, folder, pipe or device is refused, and so is what
    /// others own or could write to.
    pub(crate) fn open_file(&self, name: &str) -> Result<File, StoreError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let not_a_file = || StoreError::NotAFile {
            path: self.path_of(name),
        };
        let handle = match fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Err(not_a_file()),
            Err(errno) => return Err(self.failure("open", name, errno)),
        };
        let file = File::from(handle);
        let metadata = file
            .metadata()
            .map_err(|source| self.system("read", name, source))?;
        if !metadata.is_file() {
            return Err(not_a_file());
        }
        let path = self.path_of(name);
        Owner::of(&file, &path)?.expect_private(&path)?;
        Ok(file)
    }

    /// Opens a regular file for reading and writing; none if there is no such file. One that others
    /// own or could write to is refused.
    pub(crate) fn open_to_write(&self, name: &str) -> Result<Option<File>, StoreError> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => {
                let path = self.path_of(name);
                Owner::of(&handle, &path)?.expect_private(&path)?;
                Ok(Some(File::from(handle)))
            }
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ISDIR) => Ok(None),
            Err(errno) => Err(self.failure("open", name, errno)),
        }
    }

    /// The bytes of a regular file, at most so many; none if there is no such file.
    pub(crate) fn read_file(
        &self,
        name: &str,
        length_max: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let file = match self.open_file(name) {
            Ok(file) => file,
            Err(StoreError::NotAFile { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, length_max), &mut bytes)
            .map_err(|source| self.system("read", name, source))?;
        Ok(Some(bytes))
    }

    /// What a name refers to, links not followed; none if it does not exist.
    pub(crate) fn entry(&self, name: &str) -> Result<Option<Entry>, StoreError> {
        match fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Entry {
                kind: FileType::from_raw_mode(stat.st_mode),
                length: stat.st_size as u64,
                has_other_names: stat.st_nlink > 1,
                owner: Owner::told(&stat),
                stamp: Stamp::of(&stat),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.failure("look at", name, errno)),
        }
    }

    /// The stamp of a file that is open, and is called so.
    pub(crate) fn stamp(&self, name: &str, file: &File) -> Result<Stamp, StoreError> {
        let stat = fs::fstat(file).map_err(|errno| self.failure("look at", name, errno))?;
        Ok(Stamp::of(&stat))
    }

    /// All names, sorted; none if the directory was removed since it was opened.
    pub(crate) fn names(&self) -> Result<Vec<String>, StoreError> {
        let listing = fs::Dir::read_from(&self.handle)
            .and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let listing = match listing {
            Err(Errno::NOENT) => Vec::new(),
            listing => listing.map_err(|errno| failure("list", self.path.clone(), errno))?,
        };
        let name_of = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let is_inside = |name: &String| name != "." && name != "..";
        let mut names: Vec<String> = listing.iter().map(name_of).filter(is_inside).collect();
        names.sort();
        Ok(names)
    }

    /// Moves a file or directory; returns whether the new name was free. If not, nothing is moved.
    pub(crate) fn move_to(
        &self,
        name: &str,
        other: &Directory,
        new_name: &str,
    ) -> Result<bool, StoreError> {
        let flags = RenameFlags::NOREPLACE;
        match fs::renameat_with(&self.handle, name, &other.handle, new_name, flags) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(Errno::INVAL | Errno::NOSYS) => self.link_to(name, other, new_name),
            Err(errno) => Err(other.failure("make", new_name, errno)),
        }
    }

    /// The same for a file on a file system that cannot rename without replacing.
    fn link_to(&self, name: &str, other: &Directory, new: &str) -> Result<bool, StoreError> {
        match fs::linkat(&self.handle, name, &other.handle, new, AtFlags::empty()) {
            Ok(()) => self.remove_file(name).map(|()| true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(other.failure("make", new, errno)),
        }
    }

    /// Makes a symbolic link that takes the place of a file in another directory; the file has the
    /// name of the link then.
    pub(crate) fn exchange_for_link(
        &self,
        link: &str,
        target: &Path,
        (other, name): (&Directory, &str),
    ) -> Result<(), StoreError> {
        fs::symlinkat(target, &self.handle, link)
            .map_err(|errno| self.failure("make", link, errno))?;
        let flags = RenameFlags::EXCHANGE;
        fs::renameat_with(&self.handle, link, &other.handle, name, flags).map_err(|errno| {
            // It was refused already; a link that cannot be removed goes with the folder.
            let _ = self.remove_file(link);
            other.failure("replace", name, errno)
        })
    }

    /// Moves a file over whatever file has the new name.
    pub(crate) fn replace(&self, name: &str, new_name: &str) -> Result<(), StoreError> {
        fs::renameat(&self.handle, name, &self.handle, new_name)
            .map_err(|errno| self.failure("make", new_name, errno))
    }

    /// Removes a file; a missing one is no error.
    pub(crate) fn remove_file(&self, name: &str) -> Result<(), StoreError> {
        match fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.failure("remove", name, errno)),
        }
    }

    /// Removes a directory if it is empty; returns whether it did.
    pub(crate) fn remove_if_empty(&self, name: &str) -> Result<bool, StoreError> {
        match fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(errno) => Err(self.failure("remove", name, errno)),
        }
    }

    /// Removes whatever a name refers to, with everything beneath it; links are removed, not
    /// followed.
    pub(crate) fn remove_all(&self, name: &str) -> Result<(), StoreError> {
        match fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::ISDIR | Errno::PERM) => match std::fs::remove_dir_all(self.path_of(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(self.system("remove", name, error))
                }
                _ => Ok(()),
            },
            Err(errno) => Err(self.failure("remove", name, errno)),
        }
    }

    /// Locks the directory itself until the answer is dropped; waits for others.
    pub(crate) fn lock(&self, operation: FlockOperation) -> Result<OwnedFd, StoreError> {
        let handle = fs::openat(&self.handle, ".", DIRECTORY, Mode::empty())
            .map_err(|errno| self.failure("open", ".", errno))?;
        fs::flock(&handle, operation).map_err(|errno| self.failure("lock", ".", errno))?;
        Ok(handle)
    }

    /// Makes a file of these bytes, whole or not at all.
    pub(crate) fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let mut file = self.make_file(name)?;
        let written = io::Write::write_all(&mut file, bytes)
            .and_then(|()| fs::fchmod(&file, FOR_ALL_TO_READ).map_err(io::Error::from));
        written.map_err(|source| {
            // The write failed already; a file that cannot be removed either goes with the run.
            let _ = self.remove_file(name);
            self.system("write", name, source)
        })
    }

    /// Makes a file of these bytes, whole or not at all even if the process dies meanwhile, in the
    /// place of one that has the name.
    pub(crate) fn write_whole(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let draft = format!("{name}-draft");
        self.remove_file(&draft)?;
        self.write_file(&draft, bytes)?;
        self.replace(&draft, name)
    }

    /// Makes sure that the bytes of a file, and that it is called so, survive a power failure.
    pub(crate) fn sync(&self, name: &str) -> Result<(), StoreError> {
        self.open_file(name)?
            .sync_data()
            .map_err(|source| self.system("sync", name, source))?;
        self.sync_names()
    }

    /// Makes sure that the names in the directory survive a power failure.
    pub(crate) fn sync_names(&self) -> Result<(), StoreError> {
        let handle = fs::openat(&self.handle, ".", DIRECTORY, Mode::empty())
            .map_err(|errno| self.failure("open", ".", errno))?;
        fs::fsync(&handle).map_err(|errno| self.failure("sync", ".", errno))
    }

    /// Takes the right to write away.
    pub(crate) fn make_read_only(&self, name: &str) -> Result<(), StoreError> {
        fs::chmodat(&self.handle, name, FOR_ALL_TO_READ, AtFlags::empty())
            .map_err(|errno| self.failure("change", name, errno))
    }

    pub(crate) fn system(&self, act: &'static str, name: &str, source: io::Error) -> StoreError {
        let path = self.path_of(name);
        match source.raw_os_error() {
            Some(code) => failure(act, path, Errno::from_raw_os_error(code)),
            None => StoreError::System { act, path, source },
        }
    }

    fn failure(&self, act: &'static str, name: &str, errno: Errno) -> StoreError {
        failure(act, self.path_of(name), errno)
    }
}

/// Checks that a name is one harmless component of a path.
pub(crate) fn check_name(name: &str, length_max: usize) -> Result<(), StoreError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let well_begun = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    match well_begun && name.bytes().all(is_plain) && name.len() <= length_max {
        true => Ok(()),
        false => Err(StoreError::InvalidName {
            name: name.to_owned(),
            length_max,
        }),
    }
}
