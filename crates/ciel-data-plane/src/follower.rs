//! Publishes the growth of a file that a program of somebody else appends to.
//!
//! The kernel notifies of each change (inotify); nothing is polled. It does not know when the
//! program has ended, nor how: the caller says so. Read next: `progress`.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::PollFlags;
use rustix::fs::inotify;
use rustix::io::Errno;

use crate::progress::Progress;
use crate::stop::Stop;

/// A thread that watches one file. Dropping it loses the stream.
#[derive(Debug)]
pub struct Follower {
    file: File,
    progress: Arc<Progress>,
    stop: Stop,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Follower {
    /// Watches the file, which must be there already.
    ///
    /// # Errors
    /// If it is not, or the user has no watch left.
    pub fn start(path: &Path, progress: Arc<Progress>) -> io::Result<Follower> {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        inotify::add_watch(&watch, path, inotify::WatchFlags::MODIFY)?;
        let file = File::open(path)?;
        let stop = Stop::new()?;
        let thread = std::thread::Builder::new().name("ciel-follower".to_owned());
        let (own, published, ended) = (file.try_clone()?, progress.clone(), stop.clone());
        let thread = thread.spawn(move || follow(&watch, &own, &published, &ended))?;
        Ok(Follower {
            file,
            progress,
            stop,
            thread: Some(thread),
        })
    }

    /// The program has ended well: the file is the whole stream. Returns its length in bytes.
    ///
    /// # Errors
    /// If the file could not be watched; the stream is lost then.
    pub fn commit(mut self) -> io::Result<u64> {
        self.join()?;
        let length = self.file.metadata()?.len();
        self.progress.commit(length);
        Ok(length)
    }

    fn join(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        self.stop.give()?;
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the watching thread panicked")))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and the stream is lost in any case.
        let _ = self.join();
        self.progress.lose();
    }
}

fn follow(watch: &OwnedFd, file: &File, progress: &Progress, stop: &Stop) -> io::Result<()> {
    let mut events = [MaybeUninit::<u8>::uninit(); 4096];
    loop {
        progress.publish(file.metadata()?.len());
        if stop.wait_for(watch, PollFlags::IN)? {
            return Ok(());
        }
        match rustix::io::read(watch, &mut events) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
