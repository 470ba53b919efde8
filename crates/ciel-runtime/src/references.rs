//! References inside arguments in JSON: `{"$ref": i}` is input `i`.

use serde_json::Value;

/// The key under which a reference stands in arguments.
const REFERENCE: &str = "$ref";

/// The index of an input, if `value` is a reference.
pub(crate) fn reference(value: &Value) -> Option<usize> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.get(REFERENCE)?.as_u64().map(|index| index as usize)
}
