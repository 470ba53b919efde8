//! The control socket of a live run: who connects is told all its tasks as records.
//!
//! It lies in the user's runtime folder and goes when the run ends. One connection, one answer.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;

use ciel_graph::{Situation, TaskView};
use ciel_model::Label;
use ciel_node::{Place, Run};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};

use crate::core::Core;
use crate::engine::Engine;
use crate::history::words_of;
use crate::records::{Record, TaskRecord, TaskState};

/// Live tasks told of at most.
const TASKS_TOLD_MAX: usize = 10_000;

/// The socket's file, which goes when this does.
pub(crate) struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // One that is gone already is as good.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Where the control socket of a run is.
pub(crate) fn socket_path(run: &str) -> Option<PathBuf> {
    Some(runtime_folder()?.join(format!("{run}.sock")))
}

/// The user's runtime folder, made if need be; only if it is the user's own.
fn runtime_folder() -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("ciel"),
        None => std::env::temp_dir().join(format!("ciel-{user}")),
    };
    // It may be there already; what matters is whose it is.
    let _ = std::fs::DirBuilder::new().mode(0o700).create(&folder);
    let found = std::fs::symlink_metadata(&folder).ok()?;
    (found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0).then_some(folder)
}

/// Answers who asks until the thread ends. Without a place for a socket there is none, and `why`
/// knows only what the history tells.
pub(crate) fn listen(engine: &Arc<Engine>) -> Option<Socket> {
    let path = socket_path(engine.folder.id())?;
    let listener = UnixListener::bind(&path).ok()?;
    let engine = engine.clone();
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::task::spawn_local(answer(engine.clone(), stream));
        }
    });
    Some(Socket(path))
}

async fn answer(engine: Arc<Engine>, mut stream: UnixStream) {
    let records = live_records(&engine);
    let mut lines = Vec::new();
    for record in records {
        if serde_json::to_writer(&mut lines, &record).is_ok() {
            lines.push(b'\n');
        }
    }
    // Who hangs up early does not want to know.
    let _ = stream.write_all(&lines).await;
}

fn live_records(engine: &Engine) -> Vec<Record> {
    let core = engine.lock();
    let tasks = core.graph().all().into_iter().take(TASKS_TOLD_MAX);
    tasks
        .filter_map(|task| core.graph().view(task))
        .map(|view| Record::Task(Box::new(record(&core, engine, &view))))
        .collect()
}

fn record(core: &Core, engine: &Engine, view: &TaskView) -> TaskRecord {
    let (state, reasons) = explain(core, engine, view);
    TaskRecord {
        name: view.label.name.to_string(),
        what: view.label.what.to_string(),
        executor: view.executor.to_string(),
        place: view.place.clone(),
        parent: view.parent.as_ref().map(Label::to_string),
        state,
        reasons,
        story: words_of(&view.story),
        attempts: view.attempts,
        ran_us: 0,
        failure: None,
    }
}

fn explain(core: &Core, engine: &Engine, view: &TaskView) -> (TaskState, Vec<String>) {
    let waiting = |labels: &[Label]| labels.iter().map(|on| format!("waiting on {on}")).collect();
    match &view.situation {
        Situation::Dormant => (
            TaskState::Dormant,
            vec!["lazy: nobody has asked for it".into()],
        ),
        Situation::Waiting(on) => (TaskState::Waiting, waiting(on)),
        Situation::Suspended(on) => (TaskState::Suspended, waiting(on)),
        Situation::Twin(of) => {
            let of = of
                .as_ref()
                .map_or("an equal call".to_string(), Label::to_string);
            (
                TaskState::Waiting,
                vec![format!("waiting on {of}, which is the same call")],
            )
        }
        Situation::Ready(_) => {
            let run = Run {
                task: view.task,
                attempt: ciel_model::Attempt(view.attempts - 1),
            };
            let lacking = core.node.waits_for(run, &view.options.resources);
            let reason = lacking.unwrap_or_else(|| "its turn".to_string());
            (TaskState::Ready, vec![format!("waiting for {reason}")])
        }
        Situation::Running(since) => (
            TaskState::Running,
            vec![running(core, engine, view, *since)],
        ),
    }
}

fn running(core: &Core, engine: &Engine, view: &TaskView, since: u64) -> String {
    let attempt = ciel_model::Attempt(view.attempts - 1);
    let seconds = engine.now().saturating_sub(since) as f64 / 1e6;
    let pid = core.pids.get(&view.task);
    match (core.place_of(view.task, attempt), pid) {
        (Some(Place::Process | Place::Worker(_)), Some(pid)) => {
            format!("running in process {pid} for {seconds:.1} s")
        }
        (Some(Place::Thread), _) => {
            let line = core
                .script_lines
                .get(&view.task)
                .map(|line| format!(", at {line}"));
            format!(
                "running a script for {seconds:.1} s{}",
                line.unwrap_or_default()
            )
        }
        _ => format!("starting for {seconds:.1} s"),
    }
}
