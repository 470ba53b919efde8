//! All solutions of the queens' problem, with a log in lexicographic order.
//!
//! `queens --output FILE [--threads N] [--size Q] [--kind ordered|none] [--serial]` prints the
//! seconds it took; `none` counts only. Source: the thesis' program of that name. Read next:
//! bench/ordered.

mod common;

use std::io::Write;
use std::time::Instant;

use ciel_files::{File, Mode};
use common::Arguments;

/// Rows that are searched without a fork, from the last one up.
const SERIAL_ROWS: usize = 7;

/// How many ways there are, and where to log each of them.
struct Search<'a> {
    size: usize,
    log: Option<&'a File>,
    is_serial: bool,
}

/// A board as far as it is filled: the column of the queen of each row, and what they attack.
#[derive(Clone, Copy)]
struct Board {
    columns: [u8; 24],
    rows: usize,
    taken: u32,
    left: u32,
    right: u32,
}

impl Board {
    fn with(&self, column: usize) -> Board {
        let bit = 1 << column;
        let mut next = *self;
        next.columns[self.rows] = column as u8;
        next.rows += 1;
        next.taken |= bit;
        next.left = (self.left | bit) << 1;
        next.right = (self.right | bit) >> 1;
        next
    }

    fn is_free(&self, column: usize) -> bool {
        (self.taken | self.left | self.right) & (1 << column) == 0
    }
}

impl Search<'_> {
    fn solutions(&self, board: &Board) -> u64 {
        if board.rows == self.size {
            self.note(board);
            return 1;
        }
        match self.is_serial || self.size - board.rows <= SERIAL_ROWS {
            true => (0..self.size).map(|column| self.at(board, column)).sum(),
            false => self.between(board, 0, self.size),
        }
    }

    fn at(&self, board: &Board, column: usize) -> u64 {
        match board.is_free(column) {
            true => self.solutions(&board.with(column)),
            false => 0,
        }
    }

    /// The solutions whose next queen stands in one of these columns.
    fn between(&self, board: &Board, from: usize, to: usize) -> u64 {
        if to - from == 1 {
            return self.at(board, from);
        }
        let middle = from.midpoint(to);
        let first = || self.between(board, from, middle);
        let second = || self.between(board, middle, to);
        let (one, other) = match self.log {
            Some(_) => ciel_files::join(first, second),
            None => rayon::join(first, second),
        };
        one + other
    }

    fn note(&self, board: &Board) {
        let Some(mut log) = self.log else { return };
        let mut line = [b'\n'; 25];
        for (letter, column) in line.iter_mut().zip(&board.columns[..self.size]) {
            *letter = b'a' + column;
        }
        log.write_all(&line[..=self.size]).expect("it is written");
    }
}

fn main() {
    let arguments = Arguments::of_command("queens");
    let size = arguments.number("size", 11);
    if !(1..=24).contains(&size) {
        arguments.refuse("--size is not between 1 and 24");
    }
    let path = arguments.path("output");
    let has_log = arguments.text("kind", "ordered") == "ordered";
    let pool = arguments.pool();
    let begin = Instant::now();
    let count = pool.install(|| {
        let log = File::create(&path, Mode::SerialAppend).expect("the file can be made");
        let search = Search {
            size,
            log: has_log.then_some(&log),
            is_serial: arguments.is_serial(),
        };
        let count = search.solutions(&Board {
            columns: [0; 24],
            rows: 0,
            taken: 0,
            left: 0,
            right: 0,
        });
        log.close().expect("it is written");
        count
    });
    println!("{:.6}", begin.elapsed().as_secs_f64());
    eprintln!("{count} solutions");
}
