//! The options of a spawn, from a dictionary in a script.

use std::sync::Arc;

use ciel_model::{CallOptions, Digest, Options};
use ciel_skywriting::amounts;
use serde_json::Value;

use crate::settings::Settings;

/// The options in a spawn's dictionary.
pub(crate) struct Parsed {
    pub(crate) shared: Arc<Options>,
    /// Name in messages instead of the function or command.
    pub(crate) name: Option<String>,
    /// Whether equal calls share one result, if declared.
    pub(crate) pure: Option<bool>,
    /// What stands for the code of a function.
    pub(crate) version: Option<Digest>,
}

/// Reads a dictionary that the language has checked; what is absent comes from the run's settings.
/// A function of the script that is pure is kept in each run.
pub(crate) fn parse(given: &Value, settings: &Settings, is_function: bool) -> Parsed {
    let mut asked = CallOptions::default();
    let (mut name, mut pure, mut version) = (None, None, None);
    for (key, value) in given.as_object().into_iter().flatten() {
        match key.as_str() {
            "cores" => asked.millicores = Some(thousandths(value)),
            "memory" => asked.memory_bytes = bytes(value),
            "retries" => asked.retries = Some(whole(value)),
            "timeout" => asked.timeout_us = microseconds(value),
            "lazy" => asked.lazy = value.as_bool().unwrap_or(false),
            "live" => asked.live = value.as_bool().unwrap_or(false),
            "name" => name = value.as_str().map(str::to_string),
            "pure" => pure = value.as_bool(),
            "version" => version = value.as_str().map(|text| Digest::of(text.as_bytes())),
            "keep" => asked.keep = value.as_bool(),
            other => drop(asked.others.insert(other.into(), thousandths(value))),
        }
    }
    asked.keep = asked.keep.or(pure.filter(|pure| *pure && is_function));
    Parsed {
        shared: share(asked.over(settings.task_options())),
        name,
        pure,
        version,
    }
}

fn share(options: Options) -> Arc<Options> {
    match options == *Options::shared_default() {
        true => Options::shared_default(),
        false => Arc::new(options),
    }
}

fn thousandths(value: &Value) -> u32 {
    (value.as_f64().unwrap_or(1.0) * 1000.0)
        .round()
        .clamp(0.0, u32::MAX as f64) as u32
}

fn whole(value: &Value) -> u32 {
    value
        .as_u64()
        .map_or(0, |number| number.min(u64::from(u32::MAX)) as u32)
}

/// Bytes of a number, or of a string with a unit.
fn bytes(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => amounts::bytes(text),
        number => number.as_f64().map(|bytes| bytes as u64),
    }
}

/// Microseconds of a number of seconds, or of a string with a unit.
fn microseconds(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => amounts::microseconds(text),
        number => number.as_f64().map(|seconds| (seconds * 1e6) as u64),
    }
}
