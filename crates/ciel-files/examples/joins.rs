//! A tree of joins with nothing in its leaves: what a fork costs that nobody takes.
//!
//! `joins [--threads N] [--depth D] [--rounds R] [--kind ordered|rayon]` prints the median time of
//! a join in nanoseconds. Read next: bench/ordered.

mod common;

use std::hint::black_box;
use std::time::Instant;

use common::Arguments;

fn ordered(depth: u32) {
    if depth > 0 {
        ciel_files::join(|| ordered(depth - 1), || ordered(depth - 1));
    }
    black_box(depth);
}

fn plain(depth: u32) {
    if depth > 0 {
        rayon::join(|| plain(depth - 1), || plain(depth - 1));
    }
    black_box(depth);
}

fn main() {
    let arguments = Arguments::of_command("joins");
    let depth: u32 = arguments.number("depth", 16);
    let tree = match arguments.text("kind", "ordered").as_str() {
        "rayon" => plain,
        "ordered" => ordered,
        other => arguments.refuse(&format!("kind {other} is neither ordered nor rayon")),
    };
    let rounds: u64 = arguments.number("rounds", 5);
    let pool = arguments.pool();
    let round = |_| {
        let begin = Instant::now();
        pool.install(|| tree(depth));
        begin.elapsed().as_nanos() as f64 / f64::from((1u32 << depth) - 1)
    };
    println!("{:.2}", common::median((0..rounds).map(round).collect()));
}
