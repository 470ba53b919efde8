//! Saved machines of scripts, which a resumed run reads as checkpoints.
//!
//! Bytes that are loaded make a machine that can be saved, and be loaded again with the same bytes.

use std::sync::{Arc, LazyLock};

use ciel_skywriting::code::Code;
use ciel_skywriting::machine::{Machine, Step};

use super::scripts::{Nobody, PROGRAMS, checked, environment};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "saved machine",
    corpus,
    read,
    answers_min: 8,
};

/// Bytes of a saved machine before what its checksum is of: a version and the checksum.
const HEAD_BYTES: usize = 9;

/// An input with this first byte, or one of its multiples, keeps the checksum that it has.
const UNREPAIRED: u8 = 7;

/// The programs, compiled once.
static CODES: LazyLock<Vec<Arc<Code>>> = LazyLock::new(|| {
    let programs = PROGRAMS.iter();
    let programs = programs.map(|text| checked(text.as_bytes()).expect("it is accepted"));
    programs
        .map(|program| Arc::new(Code::compile(&program)))
        .collect()
});

/// Each program after so many instructions: which it is, whether checksums are repaired, the bytes.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    for (index, code) in CODES.iter().enumerate() {
        for fuel in [1, 20, 60, 200] {
            let mut machine = Machine::for_script(Arc::clone(code), environment());
            if let Step::Preempted | Step::Blocked { .. } = machine.run(&mut Nobody, fuel) {
                let saved = machine.save().bytes;
                corpus.push([&[index as u8, 1][..], &saved].concat());
            }
        }
    }
    corpus
}

fn read(input: &[u8]) -> String {
    let [index, flags, bytes @ ..] = input else {
        return "too short".to_string();
    };
    let code = &CODES[usize::from(*index) % CODES.len()];
    let mut bytes = bytes.to_vec();
    if flags % UNREPAIRED != 0 {
        repair(&mut bytes);
    }
    let mut machine = match Machine::load(Arc::clone(code), &bytes, environment()) {
        Ok(machine) => machine,
        Err(error) => {
            return error
                .to_string()
                .split(',')
                .next()
                .unwrap_or("")
                .to_string();
        }
    };
    let saved = machine.save().bytes;
    let again = Machine::load(Arc::clone(code), &saved, environment());
    let mut again = again.expect("what was saved is loaded");
    assert_eq!(again.save().bytes, saved);
    let (frames, heap) = (machine.references(), machine.heap_bytes() / 256);
    format!("{frames} references, {heap} times 256 bytes")
}

/// Makes the checksum right, so that what is behind it is read.
fn repair(bytes: &mut [u8]) {
    if let Some((head, body)) = bytes.split_at_mut_checked(HEAD_BYTES) {
        let sum = blake3::hash(body);
        head[1..].copy_from_slice(&sum.as_bytes()[..HEAD_BYTES - 1]);
    }
}
