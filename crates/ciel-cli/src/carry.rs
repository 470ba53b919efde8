//! `ciel pack` and `ciel unpack`: the kept results of a run as one file, and back.
//!
//! A packed file appears whole or not at all, and replaces nothing but an earlier one. It does not
//! know what is in the file. Read next: `ciel_runtime::carried_results`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ciel_runtime::carried_results::{self, ArchiveError, Packed, UnpackError, Unpacked};
use ciel_store::{RunEntry, StateFolder};
use ciel_view::listing;
use serde_json::json;

use crate::cli_error::{CliError, JOB_FAILED};
use crate::display::{self, counted, size};
use crate::earlier_file::{draft_of, may_replace};
use crate::look::report::meant;
use crate::options::{PackOptions, Shared, UnpackOptions};
use crate::owners;

/// Bytes at the beginning of a file that tell what it is.
const BEGINNING_BYTES: u64 = 64;

/// Writes what is kept of a run into a file.
pub fn pack(shared: &Shared, options: &PackOptions) -> Result<ExitCode, CliError> {
    let run = run_entry(shared, options.run.as_deref())?;
    let named = || PathBuf::from(format!("results-{}.tar", run.id));
    let path = options.output.clone().unwrap_or_else(named);
    let refused = |error: ArchiveError| unwritten(&path, &error.to_string());
    let unmade = |error: io::Error| refused(error.into());
    if !may_replace(&path, BEGINNING_BYTES, carried_results::is_archive).map_err(unmade)? {
        let message = format!("{} is no file of packed results", path.display());
        return Err(CliError::usage("pack.other", message).with_hint("name another file"));
    }
    let target = BufWriter::new(draft_of(&path).map_err(unmade)?);
    // Users who are gone have nothing that is taken.
    let numbers_of = |names: &[String]| owners::numbers(names).unwrap_or_default();
    let owner = owners::own_name();
    let packed = carried_results::pack(&shared.state, &run, numbers_of, (&owner, target));
    let Some((packed, target)) = packed.map_err(refused)?.filter(|one| one.0.results > 0) else {
        let message = format!("no results of run {} are kept", run.id);
        let hint = "`ciel runs` shows what each run has kept";
        return Err(CliError::usage("pack.empty", message).with_hint(hint));
    };
    let draft = target
        .into_inner()
        .map_err(|error| unmade(error.into_error()))?;
    let bytes = draft.as_file().metadata().map_err(unmade)?.len();
    draft.as_file().sync_all().map_err(unmade)?;
    draft
        .persist(&path)
        .map_err(|failed| unmade(failed.error))?;
    tell_packed(&path, &run, (packed, bytes), options.json)
}

fn tell_packed(
    path: &Path,
    run: &RunEntry,
    (packed, bytes): (Packed, u64),
    is_json: bool,
) -> Result<ExitCode, CliError> {
    if is_json {
        return display::print_json(&[json!({
            "file": path, "run": run.id, "bytes": bytes,
            "results": packed.results, "left_out": packed.left_out,
        })]);
    }
    let results = counted(packed.results, "result");
    let mut text = format!("{}: {results}, {}\n", path.display(), size(bytes));
    if packed.left_out > 0 {
        let tasks = counted(packed.left_out, "task");
        text.push_str(&format!(
            "{tasks} of the run left out: no result is kept that can travel\n"
        ));
    }
    display::print(text.as_bytes())
}

/// The run whose id begins so, or the newest.
fn run_entry(shared: &Shared, beginning: Option<&str>) -> Result<RunEntry, CliError> {
    let runs = listing::runs(&shared.state)?;
    let run = meant(&runs, beginning)?;
    let entries = match StateFolder::open_existing(&shared.state)? {
        Some(folder) => folder.runs()?,
        None => Vec::new(),
    };
    let entry = entries.into_iter().find(|entry| entry.id == run.id);
    entry.ok_or_else(|| {
        CliError::usage("run.unknown", format!("there is no run {}", run.id))
            .with_hint("`ciel runs` lists them")
    })
}

fn unwritten(path: &Path, why: &str) -> CliError {
    let message = format!("cannot pack results into {}: {why}", path.display());
    CliError::usage("pack.write", message)
}

/// Takes the results that are in a file.
pub fn unpack(shared: &Shared, options: &UnpackOptions) -> Result<ExitCode, CliError> {
    let path = &options.file;
    let file = open(path).map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        CliError::usage("unpack.unreadable", message)
    })?;
    let kept_dir = options.kept_dir.as_deref();
    let unpacked = carried_results::unpack(&shared.state, file, kept_dir, &options.trust_owner);
    let unpacked = unpacked.map_err(|error| untaken(path, error))?;
    if options.json {
        return display::print_json(&[json!({
            "file": path, "owner": unpacked.owner, "taken": unpacked.taken,
            "present": unpacked.present, "left_out": unpacked.refused,
        })]);
    }
    display::print(text(&unpacked).as_bytes())
}

/// A regular file, for reading; a pipe is not waited for.
fn open(path: &Path) -> io::Result<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(nonblocking).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

fn text(unpacked: &Unpacked) -> String {
    let Unpacked {
        owner,
        taken,
        present,
        refused,
    } = unpacked;
    let all = counted(taken + present + refused, "result");
    let mut text = format!("took {taken} of {all} that {owner} packed\n");
    if *present > 0 {
        text.push_str(&format!("{present} were there already\n"));
    }
    if *refused > 0 {
        text.push_str(&format!(
            "{refused} left out: they are neither bytes, text nor JSON, and might run code; if you \
             have this file from {owner}, --trust-owner {owner} takes them\n"
        ));
    }
    text
}

fn untaken(path: &Path, error: UnpackError) -> CliError {
    let message = format!("cannot take results of {}: {error}", path.display());
    let error = match error {
        UnpackError::State(error) => return error.into(),
        UnpackError::ReadOnly => return CliError::usage("unpack.folder", message),
        UnpackError::Archive(error) => error,
    };
    let (code, hint) = match error {
        ArchiveError::File(_) | ArchiveError::Kept(_) => {
            return CliError::usage("unpack.failed", message).with_exit(JOB_FAILED);
        }
        ArchiveError::Foreign => ("unpack.foreign", "`ciel pack` writes such files"),
        ArchiveError::OtherFormat(_) => (
            "unpack.format",
            "pack the results with the version of ciel that takes them",
        ),
        ArchiveError::Truncated => ("unpack.truncated", "copy the file again; nothing was taken"),
        ArchiveError::Damaged(_) => ("unpack.damaged", "copy the file again; nothing was taken"),
        ArchiveError::Unexpected(_) => (
            "unpack.unexpected",
            "`ciel pack` has not written this; nothing was taken",
        ),
    };
    CliError::usage(code, message)
        .with_hint(hint)
        .with_exit(JOB_FAILED)
}
