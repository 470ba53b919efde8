//! `SharedReader`: the reader of a stream of values, as far as these come through shared memory,
//! and `SharedValue`, one of them.
//!
//! A value is not copied: its region is released when nothing in this process points into it any
//! more. A process that is forked meanwhile sees the same memory, so what was there at a fork is
//! never released. Values that are kept after the end of the stream keep their own pages only. It
//! knows no frames. Read next: `meeting`, `shared_memory`.

use std::io;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once};

use ciel_streams::{HeldRegions, Region};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::meeting::{Guest, Listener, Name};
use crate::shared_memory::SharedMemory;

/// How often this process was forked, and its parents before.
static FORKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn note_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

fn count_forks() {
    static REGISTERED: Once = Once::new();
    // SAFETY: the function only adds to a number.
    REGISTERED.call_once(|| unsafe {
        libc::pthread_atfork(Some(note_fork), None, None);
    });
}

/// What has become of the memory.
enum Sharing {
    /// Nothing was large enough for it yet.
    Alone,
    /// The producer has not come.
    Offered(Listener),
    /// It is there, and has not sent anything.
    Met(Guest),
    /// The memory is mapped.
    Shared(Arc<Held>),
    /// There is none.
    Refused,
}

/// The memory, and what of it this process holds.
struct Held {
    memory: SharedMemory,
    regions: Mutex<HeldRegions>,
    /// Whether the reader of the stream is gone.
    is_over: AtomicBool,
}

impl Held {
    fn of(memory: SharedMemory) -> Held {
        Held {
            memory,
            regions: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    fn regions(&self) -> MutexGuard<'_, HeldRegions> {
        self.regions.lock().expect("nothing panics with it")
    }

    fn release(&self, region: Region) {
        self.regions().give_back(region);
        match self.is_over.load(Ordering::Relaxed) {
            true => self.memory.forget(region.units()),
            false => self.memory.release(region),
        }
    }

    /// No further value comes.
    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        for gap in self.regions().gaps() {
            self.memory.forget(gap);
        }
    }
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
        Ok(SharedReader {
            pipe: Name::of(pipe)?,
            sharing: Sharing::Alone,
        })
    }

    /// A large value has come through the pipe: further ones may be shared. Never waits.
    fn offer(&mut self) {
        let now = std::mem::replace(&mut self.sharing, Sharing::Refused);
        self.sharing = self.next(now).unwrap_or(Sharing::Refused);
    }

    /// The value of which the producer has told.
    ///
    /// Raises ValueError if that is no region of the memory, or none is shared.
    fn value(&self, told: [u8; ciel_streams::regions::REGION_BYTES]) -> PyResult<SharedValue> {
        let Sharing::Shared(held) = &self.sharing else {
            return Err(PyValueError::new_err("no memory is shared"));
        };
        let region = Region::from_bytes(told);
        let taken = region.and_then(|region| held.regions().take(region).map(|()| region));
        let region = taken.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(SharedValue {
            held: held.clone(),
            region,
            forks: FORKS.load(Ordering::Relaxed),
        })
    }

    /// Whether this process holds so much that values have to be copied.
    #[getter]
    fn is_full(&self) -> bool {
        match &self.sharing {
            Sharing::Shared(held) => held.regions().is_full(),
            _ => false,
        }
    }
}

impl SharedReader {
    /// Takes the steps to shared memory that the producer is ready for.
    fn next(&self, now: Sharing) -> io::Result<Sharing> {
        match now {
            Sharing::Alone => Ok(Sharing::Offered(Listener::at(&self.pipe)?)),
            Sharing::Offered(listener) => match listener.accept() {
                Err(error) if is_early(&error) => Ok(Sharing::Offered(listener)),
                guest => self.next(Sharing::Met(guest?)),
            },
            Sharing::Met(guest) => match guest.file() {
                Err(error) if is_early(&error) => Ok(Sharing::Met(guest)),
                file => {
                    count_forks();
                    let memory = SharedMemory::open(file?)?;
                    guest.answer()?;
                    Ok(Sharing::Shared(Arc::new(Held::of(memory))))
                }
            },
            Sharing::Shared(_) | Sharing::Refused => Ok(now),
        }
    }
}

impl Drop for SharedReader {
    fn drop(&mut self) {
        if let Sharing::Shared(held) = &self.sharing {
            held.end();
        }
    }
}

fn is_early(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
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
        let bytes = value.get().held.memory.value(region).cast();
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
        if FORKS.load(Ordering::Relaxed) == self.forks {
            self.held.release(self.region);
        }
    }
}
