//! The serial elision of a program: what it writes when every fork is a plain call.

use crate::program::{Act, FILES, Program, beneath, bytes_of};

/// A strand has panicked.
pub struct Panicked;

/// What the program writes, and whether it panics.
pub fn elided(program: &Program) -> ([Vec<u8>; FILES], bool) {
    let mut files: [Vec<u8>; FILES] = Default::default();
    let ended = all(program, 1, &mut files);
    (files, ended.is_err())
}

fn all(program: &Program, place: u64, files: &mut [Vec<u8>; FILES]) -> Result<(), Panicked> {
    for (number, act) in program.iter().enumerate() {
        one(act, beneath(place, number), files)?;
    }
    Ok(())
}

fn one(act: &Act, place: u64, files: &mut [Vec<u8>; FILES]) -> Result<(), Panicked> {
    match act {
        Act::Write { file, bytes } => files[*file].extend(bytes_of(place, *bytes)),
        Act::Join(first, second) => {
            all(first, beneath(place, 0), files)?;
            all(second, beneath(place, 1), files)?;
        }
        Act::Scope(spawned) => {
            for (number, (child, after)) in spawned.iter().enumerate() {
                all(child, beneath(place, 2 * number), files)?;
                all(after, beneath(place, 2 * number + 1), files)?;
            }
        }
        Act::Items { file, sizes } => {
            for (number, size) in sizes.iter().enumerate() {
                files[*file].extend(bytes_of(beneath(place, number), *size));
            }
        }
        Act::Panic => return Err(Panicked),
        Act::Catch(caught) => drop(all(caught, place, files)),
    }
    Ok(())
}
