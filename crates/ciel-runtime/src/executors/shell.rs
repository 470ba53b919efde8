//! `shell`: a command for `sh`, or for a strict `bash`, in which `{in.NAME}` and `{out.NAME}` stand
//! for files and values.
//!
//! Nothing is ever pasted into the command: each placeholder becomes a variable of the
//! environment, so no content can break out of its place. Read next: `template`.

use std::ffi::OsString;

use ciel_model::{Refused, Streams};
use serde_json::Value;

use super::command::{CommandLine, Plan, Stdout, Workspace};
use super::names::SHELL;
use super::template::{Template, is_name};
use super::{direct, streaming, surroundings, tools, words};

/// The words before a script for `sh`.
const SH: &[&str] = &["sh", "-c"];

/// The words before a script that fails with its first command, part of a pipe or unset variable
/// that does.
const STRICT: &[&str] = &["bash", "-euo", "pipefail", "-c"];

/// The arguments that it knows.
const ARGUMENTS: [&str; 16] = [
    "command",
    "inputs",
    "outputs",
    "stdin",
    "environment",
    "env",
    "folder",
    "shell",
    "conda",
    "container",
    "appends",
    "stream",
    "stream_mode",
    "single_consumer",
    "stdin_options",
    "tools",
];

/// The descriptors of ordered files: every shell reads these numbers, and larger ones not all.
const DESCRIPTORS: std::ops::RangeInclusive<usize> = 3..=9;

/// Whether a plan is run by the strict shell.
pub(crate) fn is_strict(plan: &Plan) -> bool {
    plan.program.first().is_some_and(|word| word == STRICT[0])
}

pub(super) struct Shell {
    /// Whether commands that do not say it themselves are run by the strict shell.
    pub(super) is_strict: bool,
}

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

    fn stream_inputs(&self, arguments: &Value) -> Vec<usize> {
        streaming::inputs(arguments, "stdin")
    }

    fn streams(&self, arguments: &Value, outputs: u32) -> Streams {
        let names = output_names(arguments, outputs).unwrap_or_default();
        streaming::streams(arguments, &names, outputs, "stdin")
    }

    fn plan(
        &self,
        arguments: &Value,
        outputs: u32,
        desk: &mut dyn Workspace,
    ) -> Result<Plan, Refused> {
        expect_known(arguments)?;
        tools::expect_valid(arguments)?;
        let names = output_names(arguments, outputs)?;
        streaming::expect_valid(arguments, &names)?;
        let Some(Value::String(command)) = arguments.get("command") else {
            return Err(Refused::new("its arguments have no \"command\" string")
                .hint("for example {\"command\": \"sort {in.text} > {out.sorted}\", …}"));
        };
        let appends = appends_of(arguments)?;
        let mut template = Template::new(arguments, &names, desk)?;
        let script = template.expand(&with_descriptors(command, &appends))?;
        template.expect_used()?;
        let mut environment = template.variables;
        let opened = open_appended(&appends, desk, &mut environment)?;
        let script = format!("{opened}{script}");
        environment.extend(words::variables(arguments, desk)?);
        let folder = words::folder(arguments, desk)?;
        let shell = self.shell(arguments)?;
        let direct = direct::words(&script, &environment).filter(|_| shell == SH);
        let program = shell.iter().map(OsString::from).chain([script.into()]);
        let stdout = match names.is_empty() && outputs == 1 {
            true => Stdout::Output(0),
            false => Stdout::Printed,
        };
        let stdin = words::joined(arguments, "stdin")?;
        let outer = surroundings::before(arguments, &mut environment)?;
        Ok(Plan {
            direct: direct.filter(|_| outer.is_empty()),
            outer,
            program: program.collect(),
            written: Some(command.clone()),
            stdin,
            stdout,
            environment,
            folder,
            appends: appends.into_iter().map(|(_, path)| path).collect(),
        })
    }
}

impl Shell {
    /// The words before the script.
    fn shell(&self, arguments: &Value) -> Result<&'static [&'static str], Refused> {
        let asked = match arguments.get("shell") {
            None | Some(Value::Null) => None,
            Some(Value::String(asked)) => Some(asked.as_str()),
            Some(other) => return Err(words::wrong("shell", "\"sh\" or \"strict\"", other)),
        };
        match asked {
            None if self.is_strict => Ok(STRICT),
            None | Some("sh") => Ok(SH),
            Some("strict") => Ok(STRICT),
            Some(_) => Err(words::wrong(
                "shell",
                "\"sh\" or \"strict\"",
                &arguments["shell"],
            )),
        }
    }
}

