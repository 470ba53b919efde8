//! Onlookers: tasks that look at a stream while it is written, and are no readers of it.
//!
//! A reader ends after its producer, and starts again with it. The root of a program cannot: what
//! it has printed is out. So it looks on: it is given each byte once, and if the producer starts
//! again, the bytes that it was given have to come again. What it reads comes in blocks, so that no
//! end of a pipe passes for the end of the stream. Read next: `sources`, for what it looks at; and
//! "Streams" in protocol/PROTOCOL.md, for the blocks.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use ciel_model::{Handle, Name, limits};
use rustix::io::{Errno, pread};
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::engine::Engine;
use crate::sources::{Flow, Source};
use crate::spawning::watched;

/// The first block: how the bytes are read, filled up with zeros. A pipe of one page has room for
/// nothing else until the reader has taken it, so it is known then that the reader is there.
const GREETING_BYTES: usize = 4096;

/// In place of a length: the stream has ended, or it is known otherwise what the object is.
const END: u32 = 0;

/// In place of a length: the bytes that were given have not come again.
const DIFFERS: u32 = u32::MAX;

/// Bytes that are compared at once.
const COMPARED_BYTES: usize = 64 << 10;

/// A task that looks at one object. It is given up when this is dropped.
pub(crate) struct Onlooker {
    pub(crate) handle: Handle,
    /// Which of the pipes of its task it has.
    pub(crate) place: usize,
    settled: watch::Sender<bool>,
    /// The reader has opened the pipe, whose path is gone.
    has_opened: Rc<Cell<bool>>,
    feeding: JoinHandle<()>,
}

impl Onlooker {
    /// From now on what is written of an object comes out of the pipe at that path, of which these
    /// are both ends.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn begin(
        engine: &Arc<Engine>,
        name: Name,
        shown: (Handle, usize),
        pipe: (PathBuf, OwnedFd),
    ) -> io::Result<Onlooker> {
        let sources = engine.lock().streams.look_at(name);
        Onlooker::look(engine, sources, shown, pipe)
    }

    /// As [`begin`](Self::begin), of an object whose task has failed: what that had written.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn begin_failed(
        engine: &Arc<Engine>,
        source: Source,
        shown: (Handle, usize),
        pipe: (PathBuf, OwnedFd),
    ) -> io::Result<Onlooker> {
        let (_, sources) = watch::channel(Some(Arc::new(source)));
        let onlooker = Onlooker::look(engine, sources, shown, pipe)?;
        onlooker.settle();
        Ok(onlooker)
    }

    fn look(
        engine: &Arc<Engine>,
        sources: watch::Receiver<Option<Arc<Source>>>,
        (handle, place): (Handle, usize),
        (path, ends): (PathBuf, OwnedFd),
    ) -> io::Result<Onlooker> {
        fcntl_setpipe_size(&ends, GREETING_BYTES)?;
        let writer = engine.folder.scratch().writing_end(&path)?;
        let (settled, is_settled) = watch::channel(false);
        let has_opened = Rc::new(Cell::new(false));
        let feed = Feed {
            engine: engine.clone(),
            sources,
            is_settled,
            pipe: watched(writer.as_fd(), Interest::WRITABLE)?,
            unopened: Some((path, ends)),
            has_opened: has_opened.clone(),
            is_greeted: false,
            given: 0,
            from: None,
        };
        // Who has left reads nothing more, and that is all.
        let feeding = tokio::task::spawn_local(async { drop(feed.run().await) });
        Ok(Onlooker {
            handle,
            place,
            settled,
            has_opened,
            feeding,
        })
    }

    /// The object is settled: nothing more is written of it.
    pub(crate) fn settle(&self) {
        self.settled.send_replace(true);
    }

    /// Whether it has given all, and its pipe has no path any more.
    pub(crate) fn is_over(&self) -> bool {
        self.has_opened.get() && self.feeding.is_finished()
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        self.feeding.abort();
    }
}

/// What fills the pipe of an onlooker.
struct Feed {
    engine: Arc<Engine>,
    /// The newest attempt that writes the object, also if it has ended.
    sources: watch::Receiver<Option<Arc<Source>>>,
    is_settled: watch::Receiver<bool>,
    pipe: AsyncFd<OwnedFd>,
    /// The path of the pipe and its other end, until the reader has opened it.
    unopened: Option<(PathBuf, OwnedFd)>,
    has_opened: Rc<Cell<bool>>,
    is_greeted: bool,
    /// Bytes that the reader was given.
    given: u64,
    /// Whose file has all of those.
    from: Option<Arc<Source>>,
}

/// What a new attempt has written of what the reader was given.
#[derive(Clone, Copy, PartialEq)]
enum Again {
    /// All of it.
    Same,
    /// Something else.
    Other,
    /// No more than a part: it has ended.
    Part,
}

impl Feed {
    async fn run(mut self) -> io::Result<()> {
        loop {
            let source = self.sources.borrow_and_update().clone();
            let is_last = *self.is_settled.borrow() && self.is_newest();
            if let Some(source) = source {
                source.store();
                match self.compare(&source).await? {
                    Again::Same => self.pass_on(&source).await?,
                    Again::Other => return self.head(DIFFERS).await,
                    Again::Part => {}
                }
            }
            if is_last {
                // Without a greeting the reader waits until the object is whole.
                return match self.is_greeted {
                    true => self.head(END).await,
                    false => Ok(()),
                };
            }
            self.news().await;
        }
    }

