//! Files that a parallel program writes as its serial elision would.
//!
//! The *serial elision* of a fork–join program is the same program with every fork replaced by a
//! plain call. A file is opened in one of three modes, which differ in what becomes of its pointer
//! when a strand forks:
//!
//! | mode | pointer | read | write |
//! |---|---|---|---|
//! | [`Mode::Global`] | one for all strands; each call is atomic | yes | in the calls' order |
//! | [`Mode::Local`] | the strand's own; it begins where the parent's is | yes | at that pointer |
//! | [`Mode::SerialAppend`] | none | no | at the end, in the elision's order |
//!
//! Strands are made by [`join`], [`scope`], [`spawn`], the parallel iterators of [`AppendTo`], or
//! by hand with [`fork`] and [`Group`] for threads that are not rayon's. The source is the thesis
//! on parallel input and output, Cheerio; what differs from it is said at each place.
//!
//! ```
//! use std::io::{Read, Write};
//! use ciel_files::{File, Mode, join};
//!
//! fn tree(log: &File, from: u32, to: u32) {
//!     if to - from == 1 {
//!         return writeln!(&*log, "leaf {from}").unwrap();
//!     }
//!     let middle = (from + to) / 2;
//!     join(|| tree(log, from, middle), || tree(log, middle, to));
//! }
//!
//! let folder = tempfile::tempdir().unwrap();
//! let log = File::create(folder.path().join("log"), Mode::SerialAppend).unwrap();
//! tree(&log, 0, 1000);
//! log.close().unwrap();
//! let text = std::fs::read_to_string(folder.path().join("log")).unwrap();
//! assert!(text.starts_with("leaf 0\nleaf 1\n") && text.ends_with("leaf 998\nleaf 999\n"));
//! ```
//!
//! With [`Options::structured`], a serial-append file is a `.cio` file, into which all strands
//! write their bytes once; opened for reading, such a file shows what the flat file would hold.
//!
//! It knows no engine and no tasks. Read next: [`File`], then `strand` (the chain of strands in
//! serial order), `part` (what a strand has written), `target` and `form` (the file itself).

mod error;
mod extent;
mod file;
mod flat;
mod fork;
mod form;
mod gauges;
mod host;
mod iter;
mod join;
mod line;
mod meeting;
mod panics;
mod part;
mod place;
mod scope;
mod strand;
mod structured;
mod sync;
mod target;
mod thread;

pub use error::FileError;
pub use file::{File, Mode, Options};
pub use fork::{Entered, Strand, fork};
pub use gauges::Gauges;
pub use iter::AppendTo;
pub use join::join;
pub use place::{Place, here};
pub use scope::{Group, Scope, scope, spawn};

/// The Rust program of the page is run with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/concepts/serial-append.md")]
struct Page;
