//! The supervisor: one thread that answers calls, reads pipes and writes outputs.
//!
//! A process that starts another is stopped in that call. Its pipes are emptied, so all that it
//! wrote before stands before the child; then the call happens. The child is stopped in its first
//! call and gets pipes of its own in the place of those that it has inherited. It does not know
//! which calls these are (`traps`), nor what serial order is (`order`).

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, WaitStatus};

use crate::births::Births;
use crate::error::{LOOKING, Naming, UnmodifiedError};
use crate::files::OrderedFiles;
use crate::limits::TRANSFER_BYTES_MAX;
use crate::listener::Listener;
use crate::order::{ProcessKey, ROOT, StreamKey};
use crate::outputs::Outputs;
use crate::poller::{Poller, Source};
use crate::segments::{Read, Segments};
use crate::signals::{self, Notice, Signals};
use crate::{guard, kernel};

/// A process of the command that has not ended.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) key: ProcessKey,
    /// Whether it has pipes of its own.
    pub(crate) has_arrived: bool,
    _pidfd: OwnedFd,
}

/// The state of a supervised command.
#[derive(Debug)]
pub(crate) struct Supervisor {
    pub(crate) outputs: Outputs,
    pub(crate) segments: Segments,
    pub(crate) births: Births,
    pub(crate) running: BTreeMap<u32, Running>,
    /// Processes that have ended and may still be in their parents' lists of children.
    ended: BTreeSet<u32>,
    ended_at_last_purge: usize,
    pub(crate) files: OrderedFiles,
    /// None if processes are not told apart.
    pub(crate) listener: Option<Listener>,
    pub(crate) poller: Poller,
    signals: Signals,
    root: Pid,
    root_status: Option<WaitStatus>,
    /// Pipes that are not read until their sink has room.
    paused: Vec<u64>,
    buffer: Vec<u8>,
}

/// Ended processes beyond twice as many as the last purge left, before the next one.
const ENDED_SPARE: usize = 256;

/// What a supervisor begins with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) outputs: Outputs,
    pub(crate) segments: Segments,
    pub(crate) files: OrderedFiles,
    pub(crate) listener: Option<Listener>,
    pub(crate) signals: Signals,
    pub(crate) guard: Pid,
    pub(crate) root: Pid,
}

impl Supervisor {
    /// Supervises a command that has been started, with its guard.
    pub(crate) fn new(parts: Parts) -> Result<Supervisor, UnmodifiedError> {
        let poller = Poller::new().naming("wait for events")?;
        let mut supervisor = Supervisor {
            outputs: parts.outputs,
            segments: parts.segments,
            births: Births::default(),
            running: BTreeMap::new(),
            ended: BTreeSet::new(),
            ended_at_last_purge: 0,
            files: parts.files,
            listener: parts.listener,
            poller,
            signals: parts.signals,
            root: parts.root,
            root_status: None,
            paused: Vec::new(),
            buffer: vec![0; TRANSFER_BYTES_MAX],
        };
        let guard = rustix::process::pidfd_open(parts.guard, PidfdFlags::empty());
        let guard = guard.naming("watch the guard")?;
        supervisor.watch(Source::Guard, &guard)?;
        // It is watched until this process ends.
        std::mem::forget(guard);
        supervisor.watch(Source::Signals, &supervisor.signals)?;
        if let Some(listener) = &supervisor.listener {
            supervisor.watch(Source::Calls, listener)?;
        }
        let root = parts.root.as_raw_nonzero().get() as u32;
        supervisor.admit_process(root, ROOT, true)?;
        for pipe in supervisor.segments.of(ROOT) {
            supervisor.watch_pipe(pipe)?;
        }
        Ok(supervisor)
    }

    /// Until every process has ended and everything is written. How the command ended.
    pub(crate) fn run(&mut self) -> Result<WaitStatus, UnmodifiedError> {
        loop {
            for source in self.poller.wait().naming("wait for events")? {
                self.on_event(source)?;
            }
            for stream in self.outputs.streams() {
                self.release(stream)?;
            }
            if let Some(status) = self.outcome() {
                return Ok(status);
            }
        }
    }

    fn outcome(&self) -> Option<WaitStatus> {
        let is_over = self.running.is_empty() && self.births.is_empty() && self.segments.is_empty();
        let mut streams = self.outputs.streams();
        let is_written = |stream| !self.outputs.sink(stream).is_behind();
        self.root_status
            .filter(|_| is_over && streams.all(is_written))
    }

