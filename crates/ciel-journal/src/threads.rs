//! The two threads of a journal: one writes records that no thread waits for, one syncs
//! periodically.
//!
//! They do not know how; they only choose when. A thread that has nothing to do sleeps without a
//! timer. While records keep coming, the writer looks by itself every millisecond, so that an
//! append need not wake it. Read next: `shared`, whose acts they call.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::JournalError;
use crate::gathering::{Gathering, Writer};
use crate::limits::{IDLE_PAUSES_MAX, SYNC_PAUSE, WRITE_PAUSE};
use crate::shared::{Shared, Syncer, lock};

/// The running threads; they end when this is dropped, after a last write.
pub(crate) struct Threads {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Threads, JournalError> {
        let mut threads = Threads {
            shared: Arc::clone(shared),
            handles: Vec::new(),
        };
        threads.spawn("journal-write", run_writer)?;
        threads.spawn("journal-sync", run_syncer)?;
        Ok(threads)
    }

    fn spawn(&mut self, name: &str, run: fn(&Shared)) -> Result<(), JournalError> {
        let shared = Arc::clone(&self.shared);
        let builder = thread::Builder::new().name(name.to_owned());
        let handle = builder.spawn(move || run(&shared)).map_err(|error| {
            let folder = self.shared.disk.path();
            JournalError::system("start a thread for", folder, error)
        })?;
        self.handles.push(handle);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.gathering().writer = Writer::Ended;
        self.shared.gathered.notify_all();
        *lock(&self.shared.syncer) = Syncer::Ended;
        self.shared.syncer_wake.notify_all();
        for handle in self.handles.drain(..) {
            // The last one to let go may be an act on the writer thread itself.
            if handle.thread().id() != thread::current().id() {
                // A panic of an act was printed by that thread; no caller is left to receive it.
                let _ = handle.join();
            }
        }
    }
}

fn run_writer(shared: &Shared) {
    let mut idle = 0;
    loop {
        let (is_ended, has_work) = look(shared);
        if has_work {
            // A failure is kept and returned to all who wait.
            let _ = shared.write_gathered();
            shared.run_due_acts();
            idle = 0;
        }
        if shared.failure().is_some() {
            shared.tell_failure();
            shared.run_due_acts();
        }
        if is_ended {
            return;
        }
        let gathering = shared.gathering();
        if idle < IDLE_PAUSES_MAX {
            idle += 1;
            pause(shared, gathering);
        } else {
            wait_to_be_woken(shared, gathering);
        }
    }
}

fn look(shared: &Shared) -> (bool, bool) {
    let gathering = shared.gathering();
    let has_work = !gathering.is_empty() || gathering.has_due_acts(shared.safe());
    (gathering.writer == Writer::Ended, has_work)
}

fn pause(shared: &Shared, gathering: MutexGuard<'_, Gathering>) {
    let is_awake = |gathering: &mut Gathering| gathering.writer == Writer::Awake;
    let waited = shared
        .gathered
        .wait_timeout_while(gathering, WRITE_PAUSE, is_awake);
    drop(waited.unwrap_or_else(PoisonError::into_inner));
}

fn wait_to_be_woken(shared: &Shared, mut gathering: MutexGuard<'_, Gathering>) {
    let has_work = !gathering.is_empty() || gathering.has_due_acts(shared.safe());
    if has_work || gathering.writer == Writer::Ended {
        return;
    }
    gathering.writer = Writer::Asleep;
    let is_asleep = |gathering: &mut Gathering| gathering.writer == Writer::Asleep;
    let waited = shared.gathered.wait_while(gathering, is_asleep);
    drop(waited.unwrap_or_else(PoisonError::into_inner));
}

fn run_syncer(shared: &Shared) {
    while wait_for_writes(shared) {
        // A failure is kept and returned to all who wait.
        let _ = shared.sync();
    }
}

/// Sleeps until something was written, and then for the pause; false if it is to end.
fn wait_for_writes(shared: &Shared) -> bool {
    let mut syncer = lock(&shared.syncer);
    let has_nothing = shared.synced() >= shared.written() || shared.failure().is_some();
    if *syncer != Syncer::Ended && has_nothing {
        *syncer = Syncer::Asleep;
    }
    let is_asleep = |syncer: &mut Syncer| *syncer == Syncer::Asleep;
    let woken = shared.syncer_wake.wait_while(syncer, is_asleep);
    let woken = woken.unwrap_or_else(PoisonError::into_inner);
    let is_awake = |syncer: &mut Syncer| *syncer == Syncer::Awake;
    let waited = shared
        .syncer_wake
        .wait_timeout_while(woken, SYNC_PAUSE, is_awake);
    *waited.unwrap_or_else(PoisonError::into_inner).0 != Syncer::Ended
}
