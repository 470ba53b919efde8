//! Functions that see where on Python's stack their caller is: by where their arguments are.
//!
//! An interpreter that keeps the frames of Python functions beside one another passes arguments
//! there, so the distance of two such places says how much Python code lies between them. Other
//! interpreters pass them elsewhere: Python tests that once, with `place`. An address is only
//! compared here. What is called for each child is called without PyO3's wrapper, which counts that
//! the thread is attached: a reference that is dropped in it would wait for the next call that has
//! one. Read next: `stack.rs`.

use std::ffi::CStr;
use std::ptr::null_mut;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::future_state::FutureState;
use crate::stack::{
    Ahead, advance, advance_early, begin, begin_ahead, begin_early, begin_task, early_task, end,
    end_ahead, end_early, end_task, note_base, oldest_aside,
};

/// Adds the functions to the module.
///
/// # Errors
/// Those of Python, which has no memory.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add(module, c"begin", begin_from)?;
    add(module, c"end", end_from)?;
    add(module, c"begin_ahead", begin_ahead_from)?;
    add(module, c"advance", advance_from)?;
    add(module, c"end_ahead", end_ahead_from)?;
    add(module, c"begin_aside", begin_aside_from)?;
    add(module, c"oldest_aside", oldest_aside_from)?;
    add(module, c"early_task", early_task_from)?;
    add(module, c"begin_early", begin_early_from)?;
    add(module, c"advance_early", advance_early_from)?;
    add(module, c"end_early", end_early_from)?;
    add(module, c"begin_task", begin_task_from)?;
    add(module, c"end_task", end_task_from)?;
    add(module, c"note_base", note_base_from)?;
    add(module, c"place", place_from)
}

fn add(module: &Bound<'_, PyModule>, name: &CStr, does: ffi::PyCFunctionFast) -> PyResult<()> {
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFast: does,
        },
        ml_flags: ffi::METH_FASTCALL,
        ml_doc: null_mut(),
    }));
    let own = module.name()?;
    // SAFETY: this thread is attached; the definition, with a function of the form that its flag
    // says, lives as long as the process. The result is a new reference, or an error is set.
    let made = unsafe {
        let made = ffi::PyCFunction_NewEx(definition, null_mut(), own.as_ptr());
        Bound::from_owned_ptr_or_err(module.py(), made)?
    };
    let name = name.to_str().expect("names are ASCII");
    module.setattr(name, made)
}

/// `begin(future)`; see `stack::begin`.
unsafe extern "C" fn begin_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this in an attached thread.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: as above.
    let begun = unsafe { only(py, args, count) }.and_then(|future| {
        let future = future.cast::<FutureState>()?;
        begin(future, Some(args.addr()))
    });
    given(py, begun)
}

/// `begin_aside(future)`; see `stack::begin`.
unsafe extern "C" fn begin_aside_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        // SAFETY: Python calls this in an attached thread.
        let begun = unsafe { only(py, args, count) }.and_then(|future| {
            let future = future.cast::<FutureState>()?;
            begin(future, None)
        });
        given(py, begun)
    })
}

/// `end(value)`; see `stack::end`.
unsafe extern "C" fn end_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this in an attached thread.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: as above.
    let ended = unsafe { only(py, args, count) }.and_then(|value| end(&value));
    given(py, ended)
}

/// `begin_ahead(ahead)`; see `stack::begin_ahead`.
unsafe extern "C" fn begin_ahead_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        // SAFETY: Python calls this in an attached thread.
        let ahead = unsafe { of_ahead(py, args, count) };
        let begun = ahead.and_then(|(ahead, _)| begin_ahead(&ahead, args.addr()));
        given(py, begun.map(Some))
    })
}

/// `advance(ahead, value)`; see `stack::advance`.
unsafe extern "C" fn advance_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this in an attached thread.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: as above.
    let next = unsafe { of_ahead(py, args, count) }.and_then(|(ahead, value)| match value {
        Some(value) => advance(&ahead, value),
        None => Err(PyTypeError::new_err("a value is expected")),
    });
    given(py, next.map(Some))
}

