//! One ordered file: what the frontier has passed goes to an ordinary file of the user's.
//!
//! Its rules are those of `--output`: a file that holds the beginning of the output is compared
//! with it and continued, any other is refused or, under `--overwrite`, replaced at the end of the
//! run. It holds a prefix of the final bytes at every moment, also for one who reads along. It does
//! not know who writes. Read next: `ordered_files`, which has all of a run.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes compared at once.
const COMPARED_BYTES_MAX: usize = 64 << 10;

/// Bytes that the name of a draft takes from that of its file: names have at most 255.
const DRAFT_NAME_BYTES_MAX: usize = 180;

/// Why an ordered file cannot be written.
#[derive(Debug)]
pub struct FlatFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: FlatFileFault,
}

/// What is wrong with an ordered file.
#[derive(Debug)]
pub enum FlatFileFault {
    /// It is a folder, a pipe or a device.
    NotRegular,
    /// Its path is not UTF-8.
    NotText,
    /// Another run writes it.
    Busy,
    /// It cannot be opened.
    Open(io::Error),
    /// It differs from what the job writes, from this byte on.
    Differs(u64),
    /// The job ended after so many bytes, and the file continues.
    Longer(u64),
    /// Somebody else has changed its length.
    Changed {
        /// Bytes that this run left in it.
        left: u64,
        /// Bytes that were found.
        found: u64,
    },
    /// It was removed while the run wrote to it.
    Removed,
    /// It cannot be written.
    Write {
        /// Its first bytes, which are the beginning of the output.
        valid: u64,
        /// The system's answer.
        source: io::Error,
    },
}

impl FlatFileError {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match &self.fault {
            FlatFileFault::NotRegular => "file.not-regular",
            FlatFileFault::NotText => "file.name",
            FlatFileFault::Busy => "file.busy",
            FlatFileFault::Open(_) => "file.open",
            FlatFileFault::Differs(_) | FlatFileFault::Longer(_) => "file.differs",
            FlatFileFault::Changed { .. } => "file.changed",
            FlatFileFault::Removed => "file.removed",
            FlatFileFault::Write { .. } => "file.write",
        }
    }

    /// What to do about it; `run` is what can be resumed.
    pub(crate) fn hint(&self, run: Option<&str>) -> String {
        let resumed = run.map_or("run the job again".to_string(), |run| {
            format!("continue with `ciel resume {run}`")
        });
        match &self.fault {
            FlatFileFault::NotRegular | FlatFileFault::NotText => "name another file".to_string(),
            FlatFileFault::Busy => {
                "name another file, or wait for the other run to end".to_string()
            }
            FlatFileFault::Open(_) => format!(
                "the folder must exist; relative paths start at the folder of the run, {}",
                std::env::current_dir().unwrap_or_default().display()
            ),
            FlatFileFault::Differs(_) | FlatFileFault::Longer(_) => {
                "nothing was written behind that; name another file, or add --overwrite".to_string()
            }
            FlatFileFault::Changed { .. } => {
                format!("cut the file to the bytes of this run, then {resumed}")
            }
            FlatFileFault::Removed => {
                format!("{resumed}, which writes the file from its beginning")
            }
            FlatFileFault::Write { .. } => format!("make room for it, then {resumed}"),
        }
    }
}

impl fmt::Display for FlatFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.fault {
            FlatFileFault::NotRegular => write!(f, "{path} is not a regular file"),
            FlatFileFault::NotText => write!(f, "the path {path} is not UTF-8"),
            FlatFileFault::Busy => write!(f, "{path} is being written by another run"),
            FlatFileFault::Open(error) => write!(f, "cannot write {path}: {error}"),
            FlatFileFault::Differs(at) => write!(
                f,
                "{path} does not hold the beginning of what the job writes there: it differs from \
                 byte {at} on"
            ),
            FlatFileFault::Longer(at) => write!(
                f,
                "{path} does not hold what the job writes there: it continues after the last \
                 byte, {at}"
            ),
            FlatFileFault::Changed { left, found } => write!(
                f,
                "{path} was changed from outside: the run left {left} bytes in it, and it has \
                 {found}"
            ),
            FlatFileFault::Removed => write!(f, "{path} was removed while the run wrote to it"),
            FlatFileFault::Write { valid, source } => write!(
                f,
                "cannot write {path}: {source}; its {valid} bytes are the beginning of the output"
            ),
        }
    }
}

