//! `ciel cat` and `ciel flatten`: structured files as the flat files they stand for.
//!
//! It knows names of files and words for what is wrong with them; the form is `ciel-cio`, its page
//! docs/reference/cio.md.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ciel_cio::{CioError, Ending, Reader, is_structured};
use rustix::fs::RenameFlags;

use crate::cli_error::{CliError, JOB_FAILED};
use crate::display;
use crate::options::{CatOptions, FlattenOptions};

/// Bytes of output that are gathered.
const GATHERED_BYTES: usize = 64 << 10;

/// Bytes that the name of a draft takes from that of its file: names have at most 255.
const DRAFT_NAME_BYTES_MAX: usize = 200;

/// Prints files, one after the other, up to the first that cannot be printed as a whole or up to
/// its frontier.
pub fn cat(options: &CatOptions) -> Result<ExitCode, CliError> {
    let mut out = Printed {
        out: BufWriter::with_capacity(GATHERED_BYTES, io::stdout().lock()),
        failed: None,
    };
    for path in &options.files {
        let printed = print(path, &mut out);
        // What was gathered is printed before anything is said about it.
        let flushed = out.flush();
        match out.failed.take() {
            Some(error) if error.kind() == ErrorKind::BrokenPipe => return Err(CliError::Unread),
            Some(error) => {
                let message = format!("cannot write to standard output: {error}");
                return Err(CliError::usage("output", message).with_exit(JOB_FAILED));
            }
            None => flushed.expect("a failure is noted"),
        }
        if let Some(note) = printed? {
            eprintln!("{note}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Standard output, which remembers its own failure: it is no failure of the file.
struct Printed<W> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Printed<W> {
    fn note<T>(&mut self, written: io::Result<T>) -> io::Result<T> {
        written.map_err(|error| {
            let kind = error.kind();
            // The kind stops the copy; an interrupted write is retried.
            if kind != ErrorKind::Interrupted {
                self.failed.get_or_insert(error);
            }
            kind.into()
        })
    }
}

impl<W: Write> Write for Printed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.note(flushed)
    }
}

/// Prints one file; gives what is to be said about it.
fn print(path: &Path, out: &mut impl Write) -> Result<Option<String>, CliError> {
    let mut file = open(path)?;
    let metadata = file.metadata().map_err(|error| unread(path, &error))?;
    let structured =
        metadata.is_file() && is_structured(&file).map_err(|error| unread(path, &error))?;
    if !structured {
        return match io::copy(&mut file, out) {
            Ok(_) => Ok(None),
            Err(error) => Err(unread(path, &error)),
        };
    }
    let reader = Reader::open(file).map_err(|error| wrong(path, error))?;
    reader
        .copy_checked(out)
        .map_err(|error| wrong(path, error).with_hint("what precedes them was printed"))?;
    match reader.ending() {
        Ending::Complete => Ok(None),
        Ending::Open(_) => Ok(Some(note(path, &reader))),
        Ending::Damaged(_) | Ending::Repeated(_) => {
            let error = reader.expect_complete().expect_err("it is not");
            Err(wrong(path, error).with_hint("what precedes them was printed"))
        }
    }
}

fn open(path: &Path) -> Result<File, CliError> {
    File::open(path).map_err(|error| unread(path, &error))
}

fn unread(path: &Path, error: &io::Error) -> CliError {
    let message = format!("cannot read {}: {error}", path.display());
    CliError::usage("cio.read", message)
}

/// What is said of a file that is printed up to its frontier.
fn note(path: &Path, reader: &Reader<File>) -> String {
    let printed = display::counted(reader.extents().bytes(), "byte");
    let start = format!(
        "note: {} is not complete: {printed} up to the frontier",
        path.display()
    );
    let behind: u64 = reader.rest().iter().map(|rest| rest.bytes).sum();
    match reader.rest().len() {
        0 => start,
        count => format!(
            "{start}; {} of {} behind it are not printed",
            display::counted(behind, "byte"),
            display::counted(count as u64, "segment")
        ),
    }
}

/// What is wrong with a structured file. If its bytes are at fault, it is no wrong usage.
fn wrong(path: &Path, error: CioError) -> CliError {
    let message = format!("{}: {error}", path.display());
    let complaint = CliError::usage("cio.file", message);
    match error {
        CioError::System(error) => unread(path, &error),
        CioError::DataDamaged { .. } | CioError::Repeated { .. } | CioError::Open { .. } => {
            complaint.with_exit(JOB_FAILED)
        }
        _ => complaint,
    }
}

/// Writes the flat file.
pub fn flatten(options: &FlattenOptions) -> Result<ExitCode, CliError> {
    let path = &options.file;
    let file = open(path)?;
    let source = file.metadata().map_err(|error| unread(path, &error))?;
    let reader = Reader::open(file).map_err(|error| refused(path, error, None))?;
    let complete = reader.expect_complete();
    complete.map_err(|error| refused(path, error, Some(reader.extents().bytes())))?;
    let output = output_of(options)?;
    let draft = Draft::create(&output, &source, options.overwrite)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    ciel_cio::flatten(&reader, &draft.file, threads).map_err(|error| match error {
        CioError::System(error) => unwritten(&output, &error),
        error => refused(path, error, None),
    })?;
    draft.appear(&output, options.overwrite)?;
    if options.remove {
        std::fs::remove_file(path).map_err(|error| {
            let (path, output) = (path.display(), output.display());
            let message = format!("{output} is written, but {path} cannot be removed: {error}");
            CliError::usage("cio.remove", message).with_exit(JOB_FAILED)
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a file is not flattened, and what can be done.
fn refused(path: &Path, error: CioError, bytes: Option<u64>) -> CliError {
    let shown = path.display();
    let whole = bytes.map_or("what precedes them".to_string(), |bytes| {
        format!("the {} before", display::counted(bytes, "byte"))
    });
    let hint = format!("`ciel cat {shown} > FILE` writes {whole}");
    match error {
        CioError::Open { segment } => {
            let message = format!(
                "{shown} is not complete: segment {} has not ended",
                segment.0
            );
            let complaint = CliError::usage("cio.partial", message).with_exit(JOB_FAILED);
            complaint.with_hint(hint)
        }
        CioError::DataDamaged { .. } => wrong(path, error).with_hint(hint),
        CioError::Foreign => wrong(path, error).with_hint("it may be flat already"),
        error => wrong(path, error),
    }
}

fn output_of(options: &FlattenOptions) -> Result<PathBuf, CliError> {
    if let Some(output) = &options.output {
        return Ok(output.clone());
    }
    match options.file.extension() {
        Some(suffix) if suffix == "cio" => Ok(options.file.with_extension("")),
        _ => {
            let message = format!("{} does not end with .cio", options.file.display());
            Err(CliError::usage("cio.name", message).with_hint("name the flat file: -o FILE"))
        }
    }
}

fn unwritten(path: &Path, error: &io::Error) -> CliError {
    let message = format!("cannot write {}: {error}", path.display());
    let complaint = CliError::usage("cio.write", message);
    match error.kind() {
        ErrorKind::NotFound => complaint.with_hint("the folder must exist"),
        _ => complaint,
    }
}

fn exists(path: &Path) -> CliError {
    let message = format!("{} exists", path.display());
    CliError::usage("cio.exists", message)
        .with_hint("choose another file with -o FILE, or add --overwrite")
}

/// A file beside the one it becomes; it goes when it is dropped before that.
struct Draft {
    file: File,
    path: PathBuf,
    /// The file that it becomes, without symbolic links.
    becomes: PathBuf,
    is_done: bool,
}

impl Draft {
    fn create(output: &Path, source: &Metadata, overwrite: bool) -> Result<Draft, CliError> {
        let trouble = |error: io::Error| unwritten(output, &error);
        let found = output.metadata().ok();
        if let Some(found) = &found {
            refuse(output, found, source, overwrite)?;
        }
        let becomes = match found {
            Some(_) => output.canonicalize().map_err(trouble)?,
            None => output.to_path_buf(),
        };
        let name = becomes.file_name().unwrap_or_default().to_string_lossy();
        let name = &name[..name.floor_char_boundary(DRAFT_NAME_BYTES_MAX)];
        let path = becomes.with_file_name(format!(".{name}.ciel-{}", std::process::id()));
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = opened.map_err(trouble)?;
        let draft = Draft {
            file,
            path,
            becomes,
            is_done: false,
        };
        if let Some(found) = found {
            let kept = draft.file.set_permissions(found.permissions());
            kept.map_err(trouble)?;
        }
        Ok(draft)
    }

    /// Takes the place of the file. Without `overwrite`, one that has appeared meanwhile stays.
    fn appear(mut self, output: &Path, overwrite: bool) -> Result<(), CliError> {
        let flags = match overwrite {
            true => RenameFlags::empty(),
            false => RenameFlags::NOREPLACE,
        };
        let here = rustix::fs::CWD;
        let renamed = rustix::fs::renameat_with(here, &self.path, here, &self.becomes, flags);
        match renamed {
            Ok(()) => {
                self.is_done = true;
                Ok(())
            }
            Err(rustix::io::Errno::EXIST) => Err(exists(output)),
            Err(error) => Err(unwritten(output, &error.into())),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_done {
            // A draft that cannot be removed does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Refuses a file that must not be replaced.
fn refuse(
    output: &Path,
    found: &Metadata,
    source: &Metadata,
    overwrite: bool,
) -> Result<(), CliError> {
    let shown = output.display();
    if (found.dev(), found.ino()) == (source.dev(), source.ino()) {
        let message = format!("{shown} is the structured file itself");
        return Err(CliError::usage("cio.same", message).with_hint("choose another file"));
    }
    if !found.is_file() {
        let message = format!("{shown} is not an ordinary file");
        return Err(CliError::usage("cio.kind", message)
            .with_hint("`ciel cat` writes to any other: ciel cat FILE.cio > FILE"));
    }
    match overwrite {
        true => Ok(()),
        false => Err(exists(output)),
    }
}
