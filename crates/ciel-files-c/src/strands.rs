//! Strands that C programs fork, enter, leave and join.
//!
//! A strand is owned by its handle while it is idle, and by a thread while it is entered there. It
//! does not know files. Read next: `views`.

use std::cell::RefCell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ciel_files::{Entered, Place, Strand, fork, here};

use crate::failure::{Failure, call};

/// A strand as C has it.
#[derive(Debug)]
pub struct Handle(Mutex<Phase>);

#[derive(Debug)]
enum Phase {
    Idle(Box<Strand>),
    Entered,
    Ended,
}

impl Handle {
    pub(crate) fn leak(strand: Strand) -> *mut Handle {
        Box::into_raw(Box::new(Handle(Mutex::new(Phase::Idle(Box::new(strand))))))
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the strand, if it is idle. The phase becomes `next`.
    fn take(&self, next: Phase) -> Result<Box<Strand>, Failure> {
        let mut phase = self.phase();
        match std::mem::replace(&mut *phase, next) {
            Phase::Idle(strand) => Ok(strand),
            other => {
                *phase = other;
                let message = match &*phase {
                    Phase::Ended => "the strand has ended",
                    Phase::Idle(_) | Phase::Entered => "the strand is entered on a thread",
                };
                Err(Failure::new(libc::EBUSY, message))
            }
        }
    }

    /// Acts on the strand, which is idle.
    pub(crate) fn with<T>(
        &self,
        act: impl FnOnce(&mut Strand) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match &mut *self.phase() {
            Phase::Idle(strand) => act(strand),
            Phase::Entered | Phase::Ended => {
                let message = "the strand is entered on a thread, or has ended";
                Err(Failure::new(libc::EBUSY, message))
            }
        }
    }
}

/// The strands that this thread is in, the innermost last.
struct Inside(Vec<(*const Handle, Entered)>);

impl Drop for Inside {
    /// A thread that ends without leaving its strands ends them.
    fn drop(&mut self) {
        while let Some((handle, entered)) = self.0.pop() {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(entered)));
            // SAFETY: no handle is freed while its strand is entered.
            *unsafe { &*handle }.phase() = Phase::Ended;
        }
    }
}

thread_local! {
    static INSIDE: RefCell<Inside> = const { RefCell::new(Inside(Vec::new())) };
}

fn handle<'a>(strand: *mut Handle) -> Result<&'a Handle, Failure> {
    // SAFETY: the caller promises that it is null, or a strand that was not joined.
    let handle = unsafe { strand.as_ref() };
    handle.ok_or_else(|| Failure::new(libc::EINVAL, "the strand is a null pointer"))
}

#[unsafe(no_mangle)]
pub extern "C" fn ciel_ordered_fork() -> *mut Handle {
    call(ptr::null_mut(), || Ok(Handle::leak(fork())))
}

/// # Safety
/// `strand` is null or was not joined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_enter(strand: *mut Handle) -> c_int {
    call(-1, || {
        let handle = handle(strand)?;
        let idle = handle.take(Phase::Entered)?;
        // The strand of the thread is made before the list, so that it outlives the list.
        let entered = idle.enter();
        INSIDE.with_borrow_mut(|inside| inside.0.push((strand.cast_const(), entered)));
        Ok(0)
    })
}

fn leave(strand: *mut Handle) -> Result<Box<Strand>, Failure> {
    INSIDE.with_borrow_mut(|inside| match inside.0.last() {
        Some((innermost, _)) if ptr::eq(*innermost, strand) => {
            let (_, entered) = inside.0.pop().expect("there is an innermost strand");
            Ok(Box::new(entered.leave()))
        }
        Some(_) | None => {
            let message = "the strand is not the one that this thread entered last";
            Err(Failure::new(libc::EPERM, message))
        }
    })
}

/// # Safety
/// `strand` is null or was not joined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_leave(strand: *mut Handle) -> c_int {
    call(-1, || {
        let handle = handle(strand)?;
        let left = leave(strand)?;
        *handle.phase() = Phase::Idle(left);
        Ok(0)
    })
}

