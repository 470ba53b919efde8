//! The input/output thread: processes, workers, deadlines, signals, progress.
//!
//! It performs orders in the order in which the core issued them, and submits their results to the
//! core. Nothing here decides anything about tasks.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ciel_graph::{Assignment, Event, JobOutcome};
use ciel_journal::Journal;
use ciel_model::{Failure, FailureKind, Label, Name};
use ciel_node::AttemptKey;
use ciel_spawner::Cookie;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use crate::core::{Core, Order};
use crate::engine::Engine;
use crate::error::RunError;
use crate::executors::Launch;
use crate::interrupts::Interrupt;
use crate::looks::{LOOKS_BETWEEN_COUNTS, Looks, Removals};
use crate::observer::{Progress, Report};
use crate::processes::Turn;
use crate::room_watch::RoomWatch;
use crate::spawning::{ProcessEvent, Spawning, Told};
use crate::watchdog::Watchdog;
use crate::workers::Workers;
use crate::{control, exports, memory, objects, processes, room, second_runs};

/// Orders that are performed together with a first one before anything else is looked at.
const FURTHER_ORDERS_MAX: usize = 64;

/// How the thread ended.
pub(crate) struct Ended {
    /// The user pressed Ctrl-C or requested the end of the run.
    pub(crate) interrupted: bool,
}

/// The state of the thread.
struct IoThread {
    engine: Arc<Engine>,
    spawning: Rc<Spawning>,
    workers: Rc<Workers>,
    deadline: Option<Instant>,
    job_deadline: Option<Instant>,
    interrupts: u32,
    looks: u64,
    watchdog: Watchdog,
    room_watch: Rc<RoomWatch>,
    /// Nothing that runs can end any more.
    is_stalled: bool,
}

/// The life of the thread; ends when the job is over and every process is gone.
pub(crate) fn run_thread(
    engine: Arc<Engine>,
    (orders, interrupts): (UnboundedReceiver<Order>, UnboundedReceiver<Interrupt>),
    cookie: Cookie,
) -> std::io::Result<Ended> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = tokio::task::LocalSet::new();
    let ended = local.block_on(&runtime, async {
        let spawning = Spawning::new(engine.clone(), cookie);
        let workers = Workers::new(engine.clone(), spawning.clone());
        let socket = control::listen(&engine);
        let job_deadline = engine
            .settings
            .job_timeout_us
            .map(|limit| Instant::from_std(engine.started()) + Duration::from_micros(limit));
        let mut shell = IoThread {
            room_watch: RoomWatch::new(&engine, &spawning, &workers),
            engine,
            spawning,
            workers,
            deadline: None,
            job_deadline,
            interrupts: 0,
            looks: 0,
            watchdog: Watchdog::default(),
            is_stalled: false,
        };
        let ended = shell.run(orders, interrupts).await;
        shell.engine.followers.close();
        if let Some(socket) = &socket {
            socket.close().await;
        }
        ended
    });
    drop(local);
    runtime.shutdown_background();
    Ok(ended)
}

impl IoThread {
    async fn run(
        &mut self,
        mut orders: UnboundedReceiver<Order>,
        mut interrupts: UnboundedReceiver<Interrupt>,
    ) -> Ended {
        let mut looks = Looks::new();
        let mut removals = Removals::of(None);
        let mut unmapped = Removals::of_mappings(self.engine.folder.objects());
        let mut over = false;
        while !(over && (self.is_stalled || self.engine.lock().engine().is_quiet())) {
            let deadline = [self.deadline, self.job_deadline]
                .into_iter()
                .flatten()
                .min();
            tokio::select! {
                biased;
                Some(Interrupt) = interrupts.recv() => self.on_interrupt(),
                order = orders.recv() => match order {
                    Some(order) => {
                        looks.resume();
                        over |= self.perform_all(order, &mut orders);
                    }
                    None => break,
                },
                () = until(deadline) => self.on_deadline(),
                () = removals.next() => looks.resume(),
                () = unmapped.next() => memory::settle(&self.engine),
                () = looks.due() => {
                    self.look();
                    self.watch_removals(&mut removals);
                    over |= self.watch();
                    self.rest_if_quiet(&mut looks, removals.are_told());
                }
            }
        }
        while let Ok(order) = orders.try_recv() {
            self.is_last(order);
        }
        self.workers.dismiss_all().await;
        self.look();
        Ended {
            interrupted: self.interrupts > 0,
        }
    }

    /// Performs an order and those that have come with it; true if the job has ended.
    fn perform_all(&mut self, first: Order, orders: &mut UnboundedReceiver<Order>) -> bool {
        let mut over = self.is_last(first);
        for _ in 0..FURTHER_ORDERS_MAX {
            match orders.try_recv() {
                Ok(order) => over |= self.is_last(order),
                Err(_) => break,
            }
        }
        over
    }

