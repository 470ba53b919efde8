//! The release gate: the output thread, and the output that is spilled to disk.
//!
//! The thread takes what the serial frontier has passed and hands it to the observer, in order. A
//! thread that produces more output than may be buffered in memory writes the excess to disk
//! itself, which slows down only that thread.

use std::collections::BTreeMap;

use ciel_coordinator::Coordinator;
use ciel_engine::Event;
use ciel_journal::{Journal, Sequence};
use ciel_model::limits;
use ciel_ordered::{Chunk, Extent, OrderedStream, Sink, Spill};
use ciel_view::Durable;

use crate::core::Core;
use crate::engine::Engine;
use crate::error::RunError;
use crate::flat_file::FlatFileError;
use crate::released::Released;

/// Bytes of log from which on a snapshot is made, if it is larger than the last one besides.
const LOG_BYTES_MIN: u64 = 64 << 20;

/// How often the log may be as large as the snapshot before it.
const LOG_TO_SNAPSHOT: u64 = 4;

/// This bound, or that of a test: debug builds can take snapshots more often.
fn log_bytes_min() -> u64 {
    #[cfg(debug_assertions)]
    {
        let told = std::env::var("CIEL_LOG_BYTES_MIN").ok();
        if let Some(told) = told.and_then(|told| told.parse().ok()) {
            return told;
        }
    }
    LOG_BYTES_MIN
}

/// Why no more output is released.
#[derive(Debug)]
pub(crate) enum Closed {
    /// It has no reader any more, or it cannot be written.
    Outside(std::io::Error),
    /// What the output comes from cannot be recorded, or differs from what was recorded.
    Inside(RunError),
}

impl From<std::io::Error> for Closed {
    fn from(error: std::io::Error) -> Closed {
        Closed::Outside(error)
    }
}

/// The life of the output thread; ends when the core is closed and all that is final is out.
///
/// Returns the error, after which no more output is released.
pub(crate) fn run_thread(engine: &Engine) -> Result<(), Closed> {
    let log_bytes_min = log_bytes_min();
    let mut released = engine.take_released();
    if let Some(released) = released.as_ref().filter(|released| released.length() > 0) {
        engine.keep_sinks().map_err(Closed::Inside)?;
        // The present reader has seen nothing yet, or is a file that is compared with the output.
        released.tell(|bytes| engine.observer.output(bytes))?;
    }
    loop {
        let mut core = engine.lock();
        while !core.output_ready && !core.closed {
            core = engine
                .output
                .wait(core)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        core.output_ready = false;
        let closed = core.closed;
        let batch = take_batch(engine, &mut core);
        drop(core);
        let nothing = batch.output.is_empty() && batch.errors.is_empty();
        tell_of_frontier(engine, nothing);
        put_out(engine, batch, released.as_mut())?;
        take_snapshot(engine, released.as_mut(), log_bytes_min)?;
        if nothing && closed {
            // The end of the run may be shown from the file.
            released.iter_mut().for_each(Released::note_digest);
            return Ok(());
        }
    }
}

/// Lets tasks go that are held until the frontier has moved; it `rests` where it is.
fn tell_of_frontier(engine: &Engine, rests: bool) {
    if engine.lock().engine().has_held() {
        engine.with(|core, now| core.tell(now, Event::FrontierMoved { rests }));
    }
}

struct Batch {
    output: Vec<Chunk>,
    errors: Vec<Chunk>,
    dropped: Vec<Extent>,
    /// What was recorded when this was taken; its causes are among it.
    causes: Option<Sequence>,
    /// What happens is not recorded any more, so nothing may leave.
    is_shut: bool,
}

fn take_batch(engine: &Engine, core: &mut Core) -> Batch {
    let output = take_from(core.state_mut().output_mut());
    let errors = take_from(core.state_mut().errors_mut());
    core.output_ready |= !output.is_empty() || !errors.is_empty();
    let causes = engine.journal.as_ref().map(Journal::appended);
    let is_shut = engine.journal.is_some() && !core.state().is_recording();
    if !is_shut {
        core.open_gate(causes);
    }
    let mut dropped = core.state_mut().output_mut().take_dropped();
    dropped.extend(core.state_mut().errors_mut().take_dropped());
    dropped.append(&mut core.unplaced);
    Batch {
        output,
        errors,
        dropped,
        causes,
        is_shut,
    }
}

/// Replaces a long log by the state that it made. Whatever was taken out by then is in the file of
/// released output, because this thread took it.
fn take_snapshot(
    engine: &Engine,
    released: Option<&mut Released>,
    log_bytes_min: u64,
) -> Result<(), Closed> {
    let Some(journal) = &engine.journal else {
        return Ok(());
    };
    let grown = journal.grown();
    if grown.log_bytes < log_bytes_min.max(LOG_TO_SNAPSHOT * grown.snapshot_bytes) {
        return Ok(());
    }
    let core = engine.lock();
    let whole = core.state().is_recording().then(|| core.state().snapshot());
    let Some(payload) = whole.flatten() else {
        return Ok(());
    };
    let drawn = journal.begin_snapshot();
    let held_back = [
        core.state().output().extents(),
        core.state().errors().extents(),
    ]
    .concat();
    drop(core);
    if engine.settings.durable == Durable::Power {
        let blobs: BTreeMap<u64, Extent> = held_back.iter().map(|at| (at.blob, *at)).collect();
        for extent in blobs.into_values() {
            let synced = engine.folder.spill().sync(stored(extent));
            synced.map_err(|error| Closed::Inside(error.into()))?;
        }
    }
    if let Some(released) = released {
        // Released output, which the snapshot leaves out, must exist as long as the snapshot.
        let (run, path) = (engine.folder.id(), engine.folder.output_path());
        released.note_digest();
        let synced = released.sync();
        synced.map_err(|error| Closed::Inside(RunError::of_released(run, &path, error)))?;
        engine.files.sync().map_err(told(engine))?;
    }
    let written = drawn.map(|snapshot| snapshot.write(&payload));
    let written = written.unwrap_or(Ok(()));
    written.map_err(|error| Closed::Inside(RunError::of_journal(engine.folder.id(), error)))
}

fn take_from(stream: &mut OrderedStream) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut bytes = 0;
    while bytes < limits::OUTPUT_PIECE_BYTES_MAX
        && let Some(chunk) = stream.take_ready(limits::OUTPUT_PIECE_BYTES_MAX as u64)
    {
        bytes += length(&chunk);
        chunks.push(chunk);
    }
    chunks
}

