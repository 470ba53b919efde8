//! The code that the tasks of a Python job reach now, for a dry run.
//!
//! The module `ciel._code_now` imports the job with the interpreter that runs jobs, and runs no
//! task. Read next: `sdk/python/ciel/_code_now.py`, `dry_run`.

use std::path::absolute;
use std::process::{Command, Stdio};
use std::sync::Arc;

use ciel_model::{Digest, FunctionCode, Site};
use ciel_runtime::Settings;
use ciel_runtime::dry_run::{CodeNow, job_folder};

/// What the interpreter runs.
const PROGRAM: &str = "from ciel._code_now import main; main()";

/// A piece as the interpreter prints it: name, file, line, digest.
type Piece = (String, String, u32, String);

/// What each task reaches, by the name of its function.
///
/// # Errors
/// Why that cannot be told, in a sentence; what the program has printed is on standard error.
pub fn of_job(settings: &Settings) -> Result<CodeNow, String> {
    let python = settings.python.as_ref().ok_or("there is no interpreter")?;
    let file = absolute(&settings.script).map_err(|error| error.to_string())?;
    let mut command = Command::new(&python.interpreter);
    command
        .args(["-P", "-c", PROGRAM])
        .args(&settings.arguments)
        .env("CIEL_JOB", file)
        .env("CIEL_JOB_FOLDER", job_folder(settings))
        .env_remove("CIEL_JOB_MODULE")
        // A dry run leaves nothing behind.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stderr(Stdio::inherit());
    if let Some(module) = &settings.given.module {
        command.env("CIEL_JOB_MODULE", module);
    }
    let ended = command.stdin(Stdio::null()).output();
    let ended = ended.map_err(|error| {
        let interpreter = python.interpreter.display();
        format!("cannot start {interpreter}: {error}")
    })?;
    if !ended.status.success() {
        return Err("the program cannot be imported".into());
    }
    let tasks: Vec<Vec<Piece>> =
        serde_json::from_slice(&ended.stdout).map_err(|error| error.to_string())?;
    let mut code = CodeNow::default();
    for pieces in tasks {
        let pieces: Vec<FunctionCode> = pieces.into_iter().map(function).collect();
        if let Some(first) = pieces.first() {
            let name: Arc<str> = first.name.clone();
            code.entry(name).or_default().push(pieces);
        }
    }
    Ok(code)
}

fn function((name, file, line, digest): Piece) -> FunctionCode {
    let digits = digest.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).ok();
    let bytes: Vec<u8> = digits.filter_map(byte).collect();
    FunctionCode {
        name: name.into(),
        place: Site {
            file: file.into(),
            line,
        },
        digest: Digest::of(&bytes),
    }
}
