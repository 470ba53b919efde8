//! Keeps spawns until somebody needs them as tasks: their strand, or an idle core at a heartbeat.
//!
//! The heartbeat is a thread that needs no interpreter, so it looks whatever the task does, and as
//! soon as a core is idle; it sleeps while nothing is kept. It does not know what the children are.
//! Read next: `levels.rs`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ciel_model::{Claim, Name, Pace};
use ciel_protocol::wire::WorkerMessage;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::assist::{Assists, CALL_MIN};
use crate::connection::Connection;
use crate::definitions::Definition;
use crate::durations::duration;
use crate::idle::MappedIdleCores;
use crate::kept_payload::Payload;
use crate::levels::{Child, KEPT_MAX, Levels};
use crate::long_turns::Ends;
use crate::names::name_of;

/// Seconds between two looks for an idle core.
const BEAT_S: f64 = 0.001;

/// Looks that find nothing kept before the thread sleeps.
const RESTS_MAX: u32 = 64;

/// Children that become tasks at once for each idle core, at most, while their spawner runs.
const PROMOTED_MAX: usize = 16;

/// Bytes of a call that is kept, at most: more are too long for a message with others.
const PAYLOAD_BYTES_MAX: usize = 64 << 10;

/// Bytes of the thread's stack. It also holds what loaded libraries keep for each thread.
const STACK_BYTES: usize = 256 << 10;

/// Children of the strand that has its turn, and of those that run in place of it.
#[pyclass(frozen, module = "ciel._native")]
pub struct Promoter {
    connection: Py<Connection>,
    shared: Arc<Shared>,
    /// What idle workers compute of what is kept.
    pub assists: Assists,
}

struct Shared {
    ends: Ends,
    /// `None` where the engine names no such file: then there may always be one.
    idle_cores: Option<MappedIdleCores>,
    period: Duration,
    /// Children that a strand keeps, at most.
    kept_max: usize,
    /// Heartbeats so far.
    beats: AtomicU64,
    /// Children that have ended, of those that are called ahead.
    called: AtomicUsize,
    kept: Mutex<Kept>,
    woken: Condvar,
}

struct Kept {
    levels: Levels,
    /// The idle cores for which children are to become tasks.
    claim: Claim,
    thread: Thread,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    NotStarted,
    Beating,
    Resting,
    Ended,
}

