//! One connection to the engine, as Python holds it: requests and received messages.
//!
//! It does not know which request is allowed when; the engine checks that. A request appends to a
//! buffer and returns; read `outgoing.rs` for when it is sent.

mod tasks;

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use ciel_protocol::limits::PROTOCOL;
use ciel_protocol::wire::engine_message::Kind;
use ciel_protocol::wire::{self, EngineMessage, WorkerMessage, block_on, worker_message};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rustix::io::Errno;

use crate::definitions::{Definition, Received as Definitions, Sent};
use crate::durations::duration;
use crate::engine_messages;
use crate::failure::Failure;
use crate::incoming::{Incoming, ReceiveError, Received};
use crate::long_turns::{Ends, Watch};
use crate::outgoing::Outgoing;
use crate::prefetch::Line;
use crate::socket::Socket;
use crate::worker_messages::{self as messages, AuditFields, OutputFields};

/// Prefetched starts behind the next one, from which on the engine need not hurry to send more of
/// them.
const BEHIND_MIN: usize = 8;

/// Seconds after which a turn is long, so that what was prefetched behind it is returned.
const LONG_TURN_S: f64 = 0.001;

/// Seconds for which a worker continues without the engine.
const ALONE_S: f64 = 0.010;

/// A connection to the engine. Every method may be called from any thread; one thread receives.
#[pyclass(frozen, module = "ciel._native")]
pub struct Connection {
    ends: Ends,
    watch: Arc<Watch>,
    /// Spawns that were sent since a task last got its turn.
    spawns: AtomicU32,
    /// Whether the spawns of this turn, and those of the next one, are sent together when the task
    /// waits.
    gathers: AtomicBool,
    gathers_next: AtomicBool,
    /// What the engine has declared.
    received: Arc<Mutex<Definitions>>,
    /// What was declared to it.
    pub(crate) sent: Sent,
}

impl Connection {
    fn say(&self, py: Python<'_>, tag: u32, kind: impl Into<worker_message::Kind>) -> PyResult<()> {
        self.append(py, &WorkerMessage::about(tag, kind))
    }

    /// Sends the last message of a turn. The sending thread receives next, which flushes it, unless
    /// another thread is receiving already.
    fn say_last(
        &self,
        py: Python<'_>,
        tag: u32,
        kind: impl Into<worker_message::Kind>,
    ) -> PyResult<()> {
        self.watch.end_turn();
        self.append_last(py, &WorkerMessage::about(tag, kind))
    }

    fn append_last(&self, py: Python<'_>, message: &WorkerMessage) -> PyResult<()> {
        let nobody_receives = self.ends.incoming.try_lock().is_ok();
        self.append_as(py, message, nobody_receives)
    }

    /// The start that follows a task that ends now: its tag, and how many are behind it. If
    /// anything was ever prefetched this is a worker, and no other thread holds the lock for long.
    fn follow(&self, ended: u32, outputs: &[wire::Output]) -> Option<(u32, usize)> {
        let ends = &self.ends;
        match self.watch.is_used() {
            true => lock(&ends.incoming).follow(ended, outputs, &ends.socket, &ends.outgoing),
            false => None,
        }
    }

    /// A message for Python; one that gives a task its turn is noted.
    fn heard<'py>(&self, py: Python<'py>, message: EngineMessage) -> PyResult<Bound<'py, PyAny>> {
        if matches!(message.kind, Some(Kind::Start(_) | Kind::Resume(_))) {
            self.note_turn();
        }
        engine_messages::to_python(py, message, &self.received)
    }

    pub(crate) fn append(&self, py: Python<'_>, message: &WorkerMessage) -> PyResult<()> {
        self.append_as(py, message, false)
    }

    fn append_as(&self, py: Python<'_>, message: &WorkerMessage, is_last: bool) -> PyResult<()> {
        let is_full = self
            .ends
            .outgoing
            .say(message, is_last)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        if is_full {
            py.detach(|| self.ends.outgoing.flush());
        }
        Ok(())
    }

    /// What it works with.
    pub(crate) fn ends(&self) -> &Ends {
        &self.ends
    }

    /// The id of a definition, which the engine has received by then.
    pub(crate) fn id_of(
        &self,
        py: Python<'_>,
        definition: &Bound<'_, Definition>,
    ) -> PyResult<u32> {
        let (id, define) = self.sent.id_of(definition.get());
        if let Some(define) = define {
            self.append(py, &WorkerMessage::connection(define))?;
        }
        Ok(id)
    }

    /// A message that has come already. Takes no turns with other threads, so it holds no lock
    /// while it waits for one.
    fn take_ready(&self) -> Option<EngineMessage> {
        self.ends.incoming.try_lock().ok()?.take_ready()
    }

    /// Waits without the interpreter, whose lock must not be held together with ours.
    fn next(&self, py: Python<'_>) -> Result<Received, ReceiveError> {
        py.detach(|| {
            let mut incoming = lock(&self.ends.incoming);
            incoming.next(&self.ends.socket, &self.ends.outgoing)
        })
    }
}

