//! What a job says about its own runs, in the comments at the head of its file: `# ciel: kept` in
//! Python, `// ciel: kept` in a script.
//!
//! Words of the command line have precedence. It does not know what a setting does. Read next:
//! `run`.

use std::path::Path;

use ciel_runtime::Resume;

use crate::cli_error::CliError;
use crate::options::{Durability, RunOptions};

/// The one setting that there is: as `--kept`.
const KEPT: &str = "kept";

/// What the lint of Python reads, which is no setting.
const FOR_THE_LINT: &str = "ok";

/// Bytes at the head of a file in which settings are looked for.
const HEAD_BYTES_MAX: usize = 4096;

/// The options of a job, with what its file at `script` says beside them.
///
/// # Errors
/// It names a setting that does not exist; kept results are asked for where none are.
pub fn with_own(
    options: RunOptions,
    script: &Path,
    resume: &Resume,
) -> Result<RunOptions, CliError> {
    if options.durable == Durability::Never && (options.kept || options.kept_dir.is_some()) {
        let message = "a run with --durable never neither takes nor keeps results";
        let hint = "leave out --durable never, or --kept and --kept-dir";
        return Err(CliError::usage("kept.never", message.to_string()).with_hint(hint));
    }
    // A file that cannot be read is reported by whoever opens it.
    let head = std::fs::read(script).unwrap_or_default();
    let head = String::from_utf8_lossy(&head[..head.len().min(HEAD_BYTES_MAX)]);
    let says_kept = says_kept(&head)?;
    let is_asked = !matches!(resume, Resume::New) && !options.serial && !options.check;
    Ok(RunOptions {
        kept: options.kept || says_kept && is_asked,
        ..options
    })
}

/// Whether the comments before the first line of code ask for kept results.
fn says_kept(head: &str) -> Result<bool, CliError> {
    let mut is_asked = false;
    for (number, line) in (1..).zip(head.lines()) {
        let line = line.trim();
        let comment = line.strip_prefix('#').or_else(|| line.strip_prefix("//"));
        let setting = match comment {
            Some(comment) => comment.trim().strip_prefix("ciel:").map(str::trim),
            None if line.is_empty() => None,
            None => break,
        };
        match setting {
            None | Some(FOR_THE_LINT) => {}
            Some(KEPT) => is_asked = true,
            Some(other) => {
                let message = format!("line {number} of the job asks for the setting {other:?}");
                let hint = format!("the only setting is {KEPT:?}, which means `ciel run --kept`");
                return Err(CliError::usage("job.setting", message).with_hint(hint));
            }
        }
    }
    Ok(is_asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_is_read_from_the_comments_before_the_code() {
        for (head, expected) in [
            ("# ciel: kept\nimport ciel\n", true),
            ("#!/usr/bin/env ciel\n\n# A job.\n#ciel:kept\n", true),
            ("// ciel: kept\nreturn 1;\n", true),
            ("# ciel: ok\nimport ciel\n", false),
            ("import ciel  # ciel: kept\n# ciel: kept\n", false),
            ("# It is as if kept.\n", false),
            ("", false),
        ] {
            assert_eq!(says_kept(head).unwrap(), expected, "{head}");
        }
        assert!(says_kept("# A job.\n# ciel: kpet\n").is_err());
    }
}
