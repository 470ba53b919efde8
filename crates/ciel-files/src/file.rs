//! Files as their users have them.
//!
//! The calls are those of POSIX: read, write, lseek, dup, dup2, close; [`std::io::Read`], `Write`
//! and `Seek` are implemented for `&File`. It does not know strands. Read next: `strand`.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use crate::error::FileError;
use crate::line;
use crate::strand::Pointer;
use crate::structured::Contents;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::target::Target;
use crate::thread;

/// What becomes of the pointer of a file when a strand forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// There is one pointer, which all strands share. Each call is atomic.
    Global,
    /// Each strand has a pointer of its own. A child's begins where its parent's is at the fork; a
    /// parent's is moved by the parent only. (In the thesis it is undefined after a fork that both
    /// use.)
    Local,
    /// There is none: what is written is appended, in the order of the serial elision, whatever
    /// runs when.
    SerialAppend,
}

/// How a file is opened. By default it has to exist, and is read and written.
#[derive(Clone, Debug)]
pub struct Options {
    create: bool,
    truncate: bool,
    is_read_only: bool,
    permissions: u32,
    /// By what the file is if nothing is said.
    structured: Option<bool>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            create: false,
            truncate: false,
            is_read_only: false,
            permissions: 0o666,
            structured: None,
        }
    }
}

impl Options {
    /// The default.
    pub fn new() -> Options {
        Options::default()
    }

    /// Whether a file that does not exist is created.
    pub fn create(mut self, create: bool) -> Options {
        self.create = create;
        self
    }

    /// Whether the contents of a file that exists are removed.
    pub fn truncate(mut self, truncate: bool) -> Options {
        self.truncate = truncate;
        self
    }

    /// Whether the file is only read. It needs a mode that reads.
    pub fn read_only(mut self, is_read_only: bool) -> Options {
        self.is_read_only = is_read_only;
        self
    }

    /// The permissions of a file that is created, before the process's mask; `0o666` by default.
    pub fn permissions(mut self, permissions: u32) -> Options {
        self.permissions = permissions;
        self
    }

    /// Whether the file is structured: a `.cio` file, as `docs/reference/cio.md` describes it.
    ///
    /// Serial append writes a flat file unless this is true; then every byte is written once, where
    /// a flat file wants those copied that were written before their turn, and a process that is
    /// killed leaves what was in order. Such a file begins empty. In the other modes, a structured
    /// file is known by its first bytes, is read only, and shows what the flat file would hold, up
    /// to where its writer had come when it was opened; false shows its bytes as they are.
    pub fn structured(mut self, structured: bool) -> Options {
        self.structured = Some(structured);
        self
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Those of the system, and [`FileError::Busy`] if it is open for serial append already.
    /// [`FileError::NotEmpty`] or [`FileError::NotContinued`] if it is to be appended to and either
    /// its form or the form that is wanted forbids it, and [`FileError::Structured`] if it is
    /// structured and cannot be read.
    pub fn open(&self, path: impl AsRef<Path>, mode: Mode) -> io::Result<File> {
        let path = path.as_ref();
        // Somebody else may append to it, so it is not emptied before it is locked.
        let truncates_late = mode == Mode::SerialAppend && self.truncate;
        let file = OpenOptions::new()
            .read(mode != Mode::SerialAppend)
            .write(!self.is_read_only)
            .create(self.create)
            .truncate(self.truncate && !truncates_late)
            .mode(self.permissions)
            .open(path)?;
        let is_raw = self.structured == Some(false);
        let inner = match mode {
            Mode::Global => Inner::Global(Global {
                file: Mutex::new(Contents::new(path, file, is_raw)?),
            }),
            Mode::Local => Inner::Local(Local::new(path, Contents::new(path, file, is_raw)?)),
            Mode::SerialAppend => {
                let is_structured = self.structured == Some(true);
                Inner::Append(Append::new(path, file, truncates_late, is_structured)?)
            }
        };
        Ok(File(Arc::new(inner)))
    }
}

/// A file that is open in one of three modes. Its clones, made by [`dup`](File::dup), are the same
/// open file.
#[derive(Debug)]
pub struct File(Arc<Inner>);

#[derive(Debug)]
enum Inner {
    Global(Global),
    Local(Local),
    Append(Append),
}

impl File {
    /// Opens a file that exists.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(path: impl AsRef<Path>, mode: Mode) -> io::Result<File> {
        Options::new().open(path, mode)
    }

