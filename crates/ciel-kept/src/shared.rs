//! A folder of kept results that several users read; each writes into a folder of their own.
//!
//! | file | holds |
//! |---|---|
//! | `USER/entries/ab/cd…` | the digest of an entry, then the entry, under its key |
//! | `USER/objects/ab/cd…` | an object of entries, named by its digest |
//!
//! `USER` is the number of the user, and who owns a file is what the system says. There is no
//! index, so that file systems of a network will do and who may only read needs no lock. Of another
//! user who is not trusted only bytes, text and JSON are taken: whoever reads a pickle runs what it
//! says.
//! Files are copied and compared with their digests, never linked, since their owner could change
//! them later. It does not know how long results are kept: each user removes their own. Read next:
//! `entry`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ciel_model::Digest;
use rustix::fs::OFlags;

use crate::entry::{Entry, KeptContent, Parts};
use crate::error::KeptError;
use crate::limits::{SHARED_ENTRY_BYTES_MAX, SHARED_USERS_MAX};
use crate::objects::digest_of;

/// The bits of the mode of shared files and folders, further limited by the user's mask.
const FILE_MODE: u32 = 0o444;

/// Opens no link, and waits for no pipe.
const PLAIN_FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);

/// Bytes of the digest before an entry.
const DIGEST_BYTES: usize = 16;

/// Results that several users share in a folder.
#[derive(Debug)]
pub struct SharedResults {
    folder: PathBuf,
    /// The user who runs this process.
    user: u32,
    /// Users whose results are taken whatever their form.
    trusted: Vec<u32>,
    /// Folders of users, this one's first.
    users: Vec<PathBuf>,
    /// The own folder cannot be written, or that was not tried.
    writes: bool,
}

/// What a folder of several users has for a task.
#[derive(Clone, Debug, PartialEq)]
pub enum SharedFound {
    /// Its result.
    Entry {
        /// The entry.
        entry: Box<Entry>,
        /// The folder of the user who has it.
        user: PathBuf,
    },
    /// Only a result of this user, who is not trusted, and in a form that may run code.
    Untrusted(u32),
    /// Nothing that is whole.
    Nothing,
}

