//! `shell`: a command for `sh` in which `{in.NAME}` and `{out.NAME}` stand for files and values.
//!
//! Nothing is ever pasted into the command: each placeholder becomes a variable of the
//! environment, so no content can break out of its place.

use std::ffi::OsString;

use serde_json::{Map, Value};

use super::command::{CommandLine, Plan, Stdout, Workspace};
use super::names::SHELL;
use super::words;
use crate::references::reference;
use crate::refused::Refused;

pub(super) struct Shell;

impl CommandLine for Shell {
    fn name(&self) -> &'static str {
        SHELL
    }

    fn label_of(&self, arguments: &Value) -> Option<String> {
        let command = arguments.get("command")?.as_str()?;
        let first = command.split_whitespace().next()?;
        let name = first.rsplit('/').next()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
        (!name.is_empty() && name.chars().all(plain)).then(|| name.to_string())
    }

    fn plan(
        &self,
        arguments: &Value,
        outputs: u32,
        desk: &mut dyn Workspace,
    ) -> Result<Plan, Refused> {
        let Some(Value::String(command)) = arguments.get("command") else {
            return Err(Refused::new("its arguments have no \"command\" string")
                .hint("for example {\"command\": \"sort {in.text} > {out.sorted}\", …}"));
        };
        let names = output_names(arguments, outputs)?;
        let mut template = Template::new(arguments, &names, desk)?;
        let script = template.expand(command)?;
        let mut environment = template.variables;
        environment.extend(words::variables(arguments, desk)?);
        let folder = words::folder(arguments, desk)?;
        let stdout = match names.is_empty() && outputs == 1 {
            true => Stdout::Output(0),
            false => Stdout::Printed,
        };
        let stdin = words::inputs(arguments, "stdin")?;
        let program = ["sh", "-c"]
            .map(OsString::from)
            .into_iter()
            .chain([script.into()]);
        Ok(Plan {
            program: program.collect(),
            stdin,
            stdout,
            environment,
            folder,
        })
    }
}

/// The names of the outputs, in order. Without names, one output is standard output.
fn output_names(arguments: &Value, outputs: u32) -> Result<Vec<String>, Refused> {
    let given = match arguments.get("outputs") {
        None | Some(Value::Null) if outputs <= 1 => return Ok(Vec::new()),
        Some(Value::Array(given)) => given,
        None | Some(Value::Null) => {
            return Err(
                Refused::new(format!("it has {outputs} outputs and no names for them"))
                    .hint("name them: \"outputs\": [\"left\", \"right\"]"),
            );
        }
        Some(other) => return Err(words::wrong("outputs", "a list of names", other)),
    };
    let name = |value: &Value| {
        value
            .as_str()
            .map(str::to_string)
            .ok_or_else(|| words::wrong("outputs", "names", value))
    };
    let names: Vec<String> = given.iter().map(name).collect::<Result<_, _>>()?;
    match names.len() == outputs as usize {
        true => Ok(names),
        false => Err(Refused::new(format!(
            "it names {} outputs but has {outputs}",
            names.len()
        ))),
    }
}

/// How the text around a placeholder is quoted.
#[derive(Clone, Copy, PartialEq)]
enum Quotes {
    None,
    Single,
    Double,
}

/// A command on its way from template to script.
struct Template<'a> {
    inputs: Map<String, Value>,
    names: &'a [String],
    desk: &'a mut dyn Workspace,
    variables: Vec<(String, OsString)>,
    quotes: Quotes,
}

