//! `ciel clean`: removes what ended runs left, and kept results, as the options mean it.
//!
//! It decides nothing about kept results: `ciel_runtime::kept_results` does. Read next:
//! `ciel_store::StateFolder`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use ciel_runtime::kept_results::{self, Chosen, KeptError, Removed, Selection};
use ciel_store::{Cleaned, Cleaning, RunEntry, RunState, StateFolder, StoreError};
use ciel_view::RunDescription;
use serde_json::{Value, json};

use crate::cli_error::CliError;
use crate::display::{self, columns, counted, size};
use crate::named_commands::with_state;
use crate::options::{CleanOptions, Shared};

/// Removes runs of the state folder, of whatever version it is, and kept results.
pub fn clean(shared: &Shared, options: &CleanOptions) -> Result<ExitCode, CliError> {
    let cleaning = match options.all {
        true => Cleaning::All,
        false => Cleaning::Ended,
    };
    let cleanup = match StateFolder::open_existing(&shared.state) {
        Ok(None) => Cleanup::default(),
        Ok(Some(folder)) => Cleanup::of(&folder, cleaning, options)?,
        Err(StoreError::OtherFormat { .. }) if !is_chosen(options) && !options.dry_run => Cleanup {
            runs: StateFolder::renew(&shared.state, cleaning)?,
            results: Vec::new(),
            bytes_only: false,
        },
        Err(error) => return Err(error.into()),
    };
    match options.json {
        true => display::print_json(&[cleanup.value(options.dry_run)]),
        false => display::print(
            with_state(
                &cleanup.text(options.dry_run),
                shared.state_named.as_deref(),
            )
            .as_bytes(),
        ),
    }
}

/// Whether some of the options say what is meant.
fn is_chosen(options: &CleanOptions) -> bool {
    options.older.is_some() || options.run.is_some() || is_about_results(options)
}

/// Whether the options mean kept results and no runs.
fn is_about_results(options: &CleanOptions) -> bool {
    options.task.is_some() || options.keep_size.is_some() || options.bytes_only
}

/// What is removed, or would be.
#[derive(Default)]
struct Cleanup {
    runs: Cleaned,
    results: Vec<Chosen>,
    /// Their digests stay.
    bytes_only: bool,
}

impl Cleanup {
    fn of(
        folder: &StateFolder,
        cleaning: Cleaning,
        options: &CleanOptions,
    ) -> Result<Cleanup, CliError> {
        let runs = folder.runs()?;
        let run = options.run.as_deref();
        let run = run.map(|text| id_of(folder, &runs, text)).transpose()?;
        let before_s = options
            .older
            .map(|age_s| seconds_now().saturating_sub(age_s));
        let results = match is_chosen(options) {
            true => kept_results::select(
                folder.path(),
                &Selection {
                    used_before_s: before_s,
                    run: run.clone(),
                    task: options.task.clone(),
                    bytes_only: options.bytes_only,
                    bytes_max: options.keep_size,
                    spared_since_s: kept_results::spared_since_s(&runs),
                },
            )
            .map_err(unusable)?,
            false => Vec::new(),
        };
        let is_meant = |entry: &&RunEntry| {
            let is_named = run.as_ref().is_none_or(|run| *run == entry.id);
            let is_old = before_s.is_none_or(|before_s| began_before(entry, before_s));
            is_named && is_old && !is_about_results(options)
        };
        let meant: Vec<&RunEntry> = runs.iter().filter(is_meant).collect();
        let runs = match options.dry_run {
            true => would_remove(cleaning, &meant),
            false => remove(folder, cleaning, &meant, is_chosen(options))?,
        };
        if !options.dry_run && !results.is_empty() {
            let what = match options.bytes_only {
                true => Removed::Bytes,
                false => Removed::Entries,
            };
            kept_results::remove(folder.path(), &results, what).map_err(unusable)?;
        }
        let bytes_only = options.bytes_only;
        Ok(Cleanup {
            runs,
            results,
            bytes_only,
        })
    }

