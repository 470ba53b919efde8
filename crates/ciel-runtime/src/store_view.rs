//! What `ciel ps --store` shows of a live run, and what is kept of it at the run's end.
//!
//! It counts nothing: the store does, where it handles the bytes. Read next: `largest`.

use ciel_store::{Counts, Kind, Place};
use ciel_view::records::{LargeRecord, StoreRecord, TrafficRecord};

use crate::engine::Engine;
use crate::largest::Large;

/// The bytes of the run's objects and of its waiting output at this moment.
pub(crate) fn store_record(engine: &Engine) -> StoreRecord {
    let counts = engine.folder.budget().counts();
    let memory = engine.folder.objects().memory_use();
    let largest = engine.largest.all();
    StoreRecord {
        made_bytes: counts.made(),
        moved_bytes: counts.moved,
        spilled_bytes: counts.of(Kind::Output).made,
        released_bytes: counts.released(),
        present_bytes: counts.present(),
        peak_bytes: counts.peak,
        disk_bytes: engine.folder.disk_bytes(),
        limit_bytes: (engine.store_bytes < u64::MAX).then_some(engine.store_bytes),
        unfinished_bytes: engine.folder.scratch().unfinished_bytes(),
        memory_bytes: memory.present,
        memory_peak_bytes: memory.peak,
        memory_limit_bytes: memory.limit,
        mapped_bytes: memory.mapped,
        recycled_bytes: memory.recycled,
        written_back_bytes: memory.written_back,
        streams_bytes: memory.streams,
        streams_peak_bytes: memory.streams_peak,
        kinds: Kind::ALL
            .iter()
            .filter_map(|kind| of(&counts, *kind))
            .collect(),
        largest: largest.iter().map(|one| large(engine, one)).collect(),
    }
}

fn of(counts: &Counts, kind: Kind) -> Option<TrafficRecord> {
    let traffic = counts.of(kind);
    (traffic.made > 0).then(|| TrafficRecord {
        kind: kind.word().to_string(),
        made_bytes: traffic.made,
        released_bytes: traffic.released,
        present_bytes: traffic.present(),
    })
}

fn large(engine: &Engine, one: &Large) -> LargeRecord {
    let location = engine.objects.location(one.name);
    let mut folders = engine.folder.objects_paths().into_iter();
    let disk = folders.next().expect("every run has one on the disk");
    let is_on_disk = |place: &Place| matches!(place, Place::File(path) if path.starts_with(&disk));
    LargeRecord {
        object: one.name.to_string(),
        task: one.maker.clone(),
        bytes: one.length,
        present: location.is_some(),
        in_memory: location.is_some_and(|location| !is_on_disk(&location.place)),
    }
}
