//! Pieces of scripts that many tests write: shell tasks of a few kinds.
//!
//! Each is an expression of the language. It does not know in what script it stands.

/// A shell task whose standard output is its result; never shared with an equal one.
pub fn shell(command: &str) -> String {
    task(command, "{\"pure\": false}")
}

/// A shell task with options, as the inside of a dictionary.
pub fn task(command: &str, options: &str) -> String {
    let command = quoted(command);
    format!("spawn_exec(\"shell\", {{\"command\": {command}}}, 1, {options})[0]")
}

/// A shell task that prints into the job's output.
pub fn shell_printing(command: &str, options: &str) -> String {
    let command = quoted(&format!(": > {{out.done}}; {command}"));
    let arguments = format!("{{\"command\": {command}, \"outputs\": [\"done\"]}}");
    format!("spawn_exec(\"shell\", {arguments}, 1, {{\"pure\": false{options}}})[0]")
}

/// Waits at a gate.
pub fn held(gate: &str) -> String {
    format!("read x < {gate}")
}

/// Makes a file, whole.
pub fn done(name: &str) -> String {
    format!(": > {name}")
}

/// Adds a line to a file.
pub fn appended(line: &str, name: &str) -> String {
    format!("echo {line} >> {name}")
}

fn quoted(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    )
}