    fn is_newest(&self) -> bool {
        !self.sources.has_changed().unwrap_or(false)
    }

    /// Whether nothing more is to be expected of the attempt that was newest.
    fn is_over(&self) -> bool {
        *self.is_settled.borrow() || !self.is_newest()
    }

    /// Waits until there is a newer attempt, or the object is settled.
    async fn news(&mut self) {
        if !self.is_over() {
            tokio::select! {
                _ = self.sources.changed() => self.sources.mark_changed(),
                _ = self.is_settled.changed() => {}
            }
        }
    }

    /// Gives the reader what comes of an attempt, until that is over.
    async fn pass_on(&mut self, source: &Arc<Source>) -> io::Result<()> {
        self.from = Some(source.clone());
        let mut flow = source.flow.subscribe();
        loop {
            let is_over = self.is_over();
            let stored = stored(*flow.borrow_and_update());
            if let Some((bytes, _)) = stored {
                self.greet(source).await?;
                while self.given < bytes {
                    self.block(&source.file, bytes).await?;
                }
            }
            if is_over {
                return Ok(());
            }
            tokio::select! {
                _ = flow.changed() => {}
                () = self.news() => {}
            }
        }
    }

    /// Whether a new attempt writes what the reader was given by an earlier one.
    async fn compare(&mut self, source: &Arc<Source>) -> io::Result<Again> {
        let Some(earlier) = self.from.clone() else {
            return Ok(Again::Same);
        };
        if Arc::ptr_eq(&earlier, source) {
            return Ok(Again::Same);
        }
        let mut flow = source.flow.subscribe();
        let mut compared = 0;
        loop {
            let is_over = self.is_over();
            let (bytes, is_whole) = stored(*flow.borrow_and_update()).unwrap_or_default();
            while compared < bytes.min(self.given) {
                let count = (bytes.min(self.given) - compared).min(COMPARED_BYTES as u64);
                if !are_equal(&earlier.file, &source.file, compared, count as usize)? {
                    return Ok(Again::Other);
                }
                compared += count;
                tokio::task::yield_now().await;
            }
            if compared == self.given {
                return Ok(Again::Same);
            }
            if is_whole {
                return Ok(Again::Other);
            }
            if is_over {
                return Ok(Again::Part);
            }
            tokio::select! {
                _ = flow.changed() => {}
                () = self.news() => {}
            }
        }
    }

    /// Says how the bytes are read.
    async fn greet(&mut self, source: &Source) -> io::Result<()> {
        if self.is_greeted {
            return Ok(());
        }
        self.is_greeted = true;
        let mut greeting = source.form.name().as_bytes().to_vec();
        greeting.resize(GREETING_BYTES, 0);
        self.write(&greeting).await
    }

    /// Writes a length, or what stands in its place. The first one has room when the reader has
    /// opened the pipe and taken the greeting.
    async fn head(&mut self, length: u32) -> io::Result<()> {
        self.write(&length.to_le_bytes()).await?;
        if let Some((path, _ends)) = self.unopened.take() {
            self.has_opened.set(true);
            // A smaller pipe is slower, and a path that stays goes with the task.
            let _ = fcntl_setpipe_size(self.pipe.get_ref(), limits::STREAM_PIPE_BYTES);
            let _ = self.engine.folder.scratch().remove_pipe(&path);
        }
        Ok(())
    }

    /// Few bytes, which go into a pipe as a whole or not at all.
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        loop {
            let mut ready = self.pipe.writable().await?;
            let written = ready.try_io(|pipe| Ok(rustix::io::write(pipe.get_ref(), bytes)?));
            if let Ok(written) = written {
                return written.map(drop);
            }
        }
    }

    async fn block(&mut self, file: &File, until: u64) -> io::Result<()> {
        let until = until.min(self.given + limits::STREAM_COPY_BYTES_MAX as u64);
        self.head((until - self.given) as u32).await?;
        while self.given < until {
            let mut ready = self.pipe.writable().await?;
            let count = (until - self.given) as usize;
            let at = &mut self.given;
            let moved = ready.try_io(|pipe| {
                let flags = SpliceFlags::NONBLOCK;
                Ok(splice(file, Some(at), pipe.get_ref(), None, count, flags)?)
            });
            if let Ok(moved) = moved
                && moved? == 0
            {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Bytes of a source that can be read, and whether these are all; none if they are not stored.
fn stored(flow: Flow) -> Option<(u64, bool)> {
    match flow {
        Flow::Stored { bytes, is_whole } => Some((bytes, is_whole)),
        Flow::Open | Flow::Direct | Flow::Discarded => None,
    }
}

fn are_equal(one: &File, other: &File, at: u64, count: usize) -> io::Result<bool> {
    let (mut first, mut second) = ([0; COMPARED_BYTES], [0; COMPARED_BYTES]);
    read_at(one, &mut first[..count], at)?;
    read_at(other, &mut second[..count], at)?;
    Ok(first[..count] == second[..count])
}

/// Reads all of the bytes at a place of a file, which it has.
fn read_at(file: &File, mut into: &mut [u8], mut at: u64) -> io::Result<()> {
    while !into.is_empty() {
        let count = match pread(file, &mut *into, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(Errno::INTR) => 0,
            read => read?,
        };
        into = &mut into[count..];
        at += count as u64;
    }
    Ok(())
}
