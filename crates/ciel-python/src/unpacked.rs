//! The call in a payload, of plain values and of futures that have plain values by now.
//!
//! `arguments.rs` writes such calls; any other payload is Python's to read. It knows no tasks. Read
//! next: `Unpacked` in `sdk/python/ciel/_payload.py`, which reads all payloads.

use std::ops::Range;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList, PyString, PyTuple};

use crate::reference::Value;

/// Flags of a call that goes by the name of its function, without and with futures.
const BY_NAME: u8 = 1;
const WITH_PLACES: u8 = BY_NAME | 32;

/// Where the head of a payload has the length of its function's header, the number of its
/// references, and the step of its strand; the header follows.
const LENGTH_AT: Range<usize> = 1..3;
const COUNT_AT: Range<usize> = 3..7;
const STEP_AT: Range<usize> = 7..15;

/// Bytes of a value that is read here, at most.
const BYTES_MAX: usize = 4 << 10;

/// How the values begin that Python's pickles of protocol 5 are, and how a frame in them does.
const BEGIN: [u8; 2] = [0x80, 5];
const FRAME: u8 = 0x95;
const FRAME_BYTES: usize = 9;

/// In a pickle with a function or class there is this byte.
const NAMES: u8 = 0x93;

/// The header of a function, arguments, and arguments by name.
type Call<'py> = (Bound<'py, PyBytes>, Bound<'py, PyTuple>, Bound<'py, PyDict>);

/// The call of a task that begins its strand: the header of its function, its arguments, those by
/// name. `None` if the payload is not one of a plain call, or an input is no small plain value.
///
/// # Errors
/// Those of `pickle.loads`.
#[pyfunction]
pub fn plain_call<'py>(
    payload: &Bound<'py, PyBytes>,
    inputs: &Bound<'py, PyList>,
) -> PyResult<Option<Call<'py>>> {
    let py = payload.py();
    let bytes = payload.as_bytes();
    let Some(call) = Parts::of(bytes) else {
        return Ok(None);
    };
    let arguments = match call.count {
        None if inputs.is_empty() => without_places(py, call.body)?,
        Some(count) if count == inputs.len() => {
            let arguments = with_places(py, call.body, inputs)?;
            arguments.map(|arguments| (arguments, PyDict::new(py)))
        }
        _ => None,
    };
    let header = |(arguments, named)| (PyBytes::new(py, call.header), arguments, named);
    Ok(arguments.map(header))
}

/// A payload without its head.
struct Parts<'a> {
    header: &'a [u8],
    /// How many arguments are futures, if they may be.
    count: Option<usize>,
    body: &'a [u8],
}

impl Parts<'_> {
    fn of(payload: &[u8]) -> Option<Parts<'_>> {
        let (head, rest) = payload.split_at_checked(STEP_AT.end)?;
        let has_places = match head[0] {
            BY_NAME => false,
            WITH_PLACES => true,
            _ => return None,
        };
        let length = u16::from_be_bytes(head[LENGTH_AT].try_into().ok()?);
        let count = u32::from_be_bytes(head[COUNT_AT].try_into().ok()?);
        let (header, body) = rest.split_at_checked(length.into())?;
        let is_first = head[STEP_AT].iter().all(|byte| *byte == 0);
        is_first.then_some(Parts {
            header,
            count: has_places.then_some(count as usize),
            body,
        })
    }
}

fn without_places<'py>(
    py: Python<'py>,
    body: &[u8],
) -> PyResult<Option<(Bound<'py, PyTuple>, Bound<'py, PyDict>)>> {
    if body.is_empty() {
        return Ok(Some((PyTuple::empty(py), PyDict::new(py))));
    }
    if body.contains(&NAMES) {
        return Ok(None);
    }
    let found = loads(py, body)?.cast_into::<PyTuple>()?;
    Ok(match found.len() {
        1 => {
            let arguments = found.get_item(0)?.cast_into()?;
            Some((arguments, PyDict::new(py)))
        }
        2 => {
            let named = found.get_item(1)?.cast_into()?;
            Some((found.get_item(0)?.cast_into()?, named))
        }
        _ => None,
    })
}

fn with_places<'py>(
    py: Python<'py>,
    body: &[u8],
    inputs: &Bound<'py, PyList>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    if body.contains(&NAMES) {
        return Ok(None);
    }
    let mut values = Vec::with_capacity(inputs.len());
    for input in inputs {
        let Some(value) = plain_value(&input)? else {
            return Ok(None);
        };
        values.push(value);
    }
    let (arguments, places): (Bound<'py, PyList>, Vec<usize>) = loads(py, body)?.extract()?;
    if places.len() != values.len() {
        return Ok(None);
    }
    for (value, place) in values.into_iter().zip(places) {
        arguments.set_item(place, value)?;
    }
    Ok(Some(arguments.to_tuple()))
}

/// The value that a reference has, if it is small and plain; its own copy.
///
/// # Errors
/// Those of `pickle.loads`.
pub fn plain_value<'py>(input: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = input.py();
    let Ok(value) = input.cast_exact::<Value>() else {
        return Ok(None);
    };
    let value = value.get();
    let data = value.data.bind(py);
    let bytes = data.as_bytes();
    if bytes.len() >= BYTES_MAX || !value.references.bind(py).is_empty() {
        return Ok(None);
    }
    // Names of forms are interned.
    let form = value.form.bind(py);
    if form.is(intern!(py, "pickle")) {
        return match atom(py, bytes) {
            Some(value) => Ok(Some(value)),
            None if bytes.contains(&NAMES) || !bytes.ends_with(b".") => Ok(None),
            None => loads(py, bytes).map(Some),
        };
    }
    if form.is(intern!(py, "text")) {
        let text = std::str::from_utf8(bytes).ok();
        return Ok(text.map(|text| PyString::new(py, text).into_any()));
    }
    Ok(form
        .is(intern!(py, "bytes"))
        .then(|| data.clone().into_any()))
}

/// The value of a pickle of a number, a truth or `None`.
fn atom<'py>(py: Python<'py>, pickle: &[u8]) -> Option<Bound<'py, PyAny>> {
    let word = pickle.strip_prefix(&BEGIN)?;
    let word = match word.first()? {
        &FRAME => word.get(FRAME_BYTES..)?,
        _ => word,
    };
    let number = |number: i32| number.into_pyobject(py).ok().map(Bound::into_any);
    match word {
        [b'K', byte, b'.'] => number((*byte).into()),
        [b'M', a, b, b'.'] => number(u16::from_le_bytes([*a, *b]).into()),
        [b'J', a, b, c, d, b'.'] => number(i32::from_le_bytes([*a, *b, *c, *d])),
        [b'G', float @ .., b'.'] => {
            let float = f64::from_be_bytes(float.try_into().ok()?);
            Some(PyFloat::new(py, float).into_any())
        }
        [truth @ (0x88 | 0x89), b'.'] => {
            Some(PyBool::new(py, *truth == 0x88).to_owned().into_any())
        }
        [b'N', b'.'] => Some(py.None().into_bound(py)),
        _ => None,
    }
}

fn loads<'py>(py: Python<'py>, pickle: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let loads = LOADS.import(py, "pickle", "loads")?;
    loads.call1((PyBytes::new(py, pickle),))
}
