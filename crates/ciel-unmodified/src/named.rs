//! Calls that name an ordered file.
//!
//! A file opened for appending, or emptied, is a stream like standard output: the process writes to
//! a pipe, and the file is really opened when the frontier comes there. Every other call on such a
//! file, for reading or removing it or writing in its middle, waits for its turn: until all that
//! the serial program did before with the file is done. Read next: `traps`, the caller.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, CWD, Mode, OFlags};

use crate::error::{LOOKING, Naming, UnmodifiedError};
use crate::kernel;
use crate::limits::PATH_BYTES_MAX;
use crate::listener::{Call, Given};
use crate::order::{ProcessKey, StreamKey};
use crate::outputs::{Opening, Turn};
use crate::sink::Sink;
use crate::supervisor::Supervisor;

/// A call that names files.
#[derive(Debug)]
pub(crate) struct Named {
    /// Folder descriptor and address of each path.
    paths: Vec<(i32, u64)>,
    /// How the file is opened, if it is.
    open: Option<Flags>,
}

/// The arguments of a call that opens.
#[derive(Debug, Clone, Copy)]
struct Flags {
    flags: i32,
    mode: u32,
}

/// What the call names; none if it is no such call, or its process has gone.
pub(crate) fn decode(call: Call, pid: u32) -> Option<Named> {
    let [first, second, third, fourth, ..] = call.arguments;
    let at = |folder: u64, address: u64| vec![(folder as i32, address)];
    let here = |address: u64| vec![(libc::AT_FDCWD, address)];
    let open = |flags: u64, mode: u64| Flags {
        flags: flags as i32,
        mode: mode as u32,
    };
    let (paths, open) = match call.number {
        libc::SYS_openat => (at(first, second), Some(open(third, fourth))),
        libc::SYS_openat2 => {
            let how = kernel::memory_at(pid, third, 16).ok()?;
            let (flags, mode) = how.split_at(8);
            let number = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).ok();
            (at(first, second), Some(open(number(flags)?, number(mode)?)))
        }
        libc::SYS_newfstatat | libc::SYS_statx | libc::SYS_unlinkat => (at(first, second), None),
        libc::SYS_truncate => (here(first), None),
        libc::SYS_renameat | libc::SYS_renameat2 => {
            ([at(first, second), at(third, fourth)].concat(), None)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => (here(first), Some(open(second, third))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => {
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            (here(first), Some(open(flags as u64, second)))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_stat | libc::SYS_unlink => (here(first), None),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => ([here(first), here(second)].concat(), None),
        _ => return None,
    };
    Some(Named { paths, open })
}

impl Flags {
    fn has(self, flag: i32) -> bool {
        self.flags & flag != 0
    }

    /// Whether what is written through the descriptor can only be at the end of what the file holds
    /// then.
    fn is_serial_append(self) -> bool {
        let writes_only = self.flags & libc::O_ACCMODE == libc::O_WRONLY;
        let ends = self.has(libc::O_APPEND) || self.has(libc::O_TRUNC);
        let other = libc::O_EXCL | libc::O_PATH | libc::O_DIRECTORY;
        writes_only && ends && !self.has(other)
    }
}

impl Supervisor {
    /// Answers a call that names files, now or when its turn has come.
    pub(crate) fn on_named(
        &mut self,
        call: Call,
        pid: u32,
        named: Named,
    ) -> Result<(), UnmodifiedError> {
        let paths = named
            .paths
            .iter()
            .filter_map(|place| self.ordered_path(pid, *place));
        let paths: Vec<PathBuf> = paths.collect();
        let is_waiting = self
            .listener
            .as_ref()
            .is_some_and(|listener| listener.is_waiting(call));
        let Some(path) = paths.first().filter(|_| is_waiting) else {
            return self.proceed(call);
        };
        let key = self.key_of(pid);
        let stream = self.stream_of(path);
        self.drain(key)?;
        let is_own = kernel::has_own_user(pid).naming(LOOKING)?;
        let appending = named
            .open
            .filter(|open| is_own && open.is_serial_append() && may_append(path, *open));
        match appending {
            Some(open) => self.open_for_appending(call, pid, path, open)?,
            None => self.outputs.await_turn(key, stream, Turn::Proceed(call)),
        }
        self.release(stream)
    }

    /// The path of an ordered file that a process names, absolute and without links in its folder.
    fn ordered_path(&self, pid: u32, (folder, address): (i32, u64)) -> Option<PathBuf> {
        let text = kernel::text_at(pid, address, PATH_BYTES_MAX).ok()?;
        let text = String::from_utf8(text).ok()?;
        let named = Path::new(&text);
        let name = named
            .file_name()
            .filter(|name| self.files.may_cover(name))?;
        let parent = named.parent()?;
        let base = match (named.is_absolute(), folder) {
            (true, _) => format!("/proc/{pid}/root"),
            (false, libc::AT_FDCWD) => format!("/proc/{pid}/cwd"),
            (false, folder) => format!("/proc/{pid}/fd/{folder}"),
        };
        let inside = parent.strip_prefix("/").unwrap_or(parent);
        let path = std::fs::canonicalize(Path::new(&base).join(inside))
            .ok()?
            .join(name);
        self.files.covers(&path).then_some(path)
    }

    /// The stream of a file, from its first name on.
    fn stream_of(&mut self, path: &Path) -> StreamKey {
        if let Some(stream) = self.files.stream(path) {
            return stream;
        }
        let stream = self.outputs.add(Sink::closed(&path.to_string_lossy()));
        self.files.insert(path.to_owned(), stream);
        stream
    }

    fn open_for_appending(
        &mut self,
        call: Call,
        pid: u32,
        path: &Path,
        open: Flags,
    ) -> Result<(), UnmodifiedError> {
        let (key, stream) = (self.key_of(pid), self.stream_of(path));
        let mask = kernel::mask_of(pid).naming(LOOKING)?.unwrap_or(0);
        let opening = Opening {
            path: path.to_owned(),
            created_with: open.has(libc::O_CREAT).then_some(open.mode & !mask),
            is_emptied: open.has(libc::O_TRUNC),
        };
        let writer = self.writer_of(key, stream)?;
        self.outputs.await_turn(key, stream, Turn::Open(opening));
        let given = Given {
            fd: writer.as_fd(),
            closes_on_exec: open.has(libc::O_CLOEXEC),
        };
        match &self.listener {
            Some(listener) => listener.answer_with(call, &given).naming("open a file"),
            None => Ok(()),
        }
    }

    /// The end to write to of a process's pipe for this stream.
    fn writer_of(
        &mut self,
        process: ProcessKey,
        stream: StreamKey,
    ) -> Result<OwnedFd, UnmodifiedError> {
        let known = self.segments.find(process, stream);
        let known = known.and_then(|pipe| Some((pipe, self.segments.get(pipe)?)));
        let Some((pipe, segment)) = known else {
            let (pipe, writer) = self
                .segments
                .create(process, stream)
                .naming("make a pipe")?;
            self.watch_pipe(pipe)?;
            return Ok(writer);
        };
        let path = format!("/proc/self/fd/{}", segment.reader().as_raw_fd());
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let writer = rustix::fs::openat(CWD, path, flags, Mode::empty()).naming("open a pipe")?;
        if !segment.is_watched {
            self.watch_pipe(pipe)?;
        }
        Ok(writer)
    }
}

/// Whether the file can be opened so, now or when the serial program would; if not, the process is
/// to see why by itself.
fn may_append(path: &Path, open: Flags) -> bool {
    match std::fs::metadata(path) {
        Ok(file) => file.is_file() && rustix::fs::access(path, Access::WRITE_OK).is_ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            let creates = Access::WRITE_OK | Access::EXEC_OK;
            open.has(libc::O_CREAT)
                && rustix::fs::access(folder, creates).is_ok()
                && !is_of_the_kernel(folder)
        }
        // Its name is too long, for one.
        Err(_) => false,
    }
}

/// Whether the kernel alone makes the files of a folder, whatever their permissions say.
fn is_of_the_kernel(folder: &Path) -> bool {
    let found = rustix::fs::statfs(folder);
    found.is_ok_and(|found| matches!(found.f_type, libc::PROC_SUPER_MAGIC | libc::SYSFS_MAGIC))
}
