//! Why a command cannot do what it was asked: what is wrong, a hint, an exit code.
//!
//! Failures of tasks are no complaints: see `failures`.

use std::path::Path;
use std::process::ExitCode;

use ciel_runtime::RunError;
use ciel_skywriting::diagnostic::line_column;
use ciel_skywriting::front::Problems;
use ciel_view::ViewError;

use crate::named_commands::with_state;
use crate::paint::Paint;

/// Exit code of a job that failed.
pub const JOB_FAILED: u8 = 1;

/// Exit code of wrong usage, and of scripts that cannot run.
pub const WRONG_USAGE: u8 = 2;

/// Why a command ends early.
#[derive(Debug)]
pub enum CliError {
    /// One sentence.
    Plain {
        /// Stable, for programs.
        code: &'static str,
        /// What is wrong, without a full stop.
        message: String,
        /// What to do about it.
        hint: Option<String>,
        /// What the process ends with.
        exit: u8,
    },
    /// A script that cannot run.
    Script(Problems),
    /// The reader of the output has closed it; no message is printed.
    Unread,
}

impl CliError {
    /// A complaint about how the command was used.
    pub fn usage(code: &'static str, message: impl Into<String>) -> CliError {
        let (message, hint, exit) = (without_numbers(&message.into()), None, WRONG_USAGE);
        CliError::Plain {
            code,
            message,
            hint,
            exit,
        }
    }

    /// The same with advice.
    pub fn with_hint(mut self, advice: impl Into<String>) -> CliError {
        if let CliError::Plain { hint, .. } = &mut self {
            *hint = Some(advice.into());
        }
        self
    }

    /// The same, of runs in a state folder that was named.
    pub fn about_state(mut self, state: Option<&Path>) -> CliError {
        if let CliError::Plain { hint, .. } = &mut self {
            *hint = hint.as_ref().map(|hint| with_state(hint, state));
        }
        self
    }

    /// The same with an exit code of its own.
    pub fn with_exit(mut self, code: u8) -> CliError {
        if let CliError::Plain { exit, .. } = &mut self {
            *exit = code;
        }
        self
    }

    /// What the process ends with.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            CliError::Plain { exit, .. } => ExitCode::from(*exit),
            CliError::Script(_) => ExitCode::from(WRONG_USAGE),
            CliError::Unread => ExitCode::SUCCESS,
        }
    }

    /// Prints the error on standard error.
    pub fn tell(&self, paint: Paint, json: bool) {
        let text = match (self, json) {
            (CliError::Unread, _) => return,
            (
                CliError::Plain {
                    code,
                    message,
                    hint,
                    ..
                },
                true,
            ) => {
                let line = serde_json::json!({
                    "event": "error", "code": code, "message": message, "hint": hint,
                });
                format!("{line}\n")
            }
            (CliError::Plain { message, hint, .. }, false) => {
                let mut text = format!("{}: {message}\n", paint.error("error"));
                if let Some(hint) = hint {
                    text.push_str(&format!("{}: {hint}\n", paint.hint("hint")));
                }
                text
            }
            (CliError::Script(problems), true) => problem_lines(problems),
            (CliError::Script(problems), false) => problems.render(paint.is_on()),
        };
        // If standard error is closed, the message is lost.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
    }
}

impl From<RunError> for CliError {
    /// Nothing has run when the state folder or a resume is refused; the rest is trouble on the
    /// way.
    fn from(error: RunError) -> CliError {
        let exit = match &error {
            RunError::State(_)
            | RunError::OtherVersion { .. }
            | RunError::Changed { .. }
            | RunError::View(_) => WRONG_USAGE,
            RunError::Recovery(_)
            | RunError::Journal(_)
            | RunError::Hindered { .. }
            | RunError::Output(_)
            | RunError::File { .. }
            | RunError::Stalled { .. }
            | RunError::System { .. } => JOB_FAILED,
        };
        let (code, message, hint) = (
            error.code(),
            without_numbers(&error.to_string()),
            error.hint(),
        );
        CliError::Plain {
            code,
            message,
            hint,
            exit,
        }
    }
}

impl From<ViewError> for CliError {
    /// A run that cannot be found is wrong usage; one whose journal cannot be read is not.
    fn from(error: ViewError) -> CliError {
        let exit = match &error {
            ViewError::State(_) | ViewError::Undescribed { .. } => WRONG_USAGE,
            ViewError::Journal(_) | ViewError::Corrupt(_) => JOB_FAILED,
        };
        CliError::Plain {
            code: error.code(),
            message: without_numbers(&error.to_string()),
            hint: error.hint(),
            exit,
        }
    }
}

impl From<ciel_store::StoreError> for CliError {
    fn from(error: ciel_store::StoreError) -> CliError {
        ViewError::State(error).into()
    }
}

fn problem_lines(problems: &Problems) -> String {
    let line = |diagnostic: &ciel_skywriting::diagnostic::Diagnostic| {
        let source = problems.sources.get(usize::from(diagnostic.span.source));
        let place = source.map(|source| line_column(source, diagnostic.span.start));
        let value = serde_json::json!({
            "event": "problem",
            "code": diagnostic.code,
            "message": diagnostic.message,
            "file": source.map(|source| &source.name),
            "line": place.map(|(line, _)| line),
            "column": place.map(|(_, column)| column),
            "hint": diagnostic.hint,
        });
        format!("{value}\n")
    };
    problems.diagnostics.iter().map(line).collect()
}

/// A text without the numbers of system errors, which mean nothing to users.
pub fn without_numbers(text: &str) -> String {
    let Some((before, rest)) = text.split_once(" (os error ") else {
        return text.to_string();
    };
    let after = rest.split_once(')').map_or("", |(_, after)| after);
    format!("{before}{}", without_numbers(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_system_errors_are_left_out() {
        let text = "cannot write x: No such file (os error 2); sorry";
        assert_eq!(without_numbers(text), "cannot write x: No such file; sorry");
        assert_eq!(without_numbers("plain"), "plain");
    }
}