    /// Opens a new file, or one that exists and whose contents are removed.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn create(path: impl AsRef<Path>, mode: Mode) -> io::Result<File> {
        Options::new().create(true).truncate(true).open(path, mode)
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        match &*self.0 {
            Inner::Global(_) => Mode::Global,
            Inner::Local(_) => Mode::Local,
            Inner::Append(_) => Mode::SerialAppend,
        }
    }

    /// The tree of strands that may write it, for serial append.
    pub(crate) fn root(&self) -> Option<u64> {
        match &*self.0 {
            Inner::Global(_) | Inner::Local(_) => None,
            Inner::Append(append) => Some(append.target.root),
        }
    }

    /// The same open file again: pointer and mode are shared.
    pub fn dup(&self) -> File {
        File(self.0.clone())
    }

    /// Lets `other` be this open file; what it was before is closed if this was its last handle.
    pub fn dup2(&self, other: &mut File) {
        *other = self.dup();
    }

    /// Puts bytes into the buffer of this strand, if the file is open for serial append and they
    /// fit; it never waits. Otherwise nothing is done, and `write` does it or says why not.
    #[inline]
    pub fn gather(&self, bytes: &[u8]) -> bool {
        match &*self.0 {
            Inner::Global(_) | Inner::Local(_) => false,
            Inner::Append(append) => append.gather(bytes),
        }
    }

    /// Ends the writing of the file, also by other handles of it. It is whole now.
    ///
    /// A handle that is dropped does the same without a report, when all strands before have ended.
    ///
    /// # Errors
    /// [`FileError::StrandsRun`] if the file cannot be whole yet, [`FileError::Changed`] if
    /// somebody else has changed it, and those of the last write.
    pub fn close(self) -> io::Result<()> {
        match &*self.0 {
            Inner::Global(_) | Inner::Local(_) => Ok(()),
            Inner::Append(append) => append.close(),
        }
    }
}

impl Read for &File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &*self.0 {
            Inner::Global(global) => global.with(|file| file.read(buffer)),
            Inner::Local(local) => local.read(buffer),
            Inner::Append(append) => Err(append.refused()),
        }
    }
}

impl Write for &File {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &*self.0 {
            Inner::Append(append) => append.write(bytes),
            Inner::Global(global) => global.with(|file| file.write_all(bytes)),
            Inner::Local(local) => local.write(bytes),
        }
    }

    /// Formats the text first and then writes it by one call, so that a line is whole in every
    /// mode. What a formatted value itself writes to the file comes before.
    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        match text.as_str() {
            Some(text) => self.write_all(text.as_bytes()),
            None => line::with(text, |bytes| self.write_all(bytes)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &*self.0 {
            Inner::Global(_) | Inner::Local(_) => Ok(()),
            Inner::Append(append) => append.flush(),
        }
    }
}

impl Seek for &File {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        match &*self.0 {
            Inner::Global(global) => global.with(|file| file.seek(place)),
            Inner::Local(local) => local.seek(place),
            Inner::Append(append) => Err(append.refused()),
        }
    }
}

/// One pointer, the kernel's.
#[derive(Debug)]
struct Global {
    file: Mutex<Contents>,
}

