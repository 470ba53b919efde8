//! Several inputs that a process reads one behind the other from one pipe, some of them streams.
//!
//! The end of the pipe is that of the last input: a stream whose producer has not ended well has no
//! end here either. It does not know which inputs they are. Read next: `inlet`.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use ciel_model::limits;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

use super::inlet::Inlet;
use super::pouring::{pour, watched_end};
use crate::sources::Source;

/// One of the inputs.
pub(crate) struct Part(Kind);

enum Kind {
    Whole(Bytes),
    Stream(AsyncFd<OwnedFd>, Arc<Source>),
}

impl Part {
    /// An input whose bytes are all there.
    pub(crate) fn whole(bytes: Bytes) -> Part {
        Part(Kind::Whole(bytes))
    }

    /// An input that is still written.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn stream(inlet: &mut Inlet) -> io::Result<Part> {
        let (end, source) = inlet.taken();
        Ok(Part(Kind::Stream(
            watched_end(&end, Interest::READABLE)?,
            source,
        )))
    }

    fn discard(&self) {
        if let Kind::Stream(_, source) = &self.0 {
            source.discard();
        }
    }

    async fn move_to(&self, pipe: &AsyncFd<OwnedFd>) -> io::Result<()> {
        match &self.0 {
            Kind::Whole(bytes) => write_all(bytes, pipe).await,
            Kind::Stream(end, _) => pour(end, pipe).await,
        }
    }
}

/// Inputs that are joined. That ends when this is dropped.
pub(crate) struct Joined(JoinHandle<()>);

impl Joined {
    /// Begins; with the end of the pipe for the process.
    ///
    /// # Errors
    /// If the system refuses a pipe.
    pub(crate) fn begin(parts: Vec<Part>) -> io::Result<(Joined, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // A smaller pipe is slower, and that is all.
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, limits::STREAM_PIPE_BYTES);
        let pipe = watched_end(&writer, Interest::WRITABLE)?;
        let joining = tokio::task::spawn_local(async move {
            for part in &parts {
                if part.move_to(&pipe).await.is_err() {
                    // The process wants no more: it holds none of its producers. Should it be
                    // another error, it sees no end of what is not whole.
                    parts.iter().for_each(Part::discard);
                    return std::future::pending().await;
                }
            }
        });
        Ok((Joined(joining), reader))
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn write_all(mut bytes: &[u8], pipe: &AsyncFd<OwnedFd>) -> io::Result<()> {
    while !bytes.is_empty() {
        let mut ready = pipe.writable().await?;
        let some = &bytes[..bytes.len().min(limits::STREAM_COPY_BYTES_MAX)];
        let written = ready.try_io(|pipe| Ok(rustix::io::write(pipe.get_ref(), some)?));
        if let Ok(written) = written {
            bytes = &bytes[written?..];
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}
