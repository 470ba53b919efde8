//! Why an instruction stops: it waits, it needs memory, or it fails.
//!
//! An instruction that stops has changed nothing that its next attempt could notice. It does not
//! know frames. Read next: `trace`, which adds the places.

use crate::host::{Handle, Host, Thrown};
use crate::value::Value;

/// Why an instruction did not complete. It is retried unless it failed.
#[derive(Debug)]
pub(crate) enum Pause {
    /// These references must be answered first.
    Blocked(Vec<Handle>),
    /// It cancels this reference, and must be told whether that has an effect.
    Cancels(Handle),
    /// So many bytes are needed besides what is live.
    Collect(usize),
    /// A child that runs in place comes to what only the host can do.
    NeedsHost,
    /// The oldest pending child takes long, and somebody is there who could run another one.
    Offered,
    Failed(Box<Failure>),
}

/// A failure on its way to a handler.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) thrown: Thrown,
    /// What `catch` binds as it is: a thrown dictionary that already has the form.
    pub(crate) rethrown: Option<Value>,
    /// The value of a `throw` statement, for `catch` in the same task.
    pub(crate) value: Option<Value>,
    /// The name of the object that it is about.
    pub(crate) about: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: &str, message: impl Into<String>) -> Failure {
        Failure::of(Thrown {
            kind: kind.to_owned(),
            message: message.into(),
            task: String::new(),
            trace: Vec::new(),
            hint: None,
            value: None,
        })
    }

    pub(crate) fn of(thrown: Thrown) -> Failure {
        Failure {
            thrown,
            rethrown: None,
            value: None,
            about: None,
        }
    }

    /// The same, about an object.
    pub(crate) fn about(mut self, object: &str) -> Failure {
        self.about = Some(object.to_owned());
        self
    }

    /// The same with the task that made the object, if the host knows it.
    pub(crate) fn with_maker(mut self, host: &dyn Host) -> Failure {
        let object = self.about.take();
        if let Some(task) = object.and_then(|object| host.maker(&object)) {
            let message = &mut self.thrown.message;
            message.push_str(&format!("; task {task} wrote them"));
        }
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.thrown.hint = Some(hint.into());
        self
    }

    /// "did you mean" when one of the candidates is close.
    pub(crate) fn hint_closest<'a>(
        self,
        name: &str,
        candidates: impl Iterator<Item = &'a str>,
    ) -> Failure {
        match closest(name, candidates) {
            Some(candidate) => self.hint(format!("did you mean {candidate:?}?")),
            None => self,
        }
    }
}

impl From<Box<Failure>> for Pause {
    fn from(failure: Box<Failure>) -> Pause {
        Pause::Failed(failure)
    }
}

impl From<Failure> for Pause {
    fn from(failure: Failure) -> Pause {
        Pause::Failed(Box::new(failure))
    }
}

/// Fails with a kind and a message.
pub(crate) fn fail<T>(kind: &str, message: impl Into<String>) -> Result<T, Pause> {
    Err(Failure::new(kind, message).into())
}

/// Longer names and longer lists are not searched.
const NAME_BYTES_MAX: usize = 40;
const CANDIDATES_MAX: usize = 1000;

/// The candidate with the fewest changes, if they are few.
pub(crate) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let most = 1 + name.chars().count() / 4;
    candidates
        .take(CANDIDATES_MAX)
        .filter(|candidate| candidate.len() <= NAME_BYTES_MAX)
        .map(|candidate| (changes(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many insertions, removals and replacements of characters lead from one to the other.
fn changes(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, character) in left.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (at, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(character != *other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_name_is_found_and_a_far_one_is_not() {
        let names = ["cores", "memory", "retries"];
        assert_eq!(closest("core", names.into_iter()), Some("cores"));
        assert_eq!(closest("retires", names.into_iter()), Some("retries"));
        assert_eq!(closest("colour", names.into_iter()), None);
    }
}
