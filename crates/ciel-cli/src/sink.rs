//! The file of `--output`: each byte of the ordered output once, no other file overwritten.
//!
//! A file that holds the beginning of the output is compared with it and continued. A file that
//! holds anything else is refused, or under `--overwrite` replaced at once when the run is over.
//! It does not know where the bytes come from.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::cli_error::CliError;

/// Bytes compared at once.
const COMPARED_BYTES_MAX: usize = 64 << 10;

/// Bytes that the name of a draft takes from that of its file: names have at most 255.
const DRAFT_NAME_BYTES_MAX: usize = 200;

/// How much of the output has come when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// The part before a failure.
    Part,
    /// The job was broken off.
    Broken,
}

/// An open file of `--output`.
#[derive(Debug)]
pub struct Sink {
    /// As the user named it.
    path: PathBuf,
    file: File,
    /// Bytes the file held before.
    held: u64,
    /// Bytes of output so far.
    offset: u64,
    /// Regular files are written at offsets, others just written.
    regular: bool,
    /// The draft that takes the file's place in the end.
    draft: Option<Draft>,
    /// The file does not hold the beginning of the output.
    differs: bool,
}

/// A new file beside the one it will replace; it goes when it is dropped before that.
#[derive(Debug)]
struct Draft {
    path: PathBuf,
    replaces: PathBuf,
    done: bool,
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.done {
            // A draft that cannot be removed does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Sink {
    /// Opens the file at `path`, made if it is missing; `sources` are files it must not be.
    pub fn open(path: &Path, overwrite: bool, sources: &[&Path]) -> Result<Sink, CliError> {
        let found = std::fs::metadata(path);
        if let Ok(found) = &found {
            refuse_sources(path, found, sources)?;
            if overwrite && found.is_file() && found.len() > 0 {
                return Sink::draft(path, found);
            }
        }
        let readable = found.as_ref().map_or(true, std::fs::Metadata::is_file);
        let opened = OpenOptions::new()
            .read(readable)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = opened.map_err(|error| cannot_open(path, &error))?;
        let metadata = file.metadata().map_err(|error| cannot_open(path, &error))?;
        let regular = metadata.is_file();
        if regular && !ciel_writer::claim(&file).is_ok_and(|alone| alone) {
            let message = format!("{} is being written by another run", path.display());
            return Err(CliError::usage("output.busy", message)
                .with_hint("choose another file, or wait for the other run to end"));
        }
        let held = if regular { metadata.len() } else { 0 };
        let (path, draft) = (path.to_path_buf(), None);
        Ok(Sink {
            path,
            file,
            held,
            offset: 0,
            regular,
            draft,
            differs: false,
        })
    }

    fn draft(path: &Path, found: &std::fs::Metadata) -> Result<Sink, CliError> {
        let trouble = |error: io::Error| cannot_open(path, &error);
        let replaces = std::fs::canonicalize(path).map_err(trouble)?;
        let name = replaces.file_name().unwrap_or_default().to_string_lossy();
        let name = &name[..name.floor_char_boundary(DRAFT_NAME_BYTES_MAX)];
        let draft = replaces.with_file_name(format!(".{name}.ciel-{}", std::process::id()));
        let opened = OpenOptions::new().write(true).create_new(true).open(&draft);
        let file = opened.map_err(trouble)?;
        file.set_permissions(found.permissions()).map_err(trouble)?;
        let draft = Some(Draft {
            path: draft,
            replaces,
            done: false,
        });
        let path = path.to_path_buf();
        Ok(Sink {
            path,
            file,
            held: 0,
            offset: 0,
            regular: true,
            draft,
            differs: false,
        })
    }

    /// Takes the next bytes of the output. Nothing is written where the file differs from them.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.regular {
            return io::Write::write_all(&mut self.file, bytes);
        }
        let held = self
            .held
            .saturating_sub(self.offset)
            .min(bytes.len() as u64) as usize;
        if let Some(equal) = first_difference(&self.file, self.offset, &bytes[..held])? {
            self.differs = true;
            self.offset += equal;
            return Err(io::Error::other("its contents differ"));
        }
        self.check_present()?;
        self.file
            .write_all_at(&bytes[held..], self.offset + held as u64)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// What is written to a file that was removed is lost.
    fn check_present(&self) -> io::Result<()> {
        let path = self.draft.as_ref().map_or(&self.path, |draft| &draft.path);
        match ciel_writer::is_removed(&self.file, path)? {
            true => {
                let path = path.display();
                Err(io::Error::other(format!(
                    "{path} was removed while the job wrote to it"
                )))
            }
            false => Ok(()),
        }
    }

    /// Ends the file. After the whole output it must hold no more than that. A file that was to be
    /// replaced is left as it is when the job was broken off.
    pub fn finish(mut self, extent: Extent) -> Result<(), CliError> {
        if self.differs {
            let why = format!("it differs from byte {} on", self.offset);
            return Err(self.refusal(why));
        }
        if extent == Extent::Whole && self.held > self.offset {
            let why = format!("it continues after the last byte, {}", self.offset);
            return Err(self.refusal(why));
        }
        if extent != Extent::Broken {
            let settled = self.settle();
            settled.map_err(|error| cannot_open(&self.path, &error))?;
        }
        Ok(())
    }

