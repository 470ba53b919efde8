//! The key of a run: which job it is, and in which state its code was when it began.
//!
//! A run can be resumed only by one with an equal key. The key is the hash of the user, the
//! script's real path, its code, its arguments, its packages (paths, lengths and times of change)
//! and the current folder; how the job is run does not count. The code of a Skywriting script is
//! its text and all that it includes, and no scripts that tasks call by their files. The code of a
//! Python job is its file and all files `*.py` in and below its folder, nearest first, in a
//! bounded number, without virtual environments, hidden folders and installed packages. It has
//! nothing to do with the key that names tasks (`Settings::key`), in which code does not count.
//! Read next: `choice`.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use blake3::Hasher;
use ciel_view::Durable;

use crate::file_stamp::FileStamp;
use crate::job::Job;
use crate::layout::code_folder;
use crate::settings::{Package, Settings};

/// Files of Python code that count.
const FILES_MAX: usize = 2_000;

/// Folders that are looked into for Python code.
const FOLDERS_MAX: usize = 1_000;

/// Bytes of a file of Python code that count.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Folders of code that is not the project's.
const FOREIGN_FOLDERS: [&str; 3] = ["__pycache__", "node_modules", "site-packages"];

/// The key of the run; none for jobs that cannot be resumed: sessions, jobs run serially, and those
/// of which nothing is to be recorded.
pub(crate) fn run_key(settings: &Settings, job: &Job<'_>) -> Option<String> {
    let mut hasher = Hasher::new();
    let user = rustix::process::geteuid().as_raw();
    add(&mut hasher, &user.to_be_bytes());
    match job {
        _ if settings.serial || settings.durable == Durable::Never => return None,
        Job::Session(_) => return None,
        Job::Script(program) => {
            for source in &program.sources {
                add(&mut hasher, source.name.as_bytes());
                add(&mut hasher, source.text.as_bytes());
            }
        }
        Job::Python => add_modules(&mut hasher, &settings.script, &code_folder(settings)),
    }
    let script = fs::canonicalize(&settings.script).ok()?;
    add(&mut hasher, script.as_os_str().as_bytes());
    add(
        &mut hasher,
        std::env::current_dir().ok()?.as_os_str().as_bytes(),
    );
    add(&mut hasher, &settings.packages.len().to_be_bytes());
    for (name, package) in &settings.packages {
        add(&mut hasher, name.as_bytes());
        add_package(&mut hasher, package);
    }
    add(&mut hasher, &settings.variables.len().to_be_bytes());
    for (name, value) in &settings.variables {
        add(&mut hasher, name.as_bytes());
        add(&mut hasher, value.as_bytes());
    }
    for argument in &settings.arguments {
        add(&mut hasher, argument.as_bytes());
    }
    Some(hasher.finalize().to_hex()[..32].to_string())
}

