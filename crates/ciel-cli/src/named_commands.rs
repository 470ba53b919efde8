//! Commands that messages name, for runs in a folder that was named with `--state`.
//!
//! It does not know what the messages say. Read next: `options`.

use std::path::{Path, PathBuf};

/// The state folder, unless another one is named.
pub const STATE: &str = ".ciel";

/// Commands that take a run of a state folder.
const OF_RUNS: [&str; 4] = ["resume", "journal", "runs", "clean"];

/// This state folder, unless it is the default one.
pub fn named(state: &Path) -> Option<PathBuf> {
    (state != Path::new(STATE)).then(|| state.to_owned())
}

/// A message whose commands find a run of this folder; unchanged where none was named, for the
/// commands look in the default one.
pub fn with_state(message: &str, state: Option<&Path>) -> String {
    let Some(state) = state else {
        return message.to_owned();
    };
    let option = format!("--state {}", quoted(&state.to_string_lossy()));
    let mut told = message.to_owned();
    for command in OF_RUNS.map(|command| format!("ciel {command}")) {
        told = told.replace(&command, &format!("{command} {option}"));
    }
    told
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=@%:,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_message_name_the_folder_that_was_named() {
        let hint = "free disk space, then continue with `ciel resume 17`, or `ciel run` it again";
        assert_eq!(with_state(hint, None), hint);
        assert_eq!(
            with_state(hint, Some(Path::new("../st"))),
            "free disk space, then continue with `ciel resume --state ../st 17`, or `ciel run` it \
             again"
        );
        assert_eq!(
            with_state("`ciel runs`", Some(Path::new("it's here"))),
            "`ciel runs --state 'it'\\''s here'`"
        );
    }
}