/// # Safety
/// `strand` is null or was not joined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_end(strand: *mut Handle) -> c_int {
    call(-1, || {
        let handle = handle(strand)?;
        if let Ok(left) = leave(strand) {
            *handle.phase() = Phase::Idle(left);
        }
        drop(handle.take(Phase::Ended)?);
        Ok(0)
    })
}

/// # Safety
/// `strand` is null or was not joined, and is not used afterwards if this succeeds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_join(strand: *mut Handle) -> c_int {
    call(-1, || {
        let handle = handle(strand)?;
        if matches!(&*handle.phase(), Phase::Entered) {
            let message = "the strand is entered on a thread, so it cannot be joined";
            return Err(Failure::new(libc::EBUSY, message));
        }
        // SAFETY: it came from `leak`, and the caller does not use it again.
        drop(unsafe { Box::from_raw(strand) });
        Ok(0)
    })
}

/// Takes the strand of a handle, which is idle, and frees the handle.
pub(crate) fn unwrap(strand: *mut Handle) -> Result<Strand, Failure> {
    let idle = handle(strand)?.take(Phase::Ended)?;
    // SAFETY: it came from `leak`, and the caller does not use it again.
    drop(unsafe { Box::from_raw(strand) });
    Ok(*idle)
}

pub(crate) fn misplaced() -> Failure {
    let message = "the strand has a place already, or descends from another thread";
    Failure::new(libc::EPERM, message)
}

/// # Safety
/// `strand` is null or was not joined, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_append(strand: *mut Handle) -> c_int {
    call(-1, || {
        let detached = unwrap(strand)?;
        detached.append().map_err(|_| misplaced()).map(|()| 0)
    })
}

/// A place as C has it: as many words, which hold one, or zeros.
#[repr(C)]
#[derive(Debug)]
pub struct PlaceWords([usize; PLACE_WORDS]);

const PLACE_WORDS: usize = 5;
const _: () = assert!(size_of::<Option<Place>>() <= size_of::<PlaceWords>());
const _: () = assert!(align_of::<Option<Place>>() <= align_of::<PlaceWords>());

fn place<'a>(at: *const PlaceWords) -> Result<&'a Place, Failure> {
    // SAFETY: the caller promises that it is null or was filled by `ciel_ordered_here`.
    let place = unsafe { at.cast::<Option<Place>>().as_ref() };
    let place = place.and_then(Option::as_ref);
    place.ok_or_else(|| Failure::new(libc::EINVAL, "the place is a null pointer, or released"))
}

/// # Safety
/// `at` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_here(at: *mut PlaceWords) -> c_int {
    call(-1, || {
        if at.is_null() {
            return Err(Failure::new(libc::EINVAL, "the place is a null pointer"));
        }
        let found = here();
        let is_there = found.is_some();
        // SAFETY: it can be written, and is large enough and aligned.
        unsafe { at.cast::<Option<Place>>().write(found) };
        match is_there {
            true => Ok(0),
            false => Err(Failure::new(libc::EPERM, "the strand of this thread waits")),
        }
    })
}

/// # Safety
/// `at` is null or was filled by `ciel_ordered_here` and not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_detached(at: *const PlaceWords) -> *mut Handle {
    call(ptr::null_mut(), || Ok(Handle::leak(place(at)?.detached())))
}

/// # Safety
/// `at` is null or was filled by `ciel_ordered_here` and not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_rewind(at: *const PlaceWords) -> c_int {
    call(-1, || {
        place(at)?.rewind();
        Ok(0)
    })
}

/// # Safety
/// `at` is null or was filled by `ciel_ordered_here`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_release(at: *mut PlaceWords) -> c_int {
    call(-1, || {
        place(at)?;
        // SAFETY: it holds a place, as was just seen, and holds none from now on.
        drop(unsafe { at.cast::<Option<Place>>().replace(None) });
        Ok(0)
    })
}
