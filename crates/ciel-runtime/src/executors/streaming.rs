//! Arguments that say how commands write and read streams: `stream`, `stream_mode`,
//! `single_consumer`, `stdin_options`.
//!
//! It does not know whether a mode can be had. Read next: `ciel_model::stream`, for what is chosen.

use ciel_model::{ConsumerFlags, Mode, Refused, Streams, Wish};
use serde_json::{Map, Value};

use super::words;

const MODE: &str = "mode";
const FLAGS: [&str; 3] = ["may_stream", "must_block", "no_store"];

/// The only input under `key`, which a process reads once; none if there are several, which are
/// joined first.
pub(super) fn input(arguments: &Value, key: &str) -> Vec<usize> {
    match words::inputs(arguments, key).as_deref() {
        Ok([index]) => vec![*index],
        _ => Vec::new(),
    }
}

/// What a command says of its streams: of the outputs with these names, and of its input under
/// `key`. `stream` declares outputs, all of them if it is `true`.
pub(super) fn streams(arguments: &Value, names: &[String], outputs: u32, key: &str) -> Streams {
    let outputs = match arguments.get("stream") {
        Some(Value::Bool(true)) => (0..outputs).collect(),
        Some(Value::Array(given)) => {
            let place = |name: &Value| names.iter().position(|known| name.as_str() == Some(known));
            let mut places: Vec<u32> = given.iter().filter_map(place).map(|at| at as u32).collect();
            places.sort_unstable();
            places.dedup();
            places
        }
        _ => Vec::new(),
    };
    let mode = mode(arguments).ok().flatten();
    let single = arguments.get("single_consumer") == Some(&Value::Bool(true));
    let wish = wish(arguments).ok().flatten();
    let read = input(arguments, key).into_iter().zip(wish);
    Streams {
        single_consumer: (single || mode == Some(Mode::Direct)) && !outputs.is_empty(),
        mode: mode.filter(|_| !outputs.is_empty()),
        outputs,
        wishes: read.map(|(index, wish)| (index as u32, wish)).collect(),
    }
}

/// # Errors
/// A mode or a flag that does not exist, or both.
pub(super) fn expect_valid(arguments: &Value) -> Result<(), Refused> {
    mode(arguments)?;
    wish(arguments).map(drop)
}

fn mode(arguments: &Value) -> Result<Option<Mode>, Refused> {
    match arguments.get("stream_mode") {
        None | Some(Value::Null) => Ok(None),
        Some(given) => named("stream_mode", given).map(Some),
    }
}

fn named(key: &str, given: &Value) -> Result<Mode, Refused> {
    let name = given
        .as_str()
        .ok_or_else(|| words::wrong(key, "the name of a mode", given))?;
    name.parse().map_err(|_| {
        let known = Mode::ALL.map(Mode::name).join(", ");
        Refused::new(format!("no mode of streams is named {name:?}"))
            .hint(format!("the modes are {known}"))
    })
}

fn wish(arguments: &Value) -> Result<Option<Wish>, Refused> {
    match arguments.get("stdin_options") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(given)) => wish_in(given).map(Some),
        Some(other) => Err(words::wrong("stdin_options", "a dictionary", other)),
    }
}

fn wish_in(given: &Map<String, Value>) -> Result<Wish, Refused> {
    let unknown = given
        .keys()
        .find(|key| *key != MODE && !FLAGS.contains(&key.as_str()));
    if let Some(key) = unknown {
        let known = format!("they are mode, or {}", FLAGS.join(", "));
        return Err(Refused::new(format!("stdin_options have no {key:?}")).hint(known));
    }
    match given.get(MODE) {
        Some(name) if given.len() == 1 => named(MODE, name).map(Wish::Named),
        Some(_) => Err(Refused::new("its stdin_options have both a mode and flags")
            .hint("a mode stands for all flags: leave them out")),
        None => {
            let flag = |name: &str| match given.get(name) {
                None => Ok(false),
                Some(Value::Bool(flag)) => Ok(*flag),
                Some(other) => Err(words::wrong(name, "true or false", other)),
            };
            Ok(Wish::Flags(ConsumerFlags {
                may_stream: flag("may_stream")?,
                must_block: flag("must_block")?,
                no_store: flag("no_store")?,
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_that_are_not_named_are_not_set() {
        let given = json!({"stdin_options": {"may_stream": true, "must_block": true}});
        let flags = ConsumerFlags {
            may_stream: true,
            must_block: true,
            no_store: false,
        };
        assert_eq!(wish(&given), Ok(Some(Wish::Flags(flags))));
    }

    #[test]
    fn unknown_mode_is_refused_with_those_that_there_are() {
        let refused = expect_valid(&json!({"stream_mode": "fast"})).unwrap_err();
        assert_eq!(refused.message, "no mode of streams is named \"fast\"");
        assert!(refused.hint.unwrap().contains("indirect_pipe"));
        let refused = expect_valid(&json!({"stdin_options": {"mode": "pipe"}})).unwrap_err();
        assert_eq!(refused.message, "no mode of streams is named \"pipe\"");
    }

    #[test]
    fn mode_beside_flags_and_unknown_flags_are_refused() {
        let both = json!({"stdin_options": {"mode": "direct", "no_store": true}});
        assert!(
            expect_valid(&both)
                .unwrap_err()
                .message
                .contains("both a mode and flags")
        );
        let unknown = json!({"stdin_options": {"store": true}});
        assert!(
            expect_valid(&unknown)
                .unwrap_err()
                .message
                .contains("have no \"store\"")
        );
    }
}
