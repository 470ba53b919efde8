//! Producer and consumers of one stream, connected in each mode within one store or between two.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use ciel_data_plane::{
    Catalogue, Fetch, Found, GrowingReader, GrowingWriter, Progress, Ring, RingReader, RingWriter,
    Server, Stop, Token, push,
};
use ciel_streams::Mode;

use crate::proxy::{self, Fault};

/// How many stores, and what the network between them does.
#[derive(Clone, Debug)]
pub enum Layout {
    OneStore,
    TwoStores(Vec<Fault>),
}

/// The side of a producer. Dropped before its end it is lost.
pub enum Producer {
    Object(GrowingWriter),
    Ring(RingWriter),
}

impl Producer {
    pub fn commit(self) {
        match self {
            Producer::Object(object) => object.commit(),
            Producer::Ring(ring) => ring.end(),
        };
    }
}

impl Write for Producer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Producer::Object(object) => object.write(bytes),
            Producer::Ring(ring) => ring.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connected stream.
pub struct Wiring {
    mode: Mode,
    source: Arc<Source>,
    /// Where the data plane listens, and its token.
    plane: Option<(SocketAddr, Token)>,
    /// That data plane, unless another process has it.
    _server: Option<Server>,
}

/// What the producer's store has.
pub enum Source {
    Object(GrowingReader),
    Ring(Mutex<Option<RingReader>>),
}

impl Source {
    /// A ring whose consumer's side can be taken once, or was taken already.
    pub fn of_ring(reader: Option<RingReader>) -> Source {
        Source::Ring(Mutex::new(reader))
    }
}

fn again(reader: &GrowingReader) -> GrowingReader {
    reader.again().unwrap()
}

impl Catalogue for Source {
    fn find(&self, name: &str) -> Found {
        match self {
            _ if name != "stream" => Found::Nothing,
            Source::Object(reader) => Found::Stored(again(reader)),
            Source::Ring(ring) => match ring.lock().unwrap().take() {
                Some(reader) => Found::Direct(Box::new(reader)),
                None => Found::NotStored,
            },
        }
    }
}

pub fn growing() -> GrowingWriter {
    let file: File = tempfile::tempfile().unwrap();
    GrowingWriter::new(file, Arc::new(Progress::in_memory().unwrap()))
}

/// A producer, and what its consumers connect to.
pub fn connect(mode: Mode, layout: &Layout) -> (Producer, Wiring) {
    let (producer, source) = if mode == Mode::Direct {
        let ring = Ring::create(64 << 10).unwrap();
        let source = Source::of_ring(ring.reader());
        (Producer::Ring(ring.writer().unwrap()), source)
    } else {
        let object = growing();
        let reader = object.reader().unwrap();
        (Producer::Object(object), Source::Object(reader))
    };
    (producer, Wiring::new(mode, layout, source))
}

impl Wiring {
    /// What consumers of this source connect to.
    pub fn new(mode: Mode, layout: &Layout, source: Source) -> Wiring {
        let source = Arc::new(source);
        let faults = match layout {
            Layout::OneStore if mode != Mode::IndirectTcp => None,
            Layout::OneStore => Some(Vec::new()),
            Layout::TwoStores(faults) => Some(faults.clone()),
        };
        let server = faults.map(|faults| {
            let token = Token::random().unwrap();
            let address = "127.0.0.1:0".parse().unwrap();
            let server = Server::start(address, token.clone(), source.clone()).unwrap();
            let address = match faults.is_empty() {
                true => server.address(),
                false => proxy::start(server.address(), faults),
            };
            (server, (address, token))
        });
        let (server, plane) = server.unzip();
        Wiring {
            mode,
            source,
            plane,
            _server: server,
        }
    }

    /// What consumers in another store connect to, by a data plane that is there already.
    pub fn at(mode: Mode, source: Source, plane: (SocketAddr, Token)) -> Wiring {
        Wiring {
            mode,
            source: Arc::new(source),
            plane: Some(plane),
            _server: None,
        }
    }

    /// Where the data plane of the source listens, and its token, if there is one.
    pub fn plane(&self) -> Option<(SocketAddr, &Token)> {
        let (address, token) = self.plane.as_ref()?;
        Some((*address, token))
    }

    /// One more consumer.
    pub fn consumer(&self) -> Box<dyn Read + Send> {
        self.another().expect("the side of the ring is free")
    }

    /// One more consumer; none if the side of the ring was taken, in one store.
    pub fn another(&self) -> Option<Box<dyn Read + Send>> {
        let Some((address, token)) = &self.plane else {
            return match &*self.source {
                Source::Object(reader) => {
                    let follows = self.mode.follows_production();
                    Some(local(self.mode, again(reader), follows))
                }
                Source::Ring(ring) => Some(Box::new(ring.lock().unwrap().take()?)),
            };
        };
        Some(self.fetching(*address, token))
    }

    fn fetching(&self, address: SocketAddr, token: &Token) -> Box<dyn Read + Send> {
        let fetch = Fetch::new(address, token.clone(), "stream");
        if !self.mode.stores_at_consumer() {
            return Box::new(fetch);
        }
        if let Source::Object(original) = &*self.source
            && !self.mode.follows_production()
        {
            wait_for_whole(original);
        }
        let copy = growing();
        let reader = copy.reader().unwrap();
        std::thread::spawn(move || transfer(fetch, copy));
        local(self.mode, reader, self.mode.follows_transfer())
    }
}

pub fn wait_for_whole(reader: &GrowingReader) {
    // A loss is seen by whoever reads.
    let _ = again(reader).with_granularity(u64::MAX).wait();
}

/// Copies what it fetches; a copy that is not whole is lost.
pub fn transfer(mut fetch: Fetch, mut copy: GrowingWriter) {
    if io::copy(&mut fetch, &mut copy).is_ok() {
        copy.commit();
    }
}

/// A consumer of an object in its own store.
fn local(mode: Mode, reader: GrowingReader, follows: bool) -> Box<dyn Read + Send> {
    match (follows, mode) {
        (false, _) => Box::new(Whole(reader)),
        (true, Mode::IndirectPipe) => {
            let (read_end, write_end) = io::pipe().unwrap();
            let stop = Stop::new().unwrap();
            let pusher = std::thread::spawn(move || push(reader, write_end, &stop));
            Box::new(Piped {
                pipe: Some(read_end),
                pusher: Some(pusher),
            })
        }
        (true, _) => Box::new(reader),
    }
}

/// Reads nothing before the whole is there.
struct Whole(GrowingReader);

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.position_bytes() == 0 {
            wait_for_whole(&self.0);
        }
        self.0.read(buffer)
    }
}

/// Reads a pipe, and at its end asks whether it is one (ciel-programming-models §6.1).
struct Piped {
    pipe: Option<io::PipeReader>,
    pusher: Option<JoinHandle<io::Result<u64>>>,
}

impl Read for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.pipe.as_mut().unwrap().read(buffer)?;
        if count == 0
            && let Some(pusher) = self.pusher.take()
        {
            pusher.join().unwrap()?;
        }
        Ok(count)
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        drop(self.pipe.take());
    }
}
