//! The calls on files: open, read, write, lseek, dup, dup2, close.
//!
//! It does not know strands. Read next: `descriptors`.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use ciel_files::{Mode, Options};

use crate::descriptors;
use crate::failure::{Failure, call};

const KNOWN_FLAGS: c_int =
    libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND | libc::O_CLOEXEC;

fn mode(number: c_int) -> Result<Mode, Failure> {
    match number {
        0 => Ok(Mode::Global),
        1 => Ok(Mode::Local),
        2 => Ok(Mode::SerialAppend),
        _ => {
            let message = format!("{number} is none of the three modes");
            Err(Failure::new(libc::EINVAL, message))
        }
    }
}

fn options(mode: Mode, flags: c_int, permissions: u32) -> Result<Options, Failure> {
    let is_read_only = flags & libc::O_ACCMODE == libc::O_RDONLY;
    let writes = [libc::O_WRONLY, libc::O_RDWR].contains(&(flags & libc::O_ACCMODE));
    let fits = match mode {
        Mode::SerialAppend => writes,
        Mode::Global | Mode::Local => {
            let empties = flags & (libc::O_TRUNC | libc::O_CREAT) != 0;
            flags & libc::O_APPEND == 0 && (writes || (is_read_only && !empties))
        }
    };
    if flags & !KNOWN_FLAGS != 0 || !fits {
        let message = format!("flags {flags:#o} are not offered in mode {mode:?}");
        return Err(Failure::new(libc::EINVAL, message));
    }
    Ok(Options::new()
        .create(flags & libc::O_CREAT != 0)
        .truncate(flags & libc::O_TRUNC != 0)
        .read_only(is_read_only)
        .permissions(permissions))
}

/// # Safety
/// `path` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_open(
    path: *const c_char,
    mode_number: c_int,
    flags: c_int,
    permissions: libc::mode_t,
) -> c_int {
    call(-1, || {
        if path.is_null() {
            return Err(Failure::new(libc::EFAULT, "the path is a null pointer"));
        }
        // SAFETY: the caller promises that it ends with a zero byte.
        let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
        let mode = mode(mode_number)?;
        let options = options(mode, flags, permissions)?;
        let opened = options.open(path, mode).map_err(|error| {
            let failure = format!("cannot open {path:?}: {error}");
            Failure::from(error).with_message(failure)
        })?;
        descriptors::add(Arc::new(opened))
    })
}

fn check_buffer(buffer: *const c_void, length: usize) -> Result<(), Failure> {
    if buffer.is_null() && length > 0 {
        return Err(Failure::new(libc::EFAULT, "the buffer is a null pointer"));
    }
    match isize::try_from(length) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::new(
            libc::EINVAL,
            "the length is more than SSIZE_MAX",
        )),
    }
}

/// # Safety
/// `length` bytes can be written at `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_read(
    descriptor: c_int,
    buffer: *mut c_void,
    length: usize,
) -> isize {
    call(-1, || {
        let file = descriptors::get(descriptor)?;
        check_buffer(buffer, length)?;
        if length == 0 {
            return Ok(0);
        }
        // SAFETY: it is not null, and the caller promises so many bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
        loop {
            match (&*file).read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return Ok(result? as isize),
            }
        }
    })
}

/// The bytes that a caller hands over.
///
/// # Safety
/// `length` bytes can be read at `buffer` for as long as the result is used.
pub(crate) unsafe fn bytes<'a>(buffer: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    check_buffer(buffer, length)?;
    if length == 0 {
        return Ok(&[]);
    }
    // SAFETY: it is not null, and the caller promises so many bytes.
    Ok(unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) })
}

/// # Safety
/// `length` bytes can be read at `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_write(
    descriptor: c_int,
    buffer: *const c_void,
    length: usize,
) -> isize {
    call(-1, || {
        // SAFETY: as the caller promises.
        let bytes = unsafe { bytes(buffer, length) };
        if let Ok(bytes) = bytes
            && descriptors::gather(descriptor, bytes)
        {
            return Ok(length as isize);
        }
        descriptors::with(descriptor, |mut file| {
            file.write_all(bytes?)?;
            Ok(length as isize)
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ciel_ordered_lseek(
    descriptor: c_int,
    offset: libc::off_t,
    whence: c_int,
) -> libc::off_t {
    call(-1, || {
        let file = descriptors::get(descriptor)?;
        if file.mode() == Mode::SerialAppend {
            let message = "a file that is open for serial append has no pointer to move";
            return Err(Failure::new(libc::ESPIPE, message));
        }
        let negative = || Failure::new(libc::EINVAL, format!("offset {offset} is negative"));
        let place = match whence {
            libc::SEEK_SET => SeekFrom::Start(u64::try_from(offset).map_err(|_| negative())?),
            libc::SEEK_CUR => SeekFrom::Current(offset),
            libc::SEEK_END => SeekFrom::End(offset),
            _ => {
                let message = format!("{whence} is none of SEEK_SET, SEEK_CUR and SEEK_END");
                return Err(Failure::new(libc::EINVAL, message));
            }
        };
        let at = (&*file).seek(place)?;
        let too_far = |_| Failure::new(libc::EOVERFLOW, "the pointer is more than an off_t holds");
        libc::off_t::try_from(at).map_err(too_far)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ciel_ordered_dup(descriptor: c_int) -> c_int {
    call(-1, || descriptors::add(descriptors::get(descriptor)?))
}

#[unsafe(no_mangle)]
pub extern "C" fn ciel_ordered_dup2(descriptor: c_int, other: c_int) -> c_int {
    call(-1, || {
        let file = descriptors::get(descriptor)?;
        descriptors::check(other)?;
        if descriptors::are_same(descriptor, other) {
            return Ok(other);
        }
        if descriptors::get(other).is_ok() {
            close(other)?;
        }
        descriptors::set(other, file)?;
        Ok(other)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ciel_ordered_close(descriptor: c_int) -> c_int {
    call(-1, || close(descriptor).map(|()| 0))
}

/// The last descriptor of an open file ends its writing. One that cannot be closed yet stays.
fn close(descriptor: c_int) -> Result<(), Failure> {
    if !descriptors::is_last(descriptor)? {
        return descriptors::remove(descriptor).map(drop);
    }
    let result = descriptors::get(descriptor)?
        .dup()
        .close()
        .map_err(Failure::from);
    match result {
        Err(failure) if failure.is_too_early() => Err(failure),
        result => {
            descriptors::remove(descriptor)?;
            result
        }
    }
}
