//! The control socket of a live run: clients receive records of its tasks, and may follow it.
//!
//! It goes when the run ends. One connection, one request, one answer. However many tasks live, the
//! lock of the machines is held for a few of them at a time; however slow a reader is, it costs a
//! bounded queue. It does not know how tasks are found; the graph does. Read next:
//! `ciel_view::socket`, `followers`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ciel_graph::{Situation, TaskView};
use ciel_model::words::size;
use ciel_model::{AttemptNumber, Label, Resources, TaskKey};
use ciel_node::{AttemptKey, Slot};
use ciel_ordered::Sink;
use ciel_view::limits::LIVE_TASKS_MAX;
use ciel_view::records::{HeldRecord, Record, TaskRecord, TaskState, WaitingRecord, words_of};
use ciel_view::socket::{self, Request};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::core::Core;
use crate::engine::Engine;
use crate::store_view::store_record;

/// Readers that are answered at once; others wait for one of them to go.
const READERS_MAX: usize = 16;

/// Bytes of a request.
const REQUEST_BYTES_MAX: u64 = 4 << 10;

/// Tasks that are described in one hold of the lock.
const TASKS_AT_ONCE: usize = 16;

/// Marks of the serial order that are passed in one hold of the lock.
const MARKS_AT_ONCE: usize = 1_024;

/// Tasks that are named because they have memory for which another one waits.
const NAMED_HOLDERS_MAX: usize = 4;

/// Milliseconds that readers may take at the end of a run for the events so far.
const FAREWELL_MS: u64 = 500;

/// The socket, whose file goes when this does.
pub(crate) struct Socket {
    path: PathBuf,
    listening: JoinHandle<()>,
    readers: Arc<Semaphore>,
}

