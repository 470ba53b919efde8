//! Why a task runs although an earlier run may have kept its result.
//!
//! It does not know where results are kept. Read next: `call`, for differences inside one run.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::code::FunctionCode;

/// Why no kept result is used for a task.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum RerunReason {
    /// No earlier run had a task at its position.
    New,
    /// The code of this function is another, or is gone.
    CodeChanged(FunctionCode),
    /// This argument is another; unnamed if arguments cannot be told apart.
    ArgumentChanged(Option<Arc<str>>),
    /// The content of this input is another.
    InputChanged(Arc<str>),
    /// It began in an earlier run and did not end well there.
    NeverFinished,
    /// Its result was removed to make room.
    Evicted,
    /// Its result was there, and is damaged or cannot be read.
    Damaged,
    /// This program that its command runs is another, or is found elsewhere.
    ToolChanged(Arc<str>),
    /// The bytes of its result were removed, and a task needs them.
    BytesRemoved,
    /// It ended well in an earlier run, but it or a task beneath it did what taking the result
    /// would not repeat.
    Impure,
    /// It ended well in an earlier run with a result that cannot be kept.
    NotKept,
}

/// As `ciel why` shows it.
impl fmt::Display for RerunReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RerunReason::New => f.write_str("new"),
            RerunReason::CodeChanged(function) if function.place.file.is_empty() => {
                write!(f, "code changed: {}", function.name)
            }
            RerunReason::CodeChanged(function) => {
                write!(f, "code changed: {}", function.place)?;
                // A file alone says little: a constant that was imported there has no line.
                match function.place.line == 0 && function.name != function.place.file {
                    true => write!(f, " ({})", function.name),
                    false => Ok(()),
                }
            }
            RerunReason::ArgumentChanged(None) => f.write_str("arguments changed"),
            RerunReason::ArgumentChanged(Some(name)) => write!(f, "argument changed: {name}"),
            RerunReason::InputChanged(name) => write!(f, "input changed: {name}"),
            RerunReason::NeverFinished => f.write_str("never finished"),
            RerunReason::Evicted => f.write_str("evicted"),
            RerunReason::Damaged => f.write_str("kept result damaged"),
            RerunReason::BytesRemoved => f.write_str("bytes removed"),
            RerunReason::Impure => f.write_str("impure"),
            RerunReason::NotKept => f.write_str("not kept"),
            RerunReason::ToolChanged(name) => write!(f, "tool changed: {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Site;
    use crate::digest::Digest;

    #[test]
    fn reason_names_what_changed() {
        let file = "pipeline.py".into();
        let function = FunctionCode {
            name: "call".into(),
            place: Site { file, line: 41 },
            digest: Digest(1),
        };
        let imported = FunctionCode {
            name: "LIMIT".into(),
            place: Site {
                line: 0,
                ..function.place.clone()
            },
            ..function.clone()
        };
        let whole = FunctionCode {
            name: imported.place.file.clone(),
            ..imported.clone()
        };
        let unplaced = FunctionCode {
            place: Site::default(),
            ..function.clone()
        };
        for (reason, words) in [
            (
                RerunReason::CodeChanged(function),
                "code changed: pipeline.py:41",
            ),
            (
                RerunReason::CodeChanged(imported),
                "code changed: pipeline.py (LIMIT)",
            ),
            (RerunReason::CodeChanged(whole), "code changed: pipeline.py"),
            (RerunReason::CodeChanged(unplaced), "code changed: call"),
            (
                RerunReason::ArgumentChanged(Some("command".into())),
                "argument changed: command",
            ),
            (
                RerunReason::InputChanged("reads".into()),
                "input changed: reads",
            ),
            (
                RerunReason::ToolChanged("minimap2".into()),
                "tool changed: minimap2",
            ),
            (RerunReason::NeverFinished, "never finished"),
        ] {
            assert_eq!(reason.to_string(), words);
        }
    }
}
