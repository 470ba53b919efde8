//! Objects: files named by the digests of their bytes.
//!
//! They are links to the files of the run that made them, so keeping one copies nothing, and who
//! takes one has it for good, whatever is evicted meanwhile. A file is compared with its name
//! before it is used. It does not know entries.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ciel_model::{Digest, Hasher};

use crate::error::KeptError;
use crate::limits::READ_BYTES;

/// The folder of objects.
#[derive(Debug)]
pub(crate) struct Objects {
    folder: PathBuf,
}

impl Objects {
    pub(crate) fn open(folder: PathBuf) -> Result<Objects, KeptError> {
        fs::create_dir_all(&folder).map_err(|source| KeptError::file("create", &folder, source))?;
        Ok(Objects { folder })
    }

    pub(crate) fn path(&self, digest: Digest) -> PathBuf {
        let name = digest.to_string();
        self.folder.join(&name[..2]).join(&name[2..])
    }

    /// Makes an object of a file, which has these bytes; one that is there stays if it has as many.
    pub(crate) fn add(&self, digest: Digest, length: u64, file: &Path) -> Result<(), KeptError> {
        let path = self.path(digest);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() && found.len() == length => return Ok(()),
            Ok(_) => remove(&path)?,
            Err(_) => {}
        }
        link(file, &path).map_err(|source| KeptError::file("keep", path, source))
    }

    /// Links an object to a path where nothing is. False if the object is missing or damaged.
    pub(crate) fn take(
        &self,
        digest: Digest,
        length: u64,
        target: &Path,
    ) -> Result<bool, KeptError> {
        let path = self.path(digest);
        match link(&path, target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(KeptError::file("take", path, source)),
        }
        // The link is looked at, not the object: that may be another file by now.
        if is_whole(target, digest, length) {
            return Ok(true);
        }
        remove(target)?;
        Ok(false)
    }

    pub(crate) fn is_whole(&self, digest: Digest, length: u64) -> bool {
        is_whole(&self.path(digest), digest, length)
    }

    pub(crate) fn remove(&self, digest: Digest) -> Result<(), KeptError> {
        remove(&self.path(digest))
    }
}

fn remove(path: &Path) -> Result<(), KeptError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(KeptError::file("remove", path, error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A second name for a file; a copy where there can be none.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::symlink_metadata(from)?;
            to.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::hard_link(from, to)
        }
        Err(_) => copy(from, to),
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let part = to.with_extension(format!("part-{}", std::process::id()));
    fs::copy(from, &part)?;
    fs::rename(&part, to)
}

fn is_whole(path: &Path, digest: Digest, length: u64) -> bool {
    let found = fs::symlink_metadata(path);
    found.is_ok_and(|found| found.is_file() && found.len() == length)
        && digest_of(path).is_ok_and(|found| found == digest)
}

/// The digest of the bytes of a file.
///
/// # Errors
/// Those of reading.
pub(crate) fn digest_of(path: &Path) -> io::Result<Digest> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut buffer = vec![0; READ_BYTES.min(usize::try_from(length).unwrap_or(READ_BYTES).max(1))];
    let mut hasher = Hasher::default();
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&buffer[..count]),
        }
    }
}