impl Socket {
    /// Takes no more readers, and waits for those that there are, if they are quick.
    pub(crate) async fn close(&self) {
        self.listening.abort();
        let all = self.readers.acquire_many(READERS_MAX as u32);
        // Those that are slow see the end of the stream.
        let _ = tokio::time::timeout(Duration::from_millis(FAREWELL_MS), all).await;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // One that is gone already is as good.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Answers clients until the thread ends. Without a path for a socket there is none, and `why`
/// knows only the history.
pub(crate) fn listen(engine: &Arc<Engine>) -> Option<Socket> {
    let path = socket::path_of(engine.folder.id())?;
    let listener = UnixListener::bind(&path).ok()?;
    let engine = engine.clone();
    let readers = Arc::new(Semaphore::new(READERS_MAX));
    let permits = readers.clone();
    let listening = tokio::task::spawn_local(async move {
        while let Ok(permit) = permits.clone().acquire_owned().await
            && let Ok((stream, _)) = listener.accept().await
        {
            let engine = engine.clone();
            tokio::task::spawn_local(async move {
                // Who hangs up early does not want to know.
                let _ = answer(&engine, stream).await;
                drop(permit);
            });
        }
    });
    Some(Socket {
        path,
        listening,
        readers,
    })
}

/// Whether the other end is the user of this run, or root. The folder of the socket lets nobody
/// else in, unless its permissions were changed since.
fn may_ask(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let peer = stream.peer_cred().map(|peer| peer.uid());
    peer.is_ok_and(|user| user == own || user == 0)
}

/// The output that waits behind the serial frontier.
fn waiting(engine: &Engine) -> WaitingRecord {
    let core = engine.lock();
    let files = core.state().files();
    let name = |sink: Sink| match (sink.0 as usize).checked_sub(1) {
        None => "stdout".to_string(),
        Some(index) => files[index].clone(),
    };
    let bytes = core.state().output().unreleased_bytes();
    let pressure = core.engine().pressure();
    WaitingRecord {
        held: pressure.map(|now| HeldRecord {
            bound_bytes: (now.bound_bytes < u64::MAX).then_some(now.bound_bytes),
            room_is_scarce: now.room_is_scarce,
            tasks: now.held as u64,
            paused: now.paused as u64,
            ever_paused: now.ever_paused,
            gave_way: now.gave_way,
        }),
        bytes: bytes
            .into_iter()
            .map(|(sink, bytes)| (name(sink), bytes))
            .collect(),
    }
}

async fn answer(engine: &Engine, stream: UnixStream) -> std::io::Result<()> {
    if !may_ask(&stream) {
        return Ok(());
    }
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    (&mut stream)
        .take(REQUEST_BYTES_MAX)
        .read_line(&mut line)
        .await?;
    let Some(request) = Request::read(&line) else {
        return Ok(());
    };
    let asks_for_tasks = matches!(request, Request::Tasks(_));
    let follower = match request {
        Request::Follow(_) => engine.follow(),
        Request::Tasks(_) | Request::Find(_) | Request::Cancel(_) => None,
    };
    let found = match request {
        Request::Tasks(most) | Request::Follow(most) => {
            first_tasks(engine, most.min(LIVE_TASKS_MAX)).await
        }
        Request::Find(text) => tasks_called(engine, &text).await,
        Request::Cancel(name) => {
            let cancelled = cancel(engine, &name).await;
            return stream.write_all(&cancelled).await;
        }
    };
    let mut lines = Vec::new();
    Record::Counts(engine.function_counts()).append_to(&mut lines);
    if asks_for_tasks {
        Record::Waiting(waiting(engine)).append_to(&mut lines);
        Record::Store(Box::new(store_record(engine))).append_to(&mut lines);
    }
    for tasks in found.chunks(TASKS_AT_ONCE) {
        stream.write_all(&lines).await?;
        lines.clear();
        for record in described(engine, tasks) {
            Record::Task(Box::new(record)).append_to(&mut lines);
        }
    }
    stream.write_all(&lines).await?;
    match follower {
        Some(follower) => follower.pass_on(stream).await,
        None => Ok(()),
    }
}

/// The first live tasks in serial order. Where the last one found ends between two looks, what
/// comes after it is not found.
async fn first_tasks(engine: &Engine, most: usize) -> Vec<TaskKey> {
    let mut found: Vec<TaskKey> = Vec::new();
    while found.len() < most {
        let last = found.last().copied();
        let next = engine.lock().graph().in_order_after(last, MARKS_AT_ONCE);
        if next.is_empty() {
            break;
        }
        found.extend(next);
        tokio::task::yield_now().await;
    }
    found.truncate(most);
    found
}

/// All live tasks that a text may mean, as far as they are bounded.
async fn tasks_called(engine: &Engine, text: &str) -> Vec<TaskKey> {
    let mut found = Vec::new();
    let mut number = 0;
    while found.len() < LIVE_TASKS_MAX {
        let numbers = number..number + MARKS_AT_ONCE;
        let Some(next) = engine.lock().graph().find(text, numbers) else {
            break;
        };
        found.extend(next);
        number += MARKS_AT_ONCE;
        tokio::task::yield_now().await;
    }
    found
}

/// Cancels the task of that name, if it lives; its record as it was, as a line.
async fn cancel(engine: &Engine, name: &str) -> Vec<u8> {
    let mut lines = Vec::new();
    for task in tasks_called(engine, name).await {
        let record = engine.with(|core, now| {
            let view = core.graph().view(task)?;
            let record = record(core, engine, &view);
            core.tell(now, ciel_graph::Event::CancelRequested { task });
            Some(record)
        });
        if let Some(record) = record {
            Record::Task(Box::new(record)).append_to(&mut lines);
        }
    }
    lines
}

/// The records of a few tasks, as far as they still live.
fn described(engine: &Engine, tasks: &[TaskKey]) -> Vec<TaskRecord> {
    let core = engine.lock();
    let views = tasks.iter().filter_map(|task| core.graph().view(*task));
    views.map(|view| record(&core, engine, &view)).collect()
}

fn record(core: &Core, engine: &Engine, view: &TaskView) -> TaskRecord {
    let (state, reasons) = explain(core, engine, view);
    let attempt = AttemptNumber(view.attempts.saturating_sub(1));
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
        memory_bytes: None,
        rerun: None,
        streams: core.history.streams_of(view.label.name, attempt),
    }
}

fn explain(core: &Core, engine: &Engine, view: &TaskView) -> (TaskState, Vec<String>) {
    let waiting = |labels: &[Label]| {
        labels
            .iter()
            .map(|on| format!("waiting for {on}"))
            .collect()
    };
    if let Some(children) = core.engine().paused_for(attempt_of(view)) {
        let reason = format!("paused: {children} children unfinished");
        return (TaskState::Suspended, vec![reason]);
    }
    match &view.situation {
        Situation::Dormant => (
            TaskState::Dormant,
            vec!["lazy: no task needs its result yet".into()],
        ),
        Situation::Known => (
            TaskState::Finished,
            vec!["known by the digest of its result: it runs if a task needs the bytes".into()],
        ),
        Situation::Waiting(on) => (TaskState::Waiting, waiting(on)),
        Situation::Held(on) => (TaskState::Suspended, waiting(on)),
        Situation::Suspended(on) => (TaskState::Suspended, waiting(on)),
        Situation::Twin(of) => {
            let of = of
                .as_ref()
                .map_or("another task".to_string(), Label::to_string);
            (
                TaskState::Waiting,
                vec![format!("waiting for {of}, an equal call")],
            )
        }
        Situation::Ready(_) if core.engine().is_held(attempt_of(view)) => {
            let pressure = core.engine().pressure();
            let reason = match pressure.is_some_and(|now| now.room_is_scarce) {
                true => "held: the run's files take most of what --store-bytes allows",
                false => "held: more output than --held-bytes waits before it is its turn",
            };
            (TaskState::Waiting, vec![reason.into()])
        }
        Situation::Ready(_) => {
            let reason = missing_slot(core, attempt_of(view), view);
            (TaskState::Ready, vec![format!("waiting for {reason}")])
        }
        Situation::Running(since) => (
            TaskState::Running,
            vec![running(core, engine, view, *since)],
        ),
    }
}

fn attempt_of(view: &TaskView) -> AttemptKey {
    AttemptKey {
        task: view.task,
        number: AttemptNumber(view.attempts - 1),
    }
}

/// What a ready task has to wait for: the worker that keeps it, a resource, or its turn.
fn missing_slot(core: &Core, attempt: AttemptKey, view: &TaskView) -> String {
    let node = core.engine().node();
    let before = node.held_behind(attempt);
    if let Some(before) = before.and_then(|task| core.graph().view(task)) {
        return format!("its worker process, which runs {}", before.label);
    }
    let need = &view.options.resources;
    match (node.waits_for(attempt, need), need.memory_bytes) {
        (Some(lacking), Some(wanted)) if lacking == Resources::MEMORY => memory(core, wanted),
        (lacking, _) => lacking.unwrap_or_else(|| "its turn".to_string()),
    }
}

/// How much memory a task waits for, of how much, and who has it.
fn memory(core: &Core, wanted: u64) -> String {
    let node = core.engine().node();
    let all = node.capacity().resources.memory_bytes.unwrap_or_default();
    let holders = node.memory_holders().into_iter().take(NAMED_HOLDERS_MAX);
    let named = holders.filter_map(|(attempt, bytes)| {
        let view = core.graph().view(attempt.task)?;
        Some(format!("{} has {}", view.label, size(bytes)))
    });
    let lent = Some(node.lent_to_store()).filter(|lent| *lent > 0);
    let of_store = lent.map(|lent| {
        let gives_back = match node.awaits_store() {
            true => ", which are being written back",
            false => "",
        };
        format!("results have {}{gives_back}", size(lent))
    });
    let has: Vec<String> = named.chain(of_store).collect();
    let (wanted, all) = (size(wanted), size(all));
    format!("{wanted} of {all} of memory: {}", has.join(", "))
}

fn running(core: &Core, engine: &Engine, view: &TaskView, since: u64) -> String {
    let slot = core.engine().slot_of(attempt_of(view));
    let seconds = engine.now().saturating_sub(since) as f64 / 1e6;
    let pid = match slot {
        Some(Slot::Worker(worker)) => core.worker_pids.get(&worker),
        _ => core.pids.get(&view.task),
    };
    match (slot, pid) {
        (Some(Slot::Process | Slot::Worker(_)), Some(pid)) => {
            format!("running in process {pid} for {seconds:.1} s")
        }
        (Some(Slot::Thread), _) => {
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
