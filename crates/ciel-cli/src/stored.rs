//! The bytes of a run's objects in a line of words.
//!
//! It does not know who shows them. Read next: `ciel_view::records`.

use ciel_view::records::StoreRecord;

use crate::display::size;

/// `120.0 MiB made, 8.0 MiB moved, 1.0 MiB spilled, 20.0 MiB on disk at the peak`.
pub fn amounts(store: &StoreRecord) -> String {
    let mut parts = vec![format!("{} made", size(store.made_bytes))];
    if store.moved_bytes > 0 {
        parts.push(format!("{} moved", size(store.moved_bytes)));
    }
    if store.spilled_bytes > 0 {
        parts.push(format!("{} spilled", size(store.spilled_bytes)));
    }
    if store.memory_bytes > 0 {
        parts.push(format!("{} in memory", size(store.memory_bytes)));
    }
    if store.written_back_bytes > 0 {
        let words = format!(
            "{} written back from memory",
            size(store.written_back_bytes)
        );
        parts.push(words);
    }
    if store.recycled_bytes > 0 {
        let words = format!("{} recycled in memory", size(store.recycled_bytes));
        parts.push(words);
    }
    if store.streams_peak_bytes > 0 {
        let words = format!(
            "streams in shared memory: {} at the peak",
            size(store.streams_peak_bytes)
        );
        parts.push(words);
    }
    let on_disk = store.present_bytes.saturating_sub(store.memory_bytes);
    if on_disk > 0 {
        parts.push(format!("{} on disk", size(on_disk)));
    }
    parts.push(match store.memory_peak_bytes {
        0 => format!("{} on disk at the peak", size(store.peak_bytes)),
        memory => format!(
            "{} on disk and in memory at the peak, up to {} in memory",
            size(store.peak_bytes.max(memory)),
            size(memory)
        ),
    });
    parts.join(", ")
}
