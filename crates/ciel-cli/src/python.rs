//! Which interpreter runs tasks in Python.
//!
//! It looks at names and files only and starts nothing; whether the module `ciel` can be imported
//! is seen when the first worker is started.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ciel_runtime::Python;

use crate::cli_error::CliError;

/// The variable that names an interpreter.
const INTERPRETER: &str = "CIEL_PYTHON";

/// The variable with the folder of a session's modules.
const MODULE_PATH: &str = "CIEL_PYTHON_PATH";

const HINT: &str = "install Python 3.11 or newer, or name one: --python FILE";

const ENTER: &str = "this user may not enter one of its folders; name another one: --python FILE";

/// What interpreters are called.
const NAME: &str = "python3";

/// The interpreter that was requested, else that of `CIEL_PYTHON`, else the one beside this
/// program, else that of the active virtual environment, else the first on `PATH`.
///
/// # Errors
/// The requested interpreter does not exist, is no file, or is out of this user's reach.
pub fn find(asked: Option<&Path>) -> Result<Option<Python>, CliError> {
    let named = || std::env::var_os(INTERPRETER).map(PathBuf::from);
    let asked = asked.map(Path::to_path_buf).or_else(named);
    if let Some(file) = &asked {
        check(file)?;
    }
    let found = asked.or_else(around).map(|interpreter| Python {
        interpreter,
        module_path: std::env::var(MODULE_PATH).ok(),
    });
    Ok(found)
}

fn check(file: &Path) -> Result<(), CliError> {
    let (what, hint) = match file.metadata() {
        Ok(found) if found.is_file() => return Ok(()),
        Ok(_) => ("is no file".to_string(), HINT),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => ("does not exist".to_string(), HINT),
            ErrorKind::PermissionDenied => ("cannot be reached: permission denied".into(), ENTER),
            _ => (format!("cannot be reached: {error}"), HINT),
        },
    };
    let message = format!("the Python interpreter {} {what}", file.display());
    Err(CliError::usage("python.missing", message).with_hint(hint))
}

fn around() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|file| Some(file.parent()?.to_path_buf()));
    let active = std::env::var_os("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(active);
    let candidates = folders.chain(std::env::split_paths(&path));
    candidates
        .map(|folder| folder.join(NAME))
        .find(|file| file.is_file())
}

/// The file of a module, below the current folder; for a package, its `__main__.py`.
///
/// # Errors
/// It is no name of a module, or there is no such file.
pub fn module_file(name: &OsStr) -> Result<PathBuf, CliError> {
    let text = name.to_string_lossy();
    let is_word = |part: &str| part.chars().all(|c| c.is_alphanumeric() || c == '_');
    if text
        .split('.')
        .any(|part| part.is_empty() || !is_word(part))
        || text.ends_with(".py")
    {
        let message = format!("-m takes the name of a module, such as package.job, not {text}");
        let hint = format!("`ciel run {text}` runs a file");
        return Err(CliError::usage("python.module", message).with_hint(hint));
    }
    let path = PathBuf::from(text.replace('.', "/"));
    let (main, file) = (path.join("__main__.py"), path.with_extension("py"));
    let found = [&main, &file].into_iter().find(|path| path.is_file());
    found.cloned().ok_or_else(|| {
        let (main, file) = (main.display(), file.display());
        let message = format!("there is no module {text} here: neither {main} nor {file} exists");
        let hint = "run it from the folder that contains its package";
        CliError::usage("python.module", message).with_hint(hint)
    })
}

/// There is none.
pub fn missing() -> CliError {
    let message = "no Python interpreter was found: neither beside ciel, nor python3 on PATH";
    CliError::usage("python.missing", message).with_hint(HINT)
}
