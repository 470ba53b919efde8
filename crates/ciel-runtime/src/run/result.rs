//! The job's result, as the caller of the engine receives it.
//!
//! It does not know what the job was.

use ciel_model::{Content, Form, Name, Value};
use serde_json::Value as Json;

use crate::engine::Engine;
use crate::objects;

/// The job's result as JSON.
pub(super) fn shown<R>(engine: &Engine, name: Name, value: &Value<R>) -> Json {
    let whole = || {
        let (kind, bytes) = (value.form.name(), value.content.length());
        serde_json::json!({"object": name.to_string(), "bytes": bytes, "type": kind})
    };
    if value.content.length() > 1 << 20 && !matches!(value.content, Content::Inline(_)) {
        return whole();
    }
    let Ok(bytes) = objects::load(engine, &value.content) else {
        return whole();
    };
    match &value.form {
        Form::Json | Form::TypedJson(_) => {
            serde_json::from_slice(&bytes).unwrap_or_else(|_| whole())
        }
        Form::Skywriting => ciel_skywriting::wire::to_json(&bytes).unwrap_or_else(|_| whole()),
        Form::Bytes | Form::Text => match std::str::from_utf8(&bytes) {
            Ok(text) => Json::String(text.to_string()),
            Err(_) => whole(),
        },
        Form::Pickle | Form::Other(_) => whole(),
    }
}
