//! What the threads of a run share.
//!
//! Script threads run scripts and small internal work, the output thread writes what is final, the
//! input/output thread handles processes, workers and the observer. All of them share this module:
//! one lock around the machines, two conditions, one channel.

use std::hint::spin_loop;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use ciel_engine::{Action, Attempt};
use ciel_graph as graph;
use ciel_journal::Journal;
use ciel_model::{Failure, FailureKind, Label, Micros, Name};
use ciel_store::{ObjectName, ObjectStore, RunFolder, SharedIdleCores, StoreError};
use ciel_view::history::Writer;
use ciel_view::records::{CountsRecord, EndRecord};
use rustc_hash::FxHashMap;

use crate::blocked::{Blocked, ROOM_BYTES_MIN, free_bytes};
use crate::core::Core;
use crate::error::RunError;
use crate::executors::Registry;
use crate::file_stamp::{self, FileStamp};
use crate::followers::{Follower, Followers};
use crate::history::{Gathered, History};
use crate::history_file::{self, HistoryFile};
use crate::keep_rule::KeepRule;
use crate::kept::Request;
use crate::kept_queue;
use crate::largest::Largest;
use crate::layout::SCRATCH;
use crate::lost::LostFiles;
use crate::observer::{Observer, Report, keep_sinks};
use crate::open_files::OpenFiles;
use crate::programs::Programs;
use crate::released::Released;
use crate::settings::Settings;
use crate::tracing::Trace;
use crate::turns::ThreadState;

/// Records that may be made before the disk has taken them.
const RECORDS_BEHIND_MAX: u64 = 1 << 18;

/// Bytes of such records: output that the disk takes slowly.
const BYTES_BEHIND_MAX: u64 = 8 << 20;

/// How long a thread that has just worked looks out for a turn before it sleeps: as long as a
/// wake-up can take. Between the parts of two rounds lie some 30 microseconds.
const SPIN_MAX: Duration = Duration::from_micros(50);

/// How often a thread tries to get the machines before it sleeps. They are free again within some
/// microseconds; two tasks that end at the same time would else cost a wake-up.
const LOCK_TRIES_MAX: u32 = 100;

/// Pauses of the processor between two of these: together some twenty microseconds.
const LOCK_PAUSES: u32 = 8;

/// A run, as its threads see it.
pub(crate) struct Engine {
    pub(crate) settings: Settings,
    pub(crate) folder: Arc<RunFolder>,
    /// Every object that is not in memory.
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// The largest of them.
    pub(crate) largest: Largest,
    /// Those whose files were lost while the run lives.
    pub(crate) lost: LostFiles,
    /// Bytes of the disk that they and waiting output may take.
    pub(crate) store_bytes: u64,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) registry: Registry,
    pub(crate) programs: Programs,
    pub(crate) history: HistoryFile,
    pub(crate) trace: Trace,
    pub(crate) followers: Followers,
    /// To the thread of kept results.
    pub(crate) kept: kept_queue::Sender,
    /// Which tasks take part in them.
    pub(crate) keep_rule: KeepRule,
    /// Some results are known by digests, with which others are compared: every file gets one when
    /// it is made.
    pub(crate) compares: AtomicBool,
    /// Pure tasks whose second runs gave something else.
    pub(crate) differing: AtomicU64,
    /// What the files of the packages were like when this process began.
    pub(crate) stamps: FxHashMap<PathBuf, FileStamp>,
    /// The journal, with everything that another process needs to resume the run; none if nothing
    /// is recorded.
    pub(crate) journal: Option<Journal>,
    /// Time that earlier processes of the run had.
    before: Micros,
    /// The file of released output, until the output thread takes it.
    released: Mutex<Option<Released>>,
    /// It is known where this process shows output.
    has_kept_sinks: AtomicBool,
    /// The ordered files of the job.
    pub(crate) files: OpenFiles,
    /// What keeps this process from going on with the run.
    trouble: Mutex<Option<RunError>>,
    /// The socket of a session's client, until the input/output thread takes it.
    session: Mutex<Option<UnixStream>>,
    started: Instant,
    /// How many attempts in workers were to be stopped so far.
    stops: Arc<AtomicU64>,
    /// A thread sleeps, and there is no turn for it.
    thread_is_idle: AtomicBool,
    /// Cores that are idle while no task waits for one, as workers see them.
    idle_cores: Option<SharedIdleCores>,
    core: Mutex<Core>,
    /// There is work for script threads.
    pub(crate) work: Condvar,
    /// There is output to release.
    pub(crate) output: Condvar,
}

