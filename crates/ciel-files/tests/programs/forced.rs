//! Programs whose strands take turns as a seed decides, act by act, on one thread: every steal and
//! every interleaving can happen, and after each act the file has a prefix of what it will have.

use std::io::Write;
use std::path::Path;

use ciel_files::{File, Strand, fork};
use proptest::prelude::*;

use crate::elision::elided;
use crate::program::{Act, FILES, Program, beneath, bytes_of, config, create, programs, shown};

/// What a strand has still to do, the next last.
type Rest = Vec<(Act, u64)>;

fn rest_of(program: &Program, place: u64) -> Rest {
    let placed = program.iter().cloned().enumerate();
    let mut rest: Rest = placed
        .map(|(number, act)| (act, beneath(place, number)))
        .collect();
    rest.reverse();
    rest
}

/// Does the first act of a strand as that strand; gives the strand that it has forked.
fn step(rest: &mut Rest, files: &[File; FILES]) -> Option<(Strand, Rest)> {
    let (act, place) = rest.pop()?;
    match act {
        Act::Write { file, bytes } => {
            (&files[file]).write_all(&bytes_of(place, bytes)).unwrap();
            None
        }
        // The first part in a strand of its own; then the second one.
        Act::Join(first, second) => {
            rest.extend(rest_of(&second, beneath(place, 1)));
            Some((fork(), rest_of(&first, beneath(place, 0))))
        }
        Act::Scope(spawned) => {
            let begin = rest.len();
            for (number, (child, after)) in spawned.into_iter().enumerate() {
                let (first, second) = (beneath(place, 2 * number), beneath(place, 2 * number + 1));
                let mut next = rest_of(&after, second);
                next.push((Act::Join(child, Vec::new()), place_before(first)));
                // Later ones lie deeper.
                rest.splice(begin..begin, next);
            }
            None
        }
        Act::Items { file, sizes } => {
            let writes = sizes.iter().enumerate().map(|(number, bytes)| {
                let bytes = *bytes;
                (Act::Write { file, bytes }, beneath(place, number))
            });
            rest.extend(writes.rev().collect::<Vec<_>>());
            None
        }
        Act::Catch(caught) => {
            rest.extend(rest_of(&caught, place));
            None
        }
        Act::Panic | Act::Move { .. } | Act::Note => unreachable!("these programs only append"),
    }
}

/// The place of which `first` is the first part.
fn place_before(first: u64) -> u64 {
    first.wrapping_sub(1).wrapping_mul(0xf1de_83e1_9937_733d)
}

fn expect_prefix(folder: &Path, wanted: &[Vec<u8>; FILES]) {
    for (number, wanted) in wanted.iter().enumerate() {
        let written = shown(folder, number);
        assert!(wanted.starts_with(&written), "file {number}");
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn strands_that_take_turns_in_any_order_write_what_the_elision_writes(
        program in programs(false),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..200),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let files: [File; FILES] = std::array::from_fn(|number| create(folder.path(), number));
        let wanted = elided(&program).files;
        let mut root = rest_of(&program, 1);
        let mut others: Vec<(Strand, Rest)> = Vec::new();
        let mut choices = choices.iter().cycle();
        while !(root.is_empty() && others.is_empty()) {
            // The last number is the root's, as long as it has something to do.
            let count = others.len() + usize::from(!root.is_empty());
            let chosen = choices.next().unwrap().index(count);
            let forked = match others.get_mut(chosen) {
                Some((strand, rest)) if !rest.is_empty() => {
                    strand.within(|| step(rest, &files))
                }
                Some(_) => {
                    others.swap_remove(chosen);
                    None
                }
                None => step(&mut root, &files),
            };
            others.extend(forked);
            expect_prefix(folder.path(), &wanted);
        }
        for file in files {
        file.close().unwrap();
    }
        for (number, wanted) in wanted.iter().enumerate() {
            let written = shown(folder.path(), number);
            prop_assert!(&written == wanted, "file {number}");
        }
    }
}
