//! The engine's side of the spawner: started when the first process is wanted, read on the
//! input/output thread, started again if it dies.

use std::cell::{Cell, RefCell};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ciel_node::{AttemptKey, WorkerKey};
use ciel_spawner::{Cookie, Report, Request, Spawner, Start};
use ciel_store::Written;
use rustc_hash::FxHashMap;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::engine::Engine;
use crate::for_tests::kill_grace_ms;
use crate::layout::{SCRIPT_FOLDER, THREAD_VARIABLES, script_folder};
use crate::plain_shell::PlainShell;
use crate::room::NoRoom;

/// What happens to a process.
pub(crate) enum ProcessEvent {
    /// A report of the spawner.
    Report(Report),
    /// It waited, and has begun where another one has ended.
    Began,
    /// That one has begun where it has ended.
    Followed(AttemptKey),
    /// It is to end.
    Stop,
    /// What it writes is to be read again.
    ReadOn,
    /// An attempt of a task, this one or another, has written more than there is room for.
    NoRoom(Rc<(Written, NoRoom)>),
    /// The spawner died, and the process with it.
    Lost,
}

/// What the engine says to a process that was sent before its time.
#[derive(Clone, Copy)]
pub(crate) enum Told {
    /// It has a slot, and begins now.
    Begin,
    /// It has begun where another one has ended, and runs on.
    RunOn,
    /// It is not to begin. If it has, that is to be told.
    Withdraw,
    /// It has begun and is not to run. The slot of this attempt is free when it is gone.
    Stop {
        /// The attempt behind which it has begun.
        before: AttemptKey,
    },
}

/// For whom a process was started.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// It is an attempt of a task.
    Attempt(AttemptKey),
    /// It runs tasks of an executor.
    Worker(WorkerKey),
}

impl From<AttemptKey> for Owner {
    fn from(attempt: AttemptKey) -> Owner {
        Owner::Attempt(attempt)
    }
}

impl From<WorkerKey> for Owner {
    fn from(worker: WorkerKey) -> Owner {
        Owner::Worker(worker)
    }
}

struct Running {
    owner: Owner,
    events: UnboundedSender<ProcessEvent>,
}

/// The spawner and the processes it has started.
pub(crate) struct Spawning {
    engine: Arc<Engine>,
    cookie: Cookie,
    environment: Vec<CString>,
    /// None if commands are always given to it.
    pub(crate) shell: Option<PlainShell>,
    spawner: RefCell<Option<Rc<Spawner>>>,
    running: RefCell<FxHashMap<u64, Running>>,
    ids: RefCell<FxHashMap<Owner, u64>>,
    /// Those that were sent before their time and do not know whether they have a slot.
    sent: RefCell<FxHashMap<AttemptKey, UnboundedSender<Told>>>,
    next: Cell<u64>,
    /// Processes are killed without notice.
    hurried: Cell<bool>,
}

impl Spawning {
    pub(crate) fn new(engine: Arc<Engine>, cookie: Cookie) -> Rc<Spawning> {
        let environment = base_environment(&engine);
        Rc::new(Spawning {
            engine,
            cookie,
            shell: PlainShell::of(&environment),
            environment,
            spawner: RefCell::default(),
            running: RefCell::default(),
            ids: RefCell::default(),
            sent: RefCell::default(),
            next: Cell::new(1),
            hurried: Cell::new(false),
        })
    }

