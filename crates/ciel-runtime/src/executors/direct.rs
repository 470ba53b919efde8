//! Commands that a shell would only start: the words of one that means nothing else to it.
//!
//! A shell that starts a program and waits for it takes longer than many a program. This decides by
//! the text; whatever may mean more to any shell is none of these. It does not know how a program
//! is started. Read next: `plain_shell`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Names that a shell does not look for in the `PATH`: its reserved words and builtins, those of
/// `dash` and of others.
const OF_SHELLS: &str = "\
    . : alias bg bind break builtin caller case cd chdir command compgen complete compopt \
    continue coproc declare dirs disown do done echo elif else enable esac eval exec exit \
    export false fc fg fi for function getopts hash help hist history if in jobs kill let \
    local logout mapfile nameref newgrp popd print printf pushd pwd read readarray readonly \
    return select set shift shopt source suspend test then time times trap true type typeset \
    ulimit umask unalias unset until wait whence while [";

/// Builtins, with the programs that do the same if there are no arguments.
const ALIKE: [(&str, &str); 2] = [("true", "/bin/true"), ("false", "/bin/false")];

/// It does not wait for its program where it is the first process of a group, which it is not
/// behind a shell.
const SESSION: &[u8] = b"setsid";

/// Variables that a shell sets itself.
const SET: [&[u8]; 4] = [b"IFS", b"LINENO", b"OPTIND", b"PPID"];

/// Further ones, by which it finds programs and itself.
const FOUND_BY: [&[u8]; 2] = [b"PATH", b"PWD"];

/// Whether a shell passes a variable of that name on as it is; `PWD` it may correct.
pub(crate) fn is_passed_on(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let begins = name.first().is_some_and(|byte| !byte.is_ascii_digit());
    begins && name.iter().all(is_letter) && !SET.contains(&name)
}

/// The program and the arguments that a script stands for, if it means nothing else to a shell that
/// has these variables in addition to those of the job.
pub(super) fn words(script: &str, added: &[(String, OsString)]) -> Option<Vec<OsString>> {
    let first = script.split([' ', '\t']).next().filter(is_command)?;
    let names: BTreeSet<&[u8]> = added.iter().map(|(name, _)| name.as_bytes()).collect();
    let is_found_by = |name: &&[u8]| FOUND_BY.contains(name);
    if names.len() < added.len() || !names.iter().all(|name| is_passed_on(name)) {
        return None;
    }
    let words = split(script, added)?;
    let file_of = |word: &OsString| word.as_bytes().ends_with(SESSION);
    if names.iter().any(is_found_by) || words.iter().any(file_of) {
        return None;
    }
    let alike = ALIKE.iter().find(|(builtin, _)| *builtin == first);
    match alike.filter(|_| words.len() == 1) {
        Some((_, program)) => Some(vec![program.into()]),
        None => {
            let mut of_shells = OF_SHELLS.split(' ');
            of_shells.all(|name| name != first).then_some(words)
        }
    }
}

/// Whether a word has the form of a program's name, which no shell takes for anything else unless
/// it is one of its own words.
fn is_command(word: &&str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    !word.is_empty() && !word.starts_with(['+', '-']) && word.chars().all(plain)
}

/// The words of a script of plain characters and variables in double quotes; none if it has others.
fn split(script: &str, added: &[(String, OsString)]) -> Option<Vec<OsString>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut rest = script;
    while let Some(c) = rest.chars().next() {
        let mut taken = 1;
        match c {
            ' ' | '\t' => words.extend(word.take().map(OsString::from_vec)),
            '"' => {
                let (value, length) = variable(rest, added)?;
                word.get_or_insert_default().extend(value.as_bytes());
                taken = length;
            }
            c if c.is_ascii_alphanumeric() || "_./+-,:@%=".contains(c) => {
                word.get_or_insert_default().push(c as u8);
            }
            _ => return None,
        }
        rest = &rest[taken..];
    }
    words.extend(word.map(OsString::from_vec));
    Some(words)
}

