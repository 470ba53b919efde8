//! The programs that a command asks to count among its inputs: where they are, and their content.
//!
//! A script counts with the program that its first line names. A program that is found by the
//! `PATH` of the run is written down by that, so that a later run finds it by its own. It does not
//! know which programs a command names. Read next: `executors::tools`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ciel_kept::Input;
use ciel_model::{Class, Descriptor, Digest, FileRead, RerunReason};
use serde_json::Value;

use crate::executors::tools;

/// What the name of a program begins with that is found by the `PATH` of the run.
const BY_PATH: &str = "$PATH/";

/// Scripts that run scripts, at most; the kernel goes no further.
const SCRIPTS_MAX: usize = 4;

/// Bytes of a script's first line that are read.
const FIRST_LINE_BYTES_MAX: u64 = 256;

/// The programs that count for a task, and what those are that a later run must find again.
pub(crate) fn of_task(
    descriptor: &Descriptor,
    digest_of: impl Fn(&Path) -> Option<Digest>,
) -> Vec<(Input, Option<FileRead>)> {
    if descriptor.class != Class::Process {
        return Vec::new();
    }
    let arguments: Value = serde_json::from_slice(&descriptor.payload).unwrap_or_default();
    let Some(asked) = tools::of(&arguments) else {
        return Vec::new();
    };
    let search = Search::of(&arguments);
    let mut found: Vec<(Input, Option<FileRead>)> = Vec::new();
    for name in asked.names {
        let mut next = Some(name);
        for depth in 0..=SCRIPTS_MAX {
            let Some(name) = next.take() else { break };
            let Some((known, path)) = search.find(&name) else {
                if asked.are_listed && depth == 0 {
                    found.push((Input::tool(name.into(), Digest(0)), None));
                }
                break;
            };
            let Some(digest) = digest_of(&path) else {
                break;
            };
            next = interpreter(&path);
            let shown = known.strip_prefix(BY_PATH).unwrap_or(&known).into();
            let read = FileRead {
                path: known.into(),
                length: std::fs::metadata(&path).map_or(0, |found| found.len()),
                digest,
            };
            found.push((Input::tool(shown, digest), Some(read)));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    found.dedup_by(|(one, _), (other, _)| one == other);
    found
}

/// Where a file is that a task has read, by its name there: a program by the `PATH` of this run.
pub(crate) fn place_of(name: &str) -> Option<PathBuf> {
    match name.strip_prefix(BY_PATH) {
        Some(program) => Search::default().find(program).map(|(_, path)| path),
        None => Some(name.into()),
    }
}

/// Where a program is now that counted by this name; none if it is not there any more.
pub(crate) fn place_of_tool(name: &str) -> Option<PathBuf> {
    Search::default().find(name).map(|(_, path)| path)
}

/// Why a task runs again of which a file, read under this name, is another.
pub(crate) fn reason(name: &Arc<str>) -> RerunReason {
    match name.strip_prefix(BY_PATH) {
        Some(program) => RerunReason::ToolChanged(program.into()),
        None => RerunReason::InputChanged(name.clone()),
    }
}

/// Where a task looks for programs.
#[derive(Default)]
struct Search {
    folder: PathBuf,
    /// Folders before those of the `PATH` of the run, or in their place.
    own: Option<OsString>,
    /// Whether the `PATH` of the run follows.
    is_alone: bool,
}

impl Search {
    fn of(arguments: &Value) -> Search {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(OsString::from);
        let given = ["env", "environment"].into_iter();
        let mut given = given.filter_map(|key| text(arguments.get(key)?.get("PATH")));
        let conda = text(arguments.get("conda"));
        let conda = conda.map(|prefix| Path::new(&prefix).join("bin").into_os_string());
        let set = given.next();
        Search {
            folder: text(arguments.get("folder")).unwrap_or_default().into(),
            is_alone: set.is_some(),
            own: match (conda, set) {
                (Some(conda), Some(set)) => std::env::join_paths([conda, set]).ok(),
                (conda, set) => conda.or(set),
            },
        }
    }

    /// A program by the name under which a later run finds it, and its path.
    fn find(&self, name: &str) -> Option<(String, PathBuf)> {
        let shown = |path: PathBuf| Some((path.to_str()?.to_string(), path));
        if name.contains('/') {
            let path = std::path::absolute(self.folder.join(name)).ok()?;
            return is_program(&path).then_some(path).and_then(shown);
        }
        let own = self.own.as_deref().unwrap_or_default();
        if let Some(path) = in_path(own, name) {
            return std::path::absolute(path).ok().and_then(shown);
        }
        let path = std::env::var_os("PATH").filter(|_| !self.is_alone)?;
        Some((format!("{BY_PATH}{name}"), in_path(&path, name)?))
    }
}

fn in_path(path: &OsStr, name: &str) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty());
    let mut places = folders.map(|folder| folder.join(name));
    places.find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The program that the first line of a script names.
fn interpreter(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    let file = File::open(path).ok()?;
    let read = file.take(FIRST_LINE_BYTES_MAX).read_to_end(&mut start);
    let start = read.ok().map(|_| start)?;
    let line = start
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let first = words.next()?;
    let is_env = Path::new(first).file_name() == Some(OsStr::new("env"));
    let is_name = |word: &&str| !word.starts_with('-') && !word.contains('=');
    match is_env {
        true => words.find(is_name).map(str::to_string),
        false => Some(first.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A folder with a script in it that this program runs.
    fn with_script(name: &str, first: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!{first}\necho\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    }

    fn names(arguments: &Value) -> Vec<String> {
        let payload = arguments.to_string().into_bytes();
        let descriptor = Descriptor::plain("shell", Class::Process, "f", payload);
        let all = of_task(&descriptor, |path| {
            Some(Digest::of(path.as_os_str().as_encoded_bytes()))
        });
        all.into_iter()
            .map(|(input, _)| input.name.to_string())
            .collect()
    }

    #[test]
    fn script_counts_with_the_program_that_its_first_line_names() {
        for (first, interpreter) in [("/bin/sh -e", "/bin/sh"), ("/usr/bin/env -S sh -e", "sh")] {
            let (folder, path) = with_script("tool", first);
            let arguments = json!({
                "command": "tool | no-such-program-at-all",
                "env": {"PATH": folder.path()},
                "tools": true,
            });
            let script = path.to_str().unwrap().to_string();
            let expected = match interpreter.contains('/') {
                true => vec!["/bin/sh".to_string(), script],
                // The task has no other `PATH`.
                false => vec![script],
            };
            assert_eq!(names(&arguments), expected);
        }
    }

    #[test]
    fn listed_program_that_is_not_there_counts_as_such() {
        let arguments = json!({"command": "x", "tools": ["no-such-program-at-all", "sh"]});
        assert_eq!(names(&arguments), ["no-such-program-at-all", "sh"]);
    }

    #[test]
    fn program_by_a_path_is_looked_for_from_the_folder_of_the_task() {
        let (folder, path) = with_script("tool", "/bin/sh");
        let arguments = json!({"command": "./tool", "folder": folder.path(), "tools": true});
        let script = path.to_str().unwrap().to_string();
        assert_eq!(names(&arguments), ["/bin/sh".to_string(), script]);
    }

    #[test]
    fn program_of_the_path_is_found_again_by_it() {
        let found = Search::default().find("sh").unwrap();
        assert_eq!(found.0, "$PATH/sh");
        assert_eq!(place_of("$PATH/sh"), Some(found.1));
        assert_eq!(
            reason(&"$PATH/sh".into()),
            RerunReason::ToolChanged("sh".into())
        );
    }
}
