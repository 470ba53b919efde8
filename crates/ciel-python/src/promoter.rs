//! Keeps spawns until somebody needs them as tasks: their strand, or an idle core at a heartbeat.
//!
//! The heartbeat is a thread that needs no interpreter, so it looks whatever the task does; it
//! sleeps while nothing is kept. It does not know what the children are. Read next: `levels.rs`.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ciel_protocol::wire::{Spawn, WorkerMessage};
use pyo3::prelude::*;

use crate::connection::Connection;
use crate::definitions::Definition;
use crate::durations::duration;
use crate::idle::IdleCores;
use crate::levels::Levels;
use crate::long_turns::Ends;
use crate::worker_messages as messages;

/// Seconds between two looks for an idle core.
const BEAT_S: f64 = 0.001;

/// Looks that find nothing kept before the thread sleeps.
const RESTS_MAX: u32 = 64;

/// Bytes of the thread's stack. It also holds what loaded libraries keep for each thread.
const STACK_BYTES: usize = 256 << 10;

/// Children of the strand that has its turn, and of those that run in place of it.
#[pyclass(frozen, module = "ciel._native")]
pub struct Promoter {
    connection: Py<Connection>,
    shared: Arc<Shared>,
}

struct Shared {
    ends: Ends,
    /// `None` where the engine names no such file: then there may always be one.
    idle_cores: Option<IdleCores>,
    period: Duration,
    kept: Mutex<Kept>,
    woken: Condvar,
}

struct Kept {
    levels: Levels,
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
    /// idle; without it children become tasks at every heartbeat. `beat_s` is in seconds.
    ///
    /// Raises OSError if the file cannot be mapped, ValueError for a time that is negative or not
    /// finite.
    #[new]
    #[pyo3(signature = (connection, idle_path = None, *, beat_s = BEAT_S))]
    fn new(
        connection: Bound<'_, Connection>,
        idle_path: Option<PathBuf>,
        beat_s: f64,
    ) -> PyResult<Promoter> {
        let idle_cores = idle_path.map(|path| IdleCores::open(&path)).transpose()?;
        let shared = Shared {
            ends: connection.get().ends().clone(),
            idle_cores,
            period: duration(beat_s)?,
            kept: Mutex::new(Kept {
                levels: Levels::default(),
                thread: Thread::NotStarted,
            }),
            woken: Condvar::new(),
        };
        Ok(Promoter {
            connection: connection.unbind(),
            shared: Arc::new(shared),
        })
    }

    /// The strand that has its turn keeps a child, as action `action`; its result gets the handle
    /// `handle`. `tag` is 0 for a strand that runs in place of another one.
    ///
    /// Raises ValueError if the call is too long for a message.
    fn keep(
        &self,
        py: Python<'_>,
        tag: u32,
        definition: &Bound<'_, Definition>,
        payload: &[u8],
        action: u64,
        handle: u32,
        line: u32,
    ) -> PyResult<()> {
        let id = self.connection.get().id_of(py, definition)?;
        let spawn = Spawn {
            tasks: vec![messages::descriptor(id, payload, &[], None, line)?],
            action,
            handle,
            released: Vec::new(),
            begun: false,
        };
        if let Some(mut kept) = self.kept() {
            kept.levels.keep(tag, spawn);
            self.shared.rouse(&mut kept);
        }
        Ok(())
    }

    /// The kept child with that handle begins at `position`, in place of the strand that has its
    /// turn and has done `after` actions; false if it is a task already.
    fn enter(&self, tag: u32, handle: u32, after: u64, position: Vec<u8>) -> bool {
        let kept = self.kept();
        kept.is_some_and(|mut kept| kept.levels.enter(tag, handle, after, position))
    }

    /// What began at `position` ends in place; false if it is a task by now.
    fn leave(&self, position: &[u8]) -> bool {
        let kept = self.kept();
        kept.is_some_and(|mut kept| kept.levels.leave(position))
    }

    /// Sends all children that the task with that tag keeps.
    fn settle(&self, py: Python<'_>, tag: u32) {
        self.send(py, |levels| levels.settle(tag));
    }

    /// Makes a task of what runs at `position`, in place of a task, which waits for it from now on;
    /// it may be one already.
    fn give_slot(&self, py: Python<'_>, position: &[u8]) {
        self.send(py, |levels| levels.give_slot(position));
    }

    /// Has the engine count the children that ended in place since the last time.
    fn count_ended(&self) {
        if let Some(mut kept) = self.kept()
            && let Some(message) = kept.levels.take_ended()
        {
            self.shared.say(&[message]);
        }
    }

    /// The strand that has its turn was cancelled: what it keeps is no task ever.
    fn forget(&self) {
        if let Some(mut kept) = self.kept() {
            kept.levels.forget();
        }
    }

    /// The task that has begun at `position` has that tag.
    fn name(&self, position: &[u8], tag: u32) {
        if let Some(mut kept) = self.kept() {
            kept.levels.name(position, tag);
        }
    }
}

impl Promoter {
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
        let is_full = shared.say(&messages);
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

    /// Appends messages; returns whether they should be sent now.
    fn say(&self, messages: &[WorkerMessage]) -> bool {
        let mut is_full = false;
        for message in messages {
            let said = self.ends.outgoing.say(message, false);
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
        while self.pause() {
            let mut kept = self.kept();
            if kept.levels.is_any() {
                rests = 0;
                self.beat(kept);
            } else if rests < RESTS_MAX {
                rests += 1;
            } else if kept.thread == Thread::Beating {
                kept.thread = Thread::Resting;
            }
        }
    }

    /// Waits for the next beat; false at the end.
    fn pause(&self) -> bool {
        let is_resting = |kept: &mut Kept| kept.thread == Thread::Resting;
        let woken = self.woken.wait_while(self.kept(), is_resting);
        let kept = woken.unwrap_or_else(PoisonError::into_inner);
        let is_beating = |kept: &mut Kept| kept.thread == Thread::Beating;
        let waited = self.woken.wait_timeout_while(kept, self.period, is_beating);
        let (kept, _) = waited.unwrap_or_else(PoisonError::into_inner);
        kept.thread != Thread::Ended
    }

    /// Makes tasks of the outermost children, if a core is idle or one of them has run for long.
    fn beat(&self, mut kept: MutexGuard<'_, Kept>) {
        let is_long = kept.levels.beat();
        let is_wanted = kept.levels.has_pending() && self.may_be_idle();
        if !is_long && !is_wanted {
            return;
        }
        let messages = kept.levels.promote(|position| self.tag_at(position));
        self.say(&messages);
        self.say(kept.levels.take_ended().as_slice());
        drop(kept);
        self.ends.outgoing.flush();
    }

    fn may_be_idle(&self) -> bool {
        self.idle_cores.as_ref().is_none_or(IdleCores::any)
    }

    /// The tag of the task that has begun there, if its start has come.
    fn tag_at(&self, position: &[u8]) -> Option<u32> {
        let ends = &self.ends;
        let mut incoming = ends.incoming.try_lock().ok()?;
        incoming.tag_of_start(position, &ends.socket, &ends.outgoing)
    }
}
