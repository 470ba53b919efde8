//! What native code knows of the function of a task: enough to keep a plain call of it.
//!
//! Python tells it with the first call that is kept; until then, and for all calls that are not
//! plain, Python does the work. It does not know where a call runs. Read next: `stack.rs`,
//! `sdk/python/ciel/_keeping_strand.py`.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::{ffi, intern};

use crate::connection::Connection;
use crate::definitions::Definition;
use crate::kept_payload::Head;
use crate::outside::is_at;
use crate::stack;

/// Functions in which a task is spawned that are kept; in others, each spawn is Python's.
const SPAWNERS_MAX: usize = 8;

/// Places in one function whose lines are kept.
const LINES_MAX: usize = 16;

/// A global that the function captures: the namespace, its name, its value.
type Captured = (Py<PyDict>, Py<PyString>, Py<PyAny>);

/// The native half of a task.
#[pyclass(subclass, module = "ciel._native")]
pub struct Function {
    /// What is known since the first call that was kept.
    pub known: Option<Known>,
    /// Whether its calls may run in place of a root; `None` before anybody has measured one.
    #[pyo3(get, set)]
    pub suits_root: Option<bool>,
    /// Whether its calls may run before anybody asks for them; `None` before a look at its code.
    #[pyo3(get, set)]
    pub runs_early: Option<bool>,
    /// Whether a root keeps its calls with futures until it asks for them: they are Python's.
    #[pyo3(get, set)]
    pub keeps_waiting: bool,
}

/// What a plain call needs.
pub struct Known {
    /// What its spawns in that file have in common.
    pub definition: Py<Definition>,
    /// The function itself.
    pub function: Py<PyAny>,
    /// What precedes the arguments in payloads.
    pub head: Arc<Head>,
    /// Whether calls may name arguments.
    pub takes_names: bool,
    captured: Vec<Captured>,
    file: Py<PyString>,
    /// The id of the definition at an engine.
    id: Option<KnownId>,
    /// Code that spawns it, in that file.
    spawners: Vec<Spawner>,
}

/// The id of a definition at the engine of a connection, until that gives other ids.
struct KnownId {
    connection: Py<Connection>,
    renewals: u32,
    id: u32,
}

/// Code in which a task is spawned.
struct Spawner {
    code: Py<PyAny>,
    /// Lines of spawns, each with its place in the code. Python reads through the code's table of
    /// lines for each of them.
    lines: Vec<(i64, u32)>,
}

#[pymethods]
impl Function {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Function {
        Function {
            known: None,
            suits_root: None,
            runs_early: None,
            keeps_waiting: false,
        }
    }

    /// Plain calls of `function` that are spawned in `file` may be kept: `head` precedes their
    /// arguments in payloads. `captured` are globals that must not be assigned again, each with
    /// its namespace and its value. With `takes_names` arguments may have names.
    fn keep_plain_calls(
        &mut self,
        function: Py<PyAny>,
        file: Py<PyString>,
        definition: Py<Definition>,
        head: &[u8],
        captured: &Bound<'_, PyList>,
        takes_names: bool,
    ) -> PyResult<()> {
        self.known = Some(Known {
            definition,
            function,
            head: Head::new(head),
            takes_names,
            captured: captured.extract()?,
            file,
            id: None,
            spawners: Vec::new(),
        });
        Ok(())
    }

    /// Whether plain calls that are spawned in that file are known.
    fn knows_plain_calls(&self, file: &Bound<'_, PyString>) -> PyResult<bool> {
        let known = self.known.as_ref();
        known.map_or(Ok(false), |known| known.is_in(file))
    }

    /// Spawns a call: natively if it is plain, else by `_spawned_here`.
    #[pyo3(signature = (*args, **kwargs))]
    fn spawn(
        slf: &Bound<'_, Function>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let named = kwargs.filter(|kwargs| !kwargs.is_empty());
        if let Some(future) = stack::spawn(slf, args, named, None)? {
            return Ok(future);
        }
        let kwargs = kwargs.cloned().unwrap_or_else(|| PyDict::new(py));
        let spawned = slf.call_method1(intern!(py, "_spawned_here"), (args, kwargs))?;
        Ok(spawned.unbind())
    }

