//! Objects between the words of the protocol and those of the model.
//!
//! Conversions only. Read next: `task`, which sends objects, and `requests`, which receives them.

use std::path::Path;

use bytes::Bytes;
use ciel_model::{ActionKey, Content, Form, Name, limits};
use ciel_protocol::form;
use ciel_protocol::wire::reference::State;
use ciel_protocol::wire::{Concrete, Data, Stream};

/// The form that a worker gives to bytes, perhaps with the type of a JSON value.
pub(crate) fn form_of(name: &str, type_hint: &str) -> Form {
    match name {
        "" | form::BYTES => Form::Bytes,
        form::TEXT => Form::Text,
        form::JSON if type_hint.is_empty() => Form::Json,
        form::JSON => Form::TypedJson(type_hint.into()),
        form::SKYWRITING => Form::Skywriting,
        form::PICKLE => Form::Pickle,
        other => Form::Other(other.into()),
    }
}

/// Which action of a strand, or which part of one.
pub(crate) fn action_key(action: u64, part: Option<u32>) -> ActionKey {
    ActionKey { action, part }
}

/// A small object.
pub(crate) fn data(data: Bytes, form: &Form, references: Vec<u32>) -> State {
    State::Value(Data {
        data,
        form: form.name().to_string(),
        references,
        r#type: form.type_hint().unwrap_or_default().to_string(),
    })
}

/// An object in a file.
pub(crate) fn concrete(path: &Path, length: u64, form: &Form, references: Vec<u32>) -> State {
    State::Concrete(Concrete {
        path: path.to_string_lossy().into_owned(),
        length,
        form: form.name().to_string(),
        references,
        r#type: form.type_hint().unwrap_or_default().to_string(),
    })
}

/// The object of few bytes, which stays in memory; none if they are many.
pub(crate) fn inline(bytes: &Bytes) -> Option<Content> {
    (bytes.len() < limits::INLINE_BYTES_MAX).then(|| Content::Inline(own(bytes)))
}

/// The object of many bytes that was stored under that name before.
pub(crate) fn stored(name: Name, bytes: &Bytes) -> Content {
    Content::File {
        name,
        length: bytes.len() as u64,
        digest: None,
    }
}

/// An object that is still being written.
pub(crate) fn stream(path: &Path, form: &Form) -> State {
    State::Stream(Stream {
        path: path.to_string_lossy().into_owned(),
        form: form.name().to_string(),
    })
}

/// What is written of an object, in blocks that say themselves how they are read.
pub(crate) fn blocks(path: &Path) -> State {
    State::Stream(Stream {
        path: path.to_string_lossy().into_owned(),
        form: String::new(),
    })
}

/// Few bytes in a buffer of their own, rather than in that of all that was received with them.
fn own(bytes: &Bytes) -> Bytes {
    match bytes.is_unique() {
        true => bytes.clone(),
        false => Bytes::copy_from_slice(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects of a form that the engine does not know were refused, so two programs of one
    /// language could not exchange them.
    #[test]
    fn every_form_comes_back_as_it_was_sent() {
        for (name, type_hint) in [
            ("bytes", ""),
            ("text", ""),
            ("json", ""),
            ("json", "int"),
            ("skywriting", ""),
            ("pickle", ""),
            ("java", ""),
        ] {
            let form = form_of(name, type_hint);
            assert_eq!(
                (form.name(), form.type_hint().unwrap_or_default()),
                (name, type_hint)
            );
        }
        assert_eq!(form_of("", ""), Form::Bytes);
    }
}
