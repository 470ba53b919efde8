//! One line of a trace.
//!
//! The fields have the names of the Trace Event Format; those that a reader does not need are left
//! out.

use ciel_model::Micros;
use serde::Serialize;

/// A row: `pid` and `tid` of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Row {
    pub(super) group: u32,
    pub(super) number: u32,
}

/// Slices that are on no row of a slot.
pub(super) const WAITS: Row = Row {
    group: 4,
    number: 0,
};

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Phase {
    /// A slice begins on its row.
    #[serde(rename = "B")]
    Begin,
    /// The slice that began last on its row ends.
    #[serde(rename = "E")]
    End,
    /// A slice apart from rows begins.
    #[serde(rename = "b")]
    WaitBegin,
    /// It ends.
    #[serde(rename = "e")]
    WaitEnd,
    /// An arrow leaves the slice around it.
    #[serde(rename = "s")]
    ArrowBegin,
    /// It comes to the slice around it.
    #[serde(rename = "f")]
    ArrowEnd,
    /// Something without a length.
    #[serde(rename = "i")]
    Instant,
    /// The name of a row, or its rank among the others.
    #[serde(rename = "M")]
    Heading,
}

/// A line.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(rename = "cat", skip_serializing_if = "Option::is_none")]
    pub(super) category: Option<&'static str>,
    #[serde(rename = "ph")]
    phase: Phase,
    #[serde(rename = "pid")]
    group: u32,
    #[serde(rename = "tid")]
    row: u32,
    #[serde(rename = "ts")]
    at: Micros,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// An arrow comes to the slice that begins with it, rather than to the next one.
    #[serde(rename = "bp", skip_serializing_if = "Option::is_none")]
    binding: Option<&'static str>,
    /// An instant concerns all rows.
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    #[serde(rename = "args", skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<Arguments>,
}

/// What is shown of a slice that is looked at.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Arguments {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sort_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) executor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempt: Option<u32>,
    /// Microseconds from when it was ready to its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queued_us: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<String>,
}

impl Line {
    pub(super) fn new(name: &str, phase: Phase, row: Row, at: Micros) -> Line {
        Line {
            name: name.to_string(),
            category: None,
            phase,
            group: row.group,
            row: row.number,
            at,
            id: None,
            binding: (phase == Phase::ArrowEnd).then_some("e"),
            scope: (phase == Phase::Instant).then_some("g"),
            arguments: None,
        }
    }

    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        let written = serde_json::to_writer(bytes, self);
        written.expect("a line has only string keys and whole numbers");
    }
}
