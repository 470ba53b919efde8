//! Each way of the bytes beside the plainest one that could do the same, as ratios of one run.
//!
//! The two sides of a row alternate, and the median ratio of a pair counts, so that a busy machine
//! slows both. `CIEL_STREAM_BYTES` sets the bytes of a stream, 256 MiB unless told.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ciel_data_plane::{
    Arenas, Catalogue, Fetch, Fifo, Found, GrowingReader, GrowingWriter, Progress, Ring, Server,
    Stop, Token, push, store,
};

const PIECE: usize = 256 << 10;
const RING: usize = 4 << 20;
const PAIRS: usize = 9;

fn stream_bytes() -> u64 {
    let asked = std::env::var("CIEL_STREAM_BYTES").ok();
    asked.map_or(256 << 20, |bytes| bytes.parse().expect("a number of bytes"))
}

/// What a consumer does with bytes: it looks at every word.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8);
    words.fold(0, |sum: u64, word| {
        sum.wrapping_add(u64::from_le_bytes(word.try_into().expect("eight bytes")))
    })
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Alternates two ways of the same bytes and prints both, and how fast the first is beside the
/// second.
fn compare(name: &str, mut ours: impl FnMut(), mut plain: impl FnMut()) {
    let time = |act: &mut dyn FnMut()| {
        let start = Instant::now();
        act();
        start.elapsed().as_secs_f64()
    };
    let pairs: Vec<_> = (0..PAIRS)
        .map(|_| (time(&mut ours), time(&mut plain)))
        .collect();
    let ratio = median(pairs.iter().map(|(ours, plain)| plain / ours).collect());
    let speed = |times: Vec<f64>| stream_bytes() as f64 / median(times) / 1e9;
    let (ours, plain) = pairs.into_iter().unzip();
    let (ours_speed, plain_speed) = (speed(ours), speed(plain));
    println!("{name}: {ours_speed:.2} GB/s beside {plain_speed:.2} GB/s, {ratio:.2} of it");
}

/// Writes the whole stream in pieces.
fn produce(to: &mut impl Write) {
    let piece = vec![3; PIECE];
    let mut rest = stream_bytes();
    while rest > 0 {
        let count = rest.min(PIECE as u64) as usize;
        to.write_all(&piece[..count]).expect("it is read");
        rest -= count as u64;
    }
}

fn consume(from: &mut impl Read) {
    let mut buffer = vec![0; PIECE];
    let mut total = 0;
    let mut bytes = 0;
    loop {
        let count = from.read(&mut buffer).expect("the producer ends well");
        if count == 0 {
            break;
        }
        total ^= sum(&buffer[..count]);
        bytes += count as u64;
    }
    assert_eq!(bytes, stream_bytes());
    std::hint::black_box(total);
}

fn shared_ring() {
    let ring = Ring::create(RING).expect("there is memory");
    let (mut writer, mut reader) = (ring.writer().expect("new"), ring.reader().expect("new"));
    thread::scope(|scope| {
        scope.spawn(move || {
            produce(&mut writer);
            writer.end();
        });
        let mut total = 0;
        loop {
            let bytes = reader.peek().expect("the producer ends well");
            if bytes.is_empty() {
                break;
            }
            let count = bytes.len().min(PIECE);
            total ^= sum(&bytes[..count]);
            reader.consume(count);
        }
        std::hint::black_box(total);
    });
}

