//! The thesis' dag-write: a deep tree of joins that writes a line at each leaf.
//!
//! `dag_write --output FILE [--threads N] [--depth D] [--steps S] [--kind ordered|unordered|none]
//! [--serial]` prints the seconds it took. `unordered` is what people write who need no order: each
//! thread has a buffer of its own, and appends it to the file when it is full. `--serial` is a
//! plain recursion with one buffer. Read next: bench/ordered.

mod common;

use std::cell::RefCell;
use std::fs;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use ciel_files::{File, Mode};
use common::Arguments;

/// Bytes that a writer gathers, as `ciel-files` does.
const BUFFER_BYTES: usize = 64 << 10;

/// What a leaf does besides writing: steps of a generator, two nanoseconds each.
fn work(place: u64, steps: u32) -> u64 {
    (0..steps).fold(place, |state, _| {
        black_box(
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1),
        )
    })
}

fn line(to: &mut impl Write, place: u64, value: u64) {
    writeln!(to, "leaf {place:012} has the value {value:016x}").expect("it is written");
}

fn serial(depth: u32, place: u64, leaf: &impl Fn(u64)) {
    match depth {
        0 => leaf(place),
        _ => {
            serial(depth - 1, 2 * place, leaf);
            serial(depth - 1, 2 * place + 1, leaf);
        }
    }
}

fn plain(depth: u32, place: u64, leaf: &(impl Fn(u64) + Sync)) {
    match depth {
        0 => leaf(place),
        _ => {
            let right = || plain(depth - 1, 2 * place + 1, leaf);
            rayon::join(|| plain(depth - 1, 2 * place, leaf), right);
        }
    }
}

fn ordered(depth: u32, place: u64, leaf: &(impl Fn(u64) + Sync)) {
    match depth {
        0 => leaf(place),
        _ => {
            let right = || ordered(depth - 1, 2 * place + 1, leaf);
            ciel_files::join(|| ordered(depth - 1, 2 * place, leaf), right);
        }
    }
}

thread_local! {
    static OWN: RefCell<Option<BufWriter<fs::File>>> = const { RefCell::new(None) };
}

fn run_unordered(path: &Path, depth: u32, steps: u32, pool: &rayon::ThreadPool) {
    let file = fs::File::create(path).expect("the file can be made");
    pool.broadcast(|_| {
        let file = file.try_clone().expect("a descriptor is left");
        OWN.set(Some(BufWriter::with_capacity(BUFFER_BYTES, file)));
    });
    pool.install(|| {
        plain(depth, 1, &|place| {
            let value = work(place, steps);
            OWN.with_borrow_mut(|own| {
                line(own.as_mut().expect("each thread has one"), place, value)
            });
        });
    });
    pool.broadcast(|_| drop(OWN.take()));
}

fn run_ordered(path: &Path, depth: u32, steps: u32, pool: &rayon::ThreadPool) {
    pool.install(|| {
        let file = File::create(path, Mode::SerialAppend).expect("the file can be made");
        ordered(depth, 1, &|place| {
            line(&mut &file, place, work(place, steps));
        });
        file.close().expect("it is written");
    });
}

fn run_serial(path: &Path, depth: u32, steps: u32) {
    let file = fs::File::create(path).expect("the file can be made");
    let to = RefCell::new(BufWriter::with_capacity(BUFFER_BYTES, file));
    serial(depth, 1, &|place| {
        line(&mut *to.borrow_mut(), place, work(place, steps));
    });
}

fn main() {
    let arguments = Arguments::of_command("dag_write");
    let (path, depth) = (arguments.path("output"), arguments.number("depth", 18));
    let steps = arguments.number("steps", 150);
    let kind = arguments.text("kind", "ordered");
    let pool = arguments.pool();
    let begin = Instant::now();
    match kind.as_str() {
        _ if arguments.is_serial() => run_serial(&path, depth, steps),
        "ordered" => run_ordered(&path, depth, steps, &pool),
        "unordered" => run_unordered(&path, depth, steps, &pool),
        "none" => pool.install(|| {
            plain(depth, 1, &|place| {
                black_box(work(place, steps));
            });
        }),
        other => arguments.refuse(&format!("kind {other} is unknown")),
    }
    println!("{:.6}", begin.elapsed().as_secs_f64());
}
