//! `environ`: a command that finds its files by `INPUT_FILES` and `OUTPUT_FILES`, each the path of
//! a list with one path per line.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use ciel_model::Refused;
use serde_json::Value;

use super::command::{CommandLine, Plan, Stdout, Workspace};
use super::names::ENVIRON;
use super::{surroundings, tools, words};

pub(super) struct Environ;

impl CommandLine for Environ {
    fn name(&self) -> &'static str {
        ENVIRON
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["env"]
    }

    fn label_of(&self, arguments: &Value) -> Option<String> {
        words::program_name(arguments)
    }

    fn plan(
        &self,
        arguments: &Value,
        outputs: u32,
        desk: &mut dyn Workspace,
    ) -> Result<Plan, Refused> {
        tools::expect_valid(arguments)?;
        let program = words::command_line(arguments, desk)?;
        let inputs: Vec<PathBuf> = words::inputs(arguments, "inputs")?
            .into_iter()
            .map(|index| desk.input(index))
            .collect::<Result<_, _>>()?;
        let outputs: Vec<PathBuf> = (0..outputs).map(|index| desk.output(index, None)).collect();
        let mut environment = words::variables(arguments, desk)?;
        let inputs = desk.note("inputs", &list(&inputs))?;
        let outputs = desk.note("outputs", &list(&outputs))?;
        environment.push(("INPUT_FILES".to_string(), inputs.into()));
        environment.push(("OUTPUT_FILES".to_string(), outputs.into()));
        Ok(Plan {
            outer: surroundings::before(arguments, &mut environment)?,
            program,
            direct: None,
            written: None,
            stdin: Vec::new(),
            stdout: Stdout::Printed,
            environment,
            folder: None,
            appends: Vec::new(),
        })
    }
}

fn list(paths: &[PathBuf]) -> Vec<u8> {
    let mut lines = Vec::new();
    for path in paths {
        lines.extend_from_slice(path.as_os_str().as_bytes());
        lines.push(b'\n');
    }
    lines
}
