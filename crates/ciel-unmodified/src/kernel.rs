//! What the system tells about a process: its descriptors, its parent, its children, its memory.
//!
//! Everything is read below `/proc`; a process that has gone has nothing, and that no more files
//! can be opened is an error. It does not know what the answers are for. Read next: `supervisor`.

use std::fs;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{CWD, Mode, OFlags, RawDir};

/// A descriptor of a process that is one end of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PipeEnd {
    /// Its number in that process.
    pub(crate) number: RawFd,
    /// Names the pipe.
    pub(crate) pipe: u64,
}

/// All descriptors of the process that are ends of pipes.
pub(crate) fn pipe_ends(pid: u32) -> io::Result<Vec<PipeEnd>> {
    unless_gone(read_pipe_ends(pid)).map(Option::unwrap_or_default)
}

/// What was read, or nothing where the process has gone.
fn unless_gone<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) => match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => Err(error),
            _ => Ok(None),
        },
    }
}

fn read_pipe_ends(pid: u32) -> io::Result<Vec<PipeEnd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, format!("/proc/{pid}/fd"), flags, Mode::empty())?;
    let mut ends = Vec::new();
    let mut space = [MaybeUninit::uninit(); ENTRIES_BYTES];
    let mut entries = RawDir::new(&folder, &mut space);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        let Some(number) = name.to_str().ok().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let mut target = [MaybeUninit::uninit(); PIPE_NAME_BYTES_MAX];
        let Ok((target, _)) = rustix::fs::readlinkat_raw(&folder, name, &mut target) else {
            continue;
        };
        let pipe = pipe_of(target);
        ends.extend(pipe.map(|pipe| PipeEnd { number, pipe }));
    }
    Ok(ends)
}

/// Bytes for a part of a list of descriptors.
const ENTRIES_BYTES: usize = 4096;

/// Bytes of the longest text that names a pipe.
const PIPE_NAME_BYTES_MAX: usize = 32;

fn pipe_of(target: &[u8]) -> Option<u64> {
    let number = target.strip_prefix(b"pipe:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Whether programs that the process starts do not have this descriptor.
pub(crate) fn closes_on_exec(pid: u32, number: RawFd) -> io::Result<bool> {
    let text = read_text(&format!("/proc/{pid}/fdinfo/{number}"))?.unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    Ok(flags.is_some_and(|flags| flags & libc::O_CLOEXEC != 0))
}

/// Whose a thread is, and who has started that process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kin {
    /// The process of the thread.
    pub(crate) process: u32,
    /// The parent of the process.
    pub(crate) parent: u32,
}

/// The kin of a thread.
pub(crate) fn kin_of(thread: u32) -> io::Result<Option<Kin>> {
    let text = unless_gone(begin_of_status(thread))?.unwrap_or_default();
    let number = |name| field(&text, name)?.parse().ok();
    let kin = number("Tgid:").zip(number("PPid:"));
    Ok(kin.map(|(process, parent)| Kin { process, parent }))
}

/// The first fields of a thread's status, by one read: a start of a process waits for it.
fn begin_of_status(thread: u32) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let path = format!("/proc/{thread}/status");
    let file = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
    let mut bytes = [0; TEXT_BYTES];
    let count = rustix::io::read(&file, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

/// The bits that the process takes from the mode of files that it creates.
pub(crate) fn mask_of(pid: u32) -> io::Result<Option<u32>> {
    let text = read_text(&format!("/proc/{pid}/status"))?.unwrap_or_default();
    Ok(field(&text, "Umask:").and_then(|mask| u32::from_str_radix(mask, 8).ok()))
}

/// Whether a process has the user and the groups of this one, so that both may open the same files.
pub(crate) fn has_own_user(pid: u32) -> io::Result<bool> {
    let user = user_of(&pid.to_string())?;
    Ok(user.is_some() && user == user_of("self")?)
}

fn user_of(process: &str) -> io::Result<Option<[String; 3]>> {
    let text = read_text(&format!("/proc/{process}/status"))?.unwrap_or_default();
    let user = ["Uid:", "Gid:", "Groups:"].map(|name| field(&text, name));
    let is_whole = user.iter().all(Option::is_some);
    Ok(is_whole.then(|| user.map(|value| value.unwrap_or_default().to_owned())))
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

/// A text below `/proc`, in few reads: its length is not known before. The names of programs in it
/// are any bytes.
fn read_text(path: &str) -> io::Result<Option<String>> {
    let mut text = Vec::with_capacity(TEXT_BYTES);
    let read = fs::File::open(path).and_then(|mut file| file.read_to_end(&mut text));
    let read = unless_gone(read)?;
    Ok(read.map(|_| String::from_utf8_lossy(&text).into_owned()))
}

/// Bytes that most texts below `/proc` fit in.
const TEXT_BYTES: usize = 4096;

/// The children that a thread has started, in the order of their starts. Those that have ended and
/// were not waited for are among them.
pub(crate) fn children_of_thread(pid: u32, thread: u32) -> io::Result<Vec<u32>> {
    let path = format!("/proc/{pid}/task/{thread}/children");
    let text = read_text(&path)?.unwrap_or_default();
    Ok(text.split(' ').filter_map(|pid| pid.parse().ok()).collect())
}

/// The children of all threads of a process.
pub(crate) fn children_of(pid: u32) -> io::Result<Vec<u32>> {
    let Some(threads) = unless_gone(fs::read_dir(format!("/proc/{pid}/task")))? else {
        return Ok(Vec::new());
    };
    let names = threads.filter_map(|thread| thread.ok()?.file_name().into_string().ok());
    let mut children = Vec::new();
    for thread in names.filter_map(|name| name.parse().ok()) {
        children.extend(children_of_thread(pid, thread)?);
    }
    Ok(children)
}

/// A text of a process that ends with a zero byte, at most `limit` bytes of it.
pub(crate) fn text_at(pid: u32, address: u64, limit: usize) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    while text.len() < limit {
        // A page at a time: the next one may not be there.
        let at = address + text.len() as u64;
        let length = (PAGE - at % PAGE).min((limit - text.len()) as u64) as usize;
        let part = memory_at(pid, at, length)?;
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&part[..end]);
            return Ok(text);
        }
        text.extend_from_slice(&part);
    }
    Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
}

/// The least size of a page, in bytes.
const PAGE: u64 = 4096;

/// Bytes of the memory of a process.
pub(crate) fn memory_at(pid: u32, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let here = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: length,
    };
    let there = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: length,
    };
    // SAFETY: the buffer has `length` bytes, and the kernel checks the addresses of the other
    // process.
    let count = unsafe { libc::process_vm_readv(pid as i32, &here, 1, &there, 1, 0) };
    match count {
        count if count == length as isize => Ok(bytes),
        -1 => Err(io::Error::last_os_error()),
        _ => Err(io::Error::from_raw_os_error(libc::EFAULT)),
    }
}

/// Changes the memory of a process, also where the process itself may only read.
pub(crate) fn change_memory(pid: u32, address: u64, bytes: &[u8]) -> io::Result<()> {
    let memory = fs::File::options()
        .write(true)
        .open(format!("/proc/{pid}/mem"))?;
    memory.write_all_at(bytes, address)
}