impl Global {
    fn with<T>(&self, act: impl FnOnce(&mut Contents) -> T) -> T {
        act(&mut self.file.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Pointers that belong to strands.
#[derive(Debug)]
struct Local {
    file: Contents,
    path: PathBuf,
    id: u64,
}

static LOCAL_FILES: AtomicU64 = AtomicU64::new(0);

impl Local {
    fn new(path: &Path, file: Contents) -> Local {
        let id = LOCAL_FILES.fetch_add(1, Ordering::Relaxed);
        thread::forking();
        thread::change_pointers(|pointers| pointers.push(Pointer { file: id, at: 0 }));
        let path = path.to_path_buf();
        Local { file, path, id }
    }

    /// Acts on the pointer of this strand.
    fn with<T>(&self, act: impl FnOnce(&mut u64) -> io::Result<T>) -> io::Result<T> {
        let found = thread::current(|own| {
            let pointer = own.pointers.iter_mut().find(|one| one.file == self.id);
            pointer.map(|pointer| act(&mut pointer.at))
        });
        found.flatten().unwrap_or_else(|| {
            let path = self.path.clone();
            Err(FileError::NotAStrand { path }.into())
        })
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.with(|at| {
            let count = self.file.read_at(buffer, *at)?;
            *at += count as u64;
            Ok(count)
        })
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.with(|at| {
            self.file.write_all_at(bytes, *at)?;
            *at += bytes.len() as u64;
            Ok(())
        })
    }

    fn seek(&self, place: SeekFrom) -> io::Result<u64> {
        self.with(|at| {
            let (from, by) = match place {
                SeekFrom::Start(place) => (place, 0),
                SeekFrom::Current(by) => (*at, by),
                SeekFrom::End(by) => (self.file.bytes()?, by),
            };
            *at = from
                .checked_add_signed(by)
                .ok_or(io::ErrorKind::InvalidInput)?;
            Ok(*at)
        })
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        thread::change_pointers(|pointers| pointers.retain(|one| one.file != self.id));
    }
}

/// Serial append.
#[derive(Debug)]
struct Append {
    target: Arc<Target>,
}

impl Append {
    fn new(
        path: &Path,
        file: fs::File,
        truncates: bool,
        is_structured: bool,
    ) -> io::Result<Append> {
        let made = thread::current_or_root(|own| {
            let target = Target::new(path, file, own.root, truncates, is_structured)?;
            let target = Arc::new(target);
            own.opened(target.clone());
            Ok(Append { target })
        });
        made.unwrap_or_else(|| {
            let path = path.to_path_buf();
            Err(FileError::NotAStrand { path }.into())
        })
    }

    #[inline]
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match thread::current(|own| own.write(&self.target, bytes)) {
            Some(written) => written,
            None => Err(self.not_a_strand()),
        }
    }

    #[inline]
    fn gather(&self, bytes: &[u8]) -> bool {
        thread::current(|own| own.gather(&self.target, bytes)).unwrap_or(false)
    }

    fn flush(&self) -> io::Result<()> {
        let flushed = thread::current(|own| own.flush(&self.target));
        flushed
            .unwrap_or_else(|| Err(self.not_a_strand()))
            .map(drop)
    }

    fn close(&self) -> io::Result<()> {
        self.target.check()?;
        let flushed = thread::current(|own| own.flush(&self.target));
        match flushed.unwrap_or_else(|| Err(self.not_a_strand()))? {
            true => {
                thread::current(|own| own.forget(&self.target));
                self.target.close()
            }
            false => {
                let path = self.target.path.clone();
                Err(FileError::StrandsRun { path }.into())
            }
        }
    }

    fn refused(&self) -> io::Error {
        let path = self.target.path.clone();
        FileError::AppendOnly { path }.into()
    }

    #[cold]
    fn not_a_strand(&self) -> io::Error {
        let path = self.target.path.clone();
        FileError::NotAStrand { path }.into()
    }
}

impl Drop for Append {
    /// The last handle is gone. What waits for its turn is written when that has come.
    fn drop(&mut self) {
        self.target.drop_handles();
        if self.target.check().is_err() {
            return;
        }
        // A report is what `close` is for.
        let flushed = thread::current(|own| own.flush(&self.target));
        // This handle and this strand: nobody else can write to it, so it ends with them.
        if matches!(flushed, Some(Ok(true))) && Arc::strong_count(&self.target) == 2 {
            thread::current(|own| own.forget(&self.target));
        }
    }
}