fn length(chunk: &Chunk) -> usize {
    match &chunk.piece {
        ciel_ordered::Piece::Bytes(bytes) => bytes.len(),
        ciel_ordered::Piece::Extent(extent) => extent.length as usize,
    }
}

fn put_out(
    engine: &Engine,
    batch: Batch,
    mut released: Option<&mut Released>,
) -> Result<(), Closed> {
    let mut by_sink: BTreeMap<Sink, Vec<u8>> = BTreeMap::new();
    for chunk in &batch.output {
        read(engine, chunk, by_sink.entry(chunk.sink).or_default())?;
    }
    if !by_sink.is_empty() && !batch.is_shut {
        wait_at_the_gate(engine, batch.causes)?;
        for (sink, bytes) in by_sink {
            match sink {
                Sink::OUTPUT => {
                    let bytes = unreleased(engine, released.as_deref_mut(), &bytes)?;
                    engine.keep_sinks().map_err(Closed::Inside)?;
                    engine.observer.output(bytes)?;
                }
                sink => engine.files.take(sink, &bytes).map_err(told(engine))?,
            }
        }
    }
    let mut joined = Vec::new();
    for chunk in &batch.errors {
        read(engine, chunk, &mut joined)?;
    }
    if !joined.is_empty() {
        engine.observer.error_output(None, &joined);
    }
    if batch.is_shut {
        return Ok(());
    }
    let used = batch.output.iter().chain(&batch.errors);
    let used = used.filter_map(|chunk| match chunk.piece {
        ciel_ordered::Piece::Extent(extent) => Some(extent),
        ciel_ordered::Piece::Bytes(_) => None,
    });
    let used: Vec<Extent> = used.collect();
    if let Some(released) = released.filter(|_| !used.is_empty()) {
        // The records do not have these bytes, so nothing else could prove them.
        released.note_digest();
    }
    for extent in used.into_iter().chain(batch.dropped) {
        release(engine, extent);
    }
    Ok(())
}