    fn text(&self, is_dry: bool) -> String {
        let verb = if is_dry { "would remove" } else { "removed" };
        let mut text = String::new();
        if !self.runs.removed.is_empty() {
            let count = counted(self.runs.removed.len() as u64, "run");
            text.push_str(&format!("{verb} {count}\n"));
        }
        if is_dry {
            for run in &self.runs.removed {
                text.push_str(&format!("  {run}\n"));
            }
        }
        if !self.results.is_empty() {
            let count = counted(self.results.len() as u64, "kept result");
            let of = if self.bytes_only { "the bytes of " } else { "" };
            let bytes = size(bytes(&self.results));
            text.push_str(&format!("{verb} {of}{count}, {bytes}\n"));
            for line in columns(&self.by_task(), "  ") {
                text.push_str(&format!("{line}\n"));
            }
        }
        if text.is_empty() {
            text.push_str("nothing to remove\n");
        }
        for run in &self.runs.alive {
            text.push_str(&format!("run {run} is live and was kept\n"));
        }
        for run in &self.runs.unended {
            text.push_str(&format!(
                "run {run} can be resumed and was kept: `ciel resume {run}` continues it, `ciel \
                 clean --all` removes it\n"
            ));
        }
        text
    }

    /// A row for each function or command.
    fn by_task(&self) -> Vec<Vec<String>> {
        let mut tasks: BTreeMap<&str, Vec<&Chosen>> = BTreeMap::new();
        for one in &self.results {
            tasks.entry(&one.task).or_default().push(one);
        }
        let row = |(task, results): (&str, Vec<&Chosen>)| {
            let count = counted(results.len() as u64, "result");
            vec![task.to_string(), count, size(bytes(results))]
        };
        tasks.into_iter().map(row).collect()
    }

    fn value(&self, is_dry: bool) -> Value {
        let result = |one: &Chosen| {
            let (task, run) = (&one.task, &one.run);
            json!({"task": task, "run": run, "used_s": one.used_s, "bytes": one.bytes})
        };
        json!({
            "dry_run": is_dry,
            "runs": self.runs.removed,
            "live": self.runs.alive,
            "resumable": self.runs.unended,
            "results": self.results.iter().map(result).collect::<Vec<Value>>(),
            "result_bytes": bytes(&self.results),
            "bytes_only": self.bytes_only,
        })
    }
}

fn bytes<'a>(results: impl IntoIterator<Item = &'a Chosen>) -> u64 {
    results.into_iter().map(|one| one.bytes).sum()
}

/// The whole id of a run, which may be removed already if it has kept results.
fn id_of(folder: &StateFolder, runs: &[RunEntry], text: &str) -> Result<String, CliError> {
    let kept = kept_results::usage_by_run(folder.path()).map_err(unusable)?;
    let ids = runs.iter().map(|run| &run.id).chain(kept.keys());
    let mut ids: Vec<&String> = ids.filter(|id| id.starts_with(text)).collect();
    ids.sort();
    ids.dedup();
    match ids[..] {
        [id] => Ok(id.clone()),
        [] => Err(
            CliError::usage("run.unknown", format!("there is no run {text}"))
                .with_hint("`ciel runs` lists them"),
        ),
        _ => Err(
            CliError::usage("run.ambiguous", format!("{text} may mean several runs"))
                .with_hint("give more digits"),
        ),
    }
}

fn began_before(run: &RunEntry, before_s: u64) -> bool {
    // A run that has not said when it began has not begun.
    RunDescription::read(run).is_some_and(|description| description.started_s < before_s)
}

fn remove(
    folder: &StateFolder,
    cleaning: Cleaning,
    meant: &[&RunEntry],
    is_chosen: bool,
) -> Result<Cleaned, CliError> {
    ciel_runtime::orphans::clear(folder)?;
    if !is_chosen {
        return Ok(folder.clean(cleaning)?);
    }
    let ids: Vec<String> = meant.iter().map(|run| run.id.clone()).collect();
    match ids.is_empty() {
        true => Ok(Cleaned::default()),
        false => Ok(folder.clean_these(cleaning, &ids)?),
    }
}

fn would_remove(cleaning: Cleaning, meant: &[&RunEntry]) -> Cleaned {
    let mut cleaned = Cleaned::default();
    for run in meant {
        let ids = match run.state {
            RunState::Alive { .. } => &mut cleaned.alive,
            RunState::Unended if cleaning == Cleaning::Ended => &mut cleaned.unended,
            RunState::Unended | RunState::Ended => &mut cleaned.removed,
        };
        ids.push(run.id.clone());
    }
    cleaned
}

fn seconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

fn unusable(error: KeptError) -> CliError {
    CliError::usage("kept.unusable", error.to_string())
        .with_hint("the folder `kept` of the state folder can be removed when no run is live")
}