impl SharedResults {
    /// Opens a folder, and makes a folder in it for this user if it can be written.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn open(folder: &Path, trusted: Vec<u32>) -> Result<SharedResults, KeptError> {
        let user = rustix::process::geteuid().as_raw();
        let own = folder.join(user.to_string());
        let writes = fs::create_dir_all(own.join("entries")).is_ok() && is_owned(&own, user);
        Ok(SharedResults {
            writes,
            ..SharedResults::look_at(folder, trusted)?
        })
    }

    /// Opens a folder without making anything in it.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn look_at(folder: &Path, trusted: Vec<u32>) -> Result<SharedResults, KeptError> {
        let user = rustix::process::geteuid().as_raw();
        let own = folder.join(user.to_string());
        let listed = fs::read_dir(folder);
        let listed = listed.map_err(|source| KeptError::file("read", folder, source))?;
        let is_user = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            *path != own && name.is_some_and(|name| name.parse::<u32>().is_ok())
        };
        let mut others: Vec<PathBuf> = listed
            .flatten()
            .map(|entry| entry.path())
            .filter(is_user)
            .take(SHARED_USERS_MAX)
            .collect();
        others.sort();
        others.insert(0, own);
        Ok(SharedResults {
            folder: folder.to_path_buf(),
            user,
            trusted,
            users: others,
            writes: false,
        })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether this user's results can be kept here.
    pub fn is_writable(&self) -> bool {
        self.writes
    }

    /// The folder of this user.
    pub(crate) fn own_folder(&self) -> &Path {
        &self.users[0]
    }

    /// What there is under the key of these parts; an entry that is damaged counts as none.
    pub fn find(&self, parts: &Parts) -> SharedFound {
        self.under(parts.key())
    }

    /// The same by the key.
    pub fn under(&self, key: Digest) -> SharedFound {
        let mut found = SharedFound::Nothing;
        for user in &self.users {
            let Some((entry, owner)) = read_entry(&place(user, "entries", key)) else {
                continue;
            };
            if entry.parts.key() != key {
                continue;
            }
            let is_trusted = owner == self.user || self.trusted.contains(&owner);
            if is_trusted || entry.is_harmless() {
                let (entry, user) = (Box::new(entry), user.clone());
                return SharedFound::Entry { entry, user };
            }
            found = SharedFound::Untrusted(owner);
        }
        found
    }

    /// Copies an object of a user to a path where nothing is; false if it is missing or damaged.
    ///
    /// # Errors
    /// The copy cannot be written.
    pub fn take(
        &self,
        user: &Path,
        (digest, length): (Digest, u64),
        target: &Path,
    ) -> Result<bool, KeptError> {
        let Some((object, found)) = open(&place(user, "objects", digest)) else {
            return Ok(false);
        };
        if found.len() != length {
            return Ok(false);
        }
        let failed = |source| KeptError::file("take", target, source);
        let mut copy = File::create_new(target).map_err(failed)?;
        // One byte more than there ought to be would show in the digest.
        io::copy(&mut object.take(length + 1), &mut copy).map_err(failed)?;
        // The copy is looked at: the object may be another one by now.
        if digest_of(target).is_ok_and(|found| found == digest) {
            let mode = fs::Permissions::from_mode(found.mode() & 0o777);
            copy.set_permissions(mode).map_err(failed)?;
            return Ok(true);
        }
        fs::remove_file(target).map_err(failed)?;
        if user == self.own_folder() {
            // The next one that has it keeps it again.
            let _ = fs::remove_file(place(user, "objects", digest));
        }
        Ok(false)
    }

    /// Whether this user keeps a result for others under that key.
    pub fn has(&self, parts: &Parts) -> bool {
        place(&self.users[0], "entries", parts.key()).exists()
    }

    /// Keeps a result for others, with the files of its objects in the order of its outputs; what
    /// is there and whole stays.
    ///
    /// # Errors
    /// Those of files; then there is no such entry.
    pub fn keep(&self, entry: &Entry, files: &[PathBuf]) -> Result<(), KeptError> {
        if !self.writes {
            return Ok(());
        }
        let mut files = files.iter();
        for output in &entry.outputs {
            if let KeptContent::Object { digest, length } = output.content {
                let file = files.next().expect("each object has its file");
                let object = place(&self.users[0], "objects", digest);
                let is_there = fs::symlink_metadata(&object)
                    .is_ok_and(|found| found.is_file() && found.len() == length);
                let written = match is_there {
                    true => Ok(()),
                    false => put(&object, |copy| {
                        io::copy(&mut File::open(file)?, copy).map(drop)
                    }),
                };
                written.map_err(|source| KeptError::file("share", object, source))?;
            }
        }
        let key = entry.parts.key();
        let path = place(&self.users[0], "entries", key);
        if read_entry(&path).is_some_and(|(found, _)| found.parts.key() == key) {
            return Ok(());
        }
        let body = postcard::to_stdvec(entry).expect("an entry in memory can be encoded");
        let written = put(&path, |file| {
            file.write_all(&Digest::of(&body).0.to_be_bytes())?;
            file.write_all(&body)
        });
        written.map_err(|source| KeptError::file("share", path, source))
    }
}

fn place(user: &Path, kind: &str, digest: Digest) -> PathBuf {
    let name = digest.to_string();
    user.join(kind).join(&name[..2]).join(&name[2..])
}

/// An entry whose digest is right, and the owner of its file.
fn read_entry(path: &Path) -> Option<(Entry, u32)> {
    let (file, found) = open(path)?;
    let mut bytes = Vec::new();
    file.take(SHARED_ENTRY_BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;
    let (digest, body) = bytes.split_first_chunk::<DIGEST_BYTES>()?;
    if Digest(u128::from_be_bytes(*digest)) != Digest::of(body) {
        return None;
    }
    Some((postcard::from_bytes(body).ok()?, found.uid()))
}

/// A regular file, no link, and what the system says of it.
fn open(path: &Path) -> Option<(File, fs::Metadata)> {
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(PLAIN_FILE.bits() as i32)
        .open(path)
        .ok()?;
    let found = file.metadata().ok()?;
    found.is_file().then_some((file, found))
}

/// Puts a file to its place, whole or not at all.
fn put(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    let draft = path.with_extension(format!("part-{}", std::process::id()));
    let mut file = File::create(&draft)?;
    let written = write(&mut file)
        .and_then(|()| file.set_permissions(fs::Permissions::from_mode(FILE_MODE)))
        .and_then(|()| fs::rename(&draft, path));
    written.inspect_err(|_| {
        // What remains of it is no entry.
        let _ = fs::remove_file(&draft);
    })
}

fn is_owned(folder: &Path, user: u32) -> bool {
    let found = fs::symlink_metadata(folder);
    found.is_ok_and(|found| found.is_dir() && found.uid() == user)
}