    fn on_event(&mut self, source: Source) -> Result<(), UnmodifiedError> {
        match source {
            Source::Calls => self.on_call(),
            Source::Signals => self.on_signal(),
            Source::Guard => {
                self.listener = None;
                guard::end_all();
                Err(UnmodifiedError::Killed)
            }
            Source::Process(pid) => self.on_ended(pid),
            Source::Pipe(pipe) => self.on_readable(pipe),
            // It is written to after every round of events.
            Source::Room(_) => Ok(()),
        }
    }

    fn on_signal(&mut self) -> Result<(), UnmodifiedError> {
        match self.signals.next().naming("read a signal")? {
            Notice::FromTerminal => {}
            Notice::Sent(signal) if self.root_status.is_none() => signals::send(self.root, signal),
            Notice::Sent(signal) => {
                let pids = self
                    .running
                    .keys()
                    .filter_map(|pid| Pid::from_raw(*pid as i32));
                pids.for_each(|pid| signals::send(pid, signal));
            }
            Notice::Child => {
                while let Some((pid, status)) = signals::reap() {
                    self.on_ended(pid)?;
                    if pid == self.root.as_raw_nonzero().get() as u32 {
                        self.root_status = Some(status);
                    }
                }
            }
        }
        Ok(())
    }

    /// Knows a process from now on.
    pub(crate) fn admit_process(
        &mut self,
        pid: u32,
        key: ProcessKey,
        has_arrived: bool,
    ) -> Result<(), UnmodifiedError> {
        let id = Pid::from_raw(pid as i32).expect("a process id is positive");
        let pidfd = match rustix::process::pidfd_open(id, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(rustix::io::Errno::SRCH) => {
                self.outputs.order.end(key);
                return Ok(());
            }
            Err(error) => return Err(error).naming("watch a process"),
        };
        self.watch(Source::Process(pid), &pidfd)?;
        let process = Running {
            key,
            has_arrived,
            _pidfd: pidfd,
        };
        self.ended.remove(&pid);
        self.running.insert(pid, process);
        Ok(())
    }

    /// Whether nothing has been known of this process so far.
    pub(crate) fn is_unknown(&self, pid: u32) -> bool {
        !self.running.contains_key(&pid) && !self.ended.contains(&pid)
    }

    /// Remembers an ended process until its parent has waited for it.
    fn remember_ended(&mut self, pid: u32) {
        self.ended.insert(pid);
        if self.ended.len() > 2 * self.ended_at_last_purge + ENDED_SPARE {
            let is_there = |pid: &u32| {
                let pid = Pid::from_raw(*pid as i32);
                pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
            };
            self.ended.retain(is_there);
            self.ended_at_last_purge = self.ended.len();
        }
    }

    /// The process has ended; what is in its pipes is still to be read.
    fn on_ended(&mut self, pid: u32) -> Result<(), UnmodifiedError> {
        let Some(process) = self.running.remove(&pid) else {
            return Ok(());
        };
        self.remember_ended(pid);
        self.settle_orphans(pid)?;
        self.outputs.order.end(process.key);
        for pipe in self.segments.of(process.key) {
            let is_watched = self
                .segments
                .get(pipe)
                .is_some_and(|segment| segment.is_watched);
            match is_watched {
                true => self.on_readable(pipe)?,
                false if self.paused.contains(&pipe) => {}
                false => drop(self.segments.remove(pipe)),
            }
        }
        Ok(())
    }

    /// Children of an ended process that have not been seen are this process's by now.
    fn settle_orphans(&mut self, parent: u32) -> Result<(), UnmodifiedError> {
        while let Some(birth) = self.births.of_process(parent) {
            let own = rustix::process::getpid().as_raw_nonzero().get() as u32;
            let orphans = kernel::children_of(own).naming(LOOKING)?;
            let mut orphans = orphans.into_iter();
            let unknown = orphans.find(|pid| self.is_unknown(*pid));
            self.births.remove(birth.child);
            match unknown {
                Some(pid) => self.admit_process(pid, birth.child, false)?,
                None => self.outputs.order.end(birth.child),
            }
        }
        Ok(())
    }

