//! Programs that fork and write, made from a seed.

use std::io::Read as _;
use std::path::Path;

use ciel_files::{File, Mode, Options};
use proptest::prelude::*;

/// A strand does these one after the other.
pub type Program = Vec<Act>;

/// One act of a strand.
#[derive(Clone, Debug)]
pub enum Act {
    /// Appends so many bytes to a file.
    Write { file: usize, bytes: usize },
    /// Two closures, joined.
    Join(Program, Program),
    /// Closures of a scope, with what the scope's own closure does after each spawn.
    Scope(Vec<(Program, Program)>),
    /// Items of a parallel iterator, each with a number of bytes.
    Items { file: usize, sizes: Vec<usize> },
    /// Appends where the strand's pointer into a file in local mode is, and moves it on.
    Move { by: u64 },
    /// Appends a note to a file in global mode.
    Note,
    /// Ends the strand by a panic, which continues in whoever waits for it.
    Panic,
    /// Catches what these do.
    Catch(Program),
}

/// So many programs; a failed one is shown, and written nowhere.
pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Files that a program writes to.
pub const FILES: usize = 2;

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0..60usize,
        2 => 1_000..9_000usize,
        1 => 60_000..70_000usize,
    ]
}

fn write() -> impl Strategy<Value = Act> {
    (0..FILES, size()).prop_map(|(file, bytes)| Act::Write { file, bytes })
}

/// Random programs that append; some strands of some panic.
pub fn programs(with_panics: bool) -> impl Strategy<Value = Program> {
    let panic = if with_panics { 1 } else { 0 };
    programs_of(prop_oneof![12 => write(), panic => Just(Act::Panic)])
}

/// Random programs with files in all modes.
pub fn programs_of_all_modes() -> impl Strategy<Value = Program> {
    let moves = (1..100u64).prop_map(|by| Act::Move { by });
    programs_of(prop_oneof![6 => write(), 4 => moves, 1 => Just(Act::Note)])
}

/// Random programs that append and join, and fork in no other way.
pub fn programs_of_joins() -> impl Strategy<Value = Program> {
    let act = write().prop_recursive(7, 80, 5, |inner| {
        let program = prop::collection::vec(inner, 0..4);
        (program.clone(), program).prop_map(|(first, second)| Act::Join(first, second))
    });
    prop::collection::vec(act, 1..6)
}

fn programs_of(leaf: impl Strategy<Value = Act> + 'static) -> impl Strategy<Value = Program> {
    let act = leaf.prop_recursive(5, 60, 6, |inner| {
        let program = prop::collection::vec(inner, 0..5);
        let spawned = prop::collection::vec((program.clone(), program.clone()), 0..4);
        let sizes = prop::collection::vec(size(), 0..40);
        prop_oneof![
            6 => (program.clone(), program.clone()).prop_map(|(a, b)| Act::Join(a, b)),
            2 => spawned.prop_map(Act::Scope),
            1 => (0..FILES, sizes).prop_map(|(file, sizes)| Act::Items { file, sizes }),
            1 => program.prop_map(Act::Catch),
        ]
    });
    prop::collection::vec(act, 1..6)
}

/// What an act at that place in the program writes: it names the place, so that nothing can be
/// mistaken for anything else.
pub fn bytes_of(place: u64, count: usize) -> Vec<u8> {
    let mut text = format!("<{place:x}>").into_bytes();
    let begin = text.len();
    text.resize(count.max(begin), b'a' + (place % 23) as u8);
    text
}

/// What an act at that place writes of a pointer.
pub fn position_of(place: u64, at: u64) -> Vec<u8> {
    format!("<{place:x}: {at}>").into_bytes()
}

/// The place of the part with that number of an act.
pub fn beneath(place: u64, number: usize) -> u64 {
    place
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(number as u64 + 1)
}

/// Opens an empty file of a program; the last one is structured.
pub fn create(folder: &Path, number: usize) -> File {
    let options = Options::new().create(true).truncate(true);
    let options = match number == FILES - 1 {
        true => options.structured(true),
        false => options,
    };
    let path = folder.join(number.to_string());
    options.open(path, Mode::SerialAppend).unwrap()
}

/// What a file of a program shows, also while it is written.
pub fn shown(folder: &Path, number: usize) -> Vec<u8> {
    let file = File::open(folder.join(number.to_string()), Mode::Global).unwrap();
    let mut bytes = Vec::new();
    (&file).read_to_end(&mut bytes).unwrap();
    bytes
}
