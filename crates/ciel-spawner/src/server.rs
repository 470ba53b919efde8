//! The loop of the spawner process: the thin shell around `ledger`.
//!
//! A round gathers (ended children, requests), lets the ledger decide, applies and reports. The
//! process has one thread and blocks every signal, so that only the socket, the engine's end
//! and the end of a child wake it. It does not know why anything is started.
//! Next: `ledger` for the decisions, `launch` for the start of a process.

use std::collections::VecDeque;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::PidfdFlags;

use crate::launch::Launcher;
use crate::ledger::{Action, Ledger, Trace};
use crate::limits::{END_MS_MAX, REPORT_BATCH_BYTES, REQUESTS_PER_ROUND, STARTED_MS_MAX};
use crate::message::Greeting;
use crate::plan::{self, Base, Plan};
use crate::processes::{self, Children};
use crate::protect::protect;
use crate::signals::{self, Reaped};
use crate::sweep;
use crate::templates::{Forked, Templates};
use crate::waiting::Waiting;
use crate::wire::{Frame, Receiver};
use crate::{Refusal, Report, Request, Start, Status, Step};

/// Serves the socket that the process inherited as its standard input, as [`crate::Spawner`] passes
/// it, until the engine ends or requests the end. The whole `main` of a spawner process: no other
/// thread may run. Success when the end was orderly.
pub fn serve_inherited() -> ExitCode {
    let served = signals::take_standard_input().and_then(serve);
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ciel: the spawner failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves an engine on its socket until it ends or requests the end, then kills every process of
/// the run. Takes over the calling process: its signals, its session and its children; no other
/// thread may run. Errors are those of the kernel, and `InvalidData` for an unreadable message.
pub fn serve(socket: OwnedFd) -> io::Result<()> {
    let Some(mut server) = Server::open(socket)? else {
        return Ok(());
    };
    let served = server.serve();
    server.end_everything()?;
    served
}

struct Server {
    socket: OwnedFd,
    /// Becomes readable when the engine ends, even if a forked child of it holds the socket.
    engine: OwnedFd,
    signals: OwnedFd,
    receiver: Receiver,
    base: Base,
    ledger: Ledger,
    waiting: Waiting<Vec<OwnedFd>>,
    children: Children,
    launcher: Launcher,
    templates: Templates,
    reports: Vec<Report>,
    /// When they are sent in any case.
    reports_due_ms: Option<u64>,
    outgoing: VecDeque<Frame>,
    began: Instant,
}

/// What woke the loop.
struct Woken {
    socket: bool,
    child: bool,
    engine_ended: bool,
}

#[derive(PartialEq, Eq)]
enum Next {
    Round,
    End,
}

impl Server {
    /// Takes the process over and waits for the greeting; `None` when the engine is gone already.
    fn open(socket: OwnedFd) -> io::Result<Option<Server>> {
        let Some(engine) = rustix::process::getppid() else {
            return Ok(None);
        };
        let Ok(engine) = rustix::process::pidfd_open(engine, PidfdFlags::empty()) else {
            return Ok(None);
        };
        let signals = signals::take_over()?;
        let mut receiver = Receiver::new();
        rustix::event::poll(&mut [PollFd::new(&socket, PollFlags::IN)], None)?;
        let greeting = match receiver.receive::<Greeting>(socket.as_fd()) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            greeting => greeting?,
        };
        let Some((greeting, _)) = greeting else {
            return Ok(None);
        };
        let base = Base::new(greeting);
        Ok(Some(Server {
            ledger: Ledger::new(base.cookie.clone()),
            waiting: Waiting::new(),
            base,
            socket,
            engine,
            signals,
            receiver,
            children: Children::open(),
            launcher: Launcher::new()?,
            templates: Templates::default(),
            reports: Vec::new(),
            reports_due_ms: None,
            outgoing: VecDeque::new(),
            began: Instant::now(),
        }))
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            let woken = self.wait()?;
            if woken.engine_ended {
                return Ok(());
            }
            if woken.child {
                self.reap()?;
            }
            self.look_at_leftovers()?;
            self.settle();
            if woken.socket && self.take_requests()? == Next::End {
                return Ok(());
            }
            if self.send_reports()? == Next::End {
                return Ok(());
            }
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn wait(&self) -> io::Result<Woken> {
        let deadlines = [self.ledger.deadline_ms(), self.reports_due_ms];
        let deadline = deadlines.into_iter().flatten().min();
        let limit = deadline.map(|at| Duration::from_millis(at.saturating_sub(self.now_ms())));
        let limit = limit.map(|limit| limit.try_into().expect("a deadline is near"));
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, !self.outgoing.is_empty());
        let mut ready = [
            PollFd::new(&self.socket, events),
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.engine, PollFlags::IN),
        ];
        rustix::event::poll(&mut ready, limit.as_ref())?;
        let [socket, child, engine] = ready.map(|one| one.revents());
        let closed = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        Ok(Woken {
            socket: socket.intersects(closed),
            child: !child.is_empty(),
            engine_ended: !engine.is_empty(),
        })
    }

    fn reap(&mut self) -> io::Result<()> {
        signals::clear(&self.signals)?;
        while let Reaped::One(pid, exit) = signals::reap() {
            self.templates.on_reaped(pid);
            self.ledger.on_reaped(self.now_ms(), pid, exit);
        }
        Ok(())
    }

    fn look_at_leftovers(&mut self) -> io::Result<()> {
        if !self.ledger.wants_look() {
            return Ok(());
        }
        for pid in self.ledger.strangers(&self.children.look()?) {
            if self.templates.contains(pid) {
                continue;
            }
            if let Some(place) = processes::place(pid).filter(|place| !place.ended) {
                let known = self.ledger.has_adopted(pid);
                let read = if known {
                    processes::marks
                } else {
                    processes::settled_marks
                };
                let (marks, command) = (read(pid), processes::command(pid));
                self.ledger.on_traced(Trace {
                    pid,
                    group: place.group,
                    marks,
                    command,
                });
            }
        }
        Ok(())
    }

    fn settle(&mut self) {
        let mut actions = Vec::new();
        self.ledger.settle(self.now_ms(), &mut actions);
        for action in actions {
            match action {
                Action::Report(report) => self.report_end(report),
                // A child of ours that was not collected keeps its number, so this is the one.
                Action::Kill(pid) => {
                    if signals::send(pid, libc::SIGKILL).is_err() {
                        self.ledger.on_kill_failed(pid);
                    }
                }
            }
        }
    }

    fn take_requests(&mut self) -> io::Result<Next> {
        for _ in 0..REQUESTS_PER_ROUND {
            match self.receiver.receive::<Request>(self.socket.as_fd()) {
                Ok(None) => break,
                Ok(Some((Request::Shutdown, _))) => return Ok(Next::End),
                Ok(Some((request, descriptors))) => self.obey(request, descriptors),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(Next::End);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Next::Round)
    }

    fn obey(&mut self, request: Request, descriptors: Vec<OwnedFd>) {
        match request {
            Request::Start(start) if start.waits && !self.has(start.id) => {
                self.waiting.push(*start, descriptors);
            }
            Request::Start(start) => self.start_now(&start, &descriptors),
            Request::Withdraw { id } => {
                if self.waiting.take(id).is_some() {
                    self.reports.push(Report::Withdrawn { id });
                }
            }
            Request::Begin { id } => {
                if let Some((start, descriptors)) = self.waiting.take(id) {
                    self.start_now(&start, &descriptors);
                }
            }
            Request::Kill { id, signal, group } => self.kill(id, signal, group),
            Request::KillTree { id } => self.kill_tree(id),
            Request::Protect { folder } => {
                self.templates.drop_all();
                // Where it is not allowed, permissions alone protect the folder.
                let _ = protect(&folder);
            }
            Request::Shutdown => unreachable!("the caller takes it"),
        }
    }

    fn has(&self, id: u64) -> bool {
        self.ledger.has(id) || self.waiting.has(id)
    }

    fn start_now(&mut self, start: &Start, descriptors: &[OwnedFd]) {
        if let Some((id, pid)) = self.start_or_refuse(start, descriptors) {
            self.report_start(id, pid);
        }
    }

    /// The number of a task and of its process, if that runs.
    fn start_or_refuse(&mut self, start: &Start, descriptors: &[OwnedFd]) -> Option<(u64, u32)> {
        let id = start.id;
        match self.start(start, descriptors) {
            Ok(pid) => {
                self.waiting.on_started(start);
                Some((id, pid))
            }
            Err(refusal) => {
                self.reports.push(Report::Refused { id, refusal });
                None
            }
        }
    }

    /// A task has ended. If its slot is free for the first of those that wait, that one begins
    /// before anything is reported.
    fn report_end(&mut self, report: Report) {
        let Report::Exited { id, exit, .. } = &report else {
            return self.reports.push(report);
        };
        let (id, is_well) = (*id, exit.status == Status::Code(0));
        let files = self.waiting.keep_slot(id).filter(|_| is_well);
        let is_there = |file: &CString| rustix::fs::lstat(file).is_ok();
        let next = match files.is_some_and(|files| files.iter().all(is_there)) {
            true => self.start_next(),
            false => None,
        };
        if let Some((next, _)) = next {
            self.reports.push(Report::Passed { id, next });
        }
        self.reports.push(report);
        if let Some((next, pid)) = next {
            self.report_start(next, pid);
        }
    }

    /// Starts the first of those that wait which can be started.
    fn start_next(&mut self) -> Option<(u64, u32)> {
        while let Some((start, descriptors)) = self.waiting.pop() {
            let begun = self.start_or_refuse(&start, &descriptors);
            if begun.is_some() {
                return begun;
            }
        }
        None
    }

    fn start(&mut self, start: &Start, descriptors: &[OwnedFd]) -> Result<u32, Refusal> {
        if self.has(start.id) {
            return Err(plan::refusal(
                Step::Request,
                libc::EEXIST,
                plan::subject_of(start),
            ));
        }
        let mut plan = Plan::new(&self.base, start, descriptors)?;
        if let Some(forked) = fork(
            &mut self.templates,
            &self.ledger,
            &self.children,
            start,
            &plan,
        ) {
            let pid = forked.pid;
            self.ledger.on_started(start.id, pid, &start.task);
            forked.release();
            return Ok(pid);
        }
        if let (Some(number), Some(socket)) = (start.template, self.templates.offer(start)) {
            plan.let_leave_template(socket, number);
        }
        let launched = self.launcher.launch(&mut plan);
        let pid = launched.map_err(|failure| plan.explain(start, failure))?;
        self.ledger.on_started(start.id, pid, &start.task);
        Ok(pid)
    }

    /// Waits a moment with this report: of a short task the end can go with it, which wakes the
    /// engine once.
    fn report_start(&mut self, id: u64, pid: u32) {
        let due_ms = self.now_ms() + STARTED_MS_MAX;
        self.reports_due_ms.get_or_insert(due_ms);
        self.reports.push(Report::Started { id, pid });
    }

    fn are_reports_due(&self) -> bool {
        let may_wait = |report: &Report| matches!(report, Report::Started { .. });
        let is_late = self
            .reports_due_ms
            .is_some_and(|due_ms| due_ms <= self.now_ms());
        is_late || !self.reports.iter().all(may_wait)
    }

    /// Whether the process has just ended does not matter: it is not collected, so its number,
    /// and that of its group, are still its own.
    fn kill(&mut self, id: u64, signal: i32, group: bool) {
        let Some((pid, _)) = self.ledger.running(id) else {
            return;
        };
        self.waiting.keep_slot(id);
        // It fails only for a number that is no signal or a process that may not be signalled.
        if group {
            let _ = signals::send_group(pid, signal);
            self.ledger.on_group_signalled(id);
        } else {
            let _ = signals::send(pid, signal);
        }
    }

    fn kill_tree(&mut self, id: u64) {
        let Some((pid, task)) = self.ledger.running(id) else {
            return;
        };
        sweep::kill_task(&self.base.cookie, task, pid);
        for adopted in self.ledger.adopted_by(id) {
            let _ = signals::send(adopted, libc::SIGKILL);
        }
        self.waiting.keep_slot(id);
        self.ledger.on_tree_killed(id);
    }

    fn send_reports(&mut self) -> io::Result<Next> {
        if self.are_reports_due() {
            self.encode_reports()?;
        }
        while let Some(frame) = self.outgoing.front() {
            match frame.send(self.socket.as_fd(), &[]) {
                Ok(true) => drop(self.outgoing.pop_front()),
                Ok(false) => break,
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Next::End),
                Err(error) => return Err(error),
            }
        }
        Ok(Next::Round)
    }

    fn encode_reports(&mut self) -> io::Result<()> {
        let mut rest = self.reports.as_slice();
        while !rest.is_empty() {
            let count = batch(rest);
            self.outgoing.push_back(Frame::encode(&rest[..count])?);
            rest = &rest[count..];
        }
        self.reports.clear();
        self.reports_due_ms = None;
        Ok(())
    }

    /// Kills every child, and every child that comes by adoption, until there is none.
    fn end_everything(&mut self) -> io::Result<()> {
        for pid in self.ledger.running_pids() {
            let _ = signals::send_group(pid, libc::SIGKILL);
        }
        let deadline = Instant::now() + Duration::from_millis(END_MS_MAX);
        while Instant::now() < deadline {
            for pid in self.children.look()? {
                let _ = signals::send(pid, libc::SIGKILL);
            }
            signals::clear(&self.signals)?;
            match signals::reap() {
                // Its own children are adopted now, so check at once.
                Reaped::One(..) => {}
                Reaped::NoneNow => self.wait_for_a_child(deadline)?,
                Reaped::NoChildren => return Ok(()),
            }
        }
        Ok(())
    }

    fn wait_for_a_child(&self, deadline: Instant) -> io::Result<()> {
        let limit = deadline.saturating_duration_since(Instant::now());
        let limit = limit.try_into().expect("the limit fits the kernel's type");
        let mut ready = [PollFd::new(&self.signals, PollFlags::IN)];
        rustix::event::poll(&mut ready, Some(&limit))?;
        Ok(())
    }
}

