//! `SharedWriter`: the producer of a stream of values, as far as these go through shared memory.
//!
//! It knows no frames. Read next: `meeting`, `shared_memory`, `sdk/python/ciel/_frames.py`.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ciel_streams::limits::{FRESH_MIB_US, SHARED_BYTES};
use ciel_streams::regions::{Place, is_shared};
use ciel_streams::{Region, Regions};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::kept_memory::{self, WRITTEN};
use crate::meeting::{Guest, Listener, Name};
use crate::shared_memory::{SharedFile, SharedMemory, in_background};

/// Values for which a reader is looked for. One that has the pipe itself is there before so many
/// more are in it than it holds; a stream that is stored has none.
const LOOKS_MAX: u32 = 16;

/// Values for which the engine is asked for memory that has none to give.
const ASKS_MAX: u32 = 16;

/// What has become of the memory.
enum Sharing {
    /// The reader has not come yet, and so many more values are worth a look.
    Alone { listener: Listener, looks: u32 },
    /// It is there, and so many more values are worth asking the engine for memory.
    Met { guest: Guest, asks: u32 },
    /// Both map it.
    Shared(Arc<SharedFile>),
    /// There is none.
    Refused,
}

/// Places values in memory that the reader of a pipe maps, if it does.
#[pyclass(module = "ciel._native")]
pub struct SharedWriter {
    sharing: Sharing,
    regions: Regions,
    /// Called with the bytes of a value: gives the path of memory for such values, or None.
    ask: Py<PyAny>,
    /// Bytes of the values that went through the memory.
    shared_bytes: u64,
    process: u32,
}

#[pymethods]
impl SharedWriter {
    /// For the writing end of a pipe. `ask` is called with the bytes of a value, and gives the path
    /// of a memory file for such values, or None.
    ///
    /// Raises OSError if there is no such descriptor.
    #[new]
    fn new(pipe: i32, ask: Py<PyAny>) -> PyResult<SharedWriter> {
        let looks = LOOKS_MAX;
        let listener = Listener::at(&Name::of(pipe)?);
        let sharing = listener.map(|listener| Sharing::Alone { listener, looks });
        Ok(SharedWriter {
            sharing: sharing.unwrap_or(Sharing::Refused),
            regions: Regions::new(SHARED_BYTES, 0),
            ask,
            shared_bytes: 0,
            process: std::process::id(),
        })
    }

    /// Copies the pieces of a value one behind the other, and gives what the reader is to be told,
    /// and whether the producer is to be held until it is; `None` if they have to go through the
    /// pipe.
    ///
    /// Raises BufferError if a piece is no contiguous buffer of unsigned bytes, and what `ask`
    /// does.
    fn place<'py>(
        &mut self,
        py: Python<'py>,
        pieces: Vec<PyBuffer<u8>>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, bool)>> {
        let pieces = pieces.iter().map(bytes_of).collect::<PyResult<Vec<_>>>()?;
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>() as u64;
        if !is_shared(length, SHARED_BYTES) {
            return Ok(None);
        }
        self.advance(py, length)?;
        let Sharing::Shared(file) = &self.sharing else {
            return Ok(None);
        };
        let regions = &mut self.regions;
        let placed = py.detach(|| {
            let (region, are_there) = region_for(regions, file.memory(), length)?;
            file.fill(region, &pieces, are_there);
            file.memory().note_warm(regions.warm_end());
            Some(region)
        });
        let Some(region) = placed else {
            return Ok(None);
        };
        self.shared_bytes += length;
        let is_far_ahead = self.regions.is_far_ahead(file.memory().taken());
        Ok(Some((PyBytes::new(py, &region.to_bytes()), is_far_ahead)))
    }

    /// Bytes of all values that went through the memory.
    #[getter]
    fn shared_bytes(&self) -> u64 {
        self.shared_bytes
    }
}

