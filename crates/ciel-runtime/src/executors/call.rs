//! What a call depends on beside the contents of its inputs, as its executor knows it.
//!
//! It does not know what is made of that. Read next: `keeper::parts`.

use std::collections::BTreeMap;
use std::sync::Arc;

use ciel_model::{Descriptor, Digest, FunctionCode, Reached};
use serde_json::Value;

use super::words;

/// What a call depends on.
pub(crate) struct Call {
    /// The code that it may reach.
    pub(crate) functions: Reached,
    /// Variables of the program that this code captures.
    pub(crate) variables: Vec<FunctionCode>,
    /// Of all else, but the inputs.
    pub(crate) payload: Digest,
    /// That piece by piece, to name the one that differs; may be empty.
    pub(crate) arguments: Vec<(Arc<str>, Digest)>,
    /// Names of inputs, by their numbers, as far as they have any.
    pub(crate) inputs: BTreeMap<usize, Arc<str>>,
}

impl Call {
    /// That of a task whose payload has no code in it; arguments have names if it is JSON.
    pub(crate) fn plain(descriptor: &Descriptor) -> Call {
        let payload: &[u8] = &descriptor.payload;
        // Nothing else has members, and to find that a pickle is no JSON takes an error.
        let is_object = payload.trim_ascii_start().first() == Some(&b'{');
        let arguments: Option<Value> = match is_object {
            true => serde_json::from_slice(payload).ok(),
            false => None,
        };
        Call {
            functions: match descriptor.reached.digest() {
                Some(_) => descriptor.reached.clone(),
                None => Reached::of(descriptor.code.functions().to_vec()),
            },
            variables: Vec::new(),
            payload: descriptor.payload.digest(),
            arguments: arguments.as_ref().map(members).unwrap_or_default(),
            inputs: arguments.as_ref().map(input_names).unwrap_or_default(),
        }
    }

    /// All pieces of the program, functions first.
    pub(crate) fn code(&self) -> Reached {
        match self.variables.is_empty() {
            true => self.functions.clone(),
            false => Reached::of([self.functions.pieces(), &self.variables].concat()),
        }
    }
}

fn members(arguments: &Value) -> Vec<(Arc<str>, Digest)> {
    let members = arguments.as_object().into_iter().flatten();
    members
        .map(|(name, value)| {
            (
                name.as_str().into(),
                Digest::of(value.to_string().as_bytes()),
            )
        })
        .collect()
}

/// The names of inputs, by their numbers.
fn input_names(arguments: &Value) -> BTreeMap<usize, Arc<str>> {
    let named = words::named_inputs(arguments).into_iter();
    let numbered = |(name, value): (String, &Value)| {
        let number = value.get("$ref")?.as_u64()?;
        Some((number as usize, name.into()))
    };
    named.filter_map(numbered).collect()
}
