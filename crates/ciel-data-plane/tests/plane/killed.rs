//! Producers, consumers and data planes as processes, killed at random offsets under seeds.
//!
//! In every mode, within one store and between two. `CIEL_STREAM_KILLS` says how often in each.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::process::ExitStatus;
use std::sync::mpsc;
use std::thread::JoinHandle;

use ciel_data_plane::{Fetch, GrowingWriter, Ring, Stop, StreamFault, Token, push};
use ciel_streams::Mode;

use crate::bytes::{Numbers, read, write};
use crate::processes::{NOT_STORED, Object, Sides, await_killed, digits, is_killed};
use crate::wiring::{Layout, Producer, Source, Wiring, transfer, wait_for_whole};

/// Bytes of a stream: more than what pipe, ring and sockets hold of it.
const LENGTH: u64 = 3_000_017;

const RING_BYTES: usize = 64 << 10;

fn kills() -> u64 {
    let asked = std::env::var("CIEL_STREAM_KILLS").ok();
    asked.map_or(2, |kills| kills.parse().expect("a number of kills"))
}

/// Every mode and layout, and an offset for each seed.
fn each(mut case: impl FnMut(Mode, &Layout, u64)) {
    for seed in 0..kills() {
        let mut numbers = Numbers(seed);
        for mode in Mode::ALL {
            for layout in [Layout::OneStore, Layout::TwoStores(Vec::new())] {
                let offset = numbers.below(LENGTH);
                eprintln!("seed {seed}: {mode}, {layout:?}, at {offset}");
                case(mode, &layout, offset);
            }
        }
    }
}

/// What a producer writes to, which any process can open.
enum Place {
    Object(Object),
    Ring(Ring),
}

impl Place {
    fn new(mode: Mode) -> Place {
        match mode {
            Mode::Direct => Place::Ring(Ring::create(RING_BYTES).unwrap()),
            _ => Place::Object(Object::new()),
        }
    }

    fn producer(&self) -> Producer {
        match self {
            Place::Object(object) => Producer::Object(object.writer()),
            Place::Ring(ring) => Producer::Ring(ring.writer().unwrap()),
        }
    }

    /// The words of a side for it.
    fn words(&self) -> Vec<String> {
        match self {
            Place::Object(object) => object.words(),
            Place::Ring(ring) => {
                let descriptor = ring.descriptor().as_raw_fd();
                vec![format!("/proc/{}/fd/{descriptor}", std::process::id())]
            }
        }
    }

    /// What is behind it for consumers. The side of a ring is taken here only to be sent on.
    fn wiring(&self, mode: Mode, layout: &Layout) -> Wiring {
        let source = match (self, layout) {
            (Place::Object(object), _) => Source::Object(object.reader()),
            (Place::Ring(ring), Layout::TwoStores(_)) => Source::of_ring(ring.reader()),
            (Place::Ring(_), Layout::OneStore) => Source::of_ring(None),
        };
        Wiring::new(mode, layout, source)
    }
}

/// A consumer process of a stream: it dies at an offset, or reads all that there is.
fn consume(
    sides: Sides,
    place: &Place,
    wiring: &Wiring,
    mode: Mode,
    dies_at: Option<u64>,
) -> ExitStatus {
    let Some((address, token)) = wiring.plane() else {
        return consume_here(sides, place, mode, dies_at, mode.follows_production());
    };
    if !mode.stores_at_consumer() {
        let source = ["fetch".to_owned(), address.to_string(), digits(token)];
        return sides.consumer(&source, dies_at, LENGTH).status().unwrap();
    }
    if let Place::Object(object) = place
        && !mode.follows_production()
    {
        wait_for_whole(&object.reader());
    }
    let copy = Object::new();
    let (fetch, writer) = (Fetch::new(address, token.clone(), "stream"), copy.writer());
    let transfer = std::thread::spawn(move || transfer(fetch, writer));
    let copy = Place::Object(copy);
    let status = consume_here(sides, &copy, mode, dies_at, mode.follows_transfer());
    // A copy of a stream whose producer still waits for this consumer ends after it.
    drop(transfer);
    status
}

