//! The programs whose identity a command asks to count, by `"tools"`: those that its text names, or
//! those in a list.
//!
//! The text is read as far as the words tell that a shell would run: quotes and separators are
//! followed, variables and functions are not. It does not know where programs are. Read next:
//! `crate::tools`.

use ciel_model::Refused;
use serde_json::Value;

use super::words;

/// The argument.
const TOOLS: &str = "tools";

/// Programs of one command that count, at most.
const TOOLS_MAX: usize = 64;

/// Words of the shell that a command may follow.
const BEFORE_COMMANDS: [&str; 11] = [
    "if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time",
];

/// Words of the shell that no program is run for.
const OF_THE_SHELL: [&str; 37] = [
    ".", ":", "[", "alias", "break", "case", "cd", "continue", "done", "echo", "esac", "eval",
    "exit", "export", "false", "fi", "for", "function", "hash", "in", "kill", "local", "printf",
    "pwd", "read", "return", "set", "shift", "source", "test", "trap", "true", "type", "ulimit",
    "umask", "unset", "wait",
];

/// Programs that run the command that follows them.
const WRAPPERS: [&str; 12] = [
    "builtin", "command", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo",
    "timeout", "xargs",
];

/// The tools that a call asks to count.
#[derive(Debug, PartialEq)]
pub(crate) struct Tools {
    /// Names or paths of programs.
    pub(crate) names: Vec<String>,
    /// They were listed, so that one that is not there counts as such.
    pub(crate) are_listed: bool,
}

/// The tools of a call with these arguments; none if it asks for none.
pub(crate) fn of(arguments: &Value) -> Option<Tools> {
    let (mut names, are_listed) = match arguments.get(TOOLS)? {
        Value::Bool(true) => (named(arguments), false),
        Value::Array(listed) => {
            let listed = listed.iter().filter_map(Value::as_str);
            (listed.map(str::to_string).collect(), true)
        }
        _ => return None,
    };
    names.sort();
    names.dedup();
    names.truncate(TOOLS_MAX);
    Some(Tools { names, are_listed })
}

/// Refuses what is neither true nor a list of names, and tools in a container, which cannot be
/// seen.
pub(super) fn expect_valid(arguments: &Value) -> Result<(), Refused> {
    let wrong = |given| Err(words::wrong(TOOLS, "true or a list of programs", given));
    match arguments.get(TOOLS) {
        None | Some(Value::Null | Value::Bool(false)) => return Ok(()),
        Some(Value::Bool(true)) => {}
        Some(given @ Value::Array(listed)) => {
            let is_name = |name: &Value| name.as_str().is_some_and(|name| !name.is_empty());
            if listed.len() > TOOLS_MAX || !listed.iter().all(is_name) {
                return wrong(given);
            }
        }
        Some(given) => return wrong(given),
    }
    match arguments
        .get("container")
        .is_some_and(|given| !given.is_null())
    {
        true => Err(Refused::new("it has both \"tools\" and \"container\"")
            .hint("programs in a container are not seen: name its image by digest")),
        false => Ok(()),
    }
}

/// The programs that the text or the command line names.
fn named(arguments: &Value) -> Vec<String> {
    if let Some(command) = arguments.get("command").and_then(Value::as_str) {
        return programs(command);
    }
    let first = arguments.get("command_line").and_then(|line| line.get(0));
    let first = first.and_then(Value::as_str);
    first.map(str::to_string).into_iter().collect()
}

/// What the shell expects next.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// A command.
    Command,
    /// The command that a wrapper runs, after its options.
    Wrapped,
    /// The target of a redirection; then this.
    Target { is_command: bool },
    /// Words that are no commands, up to the next separator.
    Arguments,
}

/// A part of a text.
enum Part {
    Word(String),
    Separator,
    Redirection,
}

/// The programs that a text for a shell names as commands.
fn programs(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut place = Place::Command;
    for part in parts(text) {
        place = match (part, place) {
            (Part::Separator, _) => Place::Command,
            (Part::Redirection, Place::Command | Place::Wrapped) => {
                Place::Target { is_command: true }
            }
            (Part::Redirection, _) => Place::Target { is_command: false },
            (Part::Word(_), Place::Target { is_command: true }) => Place::Command,
            (Part::Word(_), Place::Target { is_command: false } | Place::Arguments) => {
                Place::Arguments
            }
            (Part::Word(word), Place::Command | Place::Wrapped) => {
                let next = after(&word, place);
                let is_program = next == Place::Arguments || WRAPPERS.contains(&&*word);
                if is_program && !OF_THE_SHELL.contains(&&*word) && !word.contains(['$', '{']) {
                    found.push(word);
                }
                next
            }
        };
    }
    found
}

