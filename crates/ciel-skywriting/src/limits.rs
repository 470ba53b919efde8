//! Bounds of the front end, each with its unit.
//!
//! Read next: `front`.

/// Levels of blocks, parentheses and operators inside one another; also of files that include one
/// another. A program at this and the next limit is walked within half of a stack of 2 MiB, by a
/// build without optimisation.
pub const NESTING_MAX: u32 = 128;

/// Levels of one expression, counted in the tree. A sum of this many terms is as high as that.
pub const EXPRESSION_HEIGHT_MAX: u32 = 256;

/// Digits of an integer that is written out.
pub const INTEGER_DIGITS_MAX: usize = 100_000;

/// Bytes of one file.
pub const SOURCE_BYTES_MAX: usize = 4 << 20;

/// Files of one program, the standard library's among them.
pub const SOURCES_MAX: usize = 1_000;

/// Messages about one program; further ones are left out.
pub const PROBLEMS_MAX: usize = 20;
