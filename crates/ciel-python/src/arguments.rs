//! The arguments of a plain call as a pickle: the bytes that `pickle.dumps((args,), 5)` gives, or
//! `pickle.dumps((args, kwargs), 5)` if some have names.
//!
//! So a call has the same payload, whoever has packed it. Only what is common is written here:
//! numbers, text, bytes, `None`, and tuples of these. It knows no tasks. Read next: `stack.rs`;
//! `sdk/python/ciel/_payload.py` packs everything else.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    IntoPyDict, PyBool, PyBytes, PyComplex, PyComplexMethods, PyDict, PyFloat, PyInt, PyString,
    PyTuple,
};

/// Bytes of a call that are written here, at most: longer ones make a task of a call.
const BYTES_MAX: usize = 3 << 10;

/// Tuples inside one another, at most.
pub const DEPTH_MAX: usize = 8;

/// Parts of a list, at most.
const LIST_MAX: usize = 255;

const BEGIN: [u8; 3] = [0x80, 5, 0x95];

/// Bytes of a pickle from which on it says how many there are.
const FRAME_BYTES_MIN: usize = 4;

/// Bytes that most numbers take.
const ATOM_BYTES: usize = 16;

const MEMOIZE: u8 = 0x94;

/// Names that a pickle writes for a complex number.
const COMPLEX: [&str; 2] = ["builtins", "complex"];

/// What a pickle has written and can name.
#[derive(Default)]
struct Memo {
    /// What it would write once: that has to be Python's, if it is there twice.
    once: Vec<*mut pyo3::ffi::PyObject>,
    /// How much it can name.
    count: usize,
    /// The number of the class of complex numbers, once there was one.
    complex: Option<usize>,
    /// Whether there was a text that is one of the names of that class.
    has_names: bool,
}

impl Memo {
    /// What was written last has the next number.
    fn mark(&mut self, to: &mut Vec<u8>) {
        to.push(MEMOIZE);
        self.count += 1;
    }

    /// Notes a value; false if it was noted before.
    fn is_new(&mut self, value: &Bound<'_, PyAny>) -> bool {
        let is_new = !self.once.contains(&value.as_ptr());
        self.once.push(value.as_ptr());
        is_new
    }
}

/// Appends the pickle of `(args,)` to `to`, of `(args, named)` if some have names, or nothing if
/// there are no arguments; false if one of them is not to be written here: then `to` is of no use.
pub fn append(
    to: &mut Vec<u8>,
    args: &Bound<'_, PyTuple>,
    named: Option<&Bound<'_, PyDict>>,
) -> bool {
    if args.is_empty() && named.is_none() {
        return true;
    }
    append_pickle(to, 1 + u8::from(named.is_some()), |to, memo| {
        append_tuple(to, args, memo, 0) && named.is_none_or(|named| append_named(to, named, memo))
    })
}

/// Appends the pickle of `(values, places)`: `args` as a list with `None` at `places`, where
/// futures stand, and these places, which ascend; false as in `append`, and for tuples among the
/// arguments.
pub fn append_with_places(to: &mut Vec<u8>, args: &Bound<'_, PyTuple>, places: &[usize]) -> bool {
    append_pickle(to, 2, |to, memo| {
        let values = args.iter_borrowed().enumerate();
        let are_written = append_list(to, memo, values, |to, memo, (place, value)| {
            if places.binary_search(&place).is_ok() {
                to.push(b'N');
                return true;
            }
            !value.is_exact_instance_of::<PyTuple>() && append_value(to, &value, memo, 0)
        });
        let places = places.iter().map(|place| *place as i64);
        are_written && append_list(to, memo, places, |to, _, place| append_number(to, place))
    })
}

/// Appends the pickle of a tuple of so many parts, one or two, which `append` writes; false if that
/// does not, or they are long.
fn append_pickle(
    to: &mut Vec<u8>,
    count: u8,
    append: impl FnOnce(&mut Vec<u8>, &mut Memo) -> bool,
) -> bool {
    to.extend(BEGIN);
    let length_at = to.len();
    to.extend([0; 8]);
    if !append(to, &mut Memo::default()) {
        return false;
    }
    to.extend([0x84 + count, MEMOIZE, b'.']);
    let length = (to.len() - length_at - 8) as u64;
    to[length_at..length_at + 8].copy_from_slice(&length.to_le_bytes());
    length < BYTES_MAX as u64
}

