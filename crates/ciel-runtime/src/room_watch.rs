//! Looks how much running tasks have written that is no object yet, and ends those without room.
//!
//! Nobody says how much a process writes to a file, so somebody has to look; but only while the
//! disk of the run is bounded and tasks run, and the less often the longer a look takes. It does
//! not know what is too much. Read next: `room`, which does.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ciel_store::Written;

use crate::engine::Engine;
use crate::room;
use crate::spawning::Spawning;
use crate::workers::Workers;

/// Of the time, one part in so many may go into looks.
const PARTS_OF_TIME: u32 = 20;

/// The looks of a run.
pub(crate) struct RoomWatch {
    engine: Arc<Engine>,
    spawning: Rc<Spawning>,
    workers: Rc<Workers>,
    /// Not while a look is taken.
    next: Cell<Option<Instant>>,
    bytes_before: Cell<u64>,
}

impl RoomWatch {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        spawning: &Rc<Spawning>,
        workers: &Rc<Workers>,
    ) -> Rc<RoomWatch> {
        Rc::new(RoomWatch {
            engine: engine.clone(),
            spawning: spawning.clone(),
            workers: workers.clone(),
            next: Cell::new(Some(Instant::now())),
            bytes_before: Cell::new(0),
        })
    }

    /// It may be time for a look.
    pub(crate) fn look(self: &Rc<Self>) {
        let is_time = self.next.get().is_some_and(|next| next <= Instant::now());
        if is_time && self.is_wanted() {
            self.next.set(None);
            tokio::task::spawn_local(self.clone().measure());
        }
    }

    /// Whether there will be a look although nothing happens.
    pub(crate) fn is_wanted(&self) -> bool {
        self.engine.store_bytes < u64::MAX && self.runs_anything()
    }

    fn runs_anything(&self) -> bool {
        self.bytes_before.get() > 0 || self.engine.lock().engine().node().placed() > 0
    }

    async fn measure(self: Rc<Self>) {
        let begun = Instant::now();
        let scratch = self.engine.folder.scratch().clone();
        let measured = tokio::task::spawn_blocking(move || scratch.measure()).await;
        self.heed(&measured.expect("looking at files does not panic"));
        self.next
            .set(Some(Instant::now() + rest_after(begun.elapsed())));
    }

    fn heed(&self, written: &[Written]) {
        let bytes = written.iter().map(|one| one.bytes).sum();
        if bytes < self.bytes_before.replace(bytes) {
            room::note_freed(&self.engine);
        }
        for (written, no_room) in room::overdrawn(&self.engine, written) {
            let overdrawn = Rc::new((written, no_room));
            self.spawning.end_overdrawn(&overdrawn);
            self.workers.end_overdrawn(&overdrawn);
        }
    }
}

/// For how long nobody looks after a look that took so long.
fn rest_after(took: Duration) -> Duration {
    took * (PARTS_OF_TIME - 1)
}
