//! The end of a run: the last record, the result, the folder left in order.
//!
//! It does not know what came before. Read next: `cleanup`.

use std::sync::atomic::Ordering;

use ciel_graph::Counts;
use ciel_journal::Journal;
use ciel_view::RunEndRecord;
use ciel_view::records::{EndRecord, StoreRecord};
use serde_json::Value as Json;

use super::Outcome;
use super::ended::{EndedRun, Leaving};
use super::result::shown;
use crate::cleanup::{USELESS, leave_folder};
use crate::core::Core;
use crate::death;
use crate::engine::Engine;
use crate::error::RunError;
use crate::output;
use crate::store_view::store_record;

/// How the threads went home.
pub(super) struct ThreadsEnded {
    pub(super) interrupted: bool,
    pub(super) output: Result<(), output::Closed>,
}

pub(super) fn finish(
    engine: &Engine,
    run: String,
    ended: ThreadsEnded,
) -> Result<Outcome, RunError> {
    let mut core = engine.lock();
    let ending = core
        .ending
        .take()
        .expect("the threads go home when the job has ended");
    let ending = core.stopped_commands.described(ending);
    let counts = counts(engine, &core);
    let reruns = core.reruns.all();
    let elapsed_us = engine.now();
    let processor_us = core.processor_us() + ciel_spawner::own_processor_us();
    let failure = ending.result.as_ref().err().map(ToString::to_string);
    drop(core);
    let end = EndRecord {
        failure: failure.clone(),
        counts,
        elapsed_us,
        store: None,
    };
    let (trouble, store) = close_records(engine, &run, end);
    let came_to_its_end = !ended.interrupted && ended.output.is_ok() && trouble.is_none();
    let result = ending
        .result
        .map(|(name, value)| shown(engine, name, &value));
    let unread = match came_to_its_end {
        true => tell_end(engine, result.as_ref().ok()),
        false => is_unread(ended.output),
    };
    let ending_told = (came_to_its_end && matches!(unread, Ok(false)))
        .then(|| end_record(engine, failure, counts.spawned, elapsed_us));
    death::at_the_end();
    let end = EndedRun {
        counts,
        elapsed_us,
        processor_us,
        store: store.clone(),
        ..EndedRun::new(&result, &ending.failures)
    };
    let is_kept = ending_told.is_some() && engine.journal.is_some() && end.keep(engine);
    death::at_the_end();
    let resumable = leave_folder(engine, ending_told, is_kept);
    if !resumable {
        engine.files.give_up();
    }
    let output_closed = unread?;
    if let Some(trouble) = trouble {
        return Err(trouble);
    }
    Ok(Outcome {
        run,
        result,
        failures: ending.failures,
        counts,
        reruns,
        elapsed_us,
        processor_us,
        store,
        interrupted: ended.interrupted,
        output_closed,
        resumable,
        leaving: Leaving::of(engine.folder.clone()),
    })
}

/// The description of a run at its end.
fn end_record(
    engine: &Engine,
    failure: Option<String>,
    tasks: u64,
    elapsed_us: u64,
) -> RunEndRecord {
    RunEndRecord {
        failure,
        tasks,
        elapsed_us,
        bytes: engine.folder.bytes_on_disk(&USELESS),
    }
}

/// How many tasks there were, with those whose second runs differed.
fn counts(engine: &Engine, core: &Core) -> Counts {
    Counts {
        differing: engine.differing.load(Ordering::Relaxed),
        ..core.counts()
    }
}

/// Writes the last of the journal and of the history; gives what went wrong in the run first, and
/// what the store had done by then.
fn close_records(engine: &Engine, run: &str, end: EndRecord) -> (Option<RunError>, StoreRecord) {
    death::at_the_end();
    engine.write_last_history();
    engine.write_counts();
    death::at_the_end();
    let trouble = engine.take_trouble();
    // Files of dead objects go when that is recorded.
    let closed = engine.journal.clone().map(Journal::close);
    let store = store_record(engine);
    let last = Some(store.clone());
    engine.write_end(EndRecord { store: last, ..end });
    death::at_the_end();
    let trouble = trouble.or_else(|| Some(RunError::of_journal(run, closed?.err()?)));
    (trouble, store)
}

/// Whether the output has no reader any more.
fn is_unread(output: Result<(), output::Closed>) -> Result<bool, RunError> {
    match output {
        Ok(()) => Ok(false),
        Err(output::Closed::Outside(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Ok(true)
        }
        Err(output::Closed::Outside(error)) => Err(RunError::Output(error)),
        Err(output::Closed::Inside(error)) => Err(error),
    }
}

/// Ends the ordered files of a job, which has ended well or not.
fn settle_files(engine: &Engine, is_whole: bool) -> Result<(), RunError> {
    let settled = engine.files.settle(is_whole);
    settled.map_err(|error| RunError::of_file(None, error))
}

/// Shows the end of a job, with its result if it has one, and then ends its ordered files. True if
/// the output has no reader any more: then the end has gone to nobody, and the files stay open. If
/// the run is resumed before it is marked as ended, the end is shown again.
fn tell_end(engine: &Engine, result: Option<&Json>) -> Result<bool, RunError> {
    engine.keep_sinks()?;
    let told = result.map_or(Ok(()), |result| engine.observer.result(result));
    death::at_the_end();
    let told = told.and_then(|()| engine.observer.settle());
    let unread = is_unread(told.map_err(output::Closed::Outside))?;
    if !unread {
        settle_files(engine, result.is_some())?;
    }
    Ok(unread)
}