// Python's callers give everything by place, so that a call costs no names.
#[expect(clippy::too_many_arguments)]
#[pymethods]
impl Promoter {
    /// Nothing is kept yet. `idle_path` is the file in which the engine says whether a core is
    /// idle; without it children become tasks at every heartbeat. `beat_s` is in seconds; a strand
    /// keeps `kept_max` children at most; idle workers compute some of them that take `call_min_s`
    /// seconds each.
    ///
    /// Raises OSError if the file cannot be mapped, ValueError for a time that is negative or not
    /// finite.
    #[new]
    #[pyo3(signature = (
        connection, idle_path = None, *, beat_s = BEAT_S, kept_max = KEPT_MAX,
        call_min_s = CALL_MIN.as_secs_f64()
    ))]
    fn new(
        connection: Bound<'_, Connection>,
        idle_path: Option<PathBuf>,
        beat_s: f64,
        kept_max: usize,
        call_min_s: f64,
    ) -> PyResult<Promoter> {
        let assists = Assists::new(idle_path.as_deref(), duration(call_min_s)?);
        let idle_cores = idle_path
            .map(|path| MappedIdleCores::open(&path))
            .transpose()?;
        let shared = Shared {
            ends: connection.get().ends().clone(),
            idle_cores,
            period: duration(beat_s)?,
            kept_max,
            beats: AtomicU64::new(0),
            called: AtomicUsize::new(0),
            kept: Mutex::new(Kept {
                levels: Levels::default(),
                claim: Claim::default(),
                thread: Thread::NotStarted,
            }),
            woken: Condvar::new(),
        };
        Ok(Promoter {
            connection: connection.unbind(),
            shared: Arc::new(shared),
            assists,
        })
    }

    /// The strand that has its turn keeps a child, as action `action`; its result gets the handle
    /// `handle`. `tag` is 0 for a strand that runs in place of another one; `inputs` are handles of
    /// the futures among the arguments.
    ///
    /// Raises ValueError if the call is too long for a message.
    #[pyo3(signature = (tag, definition, payload, action, handle, line, inputs = Vec::new()))]
    fn keep(
        &self,
        py: Python<'_>,
        tag: u32,
        definition: &Bound<'_, Definition>,
        payload: &[u8],
        action: u64,
        handle: u32,
        line: u32,
        inputs: Vec<u32>,
    ) -> PyResult<()> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            let message = format!("a call of {} bytes is too long to be kept", payload.len());
            return Err(PyValueError::new_err(message));
        }
        let child = Child {
            definition: self.connection.get().id_of(py, definition)?,
            payload: Payload::with_inputs(payload, inputs),
            action,
            handle,
            line,
            beats: 0,
        };
        self.keep_child(tag, child);
        Ok(())
    }

    /// The task with that tag takes back its last spawn, with that handle: the only child that it
    /// keeps. False if that is a task by now, or another one is kept.
    ///
    /// The task waits then, and most likely spawns as much and waits again. What it spawns first is
    /// not sent alone: the system may give its worker the core that this task is about to leave.
    fn withdraw(&self, tag: u32, handle: u32) -> bool {
        let kept = self.kept();
        let is_last = kept.is_some_and(|mut kept| kept.levels.withdraw(tag, handle));
        if is_last {
            self.connection.get().gather_spawns();
        }
        is_last
    }

    /// The strand that has its turn calls that child, whose function leaves nothing behind.
    fn begin_call(&self, tag: u32, handle: u32) {
        self.begin_ahead(tag, vec![handle]);
    }

    /// The child that the strand has called has ended, unless `has_ended` is false: then it stays
    /// one that has not begun. Whether it has ended in place, as it was no task by then.
    fn end_call(&self, has_ended: bool) -> bool {
        let tasks = self.end_ahead(usize::from(has_ended));
        has_ended && tasks.is_some_and(|tasks| tasks.is_empty())
    }

    /// Whether the strand that has its turn keeps as many children as it may.
    fn is_full(&self) -> bool {
        self.count().0 >= self.shared.kept_max
    }

    /// The kept child with that handle begins at `position`, in place of the strand that has its
    /// turn and has done `after` actions; `aside` is whether that continues beside it if it becomes
    /// a task, or waits for it. False if it is a task already.
    #[pyo3(signature = (tag, handle, after, position, *, aside = false))]
    fn enter(&self, tag: u32, handle: u32, after: u64, position: [u8; 16], aside: bool) -> bool {
        self.enter_child(tag, handle, after, (name_of(position), aside))
    }

    /// What began at `position` ends in place; false if it is a task by now, or keeps children.
    fn leave(&self, position: [u8; 16]) -> bool {
        self.leave_child(name_of(position))
    }

    /// Sends all children that the task with that tag keeps.
    pub fn settle(&self, py: Python<'_>, tag: u32) {
        self.send(py, |levels| levels.settle(tag));
    }

    /// Makes a task of what runs at `position`, in place of a task, which waits for it from now on;
    /// it may be one already.
    fn give_slot(&self, py: Python<'_>, position: [u8; 16]) {
        self.send(py, |levels| levels.give_slot(name_of(position)));
    }

    /// Has the engine count the children that ended in place since the last time.
    fn count_ended(&self) {
        if let Some(mut kept) = self.kept()
            && let Some(message) = kept.levels.take_ended()
        {
            self.shared.say(&[message], false);
        }
    }

    /// Heartbeats so far; they stop while nothing is kept.
    pub fn beats(&self) -> u64 {
        self.shared.beats.load(Ordering::Relaxed)
    }

    /// Calls of this worker's strands that other workers have computed.
    #[getter]
    fn assisted(&self) -> u64 {
        self.assists.computed()
    }

    /// Whether a core is idle that could take what is kept; where the engine does not say that,
    /// there may always be one.
    fn has_idle_core(&self) -> bool {
        let has_claimed = self.kept().is_some_and(|kept| kept.claim.cores() > 0);
        let idle_cores = self.shared.idle_cores.as_ref();
        has_claimed || idle_cores.is_none_or(|cores| cores.now().unclaimed() > 0)
    }

    /// The strand that has its turn was cancelled: what it keeps is no task ever.
    fn forget(&self) {
        if let Some(mut kept) = self.kept() {
            kept.levels.forget();
        }
    }

    /// The task that has begun at `position` has that tag.
    fn name(&self, position: [u8; 16], tag: u32) {
        if let Some(mut kept) = self.kept() {
            kept.levels.set_tag(name_of(position), tag);
        }
    }
}

