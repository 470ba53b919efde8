//! What a file that is open for serial append is made of.
//!
//! A flat file has a spill file, from which the kernel copies what a strand wrote before its turn.
//! A structured file takes all bytes where they are written, once; what moves on is its log. It
//! does not know whose turn it is. Read next: `flat`; for the structured form, `ciel-cio`.

use std::fs::File;
use std::io;
use std::path::Path;

use ciel_cio::{Data, Item, ROOT, Writer};

use crate::error::FileError;
use crate::extent::{Extent, SPILLED_BYTES_MAX};
use crate::flat::Flat;
use crate::sync::{AtomicU64, Ordering};

/// The form of a file.
#[derive(Debug)]
pub(crate) enum Form {
    Flat(Flat),
    Structured(Structured),
}

impl Form {
    pub(crate) fn new(path: &Path, file: File, is_structured: bool) -> io::Result<Form> {
        match is_structured {
            true => Structured::new(path, file).map(Form::Structured),
            false => Flat::new(path, file).map(Form::Flat),
        }
    }

    /// Appends what is final.
    pub(crate) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Form::Flat(flat) => flat.append(bytes),
            Form::Structured(structured) => structured.append(bytes),
        }
    }

    /// Appends what was kept.
    pub(crate) fn append_spilled(&self, extent: Extent) -> io::Result<()> {
        match self {
            Form::Flat(flat) => flat.append_spilled(extent),
            Form::Structured(structured) => structured.append_spilled(extent),
        }
    }

    /// Keeps at most [`SPILLED_BYTES_MAX`] bytes until their turn has come.
    pub(crate) fn spill(&self, path: &Path, bytes: &[u8]) -> io::Result<Extent> {
        match self {
            Form::Flat(flat) => flat.spill(path, bytes),
            Form::Structured(structured) => structured.spill(bytes),
        }
    }

    /// Bytes of the file, as its readers see it, that are final.
    pub(crate) fn valid(&self) -> u64 {
        match self {
            Form::Flat(flat) => flat.valid(),
            Form::Structured(structured) => structured.valid.load(Ordering::Relaxed),
        }
    }

    /// The last bytes are in the file.
    pub(crate) fn close(&self, path: &Path) -> io::Result<()> {
        match self {
            Form::Flat(flat) => flat.close(path),
            Form::Structured(structured) => structured.close(path),
        }
    }
}

/// A `.cio` file. Only the root's segment is used: strands are in serial order when they commit.
#[derive(Debug)]
pub(crate) struct Structured {
    writer: Writer,
    valid: AtomicU64,
}

impl Structured {
    fn new(path: &Path, file: File) -> io::Result<Structured> {
        if file.metadata()?.len() > 0 {
            let path = path.to_path_buf();
            return Err(FileError::NotEmpty { path }.into());
        }
        Ok(Structured {
            writer: Writer::create(file)?,
            valid: AtomicU64::new(0),
        })
    }

    fn write(&self, bytes: &[u8]) -> io::Result<Extent> {
        let data = self.writer.write(bytes)?;
        Ok(Extent {
            checksum: Some(data.checksum),
            ..Extent::flat(data.offset, u64::from(data.length))
        })
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut pieces = bytes.chunks(SPILLED_BYTES_MAX);
        pieces.try_for_each(|piece| self.append_spilled(self.write(piece)?))
    }

    fn append_spilled(&self, extent: Extent) -> io::Result<()> {
        let data = Data {
            offset: extent.offset,
            length: u32::try_from(extent.length).expect("no extent has more"),
            checksum: extent.checksum.expect("it lies in a structured file"),
        };
        self.writer.commit(ROOT, &[Item::Data(data)], false)?;
        self.valid.fetch_add(extent.length, Ordering::Relaxed);
        Ok(())
    }

    fn spill(&self, bytes: &[u8]) -> io::Result<Extent> {
        self.write(bytes)
    }

    fn close(&self, path: &Path) -> io::Result<()> {
        let found = self.writer.file().metadata()?.len();
        let most = self.writer.file_bytes();
        self.writer.commit(ROOT, &[], true)?;
        self.writer.close()?;
        self.writer.file().unlock()?;
        // A block of the log is reserved as a whole, so that the file may be shorter.
        match found > most {
            true => Err(FileError::Changed {
                path: path.to_path_buf(),
                found,
                expected: most,
            }
            .into()),
            false => Ok(()),
        }
    }
}