/// Appends a list of parts, each written by `append`; false if one of them is not, or they are
/// many.
fn append_list<T>(
    to: &mut Vec<u8>,
    memo: &mut Memo,
    parts: impl ExactSizeIterator<Item = T>,
    mut append: impl FnMut(&mut Vec<u8>, &mut Memo, T) -> bool,
) -> bool {
    let count = parts.len();
    if count > LIST_MAX {
        return false;
    }
    to.push(b']');
    memo.mark(to);
    if count > 1 {
        to.push(b'(');
    }
    for part in parts {
        if !append(to, memo, part) || to.len() > 2 * BYTES_MAX {
            return false;
        }
    }
    match count {
        0 => {}
        1 => to.push(b'a'),
        _ => to.push(b'e'),
    }
    true
}

/// Appends a dictionary that is not empty.
fn append_named(to: &mut Vec<u8>, named: &Bound<'_, PyDict>, memo: &mut Memo) -> bool {
    let is_one = named.len() == 1;
    to.push(b'}');
    memo.mark(to);
    if !is_one {
        to.push(b'(');
    }
    for (name, value) in named.iter() {
        let is_written = append_value(to, &name, memo, 0) && append_value(to, &value, memo, 0);
        if !is_written || to.len() > 2 * BYTES_MAX {
            return false;
        }
    }
    to.push(if is_one { b's' } else { b'u' });
    true
}

fn append_tuple(
    to: &mut Vec<u8>,
    parts: &Bound<'_, PyTuple>,
    memo: &mut Memo,
    depth: usize,
) -> bool {
    let count = parts.len();
    if count > 3 {
        to.push(b'(');
    }
    for part in parts.iter_borrowed() {
        if !append_value(to, &part, memo, depth) || to.len() > 2 * BYTES_MAX {
            return false;
        }
    }
    match count {
        0 => to.push(b')'),
        1..=3 => to.push(0x84 + count as u8),
        _ => to.push(b't'),
    }
    if count > 0 {
        memo.mark(to);
    }
    true
}

fn append_value(to: &mut Vec<u8>, value: &Bound<'_, PyAny>, memo: &mut Memo, depth: usize) -> bool {
    if value.is_exact_instance_of::<PyInt>() {
        return match value.extract::<i64>() {
            Ok(number) => append_number(to, number),
            Err(_) => append_long(to, value).unwrap_or_default(),
        };
    }
    if value.is_none() {
        to.push(b'N');
    } else if let Ok(text) = value.cast_exact::<PyString>() {
        return memo.is_new(value)
            && text.to_str().is_ok_and(|text| {
                append_sized(to, memo, [0x8c, b'X'], text.as_bytes());
                memo.has_names |= COMPLEX.contains(&text);
                text.len() < BYTES_MAX && !(memo.has_names && memo.complex.is_some())
            });
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        to.push(b'G');
        to.extend(number.value().to_be_bytes());
    } else if let Ok(truth) = value.cast_exact::<PyBool>() {
        to.push(if truth.is_true() { 0x88 } else { 0x89 });
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        let bytes = bytes.as_bytes();
        append_sized(to, memo, [b'C', b'B'], bytes);
        return memo.is_new(value) && bytes.len() < BYTES_MAX;
    } else if let Ok(parts) = value.cast_exact::<PyTuple>() {
        let is_known = !parts.is_empty() && !memo.is_new(value);
        return !is_known && depth < DEPTH_MAX && append_tuple(to, parts, memo, depth + 1);
    } else if let Ok(number) = value.cast_exact::<PyComplex>() {
        return memo.is_new(value) && append_complex(to, number, memo);
    } else {
        return false;
    }
    true
}

/// The class of complex numbers, which is written once, called with two floats; false if a text is
/// called as the class or its module is: the pickle writes that once, too.
fn append_complex(to: &mut Vec<u8>, number: &Bound<'_, PyComplex>, memo: &mut Memo) -> bool {
    match memo.complex.map(u8::try_from) {
        Some(Ok(place)) => to.extend([b'h', place]),
        Some(Err(_)) => return false,
        None => {
            for name in COMPLEX {
                append_sized(to, memo, [0x8c, b'X'], name.as_bytes());
            }
            to.push(0x93);
            memo.complex = Some(memo.count);
            memo.mark(to);
        }
    }
    for part in [number.real(), number.imag()] {
        to.push(b'G');
        to.extend(part.to_be_bytes());
    }
    to.push(0x86);
    memo.mark(to);
    to.push(b'R');
    memo.mark(to);
    !memo.has_names
}

