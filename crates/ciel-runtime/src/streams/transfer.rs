//! A reader's connection to the data plane: a thread that pours what it brings into a pipe.
//!
//! A connection that breaks is resumed at the byte that is missing. It does not know what comes of
//! one that cannot be: `inlet` does. Read next: `data_plane`, the other side.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ciel_data_plane::{Fetch, Stop, StreamFault, pour};
use ciel_store::RunFolder;
use tokio::sync::oneshot;

use crate::data_plane::Offer;

/// A transfer that runs. Dropping it ends its thread.
pub(super) struct Transfer {
    offer: Offer,
    stop: Stop,
    ended: oneshot::Receiver<Ended>,
}

/// How a transfer has ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// All bytes are in the pipe, so many over so many connections.
    Whole { bytes: u64, connections: u64 },
    /// The reader has left, or the producer is lost, of which the reader is told otherwise.
    Left,
    /// No connection can be had after so many bytes.
    Broken { read: u64, fault: String },
}

impl Transfer {
    /// Begins one into a pipe whose writing end does not block; bytes are counted as moved in the
    /// store of that folder.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn start(
        offer: Offer,
        folder: Arc<RunFolder>,
        pipe: OwnedFd,
    ) -> io::Result<Transfer> {
        let stop = Stop::new()?;
        let fetch = offer.fetch(stop.clone());
        let (told, ended) = oneshot::channel();
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("ciel-transfer".to_owned());
        thread.spawn(move || {
            let end = fetch_all(fetch, &pipe, &stopped, &folder);
            // Who takes the word closes the last writing end of the pipe, or writes on.
            drop(pipe);
            // A reader that is gone does not ask.
            let _ = told.send(end);
        })?;
        Ok(Transfer { offer, stop, ended })
    }

    /// Where it connects to.
    pub(super) fn address(&self) -> SocketAddr {
        self.offer.address()
    }

    /// How it ends.
    pub(super) async fn end(&mut self) -> Ended {
        // A thread that panics has told nothing; its reader sees no end.
        (&mut self.ended).await.unwrap_or(Ended::Left)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // Refused, the thread ends with the next thing that the server says.
        let _ = self.stop.give();
    }
}

fn fetch_all(mut fetch: Fetch, pipe: &OwnedFd, stop: &Stop, folder: &RunFolder) -> Ended {
    let moved = |bytes| folder.budget().count_moved(bytes);
    match pour(&mut fetch, pipe, stop, moved) {
        Ok(true) => Ended::Whole {
            bytes: fetch.position_bytes(),
            connections: fetch.connections(),
        },
        Ok(false) => Ended::Left,
        Err(error) => match StreamFault::of(&error) {
            Some(StreamFault::ProducerLost { .. } | StreamFault::GivenUp { .. }) => Ended::Left,
            Some(fault) => Ended::Broken {
                read: fetch.position_bytes(),
                fault: fault.to_string(),
            },
            // The pipe itself: its reader cannot be served at all.
            None => Ended::Left,
        },
    }
}
