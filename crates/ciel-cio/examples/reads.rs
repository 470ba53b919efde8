//! Random reads of a file of a million extents, or of the flat file of the same bytes.
//!
//! `reads --file FILE [--kind cio|flat]` prints the median time of a read in microseconds: of
//! groups of reads, after one that is not counted. It writes `FILE.cio` and `FILE.flat` if they are
//! missing. Read next: bench/ordered.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use ciel_cio::{CioError, Item, ROOT, Reader, Writer, flatten};

const EXTENTS: u64 = 1_000_000;

/// Bytes of an extent, and of a read, which may lie in two of them.
const EXTENT_BYTES: usize = 48;
const READ_BYTES: usize = 40;

/// Reads whose time is taken together, and how many such groups there are.
const GROUP: u32 = 1000;
const GROUPS: usize = 101;

/// A file whose last bytes were written first, so that no neighbours are one extent.
fn write_scattered(path: &Path) -> Result<(), CioError> {
    let writer = Writer::create(File::create_new(path)?)?;
    let mut items = Vec::new();
    for number in 0..EXTENTS {
        items.push(Item::Data(writer.write(&[number as u8; EXTENT_BYTES])?));
    }
    items.reverse();
    writer.commit(ROOT, &items, true)?;
    writer.close().map(drop)
}

/// The median of the groups, in microseconds.
fn median_us(bytes: u64, read_at: impl Fn(&mut [u8], u64) -> io::Result<usize>) -> io::Result<f64> {
    let mut turn = 0_u64;
    let mut group = || {
        let mut buffer = [0; READ_BYTES];
        let begin = Instant::now();
        for _ in 0..GROUP {
            turn = turn.wrapping_add(0x9e37_79b9_7f4a_7c15);
            black_box(read_at(&mut buffer, turn % bytes)?);
        }
        Ok(begin.elapsed().as_secs_f64() * 1e6 / f64::from(GROUP))
    };
    group()?;
    let mut groups = (0..GROUPS)
        .map(|_| group())
        .collect::<io::Result<Vec<f64>>>()?;
    groups.sort_by(f64::total_cmp);
    Ok(groups[GROUPS / 2])
}

fn measure(file: &str, kind: &str) -> Result<f64, CioError> {
    let (structured, flat) = (format!("{file}.cio"), format!("{file}.flat"));
    if !Path::new(&structured).exists() {
        write_scattered(structured.as_ref())?;
    }
    let reader = Reader::open(File::open(&structured)?)?;
    if !Path::new(&flat).exists() {
        flatten(&reader, &File::create_new(&flat)?, 2)?;
    }
    let bytes = reader.extents().bytes() - EXTENT_BYTES as u64;
    let flat = File::open(&flat)?;
    Ok(match kind {
        "flat" => median_us(bytes, |buffer, at| flat.read_at(buffer, at))?,
        _ => median_us(bytes, |buffer, at| reader.read_at(buffer, at))?,
    })
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (file, kind) = match words[..] {
        ["--file", file] => (file, "cio"),
        ["--file", file, "--kind", kind @ ("cio" | "flat")] => (file, kind),
        _ => {
            eprintln!("reads: usage: reads --file FILE [--kind cio|flat]");
            std::process::exit(2)
        }
    };
    match measure(file, kind) {
        Ok(us) => println!("{us:.3}"),
        Err(error) => {
            eprintln!("reads: {error}");
            std::process::exit(1)
        }
    }
}
