//! What ordered output costs beside what people would write instead.
//!
//! `joins` is a tree of joins with nothing in its leaves, beside rayon's own. `leaves` is the
//! thesis' dag-write: a deep tree that writes a line at each leaf, beside a serial program with a
//! buffered writer, and, on two threads, beside writers of which each thread has its own, without
//! an order.

use std::cell::RefCell;
use std::fs;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;

use ciel_files::{File, Mode, join};
use criterion::{Criterion, criterion_group, criterion_main};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Levels of the trees.
const DEPTH: u32 = 16;
/// What a leaf does besides writing: steps of a generator, about 0.3 µs.
const STEPS: u32 = 150;

fn pool(threads: usize) -> ThreadPool {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("threads can be started")
}

fn work(place: u64) -> u64 {
    (0..STEPS).fold(place, |state, _| {
        black_box(
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1),
        )
    })
}

fn line(to: &mut impl Write, place: u64) {
    writeln!(to, "leaf {place:012} has the value {:016x}", work(place)).expect("it is written");
}

/// A tree of joins of which `leaf` is called at each leaf.
trait Joins: Sync {
    fn join(&self, a: impl FnOnce() + Send, b: impl FnOnce() + Send);

    fn tree(&self, depth: u32, place: u64, leaf: &(impl Fn(u64) + Sync)) {
        match depth {
            0 => leaf(place),
            _ => self.join(
                || self.tree(depth - 1, 2 * place, leaf),
                || self.tree(depth - 1, 2 * place + 1, leaf),
            ),
        }
    }
}

struct Rayon;
struct Ordered;

impl Joins for Rayon {
    fn join(&self, a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
        rayon::join(a, b);
    }
}

impl Joins for Ordered {
    fn join(&self, a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
        join(a, b);
    }
}

fn joins(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("joins");
    for threads in [1, 2] {
        let pool = pool(threads);
        group.bench_function(format!("rayon, {threads}"), |bencher| {
            bencher.iter(|| {
                pool.install(|| {
                    Rayon.tree(DEPTH, 1, &|place| {
                        black_box(place);
                    })
                })
            });
        });
        group.bench_function(format!("ordered, {threads}"), |bencher| {
            bencher.iter(|| {
                pool.install(|| {
                    Ordered.tree(DEPTH, 1, &|place| {
                        black_box(place);
                    })
                })
            });
        });
    }
    group.finish();
}

fn serial_leaves(path: &Path) {
    let file = fs::File::create(path).expect("the folder can be written to");
    let to = RefCell::new(BufWriter::with_capacity(64 << 10, file));
    fn tree(depth: u32, place: u64, to: &RefCell<BufWriter<fs::File>>) {
        match depth {
            0 => line(&mut *to.borrow_mut(), place),
            _ => {
                tree(depth - 1, 2 * place, to);
                tree(depth - 1, 2 * place + 1, to);
            }
        }
    }
    tree(DEPTH, 1, &to);
}

thread_local! {
    static OWN: RefCell<Option<BufWriter<fs::File>>> = const { RefCell::new(None) };
}

/// Each thread has a buffer, and appends it to the file when it is full: lines are whole, and their
/// order is none.
fn unordered_leaves(path: &Path, pool: &ThreadPool) {
    let file = fs::File::create(path).expect("the folder can be written to");
    let begin = |_: rayon::BroadcastContext<'_>| {
        let file = file.try_clone().expect("a descriptor is left");
        OWN.set(Some(BufWriter::with_capacity(64 << 10, file)));
    };
    pool.broadcast(begin);
    pool.install(|| {
        Rayon.tree(DEPTH, 1, &|place| {
            OWN.with_borrow_mut(|own| line(own.as_mut().expect("each thread has one"), place));
        });
    });
    pool.broadcast(|_| drop(OWN.take()));
}

fn ordered_leaves(path: &Path, pool: &ThreadPool) {
    pool.install(|| {
        let file = File::create(path, Mode::SerialAppend).expect("the folder can be written to");
        Ordered.tree(DEPTH, 1, &|place| line(&mut &file, place));
        file.close().expect("it is written");
    });
}

fn leaves(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let path = folder.path().join("leaves");
    let mut group = criterion.benchmark_group("leaves");
    group.bench_function("serial", |bencher| bencher.iter(|| serial_leaves(&path)));
    for threads in [1, 2] {
        let pool = pool(threads);
        group.bench_function(format!("unordered, {threads}"), |bencher| {
            bencher.iter(|| unordered_leaves(&path, &pool));
        });
        group.bench_function(format!("ordered, {threads}"), |bencher| {
            bencher.iter(|| ordered_leaves(&path, &pool));
        });
    }
    group.finish();
}

criterion_group!(benches, joins, leaves);
criterion_main!(benches);