/// Two counts and slots of one piece, in the memory of one process; who waits yields.
fn plain_ring() {
    let slots: Vec<Mutex<Vec<u8>>> = (0..RING / PIECE)
        .map(|_| Mutex::new(vec![0; PIECE]))
        .collect();
    let (head, tail) = (AtomicU64::new(0), AtomicU64::new(0));
    let turns = stream_bytes() / PIECE as u64;
    let wait = |is_ready: &dyn Fn() -> bool| {
        while !is_ready() {
            thread::yield_now();
        }
    };
    let slot = |turn: u64| slots[turn as usize % slots.len()].lock().expect("no panic");
    thread::scope(|scope| {
        scope.spawn(|| {
            let piece = vec![3; PIECE];
            for turn in 0..turns {
                wait(&|| turn - tail.load(Ordering::Acquire) < slots.len() as u64);
                slot(turn).copy_from_slice(&piece);
                head.store(turn + 1, Ordering::Release);
            }
        });
        let mut total = 0;
        for turn in 0..turns {
            wait(&|| head.load(Ordering::Acquire) > turn);
            total ^= sum(&slot(turn));
            tail.store(turn + 1, Ordering::Release);
        }
        std::hint::black_box(total);
    });
}

fn held_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = Fifo::create(&folder.path().join("out")).expect("a pipe");
    let path = fifo.path().to_owned();
    let reads = path.clone();
    thread::scope(|scope| {
        let consumer = scope.spawn(move || consume(&mut File::open(reads).expect("a pipe")));
        produce(&mut File::options().write(true).open(path).expect("a pipe"));
        assert!(
            fifo.end(&Stop::new().expect("a signal"))
                .expect("it is watched")
        );
        consumer.join().expect("it reads");
    });
}

fn bare_pipe() {
    let (mut reader, mut writer) = io::pipe().expect("a pipe");
    rustix::pipe::fcntl_setpipe_size(&writer, ciel_data_plane::limits::PIPE_BYTES).expect("room");
    thread::scope(|scope| {
        scope.spawn(move || consume(&mut reader));
        produce(&mut writer);
        drop(writer);
    });
}

fn growing() -> GrowingWriter {
    let progress = Arc::new(Progress::in_memory().expect("a page"));
    GrowingWriter::new(tempfile::tempfile().expect("a file"), progress)
}

fn page_cache() {
    let mut file = tempfile::tempfile().expect("a file");
    produce(&mut file);
    let mut at = 0;
    let mut buffer = vec![0; PIECE];
    while let Ok(count @ 1..) = file.read_at(&mut buffer, at) {
        std::hint::black_box(sum(&buffer[..count]));
        at += count as u64;
    }
}

fn through(consumer: impl FnOnce(GrowingReader) + Send) {
    let mut writer = growing();
    let reader = writer.reader().expect("a handle");
    thread::scope(|scope| {
        scope.spawn(move || consumer(reader));
        produce(&mut writer);
        writer.commit();
    });
}

fn indirect_file() {
    through(|mut reader| consume(&mut reader));
}

fn indirect_pipe() {
    through(|reader| {
        let (mut read_end, write_end) = io::pipe().expect("a pipe");
        rustix::pipe::fcntl_setpipe_size(&write_end, ciel_data_plane::limits::PIPE_BYTES)
            .expect("room");
        let stop = Stop::new().expect("a signal");
        let pusher = thread::spawn(move || push(reader, write_end, &stop));
        consume(&mut read_end);
        pusher.join().expect("no panic").expect("a true end");
    });
}

/// Gives one stream, once.
struct One(Mutex<Option<Found>>);

impl Catalogue for One {
    fn find(&self, _name: &str) -> Found {
        let mut found = self.0.lock().expect("no panic");
        found.take().unwrap_or(Found::Nothing)
    }
}

fn with_server(found: Found, consumer: impl FnOnce(Fetch)) {
    let token = Token::random().expect("random bytes");
    let address = "127.0.0.1:0".parse().expect("an address");
    let one = Arc::new(One(Mutex::new(Some(found))));
    let server = Server::start(address, token.clone(), one).expect("a port");
    consumer(Fetch::new(server.address(), token, "stream"));
}

fn indirect_tcp() {
    through(|reader| with_server(Found::Stored(reader), |mut fetch| consume(&mut fetch)));
}

