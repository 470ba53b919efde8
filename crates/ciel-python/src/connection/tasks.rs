//! What a connection does for tasks that begin and end natively.
//!
//! It does not know which ones these are. Read next: `stack/tasks.rs`.

use std::sync::atomic::Ordering;

use ciel_protocol::wire::engine_message::Kind;
use ciel_protocol::wire::{self, EngineMessage, WorkerMessage};
use pyo3::prelude::*;

use super::{BEHIND_MIN, Connection, lock, not_received};
use crate::engine_messages;

/// Waits for the next message; see [`Connection::receive`].
///
/// # Errors
/// OSError of the system, and those of a signal's handler.
pub(super) fn await_message(connection: &Connection, py: Python<'_>) -> PyResult<()> {
    let ends = &connection.ends;
    if ends.socket.is_laid_down() {
        return Ok(());
    }
    if ends.outgoing.awaits_receive() {
        py.detach(|| ends.outgoing.flush());
    }
    loop {
        let waited = py.detach(|| lock(&ends.incoming).wait(&ends.socket, &ends.outgoing));
        match waited.map_err(not_received)? {
            true => return Ok(()),
            false => py.check_signals()?,
        }
    }
}

impl Connection {
    /// Whether the next message has come, and is the start of a task that was not begun before.
    pub(crate) fn has_start(&self) -> bool {
        let incoming = self.ends.incoming.try_lock();
        incoming.is_ok_and(|incoming| incoming.has_start())
    }

    /// Takes that start, and its tag.
    pub(crate) fn take_start(&self) -> Option<(u32, wire::Start)> {
        let message = self.ends.incoming.try_lock().ok()?.take_start()?;
        match message.kind {
            Some(Kind::Start(start)) => Some((message.tag, start)),
            _ => None,
        }
    }

    /// It is the next message again.
    pub(crate) fn return_start(&self, tag: u32, start: wire::Start) {
        let message = engine_messages::started(tag, start);
        lock(&self.ends.incoming).return_start(message);
    }

    /// The task of a start that was taken has its turn. Sends the end of the one before, if that
    /// is to be sent now.
    pub(crate) fn begin_turn(&self, py: Python<'_>) {
        if self.ends.outgoing.awaits_receive() {
            py.detach(|| self.ends.outgoing.flush());
        }
        self.note_turn();
    }

    /// A task has its turn from now on.
    pub(super) fn note_turn(&self) {
        self.spawns.store(0, Ordering::Relaxed);
        let gathers = self.gathers_next.swap(false, Ordering::Relaxed);
        self.gathers.store(gathers, Ordering::Relaxed);
        self.watch.begin_turn(&self.ends);
    }

    /// Whether a message has come that nobody has taken. A thread that receives meanwhile has it.
    pub(crate) fn has_come(&self) -> bool {
        self.has_ready() || self.ends.socket.is_readable()
    }

    /// Whether a message was completed that nobody has taken.
    pub(crate) fn has_ready(&self) -> bool {
        let incoming = self.ends.incoming.try_lock();
        incoming.map_or(true, |incoming| incoming.has_ready())
    }

    /// This worker, which has no task, computes calls of others from now on: not for long once a
    /// message has come.
    pub(crate) fn begin_assisting(&self) {
        self.watch.begin_assisting(&self.ends);
    }

    /// It does not any more.
    pub(crate) fn end_assisting(&self) {
        self.watch.end_turn();
    }

    /// Counts a spawn that was sent; how many were since a task last got its turn.
    pub(crate) fn count_spawn(&self) -> u32 {
        let before = self.spawns.fetch_add(1, Ordering::Relaxed);
        before.wrapping_add(1)
    }

    /// The task that has its turn waits soon after its spawns in its next turn, as it did in this
    /// one: they are sent together then.
    pub(crate) fn gather_spawns(&self) {
        self.gathers_next.store(true, Ordering::Relaxed);
    }

    /// Whether the spawns of this turn are sent together.
    pub(crate) fn gathers(&self) -> bool {
        self.gathers.load(Ordering::Relaxed)
    }

    /// Whether the tasks of that definition have one output, and nothing but one core.
    ///
    /// # Errors
    /// Those of Python, which has no memory.
    pub(crate) fn is_usual(&self, py: Python<'_>, definition: u32) -> PyResult<bool> {
        let found = lock(&self.received)
            .find(py, definition)?
            .map(|one| one.is_usual);
        Ok(found.unwrap_or_default())
    }

    /// What Python sees of a message.
    ///
    /// # Errors
    /// RuntimeError if it is none that an engine sends.
    pub(crate) fn to_python<'py>(
        &self,
        py: Python<'py>,
        message: EngineMessage,
    ) -> PyResult<Bound<'py, PyAny>> {
        engine_messages::to_python(py, message, &self.received)
    }

    /// Ends a task that was seen to do nothing, as [`Connection::exit`].
    ///
    /// # Errors
    /// ValueError if it is too long.
    pub(crate) fn end(&self, py: Python<'_>, tag: u32, outputs: Vec<wire::Output>) -> PyResult<()> {
        let exit = wire::Exit {
            outputs,
            keep: wire::Keep::Unspecified.into(),
            next: 0,
            audit: Some(wire::Audit::default()),
        };
        self.send_exit(py, tag, exit)
    }

    /// Sends an exit, which names the prefetched start that follows, if one can.
    ///
    /// # Errors
    /// ValueError if it is too long.
    pub(super) fn send_exit(&self, py: Python<'_>, tag: u32, exit: wire::Exit) -> PyResult<()> {
        self.watch.end_turn();
        let followed = match exit.keep == i32::from(wire::Keep::End) {
            true => None,
            false => self.follow(tag, &exit.outputs),
        };
        let next = followed.map_or(0, |(tag, _)| tag);
        let message = WorkerMessage::about(tag, wire::Exit { next, ..exit });
        match followed {
            // While enough starts are prefetched, exits are sent together.
            Some((_, behind)) if behind >= BEHIND_MIN => self.append(py, &message),
            _ => self.append_last(py, &message),
        }
    }
}