/// The value of `"${ciel_N}"` at the start of `rest`, which is variable number N, and the length of
/// that.
fn variable<'a>(rest: &str, added: &'a [(String, OsString)]) -> Option<(&'a OsString, usize)> {
    let (name, _) = rest.strip_prefix("\"${")?.split_once("}\"")?;
    let number: usize = name.strip_prefix("ciel_")?.parse().ok()?;
    let (found, value) = added.get(number)?;
    (found == name).then_some((value, name.len() + 5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::process::Command;

    use proptest::prelude::*;

    fn found(script: &str) -> Option<Vec<OsString>> {
        let added = [("ciel_0", "a b"), ("ciel_1", ""), ("LEVEL", "3")];
        let added = added.map(|(name, value)| (name.to_string(), OsString::from(value)));
        words(script, &added)
    }

    #[test]
    fn words_of_a_plain_command_are_those_between_blanks() {
        for (script, expected) in [
            ("sort -k2,2n a.txt", &["sort", "-k2,2n", "a.txt"][..]),
            ("./a/b  x=1\t%d ", &["./a/b", "x=1", "%d"]),
            ("cat \"${ciel_0}\"", &["cat", "a b"]),
            (
                "cat \"${ciel_1}\" -o=\"${ciel_0}\"x",
                &["cat", "", "-o=a bx"],
            ),
            ("true", &["/bin/true"]),
            ("false ", &["/bin/false"]),
            ("/bin/echo if", &["/bin/echo", "if"]),
        ] {
            let expected: Vec<OsString> = expected.iter().map(OsString::from).collect();
            assert_eq!(found(script), Some(expected), "{script}");
        }
    }

    #[test]
    fn whatever_means_more_to_a_shell_goes_to_the_shell() {
        for script in [
            "",
            " ",
            " ls",
            "-x",
            "+x",
            "a=1",
            "a=1 b",
            "ls\n",
            "ls;",
            "ls &",
            "ls | wc",
            "ls > x",
            "ls <x",
            "(ls)",
            "{ ls",
            "ls $HOME",
            "ls `x`",
            "ls ~",
            "ls *",
            "ls ?",
            "ls [a]",
            "ls {1,2}",
            "ls 'a'",
            "ls \"a\"",
            "ls \\a",
            "! ls",
            "ls #x",
            "ls !x",
            "ls ^x",
            "é",
            "ls é",
            "true x",
            "true --version",
            "false -h",
            "echo",
            "echo a",
            "test -f x",
            "[ a ]",
            "cd",
            "exec ls",
            "kill 3",
            "time ls",
            "if",
            "printf a",
            ":",
            ". a",
            "%1",
            "ls \0",
            "ls \r",
            "setsid ls",
            "nice /usr/bin/setsid ls",
            "\"${ciel_0}\" x",
            "ls ${ciel_0}",
            "ls \"${LEVEL}\"",
            "ls \"${ciel_2}\"",
            "ls \"${ciel_3}\"",
            "ls \"$ciel_0\"",
            "ls \"${ciel_0}",
            "ls \"${ciel_00}\"",
            "ls \"${ciel_+0}\"",
        ] {
            assert_eq!(found(script), None, "{script:?}");
        }
    }

    #[test]
    fn variable_that_a_shell_changes_or_finds_programs_by_is_left_to_the_shell() {
        let with = |names: &[&str]| {
            let added = names.iter().map(|name| (name.to_string(), "x".into()));
            words("ls", &added.collect::<Vec<_>>())
        };
        assert!(with(&["A", "B_2", "OLDPWD", "_"]).is_some());
        for bad in [
            "PATH", "PWD", "IFS", "OPTIND", "PPID", "LINENO", "A.B", "2A", "", "A%%",
        ] {
            assert_eq!(with(&["A", bad]), None, "{bad}");
        }
        assert_eq!(with(&["A", "B", "A"]), None);
    }

    /// What the shell makes of a script behind `set --`: its words.
    fn by_shell(script: &str) -> Vec<OsString> {
        let print = format!("set -- {script}\nprintf '%s\\0' \"$@\"");
        let mut shell = Command::new("sh");
        let shell = shell
            .args(["-c", &print])
            .env("ciel_0", "a b")
            .env("ciel_1", "");
        let printed = shell.output().expect("a shell").stdout;
        let words = printed.split(|byte| *byte == 0);
        let mut words: Vec<OsString> = words.map(|word| OsStr::from_bytes(word).into()).collect();
        words.pop();
        words
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Texts of every kind of character, of which many are plain: what is found has none that
        /// a shell knows, and its words are those that a shell finds.
        #[test]
        fn words_that_are_found_are_those_of_the_shell(
            parts in proptest::collection::vec(
                prop_oneof![
                    8 => "[a-z0-9_./+,:@%=-]{1,4}",
                    4 => "[ \t]{1,2}",
                    2 => Just("\"${ciel_0}\"".to_string()),
                    1 => Just("\"${ciel_1}\"".to_string()),
                    1 => "[ -~\n]{1,2}",
                ],
                1..8,
            ),
        ) {
            let script = parts.concat();
            if let Some(words) = found(&script) {
                let bare = script.replace("\"${ciel_0}\"", "").replace("\"${ciel_1}\"", "");
                let of_shells = |c: char| "\n\"'`\\$&|;<>(){}[]*?~#!^".contains(c);
                prop_assert!(!bare.contains(of_shells), "{script}");
                let expected = by_shell(&script);
                let is_alike = ALIKE.iter().any(|(_, program)| words[0] == *program);
                prop_assert!(is_alike || words == expected, "{words:?}, {expected:?}");
            }
        }
    }
}