impl SharedWriter {
    /// Takes the steps to shared memory that the reader is ready for.
    fn advance(&mut self, py: Python<'_>, length: u64) -> PyResult<()> {
        let now = std::mem::replace(&mut self.sharing, Sharing::Refused);
        let met = py.detach(|| met(now, length)).unwrap_or(Sharing::Refused);
        let Sharing::Met { guest, asks } = met else {
            self.sharing = met;
            return Ok(());
        };
        let asks = asks - 1;
        let begun = match self.memory(py, length)? {
            Some(file) => file.and_then(|file| {
                guest.send(file.file())?;
                self.regions = Regions::new(file.memory().bytes(), file.memory().warm() as u64);
                Ok(Sharing::Shared(file))
            }),
            None if asks > 0 => Ok(Sharing::Met { guest, asks }),
            None => Ok(Sharing::Refused),
        };
        self.sharing = begun.unwrap_or(Sharing::Refused);
        Ok(())
    }

    /// Memory in which values of so many bytes are shared: that of an ended stream, or what the
    /// engine gives; None if that has none to give.
    fn memory(&self, py: Python<'_>, length: u64) -> PyResult<Option<io::Result<Arc<SharedFile>>>> {
        let is_suitable =
            |file: &SharedFile| is_shared(length, file.memory().bytes()) && file.memory().claim();
        if let Some(file) = kept_memory::take_if(is_suitable) {
            file.memory().renew();
            return Ok(Some(Ok(file)));
        }
        let path: Option<String> = self.ask.call1(py, (length,))?.extract(py)?;
        Ok(path.map(|path| {
            let file = File::options().read(true).write(true).open(path)?;
            Ok(Arc::new(SharedFile::open(file.into())?))
        }))
    }
}

/// The region of a value, and whether its pages are there; none if the value goes through the pipe.
fn region_for(regions: &mut Regions, memory: &SharedMemory, length: u64) -> Option<(Region, bool)> {
    let mut deadline = None;
    loop {
        let now = Instant::now();
        let may_wait = deadline.is_none_or(|deadline| now < deadline);
        let releases = memory.releases();
        match regions.place(length, may_wait, |region| memory.is_released(region)) {
            Place::Warm(region) => return Some((region, true)),
            Place::Fresh(region) => return Some((region, false)),
            Place::Pipe => return None,
            Place::NextReleased(time) => {
                let end = *deadline.get_or_insert(now + time);
                memory.await_release(releases, end.saturating_duration_since(now));
            }
        }
    }
}

impl Drop for SharedWriter {
    fn drop(&mut self) {
        if let Sharing::Shared(file) = std::mem::replace(&mut self.sharing, Sharing::Refused)
            && self.process == std::process::id()
        {
            WRITTEN.put(file.clone());
            let its = file.clone();
            if in_background(move || WRITTEN.await_end(&its)).is_err() {
                WRITTEN.remove(&file);
            }
        }
    }
}

/// Meets the reader, if that has come. Who has the first value of so many bytes at hand waits for a
/// reader that is about to come, but no longer than the way through the pipe would take.
fn met(now: Sharing, length: u64) -> io::Result<Sharing> {
    let Sharing::Alone { listener, looks } = now else {
        return Ok(now);
    };
    let way = Duration::from_micros((length * FRESH_MIB_US) >> 20);
    match listener.accept(first(looks, way)) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock && looks > 1 => {
            let looks = looks - 1;
            Ok(Sharing::Alone { listener, looks })
        }
        guest => Ok(Sharing::Met {
            guest: guest?,
            asks: ASKS_MAX,
        }),
    }
}

fn first(looks: u32, time: Duration) -> Duration {
    match looks {
        LOOKS_MAX => time,
        _ => Duration::ZERO,
    }
}

/// The bytes of a piece. A thread that changes them meanwhile has others sent, as through a pipe.
fn bytes_of(piece: &PyBuffer<u8>) -> PyResult<&[u8]> {
    let pointer = piece.as_slice_ptr();
    let pointer = pointer.ok_or_else(|| PyBufferError::new_err("the buffer has gaps"))?;
    // SAFETY: the buffer is held as long as the reference, so the bytes stay where they are.
    Ok(unsafe { pointer.as_ref() })
}
