//! One run from beginning to end.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ciel_coordinator::Coordinator;
use ciel_graph::{Counts, Event, Policy};
use ciel_journal::Journal;
use ciel_model::{Content, Descriptor, Failure, Form, Name, Resources, Value};
use ciel_node::{Capacity, Node};
use ciel_spawner::Cookie;
use ciel_store::StateFolder;
use ciel_view::Ending;
use ciel_view::records::{EndRecord, Record, RunRecord};
use serde_json::Value as Json;

use crate::choice::{choose_folder, seconds_now};
use crate::core::Core;
use crate::engine::{Engine, Equipment};
use crate::error::RunError;
use crate::executors::{Registry, python};
use crate::face::{Face, Report};
use crate::programs::Programs;
use crate::recovery::{Begun, begin_recorded, keep_sinks};
use crate::remains::{self, KilledRun};
use crate::settings::Settings;
use crate::{internal, keeping, key, objects, output, scripts, shell, workers};

/// The variable that tells scripts and tasks the folder of the script.
pub(crate) const SCRIPT_FOLDER: &str = "CIEL_SCRIPT_FOLDER";

/// The folder of a run in which its tasks work.
pub(crate) const SCRATCH: &str = "scratch";

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its id.
    pub run: String,
    /// The job's result, or its failure.
    pub result: Result<Json, Arc<Failure>>,
    /// Every failure that nobody handled, earliest in serial order first.
    pub failures: Vec<Arc<Failure>>,
    /// How many tasks there were.
    pub counts: Counts,
    /// Microseconds from start to end.
    pub elapsed_us: u64,
    /// Microseconds of processor time of the engine and of all its processes.
    pub processor_us: u64,
    /// Somebody ended the run from outside.
    pub interrupted: bool,
    /// Nobody reads the output any more.
    pub output_closed: bool,
    /// The run did not come to its end, and can be resumed.
    pub resumable: bool,
}

/// What is run.
#[derive(Debug)]
pub enum Job<'a> {
    /// A checked script.
    Script(&'a ciel_skywriting::hir::Program),
    /// The function `main` of the Python file that the settings name.
    Python,
    /// Whatever a client submits, who speaks the executor protocol on this socket.
    Session(UnixStream),
}

/// Runs a job to its end.
///
/// Threads, processes and the lock of the run are gone when it returns; what stays is the run's
/// history. Signals to end (Ctrl-C, `SIGTERM`, `SIGHUP`) are handled while it runs.
///
/// # Errors
/// Those of the state folder, of the output, and of a system that is out of threads or files.
/// A job that fails is an [`Outcome`], not an error.
pub fn run(settings: Settings, job: Job<'_>, face: Arc<dyn Face>) -> Result<Outcome, RunError> {
    let state = StateFolder::open(&settings.state)?;
    tell_of_killed(&*face, &remains::clear(&state)?);
    let key = key::run_key(&settings, &job);
    let runs = state.runs()?;
    let folder = choose_folder(&state, &runs, &settings, key.as_deref(), &*face)?;
    let id = folder.id().to_string();
    keeping::make_room(&state, &runs, &id, settings.keep_bytes, &*face)?;
    face.report(Report::Started { run: &id });
    let (orders, receiver) = tokio::sync::mpsc::unbounded_channel();
    let begun = match key {
        Some(_) => {
            keep_sinks(&folder, &*face)?;
            begin_recorded(&folder, &settings, orders.clone())?
        }
        None => Begun::unrecorded(&settings),
    };
    tell_of_recovery(&*face, &id, &begun);
    let (is_new, state) = (begun.is_new, begun.state);
    let core = new_core(&settings, state, orders);
    let path = std::env::var("PATH").unwrap_or_default();
    let registry = Registry::discover(&path, &settings, &job, folder.path());
    let root = root(&settings, &job);
    let (own, session) = match job {
        Job::Script(script) => (Some(script), None),
        Job::Python => (None, None),
        Job::Session(client) => (None, Some(client)),
    };
    let equipment = Equipment {
        programs: Programs::new(own, &settings, script_environment(&settings)),
        face,
        registry,
        session,
    };
    let engine = Engine::new(settings, folder, equipment, begun.kept, core);
    let engine = Arc::new(engine);
    engine.record(&Record::Run(run_record(&engine.settings, &id)));
    match is_new {
        true => submit(&engine, root),
        false => take_up(&engine, begun.lost),
    }
    let cookie = Cookie::new(&id).expect("the ids of runs are made of letters and digits");
    let ended = run_threads(&engine, receiver, cookie)?;
    finish(&engine, id, ended)
}

