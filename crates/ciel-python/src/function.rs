//! What native code knows of the function of a task: enough to keep a plain call of it.
//!
//! Python tells it with the first call that is kept; until then, and for all calls that are not
//! plain, Python does the work. It does not know where a call runs. Read next: `stack.rs`,
//! `sdk/python/ciel/_keeping_strand.py`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use pyo3::{ffi, intern};

use crate::definitions::Definition;
use crate::stack;

/// Functions in which a task is spawned that are kept; in others, each spawn is Python's.
const SPAWNERS_MAX: usize = 8;

/// A global that the function captures: the namespace, its name, its value.
type Captured = (Py<PyDict>, Py<PyString>, Py<PyAny>);

/// The native half of a task.
#[pyclass(subclass, module = "ciel._native")]
pub struct Function {
    /// What is known since the first call that was kept.
    pub known: Option<Known>,
}

/// What a plain call needs.
pub struct Known {
    /// What its spawns in that file have in common.
    pub definition: Py<Definition>,
    /// The function itself.
    pub function: Py<PyAny>,
    /// What precedes the arguments in payloads.
    pub head: Py<PyBytes>,
    captured: Vec<Captured>,
    file: Py<PyString>,
    /// Code that spawns it, in that file.
    spawners: Vec<Py<PyAny>>,
}

#[pymethods]
impl Function {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Function {
        Function { known: None }
    }

    /// Plain calls of `function` that are spawned in `file` may be kept: `head` precedes their
    /// arguments in payloads. `captured` are globals that must not be assigned again, each with
    /// its namespace and its value.
    fn keep_plain_calls(
        &mut self,
        function: Py<PyAny>,
        file: Py<PyString>,
        definition: Py<Definition>,
        head: Py<PyBytes>,
        captured: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        self.known = Some(Known {
            definition,
            function,
            head,
            captured: captured.extract()?,
            file,
            spawners: Vec::new(),
        });
        Ok(())
    }

    /// Spawns a call: natively if it is plain, else by `_spawned_here`.
    #[pyo3(signature = (*args, **kwargs))]
    fn spawn(
        slf: &Bound<'_, Function>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if kwargs.is_none_or(|kwargs| kwargs.is_empty())
            && let Some(future) = stack::spawn(slf, args)?
        {
            return Ok(future);
        }
        let kwargs = kwargs.cloned().unwrap_or_else(|| PyDict::new(py));
        let spawned = slf.call_method1(intern!(py, "_spawned_here"), (args, kwargs))?;
        Ok(spawned.unbind())
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        if let Some(known) = &self.known {
            visit.call(&known.function)?;
        }
        Ok(())
    }

    fn __clear__(&mut self) {
        self.known = None;
    }
}

impl Known {
    /// Whether code that spawns the function is in the file that is known.
    pub fn is_spawned_by(&mut self, code: &Bound<'_, PyAny>) -> bool {
        if self.spawners.iter().any(|one| one.is(code)) {
            return true;
        }
        let py = code.py();
        let file = code.getattr(intern!(py, "co_filename"));
        let is_its = file.is_ok_and(|file| file.eq(&self.file).unwrap_or(false));
        if is_its && self.spawners.len() < SPAWNERS_MAX {
            self.spawners.push(code.clone().unbind());
        }
        is_its
    }

    /// Whether the globals that it captures are as they were.
    pub fn is_unchanged(&self, py: Python<'_>) -> bool {
        self.captured.iter().all(|(namespace, name, value)| {
            let found = namespace.bind(py).get_item(name.bind(py));
            found.is_ok_and(|found| found.is_some_and(|found| found.is(value)))
        })
    }
}

/// The code and the line of the Python function that runs; `None` if none does.
pub fn place_now(py: Python<'_>) -> Option<(Bound<'_, PyAny>, u32)> {
    // SAFETY: this thread is attached to the interpreter. The frame is borrowed and belongs to the
    // function that has called, which does not end meanwhile; its code is a new reference.
    unsafe {
        let frame = ffi::PyEval_GetFrame();
        if frame.is_null() {
            return None;
        }
        let line = u32::try_from(ffi::PyFrame_GetLineNumber(frame)).unwrap_or(0);
        let code = ffi::PyFrame_GetCode(frame).cast::<ffi::PyObject>();
        Some((Bound::from_owned_ptr_or_opt(py, code)?, line))
    }
}
