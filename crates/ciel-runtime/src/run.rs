//! One run from beginning to end.

mod ended;
mod finish;
mod result;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};

use ciel_coordinator::Coordinator;
use ciel_graph::{Counts, Event};
use ciel_model::{Descriptor, Failure, Name, Resources};
use ciel_node::{Capacity, Node};
use ciel_spawner::Cookie;
use ciel_store::{RunEntry, RunFolder, SharedIdleCores, StateFolder};
use ciel_view::records::{RunRecord, StoreRecord};
use serde_json::Value as Json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use self::ended::EndedRun;
pub use self::ended::Leaving;
use self::finish::{ThreadsEnded, finish};
use crate::choice::{choose_folder, seconds_now};
use crate::core::{Core, Order};
use crate::engine::{Engine, Equipment};
use crate::error::RunError;
use crate::executors::request::release_early;
use crate::executors::{Registry, Shared, python, session, skywriting};
use crate::history_file::HistoryFile;
use crate::interrupts::{Interrupt, Interrupts};
use crate::job::Job;
use crate::keep_rule::{KeepRule, has_ended_badly};
use crate::kept_queue;
use crate::layout::{SCRIPT_FOLDER, script_folder};
use crate::observer::{Observer, Report};
use crate::orphans::{self, KilledRun};
use crate::programs::Programs;
use crate::recovery::{Begun, begin_recorded};
use crate::settings::{Resume, Settings};
use crate::tracing::Trace;
use crate::{io_thread, keeper, key, output, retention, scripts, user_files};

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its id.
    pub run: String,
    /// The job's result, or its failure.
    pub result: Result<Json, Arc<Failure>>,
    /// Every unhandled failure, in serial order.
    pub failures: Vec<Arc<Failure>>,
    /// How many tasks there were.
    pub counts: Counts,
    /// Why tasks ran although results of earlier runs were looked up: function and reason, and how
    /// often, the most frequent first.
    pub reruns: Vec<(String, u64)>,
    /// Microseconds from start to end.
    pub elapsed_us: u64,
    /// Microseconds of processor time of the engine and of all its processes.
    pub processor_us: u64,
    /// Bytes of its objects and of its waiting output, since its last start.
    pub store: StoreRecord,
    /// The run was ended from outside.
    pub interrupted: bool,
    /// The output has no reader any more.
    pub output_closed: bool,
    /// The run did not come to its end, and can be resumed.
    pub resumable: bool,
    /// To be left when all of this has been shown.
    pub leaving: Leaving,
}

