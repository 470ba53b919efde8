//! A child that has begun in place natively, and has no strand in Python until one is asked for.
//!
//! It does not know what runs below it. Read next: `stack.rs`.

use ciel_model::Name;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit};

use crate::counted::Counted;
use crate::future_state::Call;

/// The strand of such a child.
#[pyclass(module = "ciel._native")]
pub struct Inside {
    /// Its name.
    pub name: Name,
    /// Strands in place below it.
    pub depth: u32,
    /// Index of its next action, as long as it has no strand in Python.
    pub next_action: u64,
    /// Its next handle, likewise.
    pub next_handle: u32,
    /// Heartbeats before it began.
    pub begun_beats: u64,
    /// Its strand in Python.
    pub strand: Option<Py<PyAny>>,
    /// The native half of that.
    pub counted: Option<Py<Counted>>,
    /// What it runs; `None` once it has ended, and may be used again.
    call: Option<Call>,
    handle: u32,
    /// Handles of futures that are gone.
    released: Vec<u32>,
}

#[pymethods]
impl Inside {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(call) = &self.call {
            visit.call(&call.function)?;
            visit.call(&call.args)?;
            visit.call(&call.named)?;
        }
        visit.call(&self.strand)?;
        visit.call(&self.counted)
    }

    fn __clear__(&mut self) {
        self.strand = None;
        self.counted = None;
    }
}

impl Inside {
    /// It has done nothing.
    pub fn new(
        name: Name,
        depth: u32,
        call: &Call,
        py: Python<'_>,
        handle: u32,
        begun_beats: u64,
    ) -> Inside {
        Inside {
            name,
            depth,
            next_action: 0,
            next_handle: 0,
            begun_beats,
            strand: None,
            counted: None,
            call: Some(call.clone_ref(py)),
            handle,
            released: Vec::new(),
        }
    }

    /// Makes its strand by `stand`. It runs in place of `below`: a strand, to whose greenlet that
    /// switch leads, and whether it was called there.
    pub fn stand(
        slf: &Bound<'_, Inside>,
        stand: &Py<PyAny>,
        below: (Option<Py<PyAny>>, Py<PyAny>, bool),
        elapsed_s: f64,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let (call, counts) = {
            let mut inside = slf.borrow_mut();
            let released = std::mem::take(&mut inside.released);
            let own = inside.call.as_ref().expect("it has not ended");
            let call = (own.function.clone_ref(py), own.given(py));
            let counts = (
                own.action,
                inside.handle,
                inside.next_action,
                inside.next_handle,
            );
            (call, (counts, released))
        };
        let ((action, handle, next_action, next_handle), released) = counts;
        let made = stand.bind(py).call1((
            below,
            call,
            (action, handle),
            (next_action, next_handle),
            released,
            elapsed_s,
        ))?;
        let mut inside = slf.borrow_mut();
        inside.counted = Some(made.cast::<Counted>()?.clone().unbind());
        inside.strand = Some(made.clone().unbind());
        Ok(made.unbind())
    }

    /// Its strand in Python; of one that has ended without, what is left of it.
    pub fn strand(slf: &Bound<'_, Inside>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        crate::stack::stand_all(py)?;
        let name = match &*slf.borrow() {
            Inside {
                strand: Some(strand),
                ..
            } => return Ok(strand.clone_ref(py)),
            inside => inside.name,
        };
        let former = py.import("ciel._in_place")?.getattr("Former")?;
        let task = slf
            .borrow()
            .call
            .as_ref()
            .map(|call| call.function.clone_ref(py));
        let made = former
            .call1((task, PyBytes::new(py, &name.0.to_be_bytes())))?
            .unbind();
        slf.borrow_mut().strand = Some(made.clone_ref(py));
        Ok(made)
    }

    /// It has ended in place, and nobody else refers to it: it keeps nothing of its call.
    pub fn rest(&mut self, py: Python<'_>) {
        self.released.clear();
        if let Some(call) = self.call.take() {
            call.drop_ref(py);
        }
    }

    /// A future of it with that handle is gone.
    pub fn let_go(slf: &Bound<'_, Inside>, handle: u32) {
        if let Ok(mut inside) = slf.try_borrow_mut() {
            inside.released.push(handle);
        }
    }
}