impl Promoter {
    /// The connection that it sends to.
    pub fn connection(&self) -> &Py<Connection> {
        &self.connection
    }

    /// Idle cores, as far as the engine says that.
    pub fn idle_count(&self) -> usize {
        let idle_cores = self.shared.idle_cores.as_ref();
        idle_cores.map_or(0, |cores| cores.now().count() as usize)
    }

    /// Whether this is a forked child, in which nothing is kept.
    pub fn is_laid_down(&self) -> bool {
        self.shared.ends.socket.is_laid_down()
    }

    /// Children that a strand keeps, at most.
    pub fn kept_max(&self) -> usize {
        self.shared.kept_max
    }

    /// Children that the strand that has its turn keeps, and the handle of the oldest.
    pub fn count(&self) -> (usize, u32) {
        self.kept().map_or((0, 0), |kept| kept.levels.count())
    }

    /// As `keep`; gives the same as `count`.
    pub fn keep_child(&self, tag: u32, child: Child) -> (usize, u32) {
        let Some(mut kept) = self.kept() else {
            return (0, 0);
        };
        let counted = kept.levels.keep(tag, child);
        self.shared.rouse(&mut kept);
        counted
    }

    /// As `keep`, if the strand keeps fewer children than it may: how many it keeps then.
    pub fn keep_another(&self, tag: u32, child: Child) -> Option<usize> {
        let mut kept = self.kept()?;
        if kept.levels.count().0 >= self.shared.kept_max {
            return None;
        }
        let (count, _) = kept.levels.keep(tag, child);
        self.shared.rouse(&mut kept);
        Some(count)
    }

    /// Whether the strand that has its turn keeps the child with that handle.
    pub fn keeps(&self, handle: u32) -> bool {
        self.kept().is_some_and(|kept| kept.levels.keeps(handle))
    }

    /// The strand that has its turn calls its children with those handles, which ascend, one after
    /// the other; some may be tasks already.
    pub fn begin_ahead(&self, tag: u32, handles: Vec<u32>) {
        if let Some(mut kept) = self.kept() {
            self.shared.called.store(0, Ordering::Relaxed);
            kept.levels.begin_ahead(tag, handles);
        }
    }

    /// That many of these have ended.
    pub fn note_called(&self, count: usize) {
        self.shared.called.store(count, Ordering::Relaxed);
    }

    /// The strand that has its turn calls no more of them, that many have ended. The handles of
    /// those that are tasks; `None` if the strand was cancelled.
    pub fn end_ahead(&self, count: usize) -> Option<Vec<u32>> {
        let mut kept = self.kept()?;
        let tasks = kept.levels.end_ahead(count);
        if kept.claim.cores() > 0 && self.shared.is_due(&mut kept) {
            self.shared.promote_soon(&mut kept);
        }
        tasks
    }

    /// As `enter`.
    pub fn enter_child(&self, tag: u32, handle: u32, after: u64, begun: (Name, bool)) -> bool {
        let kept = self.kept();
        kept.is_some_and(|mut kept| kept.levels.enter(tag, handle, after, begun))
    }

    /// As `leave`.
    pub fn leave_child(&self, name: Name) -> bool {
        let Some(mut kept) = self.kept() else {
            return false;
        };
        let has_left = kept.levels.leave(name);
        if kept.claim.cores() > 0 && self.shared.is_due(&mut kept) {
            self.shared.promote_soon(&mut kept);
        }
        has_left
    }

