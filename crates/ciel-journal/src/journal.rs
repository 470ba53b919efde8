//! The face of the journal: append, wait, snapshot, close.
//!
//! It does not know payloads. Read next: `shared`, where the work is done, and `threads`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::disk::{Disk, RealDisk};
use crate::error::JournalError;
use crate::frame::Sequence;
use crate::give_up;
use crate::open::{self, Opened};
use crate::recorded::{Cut, Recorded};
use crate::shared::{Shared, lock};
use crate::snapshot::Snapshot;
use crate::threads::Threads;

/// Which failures a record survives once [`Journal::wait_for`] has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, whatever its cause: the record is written.
    #[default]
    Process,
    /// Also a failure of the power: the record is synced.
    Power,
}

/// Who writes the records for which no thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Upkeep {
    /// Two threads of the journal's own.
    #[default]
    Threads,
    /// The caller, by [`Journal::tend`] and [`Journal::sync`]: the same acts lead to the same
    /// bytes every time, as simulations need it.
    Caller,
}

/// Receives the first failure of writing.
pub type OnFailure = Box<dyn FnOnce(&JournalError) + Send>;

/// How a journal is kept.
#[derive(Default)]
pub struct Options {
    /// What waiting promises.
    pub durability: Durability,
    /// Who tends to it.
    pub upkeep: Upkeep,
    /// Called once, at the first failure of writing, on a thread of the journal's or inside an
    /// act that waits; the caller's locks that are held there must not be taken.
    pub on_failure: Option<OnFailure>,
}

impl From<Durability> for Options {
    fn from(durability: Durability) -> Options {
        Options {
            durability,
            ..Options::default()
        }
    }
}

/// How far the log has grown, for the caller to decide about the next snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// Bytes of log since the last snapshot.
    pub log_bytes: u64,
    /// Bytes of that snapshot's payload; 0 without one.
    pub snapshot_bytes: u64,
    /// Records for which the promise of the durability does not hold yet. A caller that makes
    /// them faster than the disk takes them must hold back by this, or by
    /// [`Journal::unwritten_bytes`]; an append never does.
    pub behind: u64,
}

/// A journal that is written. A clone is the same journal; when the last one is dropped without
/// [`Journal::close`], what has gathered is written and not synced.
///
/// One folder belongs to one journal at a time. Nothing here sees to that: the lock of the run
/// does, and a second journal in a live folder would damage both.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    threads: Mutex<Option<Threads>>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Journal")
            .field("path", &self.shared().disk.path())
            .field("appended", &self.appended())
            .finish_non_exhaustive()
    }
}

impl Journal {
    /// A new journal in an existing folder.
    ///
    /// # Errors
    /// If there is one already, or the system refuses.
    pub fn create(folder: &Path, options: impl Into<Options>) -> Result<Journal, JournalError> {
        Journal::create_on(Arc::new(RealDisk::new(folder)), options)
    }

    /// The same on any disk.
    ///
    /// # Errors
    /// As there.
    pub fn create_on(
        disk: Arc<dyn Disk>,
        options: impl Into<Options>,
    ) -> Result<Journal, JournalError> {
        let opened = open::create(&*disk)?;
        Journal::begin(disk, opened, options.into())
    }

    /// Reads what is in an existing folder and changes nothing, not even a torn tail: what was cut
    /// off is reported in [`Recorded::cut`] and is still in the file. The journal may be written
    /// meanwhile; what is read then is a beginning of it.
    ///
    /// # Errors
    /// If the journal is damaged or of another format, or the system refuses.
    pub fn read(folder: &Path) -> Result<Recorded, JournalError> {
        Journal::read_on(&RealDisk::new(folder))
    }

    /// The same on any disk.
    ///
    /// # Errors
    /// As there.
    pub fn read_on(disk: &dyn Disk) -> Result<Recorded, JournalError> {
        open::look(disk)
    }

    /// Removes the records from `first` on from a journal that is not open, and returns what was
    /// removed; none if there is no such record, or a snapshot covers it. The recorded work is
    /// redone, although it was safe.
    ///
    /// # Errors
    /// As of [`Journal::open`].
    pub fn give_up(folder: &Path, first: Sequence) -> Result<Option<Cut>, JournalError> {
        Journal::give_up_on(&RealDisk::new(folder), first)
    }

    /// The same on any disk.
    ///
    /// # Errors
    /// As there.
    pub fn give_up_on(disk: &dyn Disk, first: Sequence) -> Result<Option<Cut>, JournalError> {
        give_up::give_up(disk, first)
    }

    /// Opens an existing folder, truncates a torn tail in the file, and continues after it. A
    /// folder in which nothing was recorded yet is fine.
    ///
    /// # Errors
    /// If the journal is damaged or of another format, or the system refuses. Nothing is changed
    /// in the first two cases.
    pub fn open(
        folder: &Path,
        options: impl Into<Options>,
    ) -> Result<(Journal, Recorded), JournalError> {
        Journal::open_on(Arc::new(RealDisk::new(folder)), options)
    }

    /// The same on any disk.
    ///
    /// # Errors
    /// As there.
    pub fn open_on(
        disk: Arc<dyn Disk>,
        options: impl Into<Options>,
    ) -> Result<(Journal, Recorded), JournalError> {
        let (opened, recorded) = open::open(&*disk)?;
        let journal = Journal::begin(disk, opened, options.into())?;
        Ok((journal, recorded))
    }

