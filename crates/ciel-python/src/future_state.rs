//! What a future holds: its strand, its handle, and what is known of the value.
//!
//! A future of a child that no engine knows of holds the call itself. It knows neither how to wait
//! nor how to run a call. Read next: `stack.rs`, `sdk/python/ciel/_future.py`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::counted::Counted;
use crate::function::Function;
use crate::inside::Inside;
use crate::unpacked::plain_value;

/// The native half of `Future`.
#[pyclass(subclass, weakref, module = "ciel._native")]
pub struct FutureState {
    /// Whose future it is.
    pub owner: Owner,
    /// The strand's number for it.
    pub handle: u32,
    /// What is known of its value.
    pub state: State,
    /// Whether the strand has waited for it.
    #[pyo3(get, set, name = "_waited")]
    pub waited: bool,
}

/// The strand of a future.
pub enum Owner {
    /// The object that stands for it in Python.
    Strand(Py<PyAny>),
    /// One that runs in place, and may have none.
    Inside(Py<Inside>),
    /// The garbage collector has taken it.
    Gone,
}

/// What is known of the value of a future.
pub enum State {
    /// Nothing, or what Python has said.
    Known(Option<Py<PyAny>>),
    /// Its task may be kept, as a plain call.
    Plain(Call),
    /// Its task may be kept; Python knows the call.
    Kept(Py<PyAny>),
    /// Its task has ended in place with a plain value.
    Ended(Py<PyAny>),
}

/// A plain call.
pub struct Call {
    /// Its task.
    pub function: Py<Function>,
    /// Its arguments, which cannot change.
    pub args: Py<PyTuple>,
    /// Those that have names, if any do.
    pub named: Option<Py<PyDict>>,
    /// Index of the spawn.
    pub action: u64,
}

#[pymethods]
impl FutureState {
    /// `handle` is the strand's number for the future, `known` the state of what is behind it. One
    /// without a strand gets it natively.
    #[new]
    #[pyo3(signature = (strand = None, handle = 0, known = None))]
    fn new(strand: Option<Py<PyAny>>, handle: u32, known: Option<Py<PyAny>>) -> FutureState {
        FutureState {
            owner: strand.map_or(Owner::Gone, Owner::Strand),
            handle,
            state: State::Known(known),
            waited: false,
        }
    }

    #[getter(_handle)]
    fn handle(&self) -> u32 {
        self.handle
    }

    #[getter(_strand)]
    fn strand(slf: Bound<'_, FutureState>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let inside = match &slf.borrow().owner {
            Owner::Strand(strand) => return Ok(strand.clone_ref(py)),
            Owner::Inside(inside) => inside.clone_ref(py),
            Owner::Gone => return Ok(py.None()),
        };
        Inside::strand(inside.bind(py))
    }

    #[getter(_known)]
    fn known(slf: &Bound<'_, FutureState>) -> PyResult<Option<Py<PyAny>>> {
        let py = slf.py();
        let value = match &slf.borrow().state {
            State::Known(known) => return Ok(known.as_ref().map(|known| known.clone_ref(py))),
            State::Plain(_) | State::Kept(_) => return Ok(None),
            State::Ended(value) => value.clone_ref(py),
        };
        let known = returned(py)?.call1((value, py.None()))?.unbind();
        let before = State::Known(Some(known.clone_ref(py)));
        let before = std::mem::replace(&mut slf.borrow_mut().state, before);
        drop(before);
        Ok(Some(known))
    }

    #[setter(_known)]
    fn set_known(slf: &Bound<'_, FutureState>, known: Option<Py<PyAny>>) {
        let before = std::mem::replace(&mut slf.borrow_mut().state, State::Known(known));
        drop(before);
    }

    /// The call, as long as it may be kept.
    #[getter(_child)]
    fn child(slf: &Bound<'_, FutureState>) -> PyResult<Option<Py<PyAny>>> {
        let py = slf.py();
        let (parts, handle) = match &*slf.borrow() {
            FutureState {
                state: State::Plain(call),
                handle,
                ..
            } => (call.parts(py), *handle),
            FutureState {
                state: State::Kept(child),
                ..
            } => return Ok(Some(child.clone_ref(py))),
            _ => return Ok(None),
        };
        let (task, given, action) = parts;
        let child = kept(py)?.call1((task, given, PyBytes::new(py, b""), action, handle, false))?;
        Ok(Some(child.unbind()))
    }

    /// Whether its task has ended in place with a plain value.
    #[getter(_ended_here)]
    fn ended_here(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }

    #[setter(_child)]
    fn set_child(slf: &Bound<'_, FutureState>, child: Py<PyAny>) {
        let before = std::mem::replace(&mut slf.borrow_mut().state, State::Kept(child));
        drop(before);
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        match &self.owner {
            Owner::Strand(strand) => visit.call(strand)?,
            Owner::Inside(inside) => visit.call(inside)?,
            Owner::Gone => {}
        }
        match &self.state {
            State::Known(known) => visit.call(known),
            State::Plain(call) => {
                visit.call(&call.function)?;
                visit.call(&call.args)?;
                visit.call(&call.named)
            }
            State::Kept(child) => visit.call(child),
            State::Ended(value) => visit.call(value),
        }
    }

    fn __clear__(&mut self) {
        self.owner = Owner::Gone;
        self.state = State::Known(None);
    }
}