    /// Performs an order; true if the job has ended.
    fn is_last(&mut self, order: Order) -> bool {
        match order {
            Order::JobEnded => true,
            order => {
                self.perform(order);
                false
            }
        }
    }

    fn perform(&mut self, order: Order) {
        match order {
            Order::StartProcess(assignment) => self.start_process(assignment),
            Order::SendProcess(assignment) => self.send_process(assignment),
            Order::WithdrawProcess(attempt) => {
                self.spawning.tell_waiting(attempt, Told::Withdraw);
            }
            Order::ProcessFollowed(assignment) => {
                self.spawning.tell_waiting(key_of(&assignment), Told::RunOn);
            }
            Order::StopProcess(attempt) => {
                self.engine.lock().stop_waiting(attempt);
                self.spawning.ask_to_stop(attempt);
            }
            Order::ReadOn(attempt) => self.spawning.notify(attempt, ProcessEvent::ReadOn),
            Order::StartWorker { worker, pool } => self.workers.start(worker, pool),
            Order::StopWorker(worker) => self.workers.dismiss(worker),
            Order::StartInWorker { worker, begun } => self.workers.begin(worker, begun),
            Order::StopInWorker { worker, attempt } => self.workers.stop(worker, attempt),
            Order::NotifyWatcher {
                worker,
                attempt,
                notice,
            } => self.workers.notify(worker, attempt, notice),
            Order::DropParked {
                worker,
                task,
                moves,
            } => self.workers.drop_parked(worker, task, moves),
            Order::Compare(comparison) => second_runs::compare_later(&self.engine, &comparison),
            Order::DropObject(name) => self.drop_object(name),
            Order::ShrinkStore(bytes) => memory::shrink(&self.engine, bytes),
            Order::GrowStore(bytes) => self.engine.folder.objects().grow_memory(bytes),
            Order::JournalFailed => self.on_journal_failed(),
            Order::WriteHistory => self.engine.write_history(),
            Order::Rearm => self.rearm(),
            Order::AttemptFailed {
                task,
                failure,
                left,
            } => self.engine.observer.report(Report::AttemptFailed {
                task: &task,
                failure: &failure,
                left,
            }),
            Order::TaskFailed { task, failure } => self.on_task_failed(&task, &failure),
            Order::JobEnded => unreachable!("the loop looks at this itself"),
        }
    }

    /// Has a process begin, which may have been sent before its time.
    fn start_process(&self, assignment: Box<Assignment>) {
        if self.spawning.tell_waiting(key_of(&assignment), Told::Begin) {
            return;
        }
        let (engine, spawning) = (self.engine.clone(), self.spawning.clone());
        let watched = self.watchdog.process();
        tokio::task::spawn_local(async move {
            if is_command(&engine, &assignment) {
                processes::run(engine.clone(), spawning, assignment, Turn::now()).await;
            } else {
                exports::run(engine.clone(), assignment).await;
            }
            drop(watched);
            engine.lock().stir();
        });
    }

    /// Has the process of a command begin when another one ends.
    fn send_process(&self, assignment: Box<Assignment>) {
        let (engine, spawning) = (self.engine.clone(), self.spawning.clone());
        let attempt = key_of(&assignment);
        let is_command = is_command(&engine, &assignment);
        let told = is_command.then(|| spawning.expect(attempt)).flatten();
        let Some(told) = told else {
            let event = ciel_engine::Event::ProcessReturned { attempt };
            return engine.with(|core, now| core.tell(now, event));
        };
        let watched = self.watchdog.process();
        tokio::task::spawn_local(async move {
            let turn = Turn::after(told);
            processes::run(engine.clone(), spawning, assignment, turn).await;
            drop(watched);
            engine.lock().stir();
        });
    }

    fn on_task_failed(&self, task: &Label, failure: &Arc<Failure>) {
        self.engine
            .observer
            .report(Report::TaskFailed { task, failure });
    }

    /// Removes the file of an object that nothing can name any more; not before that is recorded,
    /// and not when recording has stopped: the process that resumes the run still names it.
    fn drop_object(&self, name: Name) {
        if self.engine.journal.is_some() && !self.engine.lock().state().is_recording() {
            return;
        }
        let engine = self.engine.clone();
        let remove = move || {
            objects::release(&engine, name);
            room::note_freed(&engine);
        };
        match &self.engine.journal {
            Some(journal) => journal.after(journal.appended(), Box::new(remove)),
            None => remove(),
        }
    }

