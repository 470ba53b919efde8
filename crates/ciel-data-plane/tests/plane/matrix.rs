//! Every mode, in every case, within one store and between two.

use std::sync::mpsc;
use std::time::Instant;

use ciel_data_plane::StreamFault;
use ciel_streams::Mode;

use crate::bytes::{Numbers, read, write};
use crate::proxy::Fault;
use crate::wiring::{Layout, Producer, Wiring, connect};

/// Bytes of a large stream; `CIEL_STREAM_BYTES` asks for more, 5 GB for example.
fn large() -> u64 {
    let asked = std::env::var("CIEL_STREAM_BYTES").ok();
    asked.map_or(3 << 20, |bytes| bytes.parse().expect("a number of bytes"))
}

const SOME: u64 = 300_001;

fn layouts() -> [Layout; 2] {
    [Layout::OneStore, Layout::TwoStores(Vec::new())]
}

fn each(mut case: impl FnMut(Mode, &Layout)) {
    for mode in Mode::ALL {
        for layout in &layouts() {
            eprintln!("{mode}, {layout:?}");
            case(mode, layout);
        }
    }
}

/// Writes so many bytes in a thread and commits, or dies.
fn produce(mut producer: Producer, length: u64, piece: u64, ends_well: bool) -> impl FnOnce() {
    let thread = std::thread::spawn(move || {
        let mut numbers = Numbers(length ^ piece);
        let pieces = || 1 + numbers.below(piece);
        write(&mut producer, length, pieces).expect("no consumer fails its producer");
        if ends_well {
            producer.commit();
        }
    });
    move || thread.join().unwrap()
}

fn reads_whole(mode: Mode, layout: &Layout, length: u64, piece: u64, buffer: usize) {
    let (producer, wiring) = connect(mode, layout);
    let join = produce(producer, length, piece, true);
    let (bytes, end) = read(&mut *wiring.consumer(), 0, u64::MAX, buffer);
    end.unwrap();
    assert_eq!(bytes, length);
    join();
}

#[test]
fn stream_of_no_bytes_ends_at_once_in_every_mode() {
    each(|mode, layout| reads_whole(mode, layout, 0, 1, 100));
}

#[test]
fn stream_of_one_byte_arrives_in_every_mode() {
    each(|mode, layout| reads_whole(mode, layout, 1, 1, 100));
}

/// Memory of this process at most, whatever the bytes of a stream: none is kept whole.
const PEAK_KIB_MAX: u64 = 64 << 10;

/// The most memory that this process has had, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let peak = lines.find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn large_stream_arrives_whole_in_every_mode_and_memory_does_not_grow_with_it() {
    each(|mode, layout| {
        let begun = Instant::now();
        reads_whole(mode, layout, large(), 65_000, 256 << 10);
        let (seconds, peak) = (begun.elapsed().as_secs_f64(), peak_kib());
        eprintln!("  {} bytes in {seconds:.1} s, peak {peak} KiB", large());
        assert!(peak <= PEAK_KIB_MAX, "{mode}, {layout:?}: {peak} KiB");
    });
}

#[test]
fn bursts_arrive_whole_in_every_mode() {
    each(|mode, layout| reads_whole(mode, layout, SOME, 3_000, 64 << 10));
}

#[test]
fn slow_consumer_gets_every_byte_in_every_mode() {
    each(|mode, layout| reads_whole(mode, layout, 100_003, 50_000, 13));
}

#[test]
fn late_consumer_gets_every_byte_in_every_mode() {
    each(|mode, layout| {
        let (mut producer, wiring) = connect(mode, layout);
        let (first_written, wait) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut written = 0;
            write(&mut producer, SOME, || {
                written += 1;
                if written == 4 {
                    first_written.send(()).unwrap();
                }
                10_000
            })
            .unwrap();
            producer.commit();
        });
        wait.recv().unwrap();
        let (bytes, end) = read(&mut *wiring.consumer(), 0, u64::MAX, 5_000);
        end.unwrap();
        assert_eq!(bytes, SOME);
        thread.join().unwrap();
    });
}

