//! Tasks that put a result into a file of the user's: from an assignment to the file.
//!
//! Each is a future on the input/output thread. The file is written when the serial order has
//! reached the task and everything that led to the result is recorded, as printed output is
//! released; a run that is resumed therefore exports the same bytes. Read next: `gate`,
//! `export_file`.

use std::path::Path;
use std::sync::Arc;

use ciel_engine::{Action, Attempt};
use ciel_graph::{Assignment, Entry, Output};
use ciel_model::{Failure, FailureKind, Handle, Value};
use ciel_node::AttemptKey;
use ciel_view::Durable;

use crate::engine::Engine;
use crate::error::RunError;
use crate::executors::Launch;
use crate::executors::coroutine::Host;
use crate::executors::release::FileExport;
use crate::export_file::{ExportError, ExportFile};
use crate::failures;
use crate::gate::Causes;
use crate::workspace::TaskWorkspace;

type Failed<T> = Result<T, Box<Failure>>;

/// Runs one such task.
pub(crate) async fn run(engine: Arc<Engine>, assignment: Box<Assignment>) {
    let mut attempt = Attempt::new(&assignment);
    let key = attempt.key();
    match export(&engine, &assignment, key).await {
        Ok(Some(path)) => engine.act(&mut attempt, Action::Finish(vec![Output::Value(path)])),
        Ok(None) => engine.with(|core, now| core.tell(now, attempt.left())),
        Err(failure) => {
            engine.heed_surroundings(&failure);
            engine.act(&mut attempt, Action::Fail(*failure));
        }
    }
}

/// Exports the input of the task, and gives the path; none if the task is not needed any more.
async fn export(
    engine: &Arc<Engine>,
    assignment: &Assignment,
    attempt: AttemptKey,
) -> Failed<Option<Value<Handle>>> {
    let mut desk = TaskWorkspace::new(engine, assignment);
    let Entry::Start(inputs) = &assignment.entry else {
        unreachable!("an export has only one turn");
    };
    desk.lay_out(failures::values_of(assignment, inputs)?);
    let asked = plan(engine, assignment)?;
    let bytes = desk.taken(asked.input)?;
    let file = ExportFile {
        path: asked.path,
        bytes,
        overwrite: asked.overwrite,
        mark: assignment.label.name.to_string(),
        is_synced: engine.settings.durable == Durable::Power,
    };
    let Some(causes) = turn(engine, assignment, attempt).await else {
        return Ok(None);
    };
    let shared = engine.clone();
    let written = tokio::task::spawn_blocking(move || {
        let recorded = wait_until_recorded(&shared, causes);
        let written = recorded.then(|| file.write().map(|()| file.path));
        written.transpose()
    });
    let written = written.await.expect("writing a file does not panic");
    match written.map_err(|error| failure(assignment, &error))? {
        Some(path) => value(engine, assignment, &path).map(Some),
        None => Ok(None),
    }
}

fn plan(engine: &Engine, assignment: &Assignment) -> Failed<FileExport> {
    let executor = engine.registry.find(&assignment.descriptor.executor);
    let Launch::Release(release) = executor.launch() else {
        unreachable!("what a task does comes from its executor");
    };
    let arguments = serde_json::from_slice(&assignment.descriptor.payload)
        .expect("payloads of exports are written by the engine");
    let planned = release.plan(&arguments);
    planned.map_err(|refused| Box::new(refused.failure(&assignment.label)))
}

/// Waits until the serial order has reached the task; none if it is stopped.
async fn turn(engine: &Engine, assignment: &Assignment, attempt: AttemptKey) -> Option<Causes> {
    let turn = engine.with(|core, _| {
        let waits = !core.is_stopping(attempt);
        waits.then(|| core.wait_for_turn(assignment.strand, attempt))
    });
    // The sender is dropped when the task is stopped.
    turn?.await.ok()
}

/// Waits until everything that led to the result is recorded; false if it cannot be.
fn wait_until_recorded(engine: &Engine, causes: Causes) -> bool {
    let (Some(journal), Some(causes)) = (&engine.journal, causes) else {
        return true;
    };
    let recorded = journal.wait_for(causes);
    let recorded = recorded.map_err(|error| RunError::of_journal(engine.folder.id(), error));
    recorded.map_err(|trouble| engine.abandon(trouble)).is_ok()
}

fn failure(assignment: &Assignment, error: &ExportError) -> Box<Failure> {
    let label = assignment.label.clone();
    let failure = Failure::new(FailureKind::TaskError, label, error.to_string());
    Box::new(match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    })
}

fn value(engine: &Engine, assignment: &Assignment, path: &Path) -> Failed<Value<Handle>> {
    engine.value(assignment, &path.to_string_lossy().into(), 0)
}