/// The key of the job: the script's path, arguments and packages by name, and the current folder,
/// whatever the state of its code.
pub(crate) fn job_key(settings: &Settings) -> String {
    let mut hasher = Hasher::new();
    let script = fs::canonicalize(&settings.script).unwrap_or_else(|_| settings.script.clone());
    add(&mut hasher, script.as_os_str().as_bytes());
    let folder = std::env::current_dir().unwrap_or_default();
    add(&mut hasher, folder.as_os_str().as_bytes());
    for name in settings.packages.keys() {
        add(&mut hasher, name.as_bytes());
    }
    for argument in &settings.arguments {
        add(&mut hasher, argument.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_string()
}

fn add_package(hasher: &mut Hasher, package: &Package) {
    if let Package::Index(paths) = package {
        add(hasher, &paths.len().to_be_bytes());
    }
    for path in package.files() {
        add(hasher, path.as_os_str().as_bytes());
        let stamp = fs::metadata(path).map(|found| FileStamp::of(&found).lasting());
        add(hasher, stamp.as_ref().map_or(&[], |bytes| &bytes[..]));
    }
}

/// Each part after its length, so that no two sequences of parts are alike.
fn add(hasher: &mut Hasher, part: &[u8]) {
    hasher.update(&(part.len() as u64).to_be_bytes());
    hasher.update(part);
}

fn add_modules(hasher: &mut Hasher, script: &Path, folder: &Path) {
    add_file(hasher, script);
    for path in modules_below(folder) {
        add(hasher, path.as_os_str().as_bytes());
        add_file(hasher, &path);
    }
}

/// One that cannot be read counts as empty: its import will report the error.
fn add_file(hasher: &mut Hasher, path: &Path) {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // Half a file is as good as none; the next look at it may differ, and then a run is new.
        let _ = file.take(FILE_BYTES_MAX).read_to_end(&mut bytes);
    }
    add(hasher, &bytes);
}

/// The files of Python code in a folder and below it, nearest first, else by name.
fn modules_below(folder: &Path) -> Vec<PathBuf> {
    let mut modules = Vec::new();
    let mut folders = VecDeque::from([folder.to_path_buf()]);
    let mut looked_into = 0;
    while let Some(folder) = folders.pop_front() {
        looked_into += 1;
        if looked_into > FOLDERS_MAX || modules.len() >= FILES_MAX {
            break;
        }
        let (inner, files) = listed(&folder);
        folders.extend(inner.into_iter().filter(|path| is_own_code(path)));
        modules.extend(files.into_iter().filter(|path| is_module(path)));
    }
    modules.truncate(FILES_MAX);
    modules
}

/// Folders and files in a folder, by name; links to folders are left out.
fn listed(folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => folders.push(entry.path()),
            Ok(_) => files.push(entry.path()),
            Err(_) => {}
        }
    }
    folders.sort();
    files.sort();
    (folders, files)
}

fn is_module(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "py") && path.is_file()
}

fn is_own_code(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_foreign = name.starts_with('.') || FOREIGN_FOLDERS.contains(&name.as_ref());
    !is_foreign && !folder.join("pyvenv.cfg").exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::script_folder;

    #[test]
    fn modules_are_those_of_the_project_nearest_first() {
        let home = tempfile::tempdir().unwrap();
        for name in [
            "z.py",
            "a.txt",
            "pack/b.py",
            "pack/deep/a.py",
            ".hidden/x.py",
            "venv/lib/x.py",
            "pack/__pycache__/x.py",
        ] {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        fs::write(home.path().join("venv/pyvenv.cfg"), "").unwrap();
        std::os::unix::fs::symlink(home.path(), home.path().join("round")).unwrap();
        let expected = ["z.py", "pack/b.py", "pack/deep/a.py"];
        assert_eq!(
            modules_below(home.path()),
            expected.map(|name| home.path().join(name))
        );
    }

    #[test]
    fn code_of_every_module_of_the_project_counts() {
        let home = tempfile::tempdir().unwrap();
        let (script, module) = (
            home.path().join("job.py"),
            home.path().join("pack/inner.py"),
        );
        fs::create_dir(home.path().join("pack")).unwrap();
        let hash = |script_text: &str, module_text: &str| {
            fs::write(&script, script_text).unwrap();
            fs::write(&module, module_text).unwrap();
            let mut hasher = Hasher::new();
            add_modules(&mut hasher, &script, &script_folder(&script));
            hasher.finalize()
        };
        let first = hash("import pack.inner", "x = 1");
        assert_eq!(hash("import pack.inner", "x = 1"), first);
        assert_ne!(hash("import pack.inner", "x = 2"), first);
        assert_ne!(hash("import pack.inner ", "x = 1"), first);
    }

    #[test]
    fn number_of_modules_is_bounded() {
        let home = tempfile::tempdir().unwrap();
        for number in 0..FILES_MAX + 10 {
            File::create(home.path().join(format!("module_{number}.py"))).unwrap();
        }
        assert_eq!(modules_below(home.path()).len(), FILES_MAX);
    }

    #[test]
    fn parts_cannot_run_into_each_other() {
        let hash = |parts: &[&str]| {
            let mut hasher = Hasher::new();
            for part in parts {
                add(&mut hasher, part.as_bytes());
            }
            hasher.finalize()
        };
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_ne!(hash(&["a", ""]), hash(&["a"]));
    }
}
