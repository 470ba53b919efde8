//! The bytes of a run's objects as `ciel ps --store` shows them.
//!
//! It does not know how they are counted. Read next: `stored`, and `ciel_view::records`.

use ciel_view::inspect::RunView;
use ciel_view::records::{LargeRecord, TrafficRecord};

use crate::display::{columns, size};
use crate::paint::Paint;
use crate::stored::amounts;

/// The lines beneath a run.
pub(super) fn lines(run: &RunView, paint: Paint) -> String {
    let Some(store) = &run.store else {
        return format!(
            "  {}\n",
            paint.faint("objects: not known of a run that was killed")
        );
    };
    let mut text = format!("  objects: {}\n", amounts(store));
    let place = match store.memory_bytes {
        0 => "on disk",
        _ => "on disk and in memory",
    };
    let kinds = store.kinds.iter().map(|kind| kind_row(kind, place));
    let largest = store.largest.iter().map(large_row);
    let tables: [Vec<Vec<String>>; 2] = [kinds.collect(), largest.collect()];
    for line in tables.iter().flat_map(|rows| columns(rows, "    ")) {
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn kind_row(kind: &TrafficRecord, place: &str) -> Vec<String> {
    vec![
        kind.kind.clone(),
        format!("{} made", size(kind.made_bytes)),
        format!("{} {place}", size(kind.present_bytes)),
    ]
}

fn large_row(large: &LargeRecord) -> Vec<String> {
    let place = match (large.present, large.in_memory) {
        (true, false) => "on disk",
        (true, true) => "in memory",
        (false, _) => "released",
    };
    vec![large.task.clone(), size(large.bytes), place.to_string()]
}