impl std::error::Error for FlatFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            FlatFileFault::Open(source) | FlatFileFault::Write { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// An open ordered file.
#[derive(Debug)]
pub(crate) struct FlatFile {
    path: PathBuf,
    file: File,
    /// Bytes in the file.
    length: u64,
    /// Bytes of the output that came by so far; less than `length` while they are compared.
    at: u64,
    draft: Option<Draft>,
}

/// A file beside the one that it replaces at the end of the run.
#[derive(Debug)]
struct Draft {
    path: PathBuf,
    /// The file that is replaced; it is locked.
    _replaced: File,
}

impl FlatFile {
    /// The file at a path, made if it is missing. With `overwrite`, the id of the run, whatever it
    /// held is replaced by a draft in the end.
    ///
    /// # Errors
    /// `NotRegular`, `NotText`, `Open`.
    pub(crate) fn open(path: &Path) -> Result<(File, String), FlatFileError> {
        let told = |fault| FlatFileError {
            path: path.to_path_buf(),
            fault,
        };
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(told(FlatFileFault::NotRegular));
        }
        let opened = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = opened.map_err(|error| told(FlatFileFault::Open(error)))?;
        let canonical = fs::canonicalize(path).map_err(|error| told(FlatFileFault::Open(error)))?;
        let canonical = canonical.into_os_string().into_string();
        let canonical = canonical.map_err(|_| told(FlatFileFault::NotText))?;
        Ok((file, canonical))
    }

    /// Takes a file that [`open`](FlatFile::open) has opened for this run alone. With `overwrite`,
    /// the id of the run, a draft replaces in the end whatever it held.
    ///
    /// # Errors
    /// `Busy`, `Open`.
    pub(crate) fn claim(
        file: File,
        canonical: &str,
        overwrite: Option<&str>,
    ) -> Result<FlatFile, FlatFileError> {
        let path = PathBuf::from(canonical);
        let told = |fault| FlatFileError {
            path: path.clone(),
            fault,
        };
        let opened = |error| told(FlatFileFault::Open(error));
        if !ciel_writer::claim(&file).map_err(opened)? {
            return Err(told(FlatFileFault::Busy));
        }
        let length = file.metadata().map_err(opened)?.len();
        let draft = overwrite.map(|run| draft_path(&path, run));
        let draft = draft.filter(|draft| length > 0 || draft.exists());
        let Some(draft) = draft else {
            return Ok(FlatFile {
                path,
                file,
                length,
                at: 0,
                draft: None,
            });
        };
        let (of_draft, _) = FlatFile::open(&draft)?;
        let permissions = file.metadata().map_err(opened)?.permissions();
        of_draft.set_permissions(permissions).map_err(opened)?;
        Ok(FlatFile {
            length: of_draft.metadata().map_err(opened)?.len(),
            path,
            file: of_draft,
            at: 0,
            draft: Some(Draft {
                path: draft,
                _replaced: file,
            }),
        })
    }

    /// Bytes in the file.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The next bytes of the output begin there; what is before is known to be in the file.
    pub(crate) fn pass_to(&mut self, at: u64) {
        self.at = at;
    }