impl FutureState {
    /// Whether its task may be kept.
    pub fn may_be_kept(&self) -> bool {
        matches!(self.state, State::Plain(_) | State::Kept(_))
    }

    /// Its task, if that may be kept.
    pub fn task(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &self.state {
            State::Plain(call) => Some(call.function.clone_ref(py).into_any()),
            State::Kept(child) => child.getattr(py, intern!(py, "task")).ok(),
            State::Known(_) | State::Ended(_) => None,
        }
    }

    /// Its call, if its task may be kept as a plain one.
    pub fn plain(&self) -> Option<&Call> {
        match &self.state {
            State::Plain(call) => Some(call),
            State::Known(_) | State::Kept(_) | State::Ended(_) => None,
        }
    }

    /// Its child has ended in place with a plain value; whether its strand has waited for that.
    pub fn end(future: &Bound<'_, FutureState>, value: &Bound<'_, PyAny>, waited: bool) {
        let py = value.py();
        let mut state = future.borrow_mut();
        state.waited = waited;
        let ended = State::Ended(value.clone().unbind());
        let before = std::mem::replace(&mut state.state, ended);
        drop(state);
        if let State::Plain(call) = before {
            call.drop_ref(py);
        }
    }
}

/// Arguments as Python has them: by place, and by name.
pub type Given = (Py<PyTuple>, Py<PyDict>);

impl Call {
    fn parts(&self, py: Python<'_>) -> (Py<Function>, Given, u64) {
        (self.function.clone_ref(py), self.given(py), self.action)
    }

    /// Drops what it refers to, at once: the caller is known to be attached.
    pub fn drop_ref(self, py: Python<'_>) {
        self.function.drop_ref(py);
        self.args.drop_ref(py);
        if let Some(named) = self.named {
            named.drop_ref(py);
        }
    }

    /// The same call.
    pub fn clone_ref(&self, py: Python<'_>) -> Call {
        Call {
            function: self.function.clone_ref(py),
            args: self.args.clone_ref(py),
            named: self.named.as_ref().map(|named| named.clone_ref(py)),
            action: self.action,
        }
    }

    /// Its arguments.
    pub fn given(&self, py: Python<'_>) -> Given {
        let named = self.named.as_ref().map(|named| named.clone_ref(py));
        let named = named.unwrap_or_else(|| PyDict::new(py).unbind());
        (self.args.clone_ref(py), named)
    }
}

impl Drop for FutureState {
    /// Tells the strand, which lets the engine remove what no program can name. Of a child that has
    /// ended in place the engine has nothing.
    fn drop(&mut self) {
        if matches!(self.state, State::Ended(_)) {
            return;
        }
        let owner = std::mem::replace(&mut self.owner, Owner::Gone);
        let handle = self.handle;
        Python::try_attach(|py| owner.let_go(py, handle));
    }
}

impl Owner {
    /// Tells the strand that nobody asks for the result with that handle any more.
    pub fn let_go(&self, py: Python<'_>, handle: u32) {
        match self {
            Owner::Strand(strand) => let_go(strand.bind(py), handle),
            Owner::Inside(inside) => Inside::let_go(inside.bind(py), handle),
            Owner::Gone => {}
        }
    }

    /// The same strand.
    pub fn clone_ref(&self, py: Python<'_>) -> Owner {
        match self {
            Owner::Strand(strand) => Owner::Strand(strand.clone_ref(py)),
            Owner::Inside(inside) => Owner::Inside(inside.clone_ref(py)),
            Owner::Gone => Owner::Gone,
        }
    }
}

/// Tells a strand that a future with that handle is gone. One with an engine counts it natively:
/// the garbage collector may be about to clear its dictionary.
fn let_go(strand: &Bound<'_, PyAny>, handle: u32) {
    let py = strand.py();
    if let Ok(counted) = strand.cast::<Counted>() {
        // What holds it for longer than a moment drops no futures meanwhile.
        if let Ok(mut counted) = counted.try_borrow_mut() {
            counted.let_go(handle);
        }
        return;
    }
    let raised = PyErr::take(py);
    let told = strand.call_method1(pyo3::intern!(py, "let_go"), (handle,));
    if let Err(error) = told {
        error.write_unraisable(py, None);
    }
    if let Some(raised) = raised {
        raised.restore(py);
    }
}

/// The arguments of a call whose futures have small plain values by now, with these in their place:
/// each a copy of its own. `None` if a future has none.
///
/// # Errors
/// Those of `pickle.loads`.
#[pyfunction]
pub fn plain_arguments<'py>(args: &Bound<'py, PyTuple>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let mut values = Vec::with_capacity(args.len());
    for given in args.iter_borrowed() {
        let Ok(future) = given.cast::<FutureState>() else {
            values.push(given.to_owned());
            continue;
        };
        let known = match &future.borrow().state {
            State::Known(Some(known)) => known.bind(args.py()).clone(),
            _ => return Ok(None),
        };
        match plain_value(&known)? {
            Some(value) => values.push(value),
            None => return Ok(None),
        }
    }
    PyTuple::new(args.py(), values).map(Some)
}

/// Whether what is known of a value is the result of a child that ended in place.
///
/// # Errors
/// Those of Python.
pub(crate) fn is_returned(known: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(known.get_type().is(returned(known.py())?))
}

fn returned(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static RETURNED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    RETURNED.import(py, "ciel._in_place", "Returned")
}

fn kept(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static KEPT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    KEPT.import(py, "ciel._in_place", "Kept")
}
