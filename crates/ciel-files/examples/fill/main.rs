//! Refills the paragraphs of a text to lines of at most 75 columns, as `fmt` of coreutils does.
//!
//! `fill --input FILE --output FILE [--threads N] [--serial]` prints the seconds it took.
//! Paragraphs are filled in parallel; in the C locale the bytes are those of `fmt`. Source: the
//! thesis' program of that name. Read next: `pieces`, then `filler`.

mod blanks;
#[path = "../common/mod.rs"]
mod common;
mod filler;
mod pieces;

use std::fs;
use std::io::{self, Write};
use std::time::Instant;

use ciel_files::{AppendTo, File, Mode};
use common::Arguments;
use filler::Filler;
use pieces::Piece;
use rayon::prelude::*;

fn fill(text: &[u8], piece: &Piece, mut to: &File) -> io::Result<()> {
    if piece.is_blank {
        return to.write_all(b"\n");
    }
    let paragraph = &text[piece.begin..piece.behind];
    let filler = Filler::new(paragraph, piece.indent, piece.uses_tabs);
    to.write_all(&filler.fill(piece.end - piece.begin))
}

fn run(arguments: &Arguments) -> io::Result<()> {
    let text = fs::read(arguments.path("input"))?;
    let pieces = pieces::of(&text);
    let file = File::create(arguments.path("output"), Mode::SerialAppend)?;
    match arguments.is_serial() {
        true => pieces
            .iter()
            .try_for_each(|piece| fill(&text, piece, &file))?,
        false => pieces
            .par_iter()
            .append_to(&file, |piece, file| fill(&text, piece, file))?,
    }
    file.close()
}

fn main() {
    let arguments = Arguments::of_command("fill");
    let pool = arguments.pool();
    let begin = Instant::now();
    if let Err(error) = pool.install(|| run(&arguments)) {
        arguments.refuse(&error.to_string());
    }
    println!("{:.6}", begin.elapsed().as_secs_f64());
}
