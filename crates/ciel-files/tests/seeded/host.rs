//! A work stealing in which a seed decides: the same calls as rayon's that the crate uses.
//!
//! Workers are threads of which one at a time has the turn. Wherever one pauses, the seed says who
//! is next; closures that may be stolen lie in one heap, from which the seed takes one for whoever
//! has nothing to do or waits. As with rayon, a worker that waits runs others' closures on its own
//! stack, and a closure that it takes back in this way counts as migrated. It sums up what all
//! workers count, and does not know files.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ops::Add;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::gauges::Gauges;

type Panic = Box<dyn Any + Send>;

/// A closure that may be stolen.
struct Job {
    number: u64,
    run: Box<dyn FnOnce() + Send>,
}

struct Turns {
    random: u64,
    /// The worker that has the turn.
    current: usize,
    workers: usize,
    jobs: Vec<Job>,
    made: u64,
    is_over: bool,
    /// What each worker has counted when it last passed the turn.
    gauges: Vec<Gauges>,
    counts: Counts,
}

/// What has happened so far.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// What all workers have counted.
    pub gauges: Gauges,
    /// Closures of joins that have migrated and have ended.
    pub migrated: u64,
    /// Those of them that have written, or have forked one that has.
    pub migrated_that_wrote: u64,
    /// Joins that were open on the stack of one worker, at most.
    pub depth_max: usize,
}

impl Turns {
    /// A number below `count`.
    fn choose(&mut self, count: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % count
    }

    fn take_any(&mut self) -> Option<Job> {
        let count = self.jobs.len();
        (count > 0).then(|| {
            let chosen = self.choose(count);
            self.jobs.swap_remove(chosen)
        })
    }

    fn take(&mut self, number: u64) -> Option<Job> {
        let place = self.jobs.iter().position(|job| job.number == number)?;
        Some(self.jobs.swap_remove(place))
    }
}

struct Host {
    turns: Mutex<Turns>,
    changed: Condvar,
}

impl Host {
    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until this worker has the turn; whether there is still something to do.
    fn wait(&self, own: usize) -> bool {
        let is_early = |turns: &mut Turns| turns.current != own && !turns.is_over;
        let turns = self.changed.wait_while(self.turns(), is_early);
        !turns.unwrap_or_else(PoisonError::into_inner).is_over
    }

    /// Gives the turn to whoever the seed chooses.
    fn pass(&self, own: usize) -> bool {
        let mut turns = self.turns();
        turns.gauges[own] = Gauges::of_this_thread();
        let workers = turns.workers;
        turns.current = turns.choose(workers);
        drop(turns);
        self.changed.notify_all();
        self.wait(own)
    }

    fn push(&self, run: Box<dyn FnOnce() + Send>) -> u64 {
        let mut turns = self.turns();
        turns.made += 1;
        let number = turns.made;
        turns.jobs.push(Job { number, run });
        number
    }

    fn work(&self, own: usize) {
        let mut goes_on = self.wait(own);
        while goes_on {
            let job = self.turns().take_any();
            if let Some(job) = job {
                (job.run)();
            }
            goes_on = self.pass(own);
        }
    }
}

/// Whether a migrated closure has written, or one that it has forked.
type Wrote = Arc<AtomicBool>;

thread_local! {
    /// Joins that are open on the stack of this worker.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The migrated closures on the stack of this worker.
    static MIGRATED: RefCell<Vec<Wrote>> = const { RefCell::new(Vec::new()) };
    static OWN: Cell<Option<usize>> = const { Cell::new(None) };
    static HOST: RefCell<Option<Arc<Host>>> = const { RefCell::new(None) };
}

fn host() -> (Arc<Host>, usize) {
    let host = HOST.with_borrow(Clone::clone);
    let own = OWN.get().expect("only workers fork");
    (host.expect("a worker knows its host"), own)
}

/// Ends the work, also if the program has panicked, so that the other workers end.
struct Over(Arc<Host>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.turns().is_over = true;
        self.0.changed.notify_all();
    }
}

fn begin(host: &Arc<Host>, own: usize) {
    OWN.set(Some(own));
    HOST.set(Some(host.clone()));
}

/// Runs a program as one of so many workers.
pub fn run(seed: u64, workers: usize, program: impl FnOnce() + Send) {
    let turns = Turns {
        random: seed,
        current: 0,
        workers,
        jobs: Vec::new(),
        made: 0,
        is_over: false,
        gauges: vec![Gauges::default(); workers],
        counts: Counts::default(),
    };
    let host = Arc::new(Host {
        turns: Mutex::new(turns),
        changed: Condvar::new(),
    });
    std::thread::scope(|threads| {
        for own in 1..workers {
            let host = &host;
            threads.spawn(move || {
                begin(host, own);
                host.work(own);
            });
        }
        let first = threads.spawn(|| {
            begin(&host, 0);
            let _over = Over(host.clone());
            program();
        });
        if let Err(panic) = first.join() {
            resume_unwind(panic);
        }
    });
}

/// Somebody else may have the turn for a while.
pub fn pause() {
    let (host, own) = host();
    host.pass(own);
}

/// What has happened so far on all workers.
pub fn counts() -> Counts {
    let (host, own) = host();
    let mut turns = host.turns();
    turns.gauges[own] = Gauges::of_this_thread();
    let all = turns.gauges.iter().copied();
    Counts {
        gauges: all.fold(Gauges::default(), Add::add),
        ..turns.counts
    }
}

/// The closure that runs here has written.
pub fn note_write() {
    if let Some(innermost) = innermost() {
        innermost.store(true, Ordering::Relaxed);
    }
}

