//! Files of the user's as objects of the run.
//!
//! A small one is read, a larger one copied: results must not change with it. It does not know
//! which task requests it.

use std::path::{Path, PathBuf};

use ciel_graph::Assignment;
use ciel_model::{Content, Failure, FailureKind, Form, Handle, Name, Value, limits};
use ciel_store::StoreError;
use serde_json::json;

use crate::engine::Engine;
use crate::objects::{self, ObjectError};
use crate::settings::Package;

/// A file as the first output of a task.
pub(crate) fn import(
    engine: &Engine,
    assignment: &Assignment,
    path: &Path,
) -> Result<Value<Handle>, Box<Failure>> {
    let label = &assignment.label;
    copy_in(engine, label.name.output(0), path).map_err(|trouble| match trouble {
        CopyError::Store(trouble) => Box::new(trouble.failure(engine, label)),
        CopyError::File(error) => {
            let message = format!("cannot read {path:?}: {error}");
            let folder = std::env::current_dir().unwrap_or_default();
            let hint = format!(
                "relative paths start at the folder of the run, {}",
                folder.display()
            );
            let failure = Failure::new(FailureKind::TaskError, label.clone(), message);
            Box::new(failure.with_hint(hint))
        }
    })
}

/// What a file of the user's is called as an object of the run.
pub(crate) fn name_of(path: &Path) -> Name {
    Name::of_root(path.as_os_str().as_encoded_bytes())
}

/// A file of the user's as an object of the run.
pub(crate) fn bring_in(engine: &Engine, path: &Path) -> std::io::Result<Value<Handle>> {
    copy_in(engine, name_of(path), path).map_err(|trouble| match trouble {
        CopyError::File(error) => error,
        CopyError::Store(trouble) => {
            engine.heed(&trouble.0);
            std::io::Error::other(trouble.to_string())
        }
    })
}

/// The list of references to these files as an object of the run, without the references.
pub(crate) fn index_of(engine: &Engine, paths: &[PathBuf]) -> std::io::Result<Value<Handle>> {
    let list: Vec<_> = (0..paths.len()).map(|at| json!({"$ref": at})).collect();
    let bytes = json!(list).to_string().into();
    let content = objects::keep(engine, || name_of_index(paths), bytes).map_err(|trouble| {
        engine.heed(&trouble.0);
        std::io::Error::other(trouble.to_string())
    })?;
    Ok(Value {
        form: Form::Json,
        content,
        references: Vec::new(),
    })
}

fn name_of_index(paths: &[PathBuf]) -> Name {
    let paths = paths.iter().map(|path| path.as_os_str().as_encoded_bytes());
    let parts = paths.flat_map(|path| [&path.len().to_be_bytes()[..], path].concat());
    Name::of_root(&[b"index".to_vec(), parts.collect()].concat())
}

/// Brings in again what of a package is lost, and takes it off the list.
pub(crate) fn restore(engine: &Engine, package: &Package, lost: &mut Vec<Name>) {
    let mut restored = Vec::new();
    for path in package.files() {
        let name = name_of(path);
        if lost.contains(&name) && bring_in(engine, path).is_ok() {
            restored.push(name);
        }
    }
    if let Package::Index(paths) = package {
        let name = name_of_index(paths);
        if lost.contains(&name) && index_of(engine, paths).is_ok() {
            restored.push(name);
        }
    }
    lost.retain(|name| !restored.contains(name));
}

enum CopyError {
    File(std::io::Error),
    Store(ObjectError),
}

fn copy_in(engine: &Engine, name: Name, path: &Path) -> Result<Value<Handle>, CopyError> {
    let found = std::fs::metadata(path).map_err(CopyError::File)?;
    if found.is_dir() {
        return Err(CopyError::File(std::io::ErrorKind::IsADirectory.into()));
    }
    if found.len() < limits::INLINE_BYTES_MAX as u64 {
        let bytes = std::fs::read(path).map_err(CopyError::File)?;
        let content = objects::keep(engine, || name, bytes.into()).map_err(CopyError::Store)?;
        return Ok(Value {
            form: Form::Bytes,
            content,
            references: Vec::new(),
        });
    }
    let scratch = engine
        .folder
        .scratch()
        .path(name.0, 0, "import")
        .map_err(|error| CopyError::Store(error.into()))?;
    let copied = std::fs::copy(path, &scratch).map_err(|error| copy_trouble(&scratch, error));
    let adopted = copied
        .and_then(|_| objects::adopt(engine, name, &scratch).map_err(CopyError::Store))
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
fn copy_trouble(scratch: &Path, error: std::io::Error) -> CopyError {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => {
            CopyError::Store(StoreError::of_system("write", scratch, error).into())
        }
        _ => CopyError::File(error),
    }
}
