//! The options of a spawn: from a dictionary in a script to what the graph takes.

use std::sync::Arc;

use ciel_model::{Options, limits};
use serde_json::Value;

use crate::settings::Settings;

/// What a spawn's dictionary says.
pub(crate) struct Parsed {
    pub(crate) shared: Arc<Options>,
    /// Name for people instead of the function or command.
    pub(crate) name: Option<String>,
    /// Whether equal calls share one result, if said.
    pub(crate) pure: Option<bool>,
}

/// Reads a dictionary that the language has checked; what is absent comes from the run's settings.
pub(crate) fn parse(given: &Value, settings: &Settings) -> Parsed {
    let mut options = Options {
        retries: settings.retries,
        timeout_us: settings.timeout_us,
        ..Options::default()
    };
    let Some(given) = given.as_object() else {
        return Parsed {
            shared: share(options),
            name: None,
            pure: None,
        };
    };
    for (key, value) in given {
        match key.as_str() {
            "cores" => options.resources.millicores = thousandths(value),
            "memory" => options.resources.memory_bytes = bytes(value),
            "retries" => options.retries = whole(value).min(limits::RETRIES_MAX),
            "timeout" => options.timeout_us = microseconds(value),
            "lazy" => options.lazy = value.as_bool().unwrap_or(false),
            "live" => options.live = value.as_bool().unwrap_or(false),
            "name" | "pure" => {}
            other => {
                options
                    .resources
                    .others
                    .insert(other.into(), thousandths(value));
            }
        }
    }
    Parsed {
        shared: share(options),
        name: given
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_string),
        pure: given.get("pure").and_then(Value::as_bool),
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

/// Bytes of a number, or of `64K`, `256M`, `1G`; units are powers of 1024.
fn bytes(value: &Value) -> Option<u64> {
    const UNITS: [(&str, f64); 4] = [
        ("K", 1024.0),
        ("M", 1048576.0),
        ("G", 1073741824.0),
        ("T", 1099511627776.0),
    ];
    let Value::String(text) = value else {
        return value.as_f64().map(|bytes| bytes as u64);
    };
    let upper = text.trim().to_ascii_uppercase();
    let plain = upper.trim_end_matches('B').trim_end_matches('I');
    amount(plain, &UNITS).map(|bytes| bytes as u64)
}

/// Microseconds of a number of seconds, or of `300ms`, `30s`, `5m`, `2h`.
fn microseconds(value: &Value) -> Option<u64> {
    const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let seconds = match value {
        Value::String(text) => amount(text.trim(), &UNITS),
        number => number.as_f64(),
    };
    seconds.map(|seconds| (seconds * 1e6) as u64)
}

/// A number with one of these units, or without.
fn amount(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let found = units
        .iter()
        .find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (number, size) = found.unwrap_or((text, 1.0));
    let number: f64 = number.trim_end().parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number * size)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_with_units_are_read() {
        assert_eq!(bytes(&json!(20000000)), Some(20_000_000));
        assert_eq!(bytes(&json!("20M")), Some(20 << 20));
        assert_eq!(bytes(&json!("1.5 GiB")), Some(3 << 29));
        assert_eq!(bytes(&json!("a lot")), None);
        assert_eq!(microseconds(&json!(0.3)), Some(300_000));
        assert_eq!(microseconds(&json!("300ms")), Some(300_000));
        assert_eq!(microseconds(&json!("2h")), Some(7_200_000_000));
    }
}