/// A number beyond 64 bits, as little as it needs; false if that is more than 255 bytes.
fn append_long(to: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let bits: usize = value.call_method0(intern!(py, "bit_length"))?.extract()?;
    let count = bits / 8 + 1;
    let Ok(length) = u8::try_from(count) else {
        return Ok(false);
    };
    let signed = [("signed", true)].into_py_dict(py)?;
    let bytes = value.call_method(intern!(py, "to_bytes"), (count, "little"), Some(&signed))?;
    let bytes = bytes.cast::<PyBytes>()?.as_bytes();
    // A negative power of two needs no byte of its own for the sign.
    let is_spare = bytes[count - 1] == 0xff && bytes[count - 2] & 0x80 != 0;
    let needed = count - usize::from(is_spare);
    to.extend([0x8a, length - u8::from(is_spare)]);
    to.extend(&bytes[..needed]);
    Ok(true)
}

/// Text or bytes, behind the first code and a length of one byte, or the second and one of four.
fn append_sized(to: &mut Vec<u8>, memo: &mut Memo, codes: [u8; 2], bytes: &[u8]) {
    if bytes.len() >= BYTES_MAX {
        return;
    }
    match u8::try_from(bytes.len()) {
        Ok(length) => to.extend([codes[0], length]),
        Err(_) => {
            to.push(codes[1]);
            to.extend((bytes.len() as u32).to_le_bytes());
        }
    }
    to.extend(bytes);
    memo.mark(to);
}

fn append_number(to: &mut Vec<u8>, number: i64) -> bool {
    if let Ok(byte) = u8::try_from(number) {
        to.extend([b'K', byte]);
    } else if let Ok(short) = u16::try_from(number) {
        to.push(b'M');
        to.extend(short.to_le_bytes());
    } else if let Ok(word) = i32::try_from(number) {
        to.push(b'J');
        to.extend(word.to_le_bytes());
    } else {
        let bytes = number.to_le_bytes();
        let is_spare = |count: usize| {
            let sign = if bytes[count - 1] & 0x80 == 0 {
                0
            } else {
                0xff
            };
            bytes[count] == sign
        };
        let mut count = bytes.len();
        while count > 1 && is_spare(count - 1) {
            count -= 1;
        }
        to.extend([0x8a, count as u8]);
        to.extend(&bytes[..count]);
    }
    true
}

/// Form and bytes of the object that carries a number, text, bytes, a truth or `None`: those that
/// `object_of` in `sdk/python/ciel/_freeze.py` gives. `None` for other values, and for long ones.
pub fn object(value: &Bound<'_, PyAny>) -> Option<(&'static str, Vec<u8>)> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        let text = text.to_str().ok().filter(|text| text.len() < BYTES_MAX)?;
        return Some(("text", text.into()));
    }
    if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        let bytes = bytes.as_bytes();
        return (bytes.len() < BYTES_MAX).then(|| ("bytes", bytes.to_vec()));
    }
    let has_parts =
        value.is_exact_instance_of::<PyTuple>() || value.is_exact_instance_of::<PyComplex>();
    let mut body = Vec::with_capacity(ATOM_BYTES);
    if has_parts || !append_value(&mut body, value, &mut Memo::default(), 0) {
        return None;
    }
    body.push(b'.');
    let mut pickle = BEGIN.to_vec();
    match body.len() < FRAME_BYTES_MIN {
        true => pickle.truncate(BEGIN.len() - 1),
        false => pickle.extend((body.len() as u64).to_le_bytes()),
    }
    pickle.append(&mut body);
    Some(("pickle", pickle))
}

/// As `object_of` in `sdk/python/ciel/_freeze.py` for a plain value, but for its references, of
/// which it has none; `None` for values that are not written here.
#[pyfunction]
pub fn packed_atom<'py>(value: Bound<'py, PyAny>) -> Option<(&'static str, Bound<'py, PyBytes>)> {
    object(&value).map(|(form, bytes)| (form, PyBytes::new(value.py(), &bytes)))
}

/// As `pickle.dumps((args,), 5)`, or `pickle.dumps((args, named), 5)`, or nothing without
/// arguments; `None` for values that are not written here.
#[pyfunction]
#[pyo3(signature = (args, named = None))]
pub fn packed_arguments<'py>(
    args: Bound<'py, PyTuple>,
    named: Option<Bound<'py, PyDict>>,
) -> Option<Bound<'py, PyBytes>> {
    let mut packed = Vec::new();
    append(&mut packed, &args, named.as_ref()).then(|| PyBytes::new(args.py(), &packed))
}

/// As `pickle.dumps((values, places), 5)`, where `values` is the list of `args` with `None` at
/// `places`; `None` for values that are not written here.
#[pyfunction]
pub fn packed_with_places<'py>(
    args: Bound<'py, PyTuple>,
    places: Vec<usize>,
) -> Option<Bound<'py, PyBytes>> {
    let mut packed = Vec::new();
    append_with_places(&mut packed, &args, &places).then(|| PyBytes::new(args.py(), &packed))
}
