//! The names of executors that come with the engine.
//!
//! A test sees to it that no other part of the engine spells one. Read next: `executors`.

/// Whole scripts and their functions.
pub(super) const SKYWRITING: &str = "skywriting";

/// Functions of Python modules.
pub(super) const PYTHON: &str = "python";

/// The root of a session.
pub(super) const SESSION: &str = "session";

/// A file as an object.
pub(super) const GRAB: &str = "grab";

/// Paths that match a pattern.
pub(super) const GLOB: &str = "glob";

/// A result in a file of the user's.
pub(super) const EXPORT: &str = "export";

/// The list of references whose objects are all ready.
pub(super) const SYNC: &str = "sync";

/// A command for `sh`.
pub(super) const SHELL: &str = "shell";

/// A command between standard input and output.
pub(super) const STDINOUT: &str = "stdinout";

/// A command that finds its files by variables of the environment.
pub(super) const ENVIRON: &str = "environ";