/// A consumer process of what is in its own store.
fn consume_here(
    sides: Sides,
    place: &Place,
    mode: Mode,
    dies_at: Option<u64>,
    follows: bool,
) -> ExitStatus {
    let run = |source: &str, words: Vec<String>| {
        let source = [vec![source.to_owned()], words].concat();
        sides.consumer(&source, dies_at, LENGTH)
    };
    let object = match place {
        Place::Object(object) => object,
        Place::Ring(ring) => {
            let status = run("ring", place.words()).status().unwrap();
            // Who watches the processes says so.
            ring.consumer_left();
            return status;
        }
    };
    if !follows {
        wait_for_whole(&object.reader());
    }
    if mode != Mode::IndirectPipe {
        return run("file", object.words()).status().unwrap();
    }
    let (read_end, write_end) = io::pipe().unwrap();
    let mut consumer = run("pipe", Vec::new()).stdin(read_end).spawn().unwrap();
    let (reader, stop) = (object.reader(), Stop::new().unwrap());
    let pusher = std::thread::spawn(move || push(reader, write_end, &stop));
    let status = consumer.wait().unwrap();
    // Behind a consumer that has died it may wait for bytes that come when the producer continues.
    if dies_at.is_none() {
        pusher.join().unwrap().expect("a true end");
    }
    status
}

/// A producer that writes all, and ends when it is told to.
fn gated(mut producer: Producer) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (open, gate) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        write(&mut producer, LENGTH, || 50_000).expect("no consumer fails its producer");
        gate.recv().unwrap();
        producer.commit();
    });
    (open, thread)
}

#[test]
fn consumer_killed_at_any_offset_fails_no_producer_and_the_next_one_has_every_byte() {
    let sides = Sides(
        "killed::consumer_killed_at_any_offset_fails_no_producer_and_the_next_one_has_every_byte",
    );
    if sides.play() {
        return;
    }
    each(|mode, layout, offset| {
        let place = Place::new(mode);
        let wiring = place.wiring(mode, layout);
        let (open, producer) = gated(place.producer());
        if !mode.follows_production() {
            open.send(()).unwrap();
        }
        assert!(is_killed(consume(
            sides,
            &place,
            &wiring,
            mode,
            Some(offset)
        )));
        if mode.follows_production() {
            open.send(()).unwrap();
        }
        producer.join().unwrap();
        let next = consume(sides, &place, &wiring, mode, None).code();
        // The bytes of a direct stream went to the first one: this one is told so.
        let expected = if mode == Mode::Direct { NOT_STORED } else { 0 };
        assert_eq!(next, Some(expected));
    });
}

#[test]
fn producer_killed_at_any_offset_is_no_end_in_any_mode() {
    let sides = Sides("killed::producer_killed_at_any_offset_is_no_end_in_any_mode");
    if sides.play() {
        return;
    }
    each(|mode, layout, offset| {
        let place = Place::new(mode);
        let source = match &place {
            Place::Object(object) => Source::Object(object.reader()),
            Place::Ring(ring) => Source::of_ring(ring.reader()),
        };
        let wiring = Wiring::new(mode, layout, source);
        let kind = if mode == Mode::Direct {
            "fill"
        } else {
            "write"
        };
        let child = sides.producer(kind, &place.words(), offset);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                await_killed(child);
                // Who watches the processes says so.
                match &place {
                    Place::Object(object) => object.progress().lose(),
                    Place::Ring(ring) => ring.producer_lost(),
                }
            });
            let (bytes, end) = read(&mut *wiring.consumer(), 0, u64::MAX, 30_000);
            let error = end.expect_err("a false end");
            assert!(bytes <= offset, "{bytes} of {offset}: {error}");
            if wiring.plane().is_none() {
                let lost = StreamFault::ProducerLost { read: bytes };
                assert_eq!(StreamFault::of(&error), Some(&lost));
            }
        });
    });
}

#[test]
fn ring_of_a_killed_process_gives_a_prefix_and_then_a_fault() {
    let sides = Sides("killed::ring_of_a_killed_process_gives_a_prefix_and_then_a_fault");
    if sides.play() {
        return;
    }
    for seed in 0..4 {
        let ring = Ring::create(16 << 10).unwrap();
        let place = Place::Ring(ring.clone());
        let mut child = sides.producer("fill", &place.words(), u64::MAX);
        let mut reader = ring.reader().unwrap();
        let before = 1 + Numbers(seed).below(100_000);
        let (bytes, end) = read(&mut reader, 0, before, 100);
        end.unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        ring.producer_lost();
        let (rest, end) = read(&mut reader, bytes, u64::MAX, 1_000);
        let error = end.expect_err("a false end");
        let read = bytes + rest;
        assert_eq!(
            StreamFault::of(&error),
            Some(&StreamFault::ProducerLost { read })
        );
    }
}

