//! What a job is made of, from the words of its command: a script or program, its arguments, and
//! the files that it is given by name.
//!
//! It does not know what is in a script. Read next: `pack`, for job packages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ciel_runtime::Package;

use crate::cli_error::CliError;
use crate::options::RunOptions;
use crate::pack::{self, JobPack};
use crate::{python, sink};

/// What a job is made of.
pub struct JobFiles {
    /// The file that was given, and the words after it.
    pub command: (PathBuf, Vec<String>),
    /// The script or program.
    pub script: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables that only scripts see.
    pub variables: BTreeMap<String, String>,
    /// What it is given by name.
    pub packages: BTreeMap<String, Package>,
}

impl JobFiles {
    /// The job that the options name.
    ///
    /// # Errors
    /// A word is not text, or a file cannot be read.
    pub fn of(options: &RunOptions) -> Result<JobFiles, CliError> {
        let command = split(options)?;
        let pack = match pack::is_pack(&command.0) {
            true => pack::read(&command.0, &command.1)?,
            false => JobPack {
                script: command.0.clone(),
                arguments: command.1.clone(),
                variables: BTreeMap::new(),
                packages: BTreeMap::new(),
            },
        };
        Ok(JobFiles {
            command,
            script: pack.script,
            arguments: pack.arguments,
            variables: pack.variables,
            packages: packages(pack.packages, options)?,
        })
    }

    /// All files that the job is made of.
    pub fn sources(&self) -> Vec<&Path> {
        let packages = self.packages.values().flat_map(Package::files);
        let mut sources: Vec<&Path> = packages.map(PathBuf::as_path).collect();
        sources.extend([self.command.0.as_path(), self.script.as_path()]);
        sources
    }
}

/// The file of the job and its words.
fn split(options: &RunOptions) -> Result<(PathBuf, Vec<String>), CliError> {
    let (file, rest) = options.command.split_first().expect("the file is required");
    let words = rest.iter().map(|argument| {
        argument.to_str().map(str::to_string).ok_or_else(|| {
            let message = format!("the argument {argument:?} is not UTF-8");
            CliError::usage("arguments", message).with_hint("scripts take text as arguments")
        })
    });
    let file = match options.module {
        true => python::module_file(file)?,
        false => PathBuf::from(file),
    };
    Ok((file, words.collect::<Result<_, _>>()?))
}

/// Those of a job package and those of the options, all of them readable.
fn packages(
    mut packages: BTreeMap<String, Package>,
    options: &RunOptions,
) -> Result<BTreeMap<String, Package>, CliError> {
    for (name, path) in &options.package {
        let package = Package::File(path.clone());
        if packages.insert(name.clone(), package).is_some() {
            let message = format!("the package {name} is given twice");
            return Err(CliError::usage("package.twice", message));
        }
    }
    for (name, package) in &packages {
        for path in package.files() {
            expect_readable(name, path)?;
        }
    }
    Ok(packages)
}

fn expect_readable(name: &str, path: &Path) -> Result<(), CliError> {
    let found = std::fs::metadata(path).and_then(|found| match found.is_file() || found.is_dir() {
        true => sink::is_readable_file(path),
        false => Err(std::io::Error::other("it is not a regular file")),
    });
    found.map_err(|error| {
        let path = path.display();
        let message = format!("cannot read the package {name}, {path}: {error}");
        CliError::usage("package.unreadable", message)
    })
}
