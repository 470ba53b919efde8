//! `ciel report`: a page about a run, as a file.
//!
//! The page appears whole or not at all, and replaces nothing but an earlier report. It does not
//! know what is on the page. Read next: `ciel_report`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ciel_report::{BEGINNING, Logs, page};
use ciel_view::inspect::{self, RunView};
use ciel_view::listing::{self, RunSummary};
use ciel_view::records::TaskState;

use crate::cli_error::CliError;
use crate::display;
use crate::earlier_file::{draft_of, may_replace};
use crate::options::{ReportOptions, Shared};
use crate::resume;

/// Failed tasks whose own output is read.
const LOGS_MAX: usize = 50;

/// Writes the page, and prints its path.
pub fn write(shared: &Shared, options: &ReportOptions) -> Result<ExitCode, CliError> {
    let runs = listing::runs(&shared.state)?;
    let run = meant(&runs, options.run.as_deref())?;
    let Some(view) = inspect::run(&shared.state, &run.id)? else {
        let message = format!("nothing is recorded of run {}", run.id);
        return Err(CliError::usage("report.none", message));
    };
    let page = page(&view, &logs(shared, &view));
    match options.output.as_deref() {
        Some(path) if path == Path::new("-") => display::print(page.as_bytes()),
        path => {
            let named = || PathBuf::from(format!("report-{}.html", run.id));
            let path = path.map_or_else(named, Path::to_path_buf);
            put(&path, &page)?;
            display::print(format!("{}\n", path.display()).as_bytes())
        }
    }
}

/// The run whose id begins so, or the newest.
pub fn meant<'a>(
    runs: &'a [RunSummary],
    beginning: Option<&str>,
) -> Result<&'a RunSummary, CliError> {
    match beginning {
        Some(beginning) => resume::called(runs, beginning),
        None => runs.last().ok_or_else(|| {
            let message = "there are no runs in this folder's state";
            let hint = "change to the folder where the job was started, or name its state with \
                        --state";
            CliError::usage("run.none", message).with_hint(hint)
        }),
    }
}

/// What the failed tasks wrote apart from the job's output.
fn logs(shared: &Shared, run: &RunView) -> Logs {
    let failed = run.tasks.iter();
    let failed = failed.filter(|task| task.state == TaskState::Failed && task.is_origin());
    let logs = failed.take(LOGS_MAX).map(|task| {
        let label = task.label();
        let logs = inspect::logs(&shared.state, &run.run.run, &label);
        let text: String = logs.into_iter().map(|log| log.text).collect();
        (label, text)
    });
    logs.collect()
}

/// Puts the page where nothing is, or in the place of an earlier one.
fn put(path: &Path, page: &str) -> Result<(), CliError> {
    let refused = |error: io::Error| {
        let message = format!("cannot write the report to {}: {error}", path.display());
        CliError::usage("report.write", message)
    };
    let is_report = |bytes: &[u8]| bytes == BEGINNING.as_bytes();
    if !may_replace(path, BEGINNING.len() as u64, is_report).map_err(refused)? {
        let message = format!("{} is not a report", path.display());
        return Err(CliError::usage("report.other", message).with_hint("name another file"));
    }
    let mut file = draft_of(path).map_err(refused)?;
    io::Write::write_all(&mut file, page.as_bytes()).map_err(refused)?;
    file.persist(path).map_err(|failed| refused(failed.error))?;
    Ok(())
}
