//! The arguments of a plain call as a pickle: the bytes that `pickle.dumps((args,), 5)` gives.
//!
//! So a call has the same payload, whoever has packed it. Only what is common is written here:
//! small numbers, text, bytes, `None`. It knows no tasks. Read next: `stack.rs`;
//! `sdk/python/ciel/_payload.py` packs everything else.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

/// Bytes of a call that are written here, at most: longer ones make a task of a call.
const BYTES_MAX: usize = 3 << 10;

const BEGIN: [u8; 3] = [0x80, 5, 0x95];
const MEMOIZE: u8 = 0x94;

/// Appends the pickle of `(args,)` to `to`, or nothing if there are no arguments; false if one of
/// them is not to be written here: then `to` is of no use.
pub fn append(to: &mut Vec<u8>, args: &Bound<'_, PyTuple>) -> bool {
    let count = args.len();
    if count == 0 {
        return true;
    }
    to.extend(BEGIN);
    let length_at = to.len();
    to.extend([0; 8]);
    if count > 3 {
        to.push(b'(');
    }
    for (place, value) in args.iter_borrowed().enumerate() {
        if !append_value(to, &value) || is_repeated(args, place, &value) {
            return false;
        }
    }
    to.push(match count {
        1 => 0x85,
        2 => 0x86,
        3 => 0x87,
        _ => b't',
    });
    to.extend([MEMOIZE, 0x85, MEMOIZE, b'.']);
    let length = (to.len() - length_at - 8) as u64;
    to[length_at..length_at + 8].copy_from_slice(&length.to_le_bytes());
    length < BYTES_MAX as u64
}

/// Whether a value that a pickle would write once is among the arguments before.
fn is_repeated(args: &Bound<'_, PyTuple>, place: usize, value: &Bound<'_, PyAny>) -> bool {
    let is_memoized =
        value.is_exact_instance_of::<PyString>() || value.is_exact_instance_of::<PyBytes>();
    is_memoized
        && args
            .iter_borrowed()
            .take(place)
            .any(|before| before.is(value))
}

fn append_value(to: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> bool {
    if value.is_exact_instance_of::<PyInt>() {
        return value.extract::<i64>().is_ok_and(|number| {
            append_number(to, number);
            true
        });
    }
    if value.is_none() {
        to.push(b'N');
    } else if let Ok(text) = value.cast_exact::<PyString>() {
        return text.to_str().is_ok_and(|text| {
            append_sized(to, [0x8c, b'X'], text.as_bytes());
            text.len() < BYTES_MAX
        });
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        to.push(b'G');
        to.extend(number.value().to_be_bytes());
    } else if let Ok(truth) = value.cast_exact::<PyBool>() {
        to.push(if truth.is_true() { 0x88 } else { 0x89 });
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        let bytes = bytes.as_bytes();
        append_sized(to, [b'C', b'B'], bytes);
        return bytes.len() < BYTES_MAX;
    } else {
        return false;
    }
    true
}

/// Text or bytes, behind the first code and a length of one byte, or the second and one of four.
fn append_sized(to: &mut Vec<u8>, codes: [u8; 2], bytes: &[u8]) {
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
    to.push(MEMOIZE);
}

fn append_number(to: &mut Vec<u8>, number: i64) {
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
}

/// As `pickle.dumps((args,), 5)`, or nothing without arguments; `None` for values that are not
/// written here.
#[pyfunction]
pub fn packed_arguments<'py>(args: Bound<'py, PyTuple>) -> Option<Bound<'py, PyBytes>> {
    let mut packed = Vec::new();
    append(&mut packed, &args).then(|| PyBytes::new(args.py(), &packed))
}
