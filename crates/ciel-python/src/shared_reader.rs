//! `SharedReader`: the reader of a stream of values, as far as these come through shared memory,
//! and `SharedValue`, one of them.
//!
//! A value is not copied: its region is released when nothing in this process points into it any
//! more. A process that is forked meanwhile sees the same memory, so what was there at a fork is
//! never released. Values that are kept after the end of the stream keep their own pages only. It
//! knows no frames. Read next: `held_memory`, `meeting`, `shared_memory`.

use std::io;
use std::os::raw::c_int;
use std::sync::Arc;

use ciel_streams::Region;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::held_memory::{Held, forks};
use crate::meeting::{Host, Name};
use crate::shared_memory;

/// How often a producer is looked for: when the reader begins, and then with each large value. The
/// pipe of a stream that is stored has none.
const LOOKS_MAX: u32 = 16;

/// What has become of the memory.
enum Sharing {
    /// The producer does not listen, and may so many looks later.
    Alone { looks: u32 },
    /// The producer sends memory when it wants to share some.
    Met(Host),
    /// It is mapped.
    Shared(Arc<Held>),
    /// There is none.
    Refused,
}

/// Reads values in memory that the producer of a pipe maps, too.
#[pyclass(module = "ciel._native")]
pub struct SharedReader {
    pipe: Name,
    sharing: Sharing,
}

#[pymethods]
impl SharedReader {
    /// For the reading end of a pipe.
    ///
    /// Raises OSError if there is no such descriptor.
    #[new]
    fn new(pipe: i32) -> PyResult<SharedReader> {
        let mut reader = SharedReader {
            pipe: Name::of(pipe)?,
            sharing: Sharing::Alone { looks: LOOKS_MAX },
        };
        reader.offer();
        Ok(reader)
    }

    /// Meets the producer, if that has not been: when a large value has come through the pipe,
    /// further ones may be shared. Never waits.
    fn offer(&mut self) {
        if let Sharing::Alone { looks } = self.sharing {
            self.sharing = match self.host() {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && looks > 1 => {
                    Sharing::Alone { looks: looks - 1 }
                }
                host => host.map_or(Sharing::Refused, Sharing::Met),
            };
        }
    }

    /// The value of which the producer has told.
    ///
    /// Raises ValueError if that is no region of the memory, or none is shared.
    fn value(&mut self, told: [u8; ciel_streams::regions::REGION_BYTES]) -> PyResult<SharedValue> {
        if let Sharing::Met(host) = &self.sharing {
            let held = host.file().and_then(Held::new).map_err(|error| {
                PyValueError::new_err(format!("the memory cannot be mapped: {error}"))
            })?;
            self.sharing = Sharing::Shared(held);
        }
        let Sharing::Shared(held) = &self.sharing else {
            return Err(PyValueError::new_err("no memory is shared"));
        };
        let region = Region::from_bytes(told, held.bytes());
        let taken = region.and_then(|region| held.take(region).map(|()| region));
        let region = taken.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(SharedValue {
            held: held.clone(),
            region,
            forks: forks(),
        })
    }

    /// Whether this process holds so much that values have to be copied.
    #[getter]
    fn is_full(&self) -> bool {
        match &self.sharing {
            Sharing::Shared(held) => held.is_full(),
            _ => false,
        }
    }

    /// The pipe has come to its end, which no process can write to any more. The next stream that
    /// this process reads may have the memory.
    fn end(&mut self) {
        if let Sharing::Shared(held) = std::mem::replace(&mut self.sharing, Sharing::Refused) {
            held.end();
        }
    }
}

impl SharedReader {
    /// The producer, if what it sends can be mapped here.
    fn host(&self) -> io::Result<Host> {
        let host = Host::of(&self.pipe)?;
        shared_memory::expect_room()?;
        Ok(host)
    }
}

impl Drop for SharedReader {
    fn drop(&mut self) {
        if let Sharing::Shared(held) = &self.sharing {
            held.leave();
        }
    }
}

/// The bytes of one value, which can only be read.
#[pyclass(module = "ciel._native", frozen)]
pub struct SharedValue {
    held: Arc<Held>,
    region: Region,
    /// The forks before it came.
    forks: u64,
}

#[pymethods]
impl SharedValue {
    /// # Safety
    /// As the buffer protocol says.
    unsafe fn __getbuffer__(
        value: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let region = value.get().region;
        let bytes = value.get().held.value(region).cast();
        let (length, owner) = (region.length() as isize, value.as_ptr());
        // SAFETY: the bytes live, and do not change, as long as the value, to which the view has a
        // reference then.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, owner, bytes, length, 1, flags) };
        match filled {
            0 => Ok(()),
            _ => Err(PyErr::fetch(value.py())),
        }
    }
}

impl Drop for SharedValue {
    fn drop(&mut self) {
        // A child may still see what was there at its fork.
        if forks() == self.forks {
            self.held.release(self.region);
        }
    }
}