fn tell_of_killed(face: &dyn Face, killed: &[KilledRun]) {
    for KilledRun { run, processes } in killed {
        if let Some((pid, command)) = processes.first() {
            let count = processes.len();
            let message = format!(
                "run {run} was killed and left {count} processes running, now killed: \
                 {command} ({pid})…"
            );
            let task = None;
            face.report(Report::Warning {
                task,
                message: &message,
            });
        }
    }
}

/// The folder that a script is in, absolute as far as that can be told.
pub(crate) fn script_folder(script: &Path) -> PathBuf {
    let folder = script
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf())
}

fn script_environment(settings: &Settings) -> BTreeMap<String, String> {
    let mut environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let folder = script_folder(&settings.script)
        .to_string_lossy()
        .into_owned();
    environment.insert(SCRIPT_FOLDER.to_string(), folder);
    environment
}

/// Says what there was of a run that is taken up.
fn tell_of_recovery(face: &dyn Face, run: &str, begun: &Begun) {
    if let Some(cut) = &begun.cut {
        let message = format!(
            "the last {} bytes of {} were not whole and are cut off, with {} records: what they \
             told of is done again",
            cut.bytes,
            cut.path.display(),
            cut.records
        );
        let task = None;
        face.report(Report::Warning {
            task,
            message: &message,
        });
    }
    if !begun.is_new {
        let committed = begun.state.graph().counts().finished;
        face.report(Report::Resumed { run, committed });
    }
}

/// What a failure does, as the settings have it.
pub(crate) fn policy(settings: &Settings) -> Policy {
    Policy {
        keep_going: settings.keep_going,
        fail_fast: settings.fail_fast,
    }
}

/// Goes on with what the graph knows, of which nothing runs any more.
fn take_up(engine: &Engine, mut lost: Vec<Name>) {
    let policy = policy(&engine.settings);
    // The user's own files are brought in once more; the graph has the rest made again.
    for path in engine.settings.packages.values() {
        let name = internal::name_of(path);
        if lost.contains(&name) && internal::bring_in(engine, path).is_ok() {
            lost.retain(|other| *other != name);
        }
    }
    engine.with(|core, now| core.tell(now, Event::EngineLost { policy, lost }));
}

fn new_core(
    settings: &Settings,
    state: Coordinator,
    orders: tokio::sync::mpsc::UnboundedSender<crate::core::Order>,
) -> Core {
    let cores = if settings.serial {
        1
    } else {
        settings.cores.max(1)
    };
    let others = settings.resources.iter();
    let others = others.map(|(name, amount)| (name.as_str().into(), *amount));
    let resources = Resources {
        millicores: cores.saturating_mul(1000),
        memory_bytes: machine_memory(),
        others: others.collect(),
    };
    let capacity = Capacity {
        resources,
        threads: cores,
        serial: settings.serial,
    };
    Core::new(state, Node::new(capacity), orders)
}

fn run_record(settings: &Settings, id: &str) -> RunRecord {
    let mut command = vec![settings.script.display().to_string()];
    command.extend(settings.arguments.iter().cloned());
    RunRecord {
        run: id.to_string(),
        command,
        started_s: seconds_now(),
        pid: std::process::id(),
        folder: std::env::current_dir()
            .unwrap_or_default()
            .display()
            .to_string(),
    }
}

