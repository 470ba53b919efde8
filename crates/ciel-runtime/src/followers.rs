//! Those who follow a live run: each has a bounded queue of moments, and one that is too slow loses
//! the oldest and gets their number instead.
//!
//! It does not know who they are. Read next: `moments`, where what they get has gathered.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ciel_view::records::{MomentRecord, Record};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use crate::moments::Moments;

/// Moments that may wait for a reader.
const QUEUED_MOMENTS_MAX: usize = 4 << 10;

/// All who follow a run; none once it has ended.
pub(crate) struct Followers(Mutex<Option<Sender<Arc<[u8]>>>>);

/// One of them.
pub(crate) struct Follower(Receiver<Arc<[u8]>>);

impl Followers {
    pub(crate) fn new() -> Followers {
        Followers(Mutex::new(Some(channel(QUEUED_MOMENTS_MAX).0)))
    }

    fn sender(&self) -> MutexGuard<'_, Option<Sender<Arc<[u8]>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more, who gets all that is passed on after this.
    pub(crate) fn add(&self) -> Option<Follower> {
        let sender = self.sender();
        Some(Follower(sender.as_ref()?.subscribe()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        let sender = self.sender();
        sender
            .as_ref()
            .is_none_or(|sender| sender.receiver_count() == 0)
    }

    /// Passes on what has gathered.
    pub(crate) fn pass_on(&self, moments: &Moments) {
        if self.is_empty() {
            return;
        }
        let sender = self.sender();
        let lost = (moments.lost > 0).then(|| missed(moments.lost));
        let seen = moments.seen.iter();
        let seen = seen.map(|seen| Record::Moment(MomentRecord::from(&*seen.happening)));
        for record in lost.into_iter().chain(seen) {
            // The last one may have left in this instant.
            let _ = sender.as_ref().map(|sender| sender.send(line_of(&record)));
        }
    }

    /// Nothing more comes: each one leaves when it has what is in its queue.
    pub(crate) fn close(&self) {
        self.sender().take();
    }
}

impl Follower {
    /// Passes moments on until the reader has enough or the run ends.
    pub(crate) async fn pass_on(mut self, mut stream: BufReader<UnixStream>) -> io::Result<()> {
        loop {
            let mut more = [0];
            let line = tokio::select! {
                line = self.0.recv() => line,
                // A reader sends nothing more; its disconnect is received here.
                read = stream.read(&mut more) => match read? {
                    0 => return Ok(()),
                    _ => continue,
                },
            };
            match line {
                Ok(line) => stream.write_all(&line).await?,
                Err(RecvError::Lagged(moments)) => {
                    stream.write_all(&line_of(&missed(moments))).await?;
                }
                Err(RecvError::Closed) => return Ok(()),
            }
        }
    }
}

fn missed(moments: u64) -> Record {
    Record::Missed { moments }
}

fn line_of(record: &Record) -> Arc<[u8]> {
    let mut line = Vec::new();
    record.append_to(&mut line);
    line.into()
}