// Python's callers give everything by place, so that a call costs no names.
#[expect(clippy::too_many_arguments)]
#[pymethods]
impl Connection {
    /// Takes over the descriptor `fd`, a connected stream socket, and marks it close-on-exec.
    ///
    /// Prefetched starts are returned while a task runs for longer than `long_turn_s`, and none
    /// follows after `alone_s` without the engine. Both in seconds, for tests.
    ///
    /// Raises OSError if it is none, ValueError for a time that is negative or not finite.
    #[new]
    #[pyo3(signature = (fd, *, long_turn_s = LONG_TURN_S, alone_s = ALONE_S))]
    fn new(fd: RawFd, long_turn_s: f64, alone_s: f64) -> PyResult<Connection> {
        let (long_turn, alone) = (duration(long_turn_s)?, duration(alone_s)?);
        let socket = Arc::new(Socket::take_over(fd).map_err(os_error)?);
        let watch = Arc::new(Watch::new(long_turn));
        let received = Arc::new(Mutex::new(Definitions::default()));
        let incoming = Incoming::new(Arc::clone(&watch), Line::new(alone), Arc::clone(&received));
        let ends = Ends {
            outgoing: Arc::new(Outgoing::new(Arc::clone(&socket))),
            socket,
            incoming: Arc::new(Mutex::new(incoming)),
        };
        Ok(Connection {
            ends,
            watch,
            spawns: AtomicU32::new(0),
            gathers: AtomicBool::new(false),
            gathers_next: AtomicBool::new(false),
            received,
            sent: Sent::default(),
        })
    }

    /// Sends `hello`, the first message.
    fn hello(
        &self,
        py: Python<'_>,
        build: String,
        runtime: String,
        executor: String,
        features: Vec<String>,
        reuse: bool,
        parked_strands_max: u32,
    ) -> PyResult<()> {
        let pool = wire::PoolPolicy {
            reuse,
            parked_strands_max,
            // One task at a time.
            slots: 0,
        };
        let hello = wire::Hello {
            protocol: PROTOCOL,
            build,
            runtime,
            executor,
            features,
            pool: Some(pool),
            code: Bytes::new(),
            folder: String::new(),
        };
        self.append(py, &WorkerMessage::connection(hello))
    }

