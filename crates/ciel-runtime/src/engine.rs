//! What the threads of a run share.
//!
//! Script threads run scripts and small internal work, the output thread writes what is final, the
//! input/output thread deals with processes, workers and people. All of them meet here: one lock
//! around the machines, two conditions, one channel.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ciel_model::{Failure, Label, Micros};
use ciel_node::Run;
use ciel_store::RunFolder;

use crate::core::Core;
use crate::executors::Registry;
use crate::face::Face;
use crate::programs::Programs;
use crate::settings::Settings;
use crate::turns::Hand;

/// A run, as its threads see it.
pub(crate) struct Engine {
    pub(crate) settings: Settings,
    pub(crate) folder: RunFolder,
    pub(crate) face: Arc<dyn Face>,
    pub(crate) registry: Registry,
    pub(crate) programs: Programs,
    /// The socket of a session's client until somebody listens to it.
    session: Mutex<Option<UnixStream>>,
    started: Instant,
    core: Mutex<Core>,
    /// There is work for script threads.
    pub(crate) work: Condvar,
    /// There is something to put out.
    pub(crate) output: Condvar,
}

impl Engine {
    pub(crate) fn new(
        settings: Settings,
        folder: RunFolder,
        face: Arc<dyn Face>,
        registry: Registry,
        programs: Programs,
        session: Option<UnixStream>,
        core: Core,
    ) -> Engine {
        Engine {
            settings,
            folder,
            face,
            registry,
            programs,
            session: Mutex::new(session),
            started: Instant::now(),
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

    /// Microseconds since the run began.
    pub(crate) fn now(&self) -> Micros {
        self.started.elapsed().as_micros() as Micros
    }

    /// When the run began.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// The machines. A thread that panicked inside has left them half-way; that is a bug which
    /// has been reported where it happened, and the others must still be able to go home.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the machines, then wakes whoever has something to do because of it.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Core, Micros) -> T) -> T {
        let mut core = self.lock();
        let now = self.now();
        let result = act(&mut core, now);
        self.release(core, now);
        result
    }

    /// Sends all threads home.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_all();
        self.output.notify_all();
    }

    /// Gives the machines back, then wakes the threads that have something to do.
    pub(crate) fn release(&self, core: MutexGuard<'_, Core>, now: Micros) {
        let wanting = core.turns.wanting(now);
        let output = core.output_ready;
        drop(core);
        for _ in 0..wanting {
            self.work.notify_one();
        }
        if output {
            self.output.notify_one();
        }
    }

    /// Sleeps until there may be a turn for this thread.
    pub(crate) fn rest<'a>(
        &self,
        mut core: MutexGuard<'a, Core>,
        hand: &mut Hand,
    ) -> MutexGuard<'a, Core> {
        let mut core = match core.turns.rest(hand) {
            None => self.work.wait(core).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                let waited = self.work.wait_timeout(core, limit);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        core.turns.rise();
        core
    }

    /// A task failed by itself: tells the graph, and frees its place.
    pub(crate) fn fail(&self, run: Run, failure: Failure) {
        let Run { task, attempt } = run;
        self.with(|core, now| {
            core.tell(
                now,
                ciel_graph::Event::TaskFailed {
                    task,
                    attempt,
                    failure,
                },
            );
            core.leave(now, run);
        });
    }

    /// `file:line` of a script as people know it.
    pub(crate) fn warn(&self, task: Option<&Label>, message: &str) {
        self.face
            .report(crate::face::Report::Warning { task, message });
    }
}
