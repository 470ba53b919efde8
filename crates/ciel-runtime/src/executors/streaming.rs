//! Arguments that say how commands write and read streams: `stream`, `stream_mode`,
//! `single_consumer`, `stdin_options`, and `{"stream": reference}` in the place of a reference.
//!
//! It does not know whether a mode can be had. Read next: `ciel_model::stream`, for what is chosen.

use ciel_model::{ConsumerFlags, Mode, Refused, Streams, Wish, limits};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::{openings, words};
use crate::references::{self, reference};

const MODE: &str = "mode";
const GRANULARITY: &str = "granularity";
const FLAGS: [&str; 3] = ["may_stream", "must_block", "no_store"];

/// The inputs that a process reads once, from their beginnings to their ends: those under `key`,
/// one behind the other, and those that its words name as streams. An input that has a second place
/// in the arguments, or in the text of the command, is none of them; nor does a container have the
/// descriptors of the process that starts it, but for its standard input.
pub(super) fn inputs(arguments: &Value, key: &str) -> Vec<usize> {
    let mut places: FxHashMap<usize, usize> = FxHashMap::default();
    for index in references::all(arguments) {
        *places.entry(index).or_default() += 1;
    }
    let joined = words::joined(arguments, key).unwrap_or_default();
    let all = joined.into_iter().chain(inputs_of_words(arguments));
    let once = all.filter(|index| places.get(index) == Some(&1));
    once.take(limits::STREAM_INPUTS_MAX).collect()
}

/// Those that words name as streams.
fn inputs_of_words(arguments: &Value) -> Vec<usize> {
    let in_container = arguments.get("container").is_some_and(|it| !it.is_null());
    if in_container {
        return Vec::new();
    }
    let command = arguments.get("command").and_then(Value::as_str);
    let is_opened_once =
        |name: &str| command.is_none_or(|command| !openings::names_again(command, name));
    let words = words_of(arguments, is_opened_once).into_iter();
    words
        .filter_map(|word| reference(&word[words::STREAM]))
        .collect()
}

/// The only input under `key`.
fn only(arguments: &Value, key: &str) -> Option<usize> {
    match words::joined(arguments, key).as_deref() {
        Ok([index]) => Some(*index),
        _ => None,
    }
}

/// The words of a call that stand for streams.
fn stream_words(arguments: &Value) -> Vec<&Value> {
    words_of(arguments, |_| true)
}

/// The same, but for inputs with other names than these.
fn words_of(arguments: &Value, is_meant: impl Fn(&str) -> bool) -> Vec<&Value> {
    let inputs = arguments.get("inputs").and_then(Value::as_object);
    let inputs = inputs.into_iter().flatten();
    let inputs = inputs.filter_map(|(name, input)| is_meant(name).then_some(input));
    let words = inputs.chain(arguments.get("command_line"));
    let words = words.flat_map(|word| match word {
        Value::Array(list) => list.as_slice(),
        word => std::slice::from_ref(word),
    });
    streams_among(words)
}

/// The elements of lists of inputs, under any of the keys of such, that stand for streams.
fn stream_parts(arguments: &Value) -> Vec<&Value> {
    let lists = ["stdin", "inputs"].into_iter();
    let lists = lists.filter_map(|key| arguments.get(key)?.as_array());
    streams_among(lists.flatten())
}

fn streams_among<'a>(words: impl Iterator<Item = &'a Value>) -> Vec<&'a Value> {
    words
        .filter(|word| words::streamed(word).is_some())
        .collect()
}

