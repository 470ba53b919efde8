//! Moves the bytes of a stream between pipes and objects without copying them through memory of
//! this process (`splice`), and from a connection, whose frames are checked, into a pipe.
//!
//! Each function runs in a thread of the caller's and returns when its stream is through. None of
//! them takes the end of a pipe for the end of the stream: that is the caller's to say.
//! Read next: `fifo`.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::fd::AsFd;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use crate::fetch::Fetch;
use crate::growing::{GrowingReader, GrowingWriter};
use crate::limits::{FRAME_BYTES_MAX, MOVE_BYTES};
use crate::stop::Stop;

/// Moves what comes out of a pipe into a growing object, until nobody can write into the pipe or it
/// is empty after `stop`. The object is not committed.
///
/// # Errors
/// If the object cannot be written: the disk is full, for example.
pub fn store(pipe: impl AsFd, object: &mut GrowingWriter, stop: &Stop) -> io::Result<()> {
    empty(pipe, stop, |pipe| {
        let mut at = object.written_bytes();
        let into = Some(&mut at);
        let count = splice(
            pipe,
            None,
            object.file(),
            into,
            MOVE_BYTES,
            SpliceFlags::NONBLOCK,
        )?;
        object.grow(count as u64);
        Ok(count)
    })
}

/// Discards what comes out of a pipe, until nobody can write into it or it is empty after `stop`.
/// Returns the bytes that are gone.
///
/// # Errors
/// If the pipe cannot be read.
pub fn discard(pipe: impl AsFd, stop: &Stop) -> io::Result<u64> {
    let nothing = OpenOptions::new().write(true).open("/dev/null")?;
    let mut gone = 0;
    empty(pipe, stop, |pipe| {
        let count = splice(
            pipe,
            None,
            &nothing,
            None,
            MOVE_BYTES,
            SpliceFlags::NONBLOCK,
        )?;
        gone += count as u64;
        Ok(count)
    })?;
    Ok(gone)
}

/// Takes from a pipe while there is something, and waits for more.
fn empty<P: AsFd>(
    pipe: P,
    stop: &Stop,
    mut take: impl FnMut(&P) -> Result<usize, Errno>,
) -> io::Result<()> {
    let mut is_stopped = false;
    loop {
        match take(&pipe) {
            Ok(0) => return Ok(()),
            Err(Errno::AGAIN) if is_stopped => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => is_stopped = stop.wait_for(&pipe, PollFlags::IN)?,
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Pushes a growing object into a pipe until its true end, or until the consumer leaves: it closes
/// its end, or the caller gives `stop` because the consumer has ended. Returns the bytes pushed.
///
/// # Errors
/// [`StreamFault`](crate::StreamFault) if the producer is lost. The pipe is left open: closing it
/// is telling the consumer that this is the end.
pub fn push(mut object: GrowingReader, pipe: impl AsFd, stop: &Stop) -> io::Result<u64> {
    let first = object.position_bytes();
    loop {
        let new = object.wait()?;
        if new == 0 {
            return Ok(object.position_bytes() - first);
        }
        let wanted = MOVE_BYTES.min(usize::try_from(new).unwrap_or(usize::MAX));
        let mut at = object.position_bytes();
        let from = Some(&mut at);
        match splice(
            object.file(),
            from,
            &pipe,
            None,
            wanted,
            SpliceFlags::NONBLOCK,
        ) {
            Ok(count) => object.advance(count as u64),
            Err(Errno::INTR) => {}
            Err(Errno::PIPE) => return Ok(object.position_bytes() - first),
            Err(Errno::AGAIN) => {
                if stop.wait_for(&pipe, PollFlags::OUT)? {
                    return Ok(object.position_bytes() - first);
                }
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Pours what a fetch brings into a pipe until the true end, or until the consumer leaves: it
/// closes its end, or the caller gives `stop` because the consumer has ended. Tells `moved` of each
/// piece that is in the pipe. Returns whether the consumer has everything.
///
/// # Errors
/// [`StreamFault`](crate::StreamFault) if the fetch fails; what it has read before is in the pipe
/// then. The pipe is left open, as by [`push`].
pub fn pour(
    fetch: &mut Fetch,
    pipe: impl AsFd,
    stop: &Stop,
    mut moved: impl FnMut(u64),
) -> io::Result<bool> {
    let mut piece = vec![0; FRAME_BYTES_MAX];
    loop {
        let count = fetch.read(&mut piece)?;
        if count == 0 {
            return Ok(true);
        }
        let mut rest = &piece[..count];
        while !rest.is_empty() {
            if stop.wait_for(&pipe, PollFlags::OUT)? {
                return Ok(false);
            }
            match rustix::io::write(&pipe, rest) {
                Ok(written) => {
                    moved(written as u64);
                    rest = &rest[written..];
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::PIPE) => return Ok(false),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
