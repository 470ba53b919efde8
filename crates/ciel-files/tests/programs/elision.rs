//! The serial elision of a program: what it writes when every fork is a plain call.

use crate::program::{Act, FILES, Program, beneath, bytes_of, position_of};

/// A strand has panicked.
pub struct Panicked;

/// What a program does.
#[derive(Default)]
pub struct Elided {
    /// What it appends to each file.
    pub files: [Vec<u8>; FILES],
    /// Its notes, sorted.
    pub notes: Vec<Vec<u8>>,
    /// Where the pointer of the strand is that runs now.
    pointer: u64,
    pub panics: bool,
}

pub fn elided(program: &Program) -> Elided {
    let mut own = Elided::default();
    own.panics = own.all(program, 1).is_err();
    own.notes.sort();
    own
}

impl Elided {
    fn all(&mut self, program: &Program, place: u64) -> Result<(), Panicked> {
        for (number, act) in program.iter().enumerate() {
            self.one(act, beneath(place, number))?;
        }
        Ok(())
    }

    /// As another strand: the pointer is afterwards where it was.
    fn child(&mut self, program: &Program, place: u64) -> Result<(), Panicked> {
        let before = self.pointer;
        let ended = self.all(program, place);
        self.pointer = before;
        ended
    }

    fn one(&mut self, act: &Act, place: u64) -> Result<(), Panicked> {
        match act {
            Act::Write { file, bytes } => self.files[*file].extend(bytes_of(place, *bytes)),
            Act::Join(first, second) => {
                self.child(first, beneath(place, 0))?;
                self.child(second, beneath(place, 1))?;
            }
            Act::Scope(spawned) => {
                for (number, (child, after)) in spawned.iter().enumerate() {
                    self.child(child, beneath(place, 2 * number))?;
                    self.all(after, beneath(place, 2 * number + 1))?;
                }
            }
            Act::Items { file, sizes } => {
                for (number, size) in sizes.iter().enumerate() {
                    self.files[*file].extend(bytes_of(beneath(place, number), *size));
                }
            }
            Act::Move { by } => {
                self.files[0].extend(position_of(place, self.pointer));
                self.pointer += by;
            }
            Act::Note => self.notes.push(bytes_of(place, 0)),
            Act::Panic => return Err(Panicked),
            Act::Catch(caught) => drop(self.all(caught, place)),
        }
        Ok(())
    }
}