/// What a command says of its streams: of the outputs with these names, and of its input under
/// `key`. `stream` declares outputs, all of them if it is `true`; programs of CIEL call that
/// `stream_output`.
pub(super) fn streams(arguments: &Value, names: &[String], outputs: u32, key: &str) -> Streams {
    let declared = arguments
        .get("stream")
        .or_else(|| arguments.get("stream_output"));
    let outputs = match declared {
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
    let wishes = wishes(arguments).unwrap_or_default();
    let read = only(arguments, key).into_iter().flat_map(|index| {
        let wishes = wishes.iter();
        wishes.map(move |wish| (index, *wish))
    });
    let words = stream_words(arguments).into_iter();
    let named = words.chain(stream_parts(arguments)).flat_map(|word| {
        let index = reference(&word[words::STREAM]);
        let wishes = wishes_of(word).unwrap_or_default().into_iter();
        wishes.filter_map(move |wish| Some((index?, wish)))
    });
    Streams {
        single_consumer: (single || mode == Some(Mode::Direct)) && !outputs.is_empty(),
        mode: mode.filter(|_| !outputs.is_empty()),
        outputs,
        wishes: read
            .chain(named)
            .map(|(index, wish)| (index as u32, wish))
            .collect(),
    }
}

/// # Errors
/// A mode or a flag that does not exist, or both; an output with none of these names.
pub(super) fn expect_valid(arguments: &Value, names: &[String]) -> Result<(), Refused> {
    expect_declared(arguments, names)?;
    mode(arguments)?;
    wishes(arguments)?;
    let words = stream_words(arguments).into_iter();
    for word in words.chain(stream_parts(arguments)) {
        if reference(&word[words::STREAM]).is_none() {
            return Err(words::wrong(
                words::STREAM,
                "a reference",
                &word[words::STREAM],
            ));
        }
        wishes_of(word)?;
    }
    Ok(())
}

/// What a command says of its outputs. `stream_output` may be anything, as in CIEL.
fn expect_declared(arguments: &Value, names: &[String]) -> Result<(), Refused> {
    let given = match arguments.get("stream") {
        None | Some(Value::Null | Value::Bool(_)) => &[],
        Some(Value::Array(given)) => given.as_slice(),
        Some(other) => return Err(words::wrong("stream", "true or a list of outputs", other)),
    };
    let is_known = |name: &Value| names.iter().any(|known| name.as_str() == Some(known));
    if let Some(unknown) = given.iter().find(|name| !is_known(name)) {
        let message = format!("its argument \"stream\" names no output of it: {unknown}");
        let known = match names.is_empty() {
            true => "its output has no name: \"stream\": true".to_owned(),
            false => format!("its outputs are {}", names.join(", ")),
        };
        return Err(Refused::new(message).hint(known));
    }
    match arguments.get("single_consumer") {
        None | Some(Value::Null | Value::Bool(_)) => Ok(()),
        Some(other) => Err(words::wrong("single_consumer", "true or false", other)),
    }
}

/// How a word wants to read its stream; nothing if it has nothing else in it.
fn wishes_of(word: &Value) -> Result<Vec<Wish>, Refused> {
    let mut options = word.as_object().cloned().unwrap_or_default();
    options.remove(words::STREAM);
    match options.is_empty() {
        true => Ok(Vec::new()),
        false => wishes_in("a stream", options),
    }
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

fn wishes(arguments: &Value) -> Result<Vec<Wish>, Refused> {
    match arguments.get("stdin_options") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(given)) => wishes_in("stdin_options", given.clone()),
        Some(other) => Err(words::wrong("stdin_options", "a dictionary", other)),
    }
}

/// A wish for the mode, or one for the granularity, or both. An empty dictionary has flags, of
/// which none is set.
fn wishes_in(what: &str, mut given: Map<String, Value>) -> Result<Vec<Wish>, Refused> {
    let granularity = given.remove(GRANULARITY);
    let granularity = granularity.as_ref().map(granularity_in).transpose()?;
    let way = match granularity.is_some() && given.is_empty() {
        true => None,
        false => Some(way_in(what, &given)?),
    };
    Ok(way.into_iter().chain(granularity).collect())
}

fn granularity_in(given: &Value) -> Result<Wish, Refused> {
    let most = limits::STREAM_GRANULARITY_BYTES_MAX;
    let bytes = given.as_u64().filter(|bytes| (1..=most).contains(bytes));
    let wanted = format!("a number of bytes from 1 to {most}");
    bytes
        .map(Wish::Granularity)
        .ok_or_else(|| words::wrong(GRANULARITY, &wanted, given))
}