    /// The next message; None when the engine is gone. Flushes before it waits; other threads run
    /// meanwhile. Pings are answered inside. Signal handlers of Python run.
    ///
    /// Raises RuntimeError if what came is no message.
    fn receive<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.ends.socket.is_laid_down() {
            // Another thread may have held a lock at the fork.
            return Ok(None);
        }
        if let Some(message) = self.take_ready() {
            if self.ends.outgoing.awaits_receive() {
                py.detach(|| self.ends.outgoing.flush());
            }
            return self.heard(py, message).map(Some);
        }
        loop {
            match self.next(py) {
                Ok(Received::Message(message)) => return self.heard(py, message).map(Some),
                Ok(Received::End) => return Ok(None),
                Ok(Received::Interrupted) => py.check_signals()?,
                Err(error) => return Err(not_received(error)),
            }
        }
    }

    /// Waits for what `receive` would return, which receives it.
    fn await_message(&self, py: Python<'_>) -> PyResult<()> {
        tasks::await_message(self, py)
    }

    /// Whether `receive` would return at once; waits for another thread that receives meanwhile.
    fn poll(&self, py: Python<'_>) -> bool {
        if self.ends.socket.is_laid_down() {
            return true;
        }
        // Threads that look at what has come hold the lock for a moment, or for as long as they
        // wait for a core.
        py.detach(|| lock(&self.ends.incoming).is_ready(&self.ends.socket, &self.ends.outgoing))
    }

    /// Flushes all messages. An engine that is gone is no error.
    fn flush(&self, py: Python<'_>) {
        py.detach(|| self.ends.outgoing.flush());
    }

    /// Flushes all messages and ends the connection; a waiting `receive` returns None.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            self.ends.outgoing.flush();
            self.ends.outgoing.end();
            self.ends.socket.end();
        });
    }

    /// To be called in a forked child: closes its descriptor without a word. Every verb then does
    /// nothing, and `receive` gives None.
    fn forked(&self) {
        self.ends.socket.lay_down();
    }

    /// Spawns one task, as action `action`; its outputs get the handles from `handle` on. `inputs`
    /// are handles; `modes` says how each is taken: 0 by value, 1 as a reference, 2 as a stream,
    /// with what the task wishes for as a reader in the four bits above: a mode from 1, or 8 and
    /// flags; then the granularity. `weights` are their locality weights in percent. `released` are
    /// handles that the task uses no more.
    ///
    /// Raises ValueError if `modes` or `weights` is not as long as `inputs`.
    #[pyo3(signature = (
        tag, definition, payload, inputs, *, action, handle, line,
        modes = None, weights = None, released = Vec::new()
    ))]
    pub fn spawn(
        &self,
        py: Python<'_>,
        tag: u32,
        definition: &Bound<'_, Definition>,
        payload: &[u8],
        inputs: Vec<u32>,
        action: u64,
        handle: u32,
        line: u32,
        modes: Option<Vec<u64>>,
        weights: Option<Vec<u32>>,
        released: Vec<u32>,
    ) -> PyResult<()> {
        let id = self.id_of(py, definition)?;
        let inputs = (&inputs[..], modes.as_deref(), weights.as_deref());
        let task = messages::descriptor(id, payload, inputs, line)?;
        self.say(py, tag, messages::spawn(task, action, handle, released))
    }

    /// Hands all outputs to a new task, after so many actions, and ends this one; `audit` as in
    /// `exit`, otherwise as `spawn`.
    #[pyo3(signature = (
        tag, definition, payload, inputs, *, after, line, modes = None, weights = None,
        audit = None
    ))]
    fn tail_spawn(
        &self,
        py: Python<'_>,
        tag: u32,
        definition: &Bound<'_, Definition>,
        payload: &[u8],
        inputs: Vec<u32>,
        after: u64,
        line: u32,
        modes: Option<Vec<u64>>,
        weights: Option<Vec<u32>>,
        audit: Option<AuditFields<'_>>,
    ) -> PyResult<()> {
        let id = self.id_of(py, definition)?;
        let inputs = (&inputs[..], modes.as_deref(), weights.as_deref());
        let task = messages::descriptor(id, payload, inputs, line)?;
        let task = Some(task);
        let audit = audit.map(messages::audit);
        let tail = wire::TailSpawn { task, after, audit };
        self.say_last(py, tag, tail)
    }

    /// Makes an object as action `action`, or as that part of the arguments of the spawn there.
    /// `references` are handles in the order the bytes count.
    #[pyo3(signature = (tag, data, form, references, *, action, handle, part = None))]
    fn construct(
        &self,
        py: Python<'_>,
        tag: u32,
        data: &[u8],
        form: String,
        references: Vec<u32>,
        action: u64,
        handle: u32,
        part: Option<u32>,
    ) -> PyResult<()> {
        let value = Some(messages::data(data, form, references));
        self.say(
            py,
            tag,
            wire::Construct {
                value,
                action,
                part,
                handle,
            },
        )
    }

    /// Requests a file to write a new object into; answered by `opened`.
    #[pyo3(signature = (tag, request, length = 0))]
    fn open_construct(&self, py: Python<'_>, tag: u32, request: u32, length: u64) -> PyResult<()> {
        self.say(py, tag, wire::OpenConstruct { request, length })
    }

    /// Requests a file to write an output into, or the pipe of one that is a stream of that form;
    /// answered by `opened`.
    #[pyo3(signature = (tag, request, output, form = String::new(), length = 0))]
    fn open_output(
        &self,
        py: Python<'_>,
        tag: u32,
        request: u32,
        output: u32,
        form: String,
        length: u64,
    ) -> PyResult<()> {
        let message = messages::open_output(request, output, form, length);
        self.say(py, tag, message)
    }

    /// Asks what is behind a handle; answered by `reference`, with `must_block` only when it is
    /// settled, with `as_stream` by a stream if it is not.
    #[pyo3(signature = (tag, request, handle, must_block, as_stream = false))]
    fn open_reference(
        &self,
        py: Python<'_>,
        tag: u32,
        request: u32,
        handle: u32,
        must_block: bool,
        as_stream: bool,
    ) -> PyResult<()> {
        let message = messages::open_reference(request, handle, must_block, as_stream);
        self.say(py, tag, message)
    }

    /// Commits the file opened by `request`: an object as of `construct`, or an output.
    #[pyo3(signature = (tag, request, form, references, *, action, handle, part = None))]
    fn commit(
        &self,
        py: Python<'_>,
        tag: u32,
        request: u32,
        form: String,
        references: Vec<u32>,
        action: u64,
        handle: u32,
        part: Option<u32>,
    ) -> PyResult<()> {
        self.say(
            py,
            tag,
            wire::Commit {
                request,
                form,
                references,
                r#type: String::new(),
                action,
                part,
                handle,
            },
        )
    }

    /// Waits, parked, after so many actions, at most `timeout_ms`: 0 for all of `handles`, 1 for
    /// the first, 2 for the next of those that the last wait for the first has left. Answered by
    /// `resume` or `drop`. If the end depends on time it is that part of the next action.
    ///
    /// `released` are handles that the task uses no more.
    ///
    /// Raises ValueError if there is no such wait.
    #[pyo3(signature = (
        tag, handles, wait, timeout_ms, *, after, part = None, released = Vec::new()
    ))]
    fn block(
        &self,
        py: Python<'_>,
        tag: u32,
        handles: Vec<u32>,
        wait: i32,
        timeout_ms: Option<u64>,
        after: u64,
        part: Option<u32>,
        released: Vec<u32>,
    ) -> PyResult<()> {
        let block = wire::BlockOn {
            references: handles,
            wait: messages::known::<wire::Wait>(wait, "wait")?,
            timeout_ms,
            after,
            part,
            released,
            continuation: Some(block_on::Continuation::Parked(wire::Parked {})),
        };
        self.say_last(py, tag, block)
    }

    /// Writes to a stream of the task, after so many actions: 0 standard output, 1 standard error.
    fn write(&self, py: Python<'_>, tag: u32, sink: i32, data: &[u8], after: u64) -> PyResult<()> {
        let write = wire::Write {
            sink: messages::known::<wire::Sink>(sink, "stream")?,
            data: Bytes::copy_from_slice(data),
            after,
            file: String::new(),
        };
        self.say(py, tag, write)
    }

    /// Writes to the ordered file at a path, after so many actions.
    fn write_file(
        &self,
        py: Python<'_>,
        tag: u32,
        file: String,
        data: &[u8],
        after: u64,
    ) -> PyResult<()> {
        let (sink, data) = (0, Bytes::copy_from_slice(data));
        let write = wire::Write {
            sink,
            data,
            after,
            file,
        };
        self.say(py, tag, write)
    }

    /// Records an input that the task took from its environment, as that part of the next action.
    #[pyo3(signature = (tag, kind, value, *, action, part))]
    fn observe(
        &self,
        py: Python<'_>,
        tag: u32,
        kind: String,
        value: &[u8],
        action: u64,
        part: u32,
    ) -> PyResult<()> {
        let observe = wire::Observe {
            kind,
            value: Some(Bytes::copy_from_slice(value)),
            action,
            part: Some(part),
            ..Default::default()
        };
        self.say(py, tag, observe)
    }

    /// Asks the engine about timing; answered by `observed`, as JSON. The answer is recorded as
    /// that part of the next action.
    #[pyo3(signature = (tag, request, kind, handles, *, action, part))]
    fn ask(
        &self,
        py: Python<'_>,
        tag: u32,
        request: u32,
        kind: String,
        handles: Vec<u32>,
        action: u64,
        part: u32,
    ) -> PyResult<()> {
        let observe = wire::Observe {
            request,
            kind,
            value: None,
            references: handles,
            action,
            part: Some(part),
        };
        self.say(py, tag, observe)
    }

    /// Logs a message for users: level 0 for information, 1 for debugging, 2 for a warning.
    fn log(&self, py: Python<'_>, tag: u32, level: i32, message: String) -> PyResult<()> {
        let level = messages::known::<wire::Level>(level, "level")?;
        self.say(py, tag, wire::Log { level, message })
    }

    /// Ends the task with a failure.
    ///
    /// Raises ValueError if there is no such kind of failure.
    fn error(&self, py: Python<'_>, tag: u32, failure: &Bound<'_, Failure>) -> PyResult<()> {
        let failure = Some(failure.get().to_wire(py)?);
        self.say_last(py, tag, wire::Error { failure })
    }

    /// Ends the task with success and these outputs by value: number, bytes, form, references. If a
    /// prefetched start can follow, `receive` returns it next. `audit` is what the task was seen to
    /// do: effects in words; and files that it has read, as path, length and digest.
    #[pyo3(signature = (tag, outputs, keep, audit = None))]
    fn exit(
        &self,
        py: Python<'_>,
        tag: u32,
        outputs: Vec<OutputFields<'_>>,
        keep: i32,
        audit: Option<AuditFields<'_>>,
    ) -> PyResult<()> {
        let exit = wire::Exit {
            outputs: messages::outputs(outputs),
            keep: messages::known::<wire::Keep>(keep, "way to keep a process")?,
            next: 0,
            audit: audit.map(messages::audit),
        };
        self.send_exit(py, tag, exit)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.watch.end();
        self.ends.outgoing.end();
    }
}

pub(crate) fn os_error(error: Errno) -> PyErr {
    let error = std::io::Error::from(error);
    PyOSError::new_err((error.raw_os_error(), error.to_string()))
}

fn not_received(error: ReceiveError) -> PyErr {
    match error {
        ReceiveError::System(error) => os_error(error),
        ReceiveError::NoMessage(error) => {
            PyRuntimeError::new_err(format!("from the engine: {error}"))
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