/// What a run keeps beside its state; nothing for one that is not to be resumed later.
#[derive(Default)]
pub(crate) struct Persistence {
    pub(crate) journal: Option<Journal>,
    pub(crate) released: Option<Released>,
    pub(crate) files: OpenFiles,
}

/// What a run is given by those around it.
pub(crate) struct Equipment {
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) registry: Registry,
    /// Nothing where processes cannot share memory.
    pub(crate) idle_cores: Option<SharedIdleCores>,
    pub(crate) programs: Programs,
    pub(crate) history: HistoryFile,
    pub(crate) trace: Trace,
    /// The socket of a session's client.
    pub(crate) session: Option<UnixStream>,
    pub(crate) kept: kept_queue::Sender,
    pub(crate) keep_rule: KeepRule,
}

impl Engine {
    pub(crate) fn new(
        settings: Settings,
        folder: Arc<RunFolder>,
        equipment: Equipment,
        kept: Persistence,
        mut core: Core,
    ) -> Engine {
        if let Some(bytes) = settings.store_bytes {
            core.bound_room(bytes, folder.clone());
        }
        let store_bytes = settings.store_bytes.unwrap_or(u64::MAX);
        Engine {
            store_bytes,
            journal: kept.journal,
            before: core.state().now(),
            released: Mutex::new(kept.released),
            has_kept_sinks: AtomicBool::new(false),
            files: kept.files,
            trouble: Mutex::new(None),
            history: equipment.history,
            trace: equipment.trace,
            followers: Followers::new(),
            kept: equipment.kept,
            keep_rule: equipment.keep_rule,
            compares: AtomicBool::new(core.graph().has_known()),
            differing: AtomicU64::new(0),
            stamps: file_stamp::stamps(settings.packages.values()),
            settings,
            idle_cores: equipment.idle_cores,
            objects: folder.objects().clone(),
            largest: Largest::default(),
            lost: LostFiles::default(),
            folder,
            observer: equipment.observer,
            registry: equipment.registry,
            programs: equipment.programs,
            session: Mutex::new(equipment.session),
            started: Instant::now(),
            stops: core.stops(),
            thread_is_idle: AtomicBool::new(false),
            core: Mutex::new(core),
            work: Condvar::new(),
            output: Condvar::new(),
        }
    }

