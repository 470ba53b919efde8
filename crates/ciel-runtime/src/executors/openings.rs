//! How often a command of the shell names an input that it reads by path.
//!
//! A stream can be opened once. What the text of a command names in several places is therefore
//! stored before the command starts, and is a file, as for `paste {a} {a}` or
//! `f={a}; wc -l < $f; cat $f`. The text is searched, not parsed: a name that opens nothing counts,
//! too, and costs the overlap of both ends; an opening that cannot be seen in the text, as that of
//! a loop, is left to the watch over the running command. Read next: `streaming`.

use super::template::is_name;

/// Whether the text of a command names its input `name` in more than one place: by `{name}` or
/// `{in.name}`, or by the variable to which one of these is assigned, or over which a `for` goes.
pub(super) fn names_again(command: &str, name: &str) -> bool {
    let mut places = 0;
    let mut at = 0;
    while let Some(open) = command[at..].find(['{', '$']).map(|open| at + open) {
        let rest = &command[open..];
        at = open + 1;
        if let Some(of_shell) = ["${{", "${", "{{"].iter().find(|it| rest.starts_with(**it)) {
            at = open + of_shell.len();
            continue;
        }
        let end = rest.strip_prefix('{').and_then(|inside| inside.find('}'));
        let Some(end) = end else { continue };
        let written = &rest[1..=end];
        if is_name(written) && written.strip_prefix("in.").unwrap_or(written) == name {
            let after = &rest[end + 2..];
            let variable = variable_before(&command[..open]);
            places += variable.map_or(1, |variable| uses(after, variable));
        }
    }
    places > 1
}

/// The variable that has what comes behind `before` as its value, or as one of its values in turn.
fn variable_before(before: &str) -> Option<&str> {
    let before = before.strip_suffix('"').unwrap_or(before);
    let of_shell = |name: &&str| !name.is_empty() && name.chars().all(is_part_of_name);
    if let Some(assigned) = before.strip_suffix('=') {
        let start = assigned.rfind(|c| !is_part_of_name(c));
        let name = &assigned[start.map_or(0, |start| start + 1)..];
        return Some(name).filter(of_shell);
    }
    let part = before.rsplit([';', '\n', '|', '&', '(']).next()?;
    let mut words = part.split_whitespace().skip_while(|word| *word != "for");
    let name = words.nth(1).filter(of_shell)?;
    (words.next() == Some("in")).then_some(name)
}

/// How often a text uses the value of a variable before it assigns another one.
fn uses(text: &str, variable: &str) -> usize {
    let mut count = 0;
    for (at, _) in text.match_indices(variable) {
        let (before, after) = (&text[..at], &text[at + variable.len()..]);
        if after.starts_with(is_part_of_name) || before.ends_with(is_part_of_name) {
            continue;
        }
        if before.ends_with('$') || before.ends_with("${") {
            count += 1;
        } else if after.starts_with('=') {
            break;
        }
    }
    count
}

fn is_part_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_named_again_by_its_placeholder_or_by_a_variable_that_has_it() {
        for command in [
            "paste {a} {a}",
            "wc -l < {a}; cat {in.a}",
            "f={a}; wc -l < $f; cat $f",
            "export f=\"{a}\"\npaste ${f} \"$f\"",
            "f={a} && cat $f {a}",
            "f={b}; f={a}; cat $f $f",
            "for f in {a} {b}; do wc -l < $f; cat $f; done",
            "if true; then for f in {a}; do paste $f ${f}; done; fi",
            "echo {{{a}}} {a}",
        ] {
            assert!(names_again(command, "a"), "{command}");
        }
    }

    #[test]
    fn input_in_one_place_is_not_named_again() {
        for command in [
            "cat {a} {b} {out.a}",
            "cat {a} ${a} ${{a}} {{a}} {aa}",
            "f={a}; cat $f $g $ff",
            "f={a}; cat $f; f={b}; cat $f $f",
            "f={a}; cat < \"${f}\" > f",
            "for f in {a} {b}; do cat $f; done",
            "for f in x y; do echo $f $f; done; cat {a}",
            "echo {a",
            "date",
        ] {
            assert!(!names_again(command, "a"), "{command}");
        }
    }
}
