//! References inside arguments in JSON: `{"$ref": i}` is input `i`.

use serde_json::Value;

/// The key under which a reference stands in arguments.
const REFERENCE: &str = "$ref";

/// The index of an input, if `value` is a reference.
pub(crate) fn reference(value: &Value) -> Option<usize> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.get(REFERENCE)?.as_u64().map(|index| index as usize)
}

/// The inputs that are named anywhere in arguments, each as often as it is.
pub(crate) fn all(arguments: &Value) -> Vec<usize> {
    match (reference(arguments), arguments) {
        (Some(index), _) => vec![index],
        (None, Value::Array(list)) => list.iter().flat_map(all).collect(),
        (None, Value::Object(entries)) => entries.values().flat_map(all).collect(),
        (None, _) => Vec::new(),
    }
}