fn way_in(what: &str, given: &Map<String, Value>) -> Result<Wish, Refused> {
    let unknown = given
        .keys()
        .find(|key| *key != MODE && !FLAGS.contains(&key.as_str()));
    if let Some(key) = unknown {
        let known = format!("they are granularity, mode, or {}", FLAGS.join(", "));
        return Err(Refused::new(format!("there is no {key:?} in {what}")).hint(known));
    }
    match given.get(MODE) {
        Some(name) if given.len() == 1 => named(MODE, name).map(Wish::Named),
        Some(_) => Err(Refused::new(format!("both a mode and flags are in {what}"))
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
        assert_eq!(wishes(&given), Ok(vec![Wish::Flags(flags)]));
    }

    #[test]
    fn granularity_stands_alone_or_beside_a_mode_or_flags() {
        let wishes = |options: Value| wishes(&json!({"stdin_options": options}));
        let alone = wishes(json!({"granularity": 7}));
        assert_eq!(alone, Ok(vec![Wish::Granularity(7)]));
        let beside = wishes(json!({"granularity": 1, "mode": "direct"}));
        let expected = vec![Wish::Named(Mode::Direct), Wish::Granularity(1)];
        assert_eq!(beside, Ok(expected));
        assert_eq!(
            wishes(json!({"granularity": 9, "may_stream": true})).map(|it| it.len()),
            Ok(2)
        );
        for wrong in [json!(0), json!(-1), json!(1.5), json!("1"), json!(true)] {
            let refused = wishes(json!({"granularity": wrong})).unwrap_err();
            assert!(refused.message.contains("granularity"), "{refused:?}");
        }
    }

    #[test]
    fn word_with_a_stream_is_read_as_it_says_unless_it_has_another_place() {
        let reference = |index: u32| json!({"$ref": index});
        let given = json!({
            "inputs": {
                "a": {"stream": reference(1), "mode": "overlap"},
                "b": [{"stream": reference(2)}, reference(3), {"stream": reference(4)}],
            },
            "env": {"X": reference(4)},
            "stdin": [reference(0)],
        });
        assert_eq!(inputs(&given, "stdin"), [0, 1, 2]);
        let wishes = streams(&given, &[], 1, "stdin").wishes;
        assert_eq!(wishes, [(1, Wish::Named(Mode::Overlap))]);
        let line = json!({"command_line": ["cat", {"stream": reference(0)}], "inputs": []});
        assert_eq!(inputs(&line, "inputs"), [0]);
        let mut inside = given.clone();
        inside["container"] = json!("docker run image");
        assert_eq!(inputs(&inside, "stdin"), [0]);
    }

    /// Each opening of `paste {a} {a}` had a part of the bytes.
    #[test]
    fn stream_that_the_command_names_again_is_read_when_it_is_whole() {
        let stream = |index: u32| json!({"stream": {"$ref": index}});
        let given = json!({
            "command": "paste {a} {a} {c} {d}; f={b}; wc < $f; cat $f {c}",
            "inputs": {"a": stream(0), "b": stream(1), "c": [stream(2)], "d": stream(3)},
        });
        assert_eq!(inputs(&given, "stdin"), [3]);
    }

    #[test]
    fn each_of_several_inputs_is_read_as_it_says_unless_it_has_another_place() {
        let reference = |index: u32| json!({"$ref": index});
        let parts = json!([
            reference(0),
            {"stream": reference(1), "mode": "overlap"},
            reference(2),
            {"stream": reference(2)},
        ]);
        for key in ["stdin", "inputs"] {
            let given = json!({key: parts, "stdin_options": {"mode": "direct"}});
            assert_eq!(words::joined(&given, key), Ok(vec![0, 1, 2, 2]));
            assert_eq!(inputs(&given, key), [0, 1]);
            let wishes = streams(&given, &[], 1, key).wishes;
            assert_eq!(wishes, [(1, Wish::Named(Mode::Overlap))]);
        }
        let wrong = json!({"stdin": [{"stream": reference(1), "granularity": 0}]});
        assert!(expect_valid(&wrong, &[]).is_err());
    }

    #[test]
    fn word_with_a_stream_of_no_reference_or_with_other_keys_is_refused() {
        for (word, message) in [
            (json!({"stream": "x"}), "must be a reference, not \"x\""),
            (
                json!({"stream": {"$ref": 0}, "mod": "direct"}),
                "no \"mod\" in a stream",
            ),
        ] {
            let refused = expect_valid(&json!({"inputs": {"a": word}}), &[]).unwrap_err();
            assert!(refused.message.contains(message), "{refused:?}");
        }
    }

    #[test]
    fn unknown_mode_is_refused_with_those_that_there_are() {
        let refused = expect_valid(&json!({"stream_mode": "fast"}), &[]).unwrap_err();
        assert_eq!(refused.message, "no mode of streams is named \"fast\"");
        assert!(refused.hint.unwrap().contains("indirect_pipe"));
        let refused = expect_valid(&json!({"stdin_options": {"mode": "pipe"}}), &[]).unwrap_err();
        assert_eq!(refused.message, "no mode of streams is named \"pipe\"");
    }

    /// A script with `"stream": "yes"`, or with the name of no output, ran without a word, and its
    /// readers waited for the end of the command.
    #[test]
    fn stream_of_no_output_is_refused() {
        let names = ["low".to_owned(), "high".to_owned()];
        for valid in [json!(true), json!(false), json!(null), json!(["high"])] {
            assert_eq!(expect_valid(&json!({"stream": valid}), &names), Ok(()));
        }
        for (wrong, message) in [
            (
                json!({"stream": "yes"}),
                "must be true or a list of outputs, not \"yes\"",
            ),
            (
                json!({"stream": ["low", "lwo"]}),
                "names no output of it: \"lwo\"",
            ),
            (
                json!({"stream": true, "single_consumer": 1}),
                "must be true or false, not 1",
            ),
        ] {
            let refused = expect_valid(&wrong, &names).unwrap_err();
            assert!(refused.message.contains(message), "{refused:?}");
        }
        let refused = expect_valid(&json!({"stream": ["out"]}), &[]).unwrap_err();
        assert_eq!(
            refused.hint.unwrap(),
            "its output has no name: \"stream\": true"
        );
    }

    #[test]
    fn mode_beside_flags_and_unknown_flags_are_refused() {
        let both = json!({"stdin_options": {"mode": "direct", "no_store": true}});
        assert!(
            expect_valid(&both, &[])
                .unwrap_err()
                .message
                .contains("both a mode and flags are in stdin_options")
        );
        let unknown = json!({"stdin_options": {"store": true}});
        assert!(
            expect_valid(&unknown, &[])
                .unwrap_err()
                .message
                .contains("no \"store\" in stdin_options")
        );
    }
}