/// Refuses an argument that would have no effect.
fn expect_known(arguments: &Value) -> Result<(), Refused> {
    let mut given = arguments.as_object().into_iter().flatten();
    match given.find(|(name, _)| !ARGUMENTS.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => Err(Refused::new(format!("`shell` has no argument {name:?}"))
            .hint(format!("its arguments are {}", ARGUMENTS.join(", ")))),
    }
}

/// The ordered files by the names that the command has for them, with their paths.
fn appends_of(arguments: &Value) -> Result<Vec<(String, String)>, Refused> {
    let given = match arguments.get("appends") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(given)) => given,
        Some(other) => return Err(words::wrong("appends", "a dictionary of paths", other)),
    };
    let room = DESCRIPTORS.count();
    if given.len() > room {
        let message = format!("it appends to {} ordered files", given.len());
        return Err(Refused::new(message).hint(format!("a command has {room} at most")));
    }
    let path = |(name, path): (&String, &Value)| match path.as_str() {
        Some(path) if is_name(name) => Ok((name.clone(), path.to_string())),
        Some(_) => {
            let message = format!("no placeholder can name its ordered file {name:?}");
            Err(Refused::new(message).hint("names are ASCII letters, digits, `_` and `.`"))
        }
        None => Err(words::wrong("appends", "paths", path)),
    };
    given.iter().map(path).collect()
}

/// The command with the number of a descriptor for each `{NAME}` of an ordered file.
fn with_descriptors(command: &str, appends: &[(String, String)]) -> String {
    let mut command = command.to_string();
    for ((name, _), descriptor) in appends.iter().zip(DESCRIPTORS) {
        let spelled = format!("{{{name}}}");
        let mut from = 0;
        while let Some(at) = command[from..].find(&spelled).map(|at| from + at) {
            let is_other = command[..at].ends_with(['{', '$']);
            from = match is_other {
                true => at + spelled.len(),
                false => {
                    let number = descriptor.to_string();
                    command.replace_range(at..at + spelled.len(), &number);
                    at + number.len()
                }
            };
        }
    }
    command
}