/// What the error of an ordered file is for this thread.
fn told(engine: &Engine) -> impl Fn(FlatFileError) -> Closed {
    let run = engine.journal.is_some().then(|| engine.folder.id());
    move |error| Closed::Inside(RunError::of_file(run, error))
}

/// Waits until the causes of output are recorded.
fn wait_at_the_gate(engine: &Engine, causes: Option<Sequence>) -> Result<(), Closed> {
    let run = engine.folder.id();
    if let (Some(journal), Some(causes)) = (&engine.journal, causes) {
        let recorded = journal.wait_for(causes);
        recorded.map_err(|error| Closed::Inside(RunError::of_journal(run, error)))?;
    }
    Ok(())
}

/// What of these bytes of standard output has not left before.
fn unreleased<'a>(
    engine: &Engine,
    released: Option<&mut Released>,
    bytes: &'a [u8],
) -> Result<&'a [u8], Closed> {
    let run = engine.folder.id();
    let Some(released) = released else {
        return Ok(bytes);
    };
    let taken = released.take(bytes);
    let path = engine.folder.output_path();
    taken.map_err(|error| Closed::Inside(RunError::of_released(run, &path, error)))
}

fn read(engine: &Engine, chunk: &Chunk, into: &mut Vec<u8>) -> std::io::Result<()> {
    match &chunk.piece {
        ciel_ordered::Piece::Bytes(bytes) => into.extend_from_slice(bytes),
        ciel_ordered::Piece::Extent(extent) => {
            let copied = engine.folder.spill().copy_to(stored(*extent), into);
            copied.map_err(|error| std::io::Error::other(error.to_string()))?;
        }
    }
    Ok(())
}

fn release(engine: &Engine, extent: Extent) {
    // A spill file that is gone has nothing left to give back.
    let _ = engine.folder.spill().release(stored(extent));
}

pub(crate) fn stored(extent: Extent) -> ciel_store::Extent {
    let Extent {
        blob,
        offset,
        length,
    } = extent;
    ciel_store::Extent {
        blob,
        offset,
        length,
    }
}

pub(crate) fn ordered(extent: ciel_store::Extent) -> Extent {
    let ciel_store::Extent {
        blob,
        offset,
        length,
    } = extent;
    Extent {
        blob,
        offset,
        length,
    }
}

/// One of the two ordered streams of the run.
type StreamOf = fn(&mut Coordinator) -> &mut OrderedStream;

/// Writes buffered output to disk until what is in memory is within its bound again; each stream
/// has its own.
pub(crate) fn spill_excess(engine: &Engine) {
    for stream_of in [Coordinator::output_mut, Coordinator::errors_mut] as [StreamOf; 2] {
        let mut core = engine.lock();
        let stream = stream_of(core.state_mut());
        let excess = stream.excess_bytes();
        if excess == 0 {
            continue;
        }
        let spills = stream.spillable(excess);
        drop(core);
        for spill in spills {
            write_down(engine, stream_of, spill);
        }
    }
}

fn write_down(engine: &Engine, stream_of: StreamOf, spill: Spill) {
    let written = engine.folder.spill().append(&spill.bytes);
    let refused = engine.with(|core, _| {
        let stream = stream_of(core.state_mut());
        let refused = match &written {
            Ok(extent) => stream.replace(spill.ticket, ordered(*extent)).is_err(),
            // The disk is full: the bytes stay in memory, with a warning.
            Err(_) => stream.put_back(spill).is_err(),
        };
        core.send_for_output_if_ready();
        refused
    });
    match written {
        Ok(extent) if refused => release(engine, ordered(extent)),
        Ok(_) => {}
        Err(error) => {
            engine.heed(&error);
            let cannot = "buffered output cannot be spilled and stays in memory";
            engine.warn(None, &format!("{cannot}: {error}"));
        }
    }
}

/// A finished file as a piece of output.
pub(crate) fn adopt(
    engine: &Engine,
    path: &std::path::Path,
) -> Result<ciel_ordered::Piece, crate::objects::ObjectError> {
    let extent = engine.folder.spill().adopt(path)?;
    if engine.settings.durable == Durable::Power {
        engine.folder.spill().sync(extent)?;
    }
    Ok(ciel_ordered::Piece::Extent(ordered(extent)))
}
