//! The process that starts, watches and ends every other process of a run.