/// Forks a process for a start, if there is a template for it. The number in its answer must be
/// that of a child that nothing else is known of.
fn fork(
    templates: &mut Templates,
    ledger: &Ledger,
    children: &Children,
    start: &Start,
    plan: &Plan<'_>,
) -> Option<Forked> {
    let forked = templates.fork(start, plan.mark().to_bytes(), &plan.descriptors())?;
    let is_new = !ledger.knows(forked.pid) && !templates.contains(forked.pid);
    let is_child = || children.look().is_ok_and(|all| all.contains(&forked.pid));
    (is_new && is_child()).then_some(forked)
}

/// How many of the reports fit a datagram; at least one.
fn batch(reports: &[Report]) -> usize {
    let bytes = |report: &Report| match report {
        Report::Started { .. } | Report::Withdrawn { .. } => 16,
        Report::Passed { .. } => 24,
        Report::Refused { refusal, .. } => 32 + refusal.subject.len(),
        Report::Exited { left, .. } => {
            64 + left
                .iter()
                .map(|left| 16 + left.command.len())
                .sum::<usize>()
        }
    };
    let mut total = 0;
    let fits = |report: &&Report| {
        total += bytes(report);
        total <= REPORT_BATCH_BYTES
    };
    reports.iter().take_while(fits).count().max(1)
}
