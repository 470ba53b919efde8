//! Why a process could not be started, in words for users.
//!
//! It knows error numbers and the step that failed, not who asked. Next: `launch`.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// The step of a start that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The request contradicts itself: a bug of the engine.
    Request,
    /// Opening standard input.
    Input,
    /// Opening standard output.
    Output,
    /// Opening standard error.
    ErrorOutput,
    /// Handing over a descriptor.
    Descriptor,
    /// Setting a limit.
    Limits,
    /// Entering the folder.
    Folder,
    /// Running the program.
    Program,
    /// The program exists; running the interpreter that it names, as a script's first line does.
    Interpreter,
    /// Making a process.
    Process,
}

/// Why a process could not be started. `Display` shows what happened, `hint` what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The step that failed.
    pub step: Step,
    /// The kernel's error number.
    pub errno: i32,
    /// The program, folder or file, as the request named it.
    pub subject: String,
}

impl Refusal {
    /// Whether the same request may succeed later: the machine was short of something.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.errno,
            libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE
        )
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match (self.step, self.errno) {
            (Step::Program, libc::ENOENT) if self.subject.contains('/') => {
                Some("check the path; a relative one starts at the task's folder")
            }
            (Step::Program, libc::ENOENT) => Some("is it installed, and its folder in PATH?"),
            (Step::Program, libc::EACCES) => Some("make it executable with `chmod +x`"),
            (Step::Program, libc::E2BIG) => Some("pass the data in a file or on standard input"),
            (Step::Interpreter, _) => Some("if it is a script, check its first line, after `#!`"),
            (Step::Folder, libc::ENOENT) => Some("create the folder first"),
            (Step::Output | Step::ErrorOutput, libc::ENOENT) => {
                Some("create the folder of the file first")
            }
            (_, libc::EMFILE | libc::ENFILE) | (Step::Descriptor, libc::EBADF) => {
                Some("raise the limit of open files (ulimit -n)")
            }
            (Step::Process, libc::EAGAIN) => Some("raise the limit of processes (ulimit -u)"),
            _ => None,
        }
    }

    fn reason(&self) -> String {
        match self.errno {
            libc::ENOENT => "it does not exist".to_owned(),
            libc::EACCES => "permission denied".to_owned(),
            libc::ENOTDIR => "it is not a folder".to_owned(),
            libc::E2BIG => "its arguments and environment are too long".to_owned(),
            errno => {
                let text = io::Error::from_raw_os_error(errno).to_string();
                text.split(" (os error")
                    .next()
                    .unwrap_or_default()
                    .to_lowercase()
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (subject, reason) = (&self.subject, self.reason());
        match (self.step, self.errno) {
            (Step::Program, libc::ENOENT) => write!(f, "program `{subject}` was not found"),
            (Step::Program, _) => write!(f, "cannot run program `{subject}`: {reason}"),
            (Step::Interpreter, _) => {
                write!(
                    f,
                    "cannot run program `{subject}`: its interpreter does not exist"
                )
            }
            (Step::Folder, _) => write!(f, "cannot enter folder `{subject}`: {reason}"),
            (Step::Input, _) => write!(f, "cannot read input `{subject}`: {reason}"),
            (Step::Output, _) => write!(f, "cannot write output `{subject}`: {reason}"),
            (Step::ErrorOutput, _) => write!(f, "cannot write error output `{subject}`: {reason}"),
            (Step::Descriptor, _) => write!(f, "cannot pass descriptor {subject}: {reason}"),
            (Step::Limits, _) => write!(f, "cannot set a limit for `{subject}`: {reason}"),
            (Step::Process, _) => write!(f, "cannot create a process for `{subject}`: {reason}"),
            (Step::Request, _) => write!(f, "bad request to start `{subject}`: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_names_it_and_says_where_it_was_looked_for() {
        let errno = libc::ENOENT;
        let refusal = Refusal {
            step: Step::Program,
            errno,
            subject: "pithon".to_owned(),
        };
        assert_eq!(refusal.to_string(), "program `pithon` was not found");
        assert_eq!(
            refusal.hint(),
            Some("is it installed, and its folder in PATH?")
        );
        assert!(!refusal.is_retryable());
    }

    /// The kernel says of a number beyond the limit that it is no descriptor.
    #[test]
    fn descriptor_beyond_the_limit_of_open_files_says_how_to_raise_it() {
        let refusal = Refusal {
            step: Step::Descriptor,
            errno: libc::EBADF,
            subject: "100".to_owned(),
        };
        assert_eq!(
            refusal.to_string(),
            "cannot pass descriptor 100: bad file descriptor"
        );
        let hint = "raise the limit of open files (ulimit -n)";
        assert_eq!(refusal.hint(), Some(hint));
    }

    #[test]
    fn rare_error_is_told_in_the_words_of_the_system() {
        let errno = libc::ENOSPC;
        let refusal = Refusal {
            step: Step::Output,
            errno,
            subject: "o".to_owned(),
        };
        assert_eq!(
            refusal.to_string(),
            "cannot write output `o`: no space left on device"
        );
    }
}
