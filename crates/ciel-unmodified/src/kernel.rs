//! What the system tells about a process: its descriptors, its parent, its children, its memory.
//!
//! Everything is read below `/proc`; a process that has gone has nothing. It does not know what the
//! answers are for. Read next: `supervisor`.

use std::fs;
use std::io;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{CWD, Dir, Mode, OFlags};

/// A descriptor of a process that is one end of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PipeEnd {
    /// Its number in that process.
    pub(crate) number: RawFd,
    /// Names the pipe.
    pub(crate) pipe: u64,
}

/// All descriptors of the process that are ends of pipes.
pub(crate) fn pipe_ends(pid: u32) -> Vec<PipeEnd> {
    read_pipe_ends(pid).unwrap_or_default()
}

fn read_pipe_ends(pid: u32) -> io::Result<Vec<PipeEnd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, format!("/proc/{pid}/fd"), flags, Mode::empty())?;
    let mut ends = Vec::new();
    let mut buffer = Vec::with_capacity(64);
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let Some(number) = entry
            .file_name()
            .to_str()
            .ok()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Ok(target) = rustix::fs::readlinkat(folder.as_fd(), entry.file_name(), buffer) else {
            buffer = Vec::with_capacity(64);
            continue;
        };
        let pipe = pipe_of(target.to_bytes());
        ends.extend(pipe.map(|pipe| PipeEnd { number, pipe }));
        buffer = target.into_bytes();
    }
    Ok(ends)
}

fn pipe_of(target: &[u8]) -> Option<u64> {
    let number = target.strip_prefix(b"pipe:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Whether programs that the process starts do not have this descriptor.
pub(crate) fn closes_on_exec(pid: u32, number: RawFd) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_CLOEXEC != 0)
}

/// The parent of a process.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

/// The process of a thread.
pub(crate) fn process_of(thread: u32) -> Option<u32> {
    status_field(thread, "Tgid:")?.parse().ok()
}

/// The bits that the process takes from the mode of files that it creates.
pub(crate) fn mask_of(pid: u32) -> Option<u32> {
    u32::from_str_radix(&status_field(pid, "Umask:")?, 8).ok()
}

fn status_field(pid: u32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(field.trim().to_owned())
}

/// The children that a thread has started, in the order of their starts. Those that have ended and
/// were not waited for are among them.
pub(crate) fn children_of_thread(pid: u32, thread: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{thread}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split(' ').filter_map(|pid| pid.parse().ok()).collect()
}

/// The children of all threads of a process.
pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let names = threads.filter_map(|thread| thread.ok()?.file_name().into_string().ok());
    let threads = names.filter_map(|name| name.parse().ok());
    threads
        .flat_map(|thread| children_of_thread(pid, thread))
        .collect()
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
