//! Which folder a run works in: that of a former run that did not come to its end, or a new one.
//!
//! Only a job with the same key resumes a run, and only in one process. It does not know the
//! content of the journal. Read next: `key`, and `ciel_view::description`.

use std::time::{SystemTime, UNIX_EPOCH};

use ciel_store::{RunEntry, RunFolder, RunState, StateFolder, StoreError};
use ciel_view::{RunDescription, ViewError, description};

use crate::error::RunError;
use crate::key::job_key;
use crate::observer::{Observer, Report};
use crate::settings::{Resume, Settings};

/// Chooses the folder for a run. Equal `key`s are the same job; a job without a key cannot be
/// resumed. `runs` are the existing ones, oldest first.
///
/// # Errors
/// `State` if the run named in the settings is live, has ended, or does not exist; `OtherVersion`,
/// `Changed` or `Undescribed` if it is of another version, or of another job, or has no
/// description. Errors of the state folder for a new run.
pub(crate) fn choose_folder(
    state: &StateFolder,
    runs: &[RunEntry],
    settings: &Settings,
    key: Option<&str>,
    observer: &dyn Observer,
) -> Result<RunFolder, RunError> {
    match (&settings.resume, key) {
        (Resume::Run(id), key) => named(state, id, key),
        (Resume::Auto, Some(key)) => match newest(state, runs, key, observer)? {
            Some(folder) => Ok(folder),
            None => new_folder(state, runs, settings, Some(key)),
        },
        (Resume::Auto | Resume::New, key) => new_folder(state, runs, settings, key),
    }
}

fn named(state: &StateFolder, id: &str, key: Option<&str>) -> Result<RunFolder, RunError> {
    let folder = RunFolder::reopen(state, id, u64::MAX)?;
    let run = id.to_string();
    let description = folder.description()?.unwrap_or_default();
    let Ok(description) = serde_json::from_slice::<RunDescription>(&description) else {
        return Err(RunError::View(ViewError::Undescribed { run }));
    };
    if !description.is_of_this_version() {
        let version = description.version_in_words();
        return Err(RunError::OtherVersion { run, version });
    }
    if key != Some(description.key.as_str()) {
        return Err(RunError::Changed { run });
    }
    Ok(folder)
}

/// The newest run of this job that can be resumed and that no other process locks first.
fn newest(
    state: &StateFolder,
    runs: &[RunEntry],
    key: &str,
    observer: &dyn Observer,
) -> Result<Option<RunFolder>, RunError> {
    let unended = runs
        .iter()
        .rev()
        .filter(|run| run.state == RunState::Unended);
    for run in unended {
        let Some(description) = RunDescription::read(run) else {
            continue;
        };
        if description.key != key {
            continue;
        }
        if !description.is_of_this_version() {
            tell_of_other_version(observer, &run.id, &description.version_in_words());
            continue;
        }
        match RunFolder::reopen(state, &run.id, u64::MAX) {
            Ok(folder) => return Ok(Some(folder)),
            // Another process has taken it up, or removed it, since the runs were listed.
            Err(
                StoreError::RunAlive { .. }
                | StoreError::RunEnded { .. }
                | StoreError::RunUnrecorded { .. }
                | StoreError::RunUnknown { .. },
            ) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// The description of a run with these settings, as the bytes of its file. None if a path in it is
/// not UTF-8: such a run cannot be resumed.
fn description(settings: &Settings, key: &str) -> Option<Vec<u8>> {
    settings.command.0.to_str()?;
    let description = RunDescription {
        version: description::VERSION.to_string(),
        record_format: ciel_coordinator::RECORD_FORMAT,
        key: key.to_string(),
        job: job_key(settings),
        command: settings.command_words(),
        folder: std::env::current_dir().ok()?,
        options: settings.given.clone(),
        started_s: seconds_now(),
    };
    serde_json::to_vec_pretty(&description).ok()
}

/// Seconds since 1970.
pub(crate) fn seconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

fn tell_of_other_version(observer: &dyn Observer, run: &str, version: &str) {
    let this = description::this_version();
    let message = format!(
        "run {run} was interrupted under version {version} of ciel, but this is version {this}: a \
         new run starts"
    );
    observer.report(Report::Warning {
        task: None,
        message: &message,
    });
}

fn new_folder(
    state: &StateFolder,
    runs: &[RunEntry],
    settings: &Settings,
    key: Option<&str>,
) -> Result<RunFolder, RunError> {
    let folder = create_folder(state, runs)?;
    let description = key.and_then(|key| description(settings, key));
    let described = description.map(|description| folder.describe(&description));
    match described.unwrap_or(Ok(())) {
        Ok(()) => Ok(folder),
        Err(error) => {
            let id = folder.id().to_string();
            drop(folder);
            // Nothing has run; what cannot be removed now is removed by `ciel clean`.
            let _ = state.remove(&[id]);
            Err(error.into())
        }
    }
}

/// A folder for a run whose id sorts by time, and behind those of all `runs` there are: clocks are
/// set back now and then.
fn create_folder(state: &StateFolder, runs: &[RunEntry]) -> Result<RunFolder, RunError> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut moment = next_moment(
        now.as_millis() as u64,
        runs.iter().map(|run| run.id.as_str()),
    );
    loop {
        let id = format!("{:011x}-{:05x}", moment, std::process::id());
        match RunFolder::create(state, &id, u64::MAX) {
            Err(StoreError::RunTaken { .. }) => moment += 1,
            made => return Ok(made?),
        }
    }
}

/// Milliseconds since 1970 as far as the digits of an id go, which is beyond the year 2500.
const MOMENT_MAX: u64 = 0xfff_ffff_ffff;

/// The moment of a new run: now, but after those of the others. An id that leaves no moment after
/// it was not given by a clock.
fn next_moment<'a>(now: u64, ids: impl Iterator<Item = &'a str>) -> u64 {
    let moment = |id: &str| u64::from_str_radix(id.split('-').next()?, 16).ok();
    let others = ids.filter_map(moment).filter(|other| *other < MOMENT_MAX);
    others.max().map_or(now, |newest| now.max(newest + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_a_new_run_sorts_last_even_if_the_clock_was_set_back() {
        let next = |now, ids: &[&str]| next_moment(now, ids.iter().copied());
        assert_eq!(next(0x100, &[]), 0x100);
        assert_eq!(
            next(0x100, &["000000000ff-00001", "00000000020-00002"]),
            0x100
        );
        assert_eq!(
            next(0x100, &["00000000150-00001", "00000000020-00002"]),
            0x151
        );
        let strange = ["fffffffffff-00001", "night", ""];
        assert_eq!(next(0x100, &strange), 0x100);
    }
}
