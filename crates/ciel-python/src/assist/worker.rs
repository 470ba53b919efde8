//! A worker that has nothing to do, and computes calls of other strands.
//!
//! It waits for a message of the engine, or for a range. Between two steps of a range it looks for
//! a message, and gives the range up if there is one; a step that takes too long is interrupted
//! then (`long_turns.rs`). Python calls the function. Read next: `sdk/python/ciel/_assist.py`.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ciel_model::assist::{
    ARGUMENTS_AT, HEADER_AT, PART_HEAD_BYTES, Phase, SLOT_BYTES, SLOTS, VALUES_AT,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::board::{ARGUMENTS_BYTES_AT, Board, HEADER_BYTES_AT, VALUES_BYTES_AT, WORKER_AT};
use super::pickles;
use crate::connection::{Connection, os_error};
use crate::plain::is_small;

/// Time of one step, about: after it the strand can have its values.
const STEP: Duration = Duration::from_micros(50);

/// Calls of the first step.
const FIRST_STEP: u32 = 4;

/// How many times as many calls a step has as the one before, at most.
const GROWTH_MAX: u32 = 8;

/// What is ready: the connection, or the pipe of the board.
const SOCKET: u64 = 0;
const PIPE: u64 = 1;

/// What a worker waits with.
#[pyclass(frozen, module = "ciel._native")]
pub struct Assistant {
    connection: Py<Connection>,
    board: Arc<Board>,
    /// Is ready when a message has come, or somebody wants help.
    ready: OwnedFd,
}

/// A range that this worker computes.
#[pyclass(module = "ciel._native")]
pub struct Work {
    connection: Py<Connection>,
    board: Arc<Board>,
    slot: usize,
    /// Arguments of the calls.
    arguments: Py<PyList>,
    /// The calls of the step that has begun: the first, and how many.
    step: (u32, u32),
    began: Instant,
    /// Bytes of values that are written.
    written: usize,
    /// Whether all steps that have begun have ended as usual.
    is_usual: bool,
}

#[pymethods]
impl Assistant {
    /// For the worker with that connection; `idle_path` is the file of the idle cores.
    ///
    /// Raises OSError if it cannot be mapped.
    #[new]
    fn new(connection: Bound<'_, Connection>, idle_path: PathBuf) -> PyResult<Assistant> {
        let board = Arc::new(Board::open(&idle_path)?);
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(os_error)?;
        let socket = &connection.get().ends().socket;
        let add = |of: &dyn AsFd, data, flags| {
            epoll::add(&ready, of.as_fd(), EventData::new_u64(data), flags).map_err(os_error)
        };
        add(&**socket, SOCKET, EventFlags::IN)?;
        // One worker is woken, not all.
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        add(board.pipe(), PIPE, flags)?;
        Ok(Assistant {
            connection: connection.unbind(),
            board,
            ready,
        })
    }

    /// Waits until there is something to receive (`None`), or a range of calls of one of the
    /// functions, which are by their headers: the function, and the range.
    fn wait<'py>(
        &self,
        py: Python<'py>,
        functions: &Bound<'py, PyDict>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Work)>> {
        let ends = self.connection.get().ends();
        if self.connection.get().has_ready() || ends.socket.is_laid_down() {
            return Ok(None);
        }
        py.detach(|| ends.outgoing.flush());
        loop {
            if let Some(found) = self.take(functions)? {
                return Ok(Some(found));
            }
            match py.detach(|| self.wait_for_any()) {
                Ok(true) => return Ok(None),
                Ok(false) => self.board.hear(),
                Err(Errno::INTR) => py.check_signals()?,
                Err(error) => return Err(os_error(error)),
            }
        }
    }
}

