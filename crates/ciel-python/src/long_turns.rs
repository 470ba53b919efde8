//! Watches for long tasks: the starts prefetched behind one are returned, so that another worker
//! can run them. What computes calls of other workers for long is interrupted, once a message has
//! come.
//!
//! A thread looks once in that time while tasks come, and sleeps while the worker rests; it needs
//! no interpreter, so it looks whatever the task does. It knows neither Python nor tasks, only
//! turns. Read next: `prefetch.rs`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ciel_protocol::wire::{GiveBack, WorkerMessage};
use rustix::process::Signal;

use crate::incoming::Incoming;
use crate::outgoing::Outgoing;
use crate::socket::Socket;

/// Between two looks at a turn that is long, unless something comes.
const LOOK_MAX: Duration = Duration::from_millis(100);

/// Looks at a worker that rests before the thread sleeps.
const RESTS_MAX: u32 = 4;

/// Bytes of the thread's stack. It also holds what loaded libraries keep for each thread.
const STACK_BYTES: usize = 256 << 10;

/// The turns of a worker's tasks, and the thread that looks at them.
pub struct Watch {
    /// Beginnings and ends of turns: odd while a task has its turn.
    turns: AtomicU64,
    /// Whether anything was ever prefetched; if not there is no thread.
    is_used: AtomicBool,
    /// Whether the turn is none of a task: the worker computes calls of others.
    assists: AtomicBool,
    thread: Mutex<Thread>,
    woken: Condvar,
    /// A turn that takes longer than once or twice that is long.
    long_min: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    NotStarted,
    Awake,
    Asleep,
    Ended,
}

/// What the thread works with.
#[derive(Clone)]
pub struct Ends {
    /// The descriptor.
    pub socket: Arc<Socket>,
    /// The outgoing messages.
    pub outgoing: Arc<Outgoing>,
    /// What has come.
    pub incoming: Arc<Mutex<Incoming>>,
}

impl Watch {
    /// No task has its turn. One that takes longer than once or twice `long_min` is long.
    pub fn new(long_min: Duration) -> Watch {
        Watch {
            turns: AtomicU64::new(0),
            is_used: AtomicBool::new(false),
            assists: AtomicBool::new(false),
            thread: Mutex::new(Thread::NotStarted),
            woken: Condvar::new(),
            long_min,
        }
    }

    /// A start was prefetched.
    pub fn note_ahead(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Whether anything was ever prefetched.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// A task has its turn from now on.
    pub fn begin_turn(self: &Arc<Self>, ends: &Ends) {
        if self.is_turn() {
            return;
        }
        self.assists.store(false, Ordering::Relaxed);
        self.turns.fetch_add(1, Ordering::Relaxed);
        if self.is_used() {
            self.rouse(ends);
        }
    }

    /// The worker has no task, and computes calls of others: that is a turn, too.
    pub fn begin_assisting(self: &Arc<Self>, ends: &Ends) {
        self.assists.store(true, Ordering::Relaxed);
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.rouse(ends);
    }

    /// That turn is over.
    pub fn end_turn(&self) {
        if self.is_turn() {
            self.turns.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// No message will be sent or received any more.
    pub fn end(&self) {
        *lock(&self.thread) = Thread::Ended;
        self.woken.notify_all();
    }

    fn is_turn(&self) -> bool {
        self.turns.load(Ordering::Relaxed) % 2 == 1
    }

    fn rouse(self: &Arc<Self>, ends: &Ends) {
        let mut thread = lock(&self.thread);
        match *thread {
            Thread::Awake | Thread::Ended => {}
            Thread::Asleep => {
                *thread = Thread::Awake;
                self.woken.notify_all();
            }
            Thread::NotStarted => {
                let (watch, ends) = (Arc::clone(self), ends.clone());
                let builder = std::thread::Builder::new().name("ciel-watch".to_owned());
                let started = builder
                    .stack_size(STACK_BYTES)
                    .spawn(move || watch.run(&ends));
                // Without the thread starts wait longer than they need to; the next turn retries.
                if started.is_ok() {
                    *thread = Thread::Awake;
                }
            }
        }
    }

    fn run(&self, ends: &Ends) {
        let mut rests = 0;
        while !ends.socket.is_laid_down() {
            let seen = self.turns.load(Ordering::Relaxed);
            if self.pause(rests > RESTS_MAX) {
                return;
            }
            let is_same = self.turns.load(Ordering::Relaxed) == seen;
            let is_turn = seen % 2 == 1;
            rests = if is_same && !is_turn { rests + 1 } else { 0 };
            if is_same && is_turn {
                match self.assists.load(Ordering::Relaxed) {
                    true => ends.interrupt(),
                    false => ends.give_back(),
                }
                ends.socket.wait_for_bytes(LOOK_MAX);
            }
        }
    }

    /// Waits for the next look, or until the thread is roused if it may sleep; true at the end.
    fn pause(&self, may_sleep: bool) -> bool {
        let mut thread = lock(&self.thread);
        if may_sleep && *thread == Thread::Awake && !self.is_turn() {
            *thread = Thread::Asleep;
            while *thread == Thread::Asleep {
                let woken = self.woken.wait(thread);
                thread = woken.unwrap_or_else(PoisonError::into_inner);
            }
        }
        let is_on = |thread: &mut Thread| *thread != Thread::Ended;
        let waited = self.woken.wait_timeout_while(thread, self.long_min, is_on);
        let (thread, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *thread == Thread::Ended
    }
}

impl Ends {
    /// Interrupts the thread of tasks if a message waits for it: see `on_interrupt` in
    /// `sdk/python/ciel/_worker_process.py`.
    fn interrupt(&self) {
        if self.socket.is_readable() {
            // Nothing is interrupted where there are no signals.
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::USR2);
        }
    }

    /// Returns all prefetched starts that have not begun. A thread that receives meanwhile runs no
    /// task.
    fn give_back(&self) {
        let Ok(mut incoming) = self.incoming.try_lock() else {
            return;
        };
        let tags = incoming.give_back(&self.socket, &self.outgoing);
        if tags.is_empty() {
            return;
        }
        let message = WorkerMessage::connection(GiveBack { tags });
        let said = self.outgoing.say(&message, true);
        debug_assert!(said.is_ok(), "a list of a few numbers is short");
        drop(incoming);
        self.outgoing.flush();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
