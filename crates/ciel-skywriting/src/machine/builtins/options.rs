//! The options of a spawn: which there are, and what each takes.
//!
//! It does not know what they mean to the engine. Read next: `tasks`.

use serde_json::Value as Json;

use crate::amounts;
use crate::machine::failure::{Failure, Pause, closest};

/// What an option takes.
#[derive(Debug, Clone, Copy)]
enum Takes {
    PositiveNumber,
    Size,
    Time,
    Count,
    Bool,
    Text,
    Version,
}

const OPTIONS: &[(&str, Takes)] = &[
    ("cores", Takes::PositiveNumber),
    ("memory", Takes::Size),
    ("retries", Takes::Count),
    ("timeout", Takes::Time),
    ("lazy", Takes::Bool),
    ("name", Takes::Text),
    ("pure", Takes::Bool),
    ("live", Takes::Bool),
    ("keep", Takes::Bool),
    ("gpu", Takes::PositiveNumber),
    (VERSION, Takes::Version),
];

/// The option of functions alone.
const VERSION: &str = "version";

impl Takes {
    fn fits(self, value: &Json) -> bool {
        let is_positive = || value.as_f64().is_some_and(|number| number > 0.0);
        let is_amount = |read: fn(&str) -> Option<u64>| value.as_str().and_then(read).is_some();
        match self {
            Takes::PositiveNumber => is_positive(),
            Takes::Size => is_positive() || is_amount(amounts::bytes),
            Takes::Time => is_positive() || is_amount(amounts::microseconds),
            Takes::Count => value.as_u64().is_some(),
            Takes::Bool => value.is_boolean(),
            Takes::Text => value.is_string(),
            Takes::Version => value.as_str().is_some_and(|text| !text.is_empty()),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Takes::PositiveNumber => "a positive number",
            Takes::Size => "a number of bytes or a string like \"256M\"",
            Takes::Time => "a number of seconds or a string like \"5m\"",
            Takes::Count => "an integer that is not negative",
            Takes::Bool => "true or false",
            Takes::Text => "a string",
            Takes::Version => "a string such as \"3\"",
        }
    }
}

/// Whether a name is neither an option, nor `options`, nor a misspelling of an option.
pub(super) fn is_hint(name: &str) -> bool {
    let known = OPTIONS.iter().map(|(known, _)| *known).chain(["options"]);
    closest(name, known).is_none()
}

/// Fails at the first option that does not exist or has a value it does not take.
pub(super) fn check(options: &Json) -> Result<(), Pause> {
    let Json::Object(entries) = options else {
        return match options.is_null() {
            true => Ok(()),
            false => {
                Err(Failure::new("TypeError", "the options of a spawn must be a dictionary").into())
            }
        };
    };
    for (name, value) in entries {
        let Some((_, takes)) = OPTIONS.iter().find(|(known, _)| known == name) else {
            let names: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
            let failure = Failure::new("ArgumentError", format!("unknown option {name:?}"))
                .hint(format!("the options are {}", names.join(", ")));
            return Err(failure.hint_closest(name, names.into_iter()).into());
        };
        if !takes.fits(value) {
            let words = takes.words();
            let message = format!("the option {name:?} takes {words}, not {value}");
            return Err(Failure::new("ArgumentError", message).into());
        }
    }
    Ok(())
}

/// Fails if what is no function of the script is given a version.
pub(super) fn check_of_executor(options: &Json) -> Result<(), Pause> {
    if options.get(VERSION).is_none() {
        return Ok(());
    }
    let message = "the option \"version\" is for functions of the script, not for executors";
    let hint = "what an executor is given counts by itself; spawn(f, […], {\"version\": \"3\"})";
    Err(Failure::new("ArgumentError", message).hint(hint).into())
}
