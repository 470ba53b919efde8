//! The text of a failed job: the chain of tasks from the root to the origin, the cause, the hint.
//!
//! It knows failures as values only. Read next: `observer`, which prints them.

use std::sync::Arc;

use ciel_model::{Failure, Frame};
use serde_json::{Value, json};

use crate::display::{columns, counted, shortened};
use crate::paint::Paint;

/// Steps of the chain that are shown at its two ends.
const OUTERMOST_STEPS: usize = 4;
const INNERMOST_STEPS: usize = 8;

/// Further failures that are listed.
const FURTHER_MAX: usize = 5;

/// Characters of a further failure's message.
const FURTHER_CHARACTERS_MAX: usize = 100;

/// A failure in full, ending with a newline.
pub fn explain(failure: &Failure, paint: Paint) -> String {
    let origin = paint.strong(&failure.origin.to_string());
    let mut text = format!(
        "{}: {origin} failed: {}\n",
        paint.error("error"),
        cause(failure)
    );
    for line in chain(failure) {
        text.push_str(&format!("{}\n", paint.faint(&line)));
    }
    for line in excerpt(failure) {
        text.push_str(&format!("  {line}\n"));
    }
    if let Some(hint) = &failure.hint {
        text.push_str(&format!("{}: {hint}\n", paint.hint("hint")));
    }
    text
}

/// The failures beside the job's own, counted and the first few listed; empty if there are none.
pub fn further(failures: &[Arc<Failure>], own: &Failure, paint: Paint) -> String {
    let others: Vec<&Arc<Failure>> = failures
        .iter()
        .filter(|failure| failure.origin != own.origin)
        .collect();
    if others.is_empty() {
        return String::new();
    }
    let count = counted(others.len() as u64, "other task");
    let mut text = format!(
        "{}: {count} failed, and no task handled the failure\n",
        paint.error("also")
    );
    for failure in others.iter().take(FURTHER_MAX) {
        let message = shortened(&cause(failure), FURTHER_CHARACTERS_MAX);
        text.push_str(&format!("  {}: {message}\n", failure.origin));
    }
    if others.len() > FURTHER_MAX {
        text.push_str(&format!("  … and {} more\n", others.len() - FURTHER_MAX));
    }
    text
}

/// One line about a failure.
pub fn in_short(failure: &Failure) -> String {
    shortened(&cause(failure), FURTHER_CHARACTERS_MAX)
}

/// A failure for programs.
pub fn as_json(failure: &Failure) -> Value {
    let step = |step: &Step| json!({"task": step.who, "place": step.place});
    let value = failure
        .value
        .as_deref()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    json!({
        "task": failure.origin.to_string(),
        "name": failure.origin.name.to_string(),
        "kind": failure.kind.code(),
        "type": failure.type_name,
        "message": failure.message,
        "chain": steps(failure).iter().map(step).collect::<Vec<Value>>(),
        "excerpt": failure.excerpt,
        "hint": failure.hint,
        "value": value,
        "retryable": failure.is_retryable(),
    })
}

/// The message, after the user's own name for it if there is one.
fn cause(failure: &Failure) -> String {
    match failure.type_name.as_str() {
        "TaskError" | "" => failure.message.clone(),
        name => format!("{name}: {}", failure.message),
    }
}

/// One step of the chain: a task or function, and where in it.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    who: String,
    place: String,
}

/// The chain, outermost first, without steps that say the same as the one before.
fn steps(failure: &Failure) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for frame in failure.frames.iter().rev() {
        let step = step_of(frame);
        match steps.last_mut() {
            Some(last) if last.who == step.who && step.place.is_empty() => {}
            Some(last) if last.who == step.who && last.place.is_empty() => *last = step,
            Some(last) if *last == step => {}
            _ => steps.push(step),
        }
    }
    steps
}

fn step_of(frame: &Frame) -> Step {
    let split = frame.note.split_once(" at ");
    if frame.place.is_empty()
        && let Some((who, place)) = split
    {
        return Step {
            who: who.to_string(),
            place: place.to_string(),
        };
    }
    let place = match (frame.place.is_empty(), frame.note.is_empty()) {
        (_, true) => frame.place.clone(),
        (true, false) => frame.note.clone(),
        (false, false) => format!("{}, {}", frame.place, frame.note),
    };
    Step {
        who: frame.task.to_string(),
        place,
    }
}

/// The chain as lines; one step alone is in the excerpt already, if that shows the script.
fn chain(failure: &Failure) -> Vec<String> {
    let steps = steps(failure);
    if steps.len() == 1 && is_drawn(failure) {
        return Vec::new();
    }
    let row = |(depth, step): (usize, &Step)| {
        let branch = if depth == 0 {
            String::new()
        } else {
            format!("{}└ ", "  ".repeat(depth - 1))
        };
        vec![format!("{branch}{}", step.who), step.place.clone()]
    };
    let left_out = steps
        .len()
        .saturating_sub(OUTERMOST_STEPS + INNERMOST_STEPS);
    let mut rows: Vec<Vec<String>> = match left_out {
        0 => steps.iter().enumerate().map(row).collect(),
        _ => {
            let inner = &steps[OUTERMOST_STEPS + left_out..];
            let shown = steps[..OUTERMOST_STEPS].iter().chain(inner);
            shown.enumerate().map(row).collect()
        }
    };
    if left_out > 0 {
        let blank = "  ".repeat(OUTERMOST_STEPS - 1);
        rows.insert(
            OUTERMOST_STEPS,
            vec![format!("{blank}  … {left_out} more …")],
        );
    }
    columns(&rows, "  ")
}

/// Whether the excerpt shows lines of the script, and not the output of a program.
fn is_drawn(failure: &Failure) -> bool {
    failure.excerpt.trim_start().starts_with('╭') || failure.excerpt.starts_with("error: ")
}

/// The lines of the excerpt without what the message repeats, the output of programs behind a bar.
fn excerpt(failure: &Failure) -> Vec<String> {
    let repeated = |line: &&str| {
        let hint = failure.hint.as_deref();
        let is_hint = line
            .strip_prefix("hint: ")
            .is_some_and(|text| Some(text) == hint);
        is_hint || line.strip_prefix("error: ") == Some(&failure.message)
    };
    let lines = failure.excerpt.lines();
    match is_drawn(failure) {
        true => lines
            .filter(|line| !repeated(line))
            .map(str::to_string)
            .collect(),
        false => lines.map(|line| format!("│ {line}")).collect(),
    }
}
