//! Views of a reducer: for hosts that make a view when they steal and reduce it when they join.
//!
//! A view is empty until something is written to it, so an identity costs nothing. It does not know
//! how views are put behind one another. Read next: `strands`.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::ptr;

use ciel_files::{Place, fork};

use crate::calls::bytes;
use crate::descriptors;
use crate::failure::{Failure, call};
use crate::strands::{Handle, misplaced, unwrap};

/// A view as C has it.
#[repr(C)]
#[derive(Debug)]
pub struct View {
    strand: *mut Handle,
}

fn view<'a>(at: *mut View) -> Result<&'a mut View, Failure> {
    // SAFETY: the caller promises that it is null, or a view that no other thread uses.
    let view = unsafe { at.as_mut() };
    view.ok_or_else(|| Failure::new(libc::EINVAL, "the view is a null pointer"))
}

/// # Safety
/// `at` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_identity(at: *mut c_void) {
    if !at.is_null() {
        let empty = View {
            strand: ptr::null_mut(),
        };
        // SAFETY: it can be written.
        unsafe { at.cast::<View>().write(empty) };
    }
}

/// # Safety
/// Each is null or a view that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_reduce(left: *mut c_void, right: *mut c_void) {
    call((), || {
        let (left, right) = (view(left.cast())?, view(right.cast())?);
        let taken = std::mem::replace(&mut right.strand, ptr::null_mut());
        if left.strand.is_null() {
            left.strand = taken;
            return Ok(());
        }
        if taken.is_null() {
            return Ok(());
        }
        let behind = unwrap(taken)?;
        // SAFETY: a view holds a strand that was not joined.
        let own = unsafe { &*left.strand };
        own.with(|own| own.reduce(behind).map_err(|_| misplaced()))
    });
}

/// # Safety
/// `at` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_view_begin(at: *mut View) -> c_int {
    call(-1, || {
        if at.is_null() {
            return Err(Failure::new(libc::EINVAL, "the view is a null pointer"));
        }
        let strand = Handle::leak(fork());
        // SAFETY: it can be written.
        unsafe { at.write(View { strand }) };
        Ok(0)
    })
}

/// # Safety
/// `at` is null or a view that no other thread uses; `length` bytes can be read at `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_view_write(
    at: *mut View,
    descriptor: c_int,
    buffer: *const c_void,
    length: usize,
) -> isize {
    call(-1, || {
        let view = view(at)?;
        let file = descriptors::get(descriptor)?;
        // SAFETY: as the caller promises.
        let bytes = unsafe { bytes(buffer, length) }?;
        if view.strand.is_null() {
            let place = Place::among_writers_of(&file).ok_or_else(|| {
                Failure::new(libc::EINVAL, "views are for files in mode serial-append")
            })?;
            view.strand = Handle::leak(place.detached());
        }
        // SAFETY: a view holds a strand that was not joined.
        let own = unsafe { &*view.strand };
        own.with(|own| Ok(own.within(|| (&*file).write_all(bytes))?))?;
        Ok(length as isize)
    })
}

/// # Safety
/// `at` is null or a view that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ciel_ordered_view_end(at: *mut View) -> c_int {
    call(-1, || {
        let view = view(at)?;
        let strand = std::mem::replace(&mut view.strand, ptr::null_mut());
        if !strand.is_null() {
            drop(unwrap(strand)?);
        }
        Ok(0)
    })
}
