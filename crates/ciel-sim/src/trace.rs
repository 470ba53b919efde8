//! What happened in a world, as lines, or only as their fingerprint.
//!
//! Two runs of one seed must leave the same fingerprint. It does not know what a line means.

use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hasher};

/// A record of everything that goes through the doors of the machines.
#[derive(Debug, Default)]
pub struct Trace {
    hasher: DefaultHasher,
    line: String,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// A trace that keeps its lines if `keeps`.
    pub fn new(keeps: bool) -> Trace {
        Trace {
            lines: keeps.then(Vec::new),
            ..Trace::default()
        }
    }

    /// Adds a line.
    pub fn add(&mut self, now: u64, what: &str, event: &impl Debug) {
        self.line.clear();
        write!(self.line, "{now:>8} {what} {event:?}").expect("a string takes all");
        self.hasher.write(self.line.as_bytes());
        if let Some(lines) = &mut self.lines {
            lines.push(self.line.clone());
        }
    }

    /// The fingerprint of all lines so far.
    pub fn fingerprint(&self) -> u64 {
        self.hasher.finish()
    }

    /// The lines, if they are kept.
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