/// Bytes of memory of this machine, if it tells.
fn machine_memory() -> Option<u64> {
    let info = rustix::system::sysinfo();
    Some(info.totalram * u64::from(info.mem_unit))
}

/// The task that everything begins with.
fn root(settings: &Settings, job: &Job<'_>) -> Descriptor {
    let script = &settings.script;
    let what = script
        .file_stem()
        .map_or("script".into(), |stem| stem.to_string_lossy());
    let mut descriptor = match job {
        Job::Script(_) => scripts::root_descriptor(&what),
        Job::Python => python::root_descriptor(&what, script, &settings.arguments),
        Job::Session(_) => workers::session_descriptor(&what),
    };
    descriptor.site.file = script.display().to_string().into();
    descriptor
}

fn submit(engine: &Engine, descriptor: Descriptor) {
    let name = Name::of_root(&engine.settings.key);
    engine.with(|core, now| core.tell(now, Event::RootSubmitted { name, descriptor }));
}

/// How the threads went home.
struct ThreadsEnded {
    interrupted: bool,
    output: Result<(), output::Closed>,
}

fn run_threads(
    engine: &Arc<Engine>,
    orders: tokio::sync::mpsc::UnboundedReceiver<crate::core::Order>,
    cookie: Cookie,
) -> Result<ThreadsEnded, RunError> {
    std::thread::scope(|scope| {
        let _closing = Closing(engine);
        let threads = if engine.settings.serial {
            1
        } else {
            engine.settings.cores.max(1)
        };
        for number in 0..threads {
            let name = format!("script-{number}");
            std::thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, || scripts::run_thread(engine))
                .map_err(|source| RunError::System {
                    act: "start a thread",
                    source,
                })?;
        }
        let writer = std::thread::Builder::new()
            .name("output".to_string())
            .spawn_scoped(scope, || write_output(engine))
            .map_err(|source| RunError::System {
                act: "start a thread",
                source,
            })?;
        let ended = shell::run_thread(engine.clone(), orders, cookie);
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

/// Sends the other threads home however this one leaves: a panic must not keep them waiting.
struct Closing<'a>(&'a Engine);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The output thread; when nothing can be put out any more the job ends too.
fn write_output(engine: &Engine) -> Result<(), output::Closed> {
    let written = output::run_thread(engine);
    if written.is_err() {
        engine.break_off("nothing more can be put out");
    }
    written
}

fn finish(engine: &Engine, run: String, ended: ThreadsEnded) -> Result<Outcome, RunError> {
    let mut core = engine.lock();
    let ending = core
        .ending
        .take()
        .expect("the threads go home when the job has ended");
    let counts = core.graph().counts();
    let elapsed_us = engine.now();
    let processor_us = core.processor_us() + own_processor_us();
    let failure = ending
        .result
        .as_ref()
        .err()
        .map(|failure| failure.to_string());
    drop(core);
    engine.write_history();
    engine.record(&Record::End(EndRecord {
        failure: failure.clone(),
        counts,
        elapsed_us,
    }));
    let mut trouble = engine.take_trouble();
    if let Some(Err(error)) = engine.journal.clone().map(Journal::close) {
        trouble.get_or_insert(RunError::of_journal(&run, error));
    }
    let came_to_its_end = !ended.interrupted && ended.output.is_ok() && trouble.is_none();
    let result = ending
        .result
        .map(|(name, value)| shown(engine, name, &value));
    let told = match came_to_its_end {
        true => tell_end(engine, result.as_ref().ok()),
        false => Ok(()),
    };
    let ending_told = (came_to_its_end && told.is_ok()).then(|| Ending {
        failure,
        tasks: counts.spawned,
        elapsed_us,
        bytes: engine.folder.bytes_on_disk(&USELESS),
    });
    let resumable = leave_folder(engine, ending_told);
    let output_closed = match ended.output {
        Err(output::Closed::Outside(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            true
        }
        Err(output::Closed::Outside(error)) => return Err(RunError::Output(error)),
        Err(output::Closed::Inside(error)) => return Err(error),
        Ok(()) => false,
    };
    if let Some(trouble) = trouble {
        return Err(trouble);
    }
    told?;
    Ok(Outcome {
        run,
        result,
        failures: ending.failures,
        counts,
        elapsed_us,
        processor_us,
        interrupted: ended.interrupted,
        output_closed,
        resumable,
    })
}

/// Tells the end of a job that has come to it, with its result if it has one. Whoever takes the run
/// up before it is marked as ended tells it once more.
fn tell_end(engine: &Engine, result: Option<&Json>) -> Result<(), RunError> {
    let told = result.map_or(Ok(()), |result| engine.face.result(result));
    let told = told.or_else(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    });
    told.and_then(|()| engine.face.settle())
        .map_err(RunError::Output)
}

/// Leaves the folder in order, and says whether the run can go on from there. A run that has come
/// to its end says so; of one that was broken off everything stays that is needed to go on.
fn leave_folder(engine: &Engine, ending: Option<Ending>) -> bool {
    let folder = &engine.folder;
    let Some(ending) = ending else {
        let resumable = folder.is_resumable().unwrap_or(false);
        match resumable {
            // What cannot be removed now is removed when the run is taken up.
            true => drop(std::fs::remove_dir_all(folder.path().join(SCRATCH))),
            false => clear_folder(folder.path()),
        }
        return resumable;
    };
    let ending = serde_json::to_vec(&ending).expect("numbers and a text make JSON");
    let marked = folder.mark_ended(&ending).or_else(|_| {
        // On a full disk there is room when what is of no use any more is gone.
        clear_folder(folder.path());
        folder.mark_ended(&ending)
    });
    if let Err(error) = marked {
        let message = format!("the end of run {} cannot be noted: {error}", folder.id());
        engine.face.report(Report::Warning {
            task: None,
            message: &message,
        });
    }
    clear_folder(folder.path());
    false
}

/// What is of no use after a run has ended. Scratch goes last: as long as it is there the folder
/// has not been left in order.
const USELESS: [&str; 6] = ["journal", "stdout", "sinks", "objects", "spill", SCRATCH];

/// Removes what is of no use after a run has ended.
pub(crate) fn clear_folder(run: &Path) {
    for name in USELESS {
        let path = run.join(name);
        // What cannot be removed now is removed by `ciel clean`.
        let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
    }
}

/// The job's result as JSON.
fn shown<R>(engine: &Engine, name: Name, value: &Value<R>) -> Json {
    let whole = || {
        let (kind, bytes) = (
            format!("{:?}", value.form).to_lowercase(),
            value.content.length(),
        );
        serde_json::json!({"object": name.to_string(), "bytes": bytes, "type": kind})
    };
    if value.content.length() > 1 << 20 && !matches!(value.content, Content::Inline(_)) {
        return whole();
    }
    let Ok(bytes) = objects::load(engine, &value.content) else {
        return whole();
    };
    match value.form {
        Form::Json => serde_json::from_slice(&bytes).unwrap_or_else(|_| whole()),
        Form::Skywriting => ciel_skywriting::wire::to_json(&bytes).unwrap_or_else(|_| whole()),
        Form::Bytes | Form::Text => match std::str::from_utf8(&bytes) {
            Ok(text) => Json::String(text.to_string()),
            Err(_) => whole(),
        },
        Form::Pickle => whole(),
    }
}

/// Processor time of this process itself.
fn own_processor_us() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole rusage, which the kernel fills in.
    let filled = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    if filled != 0 {
        return 0;
    }
    // SAFETY: the kernel has filled it in, and all bit patterns are valid.
    let usage = unsafe { usage.assume_init() };
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    us(usage.ru_utime) + us(usage.ru_stime)
}
