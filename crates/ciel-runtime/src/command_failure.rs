//! The failure of a command: what it was, what it was given, and the ends of what it wrote.
//!
//! The message is for people. Programs read the same as fields: they are the `value` of the
//! failure, and its language is [`LANGUAGE`]. This module does not know how a process is watched.
//! Read next: `processes`.

use std::sync::Arc;

use ciel_model::{Failure, FailureDetails, FailureKind, Label, limits};
use ciel_spawner::Status;
use serde_json::{Map, Value, json};

use crate::executors::command::Plan;
use crate::workspace::{A_STREAM, known_name, shortened, signal_name};

/// The language of such a failure, by which readers recognise its fields.
const LANGUAGE: &str = "command";

/// In errors of programs that need a file.
const WORDS_OF_SEEKING: [&str; 4] = [
    "Illegal seek",
    "not seekable",
    "cannot seek",
    "unable to open",
];

/// Characters of a command in a message.
const COMMAND_CHARACTERS_MAX: usize = 80;

/// What shells add to the number of the signal that killed a program, for their own exit status.
const KILLED: i32 = 128;

/// How a command that failed has ended.
pub(crate) enum Ended {
    /// With another exit status than 0, or by a signal.
    Badly(Status),
    /// With exit status 0, but one of its outputs is missing or of the wrong kind.
    Incomplete {
        /// What is wrong with the output.
        what: String,
        /// What to do about it.
        hint: &'static str,
    },
}

impl Ended {
    /// With a status other than 0. A shell that ends as one of its programs was killed is taken as
    /// killed: whether there is a shell at all, and whether its last program replaces it, is not
    /// the command's to know. 129 stays an exit status, which programs use for wrong arguments.
    pub(crate) fn badly(plan: &Plan, status: Status) -> Ended {
        let signal = match status {
            Status::Code(code) if plan.written.is_some() => code - KILLED,
            _ => 0,
        };
        Ended::Badly(
            match signal > libc::SIGHUP && known_name(signal).is_some() {
                true => Status::Signal(signal, false),
                false => status,
            },
        )
    }
}

/// What a command left when it failed.
pub(crate) struct Remains {
    /// Its inputs by name, each in a few words.
    pub(crate) inputs: Vec<(String, String)>,
    /// Whether any of its outputs is a stream.
    pub(crate) writes_streams: bool,
    /// The end of its standard output; at most [`limits::ERROR_TAIL_BYTES_MAX`].
    pub(crate) stdout: String,
    /// The end of its standard error; as long.
    pub(crate) stderr: String,
}

/// The failure of a command.
pub(crate) fn failure(label: &Label, plan: &Plan, ended: Ended, remains: Remains) -> Failure {
    let command = shortened(&shown(plan), COMMAND_CHARACTERS_MAX);
    let (words, hint) = match &ended {
        Ended::Incomplete { what, hint } => {
            (format!("succeeded but {what}"), Some(hint.to_string()))
        }
        Ended::Badly(Status::Code(code)) => {
            (format!("ended with exit status {code}"), hint_of(*code))
        }
        Ended::Badly(Status::Signal(number, dumped)) => {
            let core = if *dumped { ", core dumped" } else { "" };
            let hint = (*number == libc::SIGKILL)
                .then(|| "Ciel did not kill it: perhaps the machine ran out of memory".to_string());
            (
                format!("was killed by {}{core}", signal_name(*number)),
                hint,
            )
        }
    };
    let message = format!("`{command}` {words}{}", with(&remains.inputs));
    let mut failure = Failure::new(FailureKind::TaskError, label.clone(), message);
    failure.excerpt = last_lines(&remains.stderr);
    failure.hint = hint.or_else(|| hint_of_streams(&remains).map(str::to_string));
    tell(&mut failure, fields(plan, Some(&ended), remains));
    failure
}

/// The failure of a command that was ended for what it did, with what it was. It is that of a
/// command to programs, too, unless its kind says more.
pub(crate) fn ended_early(mut failure: Failure, plan: &Plan, remains: Remains) -> Failure {
    failure.excerpt = description(plan, &remains.inputs, &remains.stderr);
    if failure.kind == FailureKind::TaskError {
        tell(&mut failure, fields(plan, None, remains));
    }
    failure
}

/// Gives a failure the fields of a command.
fn tell(failure: &mut Failure, fields: Value) {
    failure.value = Some(fields.to_string());
    failure.told = Some(Arc::new(FailureDetails {
        language: LANGUAGE.to_string(),
        ..FailureDetails::default()
    }));
}

/// What to do if a command wanted a file where it had a stream, by the words of its error.
fn hint_of_streams(remains: &Remains) -> Option<&'static str> {
    let reads = remains.inputs.iter().any(|(_, text)| text == A_STREAM);
    let mut words = WORDS_OF_SEEKING.iter();
    if !words.any(|words| remains.stderr.contains(words)) {
        return None;
    }
    match (reads, remains.writes_streams) {
        (true, _) => Some(
            "a stream is a pipe, read once from its beginning: if the command needs a file, pass \
             the future itself in place of its stream()",
        ),
        (false, true) => Some(
            "a stream is a pipe, written once from its beginning: if the command needs a file, \
             make it an ordinary output",
        ),
        (false, false) => None,
    }
}