#[test]
fn consumer_that_leaves_does_not_fail_the_producer_in_any_mode() {
    each(|mode, layout| {
        let (producer, wiring) = connect(mode, layout);
        let join = produce(producer, 2_000_000, 50_000, true);
        let mut consumer = wiring.consumer();
        let (bytes, end) = read(&mut *consumer, 0, 1_000, 100);
        end.unwrap();
        assert_eq!(bytes, 1_000);
        drop(consumer);
        join();
    });
}

#[test]
fn producer_that_dies_is_no_end_in_any_mode() {
    let mut numbers = Numbers(7);
    each(|mode, layout| {
        for turn in 0..6 {
            let dies_at = if turn == 0 { 0 } else { numbers.below(SOME) };
            let (producer, wiring) = connect(mode, layout);
            let join = produce(producer, dies_at, 9_000, false);
            let (bytes, end) = read(&mut *wiring.consumer(), 0, u64::MAX, 30_000);
            let error = end.expect_err("a false end");
            assert!(bytes <= dies_at, "{bytes} of {dies_at}: {error}");
            join();
        }
    });
}

#[test]
fn several_consumers_each_get_every_byte_in_stored_modes() {
    each(|mode, layout| {
        if mode == Mode::Direct {
            return;
        }
        let (producer, wiring) = connect(mode, layout);
        let join = produce(producer, SOME, 20_000, true);
        std::thread::scope(|scope| {
            for number in 0..3 {
                let wiring = &wiring;
                scope.spawn(move || {
                    let (bytes, end) =
                        read(&mut *wiring.consumer(), 0, u64::MAX, 1_000 + 9_000 * number);
                    end.unwrap();
                    assert_eq!(bytes, SOME);
                });
            }
        });
        join();
    });
}

#[test]
fn stored_stream_is_read_once_more_after_its_end() {
    each(|mode, layout| {
        if mode == Mode::Direct {
            return;
        }
        let (producer, wiring) = connect(mode, layout);
        produce(producer, SOME, 20_000, true)();
        for _ in 0..2 {
            let (bytes, end) = read(&mut *wiring.consumer(), 0, u64::MAX, 10_000);
            end.unwrap();
            assert_eq!(bytes, SOME);
        }
    });
}

#[test]
fn second_consumer_of_a_direct_stream_is_told_that_it_is_not_stored() {
    for layout in &layouts() {
        let (producer, wiring) = connect(Mode::Direct, layout);
        let join = produce(producer, SOME, 20_000, true);
        let mut consumer = wiring.consumer();
        let (first, end) = read(&mut *consumer, 0, 1_000, 1_000);
        end.unwrap();
        assert!(is_not_stored(&wiring), "while the first one reads");
        let (rest, end) = read(&mut *consumer, first, u64::MAX, 10_000);
        end.unwrap();
        assert_eq!(first + rest, SOME, "the first one has all");
        join();
        assert!(is_not_stored(&wiring), "after the end");
    }
}

/// Whether one more consumer of a direct stream is told so.
fn is_not_stored(wiring: &Wiring) -> bool {
    let Some(mut consumer) = wiring.another() else {
        return true;
    };
    let (bytes, end) = read(&mut *consumer, 0, u64::MAX, 1_000);
    let error = end.expect_err("the bytes went to another consumer");
    let fault = StreamFault::of(&error);
    assert_eq!(bytes, 0);
    matches!(fault, Some(StreamFault::NotStored { read: 0 }))
}

#[test]
fn data_plane_that_dies_at_any_offset_costs_no_byte_and_shows_no_false_end() {
    for seed in 0..8 {
        let mut numbers = Numbers(seed);
        for mode in Mode::ALL {
            let fault = |_| match numbers.below(3) {
                0 => Fault::FlipBit(200 + numbers.below(SOME)),
                _ => Fault::Cut(numbers.below(SOME)),
            };
            let faults: Vec<Fault> = (0..4).map(fault).collect();
            eprintln!("seed {seed}, {mode}, {faults:?}");
            let (producer, wiring) = connect(mode, &Layout::TwoStores(faults));
            let join = produce(producer, SOME, 20_000, true);
            let (bytes, end) = read(&mut *wiring.consumer(), 0, u64::MAX, 10_000);
            match end {
                Ok(()) => assert_eq!(bytes, SOME),
                Err(error) => assert_eq!(mode, Mode::Direct, "seed {seed}: {error}"),
            }
            join();
        }
    }
}
