//! The identities of a run's tasks: what each was given and gave, by digests, in a file of the run.
//!
//! Two runs are compared by them, and a later run is foretold. The file is appended to while the
//! run continues and bounded in bytes; what a killed process left incomplete at its end does not
//! count. It does not know why tasks differ. Read next: `entry`.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ciel_model::{Digest, FileRead, FunctionCode};
use serde::{Deserialize, Serialize};

use crate::entry::Parts;
use crate::in_row::appended;
use crate::limits::IDENTITIES_BYTES_MAX;

/// One record of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum IdentityNote {
    /// A task was given this.
    Given(GivenTask),
    /// A task ended well.
    Gave(GaveTask),
    /// The run has read a file of the user's.
    File {
        /// Its absolute path.
        path: Arc<str>,
        /// Of its content.
        digest: Digest,
    },
}

/// What a task was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GivenTask {
    /// The name of its position.
    pub name: u128,
    /// The function or command, as messages show it.
    pub what: Arc<str>,
    /// What its result depends on; pieces are left out if the file has them already.
    pub parts: Parts,
    /// It takes kept results in each run.
    pub is_marked: bool,
}

/// What a task gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GaveTask {
    /// The name of its position.
    pub name: u128,
    /// Its outputs, in order.
    pub outputs: Vec<Digest>,
    /// Files that it has read beside its inputs.
    pub read: Vec<FileRead>,
    /// It took a kept result.
    pub is_taken: bool,
}

/// The number of [`IdentityNote::Given`] in the encoding.
const GIVEN: u32 = 0;

/// Bytes of the length before each record.
const LENGTH_BYTES: usize = 4;

/// Bytes of memory for records that are kept for the next ones, at most.
const GATHERED_BYTES_KEPT_MAX: usize = 1 << 20;

/// Appends records to the file of a run.
#[derive(Debug)]
pub struct IdentityWriter {
    path: PathBuf,
    gathered: Vec<u8>,
    bytes: u64,
    /// A record was left out when the file was nearly full, so all later ones are.
    is_full: bool,
    /// Codes whose pieces are in the file.
    codes: HashSet<Digest>,
    /// That of the latest task: most tasks are like the one before.
    latest_code: Option<Digest>,
}

impl IdentityWriter {
    /// Continues the file at `path`, which need not exist.
    pub fn new(path: PathBuf) -> IdentityWriter {
        let bytes = std::fs::metadata(&path).map_or(0, |found| found.len());
        IdentityWriter {
            path,
            gathered: Vec::new(),
            bytes,
            is_full: false,
            codes: HashSet::new(),
            latest_code: None,
        }
    }

    /// A task is given this.
    pub fn given(&mut self, name: u128, what: &str, parts: &Parts, is_marked: bool) {
        if self.is_full {
            return;
        }
        let pieces: &[FunctionCode] = match self.is_known(parts.code) {
            true => &[],
            false => &parts.pieces,
        };
        let Parts {
            executor,
            surroundings,
            code,
            payload,
            arguments,
            inputs,
            outputs,
            pieces: _,
        } = parts;
        // The bytes of a note, which has all of that: a structure is encoded as its fields.
        let code = (executor, surroundings, code, pieces);
        let parts = (code, payload, arguments, inputs, outputs);
        self.append(&(GIVEN, name, what, parts, is_marked));
    }

    /// Whether the file has the pieces of that code, as it will have from now on.
    fn is_known(&mut self, code: Option<Digest>) -> bool {
        let Some(code) = code else {
            return false;
        };
        if self.latest_code == Some(code) {
            return true;
        }
        self.latest_code = Some(code);
        !self.codes.insert(code)
    }

    /// Whether no record is added any more: the file has reached its bound.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Adds a record, which reaches the file with [`IdentityWriter::flush`]. One that is beyond the
    /// bound of the file is left out, and so are all that follow if the file is nearly full.
    pub fn add(&mut self, note: &IdentityNote) {
        self.append(note);
    }