/// A command that did not end by itself, in words: what it was, its inputs, and the last lines of
/// its standard error.
pub(crate) fn description(plan: &Plan, inputs: &[(String, String)], stderr: &str) -> String {
    let command = shortened(&shown(plan), COMMAND_CHARACTERS_MAX);
    let words = format!("`{command}`{}\n{}", with(inputs), last_lines(stderr));
    words.trim_end().to_string()
}

/// The exit status of a command, or the name of the signal that killed it.
fn status_of(ended: &Ended) -> (Option<i32>, Option<String>) {
    match ended {
        Ended::Badly(Status::Code(code)) => (Some(*code), None),
        Ended::Badly(Status::Signal(number, _)) => (None, Some(signal_name(*number))),
        Ended::Incomplete { .. } => (Some(0), None),
    }
}

/// The fields that programs read; one that was ended has neither exit status nor signal.
fn fields(plan: &Plan, ended: Option<&Ended>, remains: Remains) -> Value {
    let (exit_status, signal) = ended.map_or((None, None), status_of);
    let inputs = remains.inputs.into_iter();
    let inputs: Map<String, Value> = inputs
        .take(limits::FAILURE_INPUTS_MAX)
        .map(|(name, text)| (name, text.into()))
        .collect();
    let command = plan.written.clone().unwrap_or_else(|| shown(plan));
    json!({
        "exit_status": exit_status,
        "signal": signal,
        "command": shortened(&command, limits::ERROR_TAIL_BYTES_MAX),
        "inputs": inputs,
        "stdout": remains.stdout,
        "stderr": remains.stderr,
    })
}

/// The words of the program, with a script as its user wrote it.
fn shown(plan: &Plan) -> String {
    let words = plan.program.iter().map(|word| word.to_string_lossy());
    let mut words: Vec<_> = words.collect();
    if let (Some(written), Some(last)) = (&plan.written, words.last_mut()) {
        *last = written.into();
    }
    words.join(" ")
}

/// `, with n = 3, text = "abc"`.
fn with(inputs: &[(String, String)]) -> String {
    let count = inputs.len().min(limits::FAILURE_INPUTS_MAX);
    let mut parts: Vec<String> = inputs[..count]
        .iter()
        .map(|(name, text)| format!("{name} = {text}"))
        .collect();
    if inputs.len() > count {
        parts.push(format!("and {} more", inputs.len() - count));
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!(", with {}", parts.join(", ")),
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(limits::ERROR_TAIL_LINES_MAX)..].join("\n")
}

fn hint_of(code: i32) -> Option<String> {
    match code {
        126 => Some("the shell found the command but could not run it".to_string()),
        127 => Some("the shell did not find the command".to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executors::command::Stdout;
    use ciel_model::Name;

    fn failed(status: Status, inputs: usize) -> Failure {
        let label = Label {
            what: "sh".into(),
            name: Name(1),
        };
        let plan = Plan {
            outer: Vec::new(),
            direct: None,
            program: vec!["sh".into(), "-c".into(), "cat \"${ciel_0}\"".into()],
            written: Some("cat {f}".to_string()),
            stdin: Vec::new(),
            stdout: Stdout::Output(0),
            environment: Vec::new(),
            folder: None,
            appends: Vec::new(),
        };
        let remains = Remains {
            inputs: (0..inputs)
                .map(|at| (format!("f{at}"), at.to_string()))
                .collect(),
            writes_streams: false,
            stdout: "half\n".to_string(),
            stderr: "no such file\n".to_string(),
        };
        failure(&label, &plan, Ended::badly(&plan, status), remains)
    }

    #[test]
    fn command_is_shown_as_written_and_not_with_the_variables_of_its_script() {
        let failure = failed(Status::Code(1), 1);
        assert_eq!(
            failure.message,
            "`sh -c cat {f}` ended with exit status 1, with f0 = 0"
        );
        assert_eq!(failure.excerpt, "no such file");
    }

    #[test]
    fn fields_say_what_the_message_says() {
        let fields = |failure: Failure| -> Value {
            serde_json::from_str(&failure.value.expect("a command has fields")).unwrap()
        };
        assert_eq!(
            fields(failed(Status::Code(7), 1)),
            json!({
                "exit_status": 7, "signal": null, "command": "cat {f}", "inputs": {"f0": "0"},
                "stdout": "half\n", "stderr": "no such file\n",
            })
        );
        let killed = fields(failed(Status::Signal(libc::SIGTERM, false), 0));
        assert_eq!(killed["exit_status"], Value::Null);
        assert_eq!(killed["signal"], "SIGTERM");
    }

    #[test]
    fn inputs_of_a_message_are_bounded() {
        let failure = failed(Status::Code(1), 3_000);
        let hidden = 3_000 - limits::FAILURE_INPUTS_MAX;
        assert!(failure.message.ends_with(&format!(", and {hidden} more")));
        assert!(failure.value.expect("a command has fields").len() < 1_000);
    }
}
