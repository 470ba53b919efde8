//! Where a job's output goes, and what it holds in the end.
//!
//! It does not know what the job shows. Read first: `support`.

use std::fs::{File, OpenOptions};
use std::process::{Command, Stdio};

use crate::support::{Ended, Live, Place};

/// What stands in the file of `>>` before the first start.
const NOTES: &str = "my notes\n";

/// The file of `>`, `>>` and `-o`.
const FILE: &str = "shown";

/// Where output goes.
#[derive(Clone, Copy, Debug)]
pub enum Sink {
    /// A pipe that is read.
    Pipe,
    /// A terminal that is read.
    Terminal,
    /// `> file`, and `>> file` from the second start on.
    NewFile,
    /// `> file` at each start.
    TruncatedFile,
    /// `>> file`, which is not empty before the first start.
    AppendedFile,
    /// `-o file`; the result goes to a pipe.
    OutputOption,
}

/// All of them.
pub const SINKS: [Sink; 6] = [
    Sink::Pipe,
    Sink::Terminal,
    Sink::NewFile,
    Sink::TruncatedFile,
    Sink::AppendedFile,
    Sink::OutputOption,
];

impl Sink {
    /// Makes what stands in the place before the first start.
    pub fn prepare(self, place: &Place) {
        if matches!(self, Sink::AppendedFile) {
            place.file(FILE, NOTES);
        }
    }

    /// The options of the command for it.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Sink::OutputOption => &["-o", FILE],
            _ => &[],
        }
    }

    /// Starts the command; whether it is the first start.
    pub fn start(self, command: Command, place: &Place, is_first: bool) -> Live {
        let path = place.path(FILE);
        let created = || File::create(&path).unwrap();
        let appended = || OpenOptions::new().append(true).open(&path).unwrap();
        match self {
            Sink::Pipe | Sink::OutputOption => Live::start(command),
            Sink::Terminal => Live::start_on_terminal(command),
            Sink::TruncatedFile => Live::start_into(command, Stdio::from(created())),
            Sink::NewFile if is_first => Live::start_into(command, Stdio::from(created())),
            Sink::NewFile | Sink::AppendedFile => {
                Live::start_into(command, Stdio::from(appended()))
            }
        }
    }

    /// What has been shown when a process has ended; in files, by those before it, too.
    pub fn shown(self, place: &Place, ended: &Ended) -> String {
        match self {
            Sink::Pipe | Sink::Terminal => ended.stdout.clone(),
            Sink::NewFile | Sink::TruncatedFile => place.read(FILE),
            Sink::AppendedFile => {
                let held = place.read(FILE);
                let shown = held.strip_prefix(NOTES);
                shown.expect("what stood in the file stays").to_string()
            }
            Sink::OutputOption => place.read(FILE) + &ended.stdout,
        }
    }
}
