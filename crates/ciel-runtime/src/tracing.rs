//! The trace of a run in its file: what the ring of moments has gathered, as lines.
//!
//! It does not know the format. Read next: `moments`, and `ciel_view::trace`.

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::{Arc, Mutex, PoisonError};

use ciel_model::Micros;
use ciel_node::Slot;
use ciel_view::records::RunRecord;
use ciel_view::trace::{Spot, TRACE_BYTES_MAX, Tracer};

use crate::moments::Moments;

type FileTracer = Tracer<BufWriter<Arc<File>>>;

/// The trace, if one is written, until it cannot be written any more.
pub(crate) struct Trace(Mutex<Option<io::Result<FileTracer>>>);

impl Trace {
    /// Begins a trace if there is a file for one.
    pub(crate) fn begin(file: Option<Arc<File>>, run: &RunRecord) -> Trace {
        let begin = |file| {
            Tracer::begin(
                BufWriter::new(file),
                TRACE_BYTES_MAX,
                &run.run,
                &run.command,
            )
        };
        Trace(Mutex::new(file.map(begin)))
    }

    /// Adds what has gathered.
    ///
    /// # Errors
    /// Those of the disk, once.
    pub(crate) fn add(&self, moments: &Moments) -> io::Result<()> {
        self.write(|tracer| {
            if moments.lost > 0 {
                tracer.missed(moments.lost)?;
            }
            for seen in &moments.seen {
                tracer.happened(&seen.happening, seen.slot.map(spot))?;
            }
            tracer.flush()
        })
    }

    /// Ends the trace with the run.
    ///
    /// # Errors
    /// As [`Trace::add`].
    pub(crate) fn finish(&self, at: Micros) -> io::Result<()> {
        self.write(|tracer| tracer.finish(at))
    }

    fn write(&self, act: impl FnOnce(&mut FileTracer) -> io::Result<()>) -> io::Result<()> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match open.take() {
            None => Ok(()),
            Some(tracer) => {
                let mut tracer = tracer?;
                act(&mut tracer)?;
                *open = Some(Ok(tracer));
                Ok(())
            }
        }
    }
}

fn spot(slot: Slot) -> Spot {
    match slot {
        Slot::Thread => Spot::Script,
        Slot::Process => Spot::Command,
        Slot::Worker(worker) => Spot::Worker(worker.0),
    }
}
