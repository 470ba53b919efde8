//! What all threads of a journal share, and the acts that they take turns at: write, sync, fail.
//!
//! Three locks, taken in this order and never the other way: `syncing`, `writing`, `gathering`. The
//! first two are held during I/O, the last one never. No queue of waiters exists: the thread that
//! wants something written takes the turn, finds it done by the one before, or does it for all.
//! Read next: `threads`, which tend to it in the background, and `journal`, the face of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::disk::Disk;
use crate::error::JournalError;
use crate::frame::Sequence;
use crate::gathering::{Gathering, Writer};
use crate::journal::{Durability, OnFailure};
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::writing::{Unsynced, Writing};

pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) durability: Durability,
    gathering: Mutex<Gathering>,
    /// Wakes the writer thread.
    pub(crate) gathered: Condvar,
    writing: Mutex<Writing>,
    syncing: Mutex<()>,
    pub(crate) syncer: Mutex<Syncer>,
    /// Wakes the syncer thread.
    pub(crate) syncer_wake: Condvar,
    appended: AtomicU64,
    appended_bytes: AtomicU64,
    written: AtomicU64,
    written_bytes: AtomicU64,
    synced: AtomicU64,
    /// Bytes of the log up to the last snapshot, and bytes of that.
    pub(crate) growth: Mutex<(u64, u64)>,
    failure: OnceLock<JournalError>,
    on_failure: Mutex<Option<OnFailure>>,
}

/// What the syncer thread is doing, as far as others must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syncer {
    /// A sync will happen without a request.
    Awake,
    /// It must be woken after a write.
    Asleep,
    /// It has ended or is to end.
    Ended,
}