/// Runs a job to its end.
///
/// Threads, processes and the lock of the run are gone when it returns; what stays is the run's
/// history. Signals to end (Ctrl-C, `SIGTERM`, `SIGHUP`) are handled while it runs; the third ends
/// this process at once.
///
/// # Errors
/// Those of the state folder, of the output, and of a system that is out of threads or files.
/// A job that fails is an [`Outcome`], not an error.
pub fn run(
    settings: Settings,
    job: Job<'_>,
    observer: Arc<dyn Observer>,
) -> Result<Outcome, RunError> {
    let (_counting, interrupts) = Interrupts::begin()?;
    let (orders, kept, receivers) = channels(interrupts);
    let state = StateFolder::open(&settings.state)?;
    tell_of_killed(&*observer, &orphans::clear(&state)?);
    let key = key::run_key(&settings, &job);
    let runs = state.runs()?;
    let is_session = matches!(job, Job::Session(_));
    let keep_rule = keep_rule(&settings, (key.is_some(), is_session), &runs);
    let folder = choose_folder(&state, &runs, &settings, key.as_deref(), &*observer)?;
    let folder = Arc::new(folder);
    let id = folder.id().to_string();
    if let Some(ended) = EndedRun::of(&folder)? {
        return ended.show(folder, &*observer);
    }
    retention::make_room(&state, &runs, &id, settings.keep_bytes, &*observer)?;
    let memory = settings.store_memory(key.is_some());
    folder.use_memory(memory, settings.stream_memory())?;
    observer.report(Report::Started { run: &id });
    let begun = match key {
        Some(_) => begin_recorded(&folder, &settings, orders.clone())?,
        None => Begun::unrecorded(&settings),
    };
    tell_of_recovery(&*observer, &id, &begun);
    let (is_new, state) = (begun.is_new, begun.state);
    let mut core = new_core(&settings, state, orders, kept.clone(), &folder);
    if settings.trace.is_some() {
        core.state_mut().watch(true);
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let idle_cores = SharedIdleCores::new(core.cores()).ok();
    let shared = Shared {
        run: folder.path(),
        idle_cores: idle_cores.as_ref().map(SharedIdleCores::path),
    };
    let registry = Registry::new(&path, &settings, &job, shared);
    let root = root(&settings, &job, begun.kept.journal.is_some());
    let (own, session) = match job {
        Job::Script(script) => (Some(script), None),
        Job::Python => (None, None),
        Job::Session(client) => (None, Some(client)),
    };
    let record = run_record(&settings, &id);
    let equipment = Equipment {
        history: HistoryFile::begin(&folder.history_path(), &record),
        trace: Trace::begin(settings.trace.clone(), &record),
        programs: Programs::new(own, &settings, script_environment(&settings)),
        observer,
        registry,
        idle_cores,
        session,
        kept,
        keep_rule,
    };
    let engine = Engine::new(settings, folder, equipment, begun.kept, core);
    let engine = Arc::new(engine);
    match is_new {
        true => submit(&engine, root),
        false => take_up(&engine, begun.lost),
    }
    let cookie = Cookie::new(&id).expect("the ids of runs are made of letters and digits");
    let ended = run_threads(&engine, receivers, cookie)?;
    finish(&engine, id, ended)
}

/// Which tasks take part in kept results, in a run that is recorded or not; those of a session only
/// if it asks for that.
fn keep_rule(
    settings: &Settings,
    (is_recorded, is_session): (bool, bool),
    runs: &[RunEntry],
) -> KeepRule {
    if settings.check {
        return KeepRule::default();
    }
    let is_new = settings.resume == Resume::New;
    let after_failure = || !is_new && has_ended_badly(runs, &key::job_key(settings));
    KeepRule {
        keeps: is_recorded || (is_session && settings.takes_kept()),
        takes: settings.takes_kept() || after_failure(),
    }
}

fn tell_of_killed(observer: &dyn Observer, killed: &[KilledRun]) {
    for message in killed.iter().filter_map(KilledRun::message) {
        let task = None;
        observer.report(Report::Warning {
            task,
            message: &message,
        });
    }
}

fn script_environment(settings: &Settings) -> BTreeMap<String, String> {
    let mut environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let folder = script_folder(&settings.script)
        .to_string_lossy()
        .into_owned();
    environment.insert(SCRIPT_FOLDER.to_string(), folder);
    environment.extend(settings.variables.clone());
    environment
}

/// Reports the state of a resumed run.
fn tell_of_recovery(observer: &dyn Observer, run: &str, begun: &Begun) {
    if let Some(cut) = &begun.cut {
        let message = format!(
            "the last {} bytes of {} were incomplete and are removed, with {} records; the work \
             that they recorded is redone",
            cut.bytes,
            cut.path.display(),
            cut.records
        );
        let task = None;
        observer.report(Report::Warning {
            task,
            message: &message,
        });
    }
    if begun.given_up > 0 {
        let message = format!(
            "spilled output is missing or has changed; the last {} records are removed, and the \
             work that they recorded is redone",
            begun.given_up
        );
        let task = None;
        observer.report(Report::Warning {
            task,
            message: &message,
        });
    }
    if !begun.is_new {
        let committed = begun.state.graph().counts().finished;
        observer.report(Report::Resumed { run, committed });
    }
}

/// Continues with the tasks of the graph, none of which runs any more.
fn take_up(engine: &Engine, mut lost: Vec<Name>) {
    let policy = engine.settings.policy();
    // The user's own files are imported again; the graph has the rest recomputed.
    for package in engine.settings.packages.values() {
        user_files::restore(engine, package, &mut lost);
    }
    engine.with(|core, now| core.tell(now, Event::EngineLost { policy, lost }));
}

fn new_core(
    settings: &Settings,
    state: Coordinator,
    orders: UnboundedSender<Order>,
    kept: kept_queue::Sender,
    folder: &RunFolder,
) -> Core {
    let cores = settings.usable_cores();
    let others = settings.resources.iter();
    let others = others.map(|(name, amount)| (name.as_str().into(), *amount));
    let resources = Resources {
        millicores: cores.saturating_mul(1000),
        memory_bytes: Some(machine_memory()),
        others: others.collect(),
    };
    let capacity = Capacity {
        resources,
        threads: settings.script_threads(),
        serial: settings.serial,
    };
    let mut core = Core::new(state, sharing(capacity, folder), orders, kept);
    if let Some(bound_bytes) = settings.output_bound() {
        core.bound_output(bound_bytes);
    }
    if let Some(children_max) = settings.children_bound() {
        core.bound_children(children_max);
    }
    core
}

fn run_record(settings: &Settings, id: &str) -> RunRecord {
    RunRecord {
        run: id.to_string(),
        command: settings.command_words(),
        started_s: seconds_now(),
        pid: std::process::id(),
        folder: std::env::current_dir()
            .unwrap_or_default()
            .display()
            .to_string(),
        resumed: false,
    }
}

/// Bytes of memory of this machine, or those of them that its control group allows this process.
fn machine_memory() -> u64 {
    let info = rustix::system::sysinfo();
    let all = info.totalram * u64::from(info.mem_unit);
    ciel_store::group_memory().map_or(all, |allowed| allowed.min(all))
}

/// A node with that capacity, which shares its memory with the objects of the run.
fn sharing(capacity: Capacity, folder: &RunFolder) -> Node {
    let objects = folder.objects();
    let used = objects.memory_use();
    let node = Node::new(capacity).share_with_store(used.limit.max(used.present));
    objects.grow_memory(node.lent_to_store());
    node
}

/// The task that everything begins with, in a run that is recorded or not.
fn root(settings: &Settings, job: &Job<'_>, recorded: bool) -> Arc<Descriptor> {
    let script = &settings.script;
    let what = script
        .file_stem()
        .map_or("script".into(), |stem| stem.to_string_lossy());
    let mut descriptor = match job {
        Job::Script(_) => skywriting::root_descriptor(&what, recorded),
        Job::Python => python::root_descriptor(&what, settings),
        Job::Session(_) => session::root_descriptor(&what),
    };
    descriptor.site.file = script.display().to_string().into();
    descriptor.options = release_early(descriptor.options.clone(), &descriptor.class);
    Arc::new(descriptor)
}

fn submit(engine: &Engine, descriptor: Arc<Descriptor>) {
    let name = Name::of_root(&engine.settings.key);
    engine.with(|core, now| core.tell(now, Event::RootSubmitted { name, descriptor }));
}

/// What the threads of a run receive.
struct Receivers {
    orders: UnboundedReceiver<Order>,
    kept: kept_queue::Receiver,
    interrupts: UnboundedReceiver<Interrupt>,
}

/// The channels to the threads of a run.
fn channels(
    interrupts: UnboundedReceiver<Interrupt>,
) -> (UnboundedSender<Order>, kept_queue::Sender, Receivers) {
    let (order_sender, orders) = tokio::sync::mpsc::unbounded_channel();
    let (kept_sender, kept) = kept_queue::queue();
    let receivers = Receivers {
        orders,
        kept,
        interrupts,
    };
    (order_sender, kept_sender, receivers)
}

fn run_threads(
    engine: &Arc<Engine>,
    receivers: Receivers,
    cookie: Cookie,
) -> Result<ThreadsEnded, RunError> {
    std::thread::scope(|scope| {
        let _closing = Closing(engine);
        for number in 0..engine.settings.script_threads() {
            let name = format!("script-{number}");
            spawn(scope, &name, || scripts::run_thread(engine))?;
        }
        spawn(scope, "kept", move || {
            keeper::run_thread(engine, receivers.kept)
        })?;
        let writer = spawn(scope, "output", || write_output(engine))?;
        let ended = io_thread::run_thread(
            engine.clone(),
            (receivers.orders, receivers.interrupts),
            cookie,
        );
        engine.close();
        let output = writer
            .join()
            .expect("a panic of the output thread is a bug told there");
        let ended = ended.map_err(|source| RunError::System {
            act: "wait for events",
            source,
        })?;
        Ok(ThreadsEnded {
            interrupted: ended.interrupted,
            output,
        })
    })
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    act: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, RunError> {
    let thread = std::thread::Builder::new().name(name.to_string());
    let spawned = thread.spawn_scoped(scope, act);
    spawned.map_err(|source| RunError::System {
        act: "start a thread",
        source,
    })
}

/// Sends the other threads home however this one leaves: a panic must not keep them waiting.
struct Closing<'a>(&'a Engine);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The output thread; when no more output can be released the job ends, too.
fn write_output(engine: &Engine) -> Result<(), output::Closed> {
    let written = output::run_thread(engine);
    if written.is_err() {
        engine.break_off("no more output can be written");
    }
    written
}
