//! The shell of a run, where a program is started in place of one that would only start it.
//!
//! What the program sees and what is told of its end is as behind the shell: `dash`, which passes
//! its environment on, says on standard error which signal has killed a program, and exits with 128
//! and the number of that. It does not know which commands are such programs. Read next:
//! `executors/direct`.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ciel_spawner::{Environment, Start, Status};

use crate::executors::command::Plan;
use crate::executors::direct::is_passed_on;
use crate::workspace::c_string;

/// The shell whose ways are known.
const KNOWN_SHELL: &str = "dash";

/// The shell of a run, as far as it passes its environment on.
pub(crate) struct PlainShell {
    /// The value of `PWD`.
    pwd: Option<PathBuf>,
}

impl PlainShell {
    /// That of a run whose processes have this environment; none if its shell is not the known one,
    /// or would change more of the environment than `PWD`.
    pub(crate) fn of(environment: &[CString]) -> Option<PlainShell> {
        let split = |entry: &'_ CString| -> Option<(Vec<u8>, Vec<u8>)> {
            let at = entry.as_bytes().iter().position(|byte| *byte == b'=')?;
            let (name, value) = entry.as_bytes().split_at(at);
            Some((name.to_vec(), value[1..].to_vec()))
        };
        let entries: Option<Vec<_>> = environment.iter().map(split).collect();
        let entries = entries?;
        let names: BTreeSet<&[u8]> = entries.iter().map(|(name, _)| name.as_slice()).collect();
        let value_of = |wanted: &[u8]| {
            let found = entries.iter().find(|(name, _)| name == wanted)?;
            Some(found.1.as_slice())
        };
        let path = value_of(b"PATH").filter(|path| !path.contains(&b'%'))?;
        let is_plain = names.len() == entries.len() && names.iter().all(|name| is_passed_on(name));
        let pwd = value_of(b"PWD").map(|value| PathBuf::from(OsStr::from_bytes(value)));
        (is_plain && is_known(path)).then_some(PlainShell { pwd })
    }

    /// Has the program of a plan started; false if it has none.
    pub(crate) fn skip(&self, plan: &Plan, start: &mut Start) -> bool {
        let (Some(words), Environment::Additions(added)) = (&plan.direct, &mut start.environment)
        else {
            return false;
        };
        let folder = plan.folder.as_deref().unwrap_or(Path::new("."));
        if self.pwd_of(folder).is_none() {
            let Ok(path) = folder.canonicalize() else {
                return false;
            };
            let entry = [b"PWD=", path.as_os_str().as_bytes()].concat();
            added.push(c_string(OsStr::from_bytes(&entry)));
        }
        start.direct = Some(words.iter().map(|word| c_string(word)).collect());
        true
    }

    /// The value of `PWD`, if it is that folder.
    fn pwd_of(&self, folder: &Path) -> Option<&Path> {
        let pwd = self.pwd.as_deref().filter(|pwd| pwd.is_absolute())?;
        let (is, folder) = (pwd.metadata().ok()?, folder.metadata().ok()?);
        ((is.dev(), is.ino()) == (folder.dev(), folder.ino())).then_some(pwd)
    }
}

/// Whether the first `sh` of the `PATH` is the known shell.
fn is_known(path: &[u8]) -> bool {
    let folders = path.split(|byte| *byte == b':').map(OsStr::from_bytes);
    let mut files = folders.map(|folder| Path::new(folder).join("sh"));
    let found = files.find(|file| file.is_file());
    let real = found.and_then(|file| file.canonicalize().ok());
    real.is_some_and(|real| real.file_name() == Some(OsStr::new(KNOWN_SHELL)))
}

/// The end of a program as its shell tells it, and what that writes about it.
pub(crate) fn as_by_shell(status: &mut Status) -> Option<Vec<u8>> {
    let Status::Signal(number, dumped) = *status else {
        return None;
    };
    *status = Status::Code(128 + number);
    // SAFETY: the text is copied before this thread asks again, and no other thread asks.
    let words = unsafe {
        let words = libc::strsignal(number);
        (!words.is_null()).then(|| CStr::from_ptr(words).to_bytes().to_vec())
    };
    let is_said = number != libc::SIGINT && number != libc::SIGPIPE;
    let core: &[u8] = if dumped { b" (core dumped)" } else { b"" };
    let words = words.filter(|_| is_said)?;
    Some([&words, core, b"\n"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(entries: &[&str]) -> Option<PlainShell> {
        let entries = entries.iter().map(|entry| c_string(entry.as_ref()));
        PlainShell::of(&entries.collect::<Vec<_>>())
    }

    #[test]
    fn environment_that_the_shell_changes_is_left_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (shell, real) = (folder.path().join("sh"), folder.path().join("dash"));
        std::fs::write(&real, "").expect("a file");
        std::os::unix::fs::symlink(&real, &shell).expect("a link");
        let path = format!("PATH=/there/is/none:{}", folder.path().display());
        let pwd = of(&[&path, "A=1", "PWD=/a"]).expect("plain").pwd;
        assert_eq!(pwd, Some("/a".into()));
        for bad in ["A=2", "IFS=x", "f%%=() { :; }", "2=a", "nothing", "=x"] {
            assert!(of(&[&path, "A=1", bad]).is_none(), "{bad}");
        }
        assert!(of(&[&path.replace("/there", "/%there")]).is_none());
        assert!(of(&["A=1"]).is_none());
        std::fs::remove_file(&shell).expect("it is there");
        std::fs::write(&shell, "").expect("a file");
        assert!(of(&[&path]).is_none());
    }
}
