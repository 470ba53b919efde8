//! The rows of a trace: a row for each slot and worker, made when a task first runs there.

use std::collections::BTreeMap;

use super::line::{Arguments, Line, Phase, Row, WAITS};

/// Where a task has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spot {
    /// A thread for scripts; which one is not known, so it gets the first row that is free.
    Script,
    /// A slot for processes, likewise.
    Command,
    /// A worker.
    Worker(u64),
}

/// All rows so far.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The rows of each spot, and whether a task runs there.
    of: BTreeMap<Spot, Vec<(Row, bool)>>,
    count: u32,
}

impl Rows {
    /// A free row for a task, with the lines to be written first if it is a new one.
    pub(super) fn take(&mut self, spot: Spot) -> (Row, Vec<Line>) {
        let rows = self.of.entry(spot).or_default();
        if let Some((row, is_taken)) = rows.iter_mut().find(|(_, is_taken)| !is_taken) {
            *is_taken = true;
            return (*row, Vec::new());
        }
        self.count += 1;
        let (group, _) = group_of(spot);
        let row = Row {
            group,
            number: self.count,
        };
        rows.push((row, true));
        let heading = headings(spot, row, rows.len());
        (row, heading)
    }

    pub(super) fn free(&mut self, row: Row) {
        let mut rows = self.of.values_mut().flatten();
        if let Some((_, is_taken)) = rows.find(|(other, _)| *other == row) {
            *is_taken = false;
        }
    }
}

fn group_of(spot: Spot) -> (u32, &'static str) {
    match spot {
        Spot::Script => (1, "scripts"),
        Spot::Command => (2, "commands"),
        Spot::Worker(_) => (3, "workers"),
    }
}

/// What a reader shows beside a new row, the `place`-th of its spot.
fn headings(spot: Spot, row: Row, place: usize) -> Vec<Line> {
    let (_, group) = group_of(spot);
    let name = match spot {
        Spot::Script | Spot::Command => format!("slot {place}"),
        Spot::Worker(worker) if place == 1 => format!("worker {worker}"),
        Spot::Worker(worker) => format!("worker {worker}, {place}"),
    };
    let mut rank = Line::new("thread_sort_index", Phase::Heading, row, 0);
    rank.arguments = Some(Arguments {
        sort_index: Some(row.number),
        ..Arguments::default()
    });
    vec![
        heading("process_name", row, group.to_string()),
        heading("thread_name", row, name),
        rank,
    ]
}

/// What a reader shows beside the slices that are on no row of a slot.
pub(super) fn heading_of_waits() -> Line {
    heading("process_name", WAITS, "waits".to_string())
}

fn heading(what: &str, row: Row, name: String) -> Line {
    let mut line = Line::new(what, Phase::Heading, row, 0);
    line.arguments = Some(Arguments {
        name: Some(name),
        ..Arguments::default()
    });
    line
}