/// `end_ahead(ahead)`; see `stack::end_ahead`.
unsafe extern "C" fn end_ahead_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        // SAFETY: Python calls this in an attached thread.
        let ahead = unsafe { of_ahead(py, args, count) };
        given::<PyAny>(py, ahead.map(|(ahead, _)| end_ahead(&ahead)).map(|()| None))
    })
}

/// An `Ahead`, and what follows it.
type AheadAnd<'py> = (Bound<'py, Ahead>, Option<Bound<'py, PyAny>>);

/// One argument or two, of which the first is an `Ahead`.
///
/// # Safety
/// As of `only`.
unsafe fn of_ahead<'py>(
    py: Python<'py>,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> PyResult<AheadAnd<'py>> {
    if !(1..=2).contains(&count) {
        return Err(PyTypeError::new_err("one argument or two are expected"));
    }
    // SAFETY: there are so many, which live as long as the call.
    let (first, second) = unsafe {
        let second = (count == 2).then(|| Bound::from_borrowed_ptr(py, *args.add(1)));
        (Bound::from_borrowed_ptr(py, *args), second)
    };
    Ok((first.cast_into::<Ahead>()?, second))
}

/// `early_task()`; see `stack::early_task`.
unsafe extern "C" fn early_task_from(
    _module: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        let found = early_task(py);
        given(py, found.map(|task| task.map(|task| task.into_bound(py))))
    })
}

/// `oldest_aside()`; see `stack::oldest_aside`.
unsafe extern "C" fn oldest_aside_from(
    _module: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    Python::attach(|py| given(py, Ok(oldest_aside(py))))
}

/// `begin_early(newest)`; see `stack::begin_early`.
unsafe extern "C" fn begin_early_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        // SAFETY: Python calls this in an attached thread.
        let newest = unsafe { only(py, args, count) };
        given(
            py,
            newest.and_then(|newest| begin_early(&newest, args.addr())),
        )
    })
}

/// `advance_early(value)`; see `stack::advance_early`.
unsafe extern "C" fn advance_early_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this in an attached thread.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: as above.
    let next = unsafe { only(py, args, count) }.map(advance_early);
    given(py, next)
}

/// `end_early()`; see `stack::end_early`.
unsafe extern "C" fn end_early_from(
    _module: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        let count = end_early(py).into_pyobject(py);
        given(py, count.map(Some).map_err(PyErr::from))
    })
}

/// `begin_task(switch)`; see `stack::begin_task`.
unsafe extern "C" fn begin_task_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        // SAFETY: Python calls this in an attached thread.
        let begun = unsafe { only(py, args, count) };
        given(
            py,
            begun.and_then(|switch| begin_task(&switch, args.addr())),
        )
    })
}

/// `end_task(value)`; see `stack::end_task`.
unsafe extern "C" fn end_task_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        // SAFETY: Python calls this in an attached thread.
        let ended = unsafe { only(py, args, count) }.and_then(|value| end_task(&value));
        let ended = ended.map(|ended| Some(PyBool::new(py, ended).to_owned()));
        given(py, ended)
    })
}

/// The only argument.
///
/// # Safety
/// `args` and `count` are what Python has called a function with, which has not returned.
unsafe fn only<'py>(
    py: Python<'py>,
    args: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> PyResult<Bound<'py, PyAny>> {
    if count != 1 {
        return Err(PyTypeError::new_err("one argument is expected"));
    }
    // SAFETY: there is one, which lives as long as the call.
    Ok(unsafe { Bound::from_borrowed_ptr(py, *args) })
}

fn given<T>(py: Python<'_>, found: PyResult<Option<Bound<'_, T>>>) -> *mut ffi::PyObject {
    match found {
        Ok(Some(found)) => found.into_ptr(),
        Ok(None) => py.None().into_ptr(),
        Err(error) => {
            error.restore(py);
            null_mut()
        }
    }
}

/// `note_base()`: the code of the innermost strand begins there.
unsafe extern "C" fn note_base_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    _count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        note_base(py, args.addr());
        py.None().into_ptr()
    })
}

/// `place()`: where the caller is.
unsafe extern "C" fn place_from(
    _module: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    _count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this in an attached thread; the result is a new reference, or null.
    unsafe { ffi::PyLong_FromSize_t(args.addr()) }
}
