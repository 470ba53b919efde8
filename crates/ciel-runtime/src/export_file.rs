//! A file of the user's that takes a result: all of it at once, or unchanged.
//!
//! A file with the same bytes is left alone, so that another attempt after a lost record changes
//! nothing. One with other contents is refused, unless it may be overwritten. The bytes go to a
//! draft in the same folder, which then takes the file's name. It does not know when that happens.
//! Read next: `exports`.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// Bytes that are compared at once.
const COMPARED_BYTES_MAX: usize = 64 << 10;

/// Bytes of the name of a file in usual file systems.
const NAME_BYTES_MAX: usize = 255;

/// A result on its way into a file.
#[derive(Debug)]
pub(crate) struct ExportFile {
    /// The file as the user named it; a relative path begins at the working folder.
    pub(crate) path: PathBuf,
    pub(crate) bytes: Bytes,
    /// Whether a file that has other contents is replaced.
    pub(crate) overwrite: bool,
    /// The end of the draft's name, the same in each attempt of a task.
    pub(crate) mark: String,
    /// Whether the file is to survive a power failure.
    pub(crate) is_synced: bool,
}

/// Why a file did not take a result; it is as it was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    /// It has other contents, and may not be overwritten.
    #[error("{0:?} exists and differs from the result")]
    Different(PathBuf),
    /// It is a folder, a device, or something else that cannot be replaced.
    #[error("{0:?} is not a regular file")]
    NotAFile(PathBuf),
    /// The folder of the file does not exist.
    #[error("cannot write {0:?}: its folder does not exist")]
    NoFolder(PathBuf),
    /// The system refuses.
    #[error("cannot write {0:?}: {1}")]
    System(PathBuf, io::Error),
}

impl ExportError {
    /// What the user can do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            ExportError::Different(_) => {
                Some("remove it, choose another path, or export with overwrite")
            }
            ExportError::NoFolder(_) => Some("create the folder first"),
            ExportError::NotAFile(_) | ExportError::System(..) => None,
        }
    }
}

impl ExportFile {
    /// Writes the file.
    ///
    /// # Errors
    /// The file cannot take the result, and is as it was.
    pub(crate) fn write(&self) -> Result<(), ExportError> {
        let found = match fs::metadata(&self.path) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(self.failed(error)),
        };
        match &found {
            Some(found) if !found.is_file() => {
                return Err(ExportError::NotAFile(self.path.clone()));
            }
            Some(found) if self.is_held(found)? => return Ok(()),
            Some(_) if !self.overwrite => {
                return Err(ExportError::Different(self.path.clone()));
            }
            _ => {}
        }
        self.replace(found).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> ExportError {
        match error.kind() {
            ErrorKind::NotFound => ExportError::NoFolder(self.path.clone()),
            _ => ExportError::System(self.path.clone(), error),
        }
    }

    /// Whether the file holds these bytes already.
    fn is_held(&self, found: &Metadata) -> Result<bool, ExportError> {
        if found.len() != self.bytes.len() as u64 {
            return Ok(false);
        }
        let same = || -> io::Result<bool> {
            let mut file = File::open(&self.path)?;
            let mut held = vec![0; COMPARED_BYTES_MAX];
            for part in self.bytes.chunks(COMPARED_BYTES_MAX) {
                file.read_exact(&mut held[..part.len()])?;
                if held[..part.len()] != *part {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match same() {
            Ok(same) => Ok(same),
            // It has become shorter meanwhile.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The draft takes the place of the file, or of the file that a link leads to.
    fn replace(&self, found: Option<Metadata>) -> io::Result<()> {
        let place = match found {
            Some(_) => fs::canonicalize(&self.path)?,
            None => self.path.clone(),
        };
        let draft = place.with_file_name(self.draft_name(&place));
        let written = self.write_draft(&draft, found);
        let placed = written.and_then(|()| fs::rename(&draft, &place));
        placed.inspect_err(|_| {
            // A draft that cannot be removed does no harm.
            let _ = fs::remove_file(&draft);
        })?;
        match (self.is_synced, place.parent()) {
            (true, Some(folder)) if folder != Path::new("") => File::open(folder)?.sync_all(),
            (true, _) => File::open(".")?.sync_all(),
            (false, _) => Ok(()),
        }
    }

    /// The name of the draft: as much of the file's name as there is room for, and the mark.
    fn draft_name(&self, place: &Path) -> String {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let end = format!(".ciel-{}", self.mark);
        let room = NAME_BYTES_MAX - 1 - end.len();
        format!(".{}{end}", &name[..name.floor_char_boundary(room)])
    }

    /// Writes the draft, over one that a killed attempt has left.
    fn write_draft(&self, draft: &Path, found: Option<Metadata>) -> io::Result<()> {
        match fs::remove_file(draft) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(draft)?;
        if let Some(found) = found {
            file.set_permissions(found.permissions())?;
        }
        file.write_all(&self.bytes)?;
        match self.is_synced {
            true => file.sync_all(),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Exports to a file in a folder; gives the message of the failure, if it fails.
    fn export(path: &Path, bytes: &str, overwrite: bool) -> Result<(), String> {
        let file = ExportFile {
            path: path.to_path_buf(),
            bytes: bytes.to_string().into(),
            overwrite,
            mark: "1".to_string(),
            is_synced: overwrite,
        };
        file.write().map_err(|error| error.to_string())
    }

    fn names_in(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn file_is_new_or_equal_or_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        assert_eq!(export(&path, "one", false), Ok(()));
        assert_eq!(export(&path, "one", false), Ok(()));
        let different = export(&path, "two", false).expect_err("it differs");
        assert!(different.contains("exists and differs"), "{different}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(export(&path, "two", true), Ok(()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(names_in(folder.path()), ["a"]);
    }

    #[test]
    fn replaced_file_keeps_its_mode_and_the_link_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        fs::write(&path, "one").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        symlink("a", &link).unwrap();
        assert_eq!(export(&link, "two", true), Ok(()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn draft_of_a_killed_attempt_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".a.ciel-1"), "half").unwrap();
        assert_eq!(export(&folder.path().join("a"), "whole", false), Ok(()));
        assert_eq!(names_in(folder.path()), ["a"]);
    }

    /// The draft's name was too long for the system, so a file could not have a name of more than
    /// some 200 bytes.
    #[test]
    fn name_may_be_as_long_as_the_system_allows() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x".repeat(255), "é".repeat(127)] {
            let path = folder.path().join(&name);
            assert_eq!(export(&path, "one", false), Ok(()));
            assert_eq!(export(&path, "two", true), Ok(()));
            assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        }
        assert_eq!(names_in(folder.path()).len(), 2);
    }

    #[test]
    fn what_cannot_be_a_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (path, message) in [
            (folder.path().to_path_buf(), "is not a regular file"),
            ("/dev/null".into(), "is not a regular file"),
            (folder.path().join("none/a"), "its folder does not exist"),
        ] {
            let refused = export(&path, "x", true).expect_err("bad");
            assert!(refused.contains(message), "{refused}");
        }
        assert!(names_in(folder.path()).is_empty());
    }
}
