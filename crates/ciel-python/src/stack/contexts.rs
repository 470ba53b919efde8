//! The context variables of greenlets, which know them alone.
//!
//! Read next: `stack.rs`; `sdk/python/ciel/_contexts.py` says which ones tasks begin with.

use std::ffi::c_void;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::{ffi, intern};

/// Reads the attribute `gr_context` of greenlets.
pub struct ContextsOf {
    /// Describes the attribute.
    described: Py<PyAny>,
    /// Reads it as `getattr` does that has found the description.
    get: ffi::descrgetfunc,
}

impl ContextsOf {
    /// Those of the package `greenlet`.
    ///
    /// # Errors
    /// Those of Python, if the package is missing or has another interface.
    pub fn new(py: Python<'_>) -> PyResult<ContextsOf> {
        let class = py.import("greenlet")?.getattr("greenlet")?;
        let described = class.getattr(intern!(py, "gr_context"))?;
        // SAFETY: this thread is attached. The slot of this number has this type, or is null.
        let get = unsafe {
            let kind = described.get_type().as_type_ptr();
            let slot = ffi::PyType_GetSlot(kind, ffi::Py_tp_descr_get);
            std::mem::transmute::<*mut c_void, Option<ffi::descrgetfunc>>(slot)
        };
        let get = get.ok_or_else(|| PyTypeError::new_err("gr_context is no attribute"))?;
        let described = described.unbind();
        Ok(ContextsOf { described, get })
    }

    /// Whether the greenlet to which that switches has any.
    ///
    /// # Errors
    /// Those of Python.
    pub fn has_any(&self, py: Python<'_>, switch: &Py<PyAny>) -> PyResult<bool> {
        let greenlet = greenlet_of(py, switch);
        // SAFETY: this thread is attached. The function is that of the description, and checks what
        // it describes; it gives a new reference, or raises.
        let found = unsafe {
            let kind = greenlet.get_type_ptr().cast();
            let found = (self.get)(self.described.as_ptr(), greenlet.as_ptr(), kind);
            Bound::from_owned_ptr_or_err(py, found)?
        };
        Ok(!found.is_none())
    }
}

/// The greenlet to which that switches.
fn greenlet_of<'py>(py: Python<'py>, switch: &Py<PyAny>) -> Bound<'py, PyAny> {
    // SAFETY: this thread is attached. A bound method of C gives the borrowed object to which it is
    // bound; `Stack` gets no other switches.
    let own = unsafe {
        let own = ffi::PyCFunction_GetSelf(switch.as_ptr());
        Bound::from_borrowed_ptr_or_opt(py, own)
    };
    own.expect("switches are bound methods of greenlets")
}
