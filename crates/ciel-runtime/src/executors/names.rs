//! The names of executors that come with the engine.
//!
//! Names only. Read next: `super`, which knows what each of them runs.

/// Whole scripts and their functions.
pub(crate) const SKYWRITING: &str = "skywriting";

/// A file as an object.
pub(crate) const GRAB: &str = "grab";

/// One reference that is ready when all of several are.
pub(crate) const SYNC: &str = "sync";

/// Executors whose tasks the engine runs itself, at once.
pub(super) const INTERNAL: [&str; 2] = [GRAB, SYNC];
