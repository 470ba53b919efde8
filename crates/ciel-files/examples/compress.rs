//! Compresses a file so that `gzip -d` reads it: each block is a member of its own.
//!
//! `compress --input FILE --output FILE [--threads N] [--level L] [--serial]` prints the seconds it
//! took. The bytes depend neither on threads nor on time. Source: the thesis' program of that name.
//! Read next: bench/ordered.

mod common;

use std::fs;
use std::io::{self, Write};
use std::time::Instant;

use ciel_files::{AppendTo, File, Mode};
use common::Arguments;
use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;

/// Bytes that are compressed together; pigz has 128 KiB.
const BLOCK_BYTES: usize = 128 << 10;

fn compress(block: &[u8], level: u32, mut to: &File) -> io::Result<()> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(BLOCK_BYTES), Compression::new(level));
    encoder.write_all(block)?;
    to.write_all(&encoder.finish()?)
}

fn run(arguments: &Arguments) -> io::Result<()> {
    let input = fs::read(arguments.path("input"))?;
    let level = arguments.number("level", 6);
    let file = File::create(arguments.path("output"), Mode::SerialAppend)?;
    match arguments.is_serial() {
        true => input
            .chunks(BLOCK_BYTES)
            .try_for_each(|block| compress(block, level, &file))?,
        false => input
            .par_chunks(BLOCK_BYTES)
            .append_to(&file, |block, file| compress(block, level, file))?,
    }
    file.close()
}

fn main() {
    let arguments = Arguments::of_command("compress");
    let pool = arguments.pool();
    let begin = Instant::now();
    if let Err(error) = pool.install(|| run(&arguments)) {
        arguments.refuse(&error.to_string());
    }
    println!("{:.6}", begin.elapsed().as_secs_f64());
}
