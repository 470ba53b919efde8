//! The server of the TCP data plane: pushes objects, also growing ones, from an offset.
//!
//! One thread for each connection, each with one frame in memory. A slow consumer holds only its
//! own connection: a stored object waits in its file, a direct producer is held. What is asked for
//! by name is found by a [`Catalogue`]. It does not know stores. Read next: `fetch`, the other
//! side.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::fault::StreamFault;
use crate::frame::{Kind, send};
use crate::growing::GrowingReader;
use crate::handshake::{self, Answer, Asked};
use crate::limits::{BEAT_MS, CONNECTIONS_MAX, FRAME_BYTES_MAX, SILENCE_MS_MAX};
use crate::progress::State;
use crate::stop::Stop;
use crate::token::Token;

/// Where a server finds what is asked for.
pub trait Catalogue: Send + Sync {
    /// The object with this name. A direct stream is given once.
    fn find(&self, name: &str) -> Found;
}

/// What is behind a name.
pub enum Found {
    /// An object, complete or growing.
    Stored(GrowingReader),
    /// A direct stream. Its reader gives no bytes only at the true end, and an error otherwise. If
    /// the consumer leaves, the server reads on and discards, so that the producer does not fail.
    Direct(Box<dyn Read + Send>),
    /// A direct stream that was given before.
    NotStored,
    /// No object has the name.
    Nothing,
}

/// A server, which listens until the system lets it accept no more. Dropping it refuses new
/// connections; those that are there end when they have something to say, after
/// [`BEAT_MS`](crate::limits) at the latest.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Server {
    /// Listens on an address; with port zero the system chooses one.
    ///
    /// # Errors
    /// If the address is taken or not of this machine.
    pub fn start(
        address: SocketAddr,
        token: Token,
        catalogue: Arc<dyn Catalogue>,
    ) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let stop = Stop::new()?;
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("ciel-data-plane".to_owned());
        let shared = Arc::new((token, catalogue, AtomicUsize::new(0)));
        let thread = thread.spawn(move || accept(&listener, &stopped, &shared))?;
        Ok(Server {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that cannot be stopped listens until the process ends; nothing else is lost.
        if self.stop.give().is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// What all connections of a server share, with their number.
type Served = (Token, Arc<dyn Catalogue>, AtomicUsize);

fn accept(listener: &TcpListener, stop: &Stop, shared: &Arc<Served>) -> io::Result<()> {
    while !stop.wait_for(listener, PollFlags::IN)? {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if is_for_good(&error) => return Err(error),
            // The client has left meanwhile: others are served still.
            Err(_) => continue,
        };
        let own = shared.clone();
        own.2.fetch_add(1, Ordering::SeqCst);
        let thread = std::thread::Builder::new().name("ciel-connection".to_owned());
        let started = thread.spawn(move || {
            // A broken connection concerns its client alone, who has seen it, too.
            let _ = serve(&stream, &own);
            own.2.fetch_sub(1, Ordering::SeqCst);
        });
        if started.is_err() {
            shared.2.fetch_sub(1, Ordering::SeqCst);
        }
    }
    Ok(())
}

/// Whether a server that could not accept is to listen no more: it does not listen any more, or it
/// has nothing left to accept with. Who waits would wait on then, and be found again at once; so
/// their connections break, which they can heal elsewhere.
fn is_for_good(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(
        errno,
        Some(Errno::INVAL | Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

fn serve(stream: &TcpStream, (token, catalogue, count): &Served) -> io::Result<()> {
    let silence = Some(Duration::from_millis(SILENCE_MS_MAX));
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(silence)?;
    let asked = handshake::ask(stream, token)?;
    let say = |asked: &Asked, answer| handshake::answer(stream, token, asked, answer);
    let Some(request) = &asked.request else {
        return say(&asked, Answer::TokenRefused);
    };
    if count.load(Ordering::SeqCst) > CONNECTIONS_MAX {
        return say(&asked, Answer::Busy);
    }
    match catalogue.find(&request.name) {
        Found::Stored(object) => {
            say(&asked, Answer::Stored)?;
            push_object(stream, object.from(request.from))
        }
        Found::Direct(mut source) if request.from == 0 => {
            let pushed =
                say(&asked, Answer::Direct).and_then(|()| push_direct(stream, &mut source));
            if pushed.is_err() {
                io::copy(&mut source, &mut io::sink())?;
            }
            pushed
        }
        Found::Direct(mut source) => {
            say(&asked, Answer::NotStored)?;
            io::copy(&mut source, &mut io::sink())?;
            Ok(())
        }
        Found::NotStored => say(&asked, Answer::NotStored),
        Found::Nothing => say(&asked, Answer::NoSuchObject),
    }
}

/// Sends an object, as far as it grows, to its end or loss; while it grows, each time when as much
/// is new as its reader asks for.
fn push_object(stream: &TcpStream, mut object: GrowingReader) -> io::Result<()> {
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    let beat = Some(Duration::from_millis(BEAT_MS));
    loop {
        let at = object.position_bytes();
        let enough = at.saturating_add(object.granularity_bytes());
        let look = object.progress().wait(enough, beat)?;
        match look.state {
            State::Writing if look.length < enough => send(stream, Kind::Beat, at, &[])?,
            State::Committed if look.length <= at => {
                return send(stream, Kind::End, look.length, &[]);
            }
            State::Lost if look.length <= at => return send(stream, Kind::Lost, at, &[]),
            State::Writing | State::Committed | State::Lost => {
                push_until(stream, &mut object, look.length, &mut buffer)?;
            }
        }
    }
}

/// Sends the bytes of an object before that one, which are there.
fn push_until(
    stream: &TcpStream,
    object: &mut GrowingReader,
    end: u64,
    buffer: &mut [u8],
) -> io::Result<()> {
    while object.position_bytes() < end {
        let at = object.position_bytes();
        let new = usize::try_from(end - at).unwrap_or(usize::MAX);
        let wanted = new.min(buffer.len());
        let count = object.file().read_at(&mut buffer[..wanted], at)?;
        if count == 0 {
            return Err(StreamFault::Damaged { read: at }.into());
        }
        send(stream, Kind::Data, at, &buffer[..count])?;
        object.advance(count as u64);
    }
    Ok(())
}

/// Sends what comes from a direct producer. Its silence has no beats: the client waits longer.
fn push_direct(stream: &TcpStream, source: &mut dyn Read) -> io::Result<()> {
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    let mut at = 0;
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return send(stream, Kind::End, at, &[]),
            Ok(count) => {
                send(stream, Kind::Data, at, &buffer[..count])?;
                at += count as u64;
            }
            Err(_) => return send(stream, Kind::Lost, at, &[]),
        }
    }
}
