//! Random reads of a file of a million extents, beside those of the flat file.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;

use ciel_cio::{Item, ROOT, Reader, Writer, flatten};
use criterion::{Criterion, criterion_group, criterion_main};

const EXTENTS: u64 = 1_000_000;

/// Bytes of an extent; a read may lie in two of them.
const EXTENT_BYTES: usize = 48;

/// A file whose last bytes were written first, so that no neighbours are one extent.
fn scattered() -> Reader<File> {
    let file = tempfile::tempfile().expect("a file");
    let writer = Writer::create(file.try_clone().expect("a handle")).expect("it is empty");
    let write = |number: u64| {
        let bytes = [number as u8; EXTENT_BYTES];
        Item::Data(writer.write(&bytes).expect("there is room"))
    };
    let mut items: Vec<Item> = (0..EXTENTS).map(write).collect();
    items.reverse();
    writer.commit(ROOT, &items, true).expect("there is room");
    let extents = writer.close().expect("everything is committed");
    assert_eq!(extents.len() as u64, EXTENTS);
    Reader::open(file).expect("it was closed")
}

/// Places in the flat view, in an order without a pattern.
fn places(bytes: u64) -> impl Iterator<Item = u64> {
    let step = 0x9e37_79b9_7f4a_7c15_u64;
    (0..).map(move |turn: u64| turn.wrapping_mul(step) % bytes)
}

fn reads(criterion: &mut Criterion) {
    let reader = scattered();
    let flat = tempfile::tempfile().expect("a file");
    flatten(&reader, &flat, 2).expect("it is complete");
    let bytes = reader.extents().bytes() - EXTENT_BYTES as u64;
    let mut group = criterion.benchmark_group("random read");
    let mut buffer = [0; 40];
    let mut at = places(bytes);
    group.bench_function("of a million extents", |bench| {
        bench.iter(|| {
            let count = reader.read_at(&mut buffer, at.next().expect("it is endless"));
            black_box(count.expect("it can be read"))
        });
    });
    group.bench_function("of the flat file", |bench| {
        bench.iter(|| {
            let count = flat.read_at(&mut buffer, at.next().expect("it is endless"));
            black_box(count.expect("it can be read"))
        });
    });
    group.finish();
}

criterion_group!(benches, reads);
criterion_main!(benches);