fn fallen_back() {
    let (read_end, mut write_end) = io::pipe().expect("a pipe");
    rustix::pipe::fcntl_setpipe_size(&write_end, ciel_data_plane::limits::PIPE_BYTES)
        .expect("room");
    let mut object = growing();
    let stop = Stop::new().expect("a signal");
    thread::scope(|scope| {
        scope.spawn(move || produce(&mut write_end));
        store(read_end, &mut object, &stop).expect("there is room");
    });
    assert_eq!(object.commit(), stream_bytes());
}

fn recycled_arena(arenas: &Arenas) {
    let mut arena = arenas
        .take(stream_bytes() as usize)
        .expect("there is memory");
    // SAFETY: nobody else has this arena.
    unsafe { arena.bytes_mut() }.fill(3);
}

/// Writes a whole object; another store fetches the whole of it; then it is read.
fn no_stream_between_stores() {
    let mut original = growing();
    let reader = original.reader().expect("a handle");
    produce(&mut original);
    original.commit();
    let mut copy = growing();
    let mut reads = copy.reader().expect("a handle");
    with_server(Found::Stored(reader), |mut fetch| {
        io::copy(&mut fetch, &mut copy).expect("a true end");
    });
    copy.commit();
    consume(&mut reads);
}

fn direct_between_stores() {
    let ring = Ring::create(RING).expect("there is memory");
    let mut writer = ring.writer().expect("new");
    let reader = ring.reader().expect("new");
    thread::scope(|scope| {
        scope.spawn(move || {
            produce(&mut writer);
            writer.end();
        });
        with_server(Found::Direct(Box::new(reader)), |mut fetch| {
            consume(&mut fetch)
        });
    });
}

/// From the write of one byte into an idle ring to its reading, in microseconds.
fn first_byte_us() -> Vec<f64> {
    let ring = Ring::create(RING).expect("there is memory");
    let (mut writer, mut reader) = (ring.writer().expect("new"), ring.reader().expect("new"));
    let start = Instant::now();
    let consumer = thread::spawn(move || {
        let mut times = Vec::new();
        while let Ok(&[_, ..]) = reader.peek() {
            times.push(start.elapsed());
            reader.consume(1);
        }
        times
    });
    let mut sent = Vec::new();
    for _ in 0..500 {
        // Long enough for the consumer to fall asleep.
        thread::sleep(Duration::from_millis(1));
        sent.push(start.elapsed());
        writer.put(&[1]).expect("it is read");
    }
    writer.end();
    let seen = consumer.join().expect("no panic");
    let pairs = seen.into_iter().zip(sent);
    let mut times: Vec<f64> = pairs
        .map(|(seen, sent)| (seen - sent).as_secs_f64() * 1e6)
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

fn main() {
    // Under `cargo test --benches` there is nothing to test.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    compare(
        "shared-memory ring beside a plain ring",
        shared_ring,
        plain_ring,
    );
    compare("held pipe beside a bare pipe", held_pipe, bare_pipe);
    compare(
        "indirect_file beside the page cache",
        indirect_file,
        page_cache,
    );
    compare(
        "indirect_pipe beside the page cache",
        indirect_pipe,
        page_cache,
    );
    compare(
        "indirect_tcp beside the page cache",
        indirect_tcp,
        page_cache,
    );
    compare(
        "fallen back to an object beside the page cache",
        fallen_back,
        page_cache,
    );
    compare(
        "direct beside no_stream in one store",
        shared_ring,
        page_cache,
    );
    compare(
        "direct beside no_stream between two stores",
        direct_between_stores,
        no_stream_between_stores,
    );
    let arenas = Arenas::new(usize::MAX);
    let fresh = || recycled_arena(&Arenas::new(0));
    compare(
        "recycled arena beside a fresh one",
        || recycled_arena(&arenas),
        fresh,
    );
    let times = first_byte_us();
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    println!(
        "first byte through an idle ring: median {:.0} us, 99th of 100 {:.0} us",
        at(0.5),
        at(0.99)
    );
}
