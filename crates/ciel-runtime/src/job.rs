//! What a run is asked to run.
//!
//! It does not know how. Read next: `settings`, `run`.

use std::os::unix::net::UnixStream;

/// What is run.
#[derive(Debug)]
pub enum Job<'a> {
    /// A checked script.
    Script(&'a ciel_skywriting::hir::Program),
    /// The function `main` of the Python file that the settings name.
    Python,
    /// Whatever a client submits, who speaks the executor protocol on this socket.
    Session(UnixStream),
}
