//! Objects as files of the run folder, mapped read-only.