    /// The strand that has its turn has spawned a task just now, which is sent at once if idle
    /// cores want it, so that these need not wait until the strand does; not if that is soon.
    pub fn hasten_spawn(&self, py: Python<'_>) {
        let connection = self.connection.get();
        let spawned = connection.count_spawn();
        let idle_cores = self
            .shared
            .idle_cores
            .as_ref()
            .filter(|_| !connection.gathers());
        if idle_cores.is_some_and(|shared| shared.now().want(spawned)) {
            py.detach(|| self.shared.ends.outgoing.flush());
        }
    }

    /// Time from one heartbeat to the next.
    pub fn period(&self) -> Duration {
        self.shared.period
    }

    /// None in a forked child, where the heart may have held the lock.
    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        let is_laid_down = self.shared.ends.socket.is_laid_down();
        (!is_laid_down).then(|| self.shared.kept())
    }

    fn send(&self, py: Python<'_>, take: impl FnOnce(&mut Levels) -> Vec<WorkerMessage>) {
        let shared = &self.shared;
        let Some(mut kept) = self.kept() else {
            return;
        };
        let messages = take(&mut kept.levels);
        let is_full = shared.say(&messages, false);
        drop(kept);
        if is_full {
            py.detach(|| shared.ends.outgoing.flush());
        }
    }
}

impl Drop for Promoter {
    fn drop(&mut self) {
        if let Some(mut kept) = self.kept() {
            kept.thread = Thread::Ended;
            self.shared.woken.notify_all();
        }
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends messages, which the caller sends itself if `is_last`; returns whether they should be
    /// sent now.
    fn say(&self, messages: &[WorkerMessage], is_last: bool) -> bool {
        let mut is_full = false;
        for message in messages {
            let said = self.ends.outgoing.say(message, is_last);
            debug_assert!(said.is_ok(), "what is kept is short");
            is_full |= said.unwrap_or_default();
        }
        is_full
    }

    /// Sees to it that the heart beats while something is kept.
    fn rouse(self: &Arc<Self>, kept: &mut Kept) {
        match kept.thread {
            Thread::Beating | Thread::Ended => {}
            Thread::Resting => {
                kept.thread = Thread::Beating;
                self.woken.notify_all();
            }
            Thread::NotStarted => {
                let shared = Arc::clone(self);
                let builder = std::thread::Builder::new().name("ciel-heartbeat".to_owned());
                let started = builder.stack_size(STACK_BYTES).spawn(move || shared.run());
                // Without the thread children wait for their strand; the next one retries.
                if started.is_ok() {
                    kept.thread = Thread::Beating;
                }
            }
        }
    }

    fn run(&self) {
        let mut rests = 0;
        let mut pace = Pace::default();
        while self.pause(pace) {
            let mut kept = self.kept();
            if kept.levels.is_any() {
                rests = 0;
                pace = self.look(kept, pace);
                continue;
            }
            pace = Pace::default();
            self.is_wanted(&mut kept);
            if rests < RESTS_MAX {
                rests += 1;
            } else if kept.thread == Thread::Beating {
                kept.thread = Thread::Resting;
            }
        }
    }

    /// Beats, or looks between two beats; when to look again. A core for which nothing has become a
    /// task yet waits for the start of what keeps the children.
    fn look(&self, mut kept: MutexGuard<'_, Kept>, pace: Pace) -> Pace {
        if pace.is_beat() {
            self.beat(kept);
            return pace.after(self.kept().claim.cores() > 0);
        }
        if kept.claim.cores() > 0 && self.is_due(&mut kept) {
            self.promote_now(kept);
        }
        pace.after(false)
    }

    /// Waits for the next beat, or look; false at the end.
    fn pause(&self, pace: Pace) -> bool {
        let time = self.period / pace.divisor();
        let is_resting = |kept: &mut Kept| kept.thread == Thread::Resting;
        let woken = self.woken.wait_while(self.kept(), is_resting);
        drop(woken.unwrap_or_else(PoisonError::into_inner));
        let until = Instant::now() + time;
        if pace.is_beat() {
            self.listen(until);
        }
        let is_beating = |kept: &mut Kept| kept.thread == Thread::Beating;
        let left = until.saturating_duration_since(Instant::now());
        let waited = self.woken.wait_timeout_while(self.kept(), left, is_beating);
        let (kept, _) = waited.unwrap_or_else(PoisonError::into_inner);
        kept.thread != Thread::Ended
    }

    /// While children are kept that could become tasks at once, waits for an idle core until then.
    fn listen(&self, until: Instant) {
        let Some(idle_cores) = &self.idle_cores else {
            return;
        };
        while self.has_ready() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !idle_cores.listen(left) {
                return;
            }
            let mut kept = self.kept();
            if self.is_due(&mut kept) {
                self.promote_now(kept);
            }
        }
    }

