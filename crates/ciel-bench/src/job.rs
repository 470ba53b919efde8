//! Runs of `ciel` in a folder of their own.
//!
//! Each run is a whole process as a user starts it; its result is compared with what it must be,
//! so that no figure comes from a job that went wrong.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::process::{Launch, Process, Spent};

/// The command and a folder for scripts, state and output.
#[derive(Debug)]
pub struct Ciel {
    binary: PathBuf,
    folder: TempDir,
}

/// A script with what it is given, ready to run.
#[derive(Debug)]
pub struct Job {
    launch: Launch,
    output: PathBuf,
    complaints: PathBuf,
}

impl Ciel {
    /// A folder that goes with this value.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn new(binary: PathBuf) -> Result<Ciel> {
        let folder = tempfile::tempdir().context("making a folder")?;
        Ok(Ciel { binary, folder })
    }

    /// The folder for whatever a measurement needs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The command.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// A job called `name` whose program is `script`; `options` are those of `ciel run`, and
    /// `arguments` the script's.
    ///
    /// # Errors
    /// If the script cannot be written.
    pub fn job(
        &self,
        name: &str,
        script: &str,
        options: &[&str],
        arguments: &[&str],
    ) -> Result<Job> {
        let place = |suffix: &str| self.folder().join(format!("{name}.{suffix}"));
        let path = place("sw");
        std::fs::write(&path, script).with_context(|| format!("writing {}", path.display()))?;
        // Killed runs of earlier measurements must not be resumed.
        let own = ["run", "--new"].map(OsString::from);
        let mut words: Vec<OsString> = vec![self.binary.clone().into()];
        words.extend(own);
        words.extend(["--state".into(), self.folder().join("state").into()]);
        words.extend(options.iter().map(OsString::from));
        words.push(path.into());
        words.extend(arguments.iter().map(OsString::from));
        let (output, complaints) = (place("out"), place("err"));
        let launch = Launch::new(words)?
            .stdout_to(&output)?
            .stderr_to(&complaints)?;
        Ok(Job {
            launch,
            output,
            complaints,
        })
    }
}

impl Job {
    /// Starts it and does not wait.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self) -> Result<Process> {
        self.launch.start()
    }

    /// Runs it to its end; the last line of its output must be `expected`.
    ///
    /// # Errors
    /// If it fails, or gives something else.
    pub fn run(&self, expected: &str) -> Result<Spent> {
        let spent = self.launch.run().with_context(|| self.complaints())?;
        let output = std::fs::read_to_string(&self.output)?;
        let last = output.lines().last().unwrap_or_default();
        ensure!(last == expected, "it gave {last:?} instead of {expected:?}");
        Ok(spent)
    }

    fn complaints(&self) -> String {
        std::fs::read_to_string(&self.complaints).unwrap_or_default()
    }
}