/// The migrated closure that runs here, if one does.
fn innermost() -> Option<Wrote> {
    MIGRATED.with_borrow(|migrated| migrated.last().cloned())
}

/// A closure that has migrated, while it runs.
struct Migrated {
    wrote: Wrote,
    /// The one that has forked it.
    beneath: Option<Wrote>,
}

impl Migrated {
    fn begin(beneath: Option<Wrote>) -> Migrated {
        let wrote = Wrote::default();
        MIGRATED.with_borrow_mut(|migrated| migrated.push(wrote.clone()));
        Migrated { wrote, beneath }
    }
}

impl Drop for Migrated {
    fn drop(&mut self) {
        MIGRATED.with_borrow_mut(Vec::pop);
        let wrote = self.wrote.load(Ordering::Relaxed);
        if let Some(beneath) = &self.beneath {
            beneath.fetch_or(wrote, Ordering::Relaxed);
        }
        let (host, _) = host();
        let mut turns = host.turns();
        turns.counts.migrated += 1;
        turns.counts.migrated_that_wrote += u64::from(wrote);
    }
}

/// A join, while it is open.
struct Open;

impl Open {
    fn begin() -> Open {
        let depth = DEPTH.get() + 1;
        DEPTH.set(depth);
        let (host, _) = host();
        let mut turns = host.turns();
        turns.counts.depth_max = turns.counts.depth_max.max(depth);
        Open
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Runs others' closures, or lets others run, until it is so.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let (host, own) = host();
    while !is_so() {
        let mut turns = host.turns();
        let job = match turns.choose(2) {
            0 => turns.take_any(),
            _ => None,
        };
        drop(turns);
        match job {
            Some(job) => (job.run)(),
            None => drop(host.pass(own)),
        }
    }
}

/// Forgets how long a closure lives.
///
/// # Safety
/// It runs, or is dropped, before anything that it borrows ends.
unsafe fn erase<'a>(run: Box<dyn FnOnce() + Send + 'a>) -> Box<dyn FnOnce() + Send> {
    // SAFETY: the two types differ in the lifetime only, and the caller promises to keep it.
    unsafe { std::mem::transmute(run) }
}

pub(crate) fn current_thread_index() -> Option<usize> {
    OWN.get()
}

/// Whether a closure runs elsewhere than its join.
#[derive(Clone, Copy)]
pub(crate) struct Context(bool);

impl Context {
    pub(crate) fn migrated(self) -> bool {
        self.0
    }
}

pub(crate) fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    join_context(|_| a(), |_| b())
}

pub(crate) fn join_context<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce(Context) -> RA + Send,
    B: FnOnce(Context) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let _open = Open::begin();
    let beneath = innermost();
    let second = Mutex::new(Some(b));
    let result: Mutex<Option<Result<RB, Panic>>> = Mutex::new(None);
    let (host, _) = host();
    let run = Box::new(|| {
        let b = second.lock().unwrap().take().expect("it runs once");
        let migrated = Migrated::begin(beneath);
        let ended = catch_unwind(AssertUnwindSafe(|| b(Context(true))));
        drop(migrated);
        *result.lock().unwrap() = Some(ended);
    });
    // SAFETY: this function does not return before it has run or was dropped.
    let number = host.push(unsafe { erase(run) });
    let first = catch_unwind(AssertUnwindSafe(|| a(Context(false))));
    let takes_back = host.turns().choose(2) == 0;
    let own = match takes_back || first.is_err() {
        true => host.turns().take(number),
        false => None,
    };
    if let Some(job) = own {
        drop(job);
        let b = second.lock().unwrap().take().expect("nobody has run it");
        let first = first.unwrap_or_else(|panic| resume_unwind(panic));
        return (first, b(Context(false)));
    }
    wait_until(|| result.lock().unwrap().is_some());
    let first = first.unwrap_or_else(|panic| resume_unwind(panic));
    let ended = result.lock().unwrap().take().expect("it has ended");
    (first, ended.unwrap_or_else(|panic| resume_unwind(panic)))
}

/// Closures that have not ended, and the first panic of one.
pub(crate) struct Scope<'scope> {
    running: AtomicUsize,
    panic: Mutex<Option<Panic>>,
    of: std::marker::PhantomData<fn(&'scope ())>,
}

impl<'scope> Scope<'scope> {
    pub(crate) fn spawn(&self, act: impl FnOnce(&Scope<'scope>) + Send + 'scope) {
        self.running.fetch_add(1, Ordering::Relaxed);
        let run = Box::new(move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| act(self))) {
                self.panic.lock().unwrap().get_or_insert(panic);
            }
            self.running.fetch_sub(1, Ordering::Relaxed);
        });
        // SAFETY: `scope` does not return before all of its closures have run.
        host().0.push(unsafe { erase(run) });
    }
}

pub(crate) fn scope<'scope, R: Send>(act: impl FnOnce(&Scope<'scope>) -> R + Send) -> R {
    let scope = Scope {
        running: AtomicUsize::new(0),
        panic: Mutex::new(None),
        of: std::marker::PhantomData,
    };
    let ended = catch_unwind(AssertUnwindSafe(|| act(&scope)));
    wait_until(|| scope.running.load(Ordering::Relaxed) == 0);
    let result = ended.unwrap_or_else(|panic| resume_unwind(panic));
    if let Some(panic) = scope.panic.lock().unwrap().take() {
        resume_unwind(panic);
    }
    result
}

pub(crate) fn spawn(act: impl FnOnce() + Send + 'static) {
    host().0.push(Box::new(act));
}
