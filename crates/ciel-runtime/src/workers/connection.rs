//! A worker's process as the engine sees it: a socket, a pipe for what it prints, an end.
//!
//! It passes messages and does not know what they mean. Read next: `drive`.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use ciel_model::{Label, Name, limits};
use ciel_node::WorkerKey;
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{EngineMessage, WorkerMessage};
use ciel_protocol::{Decoder, EncodeError, Framing, encode_to};
use ciel_spawner::{Exit, Output, Refusal, Report, Start, Status};
use ciel_workers::{Input, Lines};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

use super::Workers;
use super::socket::Socket;
use crate::executors::worker::WorkerCommand;
use crate::pipes::read_now;
use crate::spawning::ProcessEvent;
use crate::workspace::c_string;

/// Bytes on their way to a worker beyond which nothing is read from it.
const OUTGOING_BYTES_MAX: usize = 64 << 20;

/// The worker's end of the socket in its own numbering.
const WORKER_FD: i32 = 3;

/// In its numbering, the socket of the template that it leaves behind.
const TEMPLATE_FD: i32 = 4;

/// How a process ended.
#[derive(Clone, Debug)]
pub(super) enum ProcessEnd {
    Exited(Exit),
    Refused(Refusal),
    /// The spawner died, and the process with it.
    Lost,
    /// It is no child of the run, so nobody knows.
    Unwatched,
}

/// A worker's process.
pub(super) struct Connection {
    workers: Rc<Workers>,
    worker: WorkerKey,
    label: Label,
    socket: Socket,
    /// What is on its way to the worker.
    outgoing: BytesMut,
    /// Whether the signal of an interrupt is due again when all of that is written.
    interrupts: bool,
    decoder: Decoder<WorkerMessage>,
    events: UnboundedReceiver<ProcessEvent>,
    printed: Receiver,
    printing: bool,
    lines: Lines,
    pub(super) pid: Option<u32>,
    pub(super) ended: Option<ProcessEnd>,
    /// It closed its end of the socket.
    closed: bool,
    /// When nothing more is read from a process that has ended.
    silent_at: Option<Instant>,
}

impl Connection {
    /// Starts the process. Errors are those of making sockets, pipes and the spawner.
    pub(super) fn start(
        workers: &Rc<Workers>,
        worker: WorkerKey,
        command: &WorkerCommand,
    ) -> io::Result<Connection> {
        let (near, far) = std::os::unix::net::UnixStream::pair()?;
        let (printed, pipe) = pipe_with(PipeFlags::CLOEXEC)?;
        let start = start_request(worker, command);
        let descriptors = [far.as_fd(), pipe.as_fd()];
        let events = workers.spawning.start(worker, start, &descriptors)?;
        let program = command.words.first().map(Path::new);
        let what = program.and_then(Path::file_name).unwrap_or_default();
        let what = what.to_string_lossy();
        Connection::new(workers, worker, &what, near, printed, Some(events))
    }

    /// A process that runs already and is watched by nobody here.
    pub(super) fn connected(
        workers: &Rc<Workers>,
        worker: WorkerKey,
        what: &str,
        socket: std::os::unix::net::UnixStream,
    ) -> io::Result<Connection> {
        let (printed, _) = pipe_with(PipeFlags::CLOEXEC)?;
        Connection::new(workers, worker, what, socket, printed, None)
    }

    fn new(
        workers: &Rc<Workers>,
        worker: WorkerKey,
        what: &str,
        socket: std::os::unix::net::UnixStream,
        printed: OwnedFd,
        events: Option<UnboundedReceiver<ProcessEvent>>,
    ) -> io::Result<Connection> {
        rustix::io::ioctl_fionbio(&printed, true)?;
        let ended = events.is_none().then_some(ProcessEnd::Unwatched);
        Ok(Connection {
            workers: workers.clone(),
            worker,
            label: Label {
                what: what.into(),
                name: Name(u128::from(worker.0) << 96),
            },
            socket: Socket::new(&socket)?,
            outgoing: BytesMut::new(),
            interrupts: false,
            decoder: Decoder::new(),
            events: events.unwrap_or_else(|| unbounded_channel().1),
            printed: Receiver::from_owned_fd(printed)?,
            printing: true,
            lines: Lines::default(),
            pid: None,
            ended,
            closed: false,
            silent_at: None,
        })
    }

