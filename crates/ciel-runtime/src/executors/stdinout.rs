//! `stdinout`: a command whose standard input is the inputs and whose standard output is the
//! output.

use ciel_model::{Refused, Streams};
use serde_json::Value;

use super::command::{CommandLine, Plan, Stdout, Workspace};
use super::names::STDINOUT;
use super::{streaming, surroundings, tools, words};

pub(super) struct Stdinout;

impl CommandLine for Stdinout {
    fn name(&self) -> &'static str {
        STDINOUT
    }

    fn label_of(&self, arguments: &Value) -> Option<String> {
        words::program_name(arguments)
    }

    fn stream_inputs(&self, arguments: &Value) -> Vec<usize> {
        streaming::inputs(arguments, "inputs")
    }

    fn streams(&self, arguments: &Value, outputs: u32) -> Streams {
        streaming::streams(arguments, &[], outputs, "inputs")
    }

    fn plan(
        &self,
        arguments: &Value,
        outputs: u32,
        desk: &mut dyn Workspace,
    ) -> Result<Plan, Refused> {
        if outputs != 1 {
            return Err(
                Refused::new(format!("stdinout has one output, not {outputs}"))
                    .hint("use environ or shell for several outputs"),
            );
        }
        tools::expect_valid(arguments)?;
        streaming::expect_valid(arguments, &[])?;
        let program = words::command_line(arguments, desk)?;
        let mut environment = words::variables(arguments, desk)?;
        Ok(Plan {
            outer: surroundings::before(arguments, &mut environment)?,
            program,
            direct: None,
            written: None,
            stdin: words::joined(arguments, "inputs")?,
            stdout: Stdout::Output(0),
            environment,
            folder: None,
            appends: Vec::new(),
        })
    }
}