    /// Reads what a pipe has, unless its output is next and its sink takes no more.
    fn on_readable(&mut self, pipe: u64) -> Result<(), UnmodifiedError> {
        let Some(segment) = self.segments.get(pipe) else {
            return Ok(());
        };
        let (process, stream) = (segment.process, segment.stream);
        let is_next = self.outputs.order.is_at_frontier(process, stream);
        if is_next && self.outputs.sink(stream).is_behind() {
            self.unwatch_pipe(pipe)?;
            self.paused.push(pipe);
            return Ok(());
        }
        match segment.read(&mut self.buffer).naming("read from a pipe")? {
            Read::Bytes(count) => self.outputs.write(process, stream, &self.buffer[..count]),
            Read::Empty => Ok(()),
            Read::End => self.on_pipe_ended(pipe),
        }
    }

    /// Nobody can write to the pipe. If its process lives, it may open the file again.
    fn on_pipe_ended(&mut self, pipe: u64) -> Result<(), UnmodifiedError> {
        self.unwatch_pipe(pipe)?;
        let Some(segment) = self.segments.get(pipe) else {
            return Ok(());
        };
        let (process, stream) = (segment.process, segment.stream);
        self.outputs.order.detach(process, stream);
        if self.outputs.order.has_ended(process) {
            self.segments.remove(pipe);
        }
        Ok(())
    }

    /// Reads all that a stopped process has written, and no more.
    pub(crate) fn drain(&mut self, process: ProcessKey) -> Result<(), UnmodifiedError> {
        for pipe in self.segments.of(process) {
            let Some(segment) = self.segments.get(pipe) else {
                continue;
            };
            let stream = segment.stream;
            let mut missing = segment.readable_bytes().naming("read from a pipe")? as usize;
            while missing > 0 {
                let part = missing.min(self.buffer.len());
                let read = segment
                    .read(&mut self.buffer[..part])
                    .naming("read from a pipe")?;
                let Read::Bytes(count) = read else {
                    break;
                };
                missing -= count;
                self.outputs.write(process, stream, &self.buffer[..count])?;
            }
        }
        Ok(())
    }

    /// Writes what is next of a stream, and does what waited for that.
    pub(crate) fn release(&mut self, stream: StreamKey) -> Result<(), UnmodifiedError> {
        let progress = self.outputs.release(stream)?;
        for call in progress.calls {
            self.proceed(call)?;
        }
        if progress.has_broken {
            self.close_pipes(stream)?;
        }
        if let Some(fd) = self.outputs.wants_room(stream) {
            return self
                .poller
                .add_room(stream, fd)
                .naming("wait for an output");
        }
        let is_of_stream = |pipe: &mut u64| {
            let segment = self.segments.get(*pipe);
            segment.is_none_or(|segment| segment.stream == stream)
        };
        let resumed: Vec<u64> = self.paused.extract_if(.., is_of_stream).collect();
        resumed
            .into_iter()
            .try_for_each(|pipe| self.watch_pipe(pipe))
    }

    /// The reader of a stream has gone: its writers are told by their pipes, as without us.
    fn close_pipes(&mut self, stream: StreamKey) -> Result<(), UnmodifiedError> {
        for pipe in self.segments.of_stream(stream) {
            self.unwatch_pipe(pipe)?;
            if let Some(segment) = self.segments.remove(pipe) {
                self.outputs.order.detach(segment.process, stream);
            }
        }
        Ok(())
    }

    /// Reads the pipe from now on.
    pub(crate) fn watch_pipe(&mut self, pipe: u64) -> Result<(), UnmodifiedError> {
        let Some(segment) = self.segments.get_mut(pipe) else {
            return Ok(());
        };
        segment.is_watched = true;
        self.outputs.order.attach(segment.process, segment.stream);
        let added = self.poller.add(Source::Pipe(pipe), segment.reader());
        added.naming("wait for a pipe")
    }

    fn unwatch_pipe(&mut self, pipe: u64) -> Result<(), UnmodifiedError> {
        match self.segments.get_mut(pipe) {
            Some(segment) if segment.is_watched => {
                segment.is_watched = false;
                self.poller
                    .remove(segment.reader())
                    .naming("wait for a pipe")
            }
            _ => Ok(()),
        }
    }

    fn watch(&self, source: Source, fd: impl std::os::fd::AsFd) -> Result<(), UnmodifiedError> {
        self.poller.add(source, fd).naming("wait for events")
    }
}
