//! `SharedWriter`: the producer of a stream of values, as far as these go through shared memory.
//!
//! It knows no frames. Read next: `meeting`, `shared_memory`, `sdk/python/ciel/_frames.py`.

use std::io;

use ciel_streams::Regions;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::meeting::{Host, Name};
use crate::shared_memory::CreatedMemory;

/// Values for which a reader is looked for. One that has the pipe itself is there before so many
/// more are in it than it holds; a stream that is stored has none.
const LOOKS_MAX: u32 = 16;

/// What has become of the memory.
enum Sharing {
    /// Nobody is asked yet, and so many more values are worth a look.
    Alone { looks: u32 },
    /// The reader is to map it.
    Asked { host: Host, memory: CreatedMemory },
    /// The reader has mapped it.
    Shared(CreatedMemory),
    /// There is none.
    Refused,
}

/// Places values in memory that the reader of a pipe maps, if it does.
#[pyclass(module = "ciel._native")]
pub struct SharedWriter {
    pipe: Name,
    sharing: Sharing,
    regions: Regions,
    /// Bytes from the beginning of the memory whose pages are there.
    warm: usize,
}

#[pymethods]
impl SharedWriter {
    /// For the writing end of a pipe.
    ///
    /// Raises OSError if there is no such descriptor.
    #[new]
    fn new(pipe: i32) -> PyResult<SharedWriter> {
        Ok(SharedWriter {
            pipe: Name::of(pipe)?,
            sharing: Sharing::Alone { looks: LOOKS_MAX },
            regions: Regions::default(),
            warm: 0,
        })
    }

    /// Copies the pieces of a value one behind the other, and gives what the reader is to be told;
    /// `None` if they have to go through the pipe.
    ///
    /// Raises BufferError if a piece is no contiguous buffer of unsigned bytes.
    fn place<'py>(
        &mut self,
        py: Python<'py>,
        pieces: Vec<PyBuffer<u8>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let pieces = pieces.iter().map(bytes_of).collect::<PyResult<Vec<_>>>()?;
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>() as u64;
        if !ciel_streams::regions::is_shared(length) {
            return Ok(None);
        }
        self.look();
        let Sharing::Shared(memory) = &self.sharing else {
            return Ok(None);
        };
        let is_released = |region| memory.is_released(region);
        let Some(region) = self.regions.place(length, is_released) else {
            return Ok(None);
        };
        let end = region.units().end;
        py.detach(|| memory.fill(region, &pieces, end <= self.warm));
        self.warm = self.warm.max(end);
        Ok(Some(PyBytes::new(py, &region.to_bytes())))
    }
}

impl SharedWriter {
    /// Goes one step on the way to shared memory.
    fn look(&mut self) {
        self.sharing = match std::mem::replace(&mut self.sharing, Sharing::Refused) {
            Sharing::Alone { looks } => match self.asked() {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && looks > 1 => {
                    Sharing::Alone { looks: looks - 1 }
                }
                asked => asked.unwrap_or(Sharing::Refused),
            },
            Sharing::Asked { host, memory } => match host.has_answered() {
                Ok(true) => Sharing::Shared(memory),
                Ok(false) => Sharing::Asked { host, memory },
                Err(_) => Sharing::Refused,
            },
            settled @ (Sharing::Shared(_) | Sharing::Refused) => settled,
        };
    }

    fn asked(&self) -> io::Result<Sharing> {
        let host = Host::of(&self.pipe)?;
        let memory = CreatedMemory::new()?;
        host.send(memory.file())?;
        Ok(Sharing::Asked { host, memory })
    }
}

/// The bytes of a piece. A thread that changes them meanwhile has others sent, as through a pipe.
fn bytes_of(piece: &PyBuffer<u8>) -> PyResult<&[u8]> {
    let pointer = piece.as_slice_ptr();
    let pointer = pointer.ok_or_else(|| PyBufferError::new_err("the buffer has gaps"))?;
    // SAFETY: the buffer is held as long as the reference, so the bytes stay where they are.
    Ok(unsafe { pointer.as_ref() })
}