impl Assistant {
    /// Waits until there is something to receive, or somebody wants help; whether the former.
    fn wait_for_any(&self) -> rustix::io::Result<bool> {
        let mut events = [epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(PIPE),
        }; 2];
        let count = epoll::wait(&self.ready, &mut events[..], None)?;
        let mut come = events.iter().take(count);
        Ok(come.any(|event| event.data.u64() == SOCKET))
    }

    /// Takes a range of calls of one of the functions, if there is one.
    fn take<'py>(
        &self,
        functions: &Bound<'py, PyDict>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Work)>> {
        let (py, board) = (functions.py(), &self.board);
        for slot in 0..SLOTS {
            if board.phase(slot) != Phase::Ready || self.function(slot, functions)?.is_none() {
                continue;
            }
            if !board.moves(slot, Phase::Ready, Phase::Taken) {
                continue;
            }
            board
                .number(slot, WORKER_AT)
                .store(std::process::id(), Ordering::Relaxed);
            // It may be another range by now.
            let mut work = self.work(py, slot);
            let function = self.function(slot, functions).ok().flatten();
            let arguments = self.arguments(py, slot).ok().flatten();
            if let (Some(function), Some(arguments)) = (function, arguments) {
                work.arguments = arguments.unbind();
                return Ok(Some((function, work)));
            }
            work.close(false);
        }
        Ok(None)
    }

    fn work(&self, py: Python<'_>, slot: usize) -> Work {
        Work {
            connection: self.connection.clone_ref(py),
            board: Arc::clone(&self.board),
            slot,
            arguments: PyList::empty(py).unbind(),
            step: (0, 0),
            began: Instant::now(),
            written: 0,
            is_usual: true,
        }
    }

    fn function<'py>(
        &self,
        slot: usize,
        functions: &Bound<'py, PyDict>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let header = self.bytes(slot, HEADER_BYTES_AT, HEADER_AT..ARGUMENTS_AT);
        match header {
            Some(header) => functions.get_item(PyBytes::new(functions.py(), &header)),
            None => Ok(None),
        }
    }

    fn arguments<'py>(&self, py: Python<'py>, slot: usize) -> PyResult<Option<Bound<'py, PyList>>> {
        let bytes = self.bytes(slot, ARGUMENTS_BYTES_AT, ARGUMENTS_AT..VALUES_AT);
        bytes
            .map(|bytes| pickles::values_of(py, &bytes))
            .transpose()
    }

    fn bytes(&self, slot: usize, length_at: usize, at: std::ops::Range<usize>) -> Option<Vec<u8>> {
        let length = self.board.number(slot, length_at).load(Ordering::Relaxed) as usize;
        self.board.read(slot, at.start, length, at.end)
    }
}

#[pymethods]
impl Work {
    /// The arguments of the calls of the next step, as tuples; `None` if there is none, as all have
    /// begun, nobody wants them, or a message has come.
    fn begin<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyList>> {
        let connection = self.connection.get();
        let is_wanted = self.board.phase(self.slot) == Phase::Taken && self.is_usual;
        if !is_wanted || connection.has_come() {
            return None;
        }
        let calls_max = self.next_step();
        let (before, after) = self
            .board
            .divide(self.slot, |split| split.begun(calls_max))?;
        self.step = (before.begun, after.begun - before.begun);
        self.began = Instant::now();
        self.is_usual = false;
        connection.begin_assisting();
        let arguments = self.arguments.bind(py);
        Some(arguments.get_slice(before.begun as usize, after.begun as usize))
    }

    /// The calls of the step have given these values.
    fn end(&mut self, values: &Bound<'_, PyList>) -> PyResult<()> {
        self.connection.get().end_assisting();
        if values.len() != self.step.1 as usize || !values.iter().all(|value| is_small(&value)) {
            return Ok(());
        }
        let bytes = pickles::written(values)?;
        let bytes = bytes.as_bytes();
        let mut part = Vec::with_capacity(PART_HEAD_BYTES + bytes.len());
        part.extend(self.step.1.to_le_bytes());
        part.extend((bytes.len() as u32).to_le_bytes());
        part.extend(bytes);
        let at = VALUES_AT + self.written;
        if self.board.write(self.slot, at, &part, SLOT_BYTES) {
            self.written += part.len();
            let complete = self.board.number(self.slot, VALUES_BYTES_AT);
            complete.store(self.written as u32, Ordering::Release);
            self.is_usual = true;
        }
        Ok(())
    }

    /// No further step follows; one that has begun, and has not ended, was not as usual, unless it
    /// was interrupted.
    #[pyo3(signature = (is_interrupted = false))]
    fn close(&mut self, is_interrupted: bool) {
        self.connection.get().end_assisting();
        let end = match self.is_usual || is_interrupted {
            true => Phase::Ended,
            false => Phase::Failed,
        };
        // Who wants the values frees the slot.
        if !self.board.moves(self.slot, Phase::Taken, end) {
            self.board.moves(self.slot, Phase::Left, Phase::Free);
        }
    }
}

impl Work {
    /// Calls of the next step, by the time that the last one took.
    fn next_step(&self) -> u32 {
        let (_, count) = self.step;
        if count == 0 {
            return FIRST_STEP;
        }
        let each = self.began.elapsed().as_nanos().max(1) / u128::from(count);
        let fits = u32::try_from(STEP.as_nanos() / each.max(1)).unwrap_or(u32::MAX);
        fits.clamp(1, GROWTH_MAX.saturating_mul(count))
    }
}
