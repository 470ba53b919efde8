//! The options of a spawn, as one object that is built once and used for many spawns.

use std::collections::BTreeMap;

use ciel_protocol::wire::{Options, Purity, Retention};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

/// The resource counted in thousandths of a core.
const CORES: &str = "cores";
/// The resource counted in bytes.
const MEMORY: &str = "memory";

/// Cores, memory, retries and other options of a task.
#[pyclass(frozen, eq, module = "ciel._native")]
#[derive(PartialEq)]
pub struct TaskOptions(Options);

impl TaskOptions {
    /// The options as they came.
    pub fn of_wire(options: Options) -> TaskOptions {
        TaskOptions(options)
    }

    /// The options as the protocol has them.
    pub fn to_wire(&self) -> Options {
        self.0.clone()
    }
}

#[pymethods]
impl TaskOptions {
    #[new]
    #[pyo3(signature = (
        cores_milli = None, memory_bytes = None, resources = BTreeMap::new(), retries = None,
        timeout_ms = None, lazy = false, pure = None, live = false, keep = None
    ))]
    #[expect(clippy::too_many_arguments)]
    fn new(
        cores_milli: Option<u64>,
        memory_bytes: Option<u64>,
        mut resources: BTreeMap<String, u64>,
        retries: Option<u32>,
        timeout_ms: Option<u64>,
        lazy: bool,
        pure: Option<bool>,
        live: bool,
        keep: Option<bool>,
    ) -> TaskOptions {
        resources.extend(cores_milli.map(|amount| (CORES.to_owned(), amount)));
        resources.extend(memory_bytes.map(|amount| (MEMORY.to_owned(), amount)));
        let purity = match pure {
            None => Purity::Unspecified,
            Some(true) => Purity::Pure,
            Some(false) => Purity::Impure,
        };
        let keep = match keep {
            None => Retention::Unspecified,
            Some(true) => Retention::Keep,
            Some(false) => Retention::Never,
        };
        TaskOptions(Options {
            resources,
            retries,
            timeout_ms,
            lazy,
            purity: purity.into(),
            live,
            keep: keep.into(),
        })
    }

    #[getter]
    fn cores_milli(&self) -> Option<u64> {
        self.0.resources.get(CORES).copied()
    }

    #[getter]
    fn memory_bytes(&self) -> Option<u64> {
        self.0.resources.get(MEMORY).copied()
    }

    /// Other resources by name, in thousandths.
    #[getter]
    fn resources(&self) -> BTreeMap<&str, u64> {
        let all = self.0.resources.iter();
        all.filter(|(name, _)| *name != CORES && *name != MEMORY)
            .map(|(name, amount)| (name.as_str(), *amount))
            .collect()
    }

    #[getter]
    fn retries(&self) -> Option<u32> {
        self.0.retries
    }

    #[getter]
    fn timeout_ms(&self) -> Option<u64> {
        self.0.timeout_ms
    }

    #[getter]
    fn lazy(&self) -> bool {
        self.0.lazy
    }

    /// Whether equal calls share one result; `None` if the executor decides.
    #[getter]
    fn pure(&self) -> Option<bool> {
        match self.0.purity() {
            Purity::Unspecified => None,
            Purity::Pure => Some(true),
            Purity::Impure => Some(false),
        }
    }

    #[getter]
    fn live(&self) -> bool {
        self.0.live
    }

    /// Whether the result is kept for later runs; `None` if the run decides.
    #[getter]
    fn keep(&self) -> Option<bool> {
        match self.0.keep() {
            Retention::Unspecified => None,
            Retention::Keep => Some(true),
            Retention::Never => Some(false),
        }
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, TaskOptions>,
    ) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let one = slf.get();
        let fields = (
            one.cores_milli(),
            one.memory_bytes(),
            one.resources(),
            one.retries(),
            one.timeout_ms(),
            one.lazy(),
            one.pure(),
            one.live(),
            one.keep(),
        );
        Ok((slf.get_type(), fields.into_pyobject(slf.py())?))
    }

    fn __repr__(&self) -> String {
        format!("TaskOptions({:?})", self.0)
    }
}