    /// What was to replace the file does so; before the run is marked as ended, or its output would
    /// be lost with a process that dies in between.
    pub fn settle(&mut self) -> io::Result<()> {
        let Some(draft) = self.draft.as_mut().filter(|draft| !draft.done) else {
            return Ok(());
        };
        std::fs::rename(&draft.path, &draft.replaces).map_err(|error| {
            let path = draft.replaces.display();
            io::Error::new(error.kind(), format!("{path} cannot be replaced: {error}"))
        })?;
        draft.done = true;
        Ok(())
    }

    fn refusal(&self, why: String) -> CliError {
        let path = self.path.display();
        let message = format!("{path} does not hold the beginning of the job's output: {why}");
        CliError::usage("output.differs", message)
            .with_hint("nothing was written to it; choose another file, or add --overwrite")
    }
}

/// Where the bytes of a file from offset `at` on differ from `bytes`, counted from there.
///
/// # Errors
/// The file cannot be read so far.
pub fn first_difference(file: &File, at: u64, bytes: &[u8]) -> io::Result<Option<u64>> {
    let mut buffer = [0; COMPARED_BYTES_MAX];
    let mut equal = 0;
    for part in bytes.chunks(COMPARED_BYTES_MAX) {
        let found = &mut buffer[..part.len()];
        file.read_exact_at(found, at + equal)?;
        let differs = |(found, wanted): (&u8, &u8)| found != wanted;
        match found.iter().zip(part).position(differs) {
            Some(at) => return Ok(Some(equal + at as u64)),
            None => equal += part.len() as u64,
        }
    }
    Ok(None)
}

fn refuse_sources(
    path: &Path,
    found: &std::fs::Metadata,
    sources: &[&Path],
) -> Result<(), CliError> {
    let is_same = |source: &&&Path| {
        let source = std::fs::metadata(source);
        source.is_ok_and(|source| (source.dev(), source.ino()) == (found.dev(), found.ino()))
    };
    match sources.iter().find(is_same) {
        None => Ok(()),
        Some(source) => {
            let message = format!(
                "{} is read by the job: {}",
                path.display(),
                source.display()
            );
            Err(CliError::usage("output.source", message).with_hint("choose another file for -o"))
        }
    }
}

fn cannot_open(path: &Path, error: &io::Error) -> CliError {
    let shown = path.display();
    let hint = match error.kind() {
        ErrorKind::NotFound => Some("the folder must exist".to_string()),
        ErrorKind::IsADirectory => Some(format!("name a file in it: {}/output", shown)),
        _ => None,
    };
    let complaint = CliError::usage("output.file", format!("cannot write {shown}: {error}"));
    match hint {
        Some(hint) => complaint.with_hint(hint),
        None => complaint,
    }
}

/// Whether the file at `path` can be read from its beginning; the error says why not.
pub fn is_readable_file(path: &Path) -> io::Result<()> {
    let mut byte = [0];
    File::open(path)?.read(&mut byte).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(content: &str, pieces: &[&str], overwrite: bool) -> (bool, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, content).unwrap();
        let mut sink = Sink::open(&path, overwrite, &[]).unwrap();
        let all = pieces
            .iter()
            .all(|piece| sink.write(piece.as_bytes()).is_ok());
        let extent = if all { Extent::Whole } else { Extent::Part };
        let finished = sink.finish(extent).is_ok();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        (all && finished, std::fs::read_to_string(path).unwrap())
    }

    #[test]
    fn file_with_the_beginning_is_continued() {
        assert_eq!(
            written("ab", &["a", "bc", "d"], false),
            (true, "abcd".to_string())
        );
        assert_eq!(written("", &["ab"], false), (true, "ab".to_string()));
        assert_eq!(written("ab", &["ab"], false), (true, "ab".to_string()));
    }

    /// A file that was removed took all further output, which nobody could find, and the job ended
    /// well.
    #[test]
    fn removed_file_takes_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut sink = Sink::open(&path, false, &[]).unwrap();
        sink.write(b"one ").unwrap();
        std::fs::remove_file(&path).unwrap();
        let error = sink.write(b"two").unwrap_err().to_string();
        assert!(
            error.ends_with("was removed while the job wrote to it"),
            "{error}"
        );
        assert!(!path.exists());
    }

    #[test]
    fn file_with_something_else_is_left_alone() {
        assert_eq!(
            written("axyz", &["a", "bc"], false),
            (false, "axyz".to_string())
        );
        assert_eq!(written("abc", &["ab"], false), (false, "abc".to_string()));
    }

    #[test]
    fn file_to_be_overwritten_stays_when_the_job_is_broken_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, "precious").unwrap();
        let mut sink = Sink::open(&path, true, &[]).unwrap();
        sink.write(b"new").unwrap();
        sink.finish(Extent::Broken).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn overwritten_file_is_replaced_in_the_end() {
        assert_eq!(written("axyz", &["a", "b"], true), (true, "ab".to_string()));
    }
}