/// What follows a word where a command is expected.
fn after(word: &str, place: Place) -> Place {
    let is_option = || word.starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit());
    if is_assignment(word) || BEFORE_COMMANDS.contains(&word) {
        return place;
    }
    match place {
        _ if WRAPPERS.contains(&word) => Place::Wrapped,
        Place::Wrapped if is_option() => Place::Wrapped,
        _ => Place::Arguments,
    }
}

fn is_assignment(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(plain))
}

/// The words of a text and what stands between them.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let quoted = chars.by_ref().take_while(|c| *c != '\'');
                word.get_or_insert_default().extend(quoted);
            }
            '"' => quoted(&mut chars, word.get_or_insert_default()),
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(plain) => word.get_or_insert_default().push(plain),
            },
            '#' if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            '$' if chars.peek() == Some(&'(') => parts.extend(word.take().map(Part::Word)),
            c if c.is_whitespace() || "|&;()`<>".contains(c) => {
                let digits = |word: &String| word.chars().all(|c| c.is_ascii_digit());
                let is_redirection = matches!(c, '<' | '>') && chars.peek() != Some(&'(');
                // `2>` is no word.
                let is_number = is_redirection && word.as_ref().is_some_and(digits);
                parts.extend(word.take().filter(|_| !is_number).map(Part::Word));
                match c {
                    _ if is_redirection => {
                        while chars.next_if(|c| "<>&|".contains(*c)).is_some() {}
                        parts.push(Part::Redirection);
                    }
                    ' ' | '\t' | '<' | '>' => {}
                    _ => parts.push(Part::Separator),
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    parts.extend(word.map(Part::Word));
    parts
}

/// Adds what stands between double quotes.
fn quoted(chars: &mut impl Iterator<Item = char>, word: &mut String) {
    while let Some(c) = chars.next() {
        match c {
            '"' => return,
            '\\' => word.extend(chars.next()),
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn programs_are_the_first_words_of_commands() {
        for (text, expected) in [
            (
                "minimap2 -a {in.ref} {in.reads} | samtools sort -o {out}",
                "minimap2 samtools",
            ),
            ("A=1 B='x y' bwa mem; gzip -c x && cat y", "bwa gzip cat"),
            ("if test -e x; then sort x > y; else uniq; fi", "sort uniq"),
            ("for f in a b; do wc -l $f; done", "wc"),
            ("< in 2>err sed s/a/b/ >> out", "sed"),
            (
                "env -i X=1 nice -n 5 xargs -n1 gunzip",
                "env nice xargs gunzip",
            ),
            ("echo \"a; b\" 'c | d' # e | f\nhead", "head"),
            (
                "x=$(date +%s) && `which python3` ./run.py",
                "date which ./run.py",
            ),
            ("$TOOL a; {in.tool} b; /opt/bin/tool c", "/opt/bin/tool"),
            ("diff <(zcat a) <(zcat b)", "diff zcat zcat"),
            ("(cd x; make) | tee \\\n log", "make tee"),
            ("a\\ b 'c'd", "a b"),
        ] {
            assert_eq!(programs(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn tools_are_true_or_names() {
        let listed = json!({"command": "x", "tools": ["b", "a", "b"]});
        let tools = of(&listed).unwrap();
        assert_eq!(
            (tools.names, tools.are_listed),
            (vec!["a".into(), "b".into()], true)
        );
        let line = json!({"command_line": ["sort", "-n"], "tools": true});
        let tools = of(&line).unwrap();
        assert_eq!(
            (tools.names, tools.are_listed),
            (vec!["sort".to_string()], false)
        );
        assert_eq!(of(&json!({"command": "x", "tools": false})), None);
        assert_eq!(of(&json!({"command": "x"})), None);
        for (bad, told) in [
            (
                json!({"tools": "sort"}),
                "must be true or a list of programs",
            ),
            (json!({"tools": [1]}), "must be true or a list of programs"),
            (json!({"tools": true, "container": "run image"}), "both"),
        ] {
            let refused = expect_valid(&bad).expect_err("bad");
            assert!(refused.message.contains(told), "{}", refused.message);
        }
    }
}
