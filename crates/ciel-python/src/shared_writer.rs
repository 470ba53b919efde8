//! `SharedWriter`: the producer of a stream of values, as far as these go through shared memory.
//!
//! It knows no frames. Read next: `meeting`, `shared_memory`, `sdk/python/ciel/_frames.py`.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ciel_streams::limits::FRESH_MIB_US;
use ciel_streams::regions::Place;
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

/// What has become of the memory.
enum Sharing {
    /// The reader has not come yet, and so many more values are worth a look.
    Alone { listener: Listener, looks: u32 },
    /// It is there, and has not sent anything.
    Met(Guest),
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
    process: u32,
}

#[pymethods]
impl SharedWriter {
    /// For the writing end of a pipe.
    ///
    /// Raises OSError if there is no such descriptor.
    #[new]
    fn new(pipe: i32) -> PyResult<SharedWriter> {
        let looks = LOOKS_MAX;
        let listener = Listener::at(&Name::of(pipe)?);
        let sharing = listener.map(|listener| Sharing::Alone { listener, looks });
        Ok(SharedWriter {
            sharing: sharing.unwrap_or(Sharing::Refused),
            regions: Regions::default(),
            process: std::process::id(),
        })
    }

    /// Copies the pieces of a value one behind the other, and gives what the reader is to be told,
    /// and whether the producer is to be held until it is; `None` if they have to go through the
    /// pipe.
    ///
    /// Raises BufferError if a piece is no contiguous buffer of unsigned bytes.
    fn place<'py>(
        &mut self,
        py: Python<'py>,
        pieces: Vec<PyBuffer<u8>>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, bool)>> {
        let pieces = pieces.iter().map(bytes_of).collect::<PyResult<Vec<_>>>()?;
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>() as u64;
        if !ciel_streams::regions::is_shared(length) {
            return Ok(None);
        }
        let now = std::mem::replace(&mut self.sharing, Sharing::Refused);
        let is_new = !matches!(now, Sharing::Shared(_));
        self.sharing = py.detach(|| next(now, length)).unwrap_or(Sharing::Refused);
        let Sharing::Shared(file) = &self.sharing else {
            return Ok(None);
        };
        if is_new {
            self.regions = Regions::with_pages(file.memory().warm() as u64);
        }
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
        let is_far_ahead = self.regions.is_far_ahead(file.memory().taken());
        Ok(Some((PyBytes::new(py, &region.to_bytes()), is_far_ahead)))
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

/// Takes the steps to shared memory that the reader is ready for. Who has the first value of so
/// many bytes at hand waits for a reader that is about to come, but no longer than the way through
/// the pipe would take.
fn next(now: Sharing, length: u64) -> io::Result<Sharing> {
    let way = Duration::from_micros((length * FRESH_MIB_US) >> 20);
    let is_early = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    match now {
        Sharing::Alone { listener, looks } => match listener.accept(first(looks, way)) {
            Err(error) if is_early(&error) && looks > 1 => {
                let looks = looks - 1;
                Ok(Sharing::Alone { listener, looks })
            }
            guest => next(Sharing::Met(guest?), length),
        },
        Sharing::Met(guest) => match guest.file(way) {
            Err(error) if is_early(&error) => Ok(Sharing::Met(guest)),
            file => Ok(Sharing::Shared(mapped(file?)?)),
        },
        Sharing::Shared(_) | Sharing::Refused => Ok(now),
    }
}

fn first(looks: u32, time: Duration) -> Duration {
    match looks {
        LOOKS_MAX => time,
        _ => Duration::ZERO,
    }
}

/// The memory of a file, which may be mapped already.
fn mapped(file: OwnedFd) -> io::Result<Arc<SharedFile>> {
    match kept_memory::take_if(|mapped| mapped.is_of(&file)) {
        Some(mapped) => Ok(mapped),
        None => Ok(Arc::new(SharedFile::open(file)?)),
    }
}

/// The bytes of a piece. A thread that changes them meanwhile has others sent, as through a pipe.
fn bytes_of(piece: &PyBuffer<u8>) -> PyResult<&[u8]> {
    let pointer = piece.as_slice_ptr();
    let pointer = pointer.ok_or_else(|| PyBufferError::new_err("the buffer has gaps"))?;
    // SAFETY: the buffer is held as long as the reference, so the bytes stay where they are.
    Ok(unsafe { pointer.as_ref() })
}
