//! Folders as archives: how a folder that a task has written becomes one file, and back.
//!
//! An archive is a tar file. Equal folders give equal bytes: entries are sorted, and hold neither
//! times nor owners; of the mode only whether a file may be run. It does not know which tasks have
//! folders. Read next: `scratch`.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tar::{Archive, Builder, EntryType, Header, HeaderMode};

use crate::error::StoreError;
use crate::scratch::Scratch;

impl Scratch {
    /// Writes what a folder holds into a new file at `archive`, a path of the same attempt.
    ///
    /// # Errors
    /// `DiskFull`, `System`; also for what no archive can hold, such as a socket.
    pub fn pack(&self, folder: &Path, archive: &Path) -> Result<(), StoreError> {
        packed(folder, archive).map_err(|error| StoreError::of_system("pack", folder, error))
    }

    /// Writes what an archive holds into a new folder, a path of the same attempt. Nothing is
    /// written outside of it.
    ///
    /// # Errors
    /// `DiskFull`, `System`; for a file that is no archive, with a source that is `InvalidData`.
    pub fn unpack(&self, archive: &Path, folder: &Path) -> Result<(), StoreError> {
        unpacked(archive, folder).map_err(|error| StoreError::of_system("unpack", archive, error))
    }
}

fn packed(folder: &Path, archive: &Path) -> io::Result<()> {
    let mut builder = Builder::new(BufWriter::new(File::create(archive)?));
    builder.mode(HeaderMode::Deterministic);
    builder.follow_symlinks(false);
    let mut folders = vec![PathBuf::new()];
    while let Some(inside) = folders.pop() {
        for name in names_in(&folder.join(&inside))? {
            let (inside, path) = (inside.join(&name), folder.join(&inside).join(&name));
            let found = std::fs::symlink_metadata(&path)?;
            if found.is_dir() {
                builder.append_dir(&inside, &path)?;
                folders.push(inside);
            } else if found.is_symlink() {
                append_link(&mut builder, &inside, &path)?;
            } else if found.is_file() {
                builder.append_path_with_name(&path, &inside)?;
            } else {
                let message = format!("{} is neither a file nor a folder", inside.display());
                return Err(io::Error::new(ErrorKind::InvalidData, message));
            }
        }
    }
    builder.into_inner()?.flush()
}

/// A link by its target, without the times of the link itself.
fn append_link(builder: &mut Builder<impl Write>, inside: &Path, path: &Path) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    header.set_mode(0o777);
    builder.append_link(&mut header, inside, std::fs::read_link(path)?)
}

fn names_in(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let names = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn unpacked(archive: &Path, folder: &Path) -> io::Result<()> {
    std::fs::create_dir(folder)?;
    let file = File::open(archive)?;
    if file.metadata()?.len() == 0 {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "it is empty, and no archive",
        ));
    }
    let mut archive = Archive::new(BufReader::new(file));
    archive.set_preserve_mtime(false);
    archive.unpack(folder).map_err(of_archive)
}

/// What the bytes of an archive are to blame for, as `InvalidData`.
fn of_archive(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::Other | ErrorKind::UnexpectedEof | ErrorKind::InvalidInput => {
            io::Error::new(ErrorKind::InvalidData, error)
        }
        _ => error,
    }
}