#[test]
fn data_plane_killed_at_any_offset_is_no_end_and_the_next_one_has_the_rest() {
    let sides =
        Sides("killed::data_plane_killed_at_any_offset_is_no_end_and_the_next_one_has_the_rest");
    if sides.play() {
        return;
    }
    for seed in 0..kills() {
        let offset = Numbers(seed).below(LENGTH);
        eprintln!("seed {seed}: at {offset}");
        let (object, token) = (Object::new(), Token::random().unwrap());
        let mut writer = object.writer();
        write(&mut writer, LENGTH, || 50_000).unwrap();
        let (mut plane, address) = sides.server(&object, &token);
        let mut fetch = Fetch::new(address, token.clone(), "stream");
        let (bytes, end) = read(&mut io::Read::take(&mut fetch, offset), 0, u64::MAX, 5_000);
        end.unwrap();
        assert_eq!(bytes, offset);
        plane.kill().unwrap();
        plane.wait().unwrap();
        let (rest, end) = read(&mut fetch, offset, u64::MAX, 5_000);
        let error = end.expect_err("the object has not ended");
        assert!(matches!(
            StreamFault::of(&error),
            Some(StreamFault::Unreachable { .. })
        ));
        writer.commit();
        let (mut next, address) = sides.server(&object, &token);
        let mut fetch = Fetch::new(address, token, "stream").from(offset + rest);
        let (last, end) = read(&mut fetch, offset + rest, u64::MAX, 5_000);
        end.unwrap();
        assert_eq!(offset + rest + last, LENGTH);
        next.kill().unwrap();
        next.wait().unwrap();
    }
}

/// The consumers of a stored mode in another store, behind a data plane that is a process.
fn consumers_at(object: &Object, mode: Mode, plane: (SocketAddr, Token)) -> Wiring {
    Wiring::at(mode, Source::Object(object.reader()), plane)
}

#[test]
fn data_plane_killed_under_a_consumer_is_no_end_in_any_mode() {
    let sides = Sides("killed::data_plane_killed_under_a_consumer_is_no_end_in_any_mode");
    if sides.play() {
        return;
    }
    let stored = || Mode::ALL.into_iter().filter(|mode| *mode != Mode::Direct);
    for (seed, mode) in (0..kills()).flat_map(|seed| stored().map(move |mode| (seed, mode))) {
        let offset = Numbers(seed).below(LENGTH);
        eprintln!("seed {seed}: {mode}, at {offset}");
        let (object, token) = (Object::new(), Token::random().unwrap());
        let mut writer = object.writer();
        write(&mut writer, LENGTH, || 50_000).unwrap();
        // A consumer that follows none but a whole object may have all of it before the kill.
        let is_whole = !mode.follows_production();
        let mut writer = Some(writer);
        if is_whole {
            writer.take().map(GrowingWriter::commit);
        }
        let (mut plane, address) = sides.server(&object, &token);
        let mut consumer = consumers_at(&object, mode, (address, token.clone())).consumer();
        let (bytes, end) = read(
            &mut io::Read::take(&mut consumer, offset),
            0,
            u64::MAX,
            5_000,
        );
        end.unwrap();
        assert_eq!(bytes, offset);
        plane.kill().unwrap();
        plane.wait().unwrap();
        let (rest, end) = read(&mut *consumer, offset, u64::MAX, 5_000);
        assert!(end.is_err() || is_whole && offset + rest == LENGTH);

        writer.map(GrowingWriter::commit);
        let (mut next, address) = sides.server(&object, &token);
        let mut consumer = consumers_at(&object, mode, (address, token)).consumer();
        let (bytes, end) = read(&mut *consumer, 0, u64::MAX, 5_000);
        end.unwrap();
        assert_eq!(bytes, LENGTH);
        next.kill().unwrap();
        next.wait().unwrap();
    }
}