    /// Starts a process; what happens to it comes over the channel.
    pub(crate) fn start(
        self: &Rc<Self>,
        owner: impl Into<Owner>,
        mut start: Start,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<UnboundedReceiver<ProcessEvent>> {
        let owner = owner.into();
        let spawner = self.spawner()?;
        let (events, receiver) = unbounded_channel();
        let id = self.next.replace(self.next.get() + 1);
        start.id = id;
        match spawner.send(&Request::Start(Box::new(start)), descriptors) {
            Ok(()) => self.flush_later(&spawner),
            // It has died; when that is seen, this process is lost like the others.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => return Err(error),
        }
        self.running
            .borrow_mut()
            .insert(id, Running { owner, events });
        self.ids.borrow_mut().insert(owner, id);
        Ok(receiver)
    }

    /// What the engine will say to a process that is sent before its time; none if an earlier one
    /// of the same attempt is not gone.
    pub(crate) fn expect(&self, attempt: AttemptKey) -> Option<UnboundedReceiver<Told>> {
        let mut sent = self.sent.borrow_mut();
        if sent.contains_key(&attempt) {
            return None;
        }
        let (told, receiver) = unbounded_channel();
        sent.insert(attempt, told);
        Some(receiver)
    }

    /// Tells a process that was sent before its time what the engine says; false if there is none.
    pub(crate) fn tell_waiting(&self, attempt: AttemptKey, told: Told) -> bool {
        let sent = self.sent.borrow();
        sent.get(&attempt)
            .is_some_and(|sent| sent.send(told).is_ok())
    }

    /// A process that was sent before its time has its slot, or is gone.
    pub(crate) fn wait_no_more(&self, attempt: AttemptKey) {
        self.sent.borrow_mut().remove(&attempt);
    }

    /// A start that waits in the spawner is to begin now.
    pub(crate) fn begin_waiting(self: &Rc<Self>, attempt: AttemptKey) {
        self.tell(attempt.into(), |id| Request::Begin { id });
    }

    /// A start that waits in the spawner is not to begin.
    pub(crate) fn withdraw(self: &Rc<Self>, attempt: AttemptKey) {
        self.tell(attempt.into(), |id| Request::Withdraw { id });
    }

    /// The process must end; the future that runs it is notified first.
    pub(crate) fn ask_to_stop(&self, attempt: AttemptKey) {
        self.notify(attempt, ProcessEvent::Stop);
    }

    /// Notifies the future that runs a process.
    pub(crate) fn notify(&self, attempt: AttemptKey, event: ProcessEvent) {
        let id = self.ids.borrow().get(&Owner::Attempt(attempt)).copied();
        if let Some(id) = id
            && let Some(running) = self.running.borrow().get(&id)
        {
            // The receiver is gone only when the process is.
            let _ = running.events.send(event);
        }
    }

    /// Notifies the futures that run processes: the one that has written this much ends.
    pub(crate) fn end_overdrawn(&self, overdrawn: &Rc<(Written, NoRoom)>) {
        for running in self.running.borrow().values() {
            // As in `notify`.
            let _ = running.events.send(ProcessEvent::NoRoom(overdrawn.clone()));
        }
    }

    /// Asks the process group to end, and kills what is left of it after the time of grace.
    pub(crate) fn stop(self: &Rc<Self>, attempt: AttemptKey) {
        if self.hurried.get() {
            return self.kill(attempt);
        }
        self.tell(attempt.into(), |id| Request::Kill {
            id,
            signal: libc::SIGTERM,
            group: true,
        });
        let spawning = self.clone();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(Duration::from_millis(kill_grace_ms())).await;
            spawning.kill(attempt);
        });
    }

    /// Kills the process and everything it started, at once.
    pub(crate) fn kill(self: &Rc<Self>, owner: impl Into<Owner>) {
        self.tell(owner.into(), |id| Request::KillTree { id });
    }

    /// Kills everything at once, now and later.
    pub(crate) fn hurry(self: &Rc<Self>) {
        self.hurried.set(true);
        let owners: Vec<Owner> = self.ids.borrow().keys().copied().collect();
        owners.into_iter().for_each(|owner| self.kill(owner));
    }

    fn tell(self: &Rc<Self>, owner: Owner, request: impl Fn(u64) -> Request) {
        let id = self.ids.borrow().get(&owner).copied();
        let spawner = self.spawner.borrow().clone();
        if let (Some(id), Some(spawner)) = (id, spawner) {
            // A spawner that is dead has taken its processes with it; that is seen elsewhere.
            let _ = spawner.send(&request(id), &[]);
            self.flush_later(&spawner);
        }
    }

    /// No process of the run, not even one of root, is to write to files of objects.
    fn protections(&self) -> impl Iterator<Item = Request> {
        let folders = self.engine.folder.objects_paths().into_iter();
        folders.map(|folder| {
            let folder = CString::new(folder.into_os_string().into_encoded_bytes());
            Request::Protect {
                folder: folder.expect("a path that exists has no zero byte"),
            }
        })
    }

    fn spawner(self: &Rc<Self>) -> io::Result<Rc<Spawner>> {
        if let Some(spawner) = self.spawner.borrow().as_ref() {
            return Ok(spawner.clone());
        }
        let (binary, arguments) = &self.engine.settings.spawner;
        let arguments: Vec<&OsStr> = arguments.iter().map(|word| word.as_os_str()).collect();
        let spawner = Spawner::start(binary, &arguments, &self.cookie, &self.environment)?;
        for protection in self.protections() {
            // A spawner that is dead already is seen elsewhere.
            let _ = spawner.send(&protection, &[]);
        }
        let spawner = Rc::new(spawner);
        *self.spawner.borrow_mut() = Some(spawner.clone());
        let socket = watched(spawner.as_fd(), Interest::READABLE)?;
        tokio::task::spawn_local(self.clone().read(spawner.clone(), socket));
        Ok(spawner)
    }

    /// Sends what the socket did not take, when it can be written.
    fn flush_later(self: &Rc<Self>, spawner: &Rc<Spawner>) {
        if !spawner.want_write() {
            return;
        }
        let spawner = spawner.clone();
        tokio::task::spawn_local(async move {
            let Ok(socket) = watched(spawner.as_fd(), Interest::WRITABLE) else {
                return;
            };
            while spawner.want_write() {
                let Ok(mut ready) = socket.writable().await else {
                    return;
                };
                if spawner.flush().is_err() {
                    return;
                }
                ready.clear_ready();
            }
        });
    }

    async fn read(self: Rc<Self>, spawner: Rc<Spawner>, socket: AsyncFd<OwnedFd>) {
        loop {
            let Ok(mut ready) = socket.readable().await else {
                return;
            };
            loop {
                match spawner.receive() {
                    Ok(Some(report)) => self.on_report(report),
                    Ok(None) => break,
                    Err(_) => return self.on_spawner_lost().await,
                }
            }
            ready.clear_ready();
        }
    }

    fn on_report(&self, report: Report) {
        let (id, last) = match &report {
            Report::Passed { id, next } => return self.on_passed(*id, *next),
            Report::Started { id, .. } => (*id, false),
            Report::Refused { id, .. } | Report::Withdrawn { id } | Report::Exited { id, .. } => {
                (*id, true)
            }
        };
        let mut running = self.running.borrow_mut();
        let Some(process) = running.get(&id) else {
            return;
        };
        // The receiver is gone only when the task has been given up.
        let _ = process.events.send(ProcessEvent::Report(report));
        if last && let Some(process) = running.remove(&id) {
            self.ids.borrow_mut().remove(&process.owner);
        }
    }

    /// A process has begun where another one has ended; both learn it.
    fn on_passed(&self, id: u64, next: u64) {
        let running = self.running.borrow();
        let (Some(before), Some(next)) = (running.get(&id), running.get(&next)) else {
            return;
        };
        if let Owner::Attempt(attempt) = next.owner {
            // As in `on_report`.
            let _ = next.events.send(ProcessEvent::Began);
            let _ = before.events.send(ProcessEvent::Followed(attempt));
        }
    }

    /// Its processes died with it, or are swept up now. Until that is done nothing is started: it
    /// would be swept up, too. What is wanted meanwhile counts as lost with the others.
    async fn on_spawner_lost(&self) {
        let cookie = self.cookie.clone();
        let swept = tokio::task::spawn_blocking(move || ciel_spawner::sweep(&cookie)).await;
        drop(swept);
        *self.spawner.borrow_mut() = None;
        self.ids.borrow_mut().clear();
        for (_, process) in self.running.borrow_mut().drain() {
            let _ = process.events.send(ProcessEvent::Lost);
        }
    }
}

/// The environment of this process, with the additional variables for tasks of this run.
fn base_environment(engine: &Engine) -> Vec<CString> {
    let mut environment = ciel_spawner::current_environment();
    let mut add = |name: &str, value: &OsStr| {
        let mut entry = std::ffi::OsString::from(format!("{name}="));
        entry.push(value);
        environment.push(crate::workspace::c_string(&entry));
    };
    for name in THREAD_VARIABLES {
        if std::env::var_os(name).is_none() {
            add(name, OsStr::new("1"));
        }
    }
    add(
        SCRIPT_FOLDER,
        script_folder(&engine.settings.script).as_os_str(),
    );
    environment
}

/// A descriptor of its own for the poller to watch.
pub(crate) fn watched(socket: BorrowedFd<'_>, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    let own = socket.try_clone_to_owned()?;
    // SAFETY: the descriptor is owned by the value that is watched, so it stays open and the same
    // for as long as it is registered.
    let watched = unsafe { AsyncFd::register_with_interest(own, interest) };
    Ok(watched?)
}
