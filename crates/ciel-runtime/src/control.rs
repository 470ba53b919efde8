//! The control socket of a live run: who connects is told all its tasks as records.
//!
//! It goes when the run ends. One connection, one answer. Read next: `ciel_view::socket`.

use std::path::PathBuf;
use std::sync::Arc;

use ciel_graph::{Situation, TaskView};
use ciel_model::Label;
use ciel_node::{Place, Run};
use ciel_view::records::{Record, TaskRecord, TaskState, words_of};
use ciel_view::socket;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};

use crate::core::Core;
use crate::engine::Engine;

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

/// Answers who asks until the thread ends. Without a place for a socket there is none, and `why`
/// knows only what the history tells.
pub(crate) fn listen(engine: &Arc<Engine>) -> Option<Socket> {
    let path = socket::path_of(engine.folder.id())?;
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
        record.append_to(&mut lines);
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