    /// Queues a message; it goes out while [`Connection::next`] waits. Errors: it is too long.
    pub(super) fn send(&mut self, message: &EngineMessage) -> Result<(), EncodeError> {
        let framing = self.decoder.framing().unwrap_or(Framing::LengthPrefixed);
        encode_to(&mut self.outgoing, message, framing)
    }

    /// Writes what was sent as far as the worker takes it now.
    fn write(&mut self) {
        if self.socket.send(&mut self.outgoing).is_err() {
            self.closed = true;
        }
        if self.outgoing.is_empty() && std::mem::take(&mut self.interrupts) {
            self.signal();
        }
    }

    /// Waits for the next input of the conversation, at most until `deadline`. A message of which
    /// the worker sent only a part is none.
    pub(super) async fn next(
        &mut self,
        commands: &mut UnboundedReceiver<Input>,
        deadline: Option<Instant>,
    ) -> Input {
        loop {
            match self.decoder.take() {
                Ok(Some(message)) => return self.input(message),
                Err(error) => return Input::Invalid(error.to_string()),
                Ok(None) if self.closed => return Input::Closed,
                Ok(None) => {}
            }
            self.write();
            let until = self.silent_at.into_iter().chain(deadline).min();
            let at = until.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                Some(command) = commands.recv() => return command,
                () = self.step() => {}
                () = tokio::time::sleep_until(at), if until.is_some() => {
                    match self.silent_at.is_some_and(|at| at <= Instant::now()) {
                        true => self.closed = true,
                        false => return Input::Ticked,
                    }
                }
            }
        }
    }

    /// A message of the worker as an input. One that continues by itself sends its ends together,
    /// so what it has sent meanwhile is read before anything more is sent to it.
    fn input(&mut self, message: WorkerMessage) -> Input {
        let continues = matches!(&message.kind, Some(Kind::Exit(exit)) if exit.next != 0);
        if continues && !self.decoder.has_message() && self.outgoing.len() < OUTGOING_BYTES_MAX {
            self.socket.receive_at_hand(self.decoder.incoming());
        }
        Input::Message {
            message: Box::new(message),
            is_last: !self.decoder.has_message(),
        }
    }

    /// One thing that happens to the process, its socket or its pipe.
    async fn step(&mut self) {
        let reads = !self.closed && self.outgoing.len() < OUTGOING_BYTES_MAX;
        let mut printed = Vec::new();
        let incoming = self.decoder.incoming();
        tokio::select! {
            biased;
            event = self.events.recv(), if self.ended.is_none() => self.on_event(event),
            is_open = self.socket.receive(incoming), if reads => self.closed = !is_open,
            () = self.socket.room(), if !self.outgoing.is_empty() => self.write(),
            read = self.printed.read_buf(&mut printed), if self.printing => match read {
                Ok(count) if count > 0 => self.show(&printed),
                _ => self.printing = false,
            },
            else => std::future::pending().await,
        }
    }

    fn on_event(&mut self, event: Option<ProcessEvent>) {
        let ended = match event {
            Some(ProcessEvent::Report(Report::Started { pid, .. })) => {
                return self.pid = Some(pid);
            }
            Some(ProcessEvent::Stop | ProcessEvent::ReadOn | ProcessEvent::NoRoom(_)) => return,
            // No worker waits for the end of another process.
            Some(ProcessEvent::Report(Report::Passed { .. } | Report::Withdrawn { .. }))
            | Some(ProcessEvent::Began | ProcessEvent::Followed(_)) => return,
            Some(ProcessEvent::Report(Report::Refused { refusal, .. })) => {
                ProcessEnd::Refused(refusal)
            }
            Some(ProcessEvent::Report(Report::Exited { exit, .. })) => {
                let us = exit.user_us + exit.system_us;
                self.workers.engine.lock().spent_by_worker(us);
                ProcessEnd::Exited(exit)
            }
            Some(ProcessEvent::Lost) | None => ProcessEnd::Lost,
        };
        self.ended = Some(ended);
        self.silent_at = Some(Instant::now() + Duration::from_millis(limits::KILL_GRACE_MS));
    }

    fn show(&mut self, piece: &[u8]) {
        let lines = self.lines.push(piece);
        if !lines.is_empty() {
            let label = Some(&self.label);
            self.workers.engine.observer.error_output(label, &lines);
        }
    }

    /// Sends the process the signal that goes with a cancellation, after what was sent to it. One
    /// that has not taken all of that reads on when the signal comes, and gets another one then.
    pub(super) fn interrupt(&mut self) {
        self.write();
        self.interrupts = !self.outgoing.is_empty();
        self.signal();
    }

    fn signal(&self) {
        let pid = self.pid.filter(|_| self.ended.is_none());
        if let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid as i32)) {
            // One that is gone already needs no signal.
            let _ = kill_process(pid, Signal::USR2);
        }
    }

    /// Waits until the process is gone, kills it after `grace_ms`, and shows what it still printed.
    pub(super) async fn finish(&mut self, grace_ms: u64) {
        let deadline = Instant::now() + Duration::from_millis(grace_ms);
        // Nothing tells of room before a write has found none.
        self.write();
        self.send_all(deadline).await;
        let mut killed = false;
        while self.ended.is_none() {
            tokio::select! {
                biased;
                () = self.step() => {}
                () = tokio::time::sleep_until(deadline), if !killed => {
                    killed = true;
                    self.workers.spawning.kill(self.worker);
                }
            }
        }
        let mut rest = Vec::new();
        while read_now(&self.printed, &mut rest) {
            self.show(&rest);
        }
        let last = self.lines.finish();
        if !last.is_empty() {
            let label = Some(&self.label);
            self.workers.engine.observer.error_output(label, &last);
        }
    }

    /// Lets a process that nobody watches receive what is on its way to it.
    async fn send_all(&mut self, deadline: Instant) {
        while matches!(self.ended, Some(ProcessEnd::Unwatched))
            && !self.outgoing.is_empty()
            && !self.closed
        {
            tokio::select! {
                biased;
                () = self.step() => {}
                () = tokio::time::sleep_until(deadline) => return,
            }
        }
    }

    /// The last lines that it printed.
    pub(super) fn last_lines(&self) -> String {
        self.lines.last()
    }

    /// Whether something ended the process: a signal, or the death of the spawner.
    pub(super) fn was_killed(&self) -> bool {
        match &self.ended {
            Some(ProcessEnd::Lost) => true,
            Some(ProcessEnd::Exited(exit)) => matches!(exit.status, Status::Signal(..)),
            None | Some(ProcessEnd::Unwatched | ProcessEnd::Refused(_)) => false,
        }
    }

    /// How the process ended, in words that follow its name.
    pub(super) fn end_in_words(&self) -> String {
        match &self.ended {
            None | Some(ProcessEnd::Unwatched) => "closed its socket".to_string(),
            Some(ProcessEnd::Exited(exit)) => match exit.status {
                Status::Code(code) => format!("ended with exit status {code}"),
                Status::Signal(number, _) => {
                    format!("was killed by {}", crate::workspace::signal_name(number))
                }
            },
            Some(ProcessEnd::Refused(refusal)) => format!("could not be started: {refusal}"),
            Some(ProcessEnd::Lost) => "is gone with the process that watched it".to_string(),
        }
    }
}

fn start_request(worker: WorkerKey, command: &WorkerCommand) -> Start {
    let words = command.words.iter().map(|word| c_string(word)).collect();
    // Names are of one length, as a process that is forked has only that much room for its own.
    let mut start = Start::new(0, &format!("worker-{:010}", worker.0), words);
    // The first result waits for the first worker, which runs the root.
    let leaves_template = command.has_template && worker.0 > 0;
    start.template = leaves_template.then_some(TEMPLATE_FD);
    // Sets and dictionaries that are ordered by hashes come out the same in a replay.
    let fixed = [format!("CIEL_FD={WORKER_FD}"), "PYTHONHASHSEED=0".into()];
    let mut additions: Vec<CString> = fixed.iter().map(|it| c_string(it.as_ref())).collect();
    additions.extend(command.environment.iter().map(|(name, value)| {
        let mut entry = OsString::from(format!("{name}="));
        entry.push(value);
        c_string(&entry)
    }));
    start.environment = ciel_spawner::Environment::Additions(additions);
    start.descriptors = vec![(WORKER_FD, 0)];
    (start.stdout, start.stderr) = (Output::Fd(1), Output::Fd(1));
    start
}
