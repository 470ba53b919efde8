//! Small work that the engine does itself: bringing files in, waiting for several references.

use std::path::Path;

use ciel_graph::{Assignment, Entry, Event, Output};
use ciel_model::{Content, Failure, FailureKind, Form, Handle, Name, Value, limits};
use ciel_node::Run;
use serde_json::Value as Json;

use crate::engine::Engine;
use crate::executors::{GRAB, SYNC};
use crate::failures;
use crate::objects::{self, StoreTrouble};

/// Runs a task of an internal executor, or says that nobody can run it.
pub(crate) fn run(engine: &Engine, assignment: &Assignment) {
    let run = Run {
        task: assignment.task,
        attempt: assignment.attempt,
    };
    let result = match &*assignment.descriptor.executor {
        GRAB => grab(engine, assignment),
        SYNC => sync(assignment),
        unknown => {
            let refused = engine.registry.unknown(unknown);
            Err(Box::new(refused.failure(&assignment.label)))
        }
    };
    match result {
        Err(failure) => engine.fail(run, *failure),
        Ok(output) => engine.with(|core, now| {
            let Run { task, attempt } = run;
            let outputs = vec![output];
            core.tell(
                now,
                Event::TaskFinished {
                    task,
                    attempt,
                    outputs,
                    printed: false,
                },
            );
            core.leave(now, run);
        }),
    }
}

type Result<T> = std::result::Result<T, Box<Failure>>;

fn arguments(assignment: &Assignment) -> Json {
    serde_json::from_slice(&assignment.descriptor.payload).unwrap_or(Json::Null)
}

/// `{"path": …}`: a file as an object.
fn grab(engine: &Engine, assignment: &Assignment) -> Result<Output> {
    let refuse = |message: String| {
        Box::new(Failure::new(
            FailureKind::Refused,
            assignment.label.clone(),
            message,
        ))
    };
    let arguments = arguments(assignment);
    let Some(path) = arguments.get("path").and_then(Json::as_str) else {
        return Err(refuse("grab needs {\"path\": \"FILE\"}".to_string()));
    };
    let name = assignment.label.name.output(0);
    match copy_in(engine, name, Path::new(path)) {
        Ok(value) => Ok(Output::Value(value)),
        Err(Trouble::Store(trouble)) => Err(Box::new(trouble.failure(engine, &assignment.label))),
        Err(Trouble::File(error)) => {
            let message = format!("cannot read {path:?}: {error}");
            let folder = std::env::current_dir().unwrap_or_default();
            let hint = format!("paths begin at the folder of the run, {}", folder.display());
            let failure = Failure::new(FailureKind::TaskError, assignment.label.clone(), message);
            Err(Box::new(failure.with_hint(hint)))
        }
    }
}

/// `{"inputs": […]}`: a reference to the first when all are there.
fn sync(assignment: &Assignment) -> Result<Output> {
    let Entry::Start(inputs) = &assignment.entry else {
        unreachable!("an internal task has only one turn");
    };
    objects::needed(inputs)
        .map_err(|failure| Box::new(failures::inherited(assignment, &failure)))?;
    match inputs.is_empty() {
        false => Ok(Output::Delegate(Handle(0))),
        true => Ok(Output::Value(Value::inline(Form::Json, "null"))),
    }
}

/// What a file of the user's is called as an object of the run.
pub(crate) fn name_of(path: &Path) -> Name {
    Name::of_root(path.as_os_str().as_encoded_bytes())
}

/// A file of the user's as an object of the run.
pub(crate) fn bring_in(engine: &Engine, path: &Path) -> std::io::Result<Value<Handle>> {
    copy_in(engine, name_of(path), path).map_err(|trouble| match trouble {
        Trouble::File(error) => error,
        Trouble::Store(trouble) => {
            engine.heed(&trouble.0);
            std::io::Error::other(trouble.to_string())
        }
    })
}

enum Trouble {
    File(std::io::Error),
    Store(StoreTrouble),
}

fn copy_in(
    engine: &Engine,
    name: Name,
    path: &Path,
) -> std::result::Result<Value<Handle>, Trouble> {
    let found = std::fs::metadata(path).map_err(Trouble::File)?;
    if found.is_dir() {
        return Err(Trouble::File(std::io::ErrorKind::IsADirectory.into()));
    }
    if found.len() < limits::INLINE_BYTES_MAX as u64 {
        let bytes = std::fs::read(path).map_err(Trouble::File)?;
        let content = objects::keep(engine, || name, bytes.into()).map_err(Trouble::Store)?;
        return Ok(Value {
            form: Form::Bytes,
            content,
            references: Vec::new(),
        });
    }
    let scratch = engine
        .folder
        .scratch()
        .path(name.0, 0, "grab")
        .map_err(|error| Trouble::Store(error.into()))?;
    let copied = std::fs::copy(path, &scratch).map_err(|error| copy_trouble(&scratch, error));
    let adopted = copied
        .and_then(|_| objects::adopt(engine, name, &scratch).map_err(Trouble::Store))
        .inspect_err(|_| {
            // Half a file would keep a full disk full; what cannot be removed goes with the run.
            let _ = std::fs::remove_file(&scratch);
        });
    let content: Content = adopted?;
    Ok(Value {
        form: Form::Bytes,
        content,
        references: Vec::new(),
    })
}

/// A failed copy is the file's trouble, unless there is no room for the copy.
fn copy_trouble(scratch: &Path, error: std::io::Error) -> Trouble {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => {
            Trouble::Store(crate::desk::disk_error(scratch.to_path_buf(), error).into())
        }
        _ => Trouble::File(error),
    }
}
