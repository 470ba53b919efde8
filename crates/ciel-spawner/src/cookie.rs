//! The mark that every process of a run carries in its environment.
//!
//! A mark is `<run>:<task>`. A task may itself run an engine, so the variable holds the marks of
//! all enclosing tasks, outermost first, with one blank between them. This module does not know
//! where processes are found. Next: `processes`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The environment variable that holds the marks.
pub const COOKIE_VARIABLE: &str = "CIEL_COOKIE";

/// The environment variable that holds the number of the socket for a template.
pub const TEMPLATE_VARIABLE: &str = "CIEL_TEMPLATE_FD";

/// The name of a run as its processes carry it: 1 to 64 ASCII letters, digits, `-`, `_` or `.`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cookie(String);

/// The text cannot be a cookie.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a cookie: 1 to 64 letters, digits, `-`, `_` or `.`")]
pub struct BadCookie {
    /// The text that was refused.
    pub text: String,
}

impl Cookie {
    /// Takes the run's name; it should be unlike that of every other run of this user.
    pub fn new(run: &str) -> Result<Cookie, BadCookie> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if (1..=64).contains(&run.len()) && run.chars().all(fits) {
            Ok(Cookie(run.to_owned()))
        } else {
            Err(BadCookie {
                text: run.to_owned(),
            })
        }
    }

    /// The run's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The task's part of the first mark of this run in the variable's value.
    pub(crate) fn task_in<'a>(&self, value: &'a [u8]) -> Option<&'a [u8]> {
        value
            .split(|&byte| byte == b' ')
            .find_map(|mark| mark.strip_prefix(self.0.as_bytes())?.strip_prefix(b":"))
    }

    /// The variable's whole entry for a task; `enclosing` are the marks of tasks around the run.
    pub(crate) fn entry(&self, enclosing: &[u8], task: &str) -> Vec<u8> {
        let mut entry = format!("{COOKIE_VARIABLE}=").into_bytes();
        if !enclosing.is_empty() {
            entry.extend_from_slice(enclosing);
            entry.push(b' ');
        }
        entry.extend_from_slice(format!("{}:{task}", self.0).as_bytes());
        entry
    }
}

impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a text can be the task's part of a mark: printable ASCII without a blank.
pub(crate) fn is_task_name(task: &str) -> bool {
    (1..=256).contains(&task.len()) && task.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_inside_a_task_keeps_both_marks() {
        let (outer, inner) = (Cookie::new("outer").unwrap(), Cookie::new("inner").unwrap());
        let entry = inner.entry(b"outer:a", "b");
        assert_eq!(entry, b"CIEL_COOKIE=outer:a inner:b");
        assert_eq!(outer.task_in(&entry[12..]), Some(&b"a"[..]));
        assert_eq!(inner.task_in(&entry[12..]), Some(&b"b"[..]));
        assert_eq!(Cookie::new("oute").unwrap().task_in(&entry[12..]), None);
    }

    #[test]
    fn text_with_a_separator_is_not_a_cookie() {
        for text in ["", "a:b", "a b", "a/b", &"x".repeat(65)] {
            assert!(Cookie::new(text).is_err(), "{text:?}");
        }
    }
}