    fn begin(
        disk: Arc<dyn Disk>,
        opened: Opened,
        options: Options,
    ) -> Result<Journal, JournalError> {
        let shared = Arc::new(Shared::new(
            disk,
            options.durability,
            opened.gathering,
            opened.writing,
            opened.snapshot_bytes,
            options.on_failure,
        ));
        let threads = match options.upkeep {
            Upkeep::Threads => Some(Threads::start(&shared)?),
            Upkeep::Caller => None,
        };
        let threads = Mutex::new(threads);
        let inner = Arc::new(Inner { shared, threads });
        Ok(Journal { inner })
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    /// Appends one record, which `encode` appends to the buffer in place, and gives its number.
    /// Never does I/O and waits for nothing but another append or the taking of the buffer. After
    /// a failure records are counted and not kept, and `encode` is not called.
    ///
    /// # Panics
    /// If `encode` takes away bytes that it did not append. A panic of its own leaves no record.
    #[inline]
    pub fn append(&self, encode: impl FnOnce(&mut Vec<u8>)) -> Sequence {
        self.shared().append(encode)
    }

    /// The number of the last record appended; 0 if there is none.
    pub fn appended(&self) -> Sequence {
        self.shared().appended()
    }

    /// The last record for which [`Journal::wait_for`] returns at once.
    pub fn safe(&self) -> Sequence {
        self.shared().safe()
    }

    /// Bytes of records in memory that are not written yet; a hint while others append and write.
    pub fn unwritten_bytes(&self) -> u64 {
        self.shared().unwritten_bytes()
    }

    /// Waits until everything up to that record is as safe as the durability promises. If no thread
    /// is writing, the caller writes for all.
    ///
    /// # Errors
    /// The first failure of writing, if it came before the record was safe.
    ///
    /// # Panics
    /// If no record has that number yet.
    pub fn wait_for(&self, until: Sequence) -> Result<(), JournalError> {
        assert!(
            until <= self.appended(),
            "record {until} is waited for and was not appended"
        );
        self.shared().wait_for(until)
    }

    /// Does something, such as removing a file, once that record is as safe as the durability
    /// promises. It is done on the writer thread or by [`Journal::close`], and never if that record
    /// is not written.
    pub fn after(&self, until: Sequence, act: Box<dyn FnOnce() + Send>) {
        let mut gathering = self.shared().gathering();
        gathering.put_act(until, act);
        self.shared().wake_writer(gathering);
    }

    /// How far the log has grown since the last snapshot.
    pub fn grown(&self) -> Growth {
        let (bytes_before, snapshot_bytes) = *lock(&self.shared().growth);
        let gathering = self.shared().gathering();
        Growth {
            log_bytes: gathering.total_bytes() - bytes_before,
            snapshot_bytes,
            behind: gathering.last().0 - self.safe().0,
        }
    }

    /// Draws the line for a snapshot: it must cover everything appended so far, and what is
    /// appended from now on goes to a new log. Quick; call it under the lock under which the
    /// payload is made, and [`Snapshot::write`] without the lock. None while another one is open.
    pub fn begin_snapshot(&self) -> Option<Snapshot> {
        let mut gathering = self.shared().gathering();
        if gathering.is_snapshot_open {
            return None;
        }
        gathering.is_snapshot_open = true;
        let total_bytes = gathering.total_bytes();
        let (generation, until) = gathering.switch();
        self.shared().wake_writer(gathering);
        Some(Snapshot {
            journal: self.clone(),
            generation,
            until,
            total_bytes,
        })
    }

    /// The first failure of writing, after which nothing more is written.
    pub fn failed(&self) -> Option<&JournalError> {
        self.shared().failure()
    }

    /// The journal's folder.
    pub fn folder(&self) -> &Path {
        self.shared().disk.path()
    }

    /// The journal's folder, if somebody has removed it or all that was in it: what is written goes
    /// into files without a name.
    pub fn removed(&self) -> Option<PathBuf> {
        let disk = &self.shared().disk;
        let is_removed = match disk.names() {
            Ok(names) => names.is_empty(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        is_removed.then(|| disk.path().to_path_buf())
    }

    /// Writes what has gathered and does what was put off until then: one round of the writer
    /// thread, for a journal without it.
    ///
    /// # Errors
    /// The first failure of writing.
    pub fn tend(&self) -> Result<(), JournalError> {
        let outcome = self.shared().write_gathered();
        self.shared().run_due_acts();
        outcome
    }

    /// Syncs what is written: one round of the thread that does, for a journal without it.
    ///
    /// # Errors
    /// The first failure of writing.
    pub fn sync(&self) -> Result<(), JournalError> {
        self.shared().sync()
    }

    /// Writes and syncs the rest, marks the end in the log, does postponed work, and ends the
    /// threads. Records that clones append afterwards are not written.
    ///
    /// # Errors
    /// The first failure of writing.
    pub fn close(self) -> Result<(), JournalError> {
        // Taken out first: the threads must not need the lock that guards them.
        let threads = lock(&self.inner.threads).take();
        drop(threads);
        let outcome = self.finish();
        let path = self.shared().disk.path().to_path_buf();
        let closed = JournalError::Closed { path };
        self.shared().stop(&mut self.shared().gathering(), closed);
        self.shared().run_due_acts();
        outcome
    }

    fn finish(&self) -> Result<(), JournalError> {
        self.shared().write_gathered()?;
        self.shared().sync()?;
        self.shared().gathering().end();
        self.shared().write_gathered()?;
        self.shared().sync_last()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if lock(&self.threads).take().is_none() && self.shared.failure().is_none() {
            // No caller is left to receive a failure.
            let _ = self.shared.write_gathered();
        }
    }
}