    fn on_journal_failed(&self) {
        let failed = self
            .engine
            .journal
            .as_ref()
            .and_then(|journal| journal.failed());
        if let Some(error) = failed {
            let run = self.engine.folder.id();
            self.engine
                .abandon(RunError::of_journal(run, error.clone()));
        }
    }

    fn rearm(&mut self) {
        let next = self.engine.lock().engine().next_deadline();
        self.deadline = next.map(|at| Instant::from_std(self.engine.instant_of(at)));
    }

    fn on_deadline(&mut self) {
        if self.job_deadline.is_some_and(|at| at <= Instant::now()) {
            self.job_deadline = None;
            return self.end_job(FailureKind::Timeout, "the job exceeded its time limit");
        }
        self.engine
            .with(|core, now| core.tell(now, ciel_engine::Event::Ticked));
        self.rearm();
    }

    fn on_interrupt(&mut self) {
        self.interrupts += 1;
        match self.interrupts {
            1 => self.engine.break_off("the run was interrupted"),
            _ => self.spawning.hurry(),
        }
    }

    fn end_job(&self, kind: FailureKind, why: &str) {
        self.engine.with(|core, now| {
            let failure = Box::new(job_failure(core, kind, why));
            core.tell(now, Event::JobCancelled { failure })
        });
    }

    /// Breaks the run off if nothing can happen in it any more. True if nothing happens then,
    /// either: what is still in a slot is lost, and the job will not end by itself.
    fn watch(&mut self) -> bool {
        let Some(report) = self.watchdog.look(&self.engine) else {
            return false;
        };
        if !std::mem::replace(&mut self.is_stalled, true) {
            let run = self.engine.folder.id().to_string();
            self.engine.abandon(RunError::Stalled { run, report });
            return false;
        }
        let mut core = self.engine.lock();
        let failure = job_failure(&core, FailureKind::Cancelled, &report);
        let ending = JobOutcome {
            result: Err(Arc::new(failure)),
            failures: Vec::new(),
        };
        core.ending.get_or_insert(ending);
        true
    }

    /// Looks no more until something happens, if nothing has for long and nothing else is to be
    /// seen: the progress by people, what processes write to a bounded disk.
    fn rest_if_quiet(&self, looks: &mut Looks, removals_are_told: bool) {
        let is_looked_at = self.engine.observer.shows_progress()
            || self.room_watch.is_wanted()
            || !(removals_are_told || self.engine.journal.is_none());
        let mut core = self.engine.lock();
        let has_happened = core.take_happened();
        if looks.is_quiet(has_happened) && !is_looked_at && core.leave_unwatched() {
            looks.rest();
        }
    }

    /// After a second the system tells of removals; no rest comes before that. To end a watch takes
    /// it up to 15 ms, which are more than all else of a short run.
    fn watch_removals(&self, removals: &mut Removals) {
        if self.looks == LOOKS_BETWEEN_COUNTS + 1 {
            let journal = self.engine.journal.as_ref();
            *removals = Removals::of(journal.map(Journal::folder));
            self.engine.heed_removal();
        }
    }

    /// Reports progress, and writes the history.
    fn look(&mut self) {
        let progress = progress_of(&self.engine);
        self.engine.observer.report(Report::Progress(&progress));
        self.engine.write_history();
        self.room_watch.look();
        self.looks += 1;
        if self.looks % LOOKS_BETWEEN_COUNTS == 1 {
            self.engine.write_counts();
            self.engine.heed_removal();
        }
    }
}

/// A failure of the job as a whole: of its first task.
fn job_failure(core: &Core, kind: FailureKind, why: &str) -> Failure {
    let graph = core.graph();
    let root = graph.root().and_then(|root| graph.view(root));
    let nobody = || Label {
        what: "job".into(),
        name: Name::default(),
    };
    Failure::new(kind, root.map_or_else(nobody, |root| root.label), why)
}

/// Whether a task in a process of its own is one; others wait for the serial order.
fn is_command(engine: &Engine, assignment: &Assignment) -> bool {
    let executor = engine.registry.find(&assignment.descriptor.executor);
    !matches!(executor.launch(), Launch::Release(_))
}

fn key_of(assignment: &Assignment) -> AttemptKey {
    AttemptKey {
        task: assignment.task,
        number: assignment.attempt,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn progress_of(engine: &Engine) -> Progress {
    let core = engine.lock();
    Progress {
        counts: core.counts(),
        pending: core.graph().pending() as u64,
        running: core.engine().node().placed() as u64,
        oldest: core
            .engine()
            .oldest_running()
            .map(|label| label.to_string()),
        elapsed_us: engine.now(),
    }
}
