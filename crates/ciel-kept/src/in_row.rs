//! The bytes of many entries in a row: what neighbours have in common is encoded once.
//!
//! They are the bytes of the entries one by one: in postcard's encoding a structure is its fields
//! one after the other. Tasks of one function have their code in common, which is most of an entry.
//! It does not know what rows are for. Read first: `entry`.

use std::ops::Range;
use std::sync::Arc;

use ciel_model::{Digest, FunctionCode};
use serde::Serialize;

use crate::entry::{Entry, Parts};

/// Entries that are appended to one row.
#[derive(Default)]
pub(crate) struct InRow(Option<Beginning>);

/// The first parts of an entry, and where their bytes are in the row.
struct Beginning {
    executor: Arc<str>,
    surroundings: Digest,
    code: Option<Digest>,
    pieces: Arc<[FunctionCode]>,
    at: Range<usize>,
}

impl Beginning {
    /// Whether it is that of `parts`, too; where both share the code, that is seen at once.
    fn is_of(&self, parts: &Parts) -> bool {
        Arc::ptr_eq(&self.pieces, &parts.pieces)
            && self.executor == parts.executor
            && self.surroundings == parts.surroundings
            && self.code == parts.code
    }
}

impl InRow {
    /// The row with an entry behind the others; without it, the row is as the last call gave it.
    pub(crate) fn append(&mut self, row: Vec<u8>, entry: &Entry) -> Vec<u8> {
        let row = self.append_beginning(row, &entry.parts);
        let Entry {
            parts,
            place,
            task,
            outputs,
            printed,
            beneath,
            read,
            took_us,
            run,
            is_marked,
        } = entry;
        let (payload, arguments) = (&parts.payload, &parts.arguments);
        let (inputs, count) = (&parts.inputs, parts.outputs);
        let given = (payload, arguments, inputs, count, place, task);
        let gave = (outputs, printed, beneath, read, took_us, run, is_marked);
        appended(row, &(given, gave))
    }

    fn append_beginning(&mut self, mut row: Vec<u8>, parts: &Parts) -> Vec<u8> {
        if let Some(last) = self.0.as_ref().filter(|last| last.is_of(parts)) {
            row.extend_from_within(last.at.clone());
            return row;
        }
        let start = row.len();
        let (executor, surroundings) = (&parts.executor, parts.surroundings);
        let row = appended(row, &(executor, surroundings, parts.code, &parts.pieces));
        self.0 = Some(Beginning {
            executor: parts.executor.clone(),
            surroundings: parts.surroundings,
            code: parts.code,
            pieces: parts.pieces.clone(),
            at: start..row.len(),
        });
        row
    }
}

/// These bytes, and behind them a value.
pub(crate) fn appended(bytes: Vec<u8>, value: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(value, bytes).expect("values in memory can be encoded")
}

#[cfg(test)]
mod tests {
    use ciel_model::{FileRead, Form, Site};

    use super::*;
    use crate::entry::{Input, KeptContent, KeptOutput, Printed};

    /// An entry that leaves no field empty.
    fn entry(number: u128, pieces: &Arc<[FunctionCode]>) -> Entry {
        let file = FileRead {
            path: "read".into(),
            length: 300,
            digest: Digest(number << 70),
        };
        Entry {
            parts: Parts {
                executor: "python".into(),
                surroundings: Digest(8),
                code: Some(Digest(pieces.len() as u128)),
                pieces: pieces.clone(),
                payload: Digest(u128::MAX - number),
                arguments: vec![("argument".into(), Digest(4))],
                inputs: vec![Input::tool("cc".into(), Digest(5))],
                outputs: 2,
            },
            place: Digest(number),
            task: "f".into(),
            outputs: vec![KeptOutput {
                form: Form::Pickle,
                content: KeptContent::Inline(vec![number as u8; 200].into()),
            }],
            printed: vec![Printed {
                file: Some("log".into()),
                bytes: b"text"[..].into(),
            }],
            beneath: vec![file.clone()],
            read: vec![file],
            took_us: 1_000,
            run: "run".into(),
            is_marked: number % 2 == 1,
        }
    }

    fn code(count: usize) -> Arc<[FunctionCode]> {
        let piece = |number| FunctionCode {
            name: "f".into(),
            place: Site {
                file: "job.py".into(),
                line: 3,
            },
            digest: Digest(number as u128),
        };
        (0..count).map(piece).collect()
    }

    #[test]
    fn entries_in_a_row_have_the_bytes_that_each_has_alone() {
        let (one, other) = (code(3), code(40));
        let order = [&one, &one, &other, &one, &one, &other, &other, &code(0)];
        let entries = (0..).zip(order).map(|(number, code)| entry(number, code));
        let entries: Vec<Entry> = entries.collect();
        let row = b"head".to_vec();
        let mut in_row = InRow::default();
        let row = entries.iter().fold(row, |row, it| in_row.append(row, it));
        let alone = entries.iter().map(postcard::to_stdvec::<Entry>);
        let alone: Vec<u8> = alone.flat_map(|it| it.expect("it is encoded")).collect();
        assert_eq!(&row[4..], alone);
    }
}
