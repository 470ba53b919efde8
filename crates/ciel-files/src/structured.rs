//! Reading: a structured file shows its flat view, any other its bytes.
//!
//! Only a regular file that begins like a `.cio` file is one. It is read only. It does not know
//! whose pointer is used. Read next: `file`; for the form of such files `ciel-cio`.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ciel_cio::Reader;

use crate::error::FileError;

/// Whether a regular file can be read and is structured.
pub(crate) fn is_structured(path: &Path) -> io::Result<bool> {
    match File::open(path) {
        Ok(file) => ciel_cio::is_structured(&file),
        // What may only be written was meant to be.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(error),
    }
}

/// What is read, and written if it is flat.
#[derive(Debug)]
pub(crate) enum Contents {
    Flat(File),
    Structured { path: PathBuf, reader: Reader<File> },
}

impl Contents {
    /// The contents of a file; its bytes as they are if it `is_raw`.
    pub(crate) fn new(path: &Path, file: File, is_raw: bool) -> io::Result<Contents> {
        if is_raw || !file.metadata()?.is_file() || !ciel_cio::is_structured(&file)? {
            return Ok(Contents::Flat(file));
        }
        let path = path.to_path_buf();
        match Reader::open(file) {
            Ok(reader) => Ok(Contents::Structured { path, reader }),
            Err(error) => {
                let cause = error.to_string();
                Err(FileError::Structured { path, cause }.into())
            }
        }
    }

    fn read_only<T>(path: &Path) -> io::Result<T> {
        let path = path.to_path_buf();
        Err(FileError::ReadOnly { path }.into())
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Contents::Flat(file) => file.read(buffer),
            Contents::Structured { reader, .. } => reader.read(buffer),
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Contents::Flat(file) => file.write_all(bytes),
            Contents::Structured { path, .. } => Contents::read_only(path),
        }
    }

    pub(crate) fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        match self {
            Contents::Flat(file) => file.seek(place),
            Contents::Structured { reader, .. } => reader.seek(place),
        }
    }

    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            Contents::Flat(file) => file.read_at(buffer, at),
            Contents::Structured { reader, .. } => reader.read_at(buffer, at),
        }
    }

    pub(crate) fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        match self {
            Contents::Flat(file) => file.write_all_at(bytes, at),
            Contents::Structured { path, .. } => Contents::read_only(path),
        }
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> io::Result<u64> {
        match self {
            Contents::Flat(file) => Ok(file.metadata()?.len()),
            Contents::Structured { reader, .. } => Ok(reader.extents().bytes()),
        }
    }
}
