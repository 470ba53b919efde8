//! What tasks have in common, declared once for a connection: for spawns by Python, for starts by
//! the engine.
//!
//! It does not know when a declaration is sent. Read next: `connection.rs`.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use ciel_protocol::limits::DEFINITIONS_MAX;
use ciel_protocol::wire::{Define, FunctionCode, Options, Site};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};
use rustc_hash::FxHashMap;

use crate::options::TaskOptions;
use crate::reference::number;

/// The resource that is counted in thousandths of a core.
const CORES: &str = "cores";

/// One of them.
const ONE_CORE: u64 = 1000;

/// The next serial number of a definition in this process.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Code of one function or of anything that it reaches: name, file, line, digest.
type CodeFields<'py> = (String, String, u32, Bound<'py, PyBytes>);

/// What the spawns of one function have in common; made once and used for all of them.
#[pyclass(frozen, module = "ciel._native")]
pub struct Definition {
    /// Distinguishes it from all others of this process.
    serial: u64,
    define: Define,
}

#[pymethods]
impl Definition {
    #[new]
    #[expect(clippy::too_many_arguments)]
    #[pyo3(signature = (executor, label, *, code = Vec::new(), file = String::new(), outputs = 1,
                        options = None, streams = Vec::new(), stream_mode = 0,
                        single_consumer = false))]
    fn new(
        executor: String,
        label: String,
        code: Vec<CodeFields<'_>>,
        file: String,
        outputs: u32,
        options: Option<Bound<'_, TaskOptions>>,
        streams: Vec<u32>,
        stream_mode: i32,
        single_consumer: bool,
    ) -> Definition {
        let function = |(name, file, line, digest): CodeFields<'_>| FunctionCode {
            name,
            site: Some(Site { file, line }),
            digest: Bytes::copy_from_slice(digest.as_bytes()),
        };
        Definition {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            define: Define {
                id: 0,
                executor,
                label,
                code: code.into_iter().map(function).collect(),
                file,
                outputs,
                options: options.map(|options| options.get().to_wire()),
                streams,
                stream_mode,
                single_consumer,
            },
        }
    }

    #[getter]
    fn label(&self) -> &str {
        &self.define.label
    }

    #[getter]
    fn outputs(&self) -> u32 {
        self.define.outputs
    }

    #[getter]
    fn options(&self) -> TaskOptions {
        TaskOptions::of_wire(self.define.options.clone().unwrap_or_default())
    }

    fn __repr__(&self) -> String {
        format!("<Definition of {}>", self.define.label)
    }
}

/// The definitions that the engine has of Python.
#[derive(Default)]
pub struct Sent {
    ids: Mutex<FxHashMap<u64, u32>>,
    renewals: AtomicU32,
}

impl Sent {
    /// The id of a definition, and the definition if the engine does not have it.
    pub fn id_of(&self, definition: &Definition) -> (u32, Option<Define>) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = ids.get(&definition.serial) {
            return (*id, None);
        }
        if ids.len() >= DEFINITIONS_MAX as usize {
            ids.clear();
            self.renewals.fetch_add(1, Ordering::Relaxed);
        }
        let id = ids.len() as u32;
        ids.insert(definition.serial, id);
        let define = Define {
            id,
            ..definition.define.clone()
        };
        (id, Some(define))
    }

    /// How often all ids have become void, and others were given.
    pub fn renewals(&self) -> u32 {
        self.renewals.load(Ordering::Relaxed)
    }
}

/// The definitions that Python has of the engine.
#[derive(Default)]
pub struct Received {
    known: FxHashMap<u32, Entry>,
}

/// A definition of the engine; what Python sees of it is made at the first start.
struct Entry {
    define: Define,
    python: Option<StartDefinition>,
}

/// What Python sees of a definition of the engine.
pub struct StartDefinition {
    /// The function.
    pub label: String,
    /// Number of outputs.
    pub outputs: Py<PyInt>,
    /// Cores that the task may keep busy.
    pub cores: Py<PyInt>,
    /// What it was granted.
    pub options: Py<TaskOptions>,
    /// Whether it has one output, and nothing but one core.
    pub is_usual: bool,
}

impl Received {
    /// The engine declares something.
    pub fn add(&mut self, define: Define) {
        let python = None;
        self.known.insert(define.id, Entry { define, python });
    }

    /// The definition with that id; none if there is none.
    ///
    /// # Errors
    /// Those of Python, which has no memory.
    pub fn find(&mut self, py: Python<'_>, id: u32) -> PyResult<Option<&StartDefinition>> {
        let Some(entry) = self.known.get_mut(&id) else {
            return Ok(None);
        };
        if entry.python.is_none() {
            entry.python = Some(python_of(py, &entry.define)?);
        }
        Ok(entry.python.as_ref())
    }
}

fn python_of(py: Python<'_>, define: &Define) -> PyResult<StartDefinition> {
    let options = define.options.clone().unwrap_or_default();
    let millicores = options.resources.get(CORES).copied().unwrap_or(0);
    Ok(StartDefinition {
        label: define.label.clone(),
        outputs: number(py, define.outputs),
        cores: number(py, millicores.div_ceil(1000).max(1)),
        is_usual: define.outputs == 1 && is_usual(&options),
        options: Py::new(py, TaskOptions::of_wire(options))?,
    })
}

/// Whether a task with these options has one core, nothing else, and no limit.
fn is_usual(options: &Options) -> bool {
    let is_one_core = |(name, amount): (&String, &u64)| name == CORES && *amount == ONE_CORE;
    options.timeout_ms.is_none() && options.resources.iter().all(is_one_core)
}