    /// The same for what is encoded as a note is.
    fn append(&mut self, note: &impl Serialize) {
        if self.is_full {
            return;
        }
        let start = self.gathered.len();
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.extend_from_slice(&[0; LENGTH_BYTES]);
        self.gathered = appended(gathered, note);
        let record = &self.gathered[start + LENGTH_BYTES..];
        let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
        if self.bytes + u64::from(length) > IDENTITIES_BYTES_MAX {
            self.is_full = self.bytes > IDENTITIES_BYTES_MAX - NEARLY_FULL_BYTES;
            return self.gathered.truncate(start);
        }
        self.bytes += u64::from(length) + LENGTH_BYTES as u64;
        self.gathered[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }

    /// Hands all records to the system.
    ///
    /// # Errors
    /// Those of the file; the records are lost then.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(&self.path);
        let written = file.and_then(|mut file: File| file.write_all(&self.gathered));
        // The next batch is as long, and fresh memory costs as much as its bytes.
        self.gathered.clear();
        self.gathered.shrink_to(GATHERED_BYTES_KEPT_MAX);
        written
    }
}

/// A task, by all that the file says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskIdentity {
    /// What it was given.
    pub given: GivenTask,
    /// What it gave; none if it did not end well.
    pub gave: Option<GaveTask>,
}

/// All that the file of a run says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identities {
    /// Tasks in the order in which they were first given something.
    pub tasks: Vec<TaskIdentity>,
    /// Files of the user's that the run has read, by path, with the digests of their contents.
    pub files: Vec<(Arc<str>, Digest)>,
    /// The file is full, so that later tasks may be missing.
    pub is_cut: bool,
}

impl Identities {
    /// Reads the file of a run; nothing if there is none.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read(path: &Path) -> io::Result<Identities> {
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let mut all = Identities {
            is_cut: bytes.len() as u64 > IDENTITIES_BYTES_MAX - NEARLY_FULL_BYTES,
            ..Identities::default()
        };
        let mut positions = std::collections::HashMap::new();
        let mut pieces = std::collections::HashMap::new();
        for note in notes(&bytes) {
            match note {
                IdentityNote::Given(mut given) => {
                    if let Some(code) = given.parts.code {
                        match given.parts.pieces.is_empty() {
                            true => {
                                given.parts.pieces = pieces.get(&code).cloned().unwrap_or_default()
                            }
                            false => drop(pieces.insert(code, given.parts.pieces.clone())),
                        }
                    }
                    let at = *positions.entry(given.name).or_insert(all.tasks.len());
                    let task = TaskIdentity { given, gave: None };
                    match all.tasks.get_mut(at) {
                        // A later attempt, or a later process of the run.
                        Some(known) => *known = task,
                        None => all.tasks.push(task),
                    }
                }
                IdentityNote::Gave(gave) => {
                    if let Some(at) = positions.get(&gave.name) {
                        all.tasks[*at].gave = Some(gave);
                    }
                }
                IdentityNote::File { path, digest } => all.files.push((path, digest)),
            }
        }
        Ok(all)
    }
}

/// So near its bound a file may lack records.
const NEARLY_FULL_BYTES: u64 = 64 << 10;

/// The records that are complete.
fn notes(mut bytes: &[u8]) -> impl Iterator<Item = IdentityNote> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
        let record = rest.get(..u32::from_le_bytes(*length) as usize)?;
        bytes = &rest[record.len()..];
        postcard::from_bytes(record).ok()
    })
}

#[cfg(test)]
mod tests {
    use ciel_model::{Form, Site};

    use super::*;
    use crate::entry::Input;

    fn parts(code: u128) -> Parts {
        let piece = FunctionCode {
            name: "f".into(),
            place: Site {
                file: "job.py".into(),
                line: 3,
            },
            digest: Digest(code),
        };
        Parts {
            executor: "python".into(),
            surroundings: Digest(8),
            code: Some(Digest(code)),
            pieces: [piece].into(),
            payload: Digest(u128::MAX),
            arguments: vec![("argument".into(), Digest(4))],
            inputs: vec![Input {
                name: "1".into(),
                digest: Digest(5),
                form: Form::Text,
            }],
            outputs: 2,
        }
    }

    #[test]
    fn what_tasks_are_given_has_the_bytes_of_notes_with_each_code_once() {
        let mut given = IdentityWriter::new(PathBuf::new());
        let mut noted = IdentityWriter::new(PathBuf::new());
        for (name, code, is_first) in [(1, 1, true), (2, 1, false), (3, 2, true), (4, 1, false)] {
            let mut parts = parts(code);
            given.given(name, "f", &parts, code == 2);
            if !is_first {
                parts.pieces = Arc::default();
            }
            noted.add(&IdentityNote::Given(GivenTask {
                name,
                what: "f".into(),
                parts,
                is_marked: code == 2,
            }));
        }
        assert_eq!(given.gathered, noted.gathered);
    }
}
