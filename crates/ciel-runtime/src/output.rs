//! The door to the outside: the output thread, and what is held back on disk.
//!
//! The thread takes what the serial frontier has passed and hands it to the face, in order. Who
//! makes more output than may be held in memory writes the excess to disk itself, which slows it
//! down and nobody else.

use ciel_model::limits;
use ciel_ordered::{Chunk, Extent, OrderedStream, Spill};

use crate::core::Core;
use crate::engine::Engine;

/// How long the thread rests when it was woken for nothing: strands that have written may stand
/// behind ones that run, and those report often.
const REST: std::time::Duration = std::time::Duration::from_micros(500);

/// The life of the output thread; ends when the core is closed and all that is final is out.
///
/// Returns what went wrong with the outside, after which nothing more is put out.
pub(crate) fn run_thread(engine: &Engine) -> std::io::Result<()> {
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
        let batch = take_batch(&mut core);
        drop(core);
        let nothing = batch.output.is_empty() && batch.errors.is_empty();
        put_out(engine, batch)?;
        match (nothing, closed) {
            (true, true) => return Ok(()),
            (true, false) => std::thread::sleep(REST),
            (false, _) => {}
        }
    }
}

struct Batch {
    output: Vec<Chunk>,
    errors: Vec<Chunk>,
    dropped: Vec<Extent>,
}

fn take_batch(core: &mut Core) -> Batch {
    let output = take_from(core.state.output_mut());
    let errors = take_from(core.state.errors_mut());
    core.output_ready |= !output.is_empty() || !errors.is_empty();
    let mut dropped = core.state.output_mut().take_dropped();
    dropped.extend(core.state.errors_mut().take_dropped());
    dropped.append(&mut core.unplaced);
    Batch {
        output,
        errors,
        dropped,
    }
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

fn put_out(engine: &Engine, batch: Batch) -> std::io::Result<()> {
    let mut joined = Vec::new();
    for chunk in batch.output {
        read(engine, chunk, &mut joined)?;
    }
    if !joined.is_empty() {
        engine.face.output(&joined)?;
    }
    joined.clear();
    for chunk in batch.errors {
        read(engine, chunk, &mut joined)?;
    }
    if !joined.is_empty() {
        engine.face.error_output(None, &joined);
    }
    for extent in batch.dropped {
        release(engine, extent);
    }
    Ok(())
}

fn read(engine: &Engine, chunk: Chunk, into: &mut Vec<u8>) -> std::io::Result<()> {
    match chunk.piece {
        ciel_ordered::Piece::Bytes(bytes) => into.extend_from_slice(&bytes),
        ciel_ordered::Piece::Extent(extent) => {
            let stored = stored(extent);
            let copied = engine.folder.spill().copy_to(stored, into);
            copied.map_err(|error| std::io::Error::other(error.to_string()))?;
            release(engine, extent);
        }
    }
    Ok(())
}

fn release(engine: &Engine, extent: Extent) {
    // A spill file that is gone has nothing left to give back.
    let _ = engine.folder.spill().release(stored(extent));
}

fn stored(extent: Extent) -> ciel_store::Extent {
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

fn ordered(extent: ciel_store::Extent) -> Extent {
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

/// Writes held-back output to disk until what is in memory is within its bound again.
pub(crate) fn spill_excess(engine: &Engine) {
    let mut core = engine.lock();
    let excess = core.state.output().excess_bytes();
    if excess == 0 {
        return;
    }
    let spills = core.state.output_mut().spillable(excess);
    drop(core);
    for spill in spills {
        write_down(engine, spill);
    }
}

fn write_down(engine: &Engine, spill: Spill) {
    let written = engine.folder.spill().append(&spill.bytes);
    let mut core = engine.lock();
    match written {
        Ok(extent) => {
            let extent = ordered(extent);
            if core
                .state
                .output_mut()
                .replace(spill.ticket, extent)
                .is_err()
            {
                drop(core);
                release(engine, extent);
            }
        }
        Err(error) => {
            // There is no room on disk: the bytes stay in memory, and people are told.
            let _ = core.state.output_mut().put_back(spill);
            drop(core);
            engine.warn(
                None,
                &format!("output that is held back stays in memory: {error}"),
            );
        }
    }
}

/// A finished file as a piece of output.
pub(crate) fn adopt(
    engine: &Engine,
    path: &std::path::Path,
) -> Result<ciel_ordered::Piece, crate::objects::StoreTrouble> {
    let extent = engine.folder.spill().adopt(path)?;
    Ok(ciel_ordered::Piece::Extent(ordered(extent)))
}
