//! An ordinary file, and the spill file that keeps what is written before its turn has come.
//!
//! The spill file lies in the same folder without a name, so it goes with the process, and the
//! kernel can copy from one to the other. It does not know whose turn it is.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::PoisonError;

use crate::error::FileError;
use crate::extent::Extent;
use crate::sync::{AtomicU64, Mutex, MutexGuard, OnceLock, Ordering};

impl End {
    fn file(&mut self) -> io::Result<&mut File> {
        let closed = || io::Error::other("it is closed");
        self.file.as_mut().ok_or_else(closed)
    }
}

/// A flat file.
#[derive(Debug)]
pub(crate) struct Flat {
    end: Mutex<End>,
    spill: OnceLock<File>,
    spill_end: AtomicU64,
}

#[derive(Debug)]
struct End {
    /// None if it is closed: whoever reads a pipe learns of its end although a handle is left.
    file: Option<File>,
    /// Bytes of the file that are final.
    at: u64,
}

impl Flat {
    /// A file in which everything so far is final. A structured file is refused: what is appended
    /// to it would belong to nothing.
    pub(crate) fn new(path: &Path, mut file: File) -> io::Result<Flat> {
        let at = match io::Seek::seek(&mut file, io::SeekFrom::End(0)) {
            Err(error) if error.kind() == io::ErrorKind::NotSeekable => 0,
            found => found?,
        };
        if at > 0 && file.metadata()?.is_file() && crate::structured::is_structured(path)? {
            let path = path.to_path_buf();
            return Err(FileError::NotContinued { path }.into());
        }
        Ok(Flat {
            end: Mutex::new(End {
                file: Some(file),
                at,
            }),
            spill: OnceLock::new(),
            spill_end: AtomicU64::new(0),
        })
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn valid(&self) -> u64 {
        self.end().at
    }

    pub(crate) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut end = self.end();
        let written = write_some(end.file()?, bytes);
        end.at += written.0;
        written.1
    }

    pub(crate) fn append_spilled(&self, extent: Extent) -> io::Result<()> {
        let spill = self.spill.get().expect("an extent lies in a spill file");
        let mut end = self.end();
        let (mut from, last) = (extent.offset, extent.offset + extent.length);
        while from < last {
            let most = (last - from) as usize;
            let copied = copy_some(spill, from, end.file()?, most)?;
            from += copied;
            end.at += copied;
        }
        Ok(())
    }

    pub(crate) fn spill(&self, path: &Path, bytes: &[u8]) -> io::Result<Extent> {
        let spill = match self.spill.get() {
            Some(spill) => spill,
            None => self.open_spill(path)?,
        };
        let length = bytes.len() as u64;
        let offset = self.spill_end.fetch_add(length, Ordering::Relaxed);
        spill.write_all_at(bytes, offset)?;
        Ok(Extent::flat(offset, length))
    }

    fn open_spill(&self, path: &Path) -> io::Result<&File> {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let made = tempfile::tempfile_in(folder.unwrap_or(Path::new(".")));
        // Where the folder takes no other file, as that of a device, any folder will do.
        let made = made.or_else(|_| tempfile::tempfile())?;
        Ok(self.spill.get_or_init(|| made))
    }

    pub(crate) fn close(&self, path: &Path) -> io::Result<()> {
        let mut end = self.end();
        let expected = end.at;
        let Some(file) = end.file.take() else {
            return Ok(());
        };
        let found = file.metadata()?;
        file.unlock()?;
        match found.is_file() && found.len() != expected {
            true => Err(FileError::Changed {
                path: path.to_path_buf(),
                found: found.len(),
                expected,
            }
            .into()),
            false => Ok(()),
        }
    }
}

/// How many bytes were written, and the error that ended it.
fn write_some(file: &mut File, bytes: &[u8]) -> (u64, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written as u64, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written as u64, Err(error)),
        }
    }
    (written as u64, Ok(()))
}

/// Bytes that are copied at once where the kernel cannot copy between the two files.
const COPIED_BYTES_MAX: usize = 256 << 10;

/// Copies at least one byte and at most so many.
fn copy_some(from: &File, offset: u64, to: &mut File, most: usize) -> io::Result<u64> {
    let mut at = offset;
    match rustix::fs::copy_file_range(from, Some(&mut at), &*to, None, most) {
        Ok(copied) if copied > 0 => return Ok(copied as u64),
        Err(rustix::io::Errno::NOSPC) => return Err(io::ErrorKind::StorageFull.into()),
        // Another file system, a pipe, or a kernel that does not know the call.
        Ok(_) | Err(_) => {}
    }
    let mut bytes = vec![0; most.min(COPIED_BYTES_MAX)];
    from.read_exact_at(&mut bytes, offset)?;
    match write_some(to, &bytes) {
        (0, written) => written.map(|()| 0),
        (count, _) => Ok(count),
    }
}
