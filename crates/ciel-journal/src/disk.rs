//! The acts on files that a journal needs, and the real ones.
//!
//! It does not know what is in the files. Read next: [`crate::memory`], the disk of tests and
//! simulations, which can be full and can lose its power.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One folder of a disk. Names are plain names in it.
pub trait Disk: Send + Sync {
    /// The folder, for messages.
    fn path(&self) -> &Path;

    /// All names in the folder, in any order.
    ///
    /// # Errors
    /// What the system says; the same holds for all acts.
    fn names(&self) -> io::Result<Vec<String>>;

    /// All bytes of a file.
    ///
    /// # Errors
    /// As above.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// A new empty file to append to.
    ///
    /// # Errors
    /// Also if there is one of the name.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// An existing file, to append to.
    ///
    /// # Errors
    /// As above.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, in place of whatever had it.
    ///
    /// # Errors
    /// As above.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As above.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names in the folder survive a power failure.
    ///
    /// # Errors
    /// As above.
    fn sync_names(&self) -> io::Result<()>;
}

/// A file that is appended to.
pub trait DiskFile: Send + Sync {
    /// Appends some of the bytes, in one write; returns how many, at least one.
    ///
    /// # Errors
    /// If none could be written.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Makes what was appended survive a power failure.
    ///
    /// # Errors
    /// Errors of the system. Earlier writes may be lost then, whatever a later call returns.
    fn sync(&self) -> io::Result<()>;

    /// Cuts the file to this length.
    ///
    /// # Errors
    /// As the system says.
    fn cut(&self, bytes: u64) -> io::Result<()>;
}

/// A folder of the machine.
#[derive(Debug)]
pub struct RealDisk {
    folder: PathBuf,
}

impl RealDisk {
    /// An existing folder.
    pub fn new(folder: &Path) -> RealDisk {
        RealDisk {
            folder: folder.to_path_buf(),
        }
    }
}

const FOR_THE_OWNER: u32 = 0o600;

impl Disk for RealDisk {
    fn path(&self) -> &Path {
        &self.folder
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.folder)?;
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        entries.map(|entry| entry.map(name)).collect()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.folder.join(name))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(FOR_THE_OWNER);
        Ok(Arc::new(options.open(self.folder.join(name))?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.append(true);
        Ok(Arc::new(options.open(self.folder.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.folder.join(from), self.folder.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.folder.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

impl DiskFile for File {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match (&mut &*self).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }
}
