//! Files of the user's as objects of the run.
//!
//! A small one is read, a larger one copied: results must not change with it. One that changes
//! meanwhile is refused, as half of it might be old. It does not know which task requests it.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ciel_graph::Assignment;
use ciel_model::{Content, Digest, Failure, FailureKind, Form, Handle, Name, Value, limits};
use ciel_store::StoreError;
use serde_json::json;

use crate::engine::Engine;
use crate::file_stamp::FileStamp;
use crate::kept::Request;
use crate::largest::Maker;
use crate::objects::{self, ObjectError};
use crate::settings::Package;

/// A file as the first output of a task.
pub(crate) fn import(
    engine: &Engine,
    assignment: &Assignment,
    path: &Path,
) -> Result<Value<Handle>, Box<Failure>> {
    let label = &assignment.label;
    copy_in(engine, label.name.output(0), path, None).map_err(|trouble| match trouble {
        CopyError::Store(trouble) => Box::new(trouble.failure(engine, label)),
        CopyError::File(error) if error.kind() == io::ErrorKind::Other => {
            let message = format!("cannot read {path:?}: {error}");
            Box::new(Failure::new(FailureKind::TaskError, label.clone(), message))
        }
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

/// A file of the user's as an object of the run, as it was when the run began.
///
/// # Errors
/// It cannot be read, or has changed since.
pub(crate) fn bring_in(engine: &Engine, path: &Path) -> io::Result<Value<Handle>> {
    let wanted = engine.stamps.get(path).copied();
    copy_in(engine, name_of(path), path, wanted).map_err(|trouble| match trouble {
        CopyError::File(error) => error,
        CopyError::Store(trouble) => {
            trouble.heed(engine);
            io::Error::other(trouble.to_string())
        }
    })
}

/// The list of references to these files as an object of the run, without the references.
pub(crate) fn index_of(engine: &Engine, paths: &[PathBuf]) -> io::Result<Value<Handle>> {
    let list: Vec<_> = (0..paths.len()).map(|at| json!({"$ref": at})).collect();
    let bytes = json!(list).to_string().into();
    let content = objects::keep(
        engine,
        &Maker::File(&"package"),
        || name_of_index(paths),
        bytes,
    )
    .map_err(|trouble| {
        trouble.heed(engine);
        io::Error::other(trouble.to_string())
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
    File(io::Error),
    Store(ObjectError),
}

fn copy_in(
    engine: &Engine,
    name: Name,
    path: &Path,
    wanted: Option<FileStamp>,
) -> Result<Value<Handle>, CopyError> {
    let (mut file, found) = opened(path).map_err(CopyError::File)?;
    let stamp = FileStamp::of(&found);
    if wanted.is_some_and(|wanted| wanted != stamp) {
        let error = io::Error::other("it has changed since the run began");
        return Err(CopyError::File(error));
    }
    let content = match found.len() < limits::INLINE_BYTES_MAX as u64 {
        true => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(CopyError::File)?;
            expect_unchanged(&file, stamp).map_err(CopyError::File)?;
            objects::keep(engine, &Maker::File(&path.display()), || name, bytes.into())
                .map_err(CopyError::Store)?
        }
        false => copy_large(engine, name, path, (&mut file, stamp))?,
    };
    let digest = match &content {
        Content::Inline(bytes) => Some(Digest::of(bytes)),
        Content::File { digest, .. } => *digest,
    };
    let request = Request::Read(path.to_path_buf(), digest);
    engine.kept.send(request);
    Ok(Value {
        form: Form::Bytes,
        content,
        references: Vec::new(),
    })
}

/// A regular file; to open anything else might take for ever, and to read it, too.
fn opened(path: &Path) -> io::Result<(File, Metadata)> {
    let found = fs::metadata(path)?;
    if found.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = File::open(path)?;
    let found = file.metadata()?;
    Ok((file, found))
}

/// What was read of the file since then is of one state of it.
fn expect_unchanged(file: &File, stamp: FileStamp) -> io::Result<()> {
    match FileStamp::of(&file.metadata()?) == stamp {
        true => Ok(()),
        false => Err(io::Error::other("it changed while it was read")),
    }
}

fn copy_large(
    engine: &Engine,
    name: Name,
    path: &Path,
    (file, stamp): (&mut File, FileStamp),
) -> Result<Content, CopyError> {
    let scratch = engine
        .folder
        .scratch()
        .path(name.0, 0, "import")
        .map_err(|error| CopyError::Store(error.into()))?;
    let copied = copy(file, &scratch).map_err(|error| copy_trouble(&scratch, error));
    let whole = copied.and_then(|()| expect_unchanged(file, stamp).map_err(CopyError::File));
    whole
        .and_then(|()| {
            let adopted = objects::adopt(engine, &Maker::File(&path.display()), name, &scratch);
            adopted.map_err(CopyError::Store)
        })
        .inspect(|content| engine.folder.budget().count_moved(content.length()))
        .inspect_err(|_| {
            // Half a file would keep a full disk full; what cannot be removed goes with the run.
            let _ = fs::remove_file(&scratch);
        })
}

/// Copies bytes and mode: a program is to stay one.
fn copy(file: &mut File, to: &Path) -> io::Result<()> {
    let mut copy = File::create(to)?;
    io::copy(file, &mut copy)?;
    copy.set_permissions(file.metadata()?.permissions())
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

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    #[test]
    fn file_that_changes_while_it_is_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        fs::write(&path, "old old old").unwrap();
        let (file, found) = opened(&path).unwrap();
        let stamp = FileStamp::of(&found);
        assert!(expect_unchanged(&file, stamp).is_ok());
        let mut writer = OpenOptions::new().append(true).open(&path).unwrap();
        writer.write_all(b"new").unwrap();
        let refused = expect_unchanged(&file, stamp).unwrap_err();
        assert_eq!(refused.to_string(), "it changed while it was read");
    }

    /// To read a device took all memory of the engine, and to open a pipe a thread for ever.
    #[test]
    fn what_is_no_regular_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        for path in [Path::new("/dev/zero"), &pipe] {
            let refused = opened(path).map(|_| ()).unwrap_err();
            assert_eq!(refused.to_string(), "it is not a regular file");
        }
        let kind = opened(folder.path()).map(|_| ()).unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::IsADirectory);
    }
}
