//! One variable of the process's environment that changes with every task.
//!
//! `setenv` keeps every value that it ever saw, so a worker of a million tasks would grow by a
//! million strings. Here the variable is memory of this module that is overwritten. It knows no
//! tasks. Read next: `names.rs`, which makes seeds; `sdk/python/ciel/_random.py`, by which Python
//! shows what is told here.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn putenv(entry: *const c_char) -> c_int;
}

const ENTRY: &[u8; 15] = b"CIEL_TASK_SEED=";

/// Bytes before the entry: with them its digits begin at a word.
const BEFORE_BYTES: usize = 1;

/// Words before the digits.
const HEAD_WORDS: usize = 2;

/// Digits of a seed, at most.
const DIGITS_MAX: usize = 20;

/// Numbers below it have eight digits at most.
const EIGHT_DIGITS: u64 = 100_000_000;

/// Words of the digits, and of the end behind them.
const DIGITS_WORDS: usize = 3;

/// The entry itself, which the environment points to, behind `BEFORE_BYTES` others.
static PLACE: [AtomicU64; HEAD_WORDS + DIGITS_WORDS] =
    [const { AtomicU64::new(0) }; HEAD_WORDS + DIGITS_WORDS];

/// A seed as the environment has it: decimal digits, and zeros behind them.
#[derive(Clone, Copy)]
pub struct Digits([u64; DIGITS_WORDS]);

impl Digits {
    /// Those of a seed.
    pub fn of(seed: u64) -> Digits {
        let mut text = [0u8; 8 * DIGITS_WORDS + DIGITS_MAX];
        let (high, rest) = (
            seed / EIGHT_DIGITS / EIGHT_DIGITS,
            seed % (EIGHT_DIGITS * EIGHT_DIGITS),
        );
        text[..4].copy_from_slice(&eight_digits(high)[4..]);
        text[4..12].copy_from_slice(&eight_digits(rest / EIGHT_DIGITS));
        text[12..DIGITS_MAX].copy_from_slice(&eight_digits(rest % EIGHT_DIGITS));
        let start = text[..DIGITS_MAX - 1]
            .iter()
            .take_while(|digit| **digit == b'0')
            .count();
        Digits(words(&text[start..start + 8 * DIGITS_WORDS]))
    }

    /// What was told last.
    pub fn told() -> Digits {
        let mut told = [0; DIGITS_WORDS];
        for (word, place) in told.iter_mut().zip(&PLACE[HEAD_WORDS..]) {
            *word = place.load(Ordering::Relaxed);
        }
        Digits(told)
    }

    /// Tells them to an environment that has the variable, and has not changed since. To be called
    /// by one thread only; others may read the environment meanwhile.
    pub fn tell(self) {
        for (place, word) in PLACE[HEAD_WORDS..].iter().zip(self.0) {
            place.store(word, Ordering::Relaxed);
        }
    }

    fn text(self) -> Vec<u8> {
        let bytes = self.0.iter().flat_map(|word| word.to_ne_bytes());
        bytes.take_while(|byte| *byte != 0).collect()
    }
}

/// Makes `seed` the value of `CIEL_TASK_SEED` that processes inherit from now on. To be called by
/// one thread only; others may read the environment meanwhile.
#[pyfunction]
pub fn tell_seed(seed: u64) {
    let mut head = [0; 8 * HEAD_WORDS];
    head[BEFORE_BYTES..].copy_from_slice(ENTRY);
    for (place, word) in PLACE.iter().zip(words::<HEAD_WORDS>(&head)) {
        place.store(word, Ordering::Relaxed);
    }
    Digits::of(seed).tell();
    if !has_entry() {
        // SAFETY: `PLACE` lives as long as the process, has the layout of bytes, and always holds
        // an end, since its last byte is never anything else. `putenv` keeps the pointer and writes
        // nothing; it is skipped when the entry exists already, so threads that read meanwhile see
        // no other array.
        unsafe {
            putenv(entry());
        }
    }
}

/// The value of `CIEL_TASK_SEED` that processes inherit; `None` if that is another one than
/// `tell_seed` has told.
#[pyfunction]
pub fn told_seed(py: Python<'_>) -> Option<Bound<'_, PyBytes>> {
    has_entry().then(|| PyBytes::new(py, &Digits::told().text()))
}

fn entry() -> *const c_char {
    PLACE.as_ptr().cast::<c_char>().wrapping_add(BEFORE_BYTES)
}

/// Whether the environment has the entry, so that it shows what is told.
pub fn has_entry() -> bool {
    // SAFETY: `getenv` receives a terminated name, and its result is only compared.
    let found = unsafe { getenv(c"CIEL_TASK_SEED".as_ptr()) };
    found == entry().wrapping_add(ENTRY.len())
}

/// The eight decimal digits of a number below `EIGHT_DIGITS`: halves, halves of these, and digits,
/// each in a lane of its own of one word.
fn eight_digits(number: u64) -> [u8; 8] {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x0f_000f_000f_000f;
    let digits = tens | ((twos - 10 * tens) << 8);
    (digits + 0x3030_3030_3030_3030).to_le_bytes()
}

fn words<const COUNT: usize>(bytes: &[u8]) -> [u64; COUNT] {
    let mut words = [0; COUNT];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().expect("a chunk has the bytes of a word"));
    }
    words
}
