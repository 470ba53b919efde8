//! The memory that the objects of the run share with its tasks.
//!
//! The node decides who has how much; here the store is told, and what it has given back is
//! submitted. It does not know who waits. Read next: `ciel_node`, `ciel_store::FileObjects`.

use std::sync::Arc;
use std::time::Duration;

use ciel_engine::Event;

use crate::engine::Engine;
use crate::looks::Removals;

/// Further looks, after a millisecond and then after twice as long each: the system tells
/// that a file is closed just before it is, and whoever closes it may wait for a core in between.
const CLOSING_LOOKS: u32 = 10;

/// Has objects take at most so many bytes of memory, beside all that happens meanwhile.
pub(crate) fn shrink(engine: &Arc<Engine>, bytes: u64) {
    let engine = engine.clone();
    tokio::task::spawn_blocking(move || {
        let bytes = (engine.folder.objects()).shrink_memory(bytes, || room(&engine));
        engine.with(|core, now| core.tell(now, Event::StoreShrank { bytes }));
    });
}

/// Frees what nobody has mapped any more; a task that waits for memory may have it.
pub(crate) fn settle(engine: &Engine) {
    if engine.folder.objects().settle_memory() > 0 {
        engine.with(|core, now| core.tell(now, Event::StoreFreed));
    }
}

/// The same each time that something is told to be closed.
pub(crate) async fn settle_when_told(engine: Arc<Engine>, mut closed: Removals) {
    let mut looks = CLOSING_LOOKS;
    loop {
        let pause = Duration::from_millis(1 << looks);
        tokio::select! {
            () = closed.next() => looks = 0,
            () = tokio::time::sleep(pause), if looks < CLOSING_LOOKS => looks += 1,
        }
        settle(&engine);
    }
}

/// Bytes that the run may write to the disk before its budget is used up.
fn room(engine: &Engine) -> u64 {
    let folder = &engine.folder;
    let taken = folder.disk_bytes() + folder.scratch().unfinished_bytes();
    engine.store_bytes.saturating_sub(taken)
}
