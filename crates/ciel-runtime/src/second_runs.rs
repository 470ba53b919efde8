//! What two runs of a pure task gave is compared, for `ciel run --check`.
//!
//! Objects are mapped while they are sure to be there, and read by a thread that has time for it.
//! It does not know why a task ran twice. Read next: `ciel-graph`.

use std::sync::atomic::Ordering;

use ciel_graph::{Comparison, Given};
use ciel_model::{Content, Digest, Label};
use ciel_store::{ObjectName, StoreError};

use crate::engine::Engine;
use crate::kept::{Request, RunOutput, TwoRuns};

/// Has what two runs gave compared.
pub(crate) fn compare_later(engine: &Engine, comparison: &Comparison) {
    let mapped = |given: &Given| mapped(engine, given);
    let pairs = comparison.outputs.iter();
    let pairs: Result<Vec<_>, StoreError> = pairs
        .map(|(index, first, second)| Ok((*index, mapped(first)?, mapped(second)?)))
        .collect();
    let task = comparison.task.clone();
    match pairs {
        Ok(outputs) => {
            let runs = TwoRuns {
                task,
                place: comparison.site.to_string(),
                outputs,
                printed: comparison.printed,
                failure: comparison.failure.as_ref().map(|it| it.to_string()),
            };
            engine.kept.send(Request::Compare(Box::new(runs)));
        }
        Err(error) => report(
            engine,
            &task,
            &format!("its runs cannot be compared: {error}"),
        ),
    }
}

fn mapped(engine: &Engine, (form, content): &Given) -> Result<RunOutput, StoreError> {
    let bytes = match content {
        Content::Inline(bytes) => bytes.clone(),
        Content::File { name, .. } => engine.objects.map(ObjectName(name.0))?,
    };
    Ok((form.clone(), bytes))
}

/// Compares two runs, and reports the first difference.
pub(crate) fn compare(engine: &Engine, runs: &TwoRuns) {
    if let Some(message) = difference(runs) {
        report(engine, &runs.task, &message);
    }
}

fn report(engine: &Engine, task: &Label, message: &str) {
    engine.differing.fetch_add(1, Ordering::Relaxed);
    engine.warn(Some(task), message);
}

/// The first difference, in words.
fn difference(runs: &TwoRuns) -> Option<String> {
    let place = match runs.place.is_empty() {
        true => String::new(),
        false => format!(" ({})", runs.place),
    };
    let what = failure(runs)
        .or_else(|| runs.outputs.iter().find_map(output))
        .or_else(|| printed(runs))?;
    Some(format!("its second run differs{place}: {what}"))
}

fn failure(runs: &TwoRuns) -> Option<String> {
    let failure = runs.failure.as_ref()?;
    Some(format!("it failed: {failure}"))
}

fn output((index, first, second): &(u32, RunOutput, RunOutput)) -> Option<String> {
    if first.0 != second.0 {
        let (first, second) = (first.0.name(), second.0.name());
        return Some(format!("output {index} is {second} instead of {first}"));
    }
    let what = first_byte(&first.1, &second.1)?;
    let (first, second) = (Digest::of(&first.1), Digest::of(&second.1));
    Some(format!(
        "output {index}, {what}, digests {first} and {second}"
    ))
}

/// `byte 12: 3a instead of 3b`, where two contents differ first; none if they are equal.
fn first_byte(first: &[u8], second: &[u8]) -> Option<String> {
    if first == second {
        return None;
    }
    let pairs = first.iter().zip(second);
    let place = pairs.take_while(|(one, other)| one == other).count();
    let byte = |bytes: &[u8]| {
        let byte = bytes.get(place);
        byte.map_or_else(|| "the end".to_string(), |byte| format!("{byte:02x}"))
    };
    let (first, second) = (byte(first), byte(second));
    Some(format!("byte {place}: {second} instead of {first}"))
}

fn printed(runs: &TwoRuns) -> Option<String> {
    let digest = |digest: Option<Digest>| {
        digest.map_or_else(|| "unknown".to_string(), |digest| digest.to_string())
    };
    let [first, second] = runs.printed?.map(digest);
    Some(format!("what it prints, digests {first} and {second}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_differing_byte_is_named_or_the_end() {
        assert_eq!(first_byte(b"same", b"same"), None);
        let told = |first: &str, second: &str| first_byte(first.as_bytes(), second.as_bytes());
        let expected = "byte 2: 64 instead of 63".to_string();
        assert_eq!(told("abc", "abd"), Some(expected));
        let expected = "byte 2: 63 instead of the end".to_string();
        assert_eq!(told("ab", "abc"), Some(expected));
    }
}