    /// Takes the next bytes of the output: those that the file holds already are compared, the rest
    /// is appended.
    ///
    /// # Errors
    /// `Differs`, `Changed`, `Removed`, `Write`.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), FlatFileError> {
        let known = self.length.saturating_sub(self.at).min(bytes.len() as u64);
        let (known, rest) = bytes.split_at(known as usize);
        self.compare(self.at, known)?;
        self.at += known.len() as u64;
        if rest.is_empty() {
            return Ok(());
        }
        self.check_unchanged()?;
        if let Err(source) = self.file.write_all_at(rest, self.at) {
            let found = self.file.metadata().map_or(self.at, |found| found.len());
            self.length = found;
            return Err(self.cannot_write(source));
        }
        self.at += rest.len() as u64;
        self.length = self.at;
        Ok(())
    }

    /// Nobody else has removed the file, or changed its length.
    fn check_unchanged(&self) -> Result<(), FlatFileError> {
        let path = self.draft.as_ref().map_or(&self.path, |draft| &draft.path);
        let is_removed = ciel_writer::is_removed(&self.file, path);
        if is_removed.map_err(|source| self.cannot_write(source))? {
            return Err(self.told(FlatFileFault::Removed));
        }
        let found = self.file.metadata().map(|found| found.len());
        let found = found.map_err(|source| self.cannot_write(source))?;
        if found != self.length {
            let left = self.length;
            return Err(self.told(FlatFileFault::Changed { left, found }));
        }
        Ok(())
    }

    /// Compares bytes that were written at `at` with those of the file; those beyond its end are
    /// ignored.
    ///
    /// # Errors
    /// `Differs`, `Write` if it cannot be read.
    pub(crate) fn compare(&self, at: u64, bytes: &[u8]) -> Result<(), FlatFileError> {
        let known = self.length.saturating_sub(at).min(bytes.len() as u64) as usize;
        let mut found = vec![0; known.min(COMPARED_BYTES_MAX)];
        let mut at = at;
        for part in bytes[..known].chunks(COMPARED_BYTES_MAX) {
            let found = &mut found[..part.len()];
            let read = self.file.read_exact_at(found, at);
            read.map_err(|source| self.cannot_write(source))?;
            let differs = found.iter().zip(part).position(|(one, other)| one != other);
            if let Some(index) = differs {
                return Err(self.told(FlatFileFault::Differs(at + index as u64)));
            }
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Ends the file: after the whole output it must hold no more than that. A draft takes its
    /// place.
    ///
    /// # Errors
    /// `Longer`, `Write`.
    pub(crate) fn settle(&mut self, is_whole: bool) -> Result<(), FlatFileError> {
        if is_whole && self.length > self.at {
            return Err(self.told(FlatFileFault::Longer(self.at)));
        }
        if let Some(draft) = self.draft.take() {
            let renamed = fs::rename(&draft.path, &self.path);
            renamed.map_err(|source| self.cannot_write(source))?;
        }
        Ok(())
    }

    /// The run is not resumed: a draft is of no use any more.
    pub(crate) fn give_up(&mut self) {
        if let Some(draft) = self.draft.take() {
            // A draft that cannot be removed does no harm.
            let _ = fs::remove_file(&draft.path);
        }
    }

    /// Syncs what was written, so that it survives a power failure.
    ///
    /// # Errors
    /// `Write`.
    pub(crate) fn sync(&self) -> Result<(), FlatFileError> {
        self.file
            .sync_data()
            .map_err(|source| self.cannot_write(source))
    }

    fn cannot_write(&self, source: io::Error) -> FlatFileError {
        let valid = self.length;
        self.told(FlatFileFault::Write { valid, source })
    }

    fn told(&self, fault: FlatFileFault) -> FlatFileError {
        FlatFileError {
            path: self.path.clone(),
            fault,
        }
    }
}

fn draft_path(path: &Path, run: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = &name[..name.floor_char_boundary(DRAFT_NAME_BYTES_MAX)];
    path.with_file_name(format!(".{name}.ciel-{run}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(path: &Path, overwrite: Option<&str>) -> Result<FlatFile, FlatFileError> {
        let (file, canonical) = FlatFile::open(path)?;
        FlatFile::claim(file, &canonical, overwrite)
    }

    #[test]
    fn file_that_holds_the_beginning_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "one ").unwrap();
        let mut file = claimed(&path, None).unwrap();
        file.take(b"one two").unwrap();
        file.take(b"").unwrap();
        file.settle(true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one two");
    }

    #[test]
    fn other_contents_are_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "once").unwrap();
        let error = claimed(&path, None).unwrap().take(b"one two").unwrap_err();
        assert!(matches!(error.fault, FlatFileFault::Differs(2)), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"once");
        let mut longer = claimed(&path, None).unwrap();
        longer.take(b"on").unwrap();
        let error = longer.settle(true).unwrap_err();
        assert!(matches!(error.fault, FlatFileFault::Longer(2)), "{error}");
        assert!(error.hint(None).contains("--overwrite"));
    }

    #[test]
    fn overwritten_file_is_replaced_at_the_end_and_only_then() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "old").unwrap();
        claimed(&path, Some("7")).unwrap().take(b"new, ").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let mut resumed = claimed(&path, Some("7")).unwrap();
        resumed.take(b"new, all").unwrap();
        resumed.settle(true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new, all");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn file_of_another_run_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let _held = claimed(&path, None).unwrap();
        let error = claimed(&path, None).unwrap_err();
        assert!(matches!(error.fault, FlatFileFault::Busy));
        assert!(error.to_string().contains("log is being written"));
    }

    #[test]
    fn change_from_outside_is_found_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = claimed(&path, None).unwrap();
        file.take(b"one ").unwrap();
        fs::write(&path, "one and more").unwrap();
        let error = file.take(b"two").unwrap_err();
        let expected = "the run left 4 bytes in it, and it has 12";
        assert!(error.to_string().ends_with(expected), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"one and more");
    }

    /// A file that was removed took all further bytes, which nobody could find, and the job ended
    /// well.
    #[test]
    fn removed_file_takes_no_more_and_a_renamed_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("log"), folder.path().join("other"));
        let mut file = claimed(&path, None).unwrap();
        file.take(b"one ").unwrap();
        fs::rename(&path, &other).unwrap();
        file.take(b"two ").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"one two ");
        fs::remove_file(&other).unwrap();
        let error = file.take(b"three").unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("was removed while the run wrote to it")
        );
        assert_eq!(error.code(), "file.removed");
        assert!(error.hint(Some("7")).contains("ciel resume 7"));
    }

    #[test]
    fn folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = claimed(folder.path(), None).unwrap_err();
        assert_eq!(error.code(), "file.not-regular");
        let error = claimed(&folder.path().join("no/log"), None).unwrap_err();
        assert_eq!(error.code(), "file.open");
    }

    /// A write that stops half-way leaves a file that is still a prefix, and whose length is named.
    #[test]
    fn full_disk_leaves_a_prefix_and_names_its_length() {
        let full = Path::new("/dev/full");
        let Ok(file) = File::options().read(true).write(true).open(full) else {
            return println!("skipped: there is no /dev/full");
        };
        let mut file = FlatFile {
            path: "log".into(),
            file,
            length: 0,
            at: 0,
            draft: None,
        };
        let error = file.take(b"text").unwrap_err();
        let expected = "its 0 bytes are the beginning of the output";
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}