/// The words before the script that open the descriptors; the variables hold the paths.
fn open_appended(
    appends: &[(String, String)],
    desk: &mut dyn Workspace,
    environment: &mut Vec<(String, OsString)>,
) -> Result<String, Refused> {
    let mut opened = String::new();
    for (index, descriptor) in (0..appends.len()).zip(DESCRIPTORS) {
        let variable = format!("ciel_append_{index}");
        opened += &format!("exec {descriptor}>>\"${{{variable}}}\"; ");
        environment.push((variable, desk.appended(index)?.into()));
    }
    Ok(opened)
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
    let name = |value: &Value| match value.as_str() {
        Some(name) if !name.is_empty() && is_name(&format!("out.{name}")) => Ok(name.to_string()),
        Some(name) => {
            let message = format!("no placeholder can name its output {name:?}");
            let hint = "names of outputs are ASCII letters, digits, `_` and `.`";
            Err(Refused::new(message).hint(hint))
        }
        None => Err(words::wrong("outputs", "names", value)),
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
        fn program(&mut self, index: usize) -> Result<PathBuf, Refused> {
            self.input(index)
        }
        fn text(&mut self, index: usize) -> Result<String, Refused> {
            Ok(format!("text {index}"))
        }
        fn output(&mut self, index: u32, name: Option<&str>) -> PathBuf {
            format!("/out/{index}.{}", name.expect("it has one")).into()
        }
        fn appended(&mut self, index: usize) -> Result<PathBuf, Refused> {
            Ok(format!("/append/{index}").into())
        }
        fn input_folder(&mut self, index: usize) -> Result<PathBuf, Refused> {
            Ok(format!("/in/{index}.folder").into())
        }
        fn output_folder(&mut self, index: u32, name: &str) -> Result<PathBuf, Refused> {
            Ok(format!("/out/{index}.{name}.folder").into())
        }
        fn note(&mut self, what: &str, _bytes: &[u8]) -> Result<PathBuf, Refused> {
            Ok(what.into())
        }
    }

    const SHELL: Shell = Shell { is_strict: false };

    fn plan(
        command: &str,
        inputs: Value,
        outputs: &[&str],
    ) -> Result<(String, Vec<OsString>), Refused> {
        let arguments = json!({"command": command, "inputs": inputs, "outputs": outputs});
        let plan = SHELL.plan(&arguments, outputs.len() as u32, &mut Paths)?;
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
        assert_eq!(values, ["/in/0", "/out/0.b"]);
    }

    #[test]
    fn ordered_file_becomes_a_descriptor() {
        let arguments = json!({
            "command": "cmd 5>&{log} >&{table} '{{log}}'",
            "appends": {"log": "log", "table": "out/table"},
        });
        let plan = SHELL.plan(&arguments, 0, &mut Paths).expect("good");
        let opened = "exec 3>>\"${ciel_append_0}\"; exec 4>>\"${ciel_append_1}\"; ";
        let script = format!("{opened}cmd 5>&3 >&4 '{{log}}'");
        assert_eq!(plan.program[2], OsString::from(script));
        assert_eq!(plan.appends, ["log", "out/table"]);
        assert_eq!(plan.environment[1].1, "/append/1");
        for bad in [json!("log"), json!({"log": 3}), json!({"my-log": "log"})] {
            let arguments = json!({"command": "cmd", "appends": bad});
            assert!(SHELL.plan(&arguments, 0, &mut Paths).is_err());
        }
    }

    #[test]
    fn list_becomes_one_variable_for_each_element() {
        let inputs = json!({"l": [{"$ref": 1}, "a b", 3], "none": []});
        let (script, values) = plan("cat {l} \"{in.l}\" {none}", inputs, &[]).expect("good");
        let quoted = "\"${ciel_0}\" \"${ciel_1}\" \"${ciel_2}\"";
        let inside = "${ciel_3} ${ciel_4} ${ciel_5}";
        assert_eq!(script, format!("cat {quoted} \"{inside}\" "));
        assert_eq!(values, ["/in/1", "a b", "3", "/in/1", "a b", "3"]);
        for bad in [
            json!([["a"]]),
            json!([{"a": 1}]),
            json!({"a": 1}),
            json!([null]),
        ] {
            let refused = plan("cat {l}", json!({ "l": bad }), &[]).expect_err("bad");
            assert!(refused.message.contains("or a list of them"), "{refused:?}");
        }
    }

    /// A value that no placeholder named, such as one for `{my-file}`, was dropped without a word.
    #[test]
    fn input_that_the_command_does_not_use_is_refused_unless_it_is_waited_for() {
        for (inputs, message) in [
            (json!({"n": 1}), "does not use the input \"n\""),
            (json!({"n": ["a", "b"]}), "does not use the input \"n\""),
            (
                json!({"my-file": {"$ref": 0}}),
                "no placeholder can name its input \"my-file\"",
            ),
        ] {
            let refused = plan("cat {my-file} {{n}}", inputs, &[]).expect_err("unused");
            assert!(refused.message.contains(message), "{refused:?}");
        }
        for inputs in [
            json!({"after": {"$ref": 0}}),
            json!({"after": ["a", {"$ref": 0}]}),
        ] {
            assert!(plan("date", inputs.clone(), &[]).is_ok(), "{inputs}");
        }
        assert!(plan("echo {a} {in.b}", json!({"a": 1, "b": []}), &[]).is_ok());
    }

    /// `"cwd": "data"` ran in the folder of the job, and `"input"` left the command without any.
    #[test]
    fn argument_that_is_none_of_its_own_is_refused() {
        for name in ["cwd", "input", "cmd"] {
            let arguments = json!({"command": "ls", (name): "x"});
            let Err(refused) = SHELL.plan(&arguments, 1, &mut Paths) else {
                panic!("{name} is accepted");
            };
            assert_eq!(refused.message, format!("`shell` has no argument {name:?}"));
            assert!(refused.hint.is_some_and(|hint| hint.contains("folder")));
        }
    }

    #[test]
    fn slash_behind_a_name_is_a_folder() {
        let inputs = json!({"a": {"$ref": 0}, "l": [{"$ref": 1}]});
        let (_, values) = plan("ls {a/} {in.l/} {out.b/}", inputs, &["b"]).expect("good");
        assert_eq!(values, ["/in/0.folder", "/in/1.folder", "/out/0.b.folder"]);
        let refused = plan("ls {t/}", json!({"t": "x"}), &[]).expect_err("bad");
        assert!(
            refused.message.contains("the folder of a reference"),
            "{refused:?}"
        );
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

    /// A placeholder in a here-document became the variable in quotes, and the quotes came into the
    /// text: `name: "Ann"` instead of `name: Ann`.
    #[test]
    fn placeholder_in_a_here_document_has_no_quotes() {
        let cases = [
            (
                "cat <<EOF\n\"{x}\" {x}\nEOF\necho {x}",
                "cat <<EOF\n\"${0}\" ${1}\nEOF\necho \"${2}\"",
            ),
            (
                "cat <<-E | wc\n'{x}\n\tE\necho {x}",
                "cat <<-E | wc\n'${0}\n\tE\necho \"${1}\"",
            ),
            (
                "cat <<A {x} <<B\n{x}\nA\n{x}\nB\n{x}",
                "cat <<A \"${0}\" <<B\n${1}\nA\n${2}\nB\n\"${3}\"",
            ),
            ("cat <<< {x}", "cat <<< \"${0}\""),
            (
                "echo $((1 << 2))\necho {x}\n2",
                "echo $((1 << 2))\necho \"${0}\"\n2",
            ),
            ("echo $((1<<n))\necho {x}", "echo $((1<<n))\necho \"${0}\""),
            ("cat <<EOF\n{x}", "cat <<EOF\n\"${0}\""),
            (
                "echo '<<E' \"<<E\"\n{x}\nE",
                "echo '<<E' \"<<E\"\n\"${0}\"\nE",
            ),
            (
                "cat <<E\n\\{x} {{}} ${x} {x}\nE",
                "cat <<E\n\\{x} {} ${x} ${0}\nE",
            ),
        ];
        for (command, expected) in cases {
            let (script, _) = plan(command, json!({"x": "Ann"}), &[])
                .unwrap_or_else(|refused| panic!("{command}: {refused:?}"));
            let expected = (0..4).fold(expected.to_string(), |text, at| {
                text.replace(&format!("${{{at}}}"), &format!("${{ciel_{at}}}"))
            });
            assert_eq!(script, expected);
        }
        for command in [
            "cat <<'EOF'\n{x}\nEOF",
            "cat << \"E F\"\n{x}\nE F",
            "cat <<\\E\n{x}\nE",
        ] {
            let refused = plan(command, json!({"x": 1}), &[]).expect_err(command);
            assert!(refused.message.contains("here-document"), "{refused:?}");
        }
    }

    /// `$(({n} * 2))` became `$(("${ciel_0}" * 2))`, which dash takes for an error in arithmetic.
    #[test]
    fn placeholder_in_arithmetic_has_no_quotes() {
        let cases = [
            ("$(({x}*2)) {x}", "$((${0}*2)) \"${1}\""),
            ("$(((1+{x})<<{x})) {x}", "$(((1+${0})<<${1})) \"${2}\""),
            ("\"$(({x}))\" {x}", "\"$((${0}))\" \"${1}\""),
            ("$(($(wc {x})+1))", "$(($(wc \"${0}\")+1))"),
            ("$((cat {x}) | wc {x})", "$((cat \"${0}\") | wc \"${1}\")"),
            ("$(({x}", "$((\"${0}\""),
            ("'$(('; echo {x}))", "'$(('; echo \"${0}\"))"),
        ];
        for (command, expected) in cases {
            let (script, _) = plan(command, json!({"x": 3}), &[])
                .unwrap_or_else(|refused| panic!("{command}: {refused:?}"));
            let expected = (0..3).fold(expected.to_string(), |text, at| {
                text.replace(&format!("${{{at}}}"), &format!("${{ciel_{at}}}"))
            });
            assert_eq!(script, expected);
        }
    }

    #[test]
    fn braces_of_the_shell_stay() {
        let (script, _) = plan("echo ${HOME} {1,2} {{x}} | awk '{ print }'", json!({}), &[])
            .unwrap_or_else(|refused| panic!("{refused:?}"));
        assert_eq!(script, "echo ${HOME} {1,2} {x} | awk '{ print }'");
    }

    /// `${{HOME}}` was a variable of the shell around a placeholder, which no shell can read, and
    /// the error said to write braces twice.
    #[test]
    fn doubled_braces_of_a_variable_are_those_of_the_shell() {
        for (command, script) in [
            ("echo ${{HOME}} ${{A}:-b}", "echo ${HOME} ${A}:-b}"),
            (
                "echo ${{A:-{x}}} {x}",
                "echo ${A:-\"${ciel_0}\"} \"${ciel_1}\"",
            ),
            ("echo $${{A}}", "echo $${A}"),
        ] {
            let inputs = match command.contains("{x}") {
                true => json!({"x": 1}),
                false => json!({}),
            };
            let (found, _) = plan(command, inputs, &[])
                .unwrap_or_else(|refused| panic!("{command}: {refused:?}"));
            assert_eq!(found, script);
        }
    }

    /// Two closing braces became one wherever they stood, as the only sign that a brace was meant:
    /// `awk` missed one, `${A:-${B}}` was never closed, and JSON was written without its end.
    #[test]
    fn two_braces_that_close_what_was_not_doubled_stay() {
        for (command, script) in [
            ("awk '{ if ($1) { print } }'", "awk '{ if ($1) { print } }'"),
            ("awk '{ if ($1) {print;}}'", "awk '{ if ($1) {print;}}'"),
            (
                "echo ${A:-${B}} ${C:-${D:-${E}}}",
                "echo ${A:-${B}} ${C:-${D:-${E}}}",
            ),
            ("echo '{\"a\": {\"b\": {}}}'", "echo '{\"a\": {\"b\": {}}}'"),
            (
                "echo ${A:-{x}} {{{x}}}",
                "echo ${A:-\"${ciel_0}\"} {\"${ciel_1}\"}",
            ),
            ("awk '{{x; if (1) {y;z}}'", "awk '{x; if (1) {y;z}}'"),
            ("awk '{{x}; {{if (1) {{y}}}}'", "awk '{x}; {if (1) {y}}'"),
            ("echo }} }", "echo }} }"),
            (
                "cat <<E\n{\"a\": {\"b\": 1}}\nE",
                "cat <<E\n{\"a\": {\"b\": 1}}\nE",
            ),
        ] {
            let inputs = match command.contains("{x}} {") {
                true => json!({"x": 1}),
                false => json!({}),
            };
            let (found, _) = plan(command, inputs, &[])
                .unwrap_or_else(|refused| panic!("{command}: {refused:?}"));
            assert_eq!(found, script);
        }
    }

    #[test]
    fn variables_and_folder_are_those_that_were_asked_for() {
        let arguments = json!({
            "command": "make",
            "environment": {"LEVEL": 3, "NAME": {"$ref": 1}},
            "folder": "src",
        });
        let plan = SHELL.plan(&arguments, 1, &mut Paths).expect("good");
        let asked = [("LEVEL", "3"), ("NAME", "text 1")];
        let asked = asked.map(|(name, value)| (name.to_string(), OsString::from(value)));
        assert_eq!(plan.environment, asked);
        assert_eq!(plan.folder, Some("src".into()));
    }

    #[test]
    fn shell_is_the_one_of_the_task_or_else_that_of_the_job() {
        let plain = ["sh", "-c", "a"].as_slice();
        let strict = ["bash", "-euo", "pipefail", "-c", "a"].as_slice();
        for (is_strict, asked, program) in [
            (false, json!(null), plain),
            (true, json!(null), strict),
            (false, json!("strict"), strict),
            (true, json!("sh"), plain),
        ] {
            let arguments = json!({"command": "a", "shell": asked});
            let plan = Shell { is_strict }.plan(&arguments, 1, &mut Paths);
            assert_eq!(plan.expect("good").program, program);
        }
        for asked in [json!("zsh"), json!(true)] {
            let arguments = json!({"command": "a", "shell": asked});
            let refused = SHELL.plan(&arguments, 1, &mut Paths).expect_err("bad");
            assert!(refused.message.contains("must be \"sh\" or \"strict\""));
        }
    }

    #[test]
    fn variable_with_an_impossible_name_is_refused() {
        for name in ["", "A=B", "2x", "a b"] {
            let arguments = json!({"command": "make", "environment": {name: "x"}});
            let refused = SHELL.plan(&arguments, 1, &mut Paths).expect_err("bad");
            assert!(refused.message.contains("variable"), "{refused:?}");
        }
    }

    #[test]
    fn unknown_placeholder_names_the_known_ones() {
        let refused = plan("cat {in.b}", json!({"a": 1}), &[]).expect_err("bad");
        assert!(refused.hint.expect("a hint").contains("{in.a}"));
    }
}