impl<'a> Template<'a> {
    fn new(
        arguments: &Value,
        names: &'a [String],
        desk: &'a mut dyn Workspace,
    ) -> Result<Template<'a>, Refused> {
        let inputs = match arguments.get("inputs") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(inputs)) => inputs.clone(),
            Some(other) => return Err(words::wrong("inputs", "a dictionary by name", other)),
        };
        let quotes = Quotes::None;
        Ok(Template {
            inputs,
            names,
            desk,
            variables: Vec::new(),
            quotes,
        })
    }

    fn expand(&mut self, command: &str) -> Result<String, Refused> {
        let mut script = String::with_capacity(command.len() + 64);
        let mut rest = command;
        while let Some(c) = rest.chars().next() {
            let (taken, made) = match c {
                '$' if rest[1..].starts_with('{') => (2, "${".to_string()),
                '{' | '}' if rest[1..].starts_with(c) => (2, c.to_string()),
                '{' => self.placeholder(rest)?,
                '\\' if self.quotes != Quotes::Single => {
                    let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                    (length, rest[..length].to_string())
                }
                _ => (c.len_utf8(), self.plain(c)),
            };
            script.push_str(&made);
            rest = &rest[taken..];
        }
        Ok(script)
    }

    /// An ordinary character; quotes are kept count of.
    fn plain(&mut self, c: char) -> String {
        self.quotes = match (self.quotes, c) {
            (Quotes::None, '\'') => Quotes::Single,
            (Quotes::None, '"') => Quotes::Double,
            (Quotes::Single, '\'') | (Quotes::Double, '"') => Quotes::None,
            (quotes, _) => quotes,
        };
        c.to_string()
    }

    /// `{in.NAME}`, `{out.NAME}` or `{NAME}` at the start of `rest`; a brace that begins none of
    /// these is the shell's own.
    fn placeholder(&mut self, rest: &str) -> Result<(usize, String), Refused> {
        let name_like = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let Some(end) = rest.find('}').filter(|end| *end > 1) else {
            return Ok((1, "{".to_string()));
        };
        let name = &rest[1..end];
        if !name.chars().all(name_like) || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok((1, "{".to_string()));
        }
        if self.quotes == Quotes::Single {
            return Err(
                Refused::new(format!("{{{name}}} stands inside single quotes"))
                    .hint("leave the quotes out: it is quoted already"),
            );
        }
        let value = self.value_of(name)?;
        let variable = format!("ciel_{}", self.variables.len());
        let made = match self.quotes {
            Quotes::Double => format!("${{{variable}}}"),
            Quotes::None | Quotes::Single => format!("\"${{{variable}}}\""),
        };
        self.variables.push((variable, value));
        Ok((end + 1, made))
    }

    fn value_of(&mut self, name: &str) -> Result<OsString, Refused> {
        let (inputs, outputs) = match name.split_once('.') {
            Some(("in", name)) => (self.inputs.get(name).cloned(), None),
            Some(("out", name)) => (None, self.output(name)),
            _ => (self.inputs.get(name).cloned(), self.output(name)),
        };
        match (inputs, outputs) {
            (Some(value), None) => match reference(&value) {
                Some(index) => Ok(self.desk.input(index)?.into()),
                None => words::spelt(&value, self.desk).map(OsString::from),
            },
            (None, Some(index)) => Ok(self.desk.output(index).into()),
            (Some(_), Some(_)) => Err(Refused::new(format!(
                "{{{name}}} is an input and an output"
            ))
            .hint(format!("write {{in.{name}}} or {{out.{name}}}"))),
            (None, None) => Err(self.unknown(name)),
        }
    }

    fn output(&self, name: &str) -> Option<u32> {
        self.names
            .iter()
            .position(|known| known == name)
            .map(|index| index as u32)
    }

    fn unknown(&self, name: &str) -> Refused {
        let inputs = self.inputs.keys().map(|name| format!("{{in.{name}}}"));
        let outputs = self.names.iter().map(|name| format!("{{out.{name}}}"));
        let known: Vec<String> = inputs.chain(outputs).collect();
        Refused::new(format!(
            "its command names {{{name}}}, which it was not given"
        ))
        .hint(format!(
            "there are: {}; for a brace of the shell itself write {{{{ or }}}}",
            if known.is_empty() {
                "none".to_string()
            } else {
                known.join(", ")
            }
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::PathBuf;

    struct Paths;

    impl Workspace for Paths {
        fn input(&mut self, index: usize) -> Result<PathBuf, Refused> {
            Ok(format!("/in/{index}").into())
        }
        fn text(&mut self, index: usize) -> Result<String, Refused> {
            Ok(format!("text {index}"))
        }
        fn output(&mut self, index: u32) -> PathBuf {
            format!("/out/{index}").into()
        }
        fn note(&mut self, what: &str, _bytes: &[u8]) -> Result<PathBuf, Refused> {
            Ok(what.into())
        }
    }

    fn plan(
        command: &str,
        inputs: Value,
        outputs: &[&str],
    ) -> Result<(String, Vec<OsString>), Refused> {
        let arguments = json!({"command": command, "inputs": inputs, "outputs": outputs});
        let plan = Shell.plan(&arguments, outputs.len() as u32, &mut Paths)?;
        let values = plan
            .environment
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        Ok((
            plan.program[2].to_str().expect("it was text").to_string(),
            values,
        ))
    }

    #[test]
    fn placeholders_become_variables() {
        let (script, values) =
            plan("sort {in.a} > {out.b}", json!({"a": {"$ref": 0}}), &["b"]).expect("good");
        assert_eq!(script, "sort \"${ciel_0}\" > \"${ciel_1}\"");
        assert_eq!(values, ["/in/0", "/out/0"]);
    }

    #[test]
    fn hostile_value_never_reaches_the_script() {
        let hostile = "'; rm -rf / #";
        let (script, values) = plan("echo {x}", json!({ "x": hostile }), &[]).expect("good");
        assert_eq!(script, "echo \"${ciel_0}\"");
        assert_eq!(values, [hostile]);
    }

    #[test]
    fn placeholder_inside_double_quotes_stays_inside() {
        let (script, _) = plan("echo \"<{x}>\"", json!({"x": 1}), &[]).expect("good");
        assert_eq!(script, "echo \"<${ciel_0}>\"");
    }

    #[test]
    fn placeholder_inside_single_quotes_is_refused() {
        let refused = plan("echo '{x}'", json!({"x": 1}), &[]).expect_err("bad");
        assert!(refused.message.contains("single quotes"));
    }

    #[test]
    fn braces_of_the_shell_stay() {
        let (script, _) = plan("echo ${HOME} {1,2} {{x}} | awk '{ print }'", json!({}), &[])
            .unwrap_or_else(|refused| panic!("{refused:?}"));
        assert_eq!(script, "echo ${HOME} {1,2} {x} | awk '{ print }'");
    }

    #[test]
    fn variables_and_folder_are_those_that_were_asked_for() {
        let arguments = json!({
            "command": "make",
            "environment": {"LEVEL": 3, "NAME": {"$ref": 1}},
            "folder": "src",
        });
        let plan = Shell.plan(&arguments, 1, &mut Paths).expect("good");
        let asked = [("LEVEL", "3"), ("NAME", "text 1")];
        let asked = asked.map(|(name, value)| (name.to_string(), OsString::from(value)));
        assert_eq!(plan.environment, asked);
        assert_eq!(plan.folder, Some("src".into()));
    }

    #[test]
    fn variable_with_an_impossible_name_is_refused() {
        for name in ["", "A=B", "2x", "a b"] {
            let arguments = json!({"command": "make", "environment": {name: "x"}});
            let refused = Shell.plan(&arguments, 1, &mut Paths).expect_err("bad");
            assert!(refused.message.contains("variable"), "{refused:?}");
        }
    }

    #[test]
    fn unknown_placeholder_names_the_known_ones() {
        let refused = plan("cat {in.b}", json!({"a": 1}), &[]).expect_err("bad");
        assert!(refused.hint.expect("a hint").contains("{in.a}"));
    }
}