    /// The socket of the session's client, for the one who listens to it from now on.
    pub(crate) fn take_session(&self) -> Option<UnixStream> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.take()
    }

    /// The file of released output, for the one who writes it from now on.
    pub(crate) fn take_released(&self) -> Option<Released> {
        let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
        released.take()
    }

    /// Lets the face know again where the output of the run went. To be called before any of it
    /// goes there; what others append to a file until then is none of the run's.
    ///
    /// # Errors
    /// What the run's folder refuses.
    pub(crate) fn keep_sinks(&self) -> Result<(), RunError> {
        if self.journal.is_none() || self.has_kept_sinks.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        keep_sinks(&self.folder, &*self.observer)
    }

    /// Microseconds that the run has run, in this process and in earlier ones.
    pub(crate) fn now(&self) -> Micros {
        self.before + self.started.elapsed().as_micros() as Micros
    }

    /// When this process began with the run.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// The instant at which the run will have run so long.
    pub(crate) fn instant_of(&self, at: Micros) -> Instant {
        self.started + Duration::from_micros(at.saturating_sub(self.before))
    }

    /// This process ends its work, and the run stays as recorded, to be resumed later.
    pub(crate) fn break_off(&self, why: &str) {
        self.with(|core, now| {
            let origin = Label {
                what: "job".into(),
                name: Name::default(),
            };
            let failure = Failure::new(FailureKind::Cancelled, origin, why);
            core.state_mut().stop_recording();
            core.tell(
                now,
                ciel_graph::Event::JobCancelled {
                    failure: Box::new(failure),
                },
            );
        });
    }

    /// This process cannot continue the run.
    pub(crate) fn abandon(&self, trouble: RunError) {
        let why = trouble.to_string();
        let mut first = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(trouble);
        drop(first);
        // Also when another thread was faster: later events of this thread must not be recorded.
        self.break_off(&why);
    }

    /// What kept this process from going on, if anything did.
    pub(crate) fn take_trouble(&self) -> Option<RunError> {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.take()
    }

    /// Whether a thread sleeps, and there is no turn for it.
    pub(crate) fn is_thread_idle(&self) -> bool {
        self.thread_is_idle.load(Ordering::Relaxed)
    }

    /// How many attempts in workers were to be stopped so far.
    pub(crate) fn stops(&self) -> u64 {
        self.stops.load(Ordering::Acquire)
    }

    /// The machines. A thread that panicked inside has left them half-way; that is a bug which
    /// has been reported where it happened, and the others must still be able to go home.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        for _ in 0..LOCK_TRIES_MAX {
            match self.core.try_lock() {
                Ok(core) => return core,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => (0..LOCK_PAUSES).for_each(|_| spin_loop()),
            }
        }
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a closure with the machines, then wakes the threads that have work because of it.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Core, Micros) -> T) -> T {
        let mut core = self.lock();
        let now = self.now();
        let result = act(&mut core, now);
        self.release(core, now);
        result
    }

    /// Whether another process can take the run up later.
    pub(crate) fn is_recorded(&self) -> bool {
        self.journal.is_some()
    }

    /// Sends all threads home.
    pub(crate) fn close(&self) {
        let mut core = self.lock();
        core.closed = true;
        core.tell_last();
        drop(core);
        self.kept.send(Request::Close);
        self.work.notify_all();
        self.output.notify_all();
    }

    /// Gives the machines back, then wakes the threads that have something to do.
    pub(crate) fn release(&self, core: MutexGuard<'_, Core>, now: Micros) {
        let wanting = core.turns.wanting(now);
        self.note_idle(&core);
        let output = core.output_ready;
        let idle = core.idle_cores();
        let more = self.idle_cores.as_ref().map(|shared| shared.set(idle));
        drop(core);
        if let (Some(shared), Some(more)) = (&self.idle_cores, more) {
            shared.ring(more);
        }
        for _ in 0..wanting {
            self.work.notify_one();
        }
        if output {
            self.output.notify_one();
        }
        self.hold_back();
    }

    /// Waits if the disk takes records much more slowly than they are made, so that those in
    /// memory stay bounded.
    fn hold_back(&self) {
        let Some(journal) = &self.journal else {
            return;
        };
        let made = journal.appended();
        let records = made.0.saturating_sub(journal.safe().0);
        if records > RECORDS_BEHIND_MAX || journal.unwritten_bytes() > BYTES_BEHIND_MAX {
            // The output thread reports a failure.
            let _ = journal.wait_for(made);
        }
    }

    /// Sleeps until there may be a turn for this thread.
    pub(crate) fn rest<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        hand: &mut ThreadState,
    ) -> MutexGuard<'a, Core> {
        let limit = core.turns.rest(hand);
        self.note_idle(&core);
        if core.turns.begin_spin(hand) {
            drop(core);
            self.spin();
            core = self.lock();
            if core.turns.end_spin() || core.closed {
                core.turns.rise();
                return core;
            }
        }
        let mut core = match limit {
            None => self.work.wait(core).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                let waited = self.work.wait_timeout(core, limit);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        core.turns.rise();
        core
    }

    /// Looks out for a turn without sleep: a wake-up takes longer than most turns are apart where
    /// threads work on parts of the same thing.
    fn spin(&self) {
        let began = Instant::now();
        while self.is_thread_idle() && began.elapsed() < SPIN_MAX {
            spin_loop();
        }
    }

    /// Those who keep what others could run look whether there are such.
    fn note_idle(&self, core: &Core) {
        let is_idle = core.turns.has_idle_thread();
        if is_idle != self.is_thread_idle() {
            self.thread_is_idle.store(is_idle, Ordering::Relaxed);
        }
    }

    /// An attempt does something that makes nothing.
    pub(crate) fn act(&self, attempt: &mut Attempt, action: Action) {
        self.with(|core, now| core.act(now, attempt, action));
    }

    /// Reports a warning, about a task if it concerns one.
    pub(crate) fn warn(&self, task: Option<&Label>, message: &str) {
        self.observer.report(Report::Warning { task, message });
    }

    /// Ends the work of this process if an error of the store blocks a recorded run; later events
    /// of the task are not recorded. Called without the machines.
    pub(crate) fn heed(&self, error: &StoreError) {
        let hindrance = match error {
            StoreError::DiskFull { path } => Blocked::disk_full(path.clone()),
            StoreError::UnknownObject { name }
            | StoreError::DamagedObject { name, .. }
            | StoreError::ChangedObject { name } => return self.heed_lost(error, *name),
            _ => return,
        };
        self.hinder(hindrance);
    }

    /// The file of an object is lost: it is recomputed, and all others that are lost by now, unless
    /// there is nowhere to put them. A serial run cannot go back to a task.
    fn heed_lost(&self, error: &StoreError, name: ObjectName) {
        if self.settings.serial {
            return;
        }
        if !self.folder.has_objects() {
            let what = error.to_string();
            return self.hinder(Blocked::ObjectLost { what });
        }
        let _alone = self.lost.search();
        if self.objects.share(name).is_ok() {
            // Another one has missed it, too, and it is recomputed by now.
            return;
        }
        let mut lost = self.objects.find_lost();
        if !lost.contains(&name) {
            lost.push(name);
        }
        let names = |lost: &[ObjectName]| lost.iter().map(|name| Name(name.0)).collect();
        let all: Vec<Name> = names(&lost);
        let is_new = self.lost.note(&all);
        let recomputes = self.with(|core, now| {
            // Some may have been recomputed during the search, all of them perhaps, so that nothing
            // says any more that they were. Under the lock no task ends.
            lost.retain(|name| self.objects.share(*name).is_err());
            let lost = names(&lost);
            core.tell(now, graph::Event::FilesLost { lost });
            core.state().graph().recomputes_files()
        });
        if is_new {
            let told = if recomputes { ": it is recomputed" } else { "" };
            self.warn(None, &format!("{error}{told}"));
        }
    }

    /// The same for a task that has failed by itself, if its folder is gone or there is next to no
    /// room on the disk: it may do better when there is.
    pub(crate) fn heed_surroundings(&self, failure: &Failure) {
        if self.journal.is_none() {
            return;
        }
        let path = self.folder.path().join(SCRATCH);
        if !path.exists() {
            let for_good = !self.folder.is_resumable().unwrap_or(false);
            return self.hinder_missing(path, for_good);
        }
        let free_bytes = free_bytes(&path);
        if free_bytes.is_some_and(|free| free < ROOM_BYTES_MIN) {
            self.hinder(Blocked::NoRoomFor {
                failure: failure.to_string(),
                path,
                free_bytes,
            });
        }
    }

    /// Ends the work of this process if its journal is gone: what it records could not be read.
    pub(crate) fn heed_removal(&self) {
        let removed = self.journal.as_ref().and_then(Journal::removed);
        if let Some(path) = removed {
            self.hinder_missing(path, true);
        }
    }

    /// A folder of the run is missing; all of the run's, if that was moved.
    fn hinder_missing(&self, path: PathBuf, for_good: bool) {
        let folder = self.folder.path();
        let is_moved = !folder.exists() && self.folder.is_resumable().unwrap_or(false);
        self.hinder(match is_moved {
            true => Blocked::Moved {
                path: folder.to_path_buf(),
            },
            false => Blocked::Removed { path, for_good },
        });
    }

    fn hinder(&self, hindrance: Blocked) {
        if self.journal.is_some() {
            self.abandon(RunError::hindered(self.folder.id(), hindrance));
        }
    }

    /// One more who follows the run; from now on its moments are gathered.
    pub(crate) fn follow(&self) -> Option<Follower> {
        let follower = self.followers.add()?;
        self.lock().state_mut().watch(true);
        Some(follower)
    }

    /// Writes what has gathered into the history and the trace, and passes it on to followers.
    pub(crate) fn write_history(&self) {
        self.write_gathered(History::take);
    }

    /// The same when all tasks have ended.
    pub(crate) fn write_last_history(&self) {
        self.write_gathered(History::take_last);
    }

    fn write_gathered(&self, take: impl FnOnce(&mut History) -> Gathered) {
        let mut core = self.lock();
        let (gathered, moments) = (take(&mut core.history), core.moments.take());
        if !moments.seen.is_empty() && self.settings.trace.is_none() && self.followers.is_empty() {
            core.state_mut().watch(false);
        }
        drop(core);
        self.followers.pass_on(&moments);
        self.add_to_history(|writer| history_file::append(writer, &gathered));
        self.note_trace(self.trace.add(&moments));
    }

    /// Writes how many tasks there were by now.
    pub(crate) fn write_counts(&self) {
        let counts = self.function_counts();
        self.add_to_history(|writer| writer.counts(counts));
    }

    /// How many tasks there were of each function by now.
    pub(crate) fn function_counts(&self) -> CountsRecord {
        let core = self.lock();
        let (functions, in_place) = (core.graph().functions(), core.in_place.functions());
        drop(core);
        CountsRecord::new(functions, &in_place)
    }

    /// Writes how the run has ended.
    pub(crate) fn write_end(&self, end: EndRecord) {
        self.add_to_history(|writer| writer.end(end));
        self.note_trace(self.trace.finish(self.now()));
    }

    fn note_trace(&self, written: io::Result<()>) {
        if let Err(error) = written {
            self.warn(None, &format!("the trace is incomplete: {error}"));
        }
    }

    fn add_to_history(&self, act: impl FnOnce(&mut Writer) -> io::Result<()>) {
        if !self.history.write(act) {
            let message = "the run's history cannot be written; it is incomplete";
            self.warn(None, message);
        }
    }
}