    fn has_ready(&self) -> bool {
        let kept = self.kept();
        let is_free = kept.thread == Thread::Beating && kept.claim.cores() == 0;
        is_free && kept.levels.pending() > 0 && kept.levels.before_pending() == Some(0)
    }

    /// Makes tasks of the outermost children, if a core is idle or one of them has run for long.
    fn beat(&self, mut kept: MutexGuard<'_, Kept>) {
        self.beats.fetch_add(1, Ordering::Relaxed);
        let idle_cores = self.idle_cores.as_ref().map(MappedIdleCores::now);
        let is_long = kept.levels.beat(idle_cores.unwrap_or_default().beats_max());
        let is_due = self.is_due(&mut kept);
        if is_long || is_due {
            self.promote_now(kept);
        }
    }

    fn promote_now(&self, mut kept: MutexGuard<'_, Kept>) {
        let messages = self.promote(&mut kept);
        // Nobody else need wake up to send them.
        self.say(&messages, true);
        drop(kept);
        self.ends.outgoing.flush();
    }

    /// As `promote_now`, for the thread of the strand, which does not wait while they are sent.
    fn promote_soon(&self, kept: &mut Kept) {
        let pending = kept.levels.pending();
        let messages = self.promote(kept);
        self.say(&messages, false);
        if kept.levels.pending() < pending {
            self.ends.outgoing.hasten();
        }
    }

    /// The messages by which children become tasks, and that count those which have ended.
    fn promote(&self, kept: &mut Kept) -> Vec<WorkerMessage> {
        kept.levels
            .forget_called(self.called.load(Ordering::Relaxed));
        let pending = kept.levels.pending();
        let count_max = PROMOTED_MAX * kept.claim.cores().max(1) as usize;
        let mut messages = kept.levels.promote(count_max, |name| self.tag_at(name));
        if kept.levels.pending() < pending {
            kept.claim.end();
        }
        messages.extend(kept.levels.take_ended());
        messages
    }

    /// Whether idle cores wait for children that are kept, and these become tasks now: a short one
    /// that runs in place ends first.
    fn is_due(&self, kept: &mut Kept) -> bool {
        self.is_wanted(kept) && !kept.levels.is_inside_fresh()
    }

    /// Whether idle cores wait for children that are kept. A claim lasts until some of them are
    /// tasks, or none are left that are worth one: what runs in place may have to become one first.
    fn is_wanted(&self, kept: &mut Kept) -> bool {
        let pending = kept.levels.pending();
        let Some(idle) = &self.idle_cores else {
            return pending > 0;
        };
        match kept.levels.before_pending() {
            None => idle.give_back(&mut kept.claim),
            Some(before) => {
                let cores_max = u32::try_from(pending.div_ceil(PROMOTED_MAX));
                idle.claim(&mut kept.claim, cores_max.unwrap_or(u32::MAX), before);
            }
        }
        kept.claim.cores() > 0
    }

    /// The tag of the task of that name, which has begun, if its start has come.
    fn tag_at(&self, name: Name) -> Option<u32> {
        let ends = &self.ends;
        let mut incoming = ends.incoming.try_lock().ok()?;
        incoming.tag_of_start(&name.0.to_be_bytes(), &ends.socket, &ends.outgoing)
    }
}
