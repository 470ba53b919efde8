//! Memory and work bounds, by what each test thread allocates.

use allocation_counter::measure;
use ciel_ordered::limits::{COALESCED_BYTES_MAX, HELD_BYTES_AFTER_SPILL, HELD_BYTES_MAX};
use ciel_ordered::{Extent, OrderedStream, StrandKey};

/// Bytes held more than before, and at most, while `act` runs.
fn measured<T>(act: impl FnOnce() -> T) -> (T, i64, u64) {
    let mut outcome = None;
    let bytes = measure(|| outcome = Some(act()));
    let outcome = outcome.expect("the act has run");
    (outcome, bytes.bytes_current, bytes.bytes_max)
}

const ROOT: StrandKey = StrandKey(0);

fn stream_with_root() -> OrderedStream {
    let mut stream = OrderedStream::new();
    stream.open_root(ROOT).unwrap();
    stream
}

fn fan_out(children: u64) -> OrderedStream {
    let mut stream = stream_with_root();
    for child in 1..=children {
        stream.spawn(ROOT, StrandKey(child)).unwrap();
    }
    stream
}

#[test]
fn wide_fan_out_of_silent_children_costs_at_most_a_hundred_bytes_each() {
    let (mut stream, held, _) = measured(|| fan_out(100_000));
    assert!(held <= 100 * 100_000, "{held} bytes");
    for child in 1..=100_000 {
        stream.close(StrandKey(child)).unwrap();
    }
    stream.close(ROOT).unwrap();
    assert!(stream.take_ready(1).is_none());
    let gauges = stream.gauges();
    assert_eq!((gauges.strands, gauges.steps), (0, 200_000));
}

#[test]
fn chain_of_last_events_is_walked_in_constant_memory() {
    for parent_closes_first in [true, false] {
        let mut stream = stream_with_root();
        let ((), _, peak) = measured(|| {
            for child in 1..=1_000_000 {
                let (parent, child) = (StrandKey(child - 1), StrandKey(child));
                stream.spawn(parent, child).unwrap();
                if parent_closes_first {
                    stream.close(parent).unwrap();
                }
                assert!(stream.take_ready(1).is_none());
                if !parent_closes_first {
                    stream.close(parent).unwrap();
                }
                assert!(stream.gauges().strands <= 1);
            }
        });
        assert!(peak < 16 << 10, "{peak} bytes");
    }
}

#[test]
fn chain_that_waits_behind_the_frontier_is_released_without_recursion() {
    let mut stream = stream_with_root();
    let depth = 1_000_000;
    for child in 1..=depth {
        stream
            .spawn(StrandKey(child - 1), StrandKey(child))
            .unwrap();
    }
    stream.write(StrandKey(depth), b"deep".to_vec()).unwrap();
    assert_eq!(
        stream.take_ready(9).map(|chunk| chunk.strand),
        Some(StrandKey(depth))
    );
    for strand in 0..=depth {
        stream.close(StrandKey(strand)).unwrap();
    }
    assert!(stream.take_ready(9).is_none());
    assert_eq!(stream.gauges().strands, 0);
}

#[test]
fn chain_cut_off_or_rolled_back_vanishes_without_recursion() {
    let mut stream = stream_with_root();
    stream.hold(ROOT).unwrap();
    for child in 1..=1_000_000 {
        stream
            .spawn(StrandKey(child - 1), StrandKey(child))
            .unwrap();
    }
    stream.withdraw(ROOT).unwrap();
    assert_eq!(stream.gauges().strands, 1);
}

#[test]
fn endless_strand_that_is_marked_needs_constant_memory() {
    let mut stream = stream_with_root();
    let ((), _, peak) = measured(|| {
        for child in 1..=200_000 {
            stream.write(ROOT, b"line of the loop\n".to_vec()).unwrap();
            stream.spawn(ROOT, StrandKey(child)).unwrap();
            stream.close(StrandKey(child)).unwrap();
            stream.mark(ROOT).unwrap();
            while stream.take_ready(1 << 20).is_some() {}
        }
    });
    assert!(peak < 16 << 10, "{peak} bytes");
}

#[test]
fn small_writes_of_a_waiting_strand_are_joined() {
    let mut stream = fan_out(1);
    let writes = 200_000;
    let ((), held, _) = measured(|| {
        for _ in 0..writes {
            stream.write(ROOT, b"ten bytes\n".to_vec()).unwrap();
        }
    });
    let bytes = 10 * writes;
    assert!(held < bytes * 21 / 20, "{held} bytes for {bytes}");
    stream.close(StrandKey(1)).unwrap();
    let mut chunks = 0;
    while stream.take_ready(u64::MAX).is_some() {
        chunks += 1;
    }
    assert!(
        chunks <= bytes / COALESCED_BYTES_MAX as i64 + 1,
        "{chunks} chunks"
    );
    assert_eq!(stream.gauges().released_bytes, bytes as u64);
}

#[test]
fn held_output_beyond_the_bound_leaves_memory() {
    let mut stream = fan_out(1000);
    let mut stored = 0;
    let ((), _, peak) = measured(|| {
        for round in 0..64 {
            for child in 2..=1000 {
                let line = vec![round; 1000];
                stream.write(StrandKey(child), line).unwrap();
                let excess = stream.excess_bytes();
                for spill in stream.spillable(excess) {
                    let length = spill.bytes.len() as u64;
                    let extent = Extent {
                        blob: 0,
                        offset: stored,
                        length,
                    };
                    stored += length;
                    stream.replace(spill.ticket, extent).unwrap();
                }
                // The next line needs no further search for pieces.
                let held_max = match excess {
                    0 => HELD_BYTES_MAX,
                    _ => HELD_BYTES_AFTER_SPILL,
                };
                assert!(stream.held_bytes() <= held_max);
            }
        }
    });
    assert!(peak < 2 * HELD_BYTES_MAX + (4 << 20), "{peak} bytes");
    assert!(stored > 40 << 20);
    for child in 1..=1000 {
        stream.close(StrandKey(child)).unwrap();
    }
    while stream.take_ready(u64::MAX).is_some() {}
    assert_eq!(stream.gauges().released_bytes, 64 * 999 * 1000);
}

#[test]
fn serial_writer_at_the_frontier_holds_and_spills_nothing() {
    let mut stream = stream_with_root();
    for _ in 0..1000 {
        stream.write(ROOT, vec![b'x'; 100]).unwrap();
        assert!(stream.take_ready(u64::MAX).is_some());
        assert_eq!((stream.held_bytes(), stream.excess_bytes()), (0, 0));
    }
    assert_eq!(stream.gauges().steps, 1000);
}