/// Takes a lock. What it guards is whole even if a holder panicked: every change of it is either
/// one step, or undone by a guard of its own.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        durability: Durability,
        gathering: Gathering,
        writing: Writing,
        snapshot_bytes: u64,
        on_failure: Option<OnFailure>,
    ) -> Shared {
        let (last, bytes) = (gathering.last().0, gathering.total_bytes());
        Shared {
            disk,
            durability,
            gathering: Mutex::new(gathering),
            gathered: Condvar::new(),
            writing: Mutex::new(writing),
            syncing: Mutex::new(()),
            syncer: Mutex::new(Syncer::Awake),
            syncer_wake: Condvar::new(),
            appended: AtomicU64::new(last),
            appended_bytes: AtomicU64::new(bytes),
            written: AtomicU64::new(last),
            written_bytes: AtomicU64::new(bytes),
            synced: AtomicU64::new(last),
            growth: Mutex::new((0, snapshot_bytes)),
            failure: OnceLock::new(),
            on_failure: Mutex::new(on_failure),
        }
    }

    pub(crate) fn gathering(&self) -> MutexGuard<'_, Gathering> {
        lock(&self.gathering)
    }

    #[inline]
    pub(crate) fn append(&self, encode: impl FnOnce(&mut Vec<u8>)) -> Sequence {
        let mut gathering = self.gathering();
        let (sequence, outcome) = gathering.append(encode);
        // Under the lock, so that the numbers never go back.
        self.appended.store(sequence.0, Ordering::Release);
        let bytes = gathering.total_bytes();
        self.appended_bytes.store(bytes, Ordering::Relaxed);
        if let Err(too_long) = outcome {
            self.stop(
                &mut gathering,
                JournalError::RecordTooLong {
                    bytes: too_long.bytes,
                    bytes_max: PAYLOAD_BYTES_MAX,
                },
            );
        }
        self.wake_writer(gathering);
        sequence
    }

    /// Lets go of what gathers, and lets the writer thread look at it if it sleeps.
    pub(crate) fn wake_writer(&self, mut gathering: MutexGuard<'_, Gathering>) {
        let is_asleep = gathering.writer == Writer::Asleep;
        if is_asleep {
            gathering.writer = Writer::Awake;
        }
        drop(gathering);
        if is_asleep {
            self.gathered.notify_one();
        }
    }

    pub(crate) fn appended(&self) -> Sequence {
        Sequence(self.appended.load(Ordering::Acquire))
    }

    /// Bytes of frames that are not written yet; a hint while others append and write.
    pub(crate) fn unwritten_bytes(&self) -> u64 {
        let written = self.written_bytes.load(Ordering::Relaxed);
        let appended = self.appended_bytes.load(Ordering::Relaxed);
        appended.saturating_sub(written)
    }

    pub(crate) fn written(&self) -> Sequence {
        Sequence(self.written.load(Ordering::Acquire))
    }

    pub(crate) fn synced(&self) -> Sequence {
        Sequence(self.synced.load(Ordering::Acquire))
    }

    /// The last record for which the promise of the durability holds.
    pub(crate) fn safe(&self) -> Sequence {
        match self.durability {
            Durability::Process => self.written(),
            Durability::Power => self.synced(),
        }
    }

    /// Makes everything up to a record safe.
    pub(crate) fn wait_for(&self, until: Sequence) -> Result<(), JournalError> {
        if self.safe() >= until {
            return Ok(());
        }
        self.write_until(until)?;
        match self.durability {
            Durability::Process => Ok(()),
            Durability::Power => self.sync_until(until),
        }
    }

    fn write_until(&self, until: Sequence) -> Result<(), JournalError> {
        let mut writing = lock(&self.writing);
        let outcome = if self.written() >= until {
            Ok(())
        } else {
            self.write_in_turn(&mut writing)
        };
        drop(writing);
        self.after_progress();
        // A failure further on does not take back what was written before it.
        outcome.or_else(|error| (self.written() >= until).then_some(()).ok_or(error))
    }

    /// Writes whatever has gathered.
    pub(crate) fn write_gathered(&self) -> Result<(), JournalError> {
        let outcome = self.write_in_turn(&mut lock(&self.writing));
        self.after_progress();
        outcome
    }

    fn write_in_turn(&self, writing: &mut Writing) -> Result<(), JournalError> {
        if let Some(failure) = self.failure() {
            return Err(failure.clone());
        }
        let spare = std::mem::take(&mut writing.spare);
        let mut gathering = self.gathering();
        let (batch, bytes) = (gathering.take(spare), gathering.total_bytes());
        drop(gathering);
        let outcome = if batch.is_empty() {
            Ok(())
        } else {
            writing.put(&*self.disk, &batch)
        };
        writing.spare = batch;
        self.written.store(writing.written().0, Ordering::Release);
        self.written_bytes.store(bytes, Ordering::Relaxed);
        outcome.map_err(|error| self.fail(error))
    }

    fn sync_until(&self, until: Sequence) -> Result<(), JournalError> {
        let turn = lock(&self.syncing);
        let outcome = if self.synced() >= until {
            Ok(())
        } else {
            self.sync_in_turn()
        };
        drop(turn);
        self.after_progress();
        outcome
    }

    /// Syncs all written bytes and appends a sync mark.
    pub(crate) fn sync(&self) -> Result<(), JournalError> {
        let turn = lock(&self.syncing);
        let outcome = self.sync_in_turn();
        drop(turn);
        self.after_progress();
        outcome
    }

    /// Syncs the end of the log, after which no record may follow.
    pub(crate) fn sync_last(&self) -> Result<(), JournalError> {
        let _turn = lock(&self.syncing);
        self.sync_files().map(drop)
    }

    /// Called with the turn to sync.
    fn sync_in_turn(&self) -> Result<(), JournalError> {
        let unsynced = self.sync_files()?;
        let mut gathering = self.gathering();
        gathering.mark(unsynced.last, unsynced.generation, unsynced.bytes);
        self.wake_writer(gathering);
        Ok(())
    }

    fn sync_files(&self) -> Result<Unsynced, JournalError> {
        if let Some(failure) = self.failure() {
            return Err(failure.clone());
        }
        let unsynced = lock(&self.writing).take_unsynced();
        let outcome = unsynced.sync(&*self.disk);
        outcome.map_err(|error| self.fail(error))?;
        self.synced.store(unsynced.last.0, Ordering::Release);
        Ok(unsynced)
    }

    /// Forgets logs whose place a snapshot has taken.
    pub(crate) fn forget_before(&self, generation: u64) {
        lock(&self.writing).forget_before(generation);
    }

    /// Notifies sleeping threads of what was written or synced. Called without a lock.
    fn after_progress(&self) {
        self.tell_failure();
        if self.synced() < self.written() {
            let mut syncer = lock(&self.syncer);
            if *syncer == Syncer::Asleep {
                *syncer = Syncer::Awake;
                self.syncer_wake.notify_one();
            }
        }
        let gathering = self.gathering();
        if gathering.has_acts() {
            self.wake_writer(gathering);
        }
    }

    /// Does what was put off until something is safe.
    pub(crate) fn run_due_acts(&self) {
        let due = self.gathering().take_due_acts(self.safe());
        for act in due {
            act();
        }
        let hopeless = self.gathering().take_hopeless_acts(self.safe());
        drop(hopeless);
    }

    pub(crate) fn failure(&self) -> Option<&JournalError> {
        self.failure.get()
    }

    fn fail(&self, error: JournalError) -> JournalError {
        self.stop(&mut self.gathering(), error)
    }

    /// From now on nothing is written. Gives the first failure, which may be another one.
    pub(crate) fn stop(&self, gathering: &mut Gathering, error: JournalError) -> JournalError {
        gathering.stop();
        self.failure.get_or_init(|| error).clone()
    }

    /// Passes the first failure to the caller's handler, once. Called without a lock.
    pub(crate) fn tell_failure(&self) {
        let Some(failure) = self.failure() else {
            return;
        };
        let told = lock(&self.on_failure).take();
        if let Some(tell) = told.filter(|_| !matches!(failure, JournalError::Closed { .. })) {
            tell(failure);
        }
    }
}