    /// Spawns a plain call natively, on behalf of that line of a file; `None` if it is Python's.
    fn spawn_from(
        slf: &Bound<'_, Function>,
        args: &Bound<'_, PyTuple>,
        file: &Bound<'_, PyString>,
        line: u32,
    ) -> PyResult<Option<Py<PyAny>>> {
        stack::spawn(slf, args, None, Some((file, line)))
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
    /// Whether that is the file that is known.
    ///
    /// # Errors
    /// Those of Python.
    pub fn is_in(&self, file: &Bound<'_, PyString>) -> PyResult<bool> {
        Ok(file.is(&self.file) || file.as_any().eq(&self.file)?)
    }

    /// The line of the Python function that runs, if that is in the file that is known.
    ///
    /// # Errors
    /// Those of Python.
    pub fn line_now(&mut self, py: Python<'_>) -> PyResult<Option<u32>> {
        let Some((frame, code)) = running(py) else {
            return Ok(None);
        };
        let found = self.spawners.iter_mut().find(|one| one.code.is(&code));
        if let Some(spawner) = found {
            return spawner.line_in(&frame).map(Some);
        }
        let file = code.bind(py).getattr(intern!(py, "co_filename"))?;
        if !file.eq(&self.file)? {
            return Ok(None);
        }
        if self.spawners.len() < SPAWNERS_MAX {
            let lines = Vec::new();
            self.spawners.push(Spawner { code, lines });
        }
        Ok(Some(line_of(&frame)))
    }

    /// The id of the definition at the engine of that connection, if it was noted and is not void.
    pub fn id_at(&self, connection: &Py<Connection>) -> Option<u32> {
        let is_it = |known: &&KnownId| {
            known.connection.is(connection) && known.renewals == connection.get().sent.renewals()
        };
        self.id.as_ref().filter(is_it).map(|known| known.id)
    }

    /// Notes the id of the definition, which was given after so many renewals.
    pub fn note_id(&mut self, connection: Py<Connection>, renewals: u32, id: u32) {
        self.id = Some(KnownId {
            connection,
            renewals,
            id,
        });
    }

    /// Whether the globals that it captures are as they were.
    pub fn is_unchanged(&self, py: Python<'_>) -> bool {
        let mut captured = self.captured.iter();
        captured.all(|(namespace, name, value)| is_at(namespace, name, value, py))
    }
}

impl Spawner {
    /// The line at which a frame of its code is.
    fn line_in(&mut self, frame: &Bound<'_, PyAny>) -> PyResult<u32> {
        let place = place_in(frame)?;
        if let Some((_, line)) = self.lines.iter().find(|(known, _)| *known == place) {
            return Ok(*line);
        }
        let line = line_of(frame);
        if self.lines.len() < LINES_MAX {
            self.lines.push((place, line));
        }
        Ok(line)
    }
}

/// The Python function that runs, and its code; `None` if none does.
fn running(py: Python<'_>) -> Option<(Bound<'_, PyAny>, Py<PyAny>)> {
    // SAFETY: this thread is attached to the interpreter. The frame is borrowed and becomes a new
    // reference; its code is one.
    unsafe {
        let frame = ffi::PyEval_GetFrame();
        let whole = Bound::from_borrowed_ptr_or_opt(py, frame.cast())?;
        let code = ffi::PyFrame_GetCode(frame).cast::<ffi::PyObject>();
        Some((whole, Bound::from_owned_ptr_or_opt(py, code)?.unbind()))
    }
}

/// The function of the interpreter that says at which instruction a frame is.
type LastInstruction = unsafe extern "C" fn(*mut ffi::PyFrameObject) -> c_int;

/// Where in its code a frame is. The function is in the interface of each CPython from 3.11, but
/// not in the stable part of it, so it is looked up; the attribute costs ten times as much.
fn place_in(frame: &Bound<'_, PyAny>) -> PyResult<i64> {
    static FOUND: OnceLock<Option<LastInstruction>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        // SAFETY: the name is terminated. What the interpreter exports by it has this type.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, c"PyFrame_GetLasti".as_ptr());
            std::mem::transmute::<*mut c_void, Option<LastInstruction>>(found)
        }
    });
    match found {
        // SAFETY: this thread is attached, and the object is a frame.
        Some(read) => Ok(unsafe { read(frame.as_ptr().cast()) }.into()),
        None => frame.getattr(intern!(frame.py(), "f_lasti"))?.extract(),
    }
}

/// The line at which a frame is, 0 if that is unknown.
fn line_of(frame: &Bound<'_, PyAny>) -> u32 {
    // SAFETY: this thread is attached to the interpreter, and the object is a frame.
    let line = unsafe { ffi::PyFrame_GetLineNumber(frame.as_ptr().cast()) };
    u32::try_from(line).unwrap_or(0)
}
