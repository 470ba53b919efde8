//! Tools of the house. Building and running Ciel needs none of them.
//!
//! Each module is one tool that reads and writes files of the source tree. They do not know the
//! engine. Read [`generate`] for the wire types, [`vectors`] for the golden vectors, and [`tidy`]
//! for the rules of the house.

use std::path::PathBuf;

pub mod generate;
pub mod tidy;
pub mod vectors;

/// The root folder of the source tree.
pub fn source_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this crate lies two folders below the root")
        .to_path_buf()
}
